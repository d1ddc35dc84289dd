// SPDX-License-Identifier: Apache-2.0
// The picture of a program. The data (src/draw/page.c) holds columns of operations, the tree of groups, and a layout of each
// different group in which all groups are closed. Opening a group stretches the rows and columns of the layout around it; order
// and alignment stay. Only what is in sight is drawn, and labels only where they can be read. Texts of the program become text
// nodes or canvas text, never markup.
"use strict";
const P = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const make = (tag, text, cls) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};

/* ---- numbers ---- */
const digits = new Uint8Array(128);
[..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].forEach((c, i) => { digits[c.charCodeAt(0)] = i; });
function reader(text) {
  let at = 0, bits = 0, held = 0;
  const byte = () => {
    while (bits < 8) { held = (held << 6 | digits[text.charCodeAt(at++)]) & 0x3fff; bits += 6; }
    bits -= 8;
    return held >> bits & 255;
  };
  return () => {
    let b = byte(), n = b & 127, unit = 128;
    while (b > 127) { b = byte(); n += (b & 127) * unit; unit *= 128; }
    return n;
  };
}
const signed = n => n % 2 ? -(n + 1) / 2 : n / 2;
function column(text, n, Type) {
  const out = new Type(n), next = reader(text);
  for (let i = 0; i < n; i++) out[i] = next();
  return out;
}
const count = n => n.toLocaleString("en");
const some = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
function short(n, unit) {
  if (!n) return "0" + (unit ? " " + unit : "");
  const k = Math.max(0, Math.min(6, Math.floor(Math.log10(n) / 3)));
  return (k ? (n / 1000 ** k).toPrecision(3) : String(n)) + (unit || k ? " " + ["", "k", "M", "G", "T", "P", "E"][k] : "") + (unit || "");
}
function time(ns) {
  return ns < 1e3 ? ns + " ns" : ns < 1e6 ? (ns / 1e3).toPrecision(3) + " µs" : ns < 1e9 ? (ns / 1e6).toPrecision(3) + " ms" : (ns / 1e9).toPrecision(3) + " s";
}

/* ---- operations ---- */
const nops = P.nops, names = P.names, comps = P.comps.map(c => ({ name: c[0], first: c[1], n: c[2], root: c[3], same: c[4], group: c[5], caller: c[6] }));
const code = column(P.code, nops, Uint32Array), shape = column(P.shape, nops, Uint32Array), scope = column(P.scope, nops, Uint32Array);
const shapeBytes = column(P.shapeBytes, P.shapes.length, Float64Array);
const flops = column(P.flops, nops, Float64Array), bytes = column(P.bytes, nops, Float64Array), live = column(P.live, nops, Float64Array);
const times = P.time ? column(P.time, nops, Float64Array).map(t => t - 1) : null;
const file = new Uint32Array(nops), line = new Uint32Array(nops), attr = new Uint32Array(nops), shard = new Uint32Array(nops);
const comp = new Uint32Array(nops);
const operandBegin = new Uint32Array(nops + 1), calls = new Map(), opens = new Uint8Array(nops);
let operand;
{
  let next = reader(P.place);
  for (let i = 0; i < nops; i++) { file[i] = next(); if (file[i]) line[i] = next(); }
  next = reader(P.attr);
  for (let i = 0; i < nops; i++) { attr[i] = next(); shard[i] = next(); }
  next = reader(P.operands);
  const all = [];
  for (let i = 0; i < nops; i++) {
    for (let n = next(); n > 0; n--) all.push(i - signed(next()));
    operandBegin[i + 1] = all.length;
  }
  operand = Uint32Array.from(all);
  next = reader(P.calls);
  for (let i = 0; i < nops; i++) {
    const n = next();
    opens[i] = n % 2;
    if (n > 1) calls.set(i, Array.from({ length: n >> 1 }, next));
  }
  comps.forEach((c, i) => comp.fill(i, c.first, c.first + c.n));
}
const operandsOf = i => operand.subarray(operandBegin[i], operandBegin[i + 1]);
let userBegin, userOf;
function usersOf(i) {
  if (!userBegin) {
    userBegin = new Uint32Array(nops + 2);
    operand.forEach(o => userBegin[o + 2]++);
    for (let k = 2; k < nops + 2; k++) userBegin[k] += userBegin[k - 1];
    userOf = new Uint32Array(operand.length);
    for (let k = 0; k < nops; k++) for (const o of operandsOf(k)) userOf[userBegin[o + 1]++] = k;
  }
  return [...new Set(userOf.subarray(userBegin[i], userBegin[i + 1]))];
}
const opcode = i => P.codes[code[i]];
const place = i => line[i] ? P.files[file[i] - 1].split("/").pop() + ":" + line[i] : "";
const shapeText = i => P.shapes[shape[i]];
const plainShape = [];
const shapeShort = i => plainShape[shape[i]] ?? (plainShape[shape[i]] = P.shapes[shape[i]].replace(/\{[^}]*\}/g, ""));

/* What an operation is, for its colour. */
const CLASSES = ["element-wise", "reduction", "matrix product", "convolution", "data movement", "control", "collective", "input or constant",
  "random", "linear algebra", "custom call or foreign", "fusion"];
const FUSION = 11, COLLECTIVE = 6, DATA = 7;
const classOfCode = P.codes.map((c, i) => c === "fusion" ? FUSION : P.classes[i] ?? 10);
const kind = i => classOfCode[code[i]];
const isData = i => kind(i) === DATA && operandBegin[i] === operandBegin[i + 1];

/* ---- groups ---- */
const ngroups = P.groupNames.length;
const [COMPUTATION, SCOPE, CLUSTER, REPEAT, LAYER, PART, INPUTS] = [0, 1, 2, 3, 4, 5, 6];
const KINDS = ["computation", "scope", "cluster", "stack of layers", "layer", "part", "inputs"];
const parent = new Int32Array(ngroups), gkind = new Uint8Array(ngroups), same = new Uint32Array(ngroups), number = new Uint32Array(ngroups);
const first = new Uint32Array(ngroups), nchild = new Uint32Array(ngroups), inside = new Uint32Array(ngroups);
const home = new Uint32Array(nops), children = new Uint32Array(nops + ngroups);
{
  let next = reader(P.groups), at = 0;
  for (let g = 0; g < ngroups; g++) {
    const up = next();
    parent[g] = up ? g - up : -1;
    gkind[g] = next();
    same[g] = g - next();
    number[g] = next();
    nchild[g] = next();
    first[g] = at;
    at += nchild[g];
  }
  next = reader(P.children);
  for (let g = 0, before = 0, i = 0; g < ngroups; g++)
    for (let k = 0; k < nchild[g]; k++) {
      children[i] = before = before + signed(next());
      if (before < nops) { home[before] = g; inside[g]++; }
      i++;
    }
  for (let g = ngroups - 1; g >= 0; g--) if (parent[g] >= 0) inside[parent[g]] += inside[g];
}
const layouts = [];
{
  const next = reader(P.layouts);
  for (let g = 0; g < ngroups; g++) {
    if (same[g] !== g) continue;
    const n = nchild[g], l = { rows: next(), right: next(), left: next(), width: next(), row: new Uint32Array(n), x: new Float32Array(n), w: new Float32Array(n) };
    const bends = [];
    l.bendBegin = new Uint32Array(n + 1);
    for (let i = 0; i < n; i++) {
      l.row[i] = next(); l.x[i] = next(); l.w[i] = next();
      for (let k = next(); k > 0; k--) bends.push(next());
      l.bendBegin[i + 1] = bends.length;
    }
    l.bends = Float32Array.from(bends);
    const m = l.edges = next();
    l.from = new Uint32Array(m); l.to = new Uint32Array(m); l.count = new Uint32Array(m); l.track = new Int32Array(m);
    for (let e = 0; e < m; e++) { l.from[e] = next(); l.to[e] = l.from[e] + signed(next()); l.count[e] = next(); l.track[e] = next() - 1; }
    layouts[g] = l;
  }
}
const layoutOf = g => layouts[same[g]];

/* What a group holds, by class and opcode; the same for all groups with the same content. */
const contents = new Map();
function contentOf(g) {
  const known = contents.get(same[g]);
  if (known) return known;
  const c = { classes: new Float64Array(CLASSES.length), codes: new Map(), collectives: 0 };
  const visit = k => {
    for (let i = first[k]; i < first[k] + nchild[k]; i++) {
      const child = children[i];
      if (child >= nops) { visit(child - nops); continue; }
      c.classes[kind(child)]++;
      c.codes.set(code[child], (c.codes.get(code[child]) || 0) + 1);
      if (kind(child) === COLLECTIVE) c.collectives++;
    }
  };
  visit(g);
  contents.set(same[g], c);
  return c;
}
const WEIGHTY = new Set([1, 2, 3, 6, 9, 10, 11]);
function digest(g) {
  const all = [...contentOf(g).codes].sort((a, b) => b[1] - a[1]);
  const weighty = all.filter(([c]) => WEIGHTY.has(classOfCode[c])), rest = all.filter(([c]) => !WEIGHTY.has(classOfCode[c]));
  return [...weighty, ...rest].slice(0, 3).map(([c, n]) => `${count(n)} ${P.codes[c]}`).join(", ");
}
/* "×30 identical layers", "×24 layers, 23 identical": how many have the most common content. */
function stackTitle(g) {
  const kinds = new Map();
  for (let i = first[g]; i < first[g] + nchild[g]; i++) { const k = same[children[i] - nops]; kinds.set(k, (kinds.get(k) || 0) + 1); }
  const most = Math.max(...kinds.values()), n = count(nchild[g]);
  return most === nchild[g] ? `×${n} identical layers` : most > 1 ? `×${n} layers, ${count(most)} identical` : `×${n} similar layers`;
}
const partsAround = g => { const up = parent[g]; let n = 0; for (let i = first[up]; i < first[up] + nchild[up]; i++) n += children[i] >= nops && gkind[children[i] - nops] === PART; return n; };
const tail = name => { const parts = name.split("/"); return parts.length > 2 ? "…/" + parts.slice(-2).join("/") : name; };
/* Values that only have a number, or nothing, are called after what they do. */
const nameOf = i => /^\d*$/.test(names[i]) ? opcode(i) + (names[i] ? " %" + names[i] : "") : names[i];
function titleOf(node) {
  if (node < nops) return nameOf(node) + (opcode(node) === "fusion" || nameOf(node).startsWith(opcode(node)) ? "" : " (" + opcode(node) + ")");
  const g = node - nops;
  switch (gkind[g]) {
    case REPEAT: return stackTitle(g);
    case LAYER: return `layer ${number[g]}`;
    case PART: return partsAround(g) > 1 ? `part ${number[g]} of ${partsAround(g)}` : "other operations";
    case INPUTS: return "inputs and constants";
    default: return tail(P.groupNames[g]);
  }
}
function subtitleOf(node) {
  const g = node - nops;
  if (gkind[g] === REPEAT) return `${count(inside[children[first[g]] - nops])} ops each: ${digest(children[first[g]] - nops)}`;
  return `${count(inside[g])} ops: ${digest(g)}`;
}

