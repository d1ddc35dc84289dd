// SPDX-License-Identifier: Apache-2.0
// A flame graph: frames of a call tree as boxes whose width is their share, the largest child first or in the order of time. Only boxes that
// are wider than a pixel are visited: of sorted children the first that is too narrow ends its row, and the others are found by their place.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("canvas"), paint = canvas.getContext("2d", { alpha: false }), query = document.getElementById("query");
const detail = document.getElementById("detail"), found = document.getElementById("found");
const ROW = 18, kinds = ["other", "python", "native", "kernel", "part"];

function addUp(own, parent) {
  const all = new Float64Array(own.length);
  for (let i = own.length - 1; i >= 0; i--) {
    all[i] += own[i];
    if (i) all[parent[i]] += all[i];
  }
  return all;
}
// A tree of the file. Node 0 is everything; node i + 1 is the i-th of the file. A parent comes before its children. The children of node i
// are kids[first[i]] to kids[first[i + 1] - 1].
function grow(list, inOrder) {
  const n = list.length / 3 + 1, tree = { n, parent: new Int32Array(n), frame: new Int32Array(n), self: new Float64Array(n), first: new Int32Array(n + 1), kids: new Int32Array(n), inOrder };
  tree.parent[0] = tree.frame[0] = -1;
  for (let i = 1; i < n; i++) {
    tree.parent[i] = list[3 * i - 3] + 1;
    tree.frame[i] = list[3 * i - 2];
    tree.self[i] = list[3 * i - 1];
    tree.first[tree.parent[i] + 1]++;
  }
  for (let i = 0; i < n; i++) tree.first[i + 1] += tree.first[i];
  const next = tree.first.slice();
  for (let i = 1; i < n; i++) tree.kids[next[tree.parent[i]]++] = i;
  tree.total = addUp(tree.self, tree.parent);
  tree.before = new Float64Array(n); // what the children before a child weigh
  settle(tree);
  return tree;
}
function settle(tree) {
  for (let i = 0; i < tree.n; i++) {
    const a = tree.first[i], b = tree.first[i + 1];
    if (!tree.inOrder && b - a > 1) tree.kids.subarray(a, b).sort((x, y) => tree.total[y] - tree.total[x]);
    for (let k = a, sum = 0; k < b; k++) {
      tree.before[tree.kids[k]] = sum;
      sum += tree.total[tree.kids[k]];
    }
  }
}
// With --by function, frames of one function are one frame, whatever its line: nodes of the same function below the same node become one,
// in the tree and in the weights of the other run.
function joinFunctions() {
  const functions = new Map(), of = data.frames.map(([name, file], i) => {
    const key = name + "\n" + file;
    if (!functions.has(key)) functions.set(key, i);
    return functions.get(key);
  });
  const nodes = [], base = [], known = new Map(), number = [];
  for (let i = 0; 3 * i < data.nodes.length; i++) {
    const up = data.nodes[3 * i] < 0 ? -1 : number[data.nodes[3 * i]], frame = of[data.nodes[3 * i + 1]], key = up + ":" + frame;
    const at = known.has(key) ? known.get(key) : base.length;
    if (at === base.length) {
      known.set(key, at);
      nodes.push(up, frame, 0);
      base.push(0);
    }
    number[i] = at;
    nodes[3 * at + 2] += data.nodes[3 * i + 2];
    base[at] += data.base ? data.base[i] : 0;
  }
  data.nodes = nodes;
  if (data.base) data.base = base;
  if (data.runs) for (let i = 1; i < data.runs.length; i += 3) data.runs[i] = of[data.runs[i]];
  for (const f of data.frames) f[2] = 0;
}
if (data.joined) joinFunctions();
const trees = [grow(data.nodes, false)];
if (data.runs) trees.push(grow(data.runs, true));
data.nodes = data.runs = null;
let tree = trees[0], { n, parent, frame, self, total } = tree;
// Of two runs the page has the weights of both; the widths are those of one, and `b` changes to the other.
let otherSelf = data.base ? Float64Array.from([0, ...data.base]) : null, otherTotal = data.base ? addUp(otherSelf, parent) : null, isBase = false;
function exchange() {
  if (!data.base) return;
  for (const [a, b] of [[self, otherSelf], [total, otherTotal]]) for (let i = 0; i < n; i++) [a[i], b[i]] = [b[i], a[i]];
  isBase = !isBase;
  document.getElementById("runs").textContent = isBase ? "new run" : "base";
  settle(tree);
  zoom(0);
}
function reorder() {
  if (trees.length < 2) return;
  tree = trees[trees.indexOf(tree) ^ 1];
  ({ n, parent, frame, self, total } = tree);
  document.getElementById("order").textContent = tree.inOrder ? "largest first" : "time order";
  zoomed = chosen = scroll = 0;
  search();
}
// How much more of everything a frame has in the new run than in the base, from -1 to 1.
function growth(i) {
  const here = total[0] ? total[i] / total[0] : 0, there = otherTotal[0] ? otherTotal[i] / otherTotal[0] : 0;
  return isBase ? there - here : here - there;
}
// Over the color of frames that did not change, the stronger the more they did: a quarter of everything is the full color.
function shade(b) {
  const g = Math.max(-1, Math.min(1, 4 * growth(b.node)));
  paint.globalAlpha = Math.abs(g);
  paint.fillStyle = g > 0 ? style.more : style.less;
  paint.fillRect(b.x, b.y, Math.max(b.w - 1, 0.5), ROW - 1);
  paint.globalAlpha = 1;
}

