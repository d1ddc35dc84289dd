// SPDX-License-Identifier: Apache-2.0
// Lays out the data of a report (src/explain/report/page.c). Texts become text nodes, never markup. Numbers are shown as
// the command line shows them; nothing is computed here but what is visible of the timeline.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const hint = document.getElementById("hint");

  const { unpack, table } = tables;
  const answer = unpack(data.answer);

  const { SCALES, fixed, show, make } = common;

  function section(title, doc, ...children) {
    const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
    main.append(make("section", { "aria-labelledby": id }, make("h2", { id, title: doc }, title), ...children));
  }
  const list = texts => make("ul", { class: "plain" }, ...texts.map(t => make("li", {}, t)));
  const colour = c => `var(--c${c})`;

  // ---------------------------------------------------------------- headline, warnings, parts

  function headline() {
    const fields = answer[""];
    document.getElementById("run").textContent = answer.run_text || "";
    const details = () => make("details", {}, make("summary", {}, "in detail"), list(data.remarks));
    const trust = (lines, title, kind, more) => lines.length && main.append(make("div", { class: kind, role: "note" },
      make("b", {}, title), list(lines), more ? details() : null));
    trust(data.incomplete, "This report is incomplete", "warn", true);
    trust(data.worth_knowing, "Worth knowing", "know", !data.incomplete.length);
    if (answer.lost_text) main.append(make("p", { class: "lead", id: "headline" }, answer.lost_text));
    const facts = make("dl", { class: "facts" });
    for (const f of fields)
      if (f[2] === "text" && typeof answer[f[0]] === "string" && f[1] && f[0] !== "run_text" && f[0] !== "lost_text")
        facts.append(make("dt", {}, f[1]), make("dd", {}, answer[f[0]]));
    main.append(facts);
  }

  // The same colours for the same things everywhere: busy parts have those of the timeline, causes the others.
  const STATE_COLOURS = [7, 0, 3, 1, 8, 2]; // in the order of data.states
  const CAUSE_COLOURS = ["var(--c6)", "var(--c5)", "var(--c4)", "#8b5cf6", "#a16207", "#64748b", "#be185d", "#0f766e", "#94a3b8"];
  // Black or white on a colour of the page, whichever is easier to read there; the colours of the dark style are lighter.
  function inkLabels() {
    for (const e of document.querySelectorAll(".bar span")) {
      const light = getComputedStyle(e).backgroundColor.match(/[\d.]+/g).slice(0, 3).map(v => v / 255)
        .map(v => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((a, v, i) => a + v * [0.2126, 0.7152, 0.0722][i], 0);
      e.classList.toggle("dark", light > 0.18);
    }
  }
  const causeColour = new Map(), causeOf = part => part.replace(/^(idle|no operator|no range): /, "");
  function partColour(part) {
    if (part === data.busy) return colour(0);
    if (part.startsWith("exposed")) return colour(1);
    if (part.startsWith("waiting for")) return colour(8);
    if (part.startsWith("copies")) return colour(2);
    const cause = causeOf(part);
    if (!causeColour.has(cause)) causeColour.set(cause, CAUSE_COLOURS[causeColour.size] || `hsl(${causeColour.size * 47 % 360} 45% 55%)`);
    return causeColour.get(cause);
  }

  function parts() {
    if (!answer.parts || !answer.parts.rows.length) return;
    const rows = answer.parts.rows;
    const fits = r => r.share * 1150 > (r.part.length + 8) * 6.6;
    const bar = make("div", { class: "bar", role: "img",
      "aria-label": rows.map(r => `${r.part} ${show(r.share, "ratio")}`).join(", ") },
    ...rows.map(r => make("span", {
      style: `flex:${r.share} 0 0;background:${partColour(r.part)}`,
      class: fits(r) ? null : "narrow", title: `${r.part}: ${show(r.mean_ns, "ns")}, ${show(r.share, "ratio")}; ${r.note || ""}`,
    }, !fits(r) ? "" : `${r.part} ${show(r.share, "ratio")}`)));
    const field = answer[""].find(f => f[0] === "parts");
    section("Where the time goes", field[3], bar, table(answer.parts, { chip: r => partColour(r.part) }),
      make("p", { class: "soft" }, data.on_host ? "The parts add up to the span." : "The parts add up to the span: compute is what was needed, all other parts are lost."));
  }

  // ---------------------------------------------------------------- findings

  function gain(t) {
    if (typeof t.change_ratio !== "number") return t.what_if ? make("small", {}, ` (reprise simulate --what-if ${t.what_if})`) : null;
    const title = `predicted by 'reprise simulate --what-if ${t.what_if}', for a step without the profiler`;
    if (!(t.change_ratio <= -0.0005)) return make("span", { class: "gain", title }, `simulated: ${t.what_if} alone brings nothing`);
    return make("span", { class: "gain", title }, `simulated: ${show(t.step_ns, "ns")} → ${show(t.predicted_ns, "ns")} a step, `,
      make("b", {}, show(t.change_ratio, "ratio")));
  }
  function findings() {
    const rows = answer.findings ? answer.findings.rows : [];
    if (!rows.length) return;
    section("What to look at", "findings, most costly first", make("div", { class: "cards" }, ...rows.map((f, i) =>
      make("article", { class: "card", "aria-label": f.id },
        make("header", {}, make("h3", {}, `${i + 1}. ${f.id}`),
          make("span", { class: "cost", title: "by how much the recording would be shorter without it" },
            `${f.at_most ? "up to " : ""}${show(f.lost_ns, "ns")} (${show(f.share, "ratio")})`)),
        make("div", { class: "share", "aria-hidden": "true" }, make("i", { style: `width:${Math.min(Math.max(f.share, 0), 1) * 100}%` })),
        make("p", {}, f.title),
        f.evidence.length ? make("h4", {}, "evidence") : null,
        f.evidence.length ? make("ul", {}, ...f.evidence.map(t => make("li", {}, t))) : null,
        f.tries.rows.length ? make("h4", {}, "what to try") : null,
        f.tries.rows.length ? make("ul", {}, ...f.tries.rows.map(t => make("li", {}, t.text, " ", gain(t)))) : null))));
  }

  // ---------------------------------------------------------------- the timeline

  function bytesOf(text) {
    const raw = atob(text), out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out;
  }
  // A lane: where its pieces begin (one more than there are), their time by state, state and cause.
  function readLane(row) {
    const [name, rank, at, isMain, text] = row;
    const bytes = bytesOf(text), n = data.states.length;
    const begin = [], state = [], cause = [], ns = [];
    let i = 0, t = at;
    const number = () => {
      let v = 0, scale = 1, b;
      do { b = bytes[i++]; v += (b & 127) * scale; scale *= 128; } while (b > 127);
      return v;
    };
    while (i < bytes.length) {
      const head = number(), s = head % 8;
      begin.push(t); state.push(s); cause.push(Math.floor(head / 8));
      for (let k = 0; k < n; k++) {
        const v = s === n || s === k ? number() : 0;
        ns.push(v);
        t += v;
      }
    }
    begin.push(t);
    return { name, rank, at, end: t, isMain, begin: Float64Array.from(begin), state: Uint8Array.from(state),
      cause: Uint8Array.from(cause), ns: Float64Array.from(ns), pieces: state.length };
  }
  // The first piece of a lane that ends after a time.
  function pieceAt(lane, t) {
    let low = 0, high = lane.pieces;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (lane.begin[mid + 1] <= t) low = mid + 1; else high = mid;
    }
    return low;
  }
  // Adds the time of each state in [from, to) to sums, exactly; time within a mixed piece counts in proportion. Begins at piece p,
  // and returns the one in which it ended. causes gets the idle time by cause.
  function addShares(lane, from, to, sums, causes, p = pieceAt(lane, from)) {
    const n = data.states.length;
    for (; p < lane.pieces && lane.begin[p] < to; p++) {
      const a = lane.begin[p], b = lane.begin[p + 1];
      const part = (Math.min(b, to) - Math.max(a, from)) / (b - a);
      if (part > 0) {
        for (let k = 0; k < n; k++) sums[k] += lane.ns[p * n + k] * part;
        if (causes && data.causes[lane.cause[p]]) causes[lane.cause[p]] += lane.ns[p * n] * part;
      }
      if (b >= to) break;
    }
    return p;
  }

  function timeline() {
    if (!data.lanes.length || !(data.span_ns > 0)) return;
    const lanes = data.lanes.map(readLane), n = data.states.length;
    // The steps of the first rank are known, of the others where they begin; they have the same names if there are as many.
    const steps = answer.steps ? answer.steps.rows : [];
    const stepsOf = new Map(data.marks.map(([rank, at]) => {
      const lane = lanes.find(l => l.rank === rank);
      return [rank, at.map((t, i) => ({ at: t, dur_ns: (i + 1 < at.length ? at[i + 1] : Math.max(lane ? lane.end : t, t)) - t,
        name: steps[i] && (rank === steps[0].rank || at.length === steps.length) ? steps[i].name || "step " + steps[i].number : "" }))];
    }));
    const view = { from: 0, to: data.span_ns };
    const canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": "timeline of all ranks; arrow keys move, plus and minus zoom, 0 shows all, n and p go to the next and previous step",
      "aria-describedby": "shown" });
    const status = make("p", { id: "shown", class: "soft", role: "status" });
    const busyFirst = data.states.map((_, k) => (k + 1) % n); // idle last
    const LEFT = 92, TOP = 34, GAP = 6, STRIP = 4;
    const laneHeight = lanes.length > 64 ? 10 : lanes.length > 16 ? 16 : lanes.length > 4 ? 24 : 44;
    const pitch = laneHeight + STRIP + GAP, whole = TOP + lanes.length * pitch + 4, height = Math.min(whole, 620);
    const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    let width = 0;
    // The canvas stays where it is; the lanes of its place in a long list are drawn.
    const scroller = make("div", { class: "timeline", style: `height:${height + 2}px` },
      make("div", { style: `height:${whole}px` }, canvas));
    const top = i => TOP + i * pitch - scroller.scrollTop;
    const visible = i => top(i) + pitch > TOP - 14 && top(i) < height;

    const x = t => LEFT + (t - view.from) / (view.to - view.from) * (width - LEFT - 8);
    const time = px => view.from + (px - LEFT) / (width - LEFT - 8) * (view.to - view.from);

    function ticks(ctx, fg, line) {
      const raw = (view.to - view.from) / Math.max((width - LEFT) / 110, 2);
      const power = 10 ** Math.floor(Math.log10(raw));
      const step = Math.max([1, 2, 5, 10].map(k => k * power).find(k => k >= raw), 1);
      const unit = Math.min(Math.floor(Math.log10(Math.max(step, 1)) / 3 + 1e-9), 3);
      const scale = 1000 ** unit;
      const digits = Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9));
      ctx.textAlign = "center";
      for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
        ctx.fillStyle = line;
        ctx.fillRect(x(t), 14, 1, height - 14);
        ctx.fillStyle = fg;
        ctx.fillText(t === 0 ? "0" : fixed(t / scale, digits) + " " + SCALES.ns[unit], Math.min(Math.max(x(t), LEFT + 4), width - 24), 11);
      }
    }
    function drawSteps(ctx, fg) {
      ctx.textAlign = "left";
      lanes.forEach((lane, i) => {
        if (i && !visible(i)) return;
        const own = stepsOf.get(lane.rank) || [];
        const inView = own.filter(s => s.at <= view.to && s.at + s.dur_ns >= view.from);
        if (inView.length > (width - LEFT) / 6) return;
        let free = -1e9;
        for (const s of inView) {
          const at = x(s.at), y = top(i);
          ctx.fillStyle = fg;
          if (at >= LEFT && visible(i)) ctx.fillRect(at, Math.max(y - 2, TOP - 2), 1, laneHeight + STRIP + 2);
          if (i) continue;
          if (at >= LEFT) ctx.fillRect(at, TOP - 12, 1, 12);
          const label = s.name, left = Math.max(at, LEFT) + 3;
          const room = x(s.at + s.dur_ns) - left - 4;
          if (left < free || room < 24) continue;
          ctx.fillStyle = fg;
          // the whole name, or its number, or its beginning
          const fits = text => text && ctx.measureText(text).width <= room;
          let text = [label, (label.match(/[#\[ ]?\d+\]?$/) || [""])[0].trim()].find(fits) || "";
          for (let n = label.length - 1; !text && n > 2; n--) text = fits(label.slice(0, n) + "…") ? label.slice(0, n) + "…" : "";
          if (text) { ctx.fillText(text, left, TOP - 4); free = left + ctx.measureText(text).width; }
        }
      });
    }
    function drawLane(ctx, lane, y, colours, background) {
      const ratio = window.devicePixelRatio || 1;
      const first = Math.max(LEFT, x(lane.at)), last = Math.min(width - 8, x(lane.end));
      ctx.fillStyle = background;
      if (last > first) ctx.fillRect(first, y, last - first, laneHeight);
      const sums = new Float64Array(n), causes = new Float64Array(data.causes.length), column = 1 / ratio;
      const total = time(column) - time(0);
      let px = Math.floor(first / column) * column, p = pieceAt(lane, Math.max(time(px), lane.at));
      for (; px < last; px += column) {
        const a = Math.max(time(px), lane.at), b = Math.min(time(px + column), lane.end);
        if (!(b > a)) continue;
        sums.fill(0);
        causes.fill(0);
        p = addShares(lane, a, b, sums, causes, p);
        let bottom = y + laneHeight, main = 0;
        for (let k = 1; k < n; k++) {
          if (!sums[k]) continue;
          const h = laneHeight * sums[k] / total;
          ctx.fillStyle = colours[k];
          ctx.fillRect(px, bottom - h, column, h);
          bottom -= h;
        }
        for (let c = 1; c < causes.length; c++) if (causes[c] > causes[main]) main = c;
        const strip = causes[main] > 0 && causeColour.get(causeOf(data.causes[main]));
        if (strip) {
          ctx.fillStyle = resolve(strip);
          ctx.globalAlpha = Math.min(1, 0.25 + 0.75 * causes[main] / total);
          ctx.fillRect(px, y + laneHeight + 1, column, STRIP);
          ctx.globalAlpha = 1;
        }
      }
    }
    const resolved = new Map();
    const resolve = c => {
      if (!resolved.has(c)) resolved.set(c, c.startsWith("var(") ? css(c.slice(4, -1)) : c);
      return resolved.get(c);
    };
    function draw() {
      const ratio = window.devicePixelRatio || 1;
      width = scroller.clientWidth;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.height = height + "px";
      resolved.clear();
      const ctx = canvas.getContext("2d");
      ctx.scale(ratio, ratio);
      ctx.font = "11px system-ui, sans-serif";
      const fg = css("--fg"), soft = css("--soft"), line = css("--line"), back = css("--lane");
      const colours = STATE_COLOURS.map(c => css("--c" + c));
      ticks(ctx, soft, line);
      ctx.save();
      ctx.beginPath();
      ctx.rect(0, TOP - 2, width, height);
      ctx.clip();
      lanes.forEach((lane, i) => {
        const y = top(i);
        if (!visible(i)) return;
        ctx.fillStyle = fg;
        ctx.textAlign = "right";
        if (laneHeight > 11 || i % 2 === 0) ctx.fillText(lane.name, LEFT - 8, y + laneHeight / 2 + 4, LEFT - 12);
        drawLane(ctx, lane, y, colours, back);
      });
      ctx.restore();
      drawSteps(ctx, fg);
      const sums = new Float64Array(n);
      for (const lane of lanes) addShares(lane, view.from, view.to, sums);
      const all = sums.reduce((a, b) => a + b, 0);
      status.textContent = `shown: ${show(Math.round(view.to - view.from), "ns")} of ${show(data.span_ns, "ns")}` +
        (all > 0 ? "; of the time of " + (lanes.length > 1 ? `${lanes.length} lanes ` : "the lane ") +
          busyFirst.filter(k => sums[k] > 0).map(k => `${show(sums[k] / all, "ratio")} ${stateName(k)}`).join(", ") : "");
    }
    let waiting = false;
    const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); } };
    function set(from, to) {
      const least = 20;
      const size = Math.min(Math.max(to - from, least), data.span_ns);
      from = Math.min(Math.max(from, 0), data.span_ns - size);
      view.from = from;
      view.to = from + size;
      redraw();
    }
    const zoom = (factor, at) => {
      const t = at === undefined ? (view.from + view.to) / 2 : at;
      set(t - (t - view.from) * factor, t + (view.to - t) * factor);
    };
    const move = share => { const d = (view.to - view.from) * share; set(view.from + d, view.to + d); };
    const all = () => set(0, data.span_ns);
    function goStep(forward) {
      const own = stepsOf.get(lanes[0].rank) || [];
      const fits = s => Math.abs(s.at - view.from) < 1 && Math.abs(s.dur_ns - (view.to - view.from)) < 1;
      const now = own.findIndex(fits), next = now < 0 ? (forward ? 0 : own.length - 1) : now + (forward ? 1 : -1);
      if (own[next]) set(own[next].at, own[next].at + own[next].dur_ns);
    }
    function tell(e) {
      const box = canvas.getBoundingClientRect(), i = Math.floor((e.clientY - box.top - TOP + scroller.scrollTop) / pitch);
      const lane = e.clientY - box.top < TOP ? undefined : lanes[i], t = time(e.clientX - box.left);
      if (!lane || e.clientX - box.left < LEFT || t < lane.at || t >= lane.end) { hint.hidden = true; return; }
      const p = pieceAt(lane, t), own = (stepsOf.get(lane.rank) || []).find(s => t >= s.at && t < s.at + s.dur_ns);
      const length = lane.begin[p + 1] - lane.begin[p], s = lane.state[p];
      let text = `${lane.name}, ${show(Math.round(t), "ns")}${own && own.name ? ", " + own.name : ""}\n`;
      if (s < n) text += `${stateName(s)} for ${show(length, "ns")}`;
      else text += `${show(length, "ns")}: ` + data.states.map((_, k) => [lane.ns[p * n + k], k]).filter(v => v[0] > 0)
        .map(([v, k]) => `${show(v, "ns")} ${stateName(k)}`).join(", ");
      if (lane.ns[p * n] > 0 && data.causes[lane.cause[p]])
        text += `\n${s < n ? "" : "mainly "}${data.causes[lane.cause[p]]}: ${data.cause_docs[lane.cause[p]]}`;
      hint.textContent = text;
      hint.hidden = false;
      hint.style.left = Math.max(4, Math.min(e.clientX + 14, window.innerWidth - hint.offsetWidth - 8)) + "px";
      hint.style.top = (e.clientY + 18 + hint.offsetHeight > window.innerHeight ? e.clientY - hint.offsetHeight - 8 : e.clientY + 18) + "px";
    }
    let drag = null;
    canvas.addEventListener("pointerdown", e => {
      const box = canvas.getBoundingClientRect();
      drag = { x: e.clientX, from: view.from, to: view.to, select: e.shiftKey ? time(e.clientX - box.left) : null };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", e => {
      if (!drag) { tell(e); return; }
      hint.hidden = true;
      if (drag.select !== null) return;
      const d = (e.clientX - drag.x) / (width - LEFT - 8) * (drag.to - drag.from);
      set(drag.from - d, drag.to - d);
    });
    canvas.addEventListener("pointerup", e => {
      if (drag && drag.select !== null) {
        const t = time(e.clientX - canvas.getBoundingClientRect().left);
        if (Math.abs(e.clientX - drag.x) > 3) set(Math.min(t, drag.select), Math.max(t, drag.select));
      }
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => { hint.hidden = true; });
    canvas.addEventListener("dblclick", e => zoom(e.shiftKey ? 2 : 0.25, time(e.clientX - canvas.getBoundingClientRect().left)));
    canvas.addEventListener("wheel", e => {
      if (!e.ctrlKey && !e.metaKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return; // the page scrolls
      e.preventDefault();
      if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY * 0.004), time(e.clientX - canvas.getBoundingClientRect().left));
      else move(e.deltaX / (width - LEFT));
    }, { passive: false });
    const keys = { ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "+": () => zoom(0.5), "=": () => zoom(0.5),
      "-": () => zoom(2), "0": all, Home: all, n: () => goStep(true), p: () => goStep(false) };
    canvas.addEventListener("keydown", e => {
      if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      keys[e.key]();
    });
    const button = (text, title, f) => make("button", { type: "button", title, onclick: f }, text);
    const used = busyFirst.filter(k => k).filter(k => lanes.some(l => { for (let i = k; i < l.ns.length; i += n) if (l.ns[i]) return true; return false; }));
    const legend = make("div", { class: "legend" }, ...used.map(k => make("span", { title: data.state_docs[k] },
      make("span", { class: "chip", style: `background:${colour(STATE_COLOURS[k])}` }), stateName(k))),
    make("span", {}, `strip below a lane: why ${data.on_host ? "no operator runs" : "the device is idle"}, in the colours of “Where the time goes”`));
    const several = (stepsOf.get(lanes[0].rank) || []).length > 1;
    const notes = [];
    if (!data.aligned && lanes.length > 1) notes.push("The clocks of the ranks cannot be compared: each lane begins at 0.");
    if (data.left_out) notes.push(`${data.left_out} more lanes are not shown.`);
    section("Timeline", "what each device does, from the begin of the first step to the end of the last",
      make("div", { class: "tools" }, button("−", "zoom out (-)", () => zoom(2)), button("+", "zoom in (+)", () => zoom(0.5)),
        button("◀", "move left", () => move(-0.25)), button("▶", "move right", () => move(0.25)), button("all", "show all (0)", all),
        several ? button("previous step", "p", () => goStep(false)) : null,
        several ? button("next step", "n", () => goStep(true)) : null, legend),
      scroller, status,
      make("p", { class: "soft keys" }, "Drag to move, shift and drag to select, double-click or ctrl and wheel to zoom; with the keyboard ",
        make("kbd", {}, "+"), " ", make("kbd", {}, "−"), " ", make("kbd", {}, "←"), " ", make("kbd", {}, "→"), " ", make("kbd", {}, "0"),
        ". The height of a colour is the exact share of the time below that pixel."),
      ...notes.map(t => make("p", { class: "soft" }, t)));
    new ResizeObserver(redraw).observe(scroller);
    scroller.addEventListener("scroll", redraw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    draw();
    heat(lanes, stepsOf, (from, to) => { set(from, to); scroller.scrollIntoView({ block: "center", behavior: "smooth" }); });
    window.reprise = { ...window.reprise, view, set, lanes, shares: (i, from, to, causes) => { const s = new Float64Array(n); addShares(lanes[i], from, to, s, causes); return Array.from(s); } };
  }

  // A cell for each step of each rank, or of each host, whose ranks count as their mean; as warm as the step is long there, or as a part of
  // it is. What differs most is shown first.
  function heat(lanes, stepsOf, go) {
    const main = lanes.filter(l => l.isMain && (stepsOf.get(l.rank) || []).length), n = data.states.length;
    const most = Math.max(0, ...main.map(l => stepsOf.get(l.rank).length));
    if (main.length < 2 || !most) return;
    const cells = main.map(lane => stepsOf.get(lane.rank).map(step => {
      const parts = new Float64Array(n);
      addShares(lane, step.at, step.at + step.dur_ns, parts);
      return { lane, step, of: lane.name.replace(/,.*/, ""), from: step.at, to: step.at + step.dur_ns, values: [step.dur_ns, ...parts] };
    }));
    const names = ["step time", ...data.states.map((_, k) => stateName(k))];
    const longest = cells.find(r => r.length === most), middle = cells.flat().map(c => c.values[0]).sort((a, b) => a - b)[cells.flat().length >> 1];
    const words = c => `${c.of}, ${c.step.name || "a step"}: ${show(Math.round(c.values[0]), "ns")}, ` +
      names.map((_, k) => k).slice(1).filter(k => c.values[k] > 0).map(k => `${show(Math.round(c.values[k]), "ns")} ${names[k]}`).join(", ");
    const byRank = { what: "ranks", rows: cells.map(r => r[0].of), cells };
    const together = cells => ({ ...cells[0], from: Math.min(...cells.map(c => c.from)), to: Math.max(...cells.map(c => c.to)),
      values: names.map((_, k) => cells.reduce((a, c) => a + c.values[k], 0) / cells.length) });
    const ofHost = data.hosts.map(([host, ranks]) => [host, cells.filter(r => ranks.includes(r[0].lane.rank))]).filter(h => h[1].length);
    const byHost = { what: "hosts", rows: ofHost.map(h => h[0]),
      cells: ofHost.map(([of, rows]) => longest.map((_, k) => rows.map(r => r[k]).filter(c => c)).filter(c => c.length).map(c => ({ ...together(c), of }))) };
    const shown = grid({
      id: "heat-cell", title: "Steps by rank", doc: "how long each step is on each rank or host, and what the device does in it",
      tables: byHost.rows.length > 1 && byHost.rows.length < cells.length ? [byHost, byRank] : [byRank],
      columns: longest.map((c, k) => ((c.step.name || String(k)).match(/\d+(?!.*\d)/) || [c.step.name])[0]),
      kinds: names.map((name, k) => ({ name, unit: "ns", value: c => c.values[k], least: middle * 0.05 })), words,
      open: c => go(c.from, c.to), opens: "Enter shows a step in the timeline",
      foot: "What differs most is shown first. A click shows a step in the timeline." + (byHost.rows.length > 1 ? " A host's times are the mean of its ranks." : ""),
    });
    window.reprise = { ...window.reprise, heat: { cells, hosts: byHost, names, shown: () => names[shown()] } };
  }

  // A cell for each two hosts: how long the ranks of one wait for those of the other, and how fast what they send each other is.
  function pairs() {
    if (data.hosts.length < 2 || !data.pairs.length) return;
    const at = new Map(data.pairs.map(p => [p[0] + " " + p[1], p])), hosts = data.hosts.map(h => h[0]);
    const cells = hosts.map((from, i) => hosts.map((to, k) => {
      const [, , wait] = at.get(`${i} ${k}`) || [], [, , , count = 0, bytes = 0, ns = 0] = at.get(`${Math.min(i, k)} ${Math.max(i, k)}`) || [];
      return { from, to, wait: i === k ? undefined : wait || 0, count, bytes: bytes || undefined, speed: bytes && ns ? bytes / ns * 1e9 : undefined };
    }));
    const words = c => `${c.from} and ${c.to}: ` + [c.wait !== undefined && `a rank of ${c.from} waits ${show(c.wait, "ns")} for ${c.to}`,
      c.count && `${show(c.count, "count")} collectives between them`, c.bytes && show(c.bytes, "bytes"), c.speed && show(c.speed, "bps")].filter(t => t).join(", ");
    const kinds = [{ name: "waiting", unit: "ns", value: c => c.wait, least: 1 }, { name: "GB/s", unit: "bps", value: c => c.speed, low: true, least: 1 },
      { name: "bytes", unit: "bytes", value: c => c.bytes, least: 1 }];
    const shown = grid({
      id: "pair-cell", title: "Pairs of hosts", doc: "the row waits for the column; the hosts of a collective between two hosts",
      tables: [{ what: "hosts", rows: hosts, cells }], columns: hosts, kinds, words, square: true,
      foot: "Waiting, by the host that is waited for, is the mean of the ranks of the row. Bytes and GB/s (the warmest is the slowest) are those of collectives between two hosts alone, as in 'reprise comm'.",
    });
    window.reprise = { ...window.reprise, pairs: { cells, shown: () => kinds[shown()].name } };
  }

  // A map of cells that keys and the mouse go through. Cells in which a kind has no value stay empty; `low`: the lowest is the warmest.
  function grid({ id, title, doc, tables, columns, kinds, words, open, opens, foot, square }) {
    const TOP = 18;
    const canvas = make("canvas", { tabindex: "0", role: "img", style: open ? "cursor:pointer" : null, "aria-describedby": id });
    const told = make("p", { id, class: "soft", role: "status" }), scale = make("span", {});
    const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const rgb = text => [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16));
    const has = (c, k) => c && kinds[k].value(c) !== undefined;
    const valuesOf = (t, k) => t.cells.flat().filter(c => has(c, k)).map(kinds[k].value);
    const spread = k => columns.reduce((sum, _, i) => {
      const v = tables[0].cells.map(r => r[i]).filter(c => has(c, k)).map(kinds[k].value);
      return v.length ? sum + v.reduce((a, b) => Math.max(a, b)) - v.reduce((a, b) => Math.min(a, b)) : sum;
    }, 0);
    const used = kinds.map((_, k) => k).filter(k => valuesOf(tables[0], k).some(v => v > 0));
    const spreads = new Map(used.map(k => [k, spread(k)]));
    let kind = square ? used[0] : used.reduce((a, k) => (spreads.get(k) > spreads.get(a) ? k : a)), shown = tables[0], at = [0, 0], low = 0, high = 1;
    let width = 0, wide = 1, left = 92, size = 3;
    function draw() {
      const ratio = window.devicePixelRatio || 1, ctx = canvas.getContext("2d"), { rows, cells } = shown;
      const font = "11px system-ui, sans-serif";
      ctx.font = font;
      left = Math.min(240, Math.max(92, ...rows.map(name => ctx.measureText(name).width + 14)));
      width = canvas.parentElement.clientWidth;
      size = Math.max(3, Math.min(22, Math.floor((rows.length > 64 ? 440 : 780) / rows.length)));
      wide = (width - left - 8) / columns.length;
      if (square) wide = Math.min(wide, 3 * size);
      const height = TOP + rows.length * size + 2;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.height = height + "px";
      ctx.scale(ratio, ratio);
      ctx.font = font;
      const cold = rgb(css("--cold")), warm = rgb(css("--warm")), fg = css("--fg");
      cells.forEach((row, i) => {
        const y = TOP + i * size;
        row.forEach((c, k) => {
          if (!has(c, kind)) return;
          const value = kinds[kind].value(c), share = (kinds[kind].low ? high - value : value - low) / (high - low), x = left + k * wide;
          ctx.fillStyle = `rgb(${cold.map((v, j) => Math.round(v + (warm[j] - v) * share)).join(",")})`;
          ctx.fillRect(x, y, wide > 3 ? wide - 1 : wide, size > 5 ? size - 1 : size);
          ctx.textAlign = "center";
          ctx.fillStyle = fg;
          if (wide > 60 && size > 13) ctx.fillText(show(Math.round(value), kinds[kind].unit), x + wide / 2, y + size / 2 + 4);
        });
        ctx.fillStyle = fg;
        ctx.textAlign = "right";
        if (size > 11 || i % Math.ceil(12 / size) === 0) ctx.fillText(rows[i], left - 8, y + Math.max(size, 8) / 2 + 4, left - 12);
      });
      ctx.textAlign = "center";
      const room = Math.max(60, ...columns.map(name => ctx.measureText(name).width + 12));
      for (let k = 0; k < columns.length; k += Math.max(1, Math.ceil(room / wide))) ctx.fillText(columns[k], left + (k + 0.5) * wide, 12);
      ctx.strokeStyle = fg;
      ctx.lineWidth = 2;
      if (document.activeElement === canvas) ctx.strokeRect(left + at[1] * wide, TOP + at[0] * size, Math.max(3, wide - 1), Math.max(3, size - 1));
    }
    const tell = () => { const c = shown.cells[at[0]][at[1]]; told.textContent = c ? words(c) : ""; };
    function choose(k, t) {
      kind = k;
      shown = t;
      const values = valuesOf(t, k), top = values.reduce((a, b) => Math.max(a, b), 0), worst = kinds[k].low ? Math.min : Math.max;
      low = values.reduce((a, b) => Math.min(a, b), top);
      high = Math.max(top, low + kinds[k].least);
      buttons.forEach((b, i) => b.setAttribute("aria-pressed", used[i] === k));
      sorts.forEach((b, i) => b.setAttribute("aria-pressed", tables[i] === t));
      const most = values.reduce((a, b) => worst(a, b));
      t.cells.some((row, i) => row.some((c, j) => has(c, k) && kinds[k].value(c) === most && (at = [i, j])));
      const ends = [low, top].map(v => show(Math.round(v), kinds[k].unit));
      scale.textContent = kinds[k].low ? `from ${ends[1]} (pale) to ${ends[0]}` : `from ${ends[0]} (pale) to ${ends[1]}`;
      canvas.setAttribute("aria-label", `${kinds[k].name} of ${t.rows.length} ${t.what} in ${columns.length} ${square ? "columns" : "steps"}, ${scale.textContent}; arrow keys go from cell to cell${opens ? ", " + opens : ""}`);
      tell();
      draw();
    }
    const enter = () => { const c = shown.cells[at[0]][at[1]]; if (c && open) open(c); };
    const find = e => { const box = canvas.getBoundingClientRect(); return [Math.floor((e.clientY - box.top - TOP) / size), Math.floor((e.clientX - box.left - left) / wide)]; };
    const known = to => shown.cells[to[0]] && shown.cells[to[0]][to[1]];
    canvas.addEventListener("pointermove", e => { const to = find(e); if (known(to)) { at = to; tell(); } });
    canvas.addEventListener("click", e => { const to = find(e); if (known(to)) { at = to; enter(); } });
    const keys = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    canvas.addEventListener("keydown", e => {
      const by = keys[e.key];
      if (e.key === "Enter") enter();
      else if (!by || e.ctrlKey || e.metaKey || e.altKey) return;
      else if (known([at[0] + by[0], at[1] + by[1]])) at = [at[0] + by[0], at[1] + by[1]];
      e.preventDefault();
      tell();
      draw();
    });
    canvas.addEventListener("focus", () => draw());
    canvas.addEventListener("blur", () => draw());
    const buttons = used.map(k => make("button", { type: "button", onclick: () => choose(k, shown) }, kinds[k].name));
    const sorts = tables.length > 1 ? tables.map(t => make("button", { type: "button", onclick: () => choose(kind, t) }, t.what)) : [];
    const tools = (label, all) => all.length ? make("div", { class: "tools", role: "group", "aria-label": label }, ...all) : null;
    section(title, doc, tools("rows", sorts), tools("what is shown", [...buttons, make("small", {}, scale)]),
      make("div", {}, canvas), told, make("p", { class: "soft" }, foot));
    choose(kind, shown);
    new ResizeObserver(draw).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    return () => kind;
  }
  const stateName = k => k === 1 ? data.busy : k === 0 ? data.rest : data.states[k];

  // A page in this page, which can reach neither it nor anything else.
  function step() {
    if (!data.step_page) return;
    const frame = make("iframe", { sandbox: "allow-scripts", title: `timeline: ${data.step_text}`, class: "view", loading: "lazy" });
    frame.srcdoc = data.step_page;
    section("A step in detail", "every kernel, operator and counter", make("p", { class: "soft" }, `All events of ${data.step_text}, as in 'reprise view': w and s zoom, a and d move, a click shows an event with its arguments and its launch.`), frame);
  }

  // ---------------------------------------------------------------- steps, tables, notes

  // The steps of the first rank as columns, each of its length and with its parts; a click shows it in the timeline.
  function steps() {
    const rows = answer.steps ? answer.steps.rows : [];
    const own = rows.map((s, i) => ({ s, at: data.marks[0][1][i] }));
    if (own.length < 2) return;
    const shown = own.slice(0, 400), most = Math.max(...shown.map(x => x.s.dur_ns), 1);
    const column = ({ s, at }) => {
      const busy = [[0, s.compute_ns], [1, s.exposed_comm_ns], [2, Math.max(s.busy_ns - s.compute_ns - s.exposed_comm_ns, 0)], [7, s.idle_ns]];
      const text = `${s.name || s.number}${s.phase ? " (" + s.phase + ")" : ""}: ${show(s.dur_ns, "ns")}, ` +
        `${show(s.compute_ns, "ns")} ${data.busy}, ${show(s.idle_ns, "ns")} ${data.rest}`;
      return make("button", { type: "button", title: text, "aria-label": text + "; show it in the timeline", onclick: () => {
        if (!window.reprise) return;
        window.reprise.set(at, at + s.dur_ns);
        document.querySelector("canvas").scrollIntoView({ block: "center", behavior: "smooth" });
      } }, ...busy.map(([c, ns]) => make("i", { style: `height:${Math.max(ns, 0) / most * 100}%;background:${c === 7 ? "var(--lane)" : colour(c)}` })).reverse());
    };
    const name = lanesOf(rows[0].rank);
    section("Steps", "how long each step lasts, and what the device does in it", make("div", { class: "steps", role: "group", "aria-label": "steps" }, ...shown.map(column)),
      make("p", { class: "soft" }, `${fixed(own.length, 0)} steps of ${name}, the longest ${show(most, "ns")}` +
        (own.length > shown.length ? `; the first ${shown.length} are shown` : "") + ". The parts are those of the timeline; a click shows a step there."));
  }
  const lanesOf = rank => (data.lanes.find(l => l[1] === rank) || ["the first rank"])[0].replace(/,.*/, "");

  function records(key, title) {
    const source = answer[key], field = answer[""].find(f => f[0] === key);
    if (!source || !source.rows || !source.rows.length) return;
    const text = title || field[1];
    section(text[0].toUpperCase() + text.slice(1), field[3], table(source));
  }

  function tops() {
    const given = data.tops.map(([by, title, root]) => ({ by, title, root: unpack(root) }))
      .map(t => Object.assign(t, { rows: ["flat", "nested", "shaped"].map(k => t.root[k]).find(r => r && r.rows && r.rows.length) }))
      .filter(t => t.rows);
    if (!given.length) return;
    const panel = make("div", { role: "tabpanel", id: "top-panel" });
    const tabs = given.map(t => make("button", { type: "button", role: "tab", "aria-controls": "top-panel", onclick: () => select(t) }, t.title));
    const keys = { ArrowLeft: i => i - 1, ArrowRight: i => i + 1, Home: () => 0, End: () => -1 };
    tabs.forEach((b, i) => b.addEventListener("keydown", e => {
      if (!keys[e.key]) return;
      const to = (keys[e.key](i) + tabs.length) % tabs.length;
      e.preventDefault();
      select(given[to]);
      tabs[to].focus();
    }));
    function select(t) {
      tabs.forEach((b, i) => { b.setAttribute("aria-selected", given[i] === t); b.tabIndex = given[i] === t ? 0 : -1; });
      panel.replaceChildren(make("p", { class: "soft" }, t.root.summary || ""),
        table(t.rows, { filter: t.title.toLowerCase(), rows: 20 }), list((t.root.notes || []).filter(x => !x.includes("--limit")).concat(
          t.root.notes && t.root.notes.some(x => x.includes("--limit")) ? [`the ${t.rows.rows.length} rows with most time; 'reprise top --by ${t.by} --limit 0' lists all`] : [])));
    }
    section("What takes the time", "as 'reprise top'", make("div", { class: "tools", role: "tablist" }, ...tabs), panel);
    select(given[0]);
  }

  // ---------------------------------------------------------------- roofline

  const CATEGORY_COLOURS = { matmul: 0, attention: 1, elementwise: 2, convolution: 3, normalization: 4, reduction: 5, embedding: 6 };
  const svg = (tag, attributes, ...children) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };
  // As 'reprise roofline --svg' draws it: rates over arithmetic intensity, below the peaks of the device.
  function roofline() {
    const roof = unpack(data.roof), all = roof.known ? roof.known.rows : [];
    if (!all.length) return;
    const rows = all.filter(r => r.flops_per_byte > 0 && r.flops_per_s > 0).sort((a, b) => b.device_ns - a.device_ns);
    const peak = roof.matrix_flops_per_s, memory = roof.memory_bytes_per_s, W = 1180, H = 440, L = 96, R = 16, T = 26, B = 40;
    const decades = (values, from, to) => [Math.floor(Math.log10(Math.min(from, ...values))), Math.ceil(Math.log10(Math.max(to, ...values)))];
    const [x0, x1] = decades(rows.map(r => Math.max(r.flops_per_byte, 1e-3)), 0.1, Math.max(1000, peak && memory ? 3 * peak / memory : 0));
    const [y0, y1] = decades(rows.map(r => r.flops_per_s), peak ? peak / 1e4 : 1e11, peak ? peak * 1.01 : 1e13);
    const clamp = v => Math.min(Math.max(v, 0), 1);
    const x = v => L + clamp((Math.log10(v) - x0) / (x1 - x0)) * (W - L - R);
    const y = v => T + (1 - clamp((Math.log10(v) - y0) / (y1 - y0))) * (H - T - B);
    const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, class: "roof", role: "img", "aria-label": "roofline: FLOPs a second over arithmetic intensity; the table below has the same numbers" });
    const text = (px, py, t, more) => picture.append(svg("text", { x: px, y: py, ...more }, t));
    // texts that names of dots keep away from: [left, top, width]; all are 13 high
    const boxes = [], LETTER = 6.4;
    const label = (right, py, t) => { boxes.push([right - t.length * LETTER, py - 10, t.length * LETTER]); text(right, py, t, { "text-anchor": "end" }); };
    for (let d = x0; d <= x1; d++) {
      picture.append(svg("path", { d: `M${x(10 ** d)} ${T}V${H - B}`, class: "grid" }));
      text(x(10 ** d), H - B + 15, String(10 ** d < 1 ? (10 ** d).toFixed(-d) : 10 ** d), { "text-anchor": "middle" });
    }
    for (let d = y0; d <= y1; d++) {
      picture.append(svg("path", { d: `M${L} ${y(10 ** d)}H${W - R}`, class: "grid" }));
      text(L - 6, y(10 ** d) + 4, show(10 ** d, "flops").replace(/\.0+ /, " "), { "text-anchor": "end" });
    }
    text((L + W - R) / 2, H - 6, "arithmetic intensity (FLOP/B)", { "text-anchor": "middle" });
    if (peak && memory) {
      const line = (part, kind) => {
        const from = Math.max(10 ** x0, 10 ** y0 / (memory * part)), ridge = peak / memory;
        picture.append(svg("path", { d: `M${x(from)} ${y(from * memory * part)}L${x(ridge)} ${y(peak * part)}H${W - R}`, class: kind }));
      };
      line(1, "roofline");
      line(roof.achievable_share, "roofline dashed");
      const flops = `${show(peak, "flops")} for products in ${roof.matrix_type}`, bytes = `memory: ${show(memory, "bps")}`;
      const left = Math.max(10 ** x0, 10 ** y0 / memory), near = left * (peak / memory / left) ** 0.2; // where there are few dots
      label(W - R - 4, y(peak) - 5, flops);
      label(Math.max(x(near), L + 10 + bytes.length * LETTER), y(near * memory) - 12, bytes);
    }
    const seen = new Set();
    for (const r of rows) {
      const c = r.category in CATEGORY_COLOURS ? CATEGORY_COLOURS[r.category] : 7;
      seen.add(c === 7 ? "others" : r.category);
      const dot = svg("circle", { cx: x(r.flops_per_byte), cy: y(r.flops_per_s), r: 2.5 + 24 * Math.sqrt(Math.max(r.share, 0)), "fill-opacity": 0.75 },
        svg("title", {}, `${r.label}: ${show(r.calls, "count")} calls, ${show(r.device_ns, "ns")} (${show(r.share, "ratio")})` +
          (r.bound ? `; bound by ${r.bound}, ${r.rate || ""}, of peak ${show(r.peak_share, "ratio")}` : "")));
      dot.style.fill = colour(c);
      picture.append(dot);
    }
    for (const r of rows.slice(0, 24)) {
      const w = Math.min(r.label.length, 36) * LETTER, radius = 2.5 + 24 * Math.sqrt(Math.max(r.share, 0)), px = x(r.flops_per_byte), py = y(r.flops_per_s);
      const free = b => b[0] > L && b[0] + w < W - R && b[1] > T && b[1] + 13 < H - B &&
        boxes.every(o => b[0] > o[0] + o[2] || b[0] + w < o[0] || b[1] > o[1] + 13 || b[1] + 13 < o[1]) &&
        rows.slice(0, 100).every(o => { const q = 2.5 + 24 * Math.sqrt(Math.max(o.share, 0)), ox = x(o.flops_per_byte), oy = y(o.flops_per_s);
          return o === r || b[0] > ox + q || b[0] + w < ox - q || b[1] > oy + q || b[1] + 13 < oy - q; });
      const place = [[px + radius + 4, py - 6], [px - radius - 4 - w, py - 6], [px - w / 2, py - radius - 16], [px - w / 2, py + radius + 3]].find(free);
      if (!place) continue;
      boxes.push([place[0], place[1], w]);
      text(place[0], place[1] + 10, r.label.length > 36 ? r.label.slice(0, 22) + "…" + r.label.slice(-13) : r.label, {});
    }
    const legend = make("div", { class: "legend" }, ...[...seen].map(name => make("span", {},
      make("span", { class: "chip", style: `background:${colour(name in CATEGORY_COLOURS ? CATEGORY_COLOURS[name] : 7)}` }), name)));
    const still = all.filter(r => !(r.flops_per_byte > 0 && r.flops_per_s > 0));
    section("Roofline", "how good each operator is, as 'reprise roofline'", make("p", { class: "soft" }, roof.summary || ""), legend, picture,
      make("p", { class: "soft" }, "The area of a dot is its share of the device time; the dashed line is the achievable part of the peaks." +
        (still.length ? ` ${still.length} rows compute nothing and are not shown: ${show(still.reduce((a, r) => a + r.device_ns, 0), "ns")}.` : "")),
      table(roof.known, { filter: "operators", rows: 10 }),
      roof.unmodelled && roof.unmodelled.rows.length ? make("h3", {}, "not modelled") : null,
      roof.unmodelled && roof.unmodelled.rows.length ? table(roof.unmodelled) : null,
      list((roof.notes || []).filter(t => !t.includes("--limit"))));
  }

  function sentences(key) {
    const field = answer[""].find(f => f[0] === key);
    const texts = field && Array.isArray(answer[key]) ? answer[key].filter(t => !/^\d+ of \d+ findings are shown/.test(t)) : []; // here all are
    if (texts.length) section(field[1][0].toUpperCase() + field[1].slice(1), field[3], list(texts));
  }

  headline();
  parts();
  timeline();
  pairs();
  findings();
  step();
  steps();
  records("phases");
  records("rank_rows");
  records("device_rows");
  tops();
  roofline();
  sentences("pitfalls");
  sentences("notes");
  main.append(make("footer", {}, "Made by reprise. This file is complete: it loads nothing. What each number means is shown where the mouse rests on a heading, and in docs/definitions.md."));
  inkLabels();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", inkLabels);
  document.documentElement.dataset.ready = "yes";
})();
