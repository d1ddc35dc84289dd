/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page holds the program as a few arrays of numbers and tables of strings, and a script that
 * shows what is asked for: a page of 30,000 operations is a few megabytes and opens at once,
 * because only the visible rows become elements.
 */
#include "draw/program_page.h"

#include <string.h>

/* A JSON string that may stand inside of a script. */
static void put_json(struct rp_out *to, const char *text, size_t n)
{
    rp_out_char(to, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            rp_out_printf(to, "\\%c", c);
        else if (c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7f)
            rp_out_printf(to, "\\u%04x", c);
        else
            rp_out_char(to, (char)c);
    }
    rp_out_char(to, '"');
}

static void put_string(struct rp_out *to, const struct rp_program *p, uint32_t string)
{
    put_json(to, rp_program_text(p, string), rp_strtab_len(&p->strings, string));
}

static void put_shapes(struct rp_out *to, const struct rp_program *p)
{
    char text[400];

    rp_out_text(to, "\"shapes\":[");
    for (uint32_t i = 0; i < p->shapes.n; i++) {
        size_t n = rp_shape_text(p, i, true, text, sizeof text);

        if (i)
            rp_out_char(to, ',');
        put_json(to, text, n < sizeof text ? n : sizeof text - 1);
    }
    rp_out_text(to, "],\n");
}

static void put_computations(struct rp_out *to, const struct rp_program *p)
{
    rp_out_text(to, "\"comps\":[");
    for (size_t i = 0; i < p->computations.n; i++) {
        const struct rp_computation *c = &p->computations.at[i];

        rp_out_text(to, i ? ",\n[" : "[");
        put_string(to, p, c->name);
        rp_out_printf(to, ",%u,%u,%u]", c->first, c->n, c->root);
    }
    rp_out_text(to, "],\n");
}

/* Strings of one kind, numbered in the order of their first use. */
struct table {
    struct rp_map number;
    RP_VEC(uint32_t) string;
};

static enum rp_code number_of(struct table *t, uint32_t string, uint32_t *number,
                              struct rp_err *err)
{
    uint32_t next = (uint32_t)t->string.n;

    RP_TRY(rp_map_intern(&t->number, string, next, number, err));
    return *number == next ? rp_vec_push(&t->string, string, err) : RP_OK;
}

static void put_table(struct rp_out *to, const struct rp_program *p, const char *key,
                      const struct table *t)
{
    rp_out_printf(to, "\"%s\":[", key);
    for (size_t i = 0; i < t->string.n; i++) {
        if (i)
            rp_out_char(to, ',');
        put_string(to, p, t->string.at[i]);
    }
    rp_out_text(to, "],\n");
}

static void put_ids(struct rp_out *to, struct rp_ids ids)
{
    rp_out_text(to, ",[");
    for (uint32_t i = 0; i < ids.n; i++)
        rp_out_printf(to, "%s%u", i ? "," : "", ids.at[i]);
    rp_out_char(to, ']');
}

/* Attributes as one text, cut where they are long. */
static void put_attrs(struct rp_out *to, const struct rp_program *p, uint32_t op)
{
    uint32_t n;
    const struct rp_attr *attr = rp_op_attrs(p, op, &n);
    char text[240];
    size_t len = 0;

    for (; n && len + 40 < sizeof text; n--, attr++) {
        const char *key = rp_program_text(p, attr->key);
        size_t room = sizeof text - len - 4, m;

        if (attr->key == RP_ATTR_PROTO)
            continue;
        if (len)
            text[len++] = ' ';
        m = strnlen(key, room / 2);
        memcpy(text + len, key, m);
        len += m;
        text[len++] = '=';
        room = sizeof text - len - 2;
        m = attr->n < room ? attr->n : room;
        memcpy(text + len, attr->at, m);
        len += m;
    }
    rp_out_char(to, ',');
    put_json(to, text, len);
}

static enum rp_code put_op(struct rp_out *to, const struct rp_program *p, uint32_t op,
                           struct table *scopes, struct table *files, struct rp_err *err)
{
    struct rp_source_line at = {"", "", 0};
    uint32_t scope, file = 0, string;

    RP_TRY(number_of(scopes, p->metas.at[p->meta.at[op]].op_name, &scope, err));
    if (rp_op_source(p, op, &at)) {
        string = rp_strtab_find(&p->strings, at.file, strlen(at.file));
        RP_TRY(number_of(files, string == UINT32_MAX ? 0 : string, &file, err));
    }
    rp_out_text(to, op ? ",\n[" : "[");
    put_string(to, p, p->op_name.at[op]);
    rp_out_printf(to, ",");
    put_json(to, rp_op_opcode_name(p, op), strlen(rp_op_opcode_name(p, op)));
    rp_out_printf(to, ",%u,%u,%d,%u", p->shape.at[op], file, at.line, scope);
    put_ids(to, rp_op_operands(p, op));
    put_ids(to, rp_op_called(p, op));
    put_attrs(to, p, op);
    rp_out_char(to, ']');
    return RP_OK;
}

