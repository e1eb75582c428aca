// The live page: shows the frames that the server sends, for as long as it sends them.
import { color, drawLines, duration, nanoseconds, percent, short } from "./curves.js";
import { GraphView } from "./graph.js";
import { Panels } from "./panels.js";

const [TUPLES, SAMPLES, EMITTED, BUSY, DROPPED, PEAK] = [0, 1, 2, 3, 4, 5];
const ENDED = ["done", "stopped", "suspended", "failed", "interrupted"];
const WORDS = { suspended: "suspended at a checkpoint", lost: "connection lost", done: "done" };
const MOST_POINTS = 1200, ROW = 30;
const $ = (id) => document.getElementById(id);

const state = { header: null, frame: null, rates: null, past: [], totals: null, chosen: -1, curves: null,
  sort: "order", back: false, find: "", shown: [], replay: null, playing: true, source: null };
const graph = new GraphView($("graph"), (number) => choose(number));
const panels = new Panels($("panels"));
// For tests and for those who look into the page.
window.xstream = { state, graph, panels, choose };

// -- frames ----------------------------------------------------------------------------------

async function open() {
  const flow = window.innerWidth > 900 ? "right" : "down";
  const opening = await (await fetch(`run.json?flow=${flow}`)).json();
  if (!opening) return;
  Object.assign(state, { header: opening.header, replay: opening.replay, past: [], totals: opening.totals, rates: null });
  const { header } = state;
  document.title = `${header.query} · xstream live`;
  $("query").textContent = header.query;
  $("settings").textContent = `${header.scheduler}, ${header.manager}, since ${new Date(header.began).toLocaleTimeString("en-GB")}`;
  $("message").hidden = true;
  graph.show(header);
  panels.show(header.panels);
  panels.update(opening.panels);
  $("find").closest("section").hidden = false;
  if (state.replay) beginReplay();
  choose(-1);
  sorted();
  if (opening.frame) show(opening.frame);
}

function show(frame) {
  if (!state.header || frame.busy.length !== state.header.nodes.length) return;
  const past = state.past;
  if (past.length && frame.t < past[past.length - 1].t) past.length = 0;  // a recording goes back
  past.push(frame);
  while (past.length > 2 && frame.t - past[1].t >= 1) past.shift();
  state.frame = frame;
  state.rates = ratesSince(past[0], frame);
  addPoint(frame);
  phase(frame.phase, frame.message);
  graph.update(frame, state.rates);
  if (state.sort === "busy" || state.sort === "tuples" || state.sort === "samples" || state.sort === "waiting") sorted();
  else rows();
  tiles();
  detail();
  if (state.replay) replayAt(frame.t);
}

function ratesSince(first, last) {
  const seconds = Math.max(last.t - first.t, 1e-9);
  const per = (column) => last.counters[column].map((value, i) =>
    first === last ? 0 : Math.max(value - first.counters[column][i], 0) / seconds);
  const waiting = last.busy.map(() => 0);
  state.header.edges.forEach(([, target], i) => (waiting[target] += last.waiting[i]));
  return { tuples: per(TUPLES), samples: per(SAMPLES), emitted: per(EMITTED), waiting };
}

function addPoint(frame) {
  const { totals, curves, rates, header } = state;
  const admitted = header.nodes.reduce((sum, [, kind], i) => sum + (kind === "source" ? rates.samples[i] : 0), 0);
  const add = (series, values) => {
    if (series.t.length && frame.t <= series.t[series.t.length - 1]) return;
    series.t.push(frame.t);
    for (const [name, value] of Object.entries(values)) series[name].push(value);
    if (series.t.length > MOST_POINTS) for (const values of Object.values(series)) values.shift();
  };
  state.admitted = admitted;
  // The curves of a replay are complete, and the first frame, which may come twice, has no rates.
  if (state.replay || state.past[0].t >= frame.t) return;
  add(totals, { samples: admitted, live: frame.memory.live, process: frame.memory.process });
  const i = state.chosen;
  if (i >= 0 && curves)
    add(curves, { busy: frame.busy[i], tuples: rates.tuples[i], samples: rates.samples[i],
      emitted: rates.emitted[i], waiting: rates.waiting[i] });
}

