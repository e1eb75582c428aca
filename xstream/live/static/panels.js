// Panels of applications: heat maps that grow to the right, and delays against their limits.
import { between, color, prepared, short } from "./curves.js";

const RAMPS = {
  "slow-to-fast": () => ["#a50026", "#f46d43", "#fee090", "#abd9e9", "#4575b4"],
  amount: () => [color("pale"), "#c58bc9", color("dark")],
};
const MOST_COLUMNS = 1440;

export class Panels {
  constructor(place) {
    this.place = place;
    this.panels = new Map();
    const redraw = () => this.panels.forEach((panel) => panel.draw());
    new ResizeObserver(redraw).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  show(descriptions) {
    this.place.replaceChildren();
    this.place.className = "panels";
    this.panels = new Map(descriptions.map((each) => {
      const section = document.createElement("section");
      const heading = document.createElement("h3");
      heading.textContent = each.title;
      section.append(heading);
      section.classList.toggle("wide", each.kind === "limits");
      this.place.append(section);
      return [each.name, each.kind === "heat" ? new HeatMap(section, each) : new Delays(section, each)];
    }));
  }

  update(updates) {
    for (const [name, update] of Object.entries(updates)) this.panels.get(name)?.update(update);
  }
}

class HeatMap {
  constructor(section, description) {
    Object.assign(this, description);
    this.columns = new Map();
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${this.title}: ${this.up} by ${this.across}`);
    this.note = document.createElement("p");
    this.note.className = "sub";
    section.append(this.canvas, this.note);
    this.canvas.addEventListener("pointermove", (event) => this.#tell(event));
    this.canvas.addEventListener("pointerleave", () => this.#tell(null));
    this.draw();
  }

  update({ columns = [] }) {
    for (const [at, values, marks] of columns) this.columns.set(at, [values, marks]);
    while (this.columns.size > MOST_COLUMNS) this.columns.delete(this.columns.keys().next().value);
    this.draw();
  }

  draw() {
    const [context, width, height] = prepared(this.canvas);
    const frame = (this.frame = { left: 34, top: 18, right: width - 4, bottom: height - 32 });
    const numbers = [...this.columns.keys()].sort((a, b) => a - b);
    const first = numbers[0] ?? 0, last = numbers[numbers.length - 1] ?? 0;
    this.span = [first, Math.max(last - first + 1, 10)];
    const wide = (frame.right - frame.left) / this.span[1], high = (frame.bottom - frame.top) / this.rows;
    context.fillStyle = color("tint");
    context.fillRect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    const ramp = RAMPS[this.colors]();
    const share = this.log
      ? (value) => Math.log1p(Math.max(value - this.low, 0)) / Math.log1p(this.high - this.low)
      : (value) => (value - this.low) / (this.high - this.low);
    for (const [at, [values]] of this.columns) {
      const x = frame.left + (at - first) * wide;
      values.forEach((value, row) => {
        if (value === null) return;
        context.fillStyle = between(ramp, share(value));
        context.fillRect(x, frame.bottom - (row + 1) * high, wide + 0.5, high + 0.5);
      });
    }
    const marked = this.#drawMarks(context, frame, first, wide, high);
    this.#axes(context, frame, first, ramp);
    this.told = numbers.length
      ? `${this.marked ? `× ${this.marked}: ${marked ? marked.toLocaleString("en") : "none so far"}` : ""}`
      : "No values yet.";
    if (!this.telling) this.note.textContent = this.told;
  }

  // A cross where marks begin, and a line for as long as they last.
  #drawMarks(context, frame, first, wide, high) {
    let marked = 0;
    const ink = color("ink"), around = color("paper");
    for (const [at, [, marks]] of this.columns) for (const row of marks) {
      marked += 1;
      if (this.columns.get(at - 1)?.[1].includes(row)) continue;
      let end = at;
      while (this.columns.get(end + 1)?.[1].includes(row)) end += 1;
      const x = frame.left + (at - first + 0.5) * wide, y = frame.bottom - (row + 0.5) * high;
      for (const [stroke, width] of [[around, 4], [ink, 1.8]])
        drawLine(context, stroke, width, [x, y], [x + (end - at) * wide, y]);
      cross(context, x, y, ink, around);
    }
    return marked;
  }

  #axes(context, frame, first, ramp) {
    context.fillStyle = color("soft");
    context.textAlign = "right";
    for (const share of [0, 0.5, 1])
      context.fillText(String(Math.round(this.rows * share)), frame.left - 4, frame.bottom - share * (frame.bottom - frame.top) + 4 + 4 * (share - 0.5));
    context.textAlign = "left";
    context.fillText(`${this.across} ${first}`, frame.left, frame.bottom + 12);
    context.textAlign = "right";
    context.fillText(String(first + this.span[1] - 1), frame.right, frame.bottom + 12);
    const [from, to] = [frame.right - 150, frame.right - 60];
    for (let x = from; x < to; x += 2) {
      context.fillStyle = between(ramp, (x - from) / (to - from));
      context.fillRect(x, frame.bottom + 19, 2.5, 8);
    }
    context.fillStyle = color("soft");
    context.fillText(short(this.low), from - 4, frame.bottom + 27);
    context.textAlign = "left";
    context.fillText(`${short(this.high)} ${this.unit}`, to + 4, frame.bottom + 27);
    context.fillText(this.up, 2, 10);
  }

  #tell(event) {
    this.telling = event !== null;
    let text = this.told;
    if (event) {
      const box = this.canvas.getBoundingClientRect(), { left, right, top, bottom } = this.frame;
      const at = Math.floor(this.span[0] + ((event.clientX - box.left - left) / (right - left)) * this.span[1]);
      const row = Math.floor(((bottom - (event.clientY - box.top)) / (bottom - top)) * this.rows);
      const value = this.columns.get(at)?.[0][row];
      if (value !== undefined)
        text = `${this.across} ${at}, ${this.up} ${row}: ${value === null ? "no value" : `${value} ${this.unit}`}`;
    }
    this.note.textContent = text;
  }
}

function cross(context, x, y, ink, around) {
  for (const [stroke, width] of [[around, 4], [ink, 1.8]]) {
    drawLine(context, stroke, width, [x - 3.5, y - 3.5], [x + 3.5, y + 3.5]);
    drawLine(context, stroke, width, [x + 3.5, y - 3.5], [x - 3.5, y + 3.5]);
  }
}

function drawLine(context, stroke, width, from, to) {
  context.strokeStyle = stroke;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
}

class Delays {
  constructor(section, description) {
    Object.assign(this, description);
    this.rows = [];
    this.table = document.createElement("div");
    this.table.className = "delays";
    this.note = document.createElement("p");
    this.note.className = "sub";
    section.append(this.table, this.note);
    this.note.textContent = this.empty || "No results yet.";
  }

  draw() {}

  update({ rows = [] }) {
    this.table.replaceChildren(...rows.flatMap((row) => this.#row(row)));
    this.note.textContent = rows.length
      ? "Pale: the longest; dark: 99 of 100 were faster. The red line is the limit."
      : this.empty || "No results yet.";
  }

  #row([name, p50, p99, worst, limit, late]) {
    const cell = (text, kind = "") => {
      const made = document.createElement("span");
      made.textContent = text;
      made.className = kind;
      return made;
    };
    const track = cell("", "track");
    for (const [value, kind] of [[worst, "worst"], [p99, "p99"]]) {
      const bar = document.createElement("i");
      bar.className = value > limit ? `${kind} late` : kind;
      bar.style.width = `${Math.min(100 * (value / limit), 100)}%`;
      track.append(bar);
    }
    const figures = `median ${p50} ${this.unit}, worst ${worst} ${this.unit}, limit ${limit} ${this.unit}` +
      (late ? `, ${late.toLocaleString("en")} late` : "");
    return [cell(name), track, cell(figures, late ? "figures bad" : "figures")];
  }
}