/* ---- stages: which operations there are ---- */
const stages = P.stages || null, sides = !!P.sides;
let stageOps = null, stageEdges = null;
function presence(text, n) {
  const next = reader(text), sets = stages.map(() => new Uint8Array(n));
  for (let i = 0; i < n; i++) {
    let at = 0, on = false, from = 0;
    for (let k = next(); k > 0; k--) {
      at += next();
      if (on) for (let s = from; s < at; s++) sets[s][i] = 1;
      on = !on;
      from = at;
    }
    if (on) for (let s = from; s < stages.length; s++) sets[s][i] = 1;
  }
  return sets;
}
if (stages) { stageOps = presence(P.opStages, nops); stageEdges = presence(P.operandStages, operand.length); }
let stage = 0;
const shownCount = [];
/* Operations of each group that a stage has, and the edges between its children. */
function countsOf(s) {
  if (shownCount[s]) return shownCount[s];
  const counts = new Uint32Array(ngroups), fresh = new Uint32Array(ngroups), edges = new Map();
  const index = new Uint32Array(nops + ngroups), depth = new Uint32Array(ngroups);
  for (let g = 0; g < ngroups; g++) {
    depth[g] = parent[g] < 0 ? 0 : depth[parent[g]] + 1;
    for (let k = 0; k < nchild[g]; k++) index[children[first[g] + k]] = k;
  }
  for (let i = 0; i < nops; i++) {
    if (!stageOps[s][i]) continue;
    counts[home[i]]++;
    if (s && !stageOps[s - 1][i]) fresh[home[i]]++;
    for (let k = operandBegin[i]; k < operandBegin[i + 1]; k++) {
      if (!stageEdges[s][k]) continue;
      let a = home[operand[k]], b = home[i], x = operand[k], y = i;
      while (a !== b) if (depth[a] >= depth[b]) { x = nops + a; a = parent[a]; } else { y = nops + b; b = parent[b]; }
      if (x !== y) edges.set(a * 1e7 + index[x] * 3000 + index[y], true);
    }
  }
  for (let g = ngroups - 1; g >= 0; g--) if (parent[g] >= 0) { counts[parent[g]] += counts[g]; fresh[parent[g]] += fresh[g]; }
  return shownCount[s] = { counts, fresh, edges };
}
/* Whether the stage before (side by side: the other program) does not have that edge. */
function isChangedEdge(key, s) {
  const other = sides ? 1 - s : s - 1;
  return other >= 0 && !countsOf(other).edges.has(key);
}
/* 0: absent and never seen before, 1: there, 2: new here, 3: gone since the stage before; side by side 2 and 3 mean one side only. */
function stateOf(node, s) {
  if (!stages) return 1;
  if (sides) {
    const [a, b] = node < nops ? [stageOps[0][node], stageOps[1][node]] : [countsOf(0).counts[node - nops], countsOf(1).counts[node - nops]];
    return s === 0 ? a ? b ? 1 : 3 : 0 : b ? a ? 1 : 2 : 0;
  }
  if (node < nops) {
    const is = stageOps[s][node], was = s ? stageOps[s - 1][node] : is;
    return is ? was ? 1 : 2 : was ? 3 : 0;
  }
  const c = countsOf(s), g = node - nops;
  return c.counts[g] ? c.fresh[g] === c.counts[g] ? 2 : 1 : s && countsOf(s - 1).counts[g] ? 3 : 0;
}
/* Whether something inside a closed group differs. */
function differs(g, s) {
  if (!stages) return false;
  if (!sides) return countsOf(s).fresh[g] > 0;
  return countsOf(0).counts[g] !== countsOf(1).counts[g] || hasChange(g);
}
const changes = new Map();
function hasChange(g) {
  if (changes.has(g)) return changes.get(g);
  let yes = false;
  for (let i = first[g]; i < first[g] + nchild[g] && !yes; i++) {
    const c = children[i];
    yes = c < nops ? stageOps[0][c] !== stageOps[1][c] || (opens[c] && calls.get(c).some(k => comps[k].group !== g && hasChange(comps[k].group))) : hasChange(c - nops);
  }
  changes.set(g, yes);
  return yes;
}

/* ---- places: groups that are open stretch the layout around them ---- */
const GAP_Y = 34, TRACK = 9, PAD = 14, TITLE = 28;
const open = new Uint8Array(nops + ngroups), placed = new Array(ngroups);
const boxW = new Float64Array(nops + ngroups), boxH = new Float64Array(nops + ngroups);
const absX = new Float64Array(nops + ngroups), absY = new Float64Array(nops + ngroups), seen = new Uint32Array(nops + ngroups);
let epoch = 0, visible = 0, rootComp = P.entry >= 0 ? P.entry : 0;
const canOpen = node => node >= nops || (opens[node] && calls.get(node).some(c => comps[c].n));
const closedHeight = node => node >= nops ? 48 : isData(node) ? 22 : 36;
const MOST_DEPTH = 60;
let depthNow = 0;

function sizeOf(node) {
  if (node >= nops) {
    const p = placeGroup(node - nops);
    boxW[node] = Math.max(p.w + 2 * PAD, 150); boxH[node] = p.h + TITLE + PAD;
  } else {
    let w = 0, h = 0;
    for (const c of calls.get(node)) { const p = placeGroup(comps[c].group); w += p.w + 2 * PAD; h = Math.max(h, p.h); }
    boxW[node] = Math.max(w, 150); boxH[node] = h + TITLE + PAD;
  }
}
function stretch(l, list) { // list: [x, x + w, new width]
  if (!list.length) return x => x;
  const points = [...new Set(list.flatMap(o => [o[0], o[1]]))].sort((a, b) => a - b), to = new Map();
  const ends = new Map();
  list.forEach(o => { if (!ends.has(o[1])) ends.set(o[1], []); ends.get(o[1]).push(o); });
  let before = 0, value = 0;
  const values = points.map(x => {
    value += x - before;
    before = x;
    for (const o of ends.get(x) || []) value = Math.max(value, to.get(o[0]) + o[2]);
    to.set(x, value);
    return value;
  });
  return x => {
    let lo = 0, hi = points.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; if (points[mid] <= x) lo = mid + 1; else hi = mid; }
    if (lo === 0) return x;
    if (lo === points.length) return values[lo - 1] + x - points[lo - 1];
    return values[lo - 1] + (x - points[lo - 1]) * (values[lo] - values[lo - 1]) / (points[lo] - points[lo - 1]);
  };
}
function placeGroup(g) {
  if (placed[g]) return placed[g];
  const l = layoutOf(g), n = nchild[g], p = { x: new Float64Array(n), y: new Float64Array(n), w: new Float64Array(n), h: new Float64Array(n), rowY: new Float64Array(l.rows + 1), rowH: new Float64Array(l.rows + 1) };
  const wide = [];
  depthNow++;
  for (let i = 0; i < n; i++) {
    const node = children[first[g] + i];
    p.w[i] = l.w[i];
    p.h[i] = closedHeight(node);
    if (open[node] && depthNow < MOST_DEPTH) {
      sizeOf(node);
      p.w[i] = boxW[node];
      p.h[i] = boxH[node];
      wide.push([l.x[i], l.x[i] + l.w[i], Math.max(p.w[i], l.w[i])]);
    }
    p.rowH[l.row[i]] = Math.max(p.rowH[l.row[i]], p.h[i]);
  }
  depthNow--;
  const f = p.f = stretch(l, wide), left = p.left = l.left ? l.left * TRACK + 12 : 0;
  let y = 0;
  for (let r = 0; r < l.rows; r++) { p.rowY[r] = y; y += p.rowH[r] + GAP_Y; }
  for (let i = 0; i < n; i++) {
    const a = f(l.x[i]), b = f(l.x[i] + l.w[i]);
    p.x[i] = left + (a + b) / 2 - p.w[i] / 2;
    p.y[i] = p.rowY[l.row[i]] + (p.rowH[l.row[i]] - p.h[i]) / 2;
  }
  p.inner = f(l.width);
  p.w_ = p.inner + left + (l.right ? l.right * TRACK + 12 : 0);
  p.h_ = Math.max(0, y - GAP_Y);
  return placed[g] = { ...p, boxes: p, w: p.w_, h: p.h_, cw: p.w, ch: p.h };
}
/* The operations between which an edge of a layout leads: [from, to, from, to, …], by group and children. */
let leads = null;
function leadsOf(g, a, b) {
  if (!leads) {
    leads = new Map();
    const index = new Uint32Array(nops + ngroups), depth = new Uint32Array(ngroups);
    for (let k = 0; k < ngroups; k++) {
      depth[k] = parent[k] < 0 ? 0 : depth[parent[k]] + 1;
      for (let i = 0; i < nchild[k]; i++) index[children[first[k] + i]] = i;
    }
    for (let i = 0; i < nops; i++)
      for (const o of operandsOf(i)) {
        let from = home[o], to = home[i], x = o, y = i;
        while (from !== to && from >= 0 && to >= 0) if (depth[from] >= depth[to]) { x = nops + from; from = parent[from]; } else { y = nops + to; to = parent[to]; }
        if (from !== to || (x === o && y === i)) continue;
        const key = `${from}/${index[x]}/${index[y]}`;
        if (!leads.has(key)) leads.set(key, []);
        leads.get(key).push(o, i);
      }
  }
  return leads.get(`${g}/${a}/${b}`) || [];
}
/* The box that stands for an operation: its own, or that of the closed group around it. */
function boxOf(op) {
  let node = op;
  for (let g = home[op]; seen[node] !== epoch && g >= 0; g = parent[g]) node = nops + g;
  return node;
}
/* Absolute places of all that is in open groups. */
function arrangeGroup(g, x, y) {
  const p = placeGroup(g);
  for (let i = 0; i < nchild[g]; i++) {
    const node = children[first[g] + i];
    absX[node] = x + p.x[i];
    absY[node] = y + p.y[i];
    boxW[node] = p.cw[i];
    boxH[node] = p.ch[i];
    seen[node] = epoch;
    visible++;
    if (open[node] && visible < 400000) arrangeInside(node);
  }
}
function arrangeInside(node) {
  if (++depthNow > MOST_DEPTH) { depthNow--; return; }
  if (node >= nops) arrangeGroup(node - nops, absX[node] + PAD, absY[node] + TITLE);
  else {
    let x = absX[node] + PAD;
    for (const c of calls.get(node)) { arrangeGroup(comps[c].group, x, absY[node] + TITLE); x += placeGroup(comps[c].group).w + 2 * PAD; }
  }
  depthNow--;
}
let world = { w: 1, h: 1 };
function arrange() {
  placed.length = 0;
  placed.length = ngroups;
  epoch++;
  visible = 0;
  if (!comps.length) return;
  const root = comps[rootComp].group, p = placeGroup(root);
  arrangeGroup(root, 0, 0);
  world = { w: Math.max(1, p.w), h: Math.max(1, p.h) };
  maxima = null;
  mapStale = true;
}