let zoomed = 0, chosen = 0, below = true, scroll = 0, hits = null, boxes = [], style = {}, placed = null, waiting = false;
const widths = new Map();

const name = i => i ? data.frames[frame[i]][0] : "everything";
function amount(v) {
  if (data.unit === "ns") return v >= 1e9 ? (v / 1e9).toFixed(2) + " s" : v >= 1e6 ? (v / 1e6).toFixed(2) + " ms" : (v / 1e3).toFixed(1) + " µs";
  if (data.unit === "bytes") return v >= 1 << 20 ? (v / (1 << 20)).toFixed(1) + " MiB" : v + " bytes";
  return v.toLocaleString("en");
}
const percent = v => (total[0] ? 100 * v / total[0] : 0).toFixed(1) + " %";
function describe(i) {
  const f = i ? data.frames[frame[i]] : ["", "", 0, 0], place = f[1] ? ` (${f[1]}${f[2] ? ":" + f[2] : ""})` : "";
  const compared = data.base ? `; ${isBase ? "new run" : "base"}: ${amount(otherTotal[i])}, itself ${amount(otherSelf[i])}` : "";
  return `${name(i)}${place}: ${amount(total[i])}, ${percent(total[i])}; itself ${amount(self[i])}, ${percent(self[i])}${compared}`;
}

function resize() {
  const r = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1, css = getComputedStyle(document.documentElement);
  canvas.width = Math.round(r.width * scale);
  canvas.height = Math.round(r.height * scale);
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  for (const c of [...kinds, "more", "less", "hit", "fg", "bg", "line"]) style[c] = css.getPropertyValue("--" + c).trim();
  placed = null;
  draw();
}

// Children in the order of time that are narrower than a pixel: the pixel where they begin gets the box of the widest; the next child is one
// after that pixel, found by bisection, so that a row costs as many steps as it has pixels. Returns the last child of the pixel.
function narrow(out, i, k, x, scale, depth) {
  const from = tree.before[tree.kids[k]], end = tree.first[i + 1];
  let low = k + 1, high = end;
  while (low < high) {
    const mid = (low + high) >> 1;
    if ((tree.before[tree.kids[mid]] - from) * scale < 1) low = mid + 1; else high = mid;
  }
  let best = tree.kids[k];
  const last = total[tree.kids[low - 1]] * scale >= 1 && low - 1 > k ? low - 2 : low - 1;
  for (let m = k; m <= Math.min(last, k + 8); m++) if (total[tree.kids[m]] > total[best]) best = tree.kids[m];
  const w = (tree.before[tree.kids[last]] + total[tree.kids[last]] - from) * scale;
  if (w >= 0.25) out.push({ node: best, x: x + from * scale, w: Math.max(w, 0.5), depth, several: true });
  return last;
}

// The boxes that can be seen: the frames around the zoomed one at full width, then what is inside it.
function place(width) {
  const out = [], above = [];
  for (let i = zoomed; i >= 0; i = parent[i]) above.unshift(i);
  above.forEach((i, depth) => out.push({ node: i, x: 0, w: width, depth }));
  const scale = total[zoomed] > 0 ? width / total[zoomed] : 0, stack = [zoomed, 0, above.length];
  while (stack.length) {
    const depth = stack.pop(), x = stack.pop(), i = stack.pop();
    for (let k = tree.first[i]; k < tree.first[i + 1]; k++) {
      const c = tree.kids[k], w = total[c] * scale, at = x + tree.before[c] * scale;
      if (w < 1) {
        if (!tree.inOrder) break;
        k = narrow(out, i, k, x, scale, depth);
        continue;
      }
      out.push({ node: c, x: at, w, depth });
      stack.push(c, at, depth + 1);
    }
  }
  return out;
}

// Boxes stay where they are until something else is zoomed, the order changes or the page gets another size.
function arrange(width) {
  if (placed && placed.tree === tree && placed.zoomed === zoomed && placed.isBase === isBase && placed.width === width) return;
  placed = { tree, zoomed, isBase, width };
  boxes = place(width);
}
// The part of a name that fits. A name is measured once: that takes longer than drawing it.
function fitting(i, room) {
  const text = name(i);
  let wide = widths.get(text);
  if (wide === undefined) widths.set(text, wide = paint.measureText(text).width);
  return wide <= room ? text : text.slice(0, Math.max(Math.floor(text.length * room / wide) - 1, 0)) + "…";
}
const colorOf = b => hits && hits[b.node] ? style.hit : !b.node ? style.line : style[data.base ? "other" : kinds[data.frames[frame[b.node]][3]]];

