/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the page of `top --by stack --html`: a call tree as data for web/flame. A page has at most
 * BOXES boxes of a tree: the least width of a box is doubled until the tree fits, and narrower
 * children become one box of their parent, so that widths stay exact.
 */
#include "base/decides.h"
#include "draw/web.h"
#include "explain/top/stacks_tree.h"
#include "io/escaped.h"

#include <inttypes.h>
#include <stdlib.h>

#define BOXES 200000
RP_LIMIT(BOXES, "boxes of a page", "what is narrower is added up, and the page says so");

struct boxes {
    const struct rp_stacks_node *nodes;
    const struct rp_stacks_weight *base;
    size_t n;
    uint32_t narrow;    /* the frame of boxes that represent several */
    int64_t *width;     /* by node: width with everything below it; for two runs, the larger one */
    int64_t *rest[2];   /* by node: the weight of its narrow children, in both runs */
    uint32_t *number;   /* by node: number of its box; RP_NONE: none */
    int64_t least;      /* the width of the narrowest box */
    int64_t outside[2]; /* weight of narrow nodes without a parent */
};

static int64_t base_of(const struct boxes *b, size_t i)
{
    return b->base ? b->base[i].self : 0;
}

static enum rp_code boxes_init(struct boxes *b, struct rp_err *err)
{
    b->width = calloc(b->n + 1, sizeof *b->width);
    b->rest[0] = calloc(b->n + 1, sizeof *b->rest[0]);
    b->rest[1] = calloc(b->n + 1, sizeof *b->rest[1]);
    b->number = calloc(b->n + 1, sizeof *b->number);
    RP_TRY(rp_err_need(b->width && b->rest[0] && b->rest[1] && b->number, err, "drawing stacks"));

    /* Compute widths with callees; for the base, it uses `rest`. */
    int64_t *base = b->rest[0];
    for (size_t i = b->n; i-- > 0;) {
        uint32_t up = b->nodes[i].parent;

        rp_ns_add(&b->width[i], b->nodes[i].self);
        rp_ns_add(&base[i], base_of(b, i));
        if (up == RP_NONE)
            continue;
        rp_ns_add(&b->width[up], b->width[i]);
        rp_ns_add(&base[up], base[i]);
    }
    for (size_t i = 0; i < b->n; i++) {
        b->width[i] = b->width[i] > base[i] ? b->width[i] : base[i];
        base[i] = 0;
    }

    size_t kept = b->n;
    for (b->least = INT64_MIN; kept > BOXES; b->least = b->least > 0 ? 2 * b->least : 1) {
        kept = 0;
        for (size_t i = 0; i < b->n; i++)
            kept += b->width[i] >= b->least;
        if (kept <= BOXES || b->least > INT64_MAX / 2)
            break;
    }

    /* Number the boxes; the weight of a narrow node goes to the nearest node around it that has
       one. */
    uint32_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        uint32_t up = b->nodes[i].parent;

        b->number[i] = RP_NONE;
        if (b->width[i] >= b->least && (up == RP_NONE || b->number[up] != RP_NONE)) {
            b->number[i] = n++;
            continue;
        }
        while (up != RP_NONE && b->number[up] == RP_NONE)
            up = b->nodes[up].parent;
        rp_ns_add(up == RP_NONE ? &b->outside[0] : &b->rest[0][up], b->nodes[i].self);
        rp_ns_add(up == RP_NONE ? &b->outside[1] : &b->rest[1][up], base_of(b, i));
    }

    return RP_OK;
}

static void boxes_release(struct boxes *b)
{
    free(b->width);
    free(b->rest[0]);
    free(b->rest[1]);
    free(b->number);
}

static void put_box(struct rp_out *to, bool *more, int64_t parent, uint32_t frame, int64_t self)
{
    rp_out_printf(to, "%s%" PRId64 ",%u,%" PRId64, *more ? "," : "", parent, frame, self);
    *more = true;
}

