// Numbers as text, and line charts on a canvas.

export function short(value, unit = "") {
  const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [size, letter] of steps)
    if (Math.abs(value) >= size) return `${digits(value / size)} ${letter}${unit}`;
  return `${digits(value)}${unit ? ` ${unit}` : ""}`;
}

function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
}

export const percent = (share) => `${(100 * share).toFixed(share >= 0.0995 ? 0 : 1)} %`;

export function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.floor(seconds), two = (n) => String(n).padStart(2, "0");
  const minutes = `${Math.floor(whole / 60) % 60}`;
  if (whole < 3600) return `${minutes}:${two(whole % 60)} min`;
  return `${Math.floor(whole / 3600)}:${two(minutes)}:${two(whole % 60)} h`;
}

export const nanoseconds = (ns) =>
  ns < 1e3 ? `${ns} ns` : ns < 1e6 ? `${digits(ns / 1e3)} µs` : ns < 1e9 ? `${digits(ns / 1e6)} ms` : `${digits(ns / 1e9)} s`;

const styles = getComputedStyle(document.documentElement);
export const color = (name) => styles.getPropertyValue(`--${name}`).trim();

// A canvas in the pixels of the screen; returns its context and its size in CSS pixels.
export function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  return [context, width, height];
}

// The next round number above a value: 1, 2 or 5 times a power of ten.
export function rounded(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.9999);
}

// Lines over time: `series` are [values, colour]; `format` makes the labels of the y axis.
export function drawLines(canvas, t, series, format, top = 0) {
  const [context, width, height] = prepared(canvas);
  const left = 2, bottom = height - 16, right = width - 2;
  const high = top || rounded(Math.max(...series.flatMap(([values]) => values), 0));
  const from = t.length ? t[0] : 0, to = Math.max(t.length ? t[t.length - 1] : 1, from + 1);
  const x = (at) => left + ((at - from) / (to - from)) * (right - left);
  const y = (value) => bottom - (Math.min(value, high) / high) * (bottom - 14);
  context.strokeStyle = color("line");
  context.lineWidth = 1;
  for (const value of [0, high / 2, high]) line(context, [[left, y(value)], [right, y(value)]]);
  context.fillStyle = color("soft");
  context.textAlign = "left";
  context.fillText(format(high), left, 10);
  context.fillText(duration(from), left, height - 3);
  context.textAlign = "right";
  context.fillText(duration(to), right, height - 3);
  for (const [values, stroke] of series) {
    context.strokeStyle = stroke;
    context.lineWidth = 1.6;
    line(context, values.map((value, i) => [x(t[i]), y(value)]));
    if (!values.length) continue;
    context.globalAlpha = 0.12;
    context.fillStyle = stroke;
    context.lineTo(x(to), bottom);
    context.lineTo(x(from), bottom);
    context.fill();
    context.globalAlpha = 1;
  }
}

function line(context, points) {
  context.beginPath();
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

// A colour between others, given as #rrggbb; `share` is from 0 to 1.
export function between(colors, share) {
  const at = Math.min(Math.max(share, 0), 1) * (colors.length - 1);
  const low = Math.min(Math.floor(at), colors.length - 2), part = at - low;
  const mixed = [1, 3, 5].map((i) => {
    const [a, b] = [colors[low], colors[low + 1]].map((c) => parseInt(c.slice(i, i + 2), 16));
    return Math.round(a + (b - a) * part);
  });
  return `rgb(${mixed.join(",")})`;
}