/* ---- colour ---- */
let palette = {};
function readPalette() {
  const s = getComputedStyle(document.documentElement), v = n => s.getPropertyValue(n).trim();
  palette = { classes: CLASSES.map((_, i) => v("--k" + i)) };
  for (const n of ["bg", "fg", "soft", "line", "card", "box", "group", "edge", "hit", "in", "out", "new", "gone", "mark", "link"]) palette[n] = v("--" + n);
  palette.dark = matchMedia("(prefers-color-scheme: dark)").matches;
}
const HEATS = [["kind", "kind of operation"], ...(times ? [["time", "measured time"]] : []), ["flops", "FLOPs"], ["bytes", "bytes moved"], ["size", "bytes of the result"], ["live", "live memory"]];
let heat = times ? "time" : "kind", maxima = null;
const heatOfOp = { time: i => Math.max(0, times[i]), flops: i => flops[i], bytes: i => bytes[i], size: i => shapeBytes[shape[i]], live: i => live[i] };
const heatUnit = v => heat === "time" ? time(v) : short(v, heat === "flops" ? "FLOP" : "B");
const heatCache = new Map();
function heatOf(node) {
  if (node < nops) return heatOfOp[heat](node);
  const key = heat + node;
  if (heatCache.has(key)) return heatCache.get(key);
  const g = node - nops;
  let v = 0;
  for (let i = first[g]; i < first[g] + nchild[g]; i++) { const h = heatOf(children[i]); v = heat === "live" ? Math.max(v, h) : v + h; }
  heatCache.set(key, v);
  return v;
}
const RAMP = [[255, 247, 188], [254, 196, 79], [236, 112, 20], [153, 32, 10]], DARK = [[46, 42, 38], [110, 74, 28], [190, 90, 24], [250, 130, 70]];
function ramp(t) {
  const r = palette.dark ? DARK : RAMP, k = Math.min(2, Math.floor(t * 3)), f = Math.min(1, t * 3 - k);
  return `rgb(${r[k].map((a, i) => Math.round(a + (r[k + 1][i] - a) * f)).join(",")})`;
}
function heatMax() {
  if (maxima !== null) return maxima;
  maxima = 0;
  for (let n = 0; n < nops + ngroups; n++) if (seen[n] === epoch && !open[n]) maxima = Math.max(maxima, heatOf(n));
  return maxima;
}
function fillOf(node) {
  if (heat !== "kind") { const v = heatOf(node), m = heatMax(); return v > 0 && m > 0 ? ramp(Math.sqrt(v / m)) : palette.box; }
  return node < nops ? palette.classes[kind(node)] : palette.box;
}
const inkOf = node => {
  if (heat === "kind" || !heatMax()) return node < nops && (kind(node) === 2 || kind(node) === 3) && !palette.dark ? "#08243c" : palette.fg;
  return Math.sqrt(heatOf(node) / heatMax()) > 0.6 ? palette.dark ? "#180a04" : "#fff" : palette.fg;
};

/* ---- drawing ---- */
const canvas = $("canvas"), ctx = canvas.getContext("2d");
let cam = { x: 0, y: 0, k: 1 }, size = { w: 1, h: 1 }, dpr = 1, selected = -1, hover = -1, hits = [], hitSet = new Set(), hitAt = -1, drawn = 0, innerEdges = 0, changedEdges = 0, frame = 0;
const MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", SANS = "system-ui, sans-serif";
const cut = (text, chars) => text.length <= chars ? text : chars < 2 ? "" : text.slice(0, Math.ceil((chars - 1) * 0.6)) + "…" + text.slice(text.length - Math.floor((chars - 1) * 0.4));
/* Inputs whose names are equal where they are cut are shown from where they differ on. */
const apart = new Map();
function cutApart(node, label, chars) {
  if (label.length <= chars) return label;
  const key = `${home[node]}/${chars}`;
  if (!apart.has(key)) {
    const same = new Map(), g = home[node];
    for (let i = first[g]; i < first[g] + nchild[g]; i++) {
      const n = children[i], text = n < nops && isData(n) ? cut(names[n], chars) : null;
      if (text !== null && names[n].length > chars) same.set(text, [...(same.get(text) || []), n]);
    }
    const labels = new Map();
    for (const [text, list] of same) {
      let common = 0;
      if (list.length > 1) while (list.every(n => names[n][common] !== undefined && names[n][common] === names[list[0]][common])) common++;
      for (const n of list) labels.set(n, list.length > 1 ? "…" + cutEnd(names[n].slice(Math.max(0, common - 2)), chars - 1) : text);
    }
    apart.set(key, labels);
  }
  return apart.get(key).get(node) || cut(label, chars);
}
const cutEnd = (text, chars) => text.length <= chars ? text : chars < 2 ? "" : text.slice(0, chars - 1) + "…";
const clamp = (v, a, b) => v < a ? a : v > b ? b : v;
let view = { x0: 0, y0: 0, x1: 0, y1: 0 };

function roundRect(x, y, w, h, r) {
  ctx.beginPath();
  if (cam.k < 0.25 || r < 1) ctx.rect(x, y, w, h); else ctx.roundRect(x, y, w, h, Math.min(r, h / 2, w / 2));
}
/* The way of an edge through the gaps between rows; also used to draw all edges of a colour as one path. */
function edgeEnds(g, l, p, e, ox, oy) {
  const a = l.from[e], b = l.to[e], ax = ox + p.x[a], aw = p.cw[a], bx = ox + p.x[b], bw = p.cw[b], t = l.track[e];
  if (t >= 0) return [ax + aw * (t % 2 ? 0.12 : 0.88), bx + bw * (t % 2 ? 0.1 : 0.9)];
  const bends = l.bendBegin[a], nbends = l.row[b] - l.row[a] - 1;
  const firstX = nbends ? ox + p.left + p.f(l.bends[bends]) : bx + bw / 2, lastX = nbends ? ox + p.left + p.f(l.bends[bends + nbends - 1]) : ax + aw / 2;
  return [clamp(firstX, ax + aw * 0.22, ax + aw * 0.78), clamp(lastX, bx + bw * 0.15, bx + bw * 0.85)];
}
/* Where an edge begins or ends at an open group it goes on to the operations inside that it is about; at an open call or fusion to
   the parameter that takes the value, or from the result. */