function phase(name, message) {
  const pill = $("phase");
  pill.className = `phase ${name}`;
  pill.textContent = WORDS[name] || name;
  if (message) $("message").textContent = message;
  $("message").hidden = !message;
}

function listen(at = 0) {
  state.source?.close();
  const speed = state.replay ? $("speed").value : 1;
  const source = (state.source = new EventSource(`events?at=${at}&speed=${speed}`));
  source.addEventListener("frame", (event) => {
    show(JSON.parse(event.data));
    if (state.replay && ENDED.includes(state.frame.phase)) pause();
  });
  source.addEventListener("panels", (event) => panels.update(JSON.parse(event.data)));
  source.addEventListener("run", () => open().catch(lost));
  source.onerror = () => {
    if (state.frame && ENDED.includes(state.frame.phase)) source.close();
    else lost();
  };
}

function lost() {
  phase("lost", "The run no longer answers; this is its last known state. The page tries again.");
}

// -- tiles and the chosen operator -----------------------------------------------------------

function tiles() {
  const { frame, rates, header } = state, memory = frame.memory;
  const busiest = frame.busy.indexOf(Math.max(...frame.busy));
  const waiting = rates.waiting.reduce((a, b) => a + b, 0);
  const shown = [
    [duration(frame.t), "elapsed"],
    [`${short(state.admitted)}/s`, "samples from sources"],
    [percent(frame.busy[busiest] || 0), `busiest: ${header.nodes[busiest]?.[0] ?? "none"}`],
    [short(waiting), "tuples waiting"],
    [short(memory.live, "B"), `segments (${header.manager}), peak ${short(memory.peak, "B")}`],
    [short(memory.process, "B"), "memory of the process"],
  ];
  const dropped = frame.counters[DROPPED].reduce((a, b) => a + b, 0);
  if (dropped) shown.push([short(dropped), "dropped"]);
  for (const [source, [, , p99, worst]] of Object.entries(frame.lateness ?? {}).slice(0, 2))
    shown.push([nanoseconds(p99), `lateness of ${source}, 99\u00a0%; ${longest(worst)}`]);
  for (const [source, [, , p99, worst]] of Object.entries(frame.latency ?? {}).slice(0, 2))
    shown.push([nanoseconds(p99), `latency from ${source}, 99\u00a0%; ${longest(worst)}`]);
  if (frame.rings) shown.push([frame.rings.map((fill) => percent(fill)).join(", "), `rings between ${frame.rings.length + 1} threads`]);
  const place = $("tiles");
  while (place.children.length > shown.length) place.lastChild.remove();
  shown.forEach(([value, words], i) => {
    let tile = place.children[i];
    if (!tile) {
      tile = document.createElement("div");
      tile.append(document.createElement("b"), document.createElement("span"));
      place.append(tile);
    }
    setText(tile.firstChild, value);
    setText(tile.lastChild, words);
  });
}

const longest = (ns) => `worst ${nanoseconds(ns)}`.replaceAll(" ", "\u00a0");

const setText = (element, text) => { if (element.textContent !== text) element.textContent = text; };

async function choose(number) {
  state.chosen = number;
  state.curves = null;
  graph.select(number);
  rows();
  detail(true);
  if (number < 0) return;
  graph.reveal(number);
  try {
    const curves = await (await fetch(`curves.json?operator=${number}`)).json();
    if (state.chosen === number) state.curves = curves;
  } catch {
    state.curves = { t: [], busy: [], tuples: [], samples: [], emitted: [], waiting: [] };
  }
  detail();
}

const CHARTS = {
  operator: [["busy", "busy share", percent, 1], ["tuples", "tuples per second", short], ["samples", "samples per second", short], ["waiting", "tuples waiting", short]],
  run: [["samples", "samples from sources per second", short], ["live", "memory of segments", (n) => short(n, "B")], ["process", "memory of the process", (n) => short(n, "B")]],
};

