// SPDX-License-Identifier: Apache-2.0
// The answer of a question as a page (src/draw/answer_page.c): what it rests on, its picture, its sentences and its tables, in the look of
// the report. Texts become text nodes, never markup; the picture is an image, in which nothing runs.
"use strict";
(() => {
  const { show, make } = common, { unpack, table } = tables;
  const data = JSON.parse(document.getElementById("data").textContent), answer = unpack(data.answer), fields = answer[""];
  const main = document.getElementById("main");
  const list = texts => make("ul", { class: "plain" }, ...texts.map(t => make("li", {}, t)));
  const isTable = v => v && typeof v === "object" && v.fields && v.rows && v.rows.length;
  function section(title, doc, ...children) {
    const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
    main.append(make("section", { "aria-labelledby": id }, make("h2", { id, title: doc }, title[0].toUpperCase() + title.slice(1)), ...children));
  }
  function facts(record, of) {
    const out = make("dl", { class: "facts" });
    for (const f of of) {
      const v = record[f[0]];
      if (f[1] && (typeof v === "string" || typeof v === "number")) out.append(make("dt", { title: f[3] }, f[1]), make("dd", {}, typeof v === "string" ? v : show(v, f[2])));
    }
    return out.children.length ? out : null;
  }
  const trust = (lines, title, kind) => lines.length && main.append(make("div", { class: kind, role: "note" }, make("b", {}, title), list(lines)));
  trust(data.incomplete, "This answer is incomplete", "warn");
  trust(data.worth_knowing, "Worth knowing", "know");
  // ---------------------------------------------------------------- bars: what changes bring

  // rows: [name, from, to, text, kind]; times of a step, drawn from 0 on. An interval is a thin line.
  function bars(title, doc, rows) {
    const most = Math.max(...rows.map(r => Math.max(r[1], r[2], (r[5] || [0, 0])[1])), 1), share = v => `${(100 * v / most).toFixed(2)}%`;
    section(title, doc, make("div", { class: "bars", role: "img", "aria-label": rows.map(r => `${r[0]}: ${r[3]}`).join("; ") }, ...rows.map(([name, from, to, text, kind, range]) => make("div", {},
      make("span", {}, name), make("span", { class: "track" }, make("i", { class: kind, style: `left:${share(Math.min(from, to))};width:${share(Math.max(Math.abs(to - from), most / 400))}` }),
        range ? make("i", { class: "range", style: `left:${share(range[0])};width:${share(range[1] - range[0])}` }) : null), make("span", {}, text)))));
  }
  // What leads from one step to another, piece by piece; changes: [name, ns].
  function waterfall(title, doc, [from, ns], changes, [to, end, range]) {
    let at = ns;
    bars(title, doc, [[from, 0, ns, show(ns, "ns"), "whole"],
      ...changes.map(([name, change]) => { const before = at; at += change; return [name, before, at, (change > 0 ? "+" : "") + show(change, "ns"), change > 0 ? "loss" : "gain"]; }),
      [to, 0, end, show(end, "ns"), "whole", range]]);
  }
  function plan() {
    if (answer.baseline_ns > 0 && isTable(answer.moves))
      waterfall("The step, move by move", "each move shortens the step by its own gain; the gains add up", ["now", answer.baseline_ns], answer.moves.rows.map(m => [m.move, -m.gain_ns]),
        ["with the plan", answer.best_ns, answer.best_low_ns > 0 ? [answer.best_low_ns, answer.best_high_ns] : null]);
  }
  function comparison() {
    if (isTable(answer.parts) && answer.base && answer.new && answer.base.step_ns > 0)
      waterfall("From the base's step to the new one", "each part by how much it is longer or shorter; the changes add up", ["base", answer.base.step_ns],
        answer.parts.rows.filter(p => p.delta_ns).map(p => [p.part, p.delta_ns]),
        ["new", answer.new.step_ns, answer.noise_ns > 0 ? [Math.max(0, answer.new.step_ns - answer.noise_ns), answer.new.step_ns + answer.noise_ns] : null]);
  }
  function predictions() {
    const list = fields.map(f => answer[f[0]]).find(v => isTable(v) && v.rows.some(r => r.what_if && r.predicted_ns > 0));
    if (!list) return;
    const rows = list.rows.filter(r => r.predicted_ns > 0), now = rows.find(r => r.change_ratio !== null && r.change_ratio > -1);
    bars("A step with each change", "predicted, without the profiler; the thin line is its interval", [
      ...(now ? [["now", 0, now.predicted_ns / (1 + now.change_ratio), show(Math.round(now.predicted_ns / (1 + now.change_ratio)), "ns"), "whole"]] : []),
      ...rows.map(r => [r.what_if, 0, r.predicted_ns, `${show(r.predicted_ns, "ns")}${r.change_ratio === null ? "" : ` (${show(r.change_ratio, "ratio")})`}`, "gain", r.low_ns > 0 && r.high_ns > 0 ? [r.low_ns, r.high_ns] : null])]);
  }

  const first = facts(answer, fields);
  if (first) main.append(first);
  if (data.svg) main.append(make("img", { class: "roof", alt: `the picture of reprise ${data.name}; the tables have the same numbers`, src: "data:image/svg+xml," + encodeURIComponent(data.svg) }));
  plan();
  comparison();
  predictions();
  for (const f of fields) {
    const v = answer[f[0]];
    if (!f[1] || data.left_out.includes(f[0])) continue;
    if (isTable(v)) section(f[1], f[3], table(v, { filter: v.rows.length > 12 ? f[1] : null, rows: 25 }));
    else if (Array.isArray(v) && v.length && v.every(t => typeof t === "string")) section(f[1], f[3], list(v));
    else if (v && v[""]) { const inner = facts(v, v[""]); if (inner) section(f[1], f[3], inner); }
  }
  main.append(make("footer", {}, "Made by reprise. This file is complete: it loads nothing. What each number means is shown where the mouse rests on a heading, and in docs/definitions.md."));
  document.documentElement.dataset.ready = "yes";
})();