const MOST_INSIDE = 24, CONTROL = 5, FOREIGN = 10, parameters = new Map();
function parametersOf(c) {
  if (!parameters.has(c)) {
    const found = [];
    for (let i = comps[c].first; i < comps[c].first + comps[c].n; i++) if (opcode(i) === "parameter") found[parseInt(P.texts[attr[i]], 10) || 0] = i;
    parameters.set(c, found);
  }
  return parameters.get(c);
}
function endsInside(op, out, other) {
  if (!open[op] || !placedInside(op)) return [boxOf(op)];
  const list = calls.get(op), given = [...operandsOf(op)], passes = [CONTROL, FOREIGN, FUSION].includes(kind(op)), branches = opcode(op) === "conditional" ? 1 : 0;
  const found = out ? list.map(c => comps[c].root) : !passes ? [] : list.flatMap((c, n) => given.map((o, k) =>
    o !== other ? undefined : branches ? (k === n + branches ? parametersOf(c)[0] : undefined) : parametersOf(c).length === given.length ? parametersOf(c)[k] : undefined));
  return found.filter(i => i >= 0).map(boxOf).filter(n => seen[n] === epoch);
}
function drawInnerEdges(g, l, p, ox, oy, s) {
  const counts = stages ? countsOf(s) : null;
  ctx.beginPath();
  for (let e = 0; e < l.edges; e++) {
    const a = l.from[e], b = l.to[e], na = children[first[g] + a], nb = children[first[g] + b];
    const opened = [na, nb].map(n => open[n] && placedInside(n));
    if ((!opened[0] && !opened[1]) || (counts && !counts.edges.has(g * 1e7 + a * 3000 + b))) continue;
    const [sx, ex] = edgeEnds(g, l, p, e, ox, oy), pairs = na < nops && nb < nops ? [na, nb] : leadsOf(g, a, b), done = new Set();
    const dx = ox + p.x[a] - absX[na], dy = oy + p.y[a] - absY[na]; // side by side: the picture may be drawn elsewhere
    for (let k = 0; k < pairs.length && done.size < MOST_INSIDE; k++) {
      const out = k % 2 === 0;
      if (!opened[out ? 0 : 1] || (stages && !(stageOps[s][pairs[k]] && stageOps[s][pairs[k ^ 1]]))) continue;
      for (const node of endsInside(pairs[k], out, pairs[k ^ 1])) {
        if (node === (out ? na : nb) || done.has(node + (out ? 0 : 0.5))) continue;
        done.add(node + (out ? 0 : 0.5));
        const x = absX[node] + dx + boxW[node] / 2, y = absY[node] + dy + (out ? boxH[node] : 0), bx = out ? sx : ex, by = out ? oy + p.y[a] + p.ch[a] : oy + p.y[b];
        ctx.moveTo(bx, by);
        const m = (y + by) / 2;
        ctx.bezierCurveTo(bx, m, x, m, x, y);
        innerEdges++;
      }
    }
  }
  ctx.globalAlpha = 0.6;
  ctx.strokeStyle = palette.edge;
  ctx.lineWidth = Math.max(1, 0.5 / cam.k);
  ctx.stroke();
  ctx.globalAlpha = 1;
}
function edgePath(path, g, l, p, e, ox, oy) {
  const a = l.from[e], b = l.to[e];
  const ay = oy + p.y[a] + p.ch[a], by = oy + p.y[b], t = l.track[e];
  if (t < 0) {
    const bends = l.bendBegin[a], nbends = l.row[b] - l.row[a] - 1;
    let [x, end] = edgeEnds(g, l, p, e, ox, oy), y = ay;
    path.moveTo(x, y);
    y = oy + p.rowY[l.row[a]] + p.rowH[l.row[a]]; // straight out of its row, so that it does not cross neighbours that are open
    path.lineTo(x, y);
    const step = (nx, ny) => {
      if (Math.abs(nx - x) < 1) path.lineTo(nx, ny); else { const m = (y + ny) / 2; path.bezierCurveTo(x, m, nx, m, nx, ny); }
      x = nx; y = ny;
    };
    for (let k = 0; k < nbends; k++) {
      const r = l.row[a] + 1 + k, nx = ox + p.left + p.f(l.bends[bends + k]);
      step(nx, oy + p.rowY[r]);
      y = oy + p.rowY[r] + p.rowH[r];
      path.lineTo(x, y);
    }
    step(end, oy + p.rowY[l.row[b]]);
    path.lineTo(end, by);
    return;
  }
  const right = t % 2 === 0, k = t >> 1, tx = right ? ox + p.left + p.inner + 10 + k * TRACK : ox + p.left - 10 - k * TRACK;
  const [sx, ex] = edgeEnds(g, l, p, e, ox, oy), off = 6 + (k % 6) * 3;
  const y1 = oy + p.rowY[l.row[a]] + p.rowH[l.row[a]] + off, y2 = oy + p.rowY[l.row[b]] - off - 3, r = 5;
  path.moveTo(sx, ay);
  path.lineTo(sx, y1 - r);
  path.arcTo(sx, y1, tx, y1, r);
  path.arcTo(tx, y1, tx, y2, r);
  path.arcTo(tx, y2, ex, y2, r);
  path.arcTo(ex, y2, ex, by, r);
  path.lineTo(ex, by);
}
function arrow(g, l, p, e, ox, oy) {
  const [, x] = edgeEnds(g, l, p, e, ox, oy), by = oy + p.y[l.to[e]];
  ctx.moveTo(x - 3.2, by - 6); ctx.lineTo(x + 3.2, by - 6); ctx.lineTo(x, by);
}
function drawEdges(g, ox, oy, s) {
  const l = layoutOf(g), p = placeGroup(g), near = cam.k > 0.45, counts = stages ? countsOf(s) : null, many = l.edges > 1500 && cam.k < 0.12;
  if (cam.k < 0.03 || many) return;
  const heavy = [], changed = [];
  for (let pass = 0; pass < 2; pass++) { // the long ones first, fainter
    ctx.beginPath();
    for (let e = 0; e < l.edges; e++) {
      const a = l.from[e], b = l.to[e], t = l.track[e];
      if ((t >= 0) !== (pass === 0)) continue;
      const ya = oy + p.y[a], yb = oy + p.y[b];
      if (Math.max(ya + p.ch[a], yb) < view.y0 || Math.min(ya, yb) > view.y1) continue;
      if (t < 0 && (Math.max(p.x[a] + p.cw[a], p.x[b] + p.cw[b]) + ox < view.x0 || Math.min(p.x[a], p.x[b]) + ox > view.x1) && l.row[b] - l.row[a] === 1) continue;
      if (counts && !counts.edges.has(g * 1e7 + a * 3000 + b)) continue;
      if (counts && isChangedEdge(g * 1e7 + a * 3000 + b, s)) { changed.push(e); continue; }
      if (l.count[e] > 3 && pass) { heavy.push(e); continue; }
      edgePath(ctx, g, l, p, e, ox, oy);
      drawn++;
    }
    ctx.globalAlpha = pass ? 0.85 : 0.42;
    ctx.strokeStyle = palette.edge;
    ctx.lineWidth = Math.max(pass ? 1.2 : 1, 0.5 / cam.k);
    ctx.stroke();
  }
  for (const inputs of [true, false]) for (let width = 2; width <= 4; width++) { // bundles
    const some = heavy.filter(e => (gkind[children[first[g] + l.from[e]] - nops] === INPUTS) === inputs && clamp(Math.round(1.2 + Math.log2(l.count[e]) * 0.4), 2, 4) === width);
    if (!some.length) continue;
    ctx.beginPath();
    some.forEach(e => edgePath(ctx, g, l, p, e, ox, oy));
    ctx.globalAlpha = inputs ? 0.3 : 0.6;
    ctx.lineWidth = width;
    ctx.stroke();
  }
  if (changed.length) {
    ctx.beginPath();
    changed.forEach(e => edgePath(ctx, g, l, p, e, ox, oy));
    ctx.globalAlpha = 0.85;
    ctx.strokeStyle = sides && s === 0 ? palette.gone : palette.new;
    ctx.lineWidth = Math.max(1.4, 0.6 / cam.k);
    ctx.stroke();
    drawn += changed.length;
    changedEdges += changed.length;
  }
  ctx.globalAlpha = 1;
  if (!near) return;
  ctx.beginPath();
  for (let e = 0; e < l.edges; e++) {
    const b = l.to[e], by = oy + p.y[b], bx = ox + p.x[b];
    if (by < view.y0 || by > view.y1 || bx > view.x1 || bx + p.cw[b] < view.x0) continue;
    if (counts && !counts.edges.has(g * 1e7 + l.from[e] * 3000 + b)) continue;
    arrow(g, l, p, e, ox, oy);
  }
  ctx.fillStyle = palette.edge;
  ctx.fill();
}
function outline(node, s) {
  const state = stateOf(node, s);
  if (node === selected) return [palette.link, 2.5];
  if (hitSet.has(node)) return [palette.hit, 3];
  if (state === 2) return [palette.new, 2.2];
  if (state === 3) return [palette.gone, 2.2];
  if (node === hover) return [palette.soft, 1.6];
  if (node < nops && kind(node) === COLLECTIVE) return [palette.out, 1.6];
  return [node >= nops || canOpen(node) ? palette.edge : palette.line, 1];
}
function drawOp(node, x, y, w, h, s) {
  const state = stateOf(node, s), there = state === 1 || state === 2 || (state === 3 && sides), px = h * cam.k;
  const [color, width] = outline(node, s);
  if (px < 3) { if (there) { ctx.fillStyle = heat === "kind" && kind(node) === DATA ? palette.line : fillOf(node); ctx.fillRect(x, y, w, h); } return; }
  roundRect(x, y, w, h, isData(node) ? 11 : 5);
  if (there) { ctx.fillStyle = state === 3 && sides ? mixGone : state === 2 ? mixNew : fillOf(node); ctx.fill(); } else { ctx.globalAlpha = state === 3 ? 0.8 : 0.25; ctx.setLineDash([4, 3]); }
  ctx.strokeStyle = color;
  ctx.lineWidth = width * Math.max(1, 0.6 / cam.k);
  ctx.stroke();
  ctx.setLineDash([]);
  if (px > 11 && (there || state === 3)) {
    const chars = Math.floor((w - 12) / 6.25);
    ctx.fillStyle = there ? inkOf(node) : palette.soft;
    ctx.textBaseline = "middle";
    if (isData(node)) {
      ctx.font = "10.5px " + MONO;
      const value = opcode(node) === "constant" && P.texts[attr[node]] ? P.texts[attr[node]] : names[node];
      const label = shapeShort(node) !== "?" && value.length + shapeShort(node).length + 1 <= chars ? value + " " + shapeShort(node) : value;
      ctx.fillText(opcode(node) === "constant" ? cut(label, chars) : cutApart(node, label, chars), x + 8, y + h / 2 + 0.5);
    } else {
      const extra = (canOpen(node) ? 2 : 0) + (shard[node] ? 2 : 0);
      ctx.font = "600 11px " + MONO;
      ctx.fillText(cut(labelOf(node), Math.floor((w - 12) / 6.7) - extra), x + 7, y + 12);
      ctx.font = "10.5px " + MONO;
      ctx.globalAlpha *= 0.8;
      ctx.fillText(cutEnd(secondLine(node), chars), x + 7, y + 26);
      if (canOpen(node)) ctx.fillText("⊞", x + w - 15, y + 11);
      if (shard[node]) ctx.fillText("▦", x + w - (canOpen(node) ? 29 : 15), y + 11);
    }
  }
  ctx.globalAlpha = 1;
}
const labelOf = i => (kind(i) === COLLECTIVE ? "⇄ " : "") + nameOf(i);
function secondLine(i) {
  if (heat !== "kind" && heatOf(i) > 0) return heatUnit(heatOf(i)) + "  " + shapeShort(i);
  if (kind(i) === COLLECTIVE) { const m = /(?:replica_groups|source_target_pairs)=(\S+)/.exec(P.texts[attr[i]]); if (m) return shapeShort(i) + " over " + m[1]; }
  if (code[i] >= P.known) return opcode(i) + (shape[i] ? " " + shapeShort(i) : "");
  return shapeShort(i);
}
let mixNew = "", mixGone = "";
function drawClosedGroup(node, x, y, w, h, s) {
  const g = node - nops, state = stateOf(node, s), px = h * cam.k, [color, width] = outline(node, s);
  if (state === 0 || (state === 3 && !sides)) ctx.globalAlpha = 0.25;
  if (gkind[g] === REPEAT && px > 6) for (let k = 2; k > 0; k--) {
    roundRect(x + 4 * k, y + 4 * k, w, h, 7);
    ctx.fillStyle = palette.box; ctx.fill(); ctx.strokeStyle = palette.edge; ctx.lineWidth = 1; ctx.stroke();
  }
  roundRect(x, y, w, h, 7);
  ctx.fillStyle = sides && state === 3 ? mixGone : state === 2 ? mixNew : fillOf(node);
  ctx.fill();
  ctx.strokeStyle = differs(g, s) && state === 1 && node !== selected ? palette.new : color;
  ctx.lineWidth = width * Math.max(1, 0.6 / cam.k);
  ctx.stroke();
  if (px > 4 && heat === "kind") { // what it consists of
    const c = contentOf(g).classes, all = c.reduce((a, b) => a + b, 0);
    let at = x + 7;
    c.forEach((n, i) => { if (n) { const part = (w - 14) * n / all; ctx.fillStyle = i === DATA ? palette.line : palette.classes[i]; ctx.fillRect(at, y + h - 7, part, 4); at += part; } });
  }
  if (px > 12) {
    ctx.textBaseline = "middle";
    ctx.fillStyle = inkOf(node);
    ctx.font = "600 12px " + SANS;
    ctx.fillText(cut("⊞ " + titleOf(node), Math.floor((w - 14) / 6.4)), x + 8, y + 13);
    ctx.font = "10.5px " + SANS;
    ctx.globalAlpha *= 0.8;
    const sub = heat !== "kind" && heatOf(node) > 0 ? heatUnit(heatOf(node)) + " · " + subtitleOf(node) : stages ? `${count(countsOf(s).counts[g])} ops` + (sides && differs(g, s) ? ', differs' : '') : subtitleOf(node);
    ctx.fillText(cutEnd(sub, Math.floor((w - 14) / 5.9)), x + 8, y + 29);
  }
  ctx.globalAlpha = 1;
  const inHits = hitSet.size && px > 8 ? hitsIn(g) : 0;
  if (inHits) {
    ctx.fillStyle = palette.hit;
    ctx.beginPath(); ctx.arc(x + w - 6, y + 6, 9, 0, 7); ctx.fill();
    ctx.fillStyle = "#000"; ctx.font = "600 10px " + SANS; ctx.textAlign = "center"; ctx.fillText(inHits > 99 ? "99+" : String(inHits), x + w - 6, y + 7); ctx.textAlign = "left";
  }
}
let hitCounts = null;
function hitsIn(g) {
  if (!hitCounts) {
    hitCounts = new Uint32Array(ngroups);
    hits.forEach(i => { for (let k = home[i]; k >= 0; k = parent[k]) hitCounts[k]++; });
  }
  return hitCounts[g];
}
function drawOpenBox(node, x, y, w, h, s) {
  const [color, width] = outline(node, s);
  roundRect(x, y, w, h, 9);
  ctx.fillStyle = palette.group;
  ctx.globalAlpha = 0.72;
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.strokeStyle = color;
  ctx.lineWidth = width * Math.max(1, 0.7 / cam.k);
  ctx.stroke();
}
/* Titles of open groups stay readable: they are drawn in the size of the screen, inside what is in sight. */
const titles = [];
function drawTitles() {
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
  ctx.textBaseline = "middle";
  for (const t of titles) {
    if (t.w < 46 || t.h < 30) continue;
    ctx.font = "600 12px " + SANS;
    let chars = Math.floor((t.w - 12) / 6.2), text = cut("⊟ " + t.text, chars), tw = ctx.measureText(text).width;
    while (text && tw > t.w - 14) { text = cut("⊟ " + t.text, chars -= 2); tw = ctx.measureText(text).width; }
    if (!text) continue;
    ctx.fillStyle = palette.group;
    ctx.globalAlpha = 0.9;
    ctx.fillRect(t.x + 4, t.y + 3, tw + 8, 17);
    ctx.globalAlpha = 1;
    ctx.fillStyle = palette.soft;
    ctx.fillText(text, t.x + 8, t.y + 12);
  }
  titles.length = 0;
}
function drawGroup(g, ox, oy, s, area) {
  const p = placeGroup(g), l = layoutOf(g);
  if (ox > view.x1 || oy > view.y1 || ox + p.w < view.x0 || oy + p.h < view.y0) return;
  if (p.h * cam.k / Math.max(1, l.rows) < 0.7 && nchild[g] > 60) { // too small for boxes: a block
    ctx.fillStyle = palette.edge;
    ctx.globalAlpha = 0.35;
    ctx.fillRect(ox, oy, p.w, p.h);
    ctx.globalAlpha = 1;
    return;
  }
  drawEdges(g, ox, oy, s);
  for (let i = 0; i < nchild[g]; i++) {
    const x = ox + p.x[i], y = oy + p.y[i], w = p.cw[i], h = p.ch[i];
    if (x > view.x1 || y > view.y1 || x + w < view.x0 || y + h < view.y0) continue;
    const node = children[first[g] + i];
    drawn++;
    if (open[node] && placedInside(node)) {
      drawOpenBox(node, x, y, w, h, s);
      drawInside(node, x, y, s, area);
      const sx = Math.max(area.x, area.x + (x - cam.x) * cam.k), sy = Math.max(sides ? 26 : 0, (y - cam.y) * cam.k);
      const ex = Math.min(area.x + area.w, area.x + (x + w - cam.x) * cam.k), ey = (y + h - cam.y) * cam.k;
      titles.push({ x: sx, y: sy, w: ex - sx, h: ey - sy, text: titleOf(node) });
    } else if (node >= nops) drawClosedGroup(node, x, y, w, h, s);
    else drawOp(node, x, y, w, h, s);
  }
  if (cam.k > 0.2 && l.edges <= 3000) drawInnerEdges(g, l, p, ox, oy, s);
}
const placedInside = node => node >= nops ? !!placed[node - nops] : calls.get(node).every(c => placed[comps[c].group]);
function drawInside(node, x, y, s, area) {
  if (++depthNow > MOST_DEPTH) { depthNow--; return; }
  if (node >= nops) drawGroup(node - nops, x + PAD, y + TITLE, s, area);
  else {
    let at = x + PAD;
    for (const c of calls.get(node)) { drawGroup(comps[c].group, at, y + TITLE, s, area); at += placeGroup(comps[c].group).w + 2 * PAD; }
  }
  depthNow--;
}
/* The box that stands for an operation: itself, or the closed group around it. */
function boxFor(op) {
  let found = -1;
  const path = pathTo(op);
  for (const node of path) { if (seen[node] !== epoch) break; found = node; if (!open[node]) break; }
  return found;
}
function drawLinks() {
  if (selected < 0 || selected >= nops) return;
  const me = boxFor(selected);
  if (me < 0) return;
  const link = (from, to, color) => {
    if (from < 0 || to < 0 || from === to) return;
    const x0 = absX[from] + boxW[from] / 2, y0 = absY[from] + boxH[from], x1 = absX[to] + boxW[to] / 2, y1 = absY[to], d = Math.max(24, Math.abs(y1 - y0) / 2.2);
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0, y0 + d, x1, y1 - d, x1, y1);
    ctx.strokeStyle = color;
    ctx.stroke();
  };
  ctx.lineWidth = Math.max(2, 1.6 / cam.k);
  ctx.globalAlpha = 0.85;
  [...new Set([...operandsOf(selected)].map(boxFor))].slice(0, 300).forEach(b => link(b, me, palette.in));
  [...new Set(usersOf(selected).map(boxFor))].slice(0, 300).forEach(b => link(me, b, palette.out));
  ctx.globalAlpha = 1;
}
function areas() {
  if (!sides) return [{ x: 0, w: size.w, stage }];
  return [{ x: 0, w: size.w / 2, stage: 0 }, { x: size.w / 2, w: size.w / 2, stage: 1 }];
}
function draw() {
  frame = 0;
  drawn = changedEdges = innerEdges = 0;
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
  ctx.fillStyle = palette.bg;
  ctx.fillRect(0, 0, size.w, size.h);
  if (!comps.length || !comps[rootComp].n) {
    ctx.fillStyle = palette.soft; ctx.font = "14px " + SANS; ctx.fillText("this program has no operations", 20, 30);
    return;
  }
  for (const a of areas()) {
    ctx.save();
    ctx.beginPath(); ctx.rect(a.x, 0, a.w, size.h); ctx.clip();
    ctx.setTransform(cam.k * dpr, 0, 0, cam.k * dpr, (a.x - cam.x * cam.k) * dpr, -cam.y * cam.k * dpr);
    view = { x0: cam.x, y0: cam.y, x1: cam.x + a.w / cam.k, y1: cam.y + size.h / cam.k };
    drawGroup(comps[rootComp].group, 0, 0, a.stage, a);
    drawLinks();
    drawTitles();
    if (sides) {
      ctx.font = "600 12px " + SANS; ctx.fillStyle = palette.card; ctx.fillRect(a.x, 0, a.w, 24);
      ctx.fillStyle = palette.fg; ctx.fillText(cut((a.stage ? "right: " : "left: ") + stages[a.stage].split("/").pop(), Math.floor(a.w / 7.2)), a.x + 12, 12);
      ctx.strokeStyle = palette.line; ctx.strokeRect(a.x - 0.5, -1, a.w, size.h + 2);
    }
    ctx.restore();
  }
  drawMap();
}
const redraw = () => { if (!frame) frame = requestAnimationFrame(draw); };