/* Writes boxes of nodes first, then those that represent several; weights of the base in the same
   order. */
static void put_boxes(struct rp_out *to, const struct boxes *b)
{
    bool more = false;

    for (size_t i = 0; i < b->n; i++) {
        uint32_t up = b->nodes[i].parent;

        if (b->number[i] != RP_NONE)
            put_box(to, &more, up == RP_NONE ? -1 : (int64_t)b->number[up], b->nodes[i].frame,
                    b->nodes[i].self);
    }
    for (size_t i = 0; i < b->n; i++)
        if (b->rest[0][i] || b->rest[1][i])
            put_box(to, &more, b->number[i], b->narrow, b->rest[0][i]);
    if (b->outside[0] || b->outside[1])
        put_box(to, &more, -1, b->narrow, b->outside[0]);
}

struct page {
    const struct rp_flame *flame;
    struct boxes nodes, runs;
};

static void put_flame(struct rp_out *to, void *user)
{
    const struct page *p = user;
    static const char *const units[RP_WEIGHT_UNITS] = {"ns", "count", "bytes"};

    rp_out_printf(to, "{\"unit\": \"%s\", \"joined\": %s, \"frames\": [", units[p->flame->unit],
                  p->flame->by_function ? "true" : "false");
    for (size_t i = 0; i < p->flame->nframes; i++) {
        const struct rp_stacks_frame *f = &p->flame->frames[i];

        rp_out_text(to, i ? ",\n[" : "\n[");
        rp_out_escaped(to, RP_IN_SCRIPT, f->name);
        rp_out_char(to, ',');
        rp_out_escaped(to, RP_IN_SCRIPT, f->file);
        rp_out_printf(to, ",%u,%u]", f->line, f->kind);
    }
    rp_out_printf(to, "%s\n[\"(narrow frames)\",\"\",0,0]", p->flame->nframes ? "," : "");
    rp_out_text(to, "],\n\"nodes\": [");
    put_boxes(to, &p->nodes);
    if (p->flame->base) {
        rp_out_text(to, "],\n\"base\": [");

        const char *comma = "";
        for (size_t i = 0; i < p->nodes.n; i++)
            if (p->nodes.number[i] != RP_NONE) {
                rp_out_printf(to, "%s%" PRId64, comma, base_of(&p->nodes, i));
                comma = ",";
            }
        for (size_t i = 0; i < p->nodes.n; i++)
            if (p->nodes.rest[0][i] || p->nodes.rest[1][i])
                rp_out_printf(to, ",%" PRId64, p->nodes.rest[1][i]);
        if (p->nodes.outside[0] || p->nodes.outside[1])
            rp_out_printf(to, ",%" PRId64, p->nodes.outside[1]);
    }
    if (p->flame->nruns) {
        rp_out_text(to, "],\n\"runs\": [");
        put_boxes(to, &p->runs);
    }
    rp_out_text(to, "]}");
}

enum rp_code rp_flame_write(const struct rp_flame *flame, const char *path, struct rp_err *err)
{
    uint32_t narrow = (uint32_t)flame->nframes;
    struct page p = {
        .flame = flame,
        .nodes = {.nodes = flame->nodes, .base = flame->base, .n = flame->nnodes, .narrow = narrow},
        .runs = {.nodes = flame->runs, .n = flame->nruns, .narrow = narrow}};
    struct rp_web_page page = {
        rp_web_flame_html, rp_web_flame_css, rp_web_flame_js, put_flame, NULL, &p};
    struct rp_out *to = NULL;
    enum rp_code code = boxes_init(&p.nodes, err);

    if (code == RP_OK)
        code = boxes_init(&p.runs, err);
    if (code == RP_OK)
        code = rp_out_open(path, &to, err);
    if (code == RP_OK) {
        code = rp_out_end(to, rp_web_put_page(to, &page, err), err);
    }
    boxes_release(&p.nodes);
    boxes_release(&p.runs);
    return code;
}
