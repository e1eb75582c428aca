// The graph of operators on a canvas: only what is visible is drawn, and only when it has changed.
import { between, color, percent, prepared, short } from "./curves.js";

const NAMES_FROM = 0.42, LABELS_FROM = 0.55; // zoom below which names and labels are left out
const MARGIN = 36;

export class GraphView {
  constructor(canvas, choose) {
    Object.assign(this, { canvas, choose, zoom: 1, x: 0, y: 0, chosen: -1, over: -1, frame: null });
    this.dirty = false;
    this.fitted = true;
    this.drawn_ms = [];
    new ResizeObserver(() => (this.fitted ? this.fit() : this.redraw())).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    this.#listen();
  }

  show(header) {
    this.header = header;
    const { centres, paths, size, node } = header.layout;
    Object.assign(this, { centres, size, node });
    // Edges begin and end at the border of the operators.
    const down = header.layout.flow === "down";
    this.edges = header.edges.map((edge, i) => clipped(paths[i], node, down));
    this.down = down;
    this.inputs = header.nodes.map(() => 0);
    for (const [, target] of header.edges) this.inputs[target] += 1;
    const high = this.down ? 480 : Math.min(size[1] * 1.1 + 150, 0.72 * window.innerHeight, 576);
    this.canvas.parentElement.style.height = `${Math.max(high, this.down ? 300 : 480)}px`;
    this.lines = header.nodes.map(([name]) => wrapped(name, Math.floor((node[0] - 16) / 7)));
    this.fit();
  }

  update(frame, rates) {
    this.frame = frame;
    this.rates = rates;
    this.redraw();
  }

  select(number) {
    this.chosen = number;
    this.redraw();
  }

  // Scrolls an operator into sight.
  reveal(number) {
    const [x, y] = this.centres[number], [px, py] = this.toScreen(x, y);
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (px > 60 && px < width - 60 && py > 40 && py < height - 40 && this.zoom >= NAMES_FROM) return;
    this.fitted = false;
    this.zoom = Math.max(this.zoom, 0.8);
    this.x = width / 2 - x * this.zoom;
    this.y = height / 2 - y * this.zoom;
    this.redraw();
  }

  fit() {
    if (!this.header) return;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const [w, h] = this.size;
    const whole = Math.min((width - 2 * MARGIN) / w, (height - 2 * MARGIN - 20) / h, 1.1);
    // A graph that would be illegible is shown from its sources on, and can be moved.
    const legible = this.header.nodes.length <= 60 ? 0.6 : 0;
    this.zoom = Math.max(whole, legible, 0.004);
    this.x = w * this.zoom > width - MARGIN && !this.down ? MARGIN : (width - w * this.zoom) / 2;
    this.y = h * this.zoom > height - MARGIN && this.down ? MARGIN : (height - h * this.zoom) / 2;
    this.fitted = true;
    this.redraw();
  }

  scale(by, px = this.canvas.clientWidth / 2, py = this.canvas.clientHeight / 2) {
    const zoom = Math.min(Math.max(this.zoom * by, 0.004), 3), factor = zoom / this.zoom;
    this.x = px - (px - this.x) * factor;
    this.y = py - (py - this.y) * factor;
    this.zoom = zoom;
    this.fitted = false;
    this.redraw();
  }

  toScreen(x, y) {
    return [x * this.zoom + this.x, y * this.zoom + this.y];
  }

  // The operator at a place of the canvas, or -1.
  at(px, py) {
    if (!this.header) return -1;
    const x = (px - this.x) / this.zoom, y = (py - this.y) / this.zoom, [w, h] = this.node;
    const reach = Math.max(0, 5 / this.zoom - h / 2);
    return this.centres.findIndex(
      ([cx, cy]) => Math.abs(x - cx) <= w / 2 + reach && Math.abs(y - cy) <= h / 2 + reach,
    );
  }