static enum rp_code put_ops(struct rp_out *to, const struct rp_program *p, struct rp_err *err)
{
    struct table scopes = {.string = {0}}, files = {.string = {0}};
    enum rp_code code;
    uint32_t zero;

    rp_map_init(&scopes.number);
    rp_map_init(&files.number);
    code = number_of(&scopes, 0, &zero, err);
    if (code == RP_OK)
        code = number_of(&files, 0, &zero, err);
    rp_out_text(to, "\"ops\":[");
    for (uint32_t op = 0; code == RP_OK && op < p->nops; op++)
        code = put_op(to, p, op, &scopes, &files, err);
    rp_out_text(to, "],\n");
    put_table(to, p, "scopes", &scopes);
    put_table(to, p, "files", &files);
    rp_map_release(&scopes.number);
    rp_vec_release(&scopes.string);
    rp_map_release(&files.number);
    rp_vec_release(&files.string);
    return code;
}

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>program</title>\n<style>\n"
    ":root{--bg:#fff;--fg:#1a1a1a;--soft:#666;--line:#ddd;--mark:#e8f0fe;--link:#1558b0}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e6e6e6;--soft:#9aa;--line:#333;"
    "--mark:#22304a;--link:#8ab4f8}}\n"
    "body{margin:0;font:13px/1.5 system-ui,sans-serif;background:var(--bg);color:var(--fg);"
    "display:grid;grid-template:auto 1fr/minmax(180px,22%) 1fr;height:100vh}\n"
    "header{grid-column:1/3;padding:8px 12px;border-bottom:1px solid var(--line);display:flex;"
    "gap:12px;align-items:baseline;flex-wrap:wrap}h1{font-size:15px;margin:0}\n"
    "input{flex:1;min-width:200px;font:inherit;padding:4px 8px;border:1px solid var(--line);"
    "background:var(--bg);color:var(--fg);border-radius:4px}\n"
    "nav,main{overflow:auto}nav{border-right:1px solid var(--line)}"
    "nav button{display:block;width:100%;text-align:left;border:0;background:none;color:inherit;"
    "font:inherit;padding:2px 10px;cursor:pointer;overflow:hidden;text-overflow:ellipsis;"
    "white-space:nowrap}nav button:hover,nav .on{background:var(--mark)}\n"
    "table{border-collapse:collapse;width:100%}td,th{padding:2px 8px;text-align:left;"
    "vertical-align:top;border-bottom:1px solid var(--line)}th{position:sticky;top:0;"
    "background:var(--bg)}td{font-family:ui-monospace,monospace;font-size:12px;"
    "overflow-wrap:anywhere}small,.soft{color:var(--soft)}a{color:var(--link);cursor:pointer}"
    "tr.hit{background:var(--mark)}\n</style></head><body>\n"
    "<header><h1 id=\"t\"></h1><small id=\"s\"></small><input id=\"q\" type=\"search\" "
    "placeholder=\"search name, opcode, shape, source line, scope, attribute\" "
    "aria-label=\"search\"></header><nav id=\"n\"></nav><main id=\"m\"></main>\n<script>\n"
    "\"use strict\";\nconst P={";

