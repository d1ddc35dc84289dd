#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// flame_page.js REPRISE [SAMPLES]: a profile of a million samples (8 threads, stacks of up to 60 frames that change from sample to sample) as the
// page of 'top --by stack --html': how long the program takes, the size of the page, and pictures a second while the page zooms and scrolls,
// in both orders, in Chromium without a window. A picture is drawn in each frame that the browser asks for; the time of the page's own code for one is beside it,
// and the processor time that all processes of the browser take for a picture, which does not depend on what else the machine does.
"use strict";
const { spawnSync } = require("child_process");
const fs = require("fs"), os = require("os"), path = require("path");
const browser = require("../tests/web/browser.js");

// A profile of the Firefox Profiler: of each thread a stack that loses and gets some frames from one sample to the next.
function write(file, samples) {
  const threads = [], functions = 600;
  let seed = 1;
  const random = n => (seed = (seed * 48271) % 2147483647) % n;
  const column = (n, value) => Array.from({ length: n }, (_, i) => value(i));
  for (let k = 0; k < 8; k++) {
    const prefix = [], frame = [], known = new Map(), path = [], stack = [], time = [];
    for (let i = k; i < samples; i += 8) {
      for (let pop = random(10) ? random(4) : random(40); pop > 0 && path.length > 3; pop--) path.pop();
      for (let push = random(10) ? random(4) : random(40); push > 0 && path.length < 60; push--) {
        const up = path.length ? path[path.length - 1] : null, f = (path.length * 31 + random(3)) % functions, key = up * 1000 + f;
        if (!known.has(key)) { known.set(key, prefix.length); prefix.push(up); frame.push(f); }
        path.push(known.get(key));
      }
      stack.push(path[path.length - 1] ?? null);
      time.push(i / 8);
    }
    threads.push({ name: "worker " + k, pid: "7", tid: 100 + k, samples: { stack, time, length: stack.length }, stackTable: { prefix, frame, length: frame.length },
      frameTable: { func: column(functions, i => i), line: column(functions, () => null), length: functions },
      funcTable: { name: column(functions, i => i), fileName: column(functions, () => null), resource: column(functions, () => -1), length: functions },
      resourceTable: { lib: [], name: [], length: 0 }, stringArray: column(functions, i => "function_" + i) });
  }
  fs.writeFileSync(file, JSON.stringify({ meta: { interval: 1, preprocessedProfileVersion: 41 }, libs: [], threads }));
}

// CPU seconds of a process and all that it started.
function cpuSeconds(root) {
  const of = new Map();
  for (const pid of fs.readdirSync("/proc").filter(p => /^[0-9]+$/.test(p)))
    try {
      const f = fs.readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
      of.set(Number(pid), { up: Number(f[1]), ticks: Number(f[11]) + Number(f[12]) });
    } catch { /* it has ended */ }
  let sum = 0;
  for (const [pid, p] of of) {
    let at = pid;
    while (at !== root && of.has(at)) at = of.get(at).up;
    if (at === root) sum += p.ticks;
  }
  return sum / 100;
}

async function main() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "reprise-flame-")), reprise = path.resolve(process.argv[2]);
  const profile = path.join(folder, "profile.json"), html = path.join(folder, "page.html"), samples = Number(process.argv[3] || 1e6);
  const b = await browser.open({ size: "1280,900" });
  try {
    write(profile, samples);
    const begin = Date.now(), made = spawnSync(reprise, ["top", "--by", "stack", "--limit", "1", "--html", html, profile], { encoding: "utf8" });
    if (made.status) throw new Error(made.stderr);
    console.log(`${samples} samples: page of ${(fs.statSync(html).size / 1e6).toFixed(1)} MB in ${((Date.now() - begin) / 1000).toFixed(1)} s`);
    const page = await b.page(html);
    for (const order of ["the largest first", "in the order of time"]) {
      const before = cpuSeconds(b.pid), [n, seconds, ms, most, boxes] = JSON.parse(await page.run(`(async () => {
        const frame = () => new Promise(d => requestAnimationFrame(d)), began = performance.now(), spent = [];
        let most = 0;
        for (let k = 0; k < 120; k++) {
          const t = performance.now();
          if (k % 4) document.getElementById("canvas").dispatchEvent(new WheelEvent("wheel", { deltaY: k % 2 ? 40 : -40 }));
          else reprise.zoom(k % 8 ? reprise.boxes[k * 7919 % reprise.boxes.length].node : 0);
          if (k % 4) reprise.draw();
          spent.push(performance.now() - t);
          most = Math.max(most, reprise.boxes.length);
          await frame();
        }
        const all = performance.now() - began;
        spent.sort((a, b) => a - b);
        return JSON.stringify([spent.length, all / 1000, spent[60], spent[118], most]);
      })()`));
      console.log(`${order}: ${(n / seconds).toFixed(0)} pictures a second; a picture takes ${ms.toFixed(1)} ms (median), ${most.toFixed(1)} ms (p99); at most ${boxes} boxes; ${(1000 * (cpuSeconds(b.pid) - before) / n).toFixed(1)} ms of processor time`);
      await page.run("reprise.reorder()");
    }
  } finally {
    await b.close();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}
main().catch(e => { console.error(e); process.exit(1); });
