// SPDX-License-Identifier: Apache-2.0
// What the pages share: numbers and elements.
"use strict";
const common = (() => {
  // ---------------------------------------------------------------- numbers, as src/result/print_units.c prints them

  const SCALES = {
    ns: ["ns", "µs", "ms", "s"],
    bytes: ["B", "kB", "MB", "GB", "TB", "PB", "EB"],
    bps: ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"],
    flops: ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"],
    flop: ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"],
    hz: ["Hz", "kHz", "MHz", "GHz"],
  };
  // printf rounds a number exactly between two others to the even one, toFixed upwards. With n decimals only multiples of
  // 1 / 2^(n + 1) can be such numbers.
  function fixed(x, n) {
    const odd = Math.abs(x) * 2 ** (n + 1);
    if (odd % 2 === 1) {
      const low = Math.floor(Math.abs(x) * 10 ** n);
      x = Math.sign(x) * (low % 2 ? low + 1 : low) / 10 ** n;
    }
    const [whole, part] = Math.abs(x).toFixed(n).split(".");
    return (x < 0 ? "-" : "") + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
  }
  function show(v, unit) {
    if (v === null || v === undefined) return "";
    if (typeof v !== "number") return String(v);
    if (unit === "ratio") {
      const p = v * 100;
      return p !== 0 && Math.abs(p) < 0.05 ? "< 0.1 %" : fixed(p, 1) + " %";
    }
    if (unit === "count") return fixed(v, 0);
    const names = SCALES[unit];
    if (!names) return String(v);
    let size = Math.abs(v), i = 0;
    while (i + 1 < names.length && size >= (i === 0 && Number.isInteger(size) ? 1000 : 999.95)) { size /= 1000; i++; }
    const text = fixed(size, i === 0 && Number.isInteger(size) ? 0 : size < 9.995 ? 2 : 1);
    return (v < 0 ? "-" : "") + text + " " + names[i];
  }

  // A kernel's name as people know it: without its result, namespaces, and the arguments of templates and calls. Others stay as they are.
  function brief(name) {
    const call = /^(void )?(?:[\w ]*::|[\w]+ (?=[\w:]+[<(]))?.*[>)]$/.test(name) && (name.startsWith("void ") || /^[\w:()<> ]*::[^ ]*\(/.test(name));
    if (!call || !name.includes("(")) return name;
    let kept = "", depth = 0;
    for (const letter of name.replace(/^void /, "").replace(/\(anonymous namespace\)::/g, "")) {
      depth += letter === "<" || letter === "(";
      if (!depth) kept += letter;
      depth -= letter === ">" || letter === ")";
    }
    return kept.trim().replace(/.*::/, "") || name;
  }

  // ---------------------------------------------------------------- elements

  function make(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes || {}))
      if (k === "onclick" || k === "oninput") e[k] = v;
      else if (k === "style") e.style.cssText = v; // of our own making: never a text of the data
      else if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
    e.append(...children.filter(c => c !== null && c !== undefined));
    return e;
  }
  // ---------------------------------------------------------------- data of the page

  // As src/draw/web.c packs it: JSON, or base64 of gzip.
  async function unpacked(text) {
    if (/^\s*[{[n]/.test(text)) return JSON.parse(text);
    const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  return { SCALES, fixed, show, brief, make, unpacked };
})();