// Boxes color by color and then all names: a change of the color costs more than a box.
function draw() {
  const width = canvas.clientWidth, height = canvas.clientHeight, colors = new Map(), seen = [];
  waiting = false;
  arrange(width);
  for (const b of boxes) {
    b.y = below ? b.depth * ROW - scroll : height - (b.depth + 1) * ROW + scroll;
    if (b.y > height || b.y < -ROW) continue;
    const color = colorOf(b), list = colors.get(color);
    seen.push(b);
    if (list) list.push(b); else colors.set(color, [b]);
  }
  paint.fillStyle = style.bg;
  paint.fillRect(0, 0, width, height);
  for (const [color, list] of colors) {
    paint.fillStyle = color;
    for (const b of list) paint.fillRect(b.x, b.y, b.several ? b.w : Math.max(b.w - 1, 0.5), ROW - 1);
  }
  if (data.base) for (const b of seen) if (b.node && !(hits && hits[b.node])) shade(b);
  paint.font = "12px system-ui, sans-serif";
  paint.textBaseline = "middle";
  paint.fillStyle = style.fg;
  paint.strokeStyle = style.fg;
  for (const b of seen) {
    if (b.node === chosen) paint.strokeRect(b.x + 0.5, b.y + 0.5, Math.max(b.w - 2, 1), ROW - 2);
    if (b.w > 24) paint.fillText(fitting(b.node, b.w - 6), b.x + 3, b.y + ROW / 2);
  }
  tell(describe(chosen));
}
// In the next picture, once, however often it is asked for.
function drawSoon() {
  if (!waiting) requestAnimationFrame(() => { if (waiting) draw(); });
  waiting = true;
}
function tell(text) { if (detail.textContent !== text) detail.textContent = text; }

function choose(i) { chosen = i; draw(); }
function zoom(i) { zoomed = chosen = i; scroll = 0; draw(); }
function search() {
  const text = query.value.trim().toLowerCase();
  hits = null;
  found.textContent = "";
  if (text) {
    const fits = data.frames.map(f => f[0].toLowerCase().includes(text) || f[1].toLowerCase().includes(text));
    const inside = new Uint8Array(n);
    let sum = 0;
    hits = new Uint8Array(n);
    for (let i = 1; i < n; i++) {
      hits[i] = fits[frame[i]] ? 1 : 0;
      inside[i] = inside[parent[i]] | hits[i];
      if (hits[i] && !inside[parent[i]]) sum += total[i];
    }
    found.textContent = `${fits.filter(Boolean).length} found: ${amount(sum)}, ${percent(sum)}`;
  }
  draw();
}
function boxAt(e) {
  const r = canvas.getBoundingClientRect(), x = e.clientX - r.x, y = e.clientY - r.y;
  return boxes.find(b => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + ROW);
}
// Left and right go to the neighbours, down and up to the first child and the parent.
function move(key) {
  const kids = i => tree.kids.subarray(tree.first[i], tree.first[i + 1]), list = chosen ? kids(parent[chosen]) : [0], at = list.indexOf(chosen);
  if (key === "ArrowLeft" && at > 0) choose(list[at - 1]);
  if (key === "ArrowRight" && at + 1 < list.length) choose(list[at + 1]);
  if (key === (below ? "ArrowDown" : "ArrowUp") && kids(chosen).length) choose(kids(chosen)[0]);
  if (key === (below ? "ArrowUp" : "ArrowDown") && chosen) choose(parent[chosen]);
}

canvas.addEventListener("click", e => { const b = boxAt(e); if (b) zoom(b.node); });
canvas.addEventListener("mousemove", e => { const b = boxAt(e); tell(describe(b ? b.node : chosen)); });
canvas.addEventListener("wheel", e => { scroll = Math.max(0, scroll + (below ? e.deltaY : -e.deltaY)); drawSoon(); e.preventDefault(); }, { passive: false });
query.addEventListener("input", search);
document.getElementById("flip").addEventListener("click", () => { below = !below; scroll = 0; draw(); });
const runs = document.getElementById("runs");
runs.hidden = !data.base;
runs.addEventListener("click", exchange);
const order = document.getElementById("order");
order.hidden = trees.length < 2;
order.addEventListener("click", reorder);
document.getElementById("whole").addEventListener("click", () => zoom(0));
document.addEventListener("keydown", e => {
  if (e.key === "Escape") { query.value = ""; search(); zoom(0); canvas.focus(); return; }
  if (e.target === query) return;
  if (e.key === "/") { query.focus(); e.preventDefault(); }
  else if (e.key === "f") { below = !below; scroll = 0; draw(); }
  else if (e.key === "b") exchange();
  else if (e.key === "t") reorder();
  else if (e.key === "Enter") zoom(chosen);
  else if (e.key.startsWith("Arrow")) { move(e.key); e.preventDefault(); }
});
window.addEventListener("resize", resize);
resize();
window.reprise = { get boxes() { return boxes; }, get zoomed() { return zoomed; }, get chosen() { return chosen; }, name, growth, zoom, draw, reorder, get total() { return total; }, get inOrder() { return tree.inOrder; }, get isBase() { return isBase; } };
document.documentElement.dataset.ready = "yes";