/* ---- the small map ---- */
const map = $("map"), mapCtx = map.getContext("2d");
let mapStale = true, mapPicture = null, mapScale = 1;
function drawMap() {
  const fits = world.w * cam.k <= size.w * 1.02 && world.h * cam.k <= size.h * 1.02;
  map.hidden = fits || size.w < 500;
  if (map.hidden) return;
  if (mapStale) {
    mapScale = Math.min(160 / world.w, 220 / world.h);
    map.width = Math.max(24, Math.ceil(world.w * mapScale));
    map.height = Math.max(24, Math.ceil(world.h * mapScale));
    mapPicture = document.createElement("canvas");
    mapPicture.width = map.width; mapPicture.height = map.height;
    const c = mapPicture.getContext("2d");
    let n = 0;
    for (let node = nops + ngroups - 1; node >= 0 && n < 60000; node--) {
      if (seen[node] !== epoch || open[node]) continue;
      n++;
      c.fillStyle = heat !== "kind" ? fillOf(node) : node < nops ? kind(node) === DATA || kind(node) === 4 ? palette.line : palette.classes[kind(node)] : palette.edge;
      c.fillRect(absX[node] * mapScale, absY[node] * mapScale, Math.max(1, boxW[node] * mapScale), Math.max(1, boxH[node] * mapScale));
    }
    mapStale = false;
  }
  mapCtx.clearRect(0, 0, map.width, map.height);
  mapCtx.drawImage(mapPicture, 0, 0);
  mapCtx.strokeStyle = palette.link;
  mapCtx.lineWidth = 1.5;
  mapCtx.strokeRect(cam.x * mapScale, cam.y * mapScale, areas()[0].w / cam.k * mapScale, size.h / cam.k * mapScale);
}
function mapMove(e) {
  const b = map.getBoundingClientRect();
  cam.x = (e.clientX - b.left) / mapScale - areas()[0].w / cam.k / 2;
  cam.y = (e.clientY - b.top) / mapScale - size.h / cam.k / 2;
  redraw();
}
map.onpointerdown = e => { map.setPointerCapture(e.pointerId); mapMove(e); };
map.onpointermove = e => { if (e.buttons) mapMove(e); };

