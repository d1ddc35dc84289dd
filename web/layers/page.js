// SPDX-License-Identifier: Apache-2.0
// What the questions say about a run, drawn over its timeline: findings of `report` where they happen, the causes of `idle`, who met
// whom in `comm`, the path of `critpath`, the memory of `memory`. All numbers come from their answers (src/view/explain.c); nothing is
// computed here but places on the screen.
"use strict";
const layers = view => {
  const { show, make } = common;
  const { state, paint } = view;
  const KINDS = { findings: "findings", idle: "idle causes", comm: "rendezvous", path: "critical path", memory: "memory" };
  const LAYERS = { findings: "findings", chances: "opportunities", ...KINDS };
  const CHANGES = { more: ["#f7cfc4", "#ef9280", "longer in the second run"], less: ["#cfe2f7", "#86b6ea", "shorter"], alone: ["#dcb0f2", "#dcb0f2", "in one run only"], same: ["#c3c9d0", "#c3c9d0", "within 3 %"] };
  const INKS = ["#f4a9a2", "#f7cf86", "#a9c8f5", "#b9dfa0", "#cbb7f0", "#9ed8cf", "#efb3da", "#e3e08a", "#c9ccd1"];
  const TIES_DRAWN = 300, TICKS_DRAWN = 1500, CHANCE = "#a5dfb2";
  const off = new Set(), told = [], ranks = new Map();
  let order = null;
  const shown = kind => !off.has(kind);
  const of = rank => { if (!ranks.has(rank)) ranks.set(rank, { marks: [], devices: new Map(), memory: [], path: [], comm: null }); return ranks.get(rank); };

  // ---------------------------------------------------------------- answers, by rank

  const index = {
    findings: (run, answer) => answer.findings.forEach((f, i) => {
      f.run = run; f.number = i + 1; f.colour = INKS[i % INKS.length]; f.places = [];
      f.changes = answer.opportunities.filter(o => o.finding === f.id).sort((a, b) => b.gain_ns - a.gain_ns);
      for (let k = 0; k < f.marks.length; k += 3) {
        const mark = { rank: f.marks[k], begin: f.marks[k + 1], dur: f.marks[k + 2], finding: f };
        f.places.push(mark);
        of(mark.rank).marks.push(mark);
      }
    }),
    idle: (run, answer) => {
      const total = new Array(answer.causes.length + 1).fill(0);
      for (const g of answer.gaps) total[g[4]] += g[5];
      const rank = total.map((t, i) => i).sort((a, b) => total[b] - total[a]);
      answer.colours = total.map((t, i) => INKS[Math.min(rank.indexOf(i), INKS.length - 1)]);
      for (const g of answer.gaps) {
        const devices = of(g[0]).devices;
        if (!devices.has(g[1])) devices.set(g[1], []);
        devices.get(g[1]).push({ rank: g[0], begin: g[2], dur: g[3], cause: g[4], part: g[5], host: answer.texts[g[6]], after: answer.texts[g[7]], answer });
      }
      for (const r of ranks.values()) for (const list of r.devices.values()) list.sort((a, b) => a.begin - b.begin);
    },
    comm: (run, answer) => {
      for (const tie of answer.ties) {
        tie.run = run;
        tie.rank = tie.at[3 * tie.late];
        tie.begin = tie.at[3 * tie.late + 1]; // all begin to transfer when the last one comes
        tie.dur = tie.at[3 * tie.late + 2];
        tie.first = tie.begin;
        for (let k = 0; k < tie.at.length; k += 3) tie.first = Math.min(tie.first, tie.at[k + 1]);
      }
      for (const r of answer.ranks) if (!of(r.rank).comm || r.margin_ns > of(r.rank).comm.margin_ns) of(r.rank).comm = r;
      order = null;
    },
    path: (run, answer) => {
      answer.lists = [[]];
      for (let k = 0; k < answer.paths.length; k += 6) {
        const [rank, track, begin, dur, kind, name] = answer.paths.slice(k, k + 6), list = answer.lists[answer.lists.length - 1], last = list[list.length - 1];
        const part = { rank, track, begin, dur, kind: answer.texts[kind], name: answer.texts[name] };
        if (!answer.joined && last && last.rank !== rank) answer.lists.push([part]);
        else list.push(part);
      }
    },
    memory: (run, answer) => { for (const d of answer.devices) of(d.rank).memory.push({ ...d, categories: answer.categories }); },
  };
  // ---------------------------------------------------------------- two runs

  let compared = null, byName = new Map(), stepNames = new Set();
  const perStep = v => [v[2] / compared.steps[0], v[4] / compared.steps[1]];
  function changeColour(name) {
    if (!compared || off.has("changes") || stepNames.has(name)) return null; // the numbers of steps differ
    const v = byName.get(name);
    if (!v) return CHANGES.same[0];
    const [base, now] = perStep(v), share = Math.abs(now - base) / Math.max(base, now, 1);
    return !v[1] || !v[3] ? CHANGES.alone[0] : share < 0.03 ? CHANGES.same[0] : CHANGES[now > base ? "more" : "less"][share < 0.2 ? 0 : 1];
  }
  const calls = n => (n >= 10 || Number.isInteger(n) ? show(Math.round(n), "count") : n.toFixed(1));
  function changeOf(name) {
    const v = compared && !stepNames.has(name) && byName.get(name);
    if (!v) return null;
    const [base, now] = perStep(v);
    return `a step: ${calls(v[1] / compared.steps[0])} calls, ${show(Math.round(base), "ns")} → ${calls(v[3] / compared.steps[1])} calls, ${show(Math.round(now), "ns")}`;
  }
  async function compare() {
    if (view.meta().runs.length < 2) return;
    try {
      compared = await view.source.compare();
      compared.diff = compared.diff && tables.unpack(compared.diff);
      stepNames = new Set(view.meta().ranks.flatMap(r => r.steps.map(s => s[1])));
      byName = new Map(compared.names.map(v => [v[0], v]));
      drawBar();
      view.repaint();
      view.changed();
    } catch (error) { view.say(`differences: ${error.message}`); }
  }
  function changesList() {
    if (!compared) return [];
    const d = compared.diff, chips = Object.values(CHANGES).map(([, colour, text]) => make("span", {}, make("span", { class: "chip", style: `background:${colour}` }), text, " "));
    const list = d && d.look && d.look.rows.length ? tables.table(d.look, { rows: 15 }) : null;
    // an operator of the table is searched for in both runs
    if (list) list.addEventListener("click", e => { const cell = e.target.closest("td.name, td:first-child"), name = cell && cell.textContent.split(/[ …]/)[0]; if (name) view.find(name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")); });
    return [make("h2", {}, "What changed from the first run to the second"), make("p", {}, d ? `${d.verdict_text || ""}${d.mainly_text ? `; mainly ${d.mainly_text}` : ""}` : compared.why || ""),
      make("p", { class: "soft" }, "the colours of the timeline compare the time of a name in a step: ", ...chips), list,
      command(`reprise diff ${shell(0)} ${shell(1)}`)];
  }
  let loaded = false;
  async function load() {
    await compare();
    for (let run = 0; run < view.meta().runs.length; run++) {
      told.push({});
      for (const kind of Object.keys(KINDS))
        try {
          told[run][kind] = await view.source.explain(run, kind);
          index[kind](run, told[run][kind]);
          view.changed();
        } catch (error) { told[run][kind] = null; view.say(`${KINDS[kind]}: ${error.message}`); }
    }
    loaded = true;
    view.changed();
  }

  // ---------------------------------------------------------------- lanes

  // Two runs: each rank of one above the same rank of the other. Many ranks: by host, the host and the rank that delay the others most first. Few stay in the order of their numbers.
  function rankOrder() {
    if (order) return order;
    const all = view.meta().ranks.map((r, i) => i), delay = r => (ranks.has(r) && ranks.get(r).comm ? ranks.get(r).comm.margin_ns || 0 : 0);
    const host = r => (ranks.has(r) && ranks.get(r).comm && ranks.get(r).comm.host) || "";
    const worst = new Map(), both = view.meta().runs.length > 1;
    for (const r of all) worst.set(host(r), Math.max(worst.get(host(r)) || 0, delay(r)));
    order = both ? all.sort((a, b) => view.meta().ranks[a].number - view.meta().ranks[b].number || a - b) : all.length <= 8 ? all : all.sort((a, b) => worst.get(host(b)) - worst.get(host(a)) ||
      (host(a) < host(b) ? -1 : host(a) > host(b) ? 1 : delay(b) - delay(a) || a - b));
    order.hosts = worst.size > 1 && all.length > 8 && !both ? host : null;
    return order;
  }
  function rankNote(r) {
    const c = ranks.has(r) && ranks.get(r).comm;
    return c && c.margin_ns > 0 ? `: last ${c.last_count}×, ${show(c.margin_ns, "ns")}` : "";
  }
  function above(r) {
    const known = ranks.get(r), out = [];
    const marks = known ? known.marks.slice().sort((a, b) => a.begin - b.begin) : [], chances = marks.filter(m => m.finding.changes.length);
    // What is asked for has its place from the beginning: a lane that came later would move what somebody is about to click.
    const kept = view.meta().ranks[r].tracks.some(t => t[0] === "stream" && t[4]);
    const empty = text => (loaded ? `${text}: none` : text);
    if ((marks.length || kept) && shown("findings")) out.push({ layer: "findings", label: marks.length ? "findings" : empty("findings"), h: 16, items: marks });
    if ((chances.length || kept) && shown("chances")) out.push({ layer: "chances", label: chances.length ? "opportunities" : empty("opportunities"), h: 16, items: chances });
    if (kept && !(known && known.devices.size) && shown("idle")) out.push({ layer: "idle", label: empty("idle causes"), h: 16, items: [] });
    if (known && shown("idle")) for (const [device, items] of known.devices) out.push({ layer: "idle", label: known.devices.size > 1 ? `idle, GPU ${device}` : "idle causes", h: 16, items });
    if (known && shown("memory")) for (const d of known.memory) out.push({ layer: "memory", label: `memory, ${d.device}`, h: 48, items: [d] });
    return out;
  }

  // ---------------------------------------------------------------- drawing

  function plotBoxes(lane, y, colour, text) {
    let covered = -1;
    for (let i = firstIn(lane.items); i < lane.items.length; i++) {
      const it = lane.items[i], x0 = Math.max(view.left(), Math.round(view.x(it.begin))), x1 = Math.min(view.right(), Math.round(view.x(it.begin + it.dur))), w = Math.max(2, x1 - x0);
      if (it.begin > state.to) break;
      if (x1 < view.left()) continue;
      if (x1 <= covered || (w <= 2 && x0 < covered)) { // many in one pixel: on with the last that begins there
        i = Math.max(i, itemAt(lane.items, view.time(covered)) - 2);
        continue;
      }
      covered = x0 + w;
      const chosen = Boolean(state.told) && (state.told === it || state.told === it.finding);
      view.box(x0, x0 + w, y + 2, y + lane.h - 3, colour(it));
      if (w > 30 || chosen) lane.labels.push({ text: w > 30 ? text(it) : "", x: x0, y: y + 2, w, h: lane.h - 5, chosen });
    }
  }
  // Of items by begin the first that may reach into sight: they can overlap, so some before it are looked at too.
  const firstIn = items => Math.max(0, itemAt(items, state.from) - 64);
  // The first that begins at a time or later.
  function itemAt(items, time) {
    let low = 0, high = items.length;
    while (low < high) { const m = (low + high) >> 1; if (items[m].begin < time) low = m + 1; else high = m; }
    return low;
  }
  function plotMemory(lane, y) {
    const d = lane.items[0], n = 2 + d.categories.length, most = Math.max(1, d.peak_bytes || 0, ...d.points.filter((v, i) => i % n === 1)), h = lane.h - 6;
    for (let k = 0; k < d.points.length; k += n) {
      const x0 = Math.max(view.left(), view.x(d.points[k])), x1 = Math.min(view.right(), k + n < d.points.length ? view.x(d.points[k + n]) : view.x(view.meta().end_ns));
      let at = y + lane.h - 2;
      if (x1 <= view.left() || x0 >= view.right()) continue;
      for (let c = 0; c < d.categories.length; c++) {
        const high = d.points[k + 2 + c] / most * h;
        view.box(x0, x1, at - high, at, INKS[c % INKS.length]);
        at -= high;
      }
    }
    lane.labels.push({ text: `at most ${show(d.peak_bytes, "bytes")}`, x: view.left(), y, w: view.right() - view.left(), h: 18, colour: view.style().fg });
  }
  function plot(lane, y) {
    if (lane.layer === "findings") plotBoxes(lane, y, m => m.finding.colour, m => `${m.finding.number}. ${m.finding.id}`);
    else if (lane.layer === "chances") plotBoxes(lane, y, () => CHANCE, m => `${m.finding.changes[0].what_if}: −${show(m.finding.changes[0].gain_ns, "ns")} a step`);
    else if (lane.layer === "idle") plotBoxes(lane, y, g => g.answer.colours[g.cause], g => `${g.answer.causes[g.cause]} ${show(g.dur, "ns")}`);
    else plotMemory(lane, y);
  }
  // The mark of the peak.
  function draw(lane, y) {
    const peak = lane.layer === "memory" ? view.x(lane.items[0].peak_ns) : -1;
    if (peak < view.left() || peak >= view.right()) return;
    paint.fillStyle = view.style().fg;
    paint.beginPath(); paint.moveTo(peak, y + 9); paint.lineTo(peak - 4, y + 2); paint.lineTo(peak + 4, y + 2); paint.fill();
  }

  // Lines right of the names of the lanes.
  const across = (x0, x1, y, thick, colour) => { const left = Math.max(view.left(), Math.round(x0)), top = Math.round(y - thick / 2); if (x1 > left) view.box(left, x1, top, top + thick, colour); };
  const along = (x0, y0, y1, thick, colour) => across(x0 - thick / 2, x0 + thick / 2, (y0 + y1) / 2, Math.abs(y1 - y0) + thick, colour);

  // The path: along the track that it is on, and across to the next.
  function plotPath(lists) {
    const colour = view.style().hit;
    for (const list of lists) {
      let px = null, py = null, was = null;
      for (let i = Math.max(0, firstIn(list) - 1); i < list.length && list[i].begin <= state.to; i++) {
        const s = list[i], x0 = view.x(s.begin), x1 = view.x(s.begin + s.dur);
        if (px !== null && x1 - px < 0.8) continue; // shorter than a pixel
        const y = s.track < 0 && was !== null ? was : view.trackY(s.rank, s.track);
        if (x1 < view.left()) { was = y; continue; }
        if (px !== null && y !== py) across(px, x0, py, 2, colour), along(x0, py, y, 2, colour);
        across(px === null || y !== py ? x0 : px, x1, y, 2, colour);
        px = x1; py = was = y;
      }
    }
  }
  // A rendezvous: a line through all that met, at the time at which the last one came; before it those who waited.
  let late = null;
  function plotTies(ties) {
    const ys = view.rankYs(), taken = new Set(), marked = new Set(), bottom = view.bottom(), colour = view.style().soft;
    let left = TICKS_DRAWN;
    for (const tie of ties) {
      if (tie.begin + tie.dur < state.from || tie.first > state.to) continue;
      const at = view.x(tie.begin), column = Math.round(at / 3), chosen = state.told === tie, thick = chosen ? 3 : 1;
      if (taken.has(column) && !chosen) continue; // a longer delay is there
      taken.add(column);
      if (taken.size > TIES_DRAWN && !chosen) break;
      let low = Infinity, high = -Infinity;
      for (let k = 0; k < tie.at.length; k += 3) {
        const y = ys[tie.at[k]];
        low = Math.min(low, y); high = Math.max(high, y);
        if (y < -8 || y > bottom + 8) continue;
        const x0 = view.x(tie.at[k + 1]);
        if (at - x0 > 1) across(x0, at, y, thick, colour);
        if (left-- > 0) across(x0 - 1, x0 + 2, y, 8, colour);
      }
      along(at, low, high, thick, colour);
      const y = ys[tie.rank], place = `${tie.rank} ${Math.round(at / 8)}`;
      if (y > -8 && y < bottom + 8 && !marked.has(place)) { marked.add(place); late.moveTo(at + 1, y); late.lineTo(at - 7, y - 6); late.lineTo(at - 7, y + 6); late.closePath(); }
    }
  }
  function plotOver() {
    late = new Path2D();
    told.forEach((answers, run) => view.within(-1 - run, () => {
      if (answers.comm && shown("comm")) plotTies(answers.comm.ties);
      if (answers.path && shown("path")) plotPath(answers.path.lists);
    }));
  }
  // The triangles of those who came last.
  function drawOver() {
    paint.fillStyle = view.style().hit;
    paint.fill(late);
  }

  // ---------------------------------------------------------------- what a click shows

  const shell = run => view.meta().runs[run].shell;
  const rankOf = r => view.meta().ranks[r];
  const one = r => (view.meta().ranks.filter(o => o.run === rankOf(r).run).length > 1 ? ` --rank ${rankOf(r).number}` : "");
  const command = text => (view.saved ? null : make("p", {}, make("code", {}, text), " ", view.button("copy as command", () => view.copy(text))));
  const items = texts => make("ul", {}, ...texts.map(t => make("li", {}, t)));
  function open(it, ...children) {
    state.told = it;
    state.event = state.range = state.frame = null;
    view.panel(...children.filter(Boolean));
    view.redraw();
  }
  function go(it) {
    const room = Math.max(50, it.dur) * 0.6, begin = it.begin + view.shiftOf(it.rank);
    view.look(begin - room, begin + it.dur + room);
    view.scrollToRank(it.rank);
  }
  const gain = o => `${o.what_if}: ${show(o.step_ns + o.gain_ns, "ns")} → ${show(o.step_ns, "ns")} a step${o.apply ? `; ${o.apply}` : ""}`;
  function openFinding(f, place = -1) {
    const changes = f.changes, n = f.places.length;
    const step = by => { const next = (place + by + n) % n; go(f.places[next]); openFinding(f, next); };
    open(f, make("h2", {}, `${f.number}. ${f.id}: ${f.at_most ? "up to " : ""}${show(f.lost_ns, "ns")} (${show(f.share, "ratio")})`),
      make("p", {}, f.title),
      n ? make("p", {}, `${place < 0 ? "" : `place ${place + 1} of `}${f.mark_count.toLocaleString("en")} place${f.mark_count === 1 ? "" : "s"}${f.mark_count > n ? `, the ${n} longest are marked` : ""} `,
        view.button("the longest", () => { go(f.places[0]); openFinding(f, 0); }), " ", n > 1 ? view.button("next", () => step(1)) : null, " ", n > 1 ? view.button("before", () => step(-1)) : null)
        : make("p", { class: "soft" }, "it has no place of its own in the part that is shown"),
      f.evidence.length ? items(f.evidence) : null,
      f.tries.length ? make("div", {}, make("span", { class: "soft" }, "what to try"), items(f.tries)) : null,
      changes.length ? make("div", {}, make("span", { class: "soft" }, "predicted"), items(changes.map(gain))) : null,
      command(`reprise report ${shell(f.run)}`));
    view.say(`${f.id}: ${f.title}`);
  }
  function openGap(g) {
    open(g, make("h2", {}, `${show(g.dur, "ns")} idle: ${g.answer.causes[g.cause] || "unknown"}`), make("p", {}, g.answer.meanings[g.cause] || "",
      g.part < g.dur ? `, for ${show(g.part, "ns")} of it` : ""),
    items([g.host ? `meanwhile the host ran ${g.host}` : null, g.after ? `the gap ends with ${g.after}` : null].filter(Boolean)),
    command(`reprise idle${one(g.rank)} ${shell(rankOf(g.rank).run)}`));
    view.say(`idle for ${show(g.dur, "ns")}: ${g.answer.causes[g.cause]}`);
  }
  function openTie(t) {
    const waits = [];
    for (let k = 0; k < t.at.length; k += 3) waits.push([t.at[k], Math.max(0, t.begin - t.at[k + 1])]);
    waits.sort((a, b) => b[1] - a[1]);
    open(t, make("h2", {}, `${t.name}${t.size_bytes ? `, ${show(t.size_bytes, "bytes")}` : ""}: rank ${rankOf(t.rank).number} came last, ${show(t.margin_ns, "ns")} after the others`),
      t.cause ? make("p", {}, `why: ${t.cause}${t.evidence ? `, ${t.evidence}` : ""}`) : null,
      make("p", {}, `transfer ${show(t.transfer_ns, "ns")}; the ranks waited ${show(t.wait_ns, "ns")} together `, view.button("show", () => go({ ...t, begin: t.first, dur: t.begin + t.dur - t.first }))),
      items(waits.slice(0, 8).map(([r, ns]) => `rank ${rankOf(r).number} was there ${show(ns, "ns")} before the last`)),
      command(`reprise comm ${shell(t.run)}`));
    view.say(`rank ${rankOf(t.rank).number} came last, ${show(t.margin_ns, "ns")} after the others`);
  }
  function openMemory(d) {
    open(d, make("h2", {}, `memory of ${d.device}, rank ${rankOf(d.rank).number}: at most ${show(d.peak_bytes, "bytes")}`),
      make("p", {}, "the peak ", view.button("show", () => go({ rank: d.rank, begin: d.peak_ns - 1e6, dur: 2e6 }))),
      items(d.holders.map(h => `${show(h.bytes, "bytes")} ${h.category}${h.where ? `: ${h.where}` : ""}`)),
      command(`reprise memory${one(d.rank)} ${shell(rankOf(d.rank).run)}`));
  }
  function openList() {
    const rows = told.flatMap((t, run) => (t.findings ? t.findings.findings : []).map(f => make("tr", {},
      make("td", {}, make("span", { class: "chip", style: `background:${f.colour}` }), view.button(`${f.number}. ${f.id}`, () => { if (f.places.length) go(f.places[0]); openFinding(f, f.places.length ? 0 : -1); }, "plain")),
      make("td", { class: "n" }, show(f.lost_ns, "ns")), make("td", { class: "n" }, show(f.share, "ratio")), make("td", {}, f.title))));
    const changes = told.flatMap(t => (t.findings ? t.findings.opportunities : []).map(gain));
    open(null, ...changesList(), make("h2", {}, "What to look at"), rows.length ? make("table", {}, make("thead", {}, make("tr", {}, ...["finding", "lost", "share", "what"].map((t, i) => make("th", { scope: "col", class: i === 1 || i === 2 ? "n" : null }, t)))), make("tbody", {}, ...rows))
      : make("p", { class: "soft" }, told.length && told[0].findings === undefined ? "still being computed" : "nothing found"),
    changes.length ? make("div", {}, make("span", { class: "soft" }, "changes that are predicted to help"), items(changes)) : null,
    told.some(t => t.findings && !t.findings.predicted) ? make("p", { class: "soft" }, "What changes would bring is not predicted here, because the run is large; the report predicts it:") : null, command(`reprise report ${shell(0)}`));
  }
  // What is at a place of a lane of ours, or a rendezvous on the heading of a rank. Opens it.
  function click(lane, t) {
    const near = (state.to - state.from) / (view.right() - view.left()) * 4;
    if (lane.heading && shown("comm")) {
      for (const answers of told)
        for (const tie of answers.comm ? answers.comm.ties : [])
          for (let k = 0; k < tie.at.length; k += 3)
            if (tie.at[k] === lane.rank && t >= tie.at[k + 1] - near && t <= tie.begin + near) { openTie(tie); return true; }
      return false;
    }
    if (!lane.layer) return false;
    if (lane.layer === "memory") { openMemory(lane.items[0]); return true; }
    let best = null, far = Infinity;
    for (const it of lane.items) {
      const miss = t < it.begin ? it.begin - t : t > it.begin + it.dur ? t - it.begin - it.dur : 0;
      if (miss <= near && (miss < far || (miss === far && it.dur < best.dur))) { far = miss; best = it; }
    }
    if (best && best.finding) openFinding(best.finding, best.finding.places.indexOf(best));
    else if (best) openGap(best);
    return Boolean(best);
  }
  function phases(rank) {
    const out = new Map();
    for (const answers of told) for (const [r, step, phase] of answers.findings ? answers.findings.phases : []) if (r === rank) out.set(step, phase);
    return out;
  }

  // ---------------------------------------------------------------- switches, and the address

  const bar = make("div", { id: "layers", role: "group", "aria-label": "layers" });
  function drawBar() {
    const kinds = compared ? { changes: "differences", ...LAYERS } : LAYERS;
    bar.replaceChildren(...Object.entries(kinds).map(([kind, title]) => make("button", { type: "button", "aria-pressed": String(shown(kind)), onclick: () => {
      if (!off.delete(kind)) off.add(kind);
      drawBar();
      bar.children[Object.keys(kinds).indexOf(kind)].focus();
      view.repaint();
      view.changed();
    } }, title)));
  }
  drawBar();
  // What is selected, as names and numbers for the address: a finding, a gap, a rendezvous or a memory.
  function placeOf(it) {
    if (it.id) return ["finding", it.run, it.number];
    if (it.at) return ["tie", it.run, told[it.run].comm.ties.indexOf(it)];
    return it.points ? ["memory", it.rank, of(it.rank).memory.indexOf(it)] : ["gap", it.rank, it.begin];
  }
  function write(p) {
    if (off.size) p.set("off", [...off].join(","));
    if (state.told) { const [kind, a, b] = placeOf(state.told); p.set(kind, `${a}.${b}`); }
  }
  function read(p) {
    off.clear();
    (p.get("off") || "").split(",").filter(k => LAYERS[k] || k === "changes").forEach(k => off.add(k));
    drawBar();
    reopen(p);
  }
  // Opens what an address selects, once the answers are there.
  function reopen(p) {
    const find = (kind, list, open) => { const [a, b] = (p.get(kind) || "").split(".").map(Number), it = p.has(kind) && list(a, b); if (it) open(it); };
    const answer = (run, kind) => told[run] && told[run][kind], rank = r => ranks.get(r) || { devices: new Map(), memory: [] };
    find("finding", (run, n) => answer(run, "findings") && told[run].findings.findings[n - 1], f => openFinding(f));
    find("tie", (run, n) => answer(run, "comm") && told[run].comm.ties[n], openTie);
    find("memory", (r, n) => rank(r).memory[n], openMemory);
    find("gap", (r, begin) => [...rank(r).devices.values()].flat().find(g => g.begin === begin), openGap);
  }
  return { load, changeColour, changeOf, compared: () => compared, above, plot, plotOver, draw, drawOver, click, rankOrder, rankNote, phases, openList, bar, write, read, reopen, told, ranks };
};
