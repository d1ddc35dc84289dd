#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// view_walk.js REPRISE [PICTURES]: five questions, each asked of a recording by what a person would do on the page of 'view': only real clicks and keys,
// which are counted, at places that can be seen (nothing narrower than four pixels is clicked). What the page then says is compared with the answer of
// the command. With a folder it takes the pictures of docs/cli/view.md. The recordings are in REPRISE_DATA (default ../shared/data). Needs Chromium.
"use strict";
const assert = require("assert");
const { spawn, spawnSync } = require("child_process");
const path = require("path");
const browser = require("../tests/web/browser.js");

const reprise = path.resolve(process.argv[2] || "build/reprise"), pictures = process.argv[3], data = process.env.REPRISE_DATA || path.resolve(__dirname, "../../shared/data");
const SIZE = { width: 1240, height: 620 };
const pause = ms => new Promise(done => setTimeout(done, ms));
const json = (...args) => JSON.parse(spawnSync(reprise, [...args, "--json"], { cwd: data, encoding: "utf8", maxBuffer: 1 << 28 }).stdout);

// A page of 'view' with counted hands.
async function open(b, runs) {
  const child = spawn(reprise, ["view", "--no-open", "--keep", ...runs], { cwd: data, stdio: ["ignore", "pipe", "ignore"] });
  const address = await new Promise((done, fail) => { child.stdout.once("data", text => done(String(text).trim())); child.once("exit", () => fail(new Error("the server ended"))); });
  const page = await b.page(address), hands = { clicks: 0, keys: 0, words: 0 };
  await page.call("Emulation.setDeviceMetricsOverride", { ...SIZE, deviceScaleFactor: 1, mobile: false });
  const settle = () => page.run("(async () => { for (let i = 0; i < 400 && !(document.documentElement.dataset.told && reprise.idle()); i++) await new Promise(d => setTimeout(d, 25)); await new Promise(d => setTimeout(d, 150)); })()");
  await settle();
  return {
    page, hands, panel: () => page.run("document.querySelector('#panel').innerText"),
    key: async key => {
      hands.keys++;
      for (const type of ["keyDown", "keyUp"]) await page.call("Input.dispatchKeyEvent", { type, key, text: type === "keyUp" ? undefined : key === "Enter" ? "\r" : key, windowsVirtualKeyCode: key === "Enter" ? 13 : undefined });
      await pause(200);
      await settle();
    },
    type: async text => { hands.words++; await page.call("Input.insertText", { text }); },
    click: async (x, y) => { hands.clicks++; await page.mouse("mousePressed", x, y); await page.mouse("mouseReleased", x, y); await pause(100); await settle(); },
    // The middle of what `find`, an expression of lanes, x, told and the time of a pixel, gives as [lane, begin, end]; it must be in sight.
    place: async find => {
      const [x, y, w] = await page.run(`(() => { const { x, told } = reprise, lanes = reprise.lanes(), pixel = 1 / (x(1) - x(0)), c = document.querySelector('canvas').getBoundingClientRect(), [lane, begin, end] = ${find};
        return [c.x + (x(begin) + x(end)) / 2, c.y + 40 + lane.y - reprise.state.top + Math.min(lane.h, 20) / 2, x(end) - x(begin)]; })()`);
      assert.ok(w >= 4 && x > 0 && x < SIZE.width && y > 40 && y < SIZE.height, `not in sight: ${[x, y, w]}`);
      return [x, y];
    },
    button: async text => page.run(`(() => { const r = [...document.querySelectorAll('#panel button')].find(b => b.textContent === ${JSON.stringify(text)}).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`),
    picture: name => (pictures ? page.screenshot(path.join(pictures, name), { x: 0, y: 0, ...SIZE }) : null),
    close: async () => { child.kill("SIGINT"); await page.call("Page.close"); },
  };
}

const WALKS = {
  // the widest gap, and what ends it
  "Which kernel is a gap waiting for?": {
    runs: ["public/tracelens/qwen1.5-0.5b_h100_STRIPPED.json.gz"], picture: "view_gap.png",
    walk: async v => {
      await v.click(...await v.place("(() => { const lane = lanes.find(l => l.layer === 'idle'), g = lane.items.reduce((a, g) => (g.dur > a.dur ? g : a)); return [lane, g.begin, g.begin + g.dur]; })()"));
      const text = await v.panel(), [gap] = json("idle", "--limit", "1", v.runs[0]).gaps;
      assert.ok(text.includes(gap.cause) && text.includes(gap.after), text);
      return text;
    },
  },
  "Which rank is late, and why?": {
    runs: ["public/astra-sim/megatron-tp8"], picture: "view_late.png",
    walk: async v => {
      await v.click(...await v.place("(() => { const t = told.told[0].comm.ties[0], lane = lanes.find(l => l.heading && l.rank === t.rank); return [lane, t.begin - 6 * pixel, t.begin]; })()"));
      const text = await v.panel(), worst = json("comm", v.runs[0]).collectives.reduce((a, c) => (c.margin_ns > a.margin_ns ? c : a));
      assert.ok(text.includes(`rank ${worst.last_rank} came last`), text);
      return text;
    },
  },
  "What runs beside the all-reduce?": {
    runs: ["public/hta/trace_diff/control/control.json.gz"], picture: "view_beside.png",
    walk: async v => {
      await v.page.run("document.querySelector('canvas').focus()");
      await v.key("/");
      await v.type("nccl.*AllReduce");
      await v.key("Enter");
      await v.key("n");
      const text = await v.panel();
      assert.match(text, /beside it, on the device/);
      return text;
    },
  },
  "Where does memory peak?": {
    runs: ["public/tracelens/timesformer_h100_STRIPPED.json.gz"], picture: "view_peak.png",
    walk: async v => {
      await v.click(...await v.place("(() => { const lane = lanes.find(l => l.layer === 'memory'), d = lane.items[0]; return [lane, d.peak_ns - 1e6, d.peak_ns + 1e6]; })()"));
      await v.click(...await v.button("show"));
      const text = await v.panel(), [device] = json("memory", v.runs[0]).devices;
      assert.ok(text.includes(device.holders[0].category), text);
      return text;
    },
  },
  "What changed since yesterday?": {
    runs: ["current", "hook"].map(n => `public/modded-nanogpt/2025-10-31_AdamSyncGradientHook/modded-nanogpt-${n}-gpu-rank-00-chrome-trace.json.gz`), picture: "view_changed.png",
    walk: async v => {
      await v.page.run("document.querySelector('canvas').focus()");
      await v.key("r");
      const text = await v.panel(), d = json("diff", ...v.runs);
      assert.ok(text.includes(`${d.verdict}: `), text);
      return text;
    },
  },
};

async function main() {
  const b = await browser.open({ size: `${SIZE.width},${SIZE.height}` });
  try {
    for (const [question, { runs, picture, walk }] of Object.entries(WALKS)) {
      const v = await open(b, runs);
      v.runs = runs;
      try {
        const answer = await walk(v).finally(() => v.picture(picture));
        console.log(`${question}\n    ${runs.join(" ")}\n    ${v.hands.clicks} clicks, ${v.hands.keys} keys, ${v.hands.words} words typed\n    ${answer.split("\n").filter(Boolean).slice(0, 9).join("\n    ")}`);
      } finally {
        await v.close();
      }
    }
  } finally {
    await b.close();
  }
}
main().catch(e => { console.error(e); process.exit(1); });
