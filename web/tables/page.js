// SPDX-License-Identifier: Apache-2.0
// Records of an answer (src/draw/web.h) as objects and as tables that can be sorted and filtered.
"use strict";
const tables = (() => {
  const { fixed, show, make } = common;
  const SHORT = 128, WIDE = 4; // flags of fields: RP_LABEL, RP_WIDE

  // ---------------------------------------------------------------- records

  const objects = (fields, row) => {
    const out = {};
    fields.forEach((f, i) => { out[f[0]] = unpack(row[i]); });
    return out;
  };
  // A record becomes an object; a list of records {fields, rows: [object, …]}.
  function unpack(v) {
    if (v && v.rows) return { fields: v.fields, rows: v.rows.map(r => objects(v.fields, r)) };
    if (v && v.row) return Object.assign(objects(v.fields, v.row), { "": v.fields });
    return v;
  }
  // ---------------------------------------------------------------- tables

  // options: rows at first, filter, name of the table
  function table(source, options = {}) {
    const columns = source.fields.filter(f => f[1] && source.rows.some(r => r[f[0]] !== null && typeof r[f[0]] !== "object"));
    const state = { sort: null, down: true, filter: "", all: false, wide: options.wide };
    const head = make("tr"), body = make("tbody");
    const count = make("small", { role: "status" });
    const more = make("button", { class: "more", type: "button", onclick: () => { state.all = true; draw(); } });
    const whole = r => r.name !== undefined && r.name !== null ? r.name : "";
    const shown = () => columns.filter(f => state.wide || !(f[4] & WIDE));

    function cell(f, r) {
      const v = r[f[0]];
      if (f[2] === "text") {
        const named = f[4] & SHORT || f[0] === "name";
        const td = make("td", { class: named ? "name" + (state.wide ? " whole" : "") : "text", title: named ? whole(r) || null : null });
        if (options.chip && f === columns[0]) td.append(make("span", { class: "chip", style: `background:${options.chip(r)}` }));
        td.append(v === null ? "" : state.wide && f[4] & SHORT ? whole(r) : String(v));
        return td;
      }
      const change = /(^|_)delta_ns$/.test(f[0]) && v ? (v > 0 ? " up" : " down") : "";
      const td = make("td", { class: "n" + (f[2] === "ratio" ? " ratio" : "") + change }, (change === " up" ? "+" : "") + show(v, f[2]));
      if (f[2] === "ratio" && v > 0) td.prepend(make("i", { style: `width:calc((100% - 12px) * ${Math.min(v, 1)})` }));
      return td;
    }
    function draw() {
      const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
      let rows = source.rows.filter(r => {
        const text = source.fields.map(f => f[2] === "text" && typeof r[f[0]] === "string" ? r[f[0]] : "").join(" ").toLowerCase();
        return words.every(w => text.includes(w));
      });
      if (state.sort) {
        const key = state.sort, sign = state.down ? -1 : 1;
        rows = rows.slice().sort((a, b) => {
          const x = a[key], y = b[key];
          if (x === y) return 0;
          if (x === null || y === null) return x === null ? 1 : -1;
          return (x < y ? -1 : 1) * sign;
        });
      }
      const n = state.all ? rows.length : Math.min(rows.length, options.rows || 50);
      body.replaceChildren(...rows.slice(0, n).map(r => make("tr", {}, ...shown().map(f => cell(f, r)))));
      head.replaceChildren(...shown().map(f => {
        const sorted = state.sort === f[0];
        return make("th", {
          scope: "col", class: f[2] === "text" ? null : "n", title: f[3],
          "aria-sort": sorted ? (state.down ? "descending" : "ascending") : "none",
        }, make("button", { type: "button", onclick: () => {
          state.down = sorted ? !state.down : f[2] !== "text";
          state.sort = f[0];
          draw();
          head.children[shown().indexOf(f)].firstChild.focus(); // the heading is a new element
        } }, f[1]));
      }));
      more.textContent = `show all ${fixed(rows.length, 0)} rows`;
      more.hidden = n >= rows.length;
      count.textContent = state.filter ? `${rows.length} of ${source.rows.length} rows` : "";
    }
    const tools = options.filter && make("div", { class: "tools" },
      make("input", { type: "search", placeholder: "filter by words of the name", "aria-label": "filter " + options.filter,
        oninput: e => { state.filter = e.target.value; draw(); } }),
      columns.some(f => f[4] & WIDE) ? make("button", { type: "button", "aria-pressed": "false", onclick: e => {
        state.wide = !state.wide;
        e.target.setAttribute("aria-pressed", state.wide);
        e.target.textContent = state.wide ? "fewer columns, short names" : "all columns, whole names";
        draw();
      } }, "all columns, whole names") : null, count);
    draw();
    return make("div", { class: options.filter ? "wide" : "" }, tools || null,
      make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), body)), more);
  }
  return { unpack, table };
})();