function detail(fresh = false) {
  if (!state.header) return;
  const place = $("detail"), chosen = state.chosen, kind = chosen < 0 ? "run" : "operator";
  const series = chosen < 0 ? state.totals : state.curves;
  if (fresh || place.dataset.kind !== kind) {
    place.dataset.kind = kind;
    const heading = document.createElement("h2");
    const charts = CHARTS[kind].flatMap(([, words]) => {
      const title = document.createElement("h3");
      title.append(Object.assign(document.createElement("span"), { textContent: words }), document.createElement("b"));
      return [title, document.createElement("canvas")];
    });
    place.replaceChildren(heading, ...charts, document.createElement("dl"));
  }
  place.querySelector("h2").textContent = chosen < 0 ? "The whole run" : state.header.nodes[chosen][0];
  const titles = place.querySelectorAll("h3 b"), canvases = place.querySelectorAll("canvas");
  CHARTS[kind].forEach(([name, , format, top], i) => {
    if (!series) return;
    const values = series[name];
    setText(titles[i], values.length ? format(state.replay ? replayValue(series, name) : values[values.length - 1]) : "");
    drawLines(canvases[i], series.t, [[values, color(i % 2 ? "second" : "busy")]], format, top);
  });
  facts(place.querySelector("dl"));
}

function replayValue(series, name) {
  const at = series.t.findLastIndex((t) => t <= (state.frame?.t ?? 0) + 1e-6);
  return series[name][Math.max(at, 0)];
}

function facts(list) {
  const { header, frame, chosen, rates } = state, found = [];
  if (!frame) return;
  if (chosen < 0) {
    found.push(["operators", header.nodes.length.toLocaleString("en")], ["streams", header.edges.length.toLocaleString("en")],
      ["copied by the manager", short(frame.memory.copied, "B")], ["queues", short(frame.memory.queues, "B")]);
  } else {
    const count = (column) => frame.counters[column][chosen].toLocaleString("en");
    found.push(["tuples", count(TUPLES)], ["samples", count(SAMPLES)], ["emitted", count(EMITTED)],
      ["busy", nanoseconds(frame.counters[BUSY][chosen])], ["queue peak", count(PEAK)]);
    if (frame.counters[DROPPED][chosen]) found.push(["dropped", count(DROPPED)]);
    if (frame.parts) found.push(["thread", String(frame.parts[chosen] + 1)]);
    const name = header.nodes[chosen][0];
    for (const [what, key] of [["lateness", "lateness"], ["latency", "latency"]])
      if (frame[key]?.[name]) found.push([`${what}, 50 and 99 %`, frame[key][name].slice(1, 3).map(nanoseconds).join(", ")]);
    for (const [what, value] of Object.entries(frame.network?.[name] ?? {})) found.push([what, value.toLocaleString("en")]);
  }
  const words = found.map((pair) => pair.join("\t")).join("\n");
  if (list.dataset.words === words) return;
  list.dataset.words = words;
  list.replaceChildren(...found.flatMap(([what, value]) => [
    Object.assign(document.createElement("dt"), { textContent: what }),
    Object.assign(document.createElement("dd"), { textContent: value }),
  ]));
}

// -- the table: only the rows that are in sight have elements --------------------------------

const COLUMNS = [["order", "operator"], ["busy", "busy share"], ["tuples", "tuples/s"], ["samples", "samples/s"], ["waiting", "waiting"], ["total", "tuples"]];

function columns() {
  $("columns").replaceChildren(...COLUMNS.map(([key, words]) => {
    const cell = document.createElement("span"), button = document.createElement("button");
    cell.setAttribute("role", "columnheader");
    button.type = "button";
    button.textContent = words;
    button.onclick = () => {
      state.back = state.sort === key && !state.back;
      state.sort = key;
      for (const other of $("columns").querySelectorAll("button")) other.removeAttribute("aria-sort");
      button.setAttribute("aria-sort", state.back ? "ascending" : "descending");
      sorted();
    };
    cell.append(button);
    return cell;
  }));
}

function sorted() {
  const { header, frame, rates, sort, find } = state;
  if (!header) return;
  const numbers = header.nodes.map((_, i) => i).filter((i) => header.nodes[i][0].toLowerCase().includes(find));
  const value = { busy: frame?.busy, tuples: rates?.tuples, samples: rates?.samples, waiting: rates?.waiting, total: frame?.counters[TUPLES] }[sort];
  if (value) numbers.sort((a, b) => value[b] - value[a] || a - b);
  state.shown = state.back ? numbers.reverse() : numbers;
  $("found").textContent = find ? `${numbers.length.toLocaleString("en")} of ${header.nodes.length.toLocaleString("en")}` : "";
  rows();
}

