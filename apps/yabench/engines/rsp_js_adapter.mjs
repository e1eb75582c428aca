// RSP.js: an engine for RSP-QL. Its windows and its SPARQL evaluation are used as they are; results
// are collected by window, because the engine emits single bindings without the window's end.
// Arguments: the folder that rsp-js is installed in, and the task.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [folder, taskFile] = process.argv.slice(-2);
const require = createRequire(folder + "/package.json");
// The engine logs every item to standard output, which is for results.
for (const name of ["log", "debug", "info", "error", "warn"]) console[name] = () => {};
function fail(what, error) {
  const reason = String(error?.message ?? error).split("\n")[0];
  process.stderr.write(`Error: ${what} (Node ${process.version}): ${reason}\n`);
  process.exit(1);
}
process.on("uncaughtException", (error) => fail("rsp-js failed", error));
process.on("unhandledRejection", (error) => fail("rsp-js failed in a query", error));
function load(name) {
  try {
    return require(name);
  } catch (error) {
    return fail(`${name} cannot be loaded, \`xstream yabench install rsp-js\` renews it`, error);
  }
}
const { RSPEngine } = load("rsp-js");
const N3 = load("n3");
load("@comunica/query-sparql"); // the engine would load it in its first window

const task = JSON.parse(readFileSync(taskFile, "utf8"));
const engine = new RSPEngine(task.query);
const stream = engine.getStream("https://rsp.js/stream1");
const [window] = engine.windows;
const pending = [];
const write = (object) => process.stdout.write(JSON.stringify(object) + "\n");

function term(value) {
  const type = value.termType === "Literal" ? "literal" : "uri";
  return { type, value: value.value, datatype: value.datatype?.value };
}

async function report(content, end) {
  const bindings = [];
  const found = await engine.r2r.execute(content);
  await new Promise((resolve, reject) => {
    found.on("data", (row) => {
      const binding = {};
      for (const [name, value] of row) binding[name.value] = term(value);
      bindings.push(binding);
    });
    found.on("end", resolve);
    found.on("error", reject);
  });
  write({ timestamp: end, bindings });
}

window.subscribe("RStream", (content) => {
  for (const [instance, held] of window.active_windows) {
    if (held === content) pending.push(report(content, instance.close));
  }
});

write({ ready: true });
let last = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const split = line.lastIndexOf(' "');
  last = Number(line.slice(split + 2, -1));
  for (const quad of new N3.Parser({ format: "N-Triples" }).parse(line.slice(0, split))) {
    stream.add(quad, last);
  }
}
// A window closes when an item comes after its end: this one closes the last windows.
const node = N3.DataFactory.namedNode("https://rsp.js/end");
for (let end = Math.floor(last / task.slide_ms + 1) * task.slide_ms; end - task.size_ms <= last; ) {
  stream.add(N3.DataFactory.quad(node, node, node), end + 1);
  end += task.slide_ms;
}
await Promise.all(pending);