static const char page_tail[] =
    "};\nconst $=i=>document.getElementById(i),E=(t,x,c)=>{const e=document.createElement(t);"
    "if(x!==undefined)e.textContent=x;if(c)e.className=c;return e};\n"
    "const comp=new Int32Array(P.ops.length);P.comps.forEach((c,i)=>comp.fill(i,c[1],c[1]+c[2]));\n"
    "const place=o=>o[4]?P.files[o[3]].split('/').pop()+':'+o[4]:'';\n"
    "const text=o=>(o[0]+' '+o[1]+' '+P.shapes[o[2]]+' '+place(o)+' '+P.scopes[o[5]]+' '+o[8])"
    ".toLowerCase();\n"
    "$('t').textContent=P.name;document.title=P.name;$('s').textContent=P.comps.length+"
    "' computations, '+P.ops.length+' operations, hash '+P.hash;\n"
    "function row(i,hit){const o=P.ops[i],r=E('tr');if(hit)r.className='hit';r.id='o'+i;"
    "r.append(E('td',(P.comps[comp[i]][3]===i?'ROOT ':'')+o[0]),E('td',o[1]),"
    "E('td',P.shapes[o[2]]));const a=E('td');o[6].forEach((x,k)=>{if(k)a.append(', ');"
    "const l=E('a',P.ops[x][0]);l.onclick=()=>go(x);a.append(l)});o[7].forEach(x=>{a.append(' ');"
    "const l=E('a','→ '+P.comps[x][0]);l.onclick=()=>show(x);a.append(l)});"
    "const b=E('td',place(o));b.title=o[4]?P.files[o[3]]+':'+o[4]:'';"
    "const c=E('td',P.scopes[o[5]],'soft');if(o[8])c.append(E('br'),E('span',o[8]));"
    "r.append(a,b,c);return r}\n"
    "function list(ids,hit){const t=E('table'),h=E('tr');['name','opcode','shape','operands',"
    "'source','scope and attributes'].forEach(x=>h.append(E('th',x)));t.append(h);let at=0;"
    "const more=E('button','more');const add=n=>{more.remove();"
    "for(const e=Math.min(ids.length,at+n);at<e;at++)t.append(row(ids[at],ids[at]===hit));"
    "if(at<ids.length){more.textContent='show more ('+(ids.length-at)+')';$('m').append(more)}};"
    "more.onclick=()=>add(2000);$('m').replaceChildren(t);add(Math.max(500,hit===undefined?0:"
    "ids.indexOf(hit)+50))}\n"
    "function show(c,hit){[...$('n').children].forEach((b,i)=>b.classList.toggle('on',i===c));"
    "const k=P.comps[c];list(Array.from({length:k[2]},(_,i)=>k[1]+i),hit)}\n"
    "function go(i){show(comp[i],i);const e=$('o'+i);if(e)e.scrollIntoView({block:'center'})}\n"
    "P.comps.forEach((c,i)=>{const b=E('button',(i===P.entry?'ENTRY ':'')+c[0]+' ('+c[2]+')');"
    "b.onclick=()=>show(i);$('n').append(b)});\n"
    "let timer;$('q').oninput=()=>{clearTimeout(timer);timer=setTimeout(()=>{"
    "const w=$('q').value.toLowerCase().split(/\\s+/).filter(x=>x);if(!w.length)return "
    "show(P.entry);const f=[];for(let i=0;i<P.ops.length;i++){const s=text(P.ops[i]);"
    "if(w.every(x=>s.includes(x)))f.push(i)}list(f)},150)};\n"
    "show(P.entry);\n</script></body></html>\n";

enum rp_code rp_draw_program_html(const struct rp_program *p, const char *hash, struct rp_out *to,
                                  struct rp_err *err)
{
    rp_out_text(to, page_head);
    rp_out_text(to, "\"name\":");
    put_string(to, p, p->name);
    rp_out_printf(to, ",\"hash\":\"%s\",\"entry\":%u,\n", hash, p->entry == RP_NONE ? 0 : p->entry);
    put_shapes(to, p);
    put_computations(to, p);
    RP_TRY(put_ops(to, p, err));
    rp_out_text(to, page_tail);
    return RP_OK;
}

/* ---- Graphviz ---- */

static void put_node(struct rp_out *to, const struct rp_program *p, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(p, op), called = rp_op_called(p, op);
    char shape[200];

    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    rp_out_printf(to, "    n%u [label=\"%s\\n%s\\n%s\"];\n", op,
                  rp_program_text(p, p->op_name.at[op]), rp_op_opcode_name(p, op), shape);
    for (uint32_t i = 0; i < operands.n; i++)
        rp_out_printf(to, "    n%u -> n%u;\n", operands.at[i], op);
    for (uint32_t i = 0; i < called.n; i++)
        rp_out_printf(to, "    n%u -> n%u [style=dashed];\n", p->computations.at[called.at[i]].root,
                      op);
}

enum rp_code rp_draw_program_dot(const struct rp_program *p, struct rp_out *to, struct rp_err *err)
{
    (void)err;
    rp_out_text(to, "digraph program {\n  node [shape=box fontsize=10];\n");
    for (size_t i = 0; i < p->computations.n; i++) {
        const struct rp_computation *c = &p->computations.at[i];

        rp_out_printf(to, "  subgraph cluster_%zu {\n    label=\"%s\";\n", i,
                      rp_program_text(p, c->name));
        for (uint32_t op = c->first; op < c->first + c->n; op++)
            put_node(to, p, op);
        rp_out_text(to, "  }\n");
    }
    rp_out_text(to, "}\n");
    return RP_OK;
}