function rows() {
  const { header, frame, rates, shown } = state, place = $("rows"), space = $("space");
  if (!header) return;
  space.style.height = `${shown.length * ROW}px`;
  const first = Math.max(Math.floor(place.scrollTop / ROW) - 2, 0);
  const last = Math.min(first + Math.ceil((place.clientHeight || 400) / ROW) + 5, shown.length);
  const pool = place.querySelectorAll(".row");
  for (let n = pool.length; n < last - first; n += 1) place.append(newRow());
  const elements = place.querySelectorAll(".row");
  elements.forEach((row, n) => {
    const i = first + n < last ? shown[first + n] : undefined;
    row.hidden = i === undefined;
    row.style.display = row.hidden ? "none" : "";
    if (row.hidden) return;
    row.dataset.operator = i;
    row.style.transform = `translateY(${(first + n) * ROW}px)`;
    row.classList.toggle("chosen", i === state.chosen);
    const cells = row.children, busy = frame?.busy[i] ?? 0;
    setText(cells[0], header.nodes[i][0]);
    cells[1].firstChild.style.transform = `scaleX(${busy})`;
    setText(cells[1].lastChild, percent(busy));
    if (!rates) return;
    setText(cells[2], short(rates.tuples[i]));
    setText(cells[3], short(rates.samples[i]));
    setText(cells[4], short(rates.waiting[i]));
    setText(cells[5], frame.counters[TUPLES][i].toLocaleString("en"));
  });
}

function newRow() {
  const row = document.createElement("div");
  row.className = "row";
  row.setAttribute("role", "row");
  COLUMNS.forEach((_, n) => {
    const cell = document.createElement("span");
    cell.setAttribute("role", "cell");
    if (n === 1) {
      cell.className = "share";
      cell.append(document.createElement("i"), document.createElement("span"));
    }
    row.append(cell);
  });
  row.onclick = () => choose(Number(row.dataset.operator));
  return row;
}

// -- recordings ------------------------------------------------------------------------------

function beginReplay() {
  $("replay").hidden = false;
  Object.assign($("at"), { min: state.replay.from, max: state.replay.to, value: state.replay.from });
}

function replayAt(t) {
  if (!state.dragging) $("at").value = t;
  $("at-text").textContent = `${duration(t)} of ${duration(state.replay.to)}`;
}

function pause() {
  state.source?.close();
  state.playing = false;
  $("play").textContent = "Play";
}

function play(at) {
  state.playing = true;
  $("play").textContent = "Pause";
  panels.show(state.header.panels);
  listen(at);
}

function listenToControls() {
  $("closer").onclick = () => graph.scale(1.3);
  $("wider").onclick = () => graph.scale(1 / 1.3);
  $("fit").onclick = () => graph.fit();
  $("find").oninput = (event) => {
    state.find = event.target.value.trim().toLowerCase();
    $("rows").scrollTop = 0;
    sorted();
  };
  $("rows").addEventListener("scroll", () => requestAnimationFrame(rows));
  $("play").onclick = () => {
    if (state.playing) return pause();
    const ended = state.frame && state.frame.t >= state.replay.to;
    play(ended ? state.replay.from : state.frame?.t ?? 0);
  };
  $("at").oninput = (event) => {
    state.dragging = true;
    $("at-text").textContent = `${duration(Number(event.target.value))} of ${duration(state.replay.to)}`;
  };
  $("at").onchange = (event) => {
    state.dragging = false;
    play(event.target.value);
  };
  $("speed").onchange = () => state.playing && play(state.frame?.t ?? 0);
  document.addEventListener("keydown", (event) => event.key === "Escape" && choose(-1));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const recolored = () => { ramp(); detail(); };
  dark.addEventListener("change", recolored);
  new ResizeObserver(() => { detail(); rows(); }).observe($("detail"));
}

function ramp() {
  const canvas = $("ramp"), context = canvas.getContext("2d");
  const fill = context.createLinearGradient(0, 0, canvas.width, 0);
  ["edge", "half", "full"].forEach((name, i) => fill.addColorStop(i / 2, color(name)));
  context.fillStyle = fill;
  context.fillRect(0, 0, canvas.width, canvas.height);
}

columns();
listenToControls();
ramp();
open().then(() => listen(state.replay?.from ?? 0), lost);