/* ---- the camera ---- */
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
let flight = 0;
function fly(to, ms = 260) {
  const from = { ...cam }, begin = performance.now();
  cancelAnimationFrame(flight);
  if (calm || !ms) { cam = to; redraw(); return; }
  const step = now => {
    const t = Math.min(1, Math.max(0, (now - begin) / ms)), f = t * t * (3 - 2 * t), k = from.k * (to.k / from.k) ** f, w = areas()[0].w, h = size.h;
    const cx = (from.x + w / from.k / 2) * (1 - f) + (to.x + w / to.k / 2) * f, cy = (from.y + h / from.k / 2) * (1 - f) + (to.y + h / to.k / 2) * f;
    cam = t < 1 ? { k, x: cx - w / k / 2, y: cy - h / k / 2 } : to;
    draw();
    if (t < 1) flight = requestAnimationFrame(step);
  };
  flight = requestAnimationFrame(step);
}
function fitCamera(whole) {
  const w = areas()[0].w, k0 = Math.min((w - 40) / world.w, (size.h - 40) / world.h), k = whole ? Math.min(1.2, k0) : clamp(k0, 0.8, 1.15);
  const tall = world.h * k > size.h, wide = world.w * k > w;
  return { k, x: wide ? (whole || !tall ? (world.w - w / k) / 2 : Math.max(-20, (world.w - w / k) / 2)) : (world.w - w / k) / 2, y: tall ? -24 / k : (world.h - size.h / k) / 2 };
}
function zoomAt(x, y, factor) {
  const k = clamp(cam.k * factor, 0.002, 6);
  cam = { k, x: cam.x + x / cam.k - x / k, y: cam.y + y / cam.k - y / k };
  redraw();
}
function centre(node, ms) {
  const k = clamp(cam.k, 0.75, 1.4), w = areas()[0].w, tall = boxH[node] * k > size.h * 0.8;
  fly({ k, x: absX[node] + boxW[node] / 2 - w / k / 2, y: tall ? absY[node] - 40 / k : absY[node] + boxH[node] / 2 - size.h / k / 2 }, ms);
}
// All of the picture stays in sight where a window changes its size, or a phone is turned, before anything was moved.
let fitted = null, screenSize = "";
const showAll = () => { cam = fitted = fitCamera(); };
function resize() {
  const now = `${innerWidth} ${innerHeight}`, turned = now !== screenSize && fitted && cam.k === fitted.k && cam.x === fitted.x && cam.y === fitted.y, b = $("view").getBoundingClientRect();
  dpr = window.devicePixelRatio || 1;
  size = { w: b.width, h: b.height };
  canvas.width = Math.max(1, Math.round(b.width * dpr));
  canvas.height = Math.max(1, Math.round(b.height * dpr));
  screenSize = now;
  if (turned) showAll();
  draw();
}

/* ---- opening and closing ---- */
function setOpen(node, yes) {
  if (!canOpen(node) || open[node] === (yes ? 1 : 0)) return;
  const was = seen[node] === epoch, x = absX[node], y = absY[node];
  open[node] = yes ? 1 : 0;
  arrange();
  if (was && seen[node] === epoch) { cam.x += absX[node] - x; cam.y += absY[node] - y; } // it stays where it is on the screen
  redraw();
}
function unfold(limit) {
  let list = [];
  for (let n = 0; n < nops + ngroups; n++) if (seen[n] === epoch && !open[n] && canOpen(n)) list.push(n);
  list = list.filter(n => n >= nops).concat(list.filter(n => n < nops));
  let room = limit;
  for (const n of list) {
    room -= n >= nops ? nchild[n - nops] : calls.get(n).reduce((a, c) => a + nchild[comps[c].group], 0);
    if (room < 0) break;
    open[n] = 1;
  }
  arrange();
}
/* At first: groups from the top as long as there is room for them; stacks of layers stay closed. A group that is most of its
   surroundings opens always. */
function openSome() {
  open.fill(0);
  if (!comps.length) return;
  const queue = [comps[rootComp].group];
  let room = 90 - nchild[queue[0]];
  while (queue.length) {
    const g = queue.shift();
    for (let i = first[g]; i < first[g] + nchild[g]; i++) {
      const node = children[i], k = node - nops;
      if (node < nops || gkind[k] === REPEAT || gkind[k] === INPUTS) continue;
      if (inside[k] < inside[g] * 0.6 && nchild[k] > room) continue;
      open[node] = 1;
      queue.push(k);
      room -= nchild[k];
    }
  }
  arrange();
  for (let turn = 0; turn < 3; turn++) { // a program that is one call or loop: what is inside it
    const boxes = [];
    for (let n = 0; n < nops + ngroups; n++) if (seen[n] === epoch && !open[n] && !(n < nops && isData(n))) boxes.push(n);
    const inner = boxes.filter(n => n < nops && canOpen(n));
    if (boxes.length > 8 || !inner.length) break;
    inner.forEach(n => { open[n] = 1; });
    arrange();
  }
}
/* The boxes around an operation from the outermost one inwards, and itself; null: it is in another program. */
function pathTo(op) {
  const path = [op];
  for (let at = op, turns = 0; turns < 200; turns++) {
    for (let g = home[at]; parent[g] >= 0; g = parent[g]) path.unshift(nops + g);
    if (comp[at] === rootComp || comps[comp[at]].caller < 0) break;
    at = comps[comp[at]].caller;
    path.unshift(at);
  }
  return path;
}
function reveal(op, ms) {
  const path = pathTo(op);
  const top = comp[path.find(n => n < nops)];
  let from = top;
  for (let at = op, turns = 0; turns < 200 && comp[at] !== rootComp && comps[comp[at]].caller >= 0; turns++) { at = comps[comp[at]].caller; from = comp[at]; }
  if (from !== rootComp) { rootComp = from; $("root").value = String(from); open.fill(0); }
  for (const node of pathTo(op).slice(0, -1)) if (canOpen(node)) open[node] = 1;
  arrange();
  select(op);
  centre(op, ms);
}
function toggle(node) { setOpen(node, !open[node]); }

/* ---- the mouse ---- */
function areaAt(x) { return areas().find(a => x >= a.x && x < a.x + a.w) || areas()[0]; }
function nodeIn(g, x, y) {
  const p = placeGroup(g);
  for (let i = 0; i < nchild[g]; i++) {
    const bx = p.x[i], by = p.y[i];
    if (x < bx || y < by || x > bx + p.cw[i] || y > by + p.ch[i]) continue;
    const node = children[first[g] + i];
    if (!open[node] || !placedInside(node)) return node;
    let at = bx + PAD, found = -1;
    const parts = node >= nops ? [node - nops] : calls.get(node).map(c => comps[c].group);
    for (const k of parts) { if (found < 0) found = nodeIn(k, x - at, y - by - TITLE); at += placeGroup(k).w + 2 * PAD; }
    return found >= 0 ? found : node;
  }
  return -1;
}
const nodeAt = (sx, sy) => { const a = areaAt(sx); return comps.length ? nodeIn(comps[rootComp].group, cam.x + (sx - a.x) / cam.k, cam.y + sy / cam.k) : -1; };
let drag = null;
const spot = e => { const b = canvas.getBoundingClientRect(); return [e.clientX - b.left, e.clientY - b.top]; };
canvas.onpointerdown = e => { canvas.setPointerCapture(e.pointerId); drag = { x: e.clientX, y: e.clientY, cam: { ...cam }, moved: false }; cancelAnimationFrame(flight); canvas.focus({ preventScroll: true }); };
canvas.onpointermove = e => {
  if (drag && e.buttons) {
    const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
    if (Math.abs(dx) + Math.abs(dy) > 4) { drag.moved = true; canvas.style.cursor = "grabbing"; }
    if (drag.moved) { cam = { k: cam.k, x: drag.cam.x - dx / cam.k, y: drag.cam.y - dy / cam.k }; $("hint").hidden = true; redraw(); }
    return;
  }
  const [x, y] = spot(e), node = nodeAt(x, y);
  if (node !== hover) { hover = node; redraw(); }
  showHint(node, x, y);
};
canvas.onpointerup = e => {
  canvas.style.cursor = "grab";
  const was = drag;
  drag = null;
  if (!was || was.moved) return;
  const [x, y] = spot(e), node = nodeAt(x, y);
  if (node < 0) { select(-1); return; }
  const a = areaAt(x), wx = cam.x + (x - a.x) / cam.k;
  const onSign = canOpen(node) && (open[node] || node >= nops ? wx < absX[node] + 24 / Math.min(1, cam.k) : wx > absX[node] + boxW[node] - 20);
  if (onSign) toggle(node);
  select(node);
};
canvas.ondblclick = e => { const [x, y] = spot(e), node = nodeAt(x, y); if (node >= 0 && canOpen(node)) toggle(node); };
canvas.onpointerleave = () => { hover = -1; $("hint").hidden = true; redraw(); };
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  const [x, y] = spot(e), a = areaAt(x);
  if (e.shiftKey && !e.ctrlKey) { cam.x += (e.deltaX || e.deltaY) / cam.k; redraw(); return; }
  zoomAt(x - a.x, y, Math.exp(-clamp(e.deltaY * (e.deltaMode ? 30 : 1), -240, 240) * (e.ctrlKey ? 0.006 : 0.0022)));
}, { passive: false });
function showHint(node, x, y) {
  const h = $("hint");
  h.hidden = node < 0;
  if (node < 0) return;
  const lines = node < nops ? [`${nameOf(node)} = ${cut(shapeText(node), 120)} ${opcode(node)}`, P.scopes[scope[node]], place(node), shard[node] ? "sharding " + P.texts[shard[node]] : ""] :
    [titleOf(node), P.groupNames[node - nops], subtitleOf(node), open[node] ? "" : "double click: open"];
  if (heat !== "kind" && heatOf(node) > 0) lines.push(`${HEATS.find(t => t[0] === heat)[1]}: ${heatUnit(heatOf(node))}`);
  h.textContent = [...new Set(lines)].filter(t => t).map(t => cut(t, 300)).join("\n");
  h.style.left = Math.min(x + 14, Math.max(0, size.w - 470)) + "px";
  h.style.top = (y > size.h - 110 ? y - 20 - h.offsetHeight : y + 16) + "px";
}