  redraw() {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      const begin = performance.now();
      this.#draw();
      this.drawn_ms.push(performance.now() - begin);
      if (this.drawn_ms.length > 600) this.drawn_ms.shift();
    });
  }

  // -- drawing -------------------------------------------------------------------------------

  #draw() {
    const [context, width, height] = prepared(this.canvas);
    if (!this.header) return;
    const seen = {
      left: -this.x / this.zoom, top: -this.y / this.zoom,
      right: (width - this.x) / this.zoom, bottom: (height - this.y) / this.zoom,
    };
    context.translate(this.x, this.y);
    context.scale(this.zoom, this.zoom);
    const colors = { ramp: [color("edge"), color("half"), color("full")], ink: color("ink"), soft: color("soft"),
      node: color("node"), line: color("edge"), busy: color("busy"), mark: color("mark"), plate: color("plate") };
    this.#drawEdges(context, seen, colors);
    this.#drawNodes(context, seen, colors);
    if (this.zoom >= LABELS_FROM || this.chosen >= 0) this.#drawLabels(context, seen, colors);
  }

  #drawEdges(context, seen, colors) {
    const pressures = this.frame ? this.frame.pressure : [];
    this.edges.forEach(({ points, box }, i) => {
      if (outside(box, seen)) return;
      const pressure = pressures[i] || 0;
      context.strokeStyle = between(colors.ramp, pressure);
      context.lineWidth = Math.max(1.2 + 2.8 * pressure, 0.7 / this.zoom);
      context.beginPath();
      trace(context, points, this.down);
      context.stroke();
      if (this.zoom < 0.2) return;
      const [x, y] = points[points.length - 1];
      context.fillStyle = context.strokeStyle;
      context.beginPath();
      context.moveTo(x, y);
      if (this.down) { context.lineTo(x - 4.5, y - 9); context.lineTo(x + 4.5, y - 9); }
      else { context.lineTo(x - 9, y - 4.5); context.lineTo(x - 9, y + 4.5); }
      context.fill();
    });
  }

  #drawNodes(context, seen, colors) {
    const [w, h] = this.node, busy = this.frame ? this.frame.busy : [];
    const named = this.zoom >= NAMES_FROM;
    this.centres.forEach(([x, y], i) => {
      if (outside([x - w / 2, y - h / 2, x + w / 2, y + h / 2], seen)) return;
      const left = x - w / 2, top = y - h / 2, [, kind] = this.header.nodes[i];
      context.beginPath();
      context.roundRect(left, top, w, h, kind === "operator" ? 6 : h / 2.4);
      context.fillStyle = named ? colors.node : between([hex(colors.line), hex(colors.busy)], busy[i] || 0);
      context.fill();
      context.lineWidth = i === this.chosen ? Math.max(3, 3 / this.zoom) : i === this.over ? 2 : 1.1;
      context.strokeStyle = i === this.chosen ? colors.mark : i === this.over ? colors.mark : colors.line;
      context.stroke();
      if (named) this.#drawText(context, i, left, top, colors, busy[i] || 0);
    });
  }

  #drawText(context, i, left, top, colors, busy) {
    const [w, h] = this.node, lines = this.lines[i];
    context.textAlign = "center";
    context.fillStyle = colors.ink;
    context.font = "600 12.5px system-ui, sans-serif";
    lines.forEach((text, n) => context.fillText(text, left + w / 2, top + (lines.length > 1 ? 15 : 20) + 13.5 * n));
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colors.soft;
    const rate = this.rates ? `${short(this.rates.tuples[i])}/s · ${percent(busy)}` : "";
    context.fillText(rate, left + w / 2, top + h - 14);
    const room = w - 36, at = left + 18, bar = top + h - 9;
    context.globalAlpha = 0.35;
    context.fillStyle = colors.line;
    context.fillRect(at, bar, room, 3.5);
    context.globalAlpha = 1;
    context.fillStyle = colors.busy;
    context.fillRect(at, bar, room * busy, 3.5);
  }

  #drawLabels(context, seen, colors) {
    if (!this.rates) return;
    context.font = "10.5px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const all = this.zoom >= LABELS_FROM;
    this.header.edges.forEach(([origin, target], i) => {
      const { middle, box } = this.edges[i];
      if (outside(box, seen) || !(all || origin === this.chosen || target === this.chosen)) return;
      const waiting = this.frame.waiting[i];
      const rate = this.rateOf(i);
      const text = [rate === null ? "" : `${short(rate)}/s`, waiting ? `${short(waiting)} waiting` : ""].filter(Boolean);
      if (!text.length || !middle) return;
      const width = Math.max(...text.map((line) => context.measureText(line).width)) + 6;
      context.fillStyle = colors.plate;
      context.fillRect(middle[0] - width / 2, middle[1] - 7 * text.length, width, 14 * text.length);
      context.fillStyle = waiting ? colors.ink : colors.soft;
      text.forEach((line, n) => context.fillText(line, middle[0], middle[1] + 13 * (n - (text.length - 1) / 2)));
    });
    context.textBaseline = "alphabetic";
  }

  // Tuples per second over a stream; null where several share the counters of their operators.
  rateOf(edge) {
    const [origin, target, , , , outputs] = this.header.edges[edge];
    if (this.inputs[target] === 1) return this.rates.tuples[target];
    return outputs === 1 ? this.rates.emitted[origin] : null;
  }

  // -- pointers ------------------------------------------------------------------------------

  #listen() {
    const canvas = this.canvas, held = new Map();
    let moved = 0, gap = 0;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      held.set(event.pointerId, place(event));
      canvas.setPointerCapture(event.pointerId);
      moved = gap = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = place(event);
      if (!held.has(event.pointerId)) {
        const over = this.at(px, py);
        if (over !== this.over) {
          this.over = over;
          canvas.classList.toggle("over", over >= 0);
          canvas.title = over >= 0 ? this.header.nodes[over][0] : "";
          this.redraw();
        }
        return;
      }
      const [bx, by] = held.get(event.pointerId);
      held.set(event.pointerId, [px, py]);
      if (held.size === 2) {
        const [[ax, ay], [cx, cy]] = held.values();
        const now = Math.hypot(ax - cx, ay - cy);
        if (gap) this.scale(now / gap, (ax + cx) / 2, (ay + cy) / 2);
        gap = now;
      } else {
        this.x += px - bx;
        this.y += py - by;
        this.fitted = false;
        this.redraw();
      }
      moved += Math.abs(px - bx) + Math.abs(py - by);
    });
    const up = (event) => {
      const known = held.delete(event.pointerId);
      if (event.type === "pointerup" && known && moved < 6) this.choose(this.at(...place(event)));
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.scale(Math.exp(-event.deltaY * 0.0015), ...place(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
      if (steps[event.key]) {
        this.x += steps[event.key][0];
        this.y += steps[event.key][1];
      } else if (event.key === "+" || event.key === "-") this.scale(event.key === "+" ? 1.25 : 0.8);
      else return;
      event.preventDefault();
      this.redraw();
    });
  }
}

