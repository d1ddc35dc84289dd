// SPDX-License-Identifier: Apache-2.0
// The timeline. What is in sight is asked for in tiles (src/view/tiles.c), or is in the page. Names of the recording are only ever
// drawn, or put into text nodes.
"use strict";
(async () => {
  const { show, brief, make } = common;
  const $ = id => document.getElementById(id);
  const saved = await common.unpacked($("data").textContent);
  const PIECES = 512, TILES_KEPT = 6000, ASKED_MOST = 6, ASKED_A_FRAME = 2, LANES_ASKED = 16, TILES_MS = 2, SPARSE = 100, RULER = 40, ROW = 16, HEAD = 20;
  const canvas = $("canvas"), paint = canvas.getContext("2d", { alpha: false });

  // ---------------------------------------------------------------- names, each once

  const names = [], nameIds = new Map();
  function nameId(text, cls) {
    const key = cls + " " + text;
    let id = nameIds.get(key);
    if (id === undefined) {
      let hash = 0;
      for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) | 0;
      id = names.length;
      names.push({ text, brief: brief(text), cls, shade: Math.abs(hash) % 5, colour: "", pixel: 0, hit: false });
      nameIds.set(key, id);
      paintName(names[id]);
    }
    return id;
  }

  // ---------------------------------------------------------------- colours of the page's style, light or dark

  let style = {}, told = null;
  const mixed = (rgb, shade) => "rgb(" + rgb.map(v => Math.round(v + (shade < 2 ? 255 - v : -v) * Math.abs(shade - 2) * 0.09)).join(",") + ")";
  // "#fff", "#ffffff" or "rgb(…)" as a pixel of the canvas.
  const wide = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
  function pixelOf(colour) {
    const hex = colour.slice(1), [r, g, b] = colour[0] !== "#" ? colour.match(/\d+/g).map(Number) : [0, 1, 2].map(i => parseInt(hex.length > 3 ? hex.slice(2 * i, 2 * i + 2) : hex[i] + hex[i], 16));
    return (wide ? 0xff000000 | b << 16 | g << 8 | r : r << 24 | g << 16 | b << 8 | 0xff) >>> 0;
  }
  const known = new Map();
  function inPixels(colour) {
    if (!known.has(colour)) known.set(colour, pixelOf(colour));
    return known.get(colour);
  }
  function paintName(name) {
    name.colour = told && told.changeColour(name.text) || mixed(style.classes[name.cls], name.cls === 1 || name.cls === 4 ? name.shade : 2);
    name.pixel = pixelOf(name.colour);
    name.hit = Boolean(state.regex && state.regex.test(name.text));
  }
  function readStyle() {
    const of = getComputedStyle(document.documentElement), probe = document.createElement("i");
    document.body.append(probe);
    const rgb = v => { probe.style.color = v; return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number); };
    style = { classes: [], pixels: {} };
    for (const name of ["bg", "fg", "soft", "line", "card", "lane", "mark", "link", "hit", "range"]) style[name] = of.getPropertyValue("--" + name).trim();
    for (let i = 0; i < 10; i++) style.classes.push(rgb(`var(--k${i})`));
    for (const name of ["bg", "card", "line", "hit"]) style.pixels[name] = pixelOf(style[name]);
    probe.remove();
    names.forEach(paintName);
  }

  // ---------------------------------------------------------------- where the data comes from

  const live = {
    fetch: async (path, parameters = {}) => {
      const answer = await fetch(path + "?" + new URLSearchParams(parameters), { cache: "no-store" });
      const text = await answer.text();
      if (!answer.ok) throw new Error(text.trim().replace(/^\d+ [A-Za-z ]+: /, "") || `the server answered ${answer.status}`);
      return text;
    },
    parse: text => { try { return JSON.parse(text); } catch (error) { throw new Error("the answer of the server is damaged"); } },
    ask: async (path, parameters) => live.parse(await live.fetch(path, parameters)),
    meta: () => live.ask("meta"),
    tile: (z, i, lanes) => live.fetch("tile", { z, i, lanes: lanes.join(",") }),
    event: (rank, event) => live.ask("event", { rank, event }),
    search: q => live.ask("search", { q }),
    explain: (run, what) => live.ask("explain", { run, what }),
    compare: () => live.ask("compare"),
    sum: (from, to, rank) => live.ask("sum", rank < 0 ? { from, to, run: -1 - rank } : { from, to, rank }),
  };

  // A saved page has all events of its part; it answers as the server does.
  const isWork = e => ["kernel", "memcpy", "memset"].includes(e.kind);
  const inside = saved && {
    byId: saved.details.map(list => new Map(list.map(e => [e.event, e]))),
    meta: async () => saved.meta,
    event: async (rank, event) => {
      const e = inside.byId[rank].get(event);
      const whole = ids => ids.map(id => inside.byId[rank].get(id)).filter(Boolean);
      const arrows = [], all = saved.arrows[rank];
      for (let k = 0; k < all.length; k += 3) if (all[k] === event || all[k + 1] === event) arrows.push({ ...inside.byId[rank].get(all[k] === event ? all[k + 1] : all[k]), out: all[k] === event, what: all[k + 2] });
      return { ...e, parents: whole(e.parents), linked: whole(e.linked), arrows, beside: inside.beside(rank, e) };
    },
    // as src/view/beside.c
    beside: (rank, e) => {
      const groups = new Map(), end = e.begin_ns + Math.max(0, e.dur_ns);
      for (const o of isWork(e) ? saved.details[rank] : []) {
        const ns = Math.min(end, o.begin_ns + Math.max(0, o.dur_ns)) - Math.max(e.begin_ns, o.begin_ns);
        if (o === e || ns <= 0 || !isWork(o)) continue;
        const g = groups.get(o.name) || { name: o.name, count: 0, ns: 0 };
        g.count++; g.ns += ns;
        groups.set(o.name, g);
      }
      return [...groups.values()].sort((a, b) => b.ns - a.ns).slice(0, 12);
    },
    explain: async (run, what) => saved.explained[run][what],
    compare: async () => saved.compared,
    search: async q => {
      const regex = new RegExp(q, "i");
      const hits = saved.details.flat().filter(e => regex.test(e.name)).sort((a, b) => a.begin_ns - b.begin_ns);
      const marks = new Array(1000).fill(0), end = saved.meta.end_ns || 1;
      hits.forEach(e => { marks[Math.min(999, Math.max(0, Math.floor(e.begin_ns / end * 1000)))]++; });
      return { count: hits.length, total_ns: hits.reduce((a, e) => a + Math.max(0, e.dur_ns), 0), marks, hits: hits.slice(0, 2000) };
    },
    // as `top --by kernel`: device work that begins in the range
    sum: async (from, to, rank) => {
      const groups = new Map();
      let whole = 0;
      for (const e of saved.details.flat()) {
        const fits = rank < 0 ? saved.meta.ranks[e.rank].run === -1 - rank : e.rank === rank;
        if (!fits || !isWork(e) || e.begin_ns < from || e.begin_ns >= to) continue;
        const g = groups.get(e.name) || { name: e.name, count: 0, total_ns: 0, max_ns: 0 }, ns = Math.max(0, e.dur_ns);
        g.count++; g.total_ns += ns; g.max_ns = Math.max(g.max_ns, ns); whole += ns;
        groups.set(e.name, g);
      }
      const rows = [...groups.values()].map(g => ({ ...g, mean_ns: Math.floor(g.total_ns / g.count), share: whole ? g.total_ns / whole : 0 }))
        .sort((a, b) => b.total_ns - a.total_ns || (a.name < b.name ? -1 : 1));
      return { command: null, top: { whole_ns: whole, row_count: rows.length, rows: rows.slice(0, 100) } };
    },
  };
  const source = inside || live;

  // ---------------------------------------------------------------- what is shown

  const state = {
    from: 0, to: 1, top: 0, shift: 0, event: null, frame: null, sought: null, range: null, told: null, hits: null, hit: -1, regex: null, pattern: "", only: "", mouse: null, drag: null, folded: new Set(),
  };
  let meta = null, lanes = [], byTrack = new Map(), height = 0, gutter = 170, width = 1, tall = 1, first = 0, last = 1;
  const span = () => state.to - state.from;
  const x = t => gutter + (t - state.from) / span() * (width - gutter);
  const timeAt = px => state.from + (px - gutter) / (width - gutter) * span();

  // The second run is drawn later by state.shift, so that a step begins at the same time in both. What f draws or looks for is in times
  // of the rank; a rank below 0 is all ranks of a run.
  const shiftOf = rank => ((rank < 0 ? -1 - rank : meta.ranks[rank].run) ? state.shift : 0);
  function within(rank, f) {
    const by = shiftOf(rank);
    state.from -= by; state.to -= by;
    try { return f(); } finally { state.from += by; state.to += by; }
  }

  // The heading of a rank, what layers say about it, then its tracks: device first, then those with most events. Samples of a thread
  // are below it.
  const ORDER = { stream: 0, thread: 1, async: 2, counter: 3 };
  function layOut() {
    let y = 0, host = null;
    lanes = [];
    byTrack = new Map();
    const order = told.rankOrder(), hostOf = order.hosts;
    const add = (r, lane) => { lanes.push({ rank: r, rows: 1, y, ...lane }); y += lane.h; };
    order.forEach(r => {
      const rank = meta.ranks[r];
      if (hostOf && hostOf(r) !== host) {
        host = hostOf(r);
        add(r, { id: `host ${host}`, track: -1, host: true, heading: true, label: host || "host not known", h: HEAD });
      }
      const tracks = rank.tracks.map((t, i) => ({ i, kind: t[0], name: t[1], process: t[2], rows: t[3], events: t[4] })).filter(t => t.events && t.rows && isWanted(t.process, t.name) && (!saved || (saved.tile.lanes[`${r}.${t.i}`] || []).length))
        .sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || b.events - a.events || a.i - b.i);
      const busiest = tracks.find(t => t.kind !== "counter");
      const runs = meta.runs.length > 1 ? `${runNames()[rank.run]}, ` : "";
      const folded = state.folded.has(`${r}`);
      byTrack.set(`${r}`, lanes.length);
      add(r, { id: `${r}`, track: busiest ? busiest.i : -1, heading: true, folded, label: `${runs}rank ${rank.number}${told.rankNote(r)}`, h: HEAD });
      if (folded) return;
      for (const lane of told.above(r)) add(r, { id: `${r} ${lane.label}`, track: -1, ...lane });
      // Streams with little work share a lane until it is opened.
      const most = Math.max(...tracks.map(t => (t.kind === "stream" ? t.events : 0))), few = tracks.filter(t => t.kind === "stream" && t.events * SPARSE < most);
      const shared = few.length > 1 && !state.folded.has(`${r}.q`) ? few : [];
      if (few.length > 1) {
        const rows = shared.length ? Math.max(...few.map(t => t.rows)) : 1, label = `${few.length} quiet streams`;
        few.forEach(t => byTrack.set(`${r}.${t.i}`, lanes.length));
        add(r, { id: `${r}.q`, track: few[0].i, tiles: shared.map(t => `${r}.${t.i}`), rows, quiet: true, label, title: few.map(t => t.name).join(", "), h: shared.length ? rows * ROW + 4 : HEAD });
      }
      for (const t of tracks) {
        if (shared.includes(t)) continue;
        const id = `${r}.${t.i}`, shut = state.folded.has(id), counter = t.kind === "counter";
        const rows = shut ? 1 : t.rows, h = counter ? 36 : rows * ROW + 4;
        byTrack.set(id, lanes.length);
        add(r, { id, track: t.i, tile: id, rows, counter, folded: shut, label: t.name, title: `${t.process}: ${t.name}`, h });
        addStrip(r, t, add);
      }
      rank.sampled.filter(s => !tracks.some(t => t.i === s[0]) && isWanted(rank.tracks[s[0]][2], rank.tracks[s[0]][1])).forEach(s => addStrip(r, { i: s[0], name: rank.tracks[s[0]][1] }, add));
    });
    height = y;
    state.top = Math.max(0, Math.min(state.top, height - (tall - RULER)));
  }
  // What distinguishes the names of two runs, in whole words.
  function runNames() {
    const [a, b] = meta.runs.map(r => r.title), least = Math.min(a.length, b.length), at = /[^/_.-]*$/;
    let same = 0, end = 0;
    while (same < least && a[same] === b[same]) same++;
    same = a.slice(0, same).search(at);
    while (end < least - same && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
    end = Math.max(0, end - Math.max(0, a.slice(a.length - end).search(/[/_.-]|$/)));
    return [a, b].map(t => t.slice(same, t.length - end) || t);
  }
  let only = null;
  const isWanted = (process, name) => !only || only.test(`${process}: ${name}`);
  function filterLanes(text) {
    state.only = text;
    try { only = text ? new RegExp(text, "i") : null; $("only").setCustomValidity(""); } catch (e) { $("only").setCustomValidity(e.message); return; }
    $("only").value = text;
    layOut();
    remember();
    redraw();
  }
  function addStrip(r, t, add) {
    const sampled = meta.ranks[r].sampled.find(s => s[0] === t.i), id = `${r}.${t.i}s`, folded = state.folded.has(id);
    if (!sampled) return;
    const rows = folded ? 1 : sampled[1];
    add(r, { id, track: t.i, tile: id, strip: true, rows, folded, label: `samples, ${t.name}`, h: rows * ROW + 4 });
  }
  const laneOf = (rank, track) => lanes[byTrack.get(`${rank}.${track}`) ?? byTrack.get(`${rank}`)];
  const laneAt = py => py < RULER ? null : lanes.find(l => py + state.top - RULER >= l.y && py + state.top - RULER < l.y + l.h);

  // ---------------------------------------------------------------- tiles

  const tiles = new Map(), wanted = new Map();
  let asked = 0;
  const ids = answer => answer.names.map(([text, cls]) => nameId(text, cls));
  function keep(key, rows, begin, piece, ids) {
    for (const row of rows) {
      const list = row.events || row.pieces, at = row.events ? 2 : 3, step = row.events ? 4 : 5;
      if (list) for (let k = at; k < list.length; k += step) list[k] = ids[list[k]];
    }
    coming.delete(key);
    tiles.delete(key);
    tiles.set(key, { begin, piece, rows });
    if (tiles.size > TILES_KEPT) tiles.delete(tiles.keys().next().value);
  }
  const zoomOf = () => Math.max(0, Math.min(48, Math.ceil(Math.log2(span() / Math.max(1, width - gutter)))));

  // The tiles of a lane that cover what is in sight, or coarser ones until they are there: [tile, from, to].
  function tilesOf(id) {
    if (saved) { const t = tiles.get(id); return t ? [[t, saved.from_ns, saved.to_ns]] : []; }
    const z = zoomOf(), size = 2 ** z * PIECES, out = [];
    for (let i = Math.max(0, Math.floor(state.from / size)); i * size < Math.min(state.to, meta.end_ns + 1); i++) {
      let tile = tiles.get(`${z}/${i}/${id}`);
      if (!tile) {
        const key = `${z}/${i}`;
        if (!wanted.has(key)) wanted.set(key, new Set());
        wanted.get(key).add(id);
        for (let up = 1; up < 12 && !tile; up++) tile = tiles.get(`${z + up}/${Math.floor(i / 2 ** up)}/${id}`);
      }
      if (tile) out.push([tile, i * size, (i + 1) * size]);
    }
    return out;
  }

  const tilesUnder = lane => (lane.tiles || [lane.tile || `${lane.rank}.${lane.track}`]).flatMap(tilesOf);

  // Asks for what the last picture lacked; older wishes are forgotten. A request takes a browser as long as a tenth of a frame, so they
  // are few in each; an answer waits for a frame that has time for it.
  const arrived = [], coming = new Set();
  function fetchTiles() {
    const most = Math.min(ASKED_MOST, asked + ASKED_A_FRAME);
    for (const [key, set] of wanted) {
      const [z, i] = key.split("/").map(Number), lacking = [...set].filter(id => !tiles.has(`${key}/${id}`) && !coming.has(`${key}/${id}`));
      for (let k = 0; k < lacking.length && asked < most; k += LANES_ASKED) {
        const list = lacking.slice(k, k + LANES_ASKED), come = answer => { arrived.push({ key, z, i, list, ...answer }); redraw(); };
        asked++;
        list.forEach(id => coming.add(`${key}/${id}`));
        live.tile(z, i, list).then(text => come({ text }), error => come({ error }));
      }
    }
    if (asked === most && asked < ASKED_MOST) redraw(); // more in the next frame
    wanted.clear();
  }
  // An answer has a line for each lane, and one for the names: those that no frame has time for wait for the next.
  function takeTiles(until) {
    for (let n = 0; arrived.length && (!n || performance.now() < until); n++) {
      const answer = arrived[0], { key, z, i, list } = answer, begin = i * 2 ** z * PIECES;
      try {
        if (answer.error) throw answer.error;
        answer.lines = answer.lines || linesOf(answer);
        const id = list[list.length - 1];
        keep(`${key}/${id}`, answer.lines.has(id) ? live.parse(answer.lines.get(id)) : [], begin, 2 ** z, answer.named);
        list.pop();
      } catch (why) {
        say(`a part of the timeline could not be loaded: ${why.message}`);
        list.forEach(id => { keep(`${key}/${id}`, [], begin, 2 ** z, []); tiles.get(`${key}/${id}`).failed = why.message; });
        list.length = 0;
      }
      if (!list.length) { arrived.shift(); asked--; }
    }
    if (arrived.length) redraw();
  }
  // {"lanes":{"0.4":[…],⏎"0.5":[…]},⏎"names":[…]}: the texts of the lanes, by lane. What is not such an answer is damaged.
  function linesOf(answer) {
    const lines = answer.text.split("\n"), lanes = new Map();
    answer.named = ids(live.parse("{" + lines.pop()));
    lines.forEach((line, i) => {
      const part = line.slice(i ? 0 : '{"lanes":{'.length, i < lines.length - 1 ? -1 : -2), colon = part.indexOf(":");
      lanes.set(part.slice(1, colon - 1), part.slice(colon + 1));
    });
    answer.text = null;
    return lanes;
  }

  // ---------------------------------------------------------------- drawing

  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }
  const cost = { frames: 0, ms: 0, worst: 0 };
  function draw() {
    const begin = performance.now(), ratio = window.devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect();
    if (canvas.width !== Math.round(box.width * ratio) || canvas.height !== Math.round(box.height * ratio)) {
      canvas.width = Math.round(box.width * ratio);
      canvas.height = Math.round(box.height * ratio);
    }
    width = box.width; tall = box.height; gutter = width < 600 ? 92 : width < 1100 ? 170 : 220;
    takeTiles(begin + TILES_MS);
    const seen = lanes.filter(l => l.y + l.h > state.top && l.y < state.top + tall - RULER);
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.textBaseline = "middle";
    board.begin(ratio);
    for (const lane of seen) within(lane.rank, () => plotLane(lane));
    told.plotOver();
    board.end();
    for (const lane of seen) within(lane.rank, () => drawLane(lane));
    paint.save();
    paint.beginPath();
    paint.rect(gutter, RULER, width - gutter, tall);
    paint.clip();
    told.drawOver();
    paint.restore();
    drawRange();
    if (state.event) within(state.event.rank, drawArrows);
    drawRuler();
    cost.frames++;
    cost.ms += performance.now() - begin;
    cost.worst = Math.max(cost.worst, performance.now() - begin);
    if (state.sought) findFrame();
    if (!saved) fetchTiles();
    tellWhere();
  }

  // Boxes and straight lines are written into the pixels of a picture: tens of thousands are in sight, and for the canvas each would be a
  // call and a shape with soft edges, which takes several times as long. Texts, arrows and the ruler are drawn over it.
  const board = (() => {
    let image = null, pixels = null, W = 0, H = 0, ratio = 1;
    const row = y => Math.max(0, Math.min(H, Math.round(y * ratio)));
    return {
      begin: by => {
        ratio = by;
        if (!image || W !== canvas.width || H !== canvas.height) {
          image = paint.createImageData(W = canvas.width, H = canvas.height);
          pixels = new Uint32Array(image.data.buffer);
        }
        pixels.fill(style.pixels.bg);
      },
      // exact to a pixel, and at least one wide
      box: (x0, x1, y0, y1, pixel) => {
        const left = Math.max(0, Math.round(x0 * ratio)), right = Math.min(W, Math.max(left + 1, Math.round(x1 * ratio))), end = row(y1) * W;
        for (let at = row(y0) * W; at < end; at += W)
          for (let k = at + left; k < at + right; k++) pixels[k] = pixel;
      },
      end: () => paint.putImageData(image, 0, 0),
    };
  })();
  const yOf = lane => lane.y - state.top + RULER;

  function plotLane(lane) {
    const y = yOf(lane), done = new Map(); // by row: the event that was plotted last
    lane.source = lane.track < 0 || (lane.heading && !lane.folded) ? [] : tilesUnder(lane);
    lane.labels = [];
    if (lane.heading) board.box(0, width, y, y + lane.h, style.pixels.card);
    board.box(0, width, y + lane.h - 1, y + lane.h, style.pixels.line);
    if (lane.layer) told.plot(lane, y);
    else if (lane.counter) plotCounter(lane, y);
    else eachRow(lane, y, (row, tile, from, to, top, h) => {
      if (row.pieces) plotPieces(row.pieces, tile, from, to, top, h);
      else done.set(row.row, plotEvents(lane, row.events, tile.begin, from, to, top, h, done.get(row.row)));
    });
  }
  // The rows of a lane that are in sight, tile by tile.
  function eachRow(lane, y, f) {
    for (const [tile, from, to] of lane.source)
      for (const row of tile.rows)
        if (row.row < lane.rows) f(row, tile, from, to, lane.heading ? y + 2 : y + 2 + row.row * ROW, lane.heading ? HEAD - 5 : ROW - 1);
  }
  // The texts of a lane, and what is selected.
  function drawLane(lane) {
    const y = yOf(lane);
    paint.font = "11px system-ui, sans-serif";
    for (const l of lane.labels) {
      if (l.chosen) { paint.strokeStyle = style.fg; paint.lineWidth = 2; paint.strokeRect(l.x, l.y, Math.max(2, l.w), l.h); }
      paint.fillStyle = l.colour || "#111";
      paint.fillText(fit(l.text, l.w - 6), l.x + 3, l.y + l.h / 2 + 0.5, Math.max(1, l.w - 4));
    }
    if (lane.layer) told.draw(lane, y);
    for (const [tile, from, to] of lane.source) if (tile.failed) drawFailed(tile, from, to, y, lane.h);
    paint.fillStyle = lane.heading ? style.fg : style.soft;
    paint.font = lane.heading ? "600 12px system-ui, sans-serif" : "12px system-ui, sans-serif";
    paint.fillText(fit((lane.heading ? (lane.folded ? "▸ " : "▾ ") : lane.quiet ? (lane.tiles.length ? "▸ " : "▾ ") : "  ") + lane.label, gutter - 12), 6, y + Math.min(lane.h, HEAD) / 2);
  }

  // What could not be loaded says so; a click tries again.
  function drawFailed(tile, from, to, y, h) {
    const x0 = Math.max(gutter, x(from)), x1 = Math.min(width, x(to));
    paint.fillStyle = style.card;
    paint.fillRect(x0, y, x1 - x0, h - 1);
    paint.fillStyle = style.hit;
    paint.font = "11px system-ui, sans-serif";
    paint.fillText(fit(`not loaded: ${tile.failed} (click: again)`, x1 - x0 - 8), x0 + 4, y + Math.min(h, HEAD) / 2);
  }
  function loadAgain(lane, t) {
    const failed = tilesUnder(lane).some(([tile, from, to]) => tile.failed && t >= from && t < to);
    if (failed) for (const [key, tile] of tiles) if (tile.failed) tiles.delete(key);
    if (failed) redraw();
    return failed;
  }

  // A text that fits, cut in the middle of its letters.
  function fit(text, room) {
    const letter = 6.3;
    if (text.length * letter <= room) return text;
    const n = Math.floor(room / letter) - 1;
    return n < 2 ? "" : text.slice(0, n) + "…";
  }

  // The first event of a list of [begin, duration, name, id] that ends after t.
  function firstEvent(list, t) {
    let low = 0, high = list.length / 4;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[4 * middle] + Math.max(0, list[4 * middle + 1]) < t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function plotEvents(lane, list, begin, from, to, y, h, before) {
    const scale = (width - gutter) / span(), chosen = state.event && !lane.strip && state.event.rank === lane.rank ? state.event.event : -1;
    const n = list.length / 4;
    let covered = -1, last = before;
    for (let k = firstEvent(list, Math.max(state.from, from) - begin); k < n; k++) {
      const at = begin + list[4 * k], dur = list[4 * k + 1], id = list[4 * k + 3];
      if (at >= state.to || at >= to) break;
      if (id === before) continue;
      const x0 = Math.max(gutter, gutter + (at - state.from) * scale), x1 = Math.min(width, gutter + (at + Math.max(0, dur) - state.from) * scale);
      const w = Math.max(1, x1 - x0), name = names[list[4 * k + 2]];
      last = id;
      if (w <= 1 && x0 < covered) { // many in one pixel: go on with the next
        const next = firstEvent(list, state.from + (covered - gutter) / scale - begin);
        k = Math.max(k, next - 1);
        continue;
      }
      covered = w <= 1 ? x0 + 1 : -1;
      const end = x0 + (w > 3 ? w - 0.6 : w), pixel = dur < 0 ? style.pixels.hit : name.pixel;
      board.box(x0, end, y, y + h, name.hit ? style.pixels.hit : pixel);
      if (name.hit && end - x0 > 5) board.box(x0 + 2, end - 2, y + 2, y + h - 2, pixel);
      if (w > 28 || id === chosen) lane.labels.push({ text: w > 28 ? name.brief : "", x: x0, y, w, h, chosen: id === chosen });
    }
    return last;
  }

  // What each piece holds: the colour of the longest, as high as it is busy.
  function plotPieces(list, tile, from, to, y, h) {
    const scale = (width - gutter) / span(), since = Math.max(state.from, from), until = Math.min(state.to, to);
    let low = 0, high = list.length / 5;
    while (low < high) { const m = (low + high) >> 1; if (tile.begin + (list[5 * m] + 1) * tile.piece <= since) low = m + 1; else high = m; }
    for (let k = 5 * low; k < list.length; k += 5) {
      const at = tile.begin + list[k] * tile.piece;
      if (at >= until) break;
      const x0 = Math.max(gutter, gutter + (at - state.from) * scale), x1 = Math.min(width, gutter + (at + tile.piece - state.from) * scale), name = names[list[k + 3]];
      board.box(x0, x1, y + h - Math.max(2, Math.round(h * Math.sqrt(list[k + 2] / 255))), y + h, name.hit ? style.pixels.hit : name.pixel);
    }
  }

  function plotCounter(lane, y) {
    const series = new Map();
    for (const [tile] of lane.source)
      for (const row of tile.rows) {
        if (!series.has(row.series)) series.set(row.series, []);
        const points = series.get(row.series);
        if (row.values) for (let k = 0; k < row.values.length; k += 2) points.push([tile.begin + row.values[k], row.values[k + 1]]);
        else for (let k = 0; k < row.ranges.length; k += 3) points.push([tile.begin + row.ranges[k] * tile.piece, row.ranges[k + 2]]);
      }
    let most = 0, kind = 1;
    for (const points of series.values()) for (const p of points) most = Math.max(most, p[1]);
    for (const points of series.values()) {
      const pixel = inPixels(`rgb(${style.classes[kind++ % 9].join(",")})`);
      for (let k = 0; k < points.length; k++) {
        const x0 = Math.max(gutter, x(points[k][0])), x1 = k + 1 < points.length ? x(points[k + 1][0]) : x(Math.min(state.to, meta.end_ns));
        const h = most > 0 ? points[k][1] / most * (lane.h - 6) : 0;
        if (x1 > gutter && x0 < width) board.box(x0, x1, y + lane.h - 2 - h, y + lane.h - 2, pixel);
      }
    }
    lane.labels.push({ text: `${[...series.keys()].join(", ")}: at most ${most.toLocaleString("en")}`, x: gutter, y, w: width - gutter, h: 16, colour: style.soft });
  }

  function drawRuler() {
    paint.fillStyle = style.card;
    paint.fillRect(0, 0, width, RULER);
    const step = niceStep(span() / Math.max(2, (width - gutter) / 110));
    paint.font = "11px system-ui, sans-serif";
    for (let t = Math.ceil(state.from / step) * step; t <= state.to; t += step) {
      paint.fillStyle = style.line;
      paint.fillRect(x(t), 0, 1, RULER);
      paint.fillStyle = style.soft;
      paint.fillText(show(t, "ns"), x(t) + 3, 10);
    }
    within(meta.ranks.indexOf(stepRank()), drawSteps);
    if (state.hits) {
      paint.fillStyle = style.hit;
      const piece = meta.end_ns / state.hits.marks.length;
      state.hits.marks.forEach((n, i) => { if (n) { const at = x(i * piece); if (at + 2 >= gutter && at < width) paint.fillRect(at, RULER - 5, Math.max(2, piece / span() * (width - gutter)), 4); } });
    }
    paint.fillStyle = style.card;
    paint.fillRect(0, 0, gutter, RULER);
    paint.fillStyle = style.line;
    paint.fillRect(0, RULER - 1, width, 1);
    paint.fillRect(gutter - 1, 0, 1, tall);
    paint.fillStyle = style.soft;
    paint.fillText("steps", 6, 26);
  }
  const niceStep = ns => { const ten = 10 ** Math.floor(Math.log10(Math.max(1, ns))); return [1, 2, 5, 10].map(k => k * ten).find(s => s >= ns) || 10 * ten; };
  const stepRank = () => meta.ranks[state.event ? state.event.rank : 0].steps.length ? meta.ranks[state.event ? state.event.rank : 0] : meta.ranks[0];
  function drawSteps() {
    const rank = stepRank(), steps = rank.steps, phases = told.phases(meta.ranks.indexOf(rank));
    for (let i = firstStep(steps, 3, state.from); i < steps.length && steps[i][2] < state.to; i++) {
      const s = steps[i], x0 = Math.max(gutter, x(s[2])), x1 = Math.min(width, x(s[3]));
      if (x(s[3]) - x(s[2]) < 2) { // many are one bar
        paint.fillStyle = style.mark;
        paint.fillRect(Math.floor(x0), 19, 2, 15);
        i = Math.max(i, firstStep(steps, 2, timeAt(Math.floor(x0) + 2)) - 1);
        continue;
      }
      paint.fillStyle = i % 2 ? style.mark : style.bg;
      paint.fillRect(x0, 19, x1 - x0, 15);
      paint.fillStyle = style.line;
      paint.fillRect(x0, 19, 1, 15);
      if (x1 - x0 > 24) { paint.fillStyle = style.fg; paint.fillText(fit((s[1] || String(s[0])) + (phases.has(s[0]) ? `, ${phases.get(s[0])}` : ""), x1 - x0 - 6), x0 + 4, 27); }
    }
  }
  // The first step that begins (field 2) or ends (3) after a time: they follow one another.
  function firstStep(steps, field, time) {
    let low = 0, high = steps.length;
    while (low < high) { const m = (low + high) >> 1; if (steps[m][field] <= time) low = m + 1; else high = m; }
    return low;
  }

  function drawRange() {
    const drag = state.drag && state.drag.range, r = drag || state.range, by = drag || !r ? 0 : shiftOf(r.rank);
    if (!r) return;
    const x0 = Math.max(gutter, x(r.from + by)), x1 = Math.min(width, x(r.to + by));
    if (x1 <= x0) return;
    paint.fillStyle = style.range;
    paint.fillRect(x0, RULER, x1 - x0, tall);
    paint.fillStyle = style.link;
    paint.fillRect(x0, 0, 1, tall);
    paint.fillRect(x1, 0, 1, tall);
  }

  // From a launch to what it started; dashed: other arrows of the recording.
  const middle = e => { const l = laneOf(e.rank, e.track), row = l.heading ? 0 : Math.min(e.row, l.rows - 1); return l.y - state.top + RULER + (l.heading ? HEAD / 2 : 2 + row * ROW + ROW / 2); };
  function drawArrows() {
    const e = state.event;
    if (!e || !e.linked) return;
    const host = e.linked.filter(l => ![1, 2, 3].includes(l.class) || l.kind === "comm_op"), device = e.linked.filter(l => [1, 2, 3].includes(l.class));
    const from = host[0], to = !from ? [] : device.some(d => d.event === e.event) ? [e] : device;
    paint.save();
    paint.beginPath();
    paint.rect(gutter, RULER, width - gutter, tall);
    paint.clip();
    paint.strokeStyle = paint.fillStyle = style.fg;
    paint.lineWidth = 1.2;
    for (const d of to.slice(0, 64)) drawArrow(from, d);
    paint.setLineDash([5, 3]);
    for (const a of e.arrows.slice(0, 64)) a.out ? drawArrow(e, a) : drawArrow(a, e);
    paint.restore();
  }
  function drawArrow(from, to) {
    const x0 = x(from.begin_ns + Math.max(0, from.dur_ns)), y0 = middle(from), x1 = x(to.begin_ns), y1 = middle(to);
    paint.beginPath();
    paint.moveTo(x0, y0);
    paint.bezierCurveTo(x0 + 40, y0, x1 - 40, y1, x1 - 3, y1);
    paint.stroke();
    paint.beginPath();
    paint.moveTo(x1, y1); paint.lineTo(x1 - 7, y1 - 4); paint.lineTo(x1 - 7, y1 + 4);
    paint.fill();
  }

  // ---------------------------------------------------------------- moving

  function look(from, to) {
    const least = 50, begin = first + Math.min(0, state.shift), end = last + Math.max(0, state.shift), room = (end - begin) * 0.05 + 1;
    let size = Math.max(least, Math.min(to - from, end - begin + 2 * room));
    let middle = (from + to) / 2;
    from = Math.max(begin - room, Math.min(middle - size / 2, end + room - size));
    state.from = from;
    state.to = from + size;
    remember();
    redraw();
  }
  const zoom = (factor, at = (state.mouse && state.mouse.x > gutter ? timeAt(state.mouse.x) : (state.from + state.to) / 2)) =>
    look(at - (at - state.from) * factor, at + (state.to - at) * factor);
  const move = share => look(state.from + span() * share, state.to + span() * share);
  function scrollTo(lane, row = 0) {
    const y = lane.y + (lane.heading ? 0 : row * ROW);
    if (y < state.top) state.top = Math.max(0, y - 20);
    else if (y + 40 > state.top + tall - RULER) state.top = Math.max(0, y - (tall - RULER) / 2);
  }
  function showEvent(e, closer = true) {
    if (state.folded.delete(`${e.rank}`) | state.folded.delete(`${e.rank}.${e.track}`)) layOut();
    if (only && !byTrack.has(`${e.rank}.${e.track}`)) filterLanes("");
    const dur = Math.max(1, e.dur_ns), begin = e.begin_ns + shiftOf(e.rank);
    if (closer) look(begin - dur * 2, begin + dur * 3);
    else if (begin + dur < state.from || begin > state.to) look(begin + dur / 2 - span() / 2, begin + dur / 2 + span() / 2);
    scrollTo(laneOf(e.rank, e.track), e.row);
    redraw();
  }

  // ---------------------------------------------------------------- selecting

  async function select(rank, event, how) {
    try {
      const e = await source.event(rank, event);
      [e.linked, e.parents, e.arrows].flat().forEach(l => { l.rank = rank; });
      state.event = e;
      state.told = state.frame = null;
      if (how) showEvent(e, how === "closer");
      panelOfEvent(e);
      remember();
      redraw();
    } catch (error) { say(error.message); }
  }
  async function selectRange(from, to, rank) {
    state.range = { from: Math.max(0, Math.floor(Math.min(from, to))), to: Math.max(0, Math.ceil(Math.max(from, to))), rank };
    state.frame = null;
    remember();
    redraw();
    try { panelOfRange(state.range, await source.sum(state.range.from, state.range.to, rank)); } catch (error) { say(error.message); }
  }
  function clear() {
    state.event = state.range = state.told = state.frame = null;
    $("panel").replaceChildren();
    remember();
    redraw();
  }
  // The event below a point, or the longest of a piece.
  function eventAt(px, py) {
    const lane = laneAt(py);
    if (!lane || px < gutter || lane.counter || lane.layer || lane.track < 0 || (lane.heading && !lane.folded)) return null;
    return within(lane.rank, () => eventIn(lane, px, py));
  }
  function eventIn(lane, px, py) {
    const row = lane.heading ? 0 : Math.floor((py + state.top - RULER - lane.y - 2) / ROW), t = timeAt(px), near = span() / (width - gutter) * 3;
    let best = null, far = Infinity;
    for (const [tile, from, to] of tilesUnder(lane)) {
      if (t + near < from || t - near > to) continue;
      for (const r of tile.rows.filter(r => r.row === row)) {
        if (r.pieces) {
          for (let k = 0; k < r.pieces.length; k += 5) {
            const at = tile.begin + r.pieces[k] * tile.piece;
            if (at <= t && t < at + tile.piece) return { rank: lane.rank, event: r.pieces[k + 4] };
          }
        } else for (let k = firstEvent(r.events, t - near - tile.begin); k < r.events.length / 4; k++) {
          const at = tile.begin + r.events[4 * k], end = at + Math.max(0, r.events[4 * k + 1]), off = t < at ? at - t : t > end ? t - end : 0;
          if (at > t + near) break;
          if (off < far) { far = off; best = { rank: lane.rank, event: r.events[4 * k + 3], lane, name: names[r.events[4 * k + 2]].text, begin: at, dur: end - at, row }; }
        }
      }
    }
    return best;
  }
  // The next event of the row, or that of another row at the same time.
  function neighbour(dx, dy) {
    const e = state.event;
    if (!e) return;
    const row = e.row + dy;
    let best = null, far = Infinity;
    for (const [tile] of within(e.rank, () => tilesOf(`${e.rank}.${e.track}`)))
      for (const r of tile.rows.filter(r => r.row === row)) {
        const list = r.events || r.pieces, step = r.events ? 4 : 5;
        for (let k = 0; k < list.length; k += step) {
          const at = r.events ? tile.begin + list[k] : tile.begin + list[k] * tile.piece, id = list[k + step - 1];
          const off = dy ? Math.abs(at - e.begin_ns) : (at - e.begin_ns) * dx;
          if (id !== e.event && off >= 0 && off < far && (dy || off > 0)) { far = off; best = id; }
        }
      }
    if (best !== null) select(e.rank, best, "there");
  }

  // ---------------------------------------------------------------- the panel

  const button = (text, onclick, cls) => make("button", { type: "button", class: cls, onclick }, text);
  const where = e => `rank ${meta.ranks[e.rank].number}, ${meta.ranks[e.rank].tracks[e.track][1]}`;
  const link = e => button(brief(e.name), () => select(e.rank, e.event, "there"), "plain");
  function panelOfEvent(e) {
    const step = meta.ranks[e.rank].steps.find(s => e.begin_ns >= s[2] && e.begin_ns < s[3]);
    const facts = [["class", meta.classes[e.class]], ["category", e.category], ["begins at", show(e.begin_ns, "ns")],
      ["duration", e.dur_ns < 0 ? "none" : show(e.dur_ns, "ns")], ["in both runs", told.changeOf(e.name)], ["where", where(e)], ["name", brief(e.name) === e.name ? null : e.name], ["step", step ? step[1] || step[0] : null]];
    const rows = list => make("table", {}, make("tbody", {}, ...list.map(([k, v]) => make("tr", {}, make("th", { scope: "row" }, k), make("td", { class: "value" }, v)))));
    const others = e.linked.filter(l => l.event !== e.event), started = others.filter(l => l.begin_ns >= e.begin_ns);
    const lists = [[started.length === others.length ? "starts" : "started by", others], ["leads to", e.arrows.filter(a => a.out)], ["comes from", e.arrows.filter(a => !a.out)], ["inside", e.parents]].filter(l => l[1].length);
    const beside = e.beside.length ? [make("div", {}, make("div", { class: "soft" }, "beside it, on the device"), make("table", {}, make("tbody", {}, ...e.beside.map(o =>
      make("tr", {}, make("td", { class: "n" }, show(o.ns, "ns")), make("td", { class: "n" }, `${show(o.count, "count")} ×`), make("td", { class: "name short", title: o.name }, brief(o.name)))))))] : [];
    $("panel").replaceChildren(make("h2", { title: e.name }, brief(e.name)), make("div", { class: "columns" },
      make("div", {}, rows(facts.filter(f => f[1] !== null && f[1] !== undefined).map(([k, v]) => [k, String(v)])),
        make("p", {}, button("show (f)", () => showEvent(e)), " ", button("sums of its time (m)", () => selectRange(e.begin_ns, e.begin_ns + Math.max(1, e.dur_ns), e.rank)))),
      ...beside, ...lists.map(([title, list]) => make("div", {}, make("div", { class: "soft" }, title), ...list.slice(0, 12).map(l => make("div", {}, link(l), make("span", { class: "soft" }, ` ${[l.what, l.dur_ns < 0 ? null : show(l.dur_ns, "ns")].filter(Boolean).join(", ")}`))))),
      e.args.length ? make("div", {}, rows(e.args.map(([k, v]) => [k, String(v)]))) : null,
    ));
    say(`${brief(e.name).length > 60 ? brief(e.name).slice(0, 60) + "…" : brief(e.name)}, ${e.dur_ns < 0 ? "an instant" : show(e.dur_ns, "ns")} at ${show(e.begin_ns, "ns")}, ${where(e)}`);
  }
  // A frame of the samples, and what called it.
  function panelOfFrame(f) {
    const middle = f.begin + f.dur / 2, callers = [];
    for (const [tile] of within(f.rank, () => tilesOf(f.lane.tile)))
      for (const r of tile.rows.filter(r => r.row < f.row))
        for (let k = 0; k < r.events.length; k += 4) if (tile.begin + r.events[k] <= middle && middle < tile.begin + r.events[k] + r.events[k + 1]) callers[r.row] = names[r.events[k + 2]].text;
    state.event = state.told = null;
    state.frame = { rank: f.rank, track: f.lane.track, row: f.row, at: Math.round(middle) };
    const command = `reprise top --by stack ${meta.runs[meta.ranks[f.rank].run].shell}`;
    $("panel").replaceChildren(make("h2", {}, f.name), make("p", {}, `on the stack for about ${show(f.dur, "ns")} from ${show(f.begin, "ns")} on, as far as samples show`),
      make("div", { class: "soft" }, "called by"), ...callers.filter(Boolean).reverse().map(n => make("div", {}, n)),
      saved ? "" : make("p", {}, make("code", {}, command), " ", button("copy as command", () => copy(command))));
    say(`${f.name}, sampled for about ${show(f.dur, "ns")}`);
    remember();
    redraw();
  }
  // Selects the frame that the address names, once its tiles are there.
  function findFrame() {
    const { rank, track, row, at } = state.sought, lane = lanes.find(l => l.strip && l.rank === rank && l.track === track);
    const found = lane && within(rank, () => tilesOf(lane.tile));
    if (asked || wanted.size) return;
    state.sought = null;
    for (const [tile] of found || [])
      for (const r of tile.rows.filter(r => r.row === row && r.events))
        for (let k = 0; k < r.events.length; k += 4) {
          const begin = tile.begin + r.events[k], dur = r.events[k + 1];
          if (begin <= at && at < begin + dur) { panelOfFrame({ rank, lane, row, begin, dur, name: names[r.events[k + 2]].text }); return; }
        }
  }
  function panelOfRange(range, answer) {
    const one = range.rank >= 0, run = one ? meta.ranks[range.rank].run : -1 - range.rank;
    const several = meta.ranks.filter(r => r.run === run).length > 1;
    const head = ["name", "count", "total", "share", "mean", "max"];
    const rows = answer.top.rows.map(r => make("tr", {}, make("td", { class: "name", title: r.name }, brief(r.name)), ...[[r.count, "count"], [r.total_ns, "ns"], [r.share, "ratio"], [r.mean_ns, "ns"], [r.max_ns, "ns"]]
      .map(([v, unit]) => make("td", { class: "n" }, show(v, unit)))));
    $("panel").replaceChildren(make("h2", {}, `${show(range.to - range.from, "ns")} from ${show(range.from, "ns")} on, ${one ? `rank ${meta.ranks[range.rank].number}` : "all ranks"}: ${show(answer.top.whole_ns, "ns")} of device work`),
      answer.command ? make("p", {}, make("code", { id: "command" }, answer.command), " ", button("copy as command (c)", () => copy(answer.command))) : null,
      several ? make("p", {}, button(one ? "sum of all ranks" : "sum of the first rank", () => selectRange(range.from, range.to, one ? -1 - run : meta.ranks.findIndex(r => r.run === run)))) : null,
      rows.length ? make("table", {}, make("thead", {}, make("tr", {}, ...head.map((t, i) => make("th", { scope: "col", class: i ? "n" : null }, t)))), make("tbody", {}, ...rows))
        : make("p", { class: "soft" }, "no device work begins in this time"));
    state.command = answer.command;
    say(`${show(range.to - range.from, "ns")} selected: ${show(answer.top.whole_ns, "ns")} of device work`);
  }
  function panelOfHits() {
    const h = state.hits;
    $("panel").replaceChildren(make("h2", {}, `${h.count.toLocaleString("en")} events, ${show(h.total_ns, "ns")} together`),
      ...h.hits.slice(0, 60).map((e, i) => make("div", {}, button(brief(e.name), () => { state.hit = i; select(e.rank, e.event, "closer"); }, "plain"),
        make("span", { class: "soft" }, ` ${where(e)}, ${show(e.begin_ns, "ns")}${e.dur_ns < 0 ? "" : ", " + show(e.dur_ns, "ns")}`))));
  }
  let said = "";
  function say(text) { said = text; tellWhere(); }
  function tellWhere() {
    const text = `${show(span(), "ns")} shown of ${show(last - first, "ns")}${said ? " · " + said : ""}`;
    if ($("where").textContent !== text) $("where").textContent = text;
  }
  async function copy(text) {
    try { await navigator.clipboard.writeText(text); say("copied: " + text); } catch (e) { say(text); }
  }
  async function copyCommand() {
    if (state.range && state.command) return copy(state.command);
    const rank = state.event ? state.event.rank : 0;
    const [from, to] = within(rank, () => [state.from, state.to]);
    const answer = await source.sum(Math.max(0, Math.floor(from)), Math.max(1, Math.ceil(to)), rank);
    return answer.command ? copy(answer.command) : say("a saved page knows no command");
  }

  // ---------------------------------------------------------------- searching

  async function search(pattern, quiet) {
    state.pattern = pattern;
    state.hit = -1;
    try { state.regex = pattern ? new RegExp(pattern, "i") : null; } catch (e) { state.regex = null; }
    names.forEach(n => { n.hit = Boolean(state.regex && state.regex.test(n.text)); });
    state.hits = null;
    $("found").textContent = "";
    if (pattern) try {
      state.hits = await source.search(pattern);
      if (state.pattern !== pattern) return;
      $("found").textContent = `${state.hits.count.toLocaleString("en")} found`;
      if (!quiet) panelOfHits();
    } catch (error) { $("found").textContent = error.message; }
    remember();
    redraw();
  }
  function nextHit(by) {
    const h = state.hits && state.hits.hits;
    if (!h || !h.length) return;
    state.hit = state.hit < 0 ? (by > 0 ? 0 : h.length - 1) : (state.hit + by + h.length) % h.length;
    select(h[state.hit].rank, h[state.hit].event, "closer");
  }
  function nextStep(by) {
    const steps = stepRank().steps, middle = (state.from + state.to) / 2 - shiftOf(meta.ranks.indexOf(stepRank()));
    if (!steps.length) return;
    let i = steps.findIndex(s => middle < s[3]);
    i = i < 0 ? steps.length - 1 : i;
    const now = steps[i], inStep = Math.abs(middle - span() / 2 - now[2]) < span() * 0.02 && span() < (now[3] - now[2]) * 1.6;
    showStep(stepRank(), Math.max(0, Math.min(steps.length - 1, inStep ? i + by : i)));
  }
  // Shows a step; of two runs all of it in both, with their begins at the same time (rp_view_twin in src/view).
  function showStep(rank, i) {
    const step = rank.steps[i], other = meta.runs.length > 1 && meta.ranks.find(r => r.run !== rank.run && r.steps.length);
    const twin = other && (other.steps.length !== rank.steps.length && other.steps.find(s => s[0] === step[0]) || other.steps[i]);
    if (twin) state.shift = rank.run ? twin[2] - step[2] : step[2] - twin[2];
    const begin = step[2] + shiftOf(meta.ranks.indexOf(rank));
    look(begin, begin + Math.max(step[3] - step[2], twin ? twin[3] - twin[2] : 0));
  }

  // ---------------------------------------------------------------- the address keeps what is shown

  let writing = 0, written = "";
  function remember() {
    clearTimeout(writing);
    writing = setTimeout(writeAddress, 150);
  }
  function writeAddress() {
    const p = new URLSearchParams({ at: `${Math.round(state.from)}~${Math.round(state.to)}` });
    if (state.shift) p.set("shift", Math.round(state.shift));
    if (state.top) p.set("top", Math.round(state.top));
    if (state.event) p.set("event", `${state.event.rank}.${state.event.event}`);
    if (state.frame) p.set("frame", Object.values(state.frame).join("."));
    if (state.range) p.set("range", `${state.range.from}~${state.range.to}~${state.range.rank}`);
    if (state.pattern) p.set("q", state.pattern);
    if (state.only) p.set("lanes", state.only);
    if (state.folded.size && state.foldedByHand) p.set("fold", [...state.folded].join(","));
    told.write(p);
    written = "#" + p;
    if (location.protocol !== "about:") history.replaceState(null, "", written); // a page inside another has no address
  }
  const numbers = text => (text || "").split("~").map(Number);
  async function readAddress() {
    if (location.hash === written || location.hash.length < 2) return false;
    const p = new URLSearchParams(location.hash.slice(1)), [from, to] = numbers(p.get("at")), range = numbers(p.get("range")), event = (p.get("event") || "").split(".").map(Number);
    if (p.has("fold")) { state.folded = new Set(p.get("fold").split(",").filter(id => /^\d+(\.(\d+s?|q))?$/.test(id))); state.foldedByHand = true; }
    told.read(p);
    filterLanes(p.get("lanes") || "");
    state.shift = meta.runs.length > 1 && Number.isSafeInteger(Number(p.get("shift"))) ? Number(p.get("shift")) : 0;
    if (to > from) look(from, to);
    state.top = Math.max(0, Math.min(Number(p.get("top")) || 0, height));
    $("pattern").value = p.get("q") || "";
    if ((p.get("q") || "") !== state.pattern) await search(p.get("q") || "", true);
    if (range.length === 3 && range.every(Number.isSafeInteger) && range[2] < meta.ranks.length) await selectRange(range[0], range[1], range[2]);
    if (event.length === 2 && event.every(Number.isSafeInteger) && event[0] >= 0 && event[0] < meta.ranks.length) await select(event[0], event[1]);
    const frame = (p.get("frame") || "").split(".").map(Number);
    if (frame.length === 4 && frame.every(Number.isSafeInteger)) state.sought = { rank: frame[0], track: frame[1], row: frame[2], at: frame[3] };
    redraw();
    return true;
  }

  // ---------------------------------------------------------------- keys and mouse

  const actions = {
    w: () => zoom(0.6), s: () => zoom(1 / 0.6), "+": () => zoom(0.6), "-": () => zoom(1 / 0.6), a: () => move(-0.15), d: () => move(0.15), 0: () => look(first, last),
    f: () => state.event ? showEvent(state.event) : state.range && look(state.range.from, state.range.to),
    m: () => state.event && selectRange(state.event.begin_ns, state.event.begin_ns + Math.max(1, state.event.dur_ns), state.event.rank),
    l: () => { const other = state.event && (state.event.linked.find(e => e.event !== state.event.event) || state.event.arrows[0]); if (other) select(other.rank, other.event, "there"); },
    r: () => told.openList(), n: () => nextHit(1), p: () => nextHit(-1), "[": () => nextStep(-1), "]": () => nextStep(1), c: copyCommand, Escape: clear,
    ArrowLeft: () => neighbour(-1, 0), ArrowRight: () => neighbour(1, 0), ArrowUp: () => neighbour(0, -1), ArrowDown: () => neighbour(0, 1),
    PageUp: () => scroll(-200), PageDown: () => scroll(200), "?": () => $("help").showModal(), "/": () => { $("pattern").focus(); $("pattern").select(); },
  };
  const scroll = by => { state.top = Math.max(0, Math.min(state.top + by, Math.max(0, height - (tall - RULER)))); remember(); redraw(); };
  document.addEventListener("keydown", e => {
    const typing = e.target instanceof HTMLInputElement || $("help").open;
    if (e.ctrlKey || e.metaKey || e.altKey || typing) { if (e.key === "Escape" && typing && !$("help").open) canvas.focus(); return; }
    const onCanvas = e.target === canvas || e.target === document.body;
    if (e.key.startsWith("Arrow") && !onCanvas) return;
    const action = actions[e.key];
    if (action) { e.preventDefault(); action(); }
  });
  canvas.addEventListener("wheel", e => {
    e.preventDefault();
    if (e.ctrlKey || e.metaKey) zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), timeAt(e.offsetX));
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) move((e.deltaX || e.deltaY) / (width - gutter));
    else scroll(e.deltaY);
  }, { passive: false });
  canvas.addEventListener("pointerdown", e => {
    if (e.button > 1) return;
    canvas.setPointerCapture(e.pointerId);
    canvas.focus();
    state.drag = { x: e.offsetX, y: e.offsetY, from: state.from, to: state.to, pans: e.shiftKey || e.button === 1 || e.pointerType === "touch", moved: false, range: null };
  });
  canvas.addEventListener("pointermove", e => {
    state.mouse = { x: e.offsetX, y: e.offsetY };
    const drag = state.drag;
    if (!drag) return;
    drag.moved = drag.moved || Math.abs(e.offsetX - drag.x) + Math.abs(e.offsetY - drag.y) > 4;
    if (!drag.moved || drag.x < gutter) return;
    if (drag.pans) {
      const by = (drag.x - e.offsetX) / (width - gutter) * (drag.to - drag.from);
      look(drag.from + by, drag.to + by);
    } else {
      const a = timeAt(drag.x), b = timeAt(Math.max(gutter, e.offsetX));
      drag.range = { from: Math.min(a, b), to: Math.max(a, b) };
      redraw();
    }
  });
  canvas.addEventListener("pointerup", e => {
    const drag = state.drag, lane = laneAt(e.offsetY);
    state.drag = null;
    if (!drag) return;
    if (drag.range) { const at = laneAt(drag.y), rank = at ? at.rank : 0; selectRange(drag.range.from - shiftOf(rank), drag.range.to - shiftOf(rank), rank); return; }
    if (drag.moved) return;
    if (lane && e.offsetX < gutter) { fold(lane); return; }
    if (e.offsetY < RULER && e.offsetX >= gutter) { clickRuler(e.offsetX); return; }
    if (lane && within(lane.rank, () => told.click(lane, timeAt(e.offsetX)) || (lane.track >= 0 && loadAgain(lane, timeAt(e.offsetX))))) return;
    const found = eventAt(e.offsetX, e.offsetY);
    if (found && found.lane && found.lane.strip) panelOfFrame(found);
    else if (found) select(found.rank, found.event); else clear();
  });
  function clickRuler(px) {
    const rank = stepRank(), t = timeAt(px) - shiftOf(meta.ranks.indexOf(rank)), i = rank.steps.findIndex(s => t >= s[2] && t < s[3]);
    if (i >= 0) showStep(rank, i);
  }
  canvas.addEventListener("dblclick", e => { if (e.offsetX > gutter && state.event) showEvent(state.event); });
  function fold(lane) {
    if (lane.host || lane.layer) return;
    state.foldedByHand = true;
    if (!state.folded.delete(lane.id)) state.folded.add(lane.id);
    layOut();
    remember();
    redraw();
  }
  $("search").addEventListener("submit", e => { e.preventDefault(); if ($("pattern").value === state.pattern && state.hits) nextHit(1); else search($("pattern").value).then(() => { canvas.focus(); nextHit(1); }); });
  $("pattern").addEventListener("search", () => { if (!$("pattern").value) search(""); });
  $("only").addEventListener("input", () => filterLanes($("only").value));
  $("look").addEventListener("click", () => told.openList());
  $("command-in-sight").addEventListener("click", () => copyCommand());
  $("keys").addEventListener("click", () => $("help").showModal());
  window.addEventListener("hashchange", () => readAddress());
  new ResizeObserver(() => { if (meta) { layOut(); redraw(); } }).observe($("lanes"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readStyle(); redraw(); });

  // ---------------------------------------------------------------- what the questions say (web/layers)

  told = layers({
    shiftOf, within, repaint: () => names.forEach(paintName), find: pattern => { $("pattern").value = pattern; search(pattern); },
    state, paint, source, saved, button, copy, say, look, redraw, x, box: (x0, x1, y0, y1, colour) => board.box(x0, x1, y0, y1, inPixels(colour)), style: () => style, meta: () => meta, left: () => gutter, right: () => width,
    panel: (...children) => { $("panel").replaceChildren(...children); remember(); },
    changed: () => { foldMany(); layOut(); remember(); redraw(); },
    time: timeAt, bottom: () => tall,
    rankYs: () => { const ys = new Float64Array(meta.ranks.length); for (const l of lanes) if (l.heading && !l.host) ys[l.rank] = l.y - state.top + RULER + HEAD / 2; return ys; },
    trackY: (r, track) => { const l = laneOf(r, track); return l.y - state.top + RULER + (l.heading ? HEAD / 2 : ROW - 1); }, // below the names
    scrollToRank: r => scrollTo(lanes[byTrack.get(`${r}`)]),
  });

  // ---------------------------------------------------------------- beginning

  async function begin() {
    readStyle();
    meta = await source.meta();
    first = saved ? saved.from_ns : 0;
    last = saved ? saved.to_ns : Math.max(1, meta.end_ns);
    if (saved) {
      const named = ids(saved.tile);
      for (const [id, rows] of Object.entries(saved.tile.lanes)) keep(id, rows, saved.from_ns, 1, named);
    } else {
      new EventSource("alive").onerror = () => say("the server has ended: start 'reprise view' again");
    }
    if (meta.notes.length) { $("notes").hidden = false; $("notes").textContent = meta.notes.join("; "); }
    // of many ranks the first are open
    foldMany();
    layOut();
    $("where").before(told.bar);
    const address = location.hash;
    if (!await readAddress()) look(first, last);
    document.documentElement.dataset.ready = "yes";
    await new Promise(done => setTimeout(done, 50)); // the first picture comes before what is said about it
    await told.load();
    if (address.length > 1) told.reopen(new URLSearchParams(address.slice(1)));
    document.documentElement.dataset.told = "yes";
  }
  // Of many ranks the first is open: the one that delays the others most, once that is known. Two runs are both in sight where their
  // threads have one row each.
  function foldMany() {
    const both = meta.runs.length > 1;
    if (state.foldedByHand || (!both && meta.ranks.length <= 4)) return;
    const open = told.rankOrder().slice(0, both ? 2 : 1);
    state.folded = new Set(meta.ranks.length > 4 ? meta.ranks.map((r, i) => `${i}`).filter(id => !open.includes(Number(id))) : []);
    if (both) meta.ranks.forEach((rank, r) => rank.tracks.forEach((t, i) => { if (t[0] !== "stream" && t[0] !== "counter") state.folded.add(`${r}.${i}`); }));
  }
  window.reprise = { state, tiles, x, cost, look, select, selectRange, search, lanes: () => lanes, meta: () => meta, idle: () => !asked && !wanted.size && !waiting, told };
  begin().catch(error => { $("notes").hidden = false; $("notes").textContent = error.message; });
})().catch(error => { const notes = document.getElementById("notes"); notes.hidden = false; notes.textContent = `the data of this page cannot be read: ${error.message}`; });