/* ---- details ---- */
function link(i, text) {
  const a = make("a", text || nameOf(i));
  a.tabIndex = 0;
  a.title = opcode(i) + " " + shapeText(i);
  a.onclick = e => { e.stopPropagation(); reveal(i); };
  a.onkeydown = e => { if (e.key === "Enter") reveal(i); };
  return a;
}
function list(title, ids, note) {
  const box = make("div"), ul = make("ul");
  box.append(make("h3", `${title} (${count(ids.length)})`), ul);
  [...ids].slice(0, 100).forEach(i => { const li = make("li"); li.append(link(i), " ", make("small", `${opcode(i)} ${shapeShort(i)}`)); ul.append(li); });
  if (ids.length > 100) ul.append(make("li", `and ${count(ids.length - 100)} more`));
  if (!ids.length) ul.append(make("li", note, "soft"));
  return box;
}
function facts(rows) {
  const dl = make("dl");
  rows.forEach(([k, v]) => { if (v !== "" && v !== undefined) { const dd = make("dd"); dd.append(v); dl.append(make("dt", k), dd); } });
  return dl;
}
function detailOfOp(i) {
  const out = [make("h2", nameOf(i)), facts([["opcode", opcode(i)], ["shape", shapeText(i)], ["size", shapeBytes[shape[i]] ? short(shapeBytes[shape[i]], "B") : ""],
    ["FLOPs", flops[i] ? short(flops[i], "FLOP") : ""], ["bytes moved", bytes[i] ? short(bytes[i], "B") : ""], ["live memory", short(live[i], "B")],
    ["measured", times && times[i] >= 0 ? time(times[i]) : ""], ["attributes", P.texts[attr[i]]], ["sharding", P.texts[shard[i]]],
    ["scope", P.scopes[scope[i]]], ["source", line[i] ? P.files[file[i] - 1] + ":" + line[i] : ""], ["in", comps[comp[i]].name], ["stages", stagesOf(i)]])];
  out.push(list("operands", [...operandsOf(i)], "none"), list("users", usersOf(i), comps[comp[i]].root === i ? "none: it is the result" : "none"));
  const called = calls.get(i);
  if (called) {
    const box = make("div"), ul = make("ul");
    box.append(make("h3", "calls"), ul);
    called.forEach(c => {
      const li = make("li"), a = make("a", comps[c].name);
      a.onclick = () => { if (canOpen(i)) { setOpen(i, true); centre(i); } else showList(c); };
      li.append(a, " ", make("small", `${count(comps[c].n)} operations`));
      ul.append(li);
    });
    out.push(box);
  }
  return out;
}
function stagesOf(i) {
  if (!stages) return "";
  if (sides) return stageOps[0][i] ? stageOps[1][i] ? "both programs" : "only left" : "only right";
  const on = stages.map((_, s) => stageOps[s][i]), a = on.indexOf(1), b = on.lastIndexOf(1);
  return a < 0 ? "" : a === b ? stages[a] : a === 0 && b === stages.length - 1 ? "all" : `from ${stages[a]} to ${stages[b]}`;
}
function detailOfGroup(node) {
  const g = node - nops, c = contentOf(g), sum = h => { const was = heat; heat = h; const v = heatOf(node); heat = was; return v; };
  const out = [make("h2", titleOf(node)), facts([["kind", KINDS[gkind[g]]], ["name", P.groupNames[g]], ["operations", count(inside[g])], ["FLOPs", short(sum("flops"), "FLOP")],
    ["bytes moved", short(sum("bytes"), "B")], ["measured", times ? time(sum("time")) : ""], ["collectives", c.collectives ? count(c.collectives) : ""]])];
  const button = make("button", open[node] ? "close" : "open");
  button.onclick = () => { toggle(node); select(node); };
  out.push(button);
  const ul = make("ul");
  [...c.codes].sort((a, b) => b[1] - a[1]).slice(0, 30).forEach(([k, n]) => ul.append(make("li", `${count(n)} ${P.codes[k]}`)));
  out.push(make("h3", "opcodes"), ul);
  return out;
}
function select(node) {
  selected = node;
  const box = $("detail"), was = box.hidden;
  box.hidden = node < 0;
  if (node >= 0) {
    const close = make("button", "×", "close");
    close.title = "close (Esc)";
    close.onclick = () => select(-1);
    box.replaceChildren(close, ...(node < nops ? detailOfOp(node) : detailOfGroup(node)));
    box.scrollTop = 0;
  }
  if (node >= 0 && node < nops) history.replaceState(null, "", "#" + encodeURIComponent(names[node]));
  document.querySelectorAll("tr.on").forEach(e => e.classList.remove("on"));
  if (node >= 0 && $("o" + node)) $("o" + node).classList.add("on");
  if (was !== box.hidden) resize(); else redraw();
}

/* ---- search: words, or conditions as in reprise graph --grep ---- */
const part = { op: opcode, name: i => names[i], shape: shapeText, line: place, scope: i => P.scopes[scope[i]], in: i => comps[comp[i]].name };
const all = i => [names[i], opcode(i), shapeText(i), place(i), P.scopes[scope[i]], P.texts[attr[i]]].join(" ").toLowerCase();
function tests(text) {
  return text.split(/\s+/).filter(w => w).map(w => {
    const m = /^(op|name|shape|line|scope|in)([=~])(.*)$/.exec(w);
    if (!m) return i => all(i).includes(w.toLowerCase());
    const get = part[m[1]];
    return m[2] === "=" ? i => get(i) === m[3] : i => get(i).includes(m[3]);
  });
}
function search(text) {
  const t = tests(text);
  hits = [];
  if (t.length) for (let i = 0; i < nops; i++) if (t.every(f => f(i))) hits.push(i);
  const exact = text.trim();
  if (hits.length > 1) { const k = hits.findIndex(i => names[i] === exact); if (k > 0) hits.unshift(hits.splice(k, 1)[0]); }
  hitSet = new Set(hits);
  hitCounts = null;
  hitAt = -1;
  $("count").textContent = t.length ? `${count(hits.length)} of ${count(nops)}` : "";
  const box = $("hits");
  box.replaceChildren(...hits.slice(0, 60).map((i, k) => {
    const li = make("li", `${nameOf(i)}  ${opcode(i)} ${shapeShort(i)}  ${place(i)}`);
    li.onmousedown = e => { e.preventDefault(); jump(k); box.hidden = true; };
    return li;
  }));
  box.hidden = !hits.length;
  if (!$("pane").hidden) { if (t.length) fillList(hits); else showList(rootComp); }
  redraw();
}
function jump(k, ms) {
  if (!hits.length) return;
  hitAt = (k + hits.length) % hits.length;
  $("count").textContent = `${count(hitAt + 1)} of ${count(hits.length)}`;
  [...$("hits").children].forEach((li, i) => li.classList.toggle("on", i === hitAt));
  reveal(hits[hitAt], ms);
}