const hex = (text) => (text.length === 4 ? `#${[...text.slice(1)].map((c) => c + c).join("")}` : text);

const outside = ([x0, y0, x1, y1], seen) => x1 < seen.left || x0 > seen.right || y1 < seen.top || y0 > seen.bottom;

function clipped(path, [w, h], down) {
  if (!path.length) return { points: [], box: [1e9, 1e9, -1e9, -1e9], middle: null };
  const points = path.map((point) => [...point]), last = points.length - 1, axis = down ? 1 : 0;
  const half = (down ? h : w) / 2, forward = points[0][axis] <= points[last][axis] ? 1 : -1;
  points[0][axis] += forward * half;
  points[last][axis] -= forward * half;
  const xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const at = Math.max(points.length >> 1, 1);
  const middle = [(points[at - 1][0] + points[at][0]) / 2, (points[at - 1][1] + points[at][1]) / 2];
  return { points, middle, box: [Math.min(...xs) - 40, Math.min(...ys) - 10, Math.max(...xs) + 40, Math.max(...ys) + 10] };
}

function trace(context, points, down) {
  points.forEach(([x, y], i) => {
    if (!i) return context.moveTo(x, y);
    const [px, py] = points[i - 1];
    if (down) context.bezierCurveTo(px, (py + y) / 2, x, (py + y) / 2, x, y);
    else context.bezierCurveTo((px + x) / 2, py, (px + x) / 2, y, x, y);
  });
}

// A name in at most two lines.
function wrapped(name, most) {
  if (name.length <= most) return [name];
  let cut = name.lastIndexOf(" ", most);
  if (cut < most / 3) cut = most;
  const rest = name.slice(cut).trim();
  return [name.slice(0, cut), rest.length > most ? `${rest.slice(0, most - 1)}…` : rest];
}