/* ---- the table ---- */
function row(i) {
  const r = make("tr");
  r.id = "o" + i;
  r.onclick = () => reveal(i);
  const cost = times ? times[i] >= 0 ? time(times[i]) : "" : flops[i] ? short(flops[i]) : "";
  r.append(make("td", (comps[comp[i]].root === i ? "ROOT " : "") + names[i]), make("td", opcode(i)), make("td", shapeText(i)), make("td", place(i)), make("td", cost, "n"));
  const reads = make("td"), from = [...operandsOf(i)];
  from.slice(0, 4).forEach((x, k) => reads.append(k ? ", " : "", link(x)));
  if (from.length > 4) reads.append(" +" + (from.length - 4));
  r.append(reads, make("td", P.scopes[scope[i]], "soft"), make("td", P.texts[attr[i]], "soft"));
  if (i === selected) r.className = "on";
  return r;
}
function fillList(ids) {
  const table = make("table"), head = make("thead"), body = make("tbody"), tr = make("tr"), more = make("button", "", "more");
  ["name", "opcode", "shape", "source", times ? "time" : "flops", "operands", "scope", "attributes"].forEach(x => tr.append(make("th", x)));
  head.append(tr);
  table.append(head, body);
  $("list").replaceChildren(table);
  let at = 0;
  const add = n => {
    const end = Math.min(ids.length, at + n);
    more.remove();
    for (; at < end; at++) body.append(row(ids[at]));
    if (at < ids.length) { more.textContent = `show more (${count(ids.length - at)})`; $("list").append(more); }
  };
  more.onclick = () => add(2000);
  add(300);
}
const buttons = new Map();
function showList(c) {
  if ($("pane").hidden) togglePane();
  buttons.forEach(b => b.classList.remove("on"));
  if (!comps.length) return;
  buttons.get(comps[c].same)?.classList.add("on");
  fillList(Array.from({ length: comps[c].n }, (_, k) => comps[c].first + k));
}
function sidebar() {
  if (buttons.size) return;
  const nav = $("nav"), alike = new Map(), used = new Map();
  const entry = (text, note, onclick) => { const b = make("button"); b.append(make("span", text), make("small", note)); b.title = text; b.onclick = onclick; nav.append(b); return b; };
  comps.forEach((c, i) => { if (!alike.has(c.same)) alike.set(c.same, []); alike.get(c.same).push(i); });
  nav.append(make("h2", "computations"));
  [...alike.values()].sort((a, b) => b.includes(P.entry) - a.includes(P.entry) || comps[b[0]].n - comps[a[0]].n).slice(0, 500).forEach(g => {
    const text = (g.includes(P.entry) ? "ENTRY " : "") + (g.length > 1 ? count(g.length) + " × " : "") + comps[g[0]].name;
    buttons.set(comps[g[0]].same, entry(text, count(comps[g[0]].n), () => showList(g[0])));
  });
  for (let i = 0; i < nops; i++) used.set(code[i], (used.get(code[i]) || 0) + 1);
  nav.append(make("h2", "opcodes"));
  [...used].sort((a, b) => b[1] - a[1]).forEach(([k, n]) => entry(P.codes[k], count(n), () => { $("query").value = "op=" + P.codes[k]; search($("query").value); $("hits").hidden = true; }));
}
function togglePane() {
  const pane = $("pane");
  pane.hidden = !pane.hidden;
  $("table").setAttribute("aria-pressed", String(!pane.hidden));
  if (!pane.hidden) { sidebar(); if (hits.length) fillList(hits); else showList(rootComp); }
  resize();
}

/* ---- the header ---- */
function legend() {
  const box = $("legend"), items = [];
  if (heat === "kind") {
    const used = new Set();
    for (let i = 0; i < nops; i++) used.add(kind(i));
    CLASSES.forEach((c, i) => { if (used.has(i)) { const s = make("span"), b = make("i"); b.style.background = palette.classes[i]; s.append(b, c); items.push(s); } });
  } else {
    const r = make("span", undefined, "ramp"), m = heatMax();
    r.style.background = `linear-gradient(90deg, ${[0, 0.33, 0.66, 1].map(ramp).join(",")})`;
    items.push(make("span", "0"), r, make("span", `${heatUnit(m)} (${HEATS.find(t => t[0] === heat)[1]}${heat === "time" && P.timeOf ? ", " + P.timeOf : ""})`));
  }
  if (shard.some(s => s)) items.push(make("span", "▦ sharded"));
  if (stages) for (const [c, t] of sides ? [["gone", "only left"], ["new", "only right"]] : [["new", "new"], ["gone", "removed"]]) {
    const s = make("span"), b = make("i"); b.style.background = palette[c]; s.append(b, t); items.push(s);
  }
  box.replaceChildren(...items);
}
function setHeat(h) { heat = h; maxima = null; mapStale = true; $("heat").value = h; legend(); redraw(); }
function setStage(s) {
  stage = clamp(s, 0, stages.length - 1);
  $("stage").value = String(stage);
  $("stageName").textContent = stages[stage];
  let added = 0, removed = 0, n = 0;
  for (let i = 0; i < nops; i++) { const is = stageOps[stage][i], was = stage ? stageOps[stage - 1][i] : is; n += is; added += is && !was; removed += was && !is; }
  $("stageNote").textContent = `${stage + 1} of ${stages.length}: ${count(n)} operations` + (added || removed ? `, ${count(added)} new, ${count(removed)} removed` : stage ? ", the same as before" : "");
  redraw();
}
function setRoot(c) { rootComp = c; openSome(); select(-1); showAll(); redraw(); legend(); }
const HELP = ["/ search, Enter or n next, p previous", "f fit, + and − zoom, arrows move", "double click or Enter: open or close", "e open one more level, c close all", "t table, Esc nothing selected", "[ and ] stage before and after"];
function header() {
  $("title").textContent = document.title = P.name || "program";
  $("title").title = P.name;
  const here = s => stageOps[s].reduce((n, is) => n + is, 0); // of stages the numbers are beside the slider
  $("facts").textContent = sides ? `${some(here(0), "operation")} left, ${count(here(1))} right, ${count(stageOps[0].reduce((n, is, i) => n + (is & stageOps[1][i]), 0))} in both`
    : stages ? "" : `${some(nops, "operation")} in ${some(comps.length, "computation")}` + (P.totalFlops ? ", " + short(P.totalFlops, "FLOP") : "");
  $("facts").title = `hash ${P.hash}`;
  HEATS.forEach(([k, t]) => { const o = make("option", t); o.value = k; $("heat").append(o); });
  $("heat").value = heat;
  $("heat").onchange = e => setHeat(e.target.value);
  const roots = comps.map((c, i) => i).filter(i => i === P.entry || (comps[i].caller < 0 && comps[i].n > 6));
  roots.sort((a, b) => (b === P.entry) - (a === P.entry));
  roots.slice(0, 300).forEach(i => { const o = make("option", (i === P.entry ? "entry: " : "") + comps[i].name); o.value = String(i); $("root").append(o); });
  $("rootLabel").hidden = roots.length < 2;
  $("root").onchange = e => setRoot(Number(e.target.value));
  $("fit").onclick = () => fly(fitCamera(true));
  $("unfold").onclick = () => { unfold(4000); legend(); redraw(); };
  $("fold").onclick = () => { open.fill(0); arrange(); fly(fitCamera()); };
  $("table").onclick = togglePane;
  $("help").onclick = () => { select(-1); const ul = make("ul"); HELP.forEach(t => ul.append(make("li", t))); $("detail").replaceChildren(make("h2", "keys"), ul); $("detail").hidden = false; resize(); };
  let timer;
  $("query").oninput = () => { clearTimeout(timer); timer = setTimeout(() => search($("query").value), 120); };
  $("query").onfocus = () => { $("hits").hidden = !hits.length; };
  $("query").onblur = () => { $("hits").hidden = true; };
  $("query").onkeydown = e => {
    if (e.key === "Enter") { clearTimeout(timer); if (hitAt < 0) search($("query").value); jump(hitAt + (e.shiftKey ? -1 : 1)); $("hits").hidden = true; }
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); jump(hitAt + (e.key === "ArrowDown" ? 1 : -1)); }
    if (e.key === "Escape") { $("query").value = ""; search(""); canvas.focus(); }
    e.stopPropagation();
  };
  if (stages && !sides) {
    $("slider").hidden = false;
    $("stage").max = String(stages.length - 1);
    $("stage").oninput = e => setStage(Number(e.target.value));
    $("earlier").onclick = () => setStage(stage - 1);
    $("later").onclick = () => setStage(stage + 1);
    setStage(stages.length - 1);
  }
}
document.onkeydown = e => {
  if (e.target.tagName === "INPUT" || e.target.tagName === "SELECT" || e.ctrlKey || e.metaKey || e.altKey) return;
  const w = areas()[0].w, keys = {
    "/": () => $("query").focus(), f: () => fly(fitCamera(true)), 0: () => fly(fitCamera(true)), "+": () => zoomAt(w / 2, size.h / 2, 1.4), "=": () => zoomAt(w / 2, size.h / 2, 1.4),
    "-": () => zoomAt(w / 2, size.h / 2, 1 / 1.4), ArrowLeft: () => { cam.x -= 120 / cam.k; redraw(); }, ArrowRight: () => { cam.x += 120 / cam.k; redraw(); },
    ArrowUp: () => { cam.y -= 120 / cam.k; redraw(); }, ArrowDown: () => { cam.y += 120 / cam.k; redraw(); },
    PageUp: () => { cam.y -= size.h * 0.8 / cam.k; redraw(); }, PageDown: () => { cam.y += size.h * 0.8 / cam.k; redraw(); },
    Enter: () => { if (e.target === canvas && selected >= 0 && canOpen(selected)) { toggle(selected); select(selected); } }, e: () => $("unfold").click(), c: () => $("fold").click(), t: togglePane,
    n: () => jump(hitAt + 1), p: () => jump(hitAt - 1), "[": () => stages && setStage(stage - 1), "]": () => stages && setStage(stage + 1), "?": () => $("help").click(),
    Escape: () => { $("query").value = ""; search(""); select(-1); },
  };
  if (!keys[e.key]) return;
  if (!(e.key === "Enter" && e.target !== canvas)) e.preventDefault();
  keys[e.key]();
};
function readColours() {
  readPalette();
  mixNew = palette.dark ? "#123b2e" : "#d6f2e6";
  mixGone = palette.dark ? "#4a211d" : "#fbdcd8";
  mapStale = true;
  legend();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });
new ResizeObserver(resize).observe($("view"));

function openAddress() {
  const h = decodeURIComponent(location.hash.slice(1)), i = h ? names.indexOf(h) : -1;
  if (h.startsWith("q=")) { $("query").value = h.slice(2); search(h.slice(2)); jump(0, 0); $("hits").hidden = true; } else if (i >= 0) reveal(i, 0);
}
readColours();
openSome();
header();
legend();
resize();
showAll();
draw();
openAddress();
window.onhashchange = openAddress;
window.reprise = { get cam() { return cam; }, set cam(c) { cam = c; draw(); }, get world() { return world; }, get selected() { return selected; }, get stage() { return stage; }, get drawn() { return drawn; }, get changedEdges() { return changedEdges; }, get innerEdges() { return innerEdges; }, cutApart, get visible() { return visible; },
  nops, names, open, absX, absY, boxW, boxH, gkind, canOpen, titleOf, reveal, setOpen, unfold, arrange, draw, fitCamera, setHeat, setStage, stateOf, isSeen: n => seen[n] === epoch, endsInside, nodeAt, groups: ngroups, select };
document.documentElement.dataset.ready = "yes";
