/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the call tree. The spans around each launch are marked with their step, from the innermost
 * outwards. Then the marked spans are visited thread by thread, in the order in which threads
 * launch. Each becomes a node, identified by its parent's node, its name and shape, and how many
 * such spans came before it below the same parent. A span with work of several steps is skipped, so
 * that a loop around the steps does not make each step a position of its own. Linear in events and
 * items.
 */
#include "explain/diff/tree.h"

#include "base/decides.h"
#include "base/filled.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/strtab.h"
#include "explain/report/part.h"
#include "facts/arg_keys.h"
#include "facts/torch_names.h"
#include "facts/xla_names.h"
#include "result/part.h"

#include <ctype.h>
#include <stdlib.h>

#define NO_STEP   UINT32_MAX
#define MANY      (UINT32_MAX - 1) /* steps */
#define MOST_DEEP 200
RP_LIMIT(MOST_DEEP, "spans in spans", "work of deeper ones belongs to the span around them");
#define MOST_NAME 4096
RP_LIMIT(MOST_NAME, "bytes of a name", "names that are the same so far are one");
#define DIGEST_BYTES 16
RP_DECISION(DIGEST_BYTES, "characters", "64 bits in hexadecimal; words of people are shorter",
            "explain/digests_in_names_have_edges");
#define DIGEST_DIGITS 4
RP_DECISION(DIGEST_DIGITS, "digits",
            "of 16 random hexadecimal characters fewer are digits in 1 of 2,000 words",
            "explain/digests_in_names_have_edges");

struct tree_builder {
    const struct rp_trace *t;
    const struct rp_work *w;
    const struct rp_diff_steps *steps;
    struct rp_diff_tree *out;
    struct rp_strtab strings;
    struct rp_arg_key dims;
    RP_VEC(uint32_t) step;   /* by event: number of its step, NO_STEP or MANY */
    RP_VEC(uint32_t) node;   /* by event, or RP_NONE */
    RP_VEC(rp_event) around; /* by event: the innermost span around it (or itself) that is a node */
    RP_VEC(rp_event) user;   /* ... that is a line of Python of the user's own */
    RP_VEC(uint32_t) last;   /* by node: its last child; [0] is the last at the top */
    RP_VEC(int64_t) own;     /* by event: time of host spans without nested ones */
    RP_VEC(uint32_t) labels; /* by string of the trace: its id in the tree's strings, or RP_NONE */
    struct rp_map ordinals;  /* from (parent event, exact) to their number so far */
    struct rp_map positions; /* from (parent node, exact, ordinal) to the node */
    struct rp_map pieces;    /* from (node, kernel) to the piece */
    RP_VEC(rp_event) marks;  /* of steps, in order */
    RP_VEC(int64_t) known_ns; /* by stream: the start of its first work whose launch is recorded */
    char text[MOST_NAME + 1]; /* scratch */
};

static uint64_t hash_words(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t words[3] = {a, b, c};

    return rp_hash_bytes(words, sizeof words);
}

/* Replaces numbers, and words that look like digests, by '#', because they differ from run to
   run. */
static size_t without_numbers(const char *name, size_t len, char *out)
{
    size_t i = 0, n = 0;

    len = len < MOST_NAME ? len : MOST_NAME;
    while (i < len) {
        size_t end = i, digits = 0;

        while (end < len && isalnum((unsigned char)name[end]))
            digits += isdigit((unsigned char)name[end++]) != 0;
        if (end - i >= DIGEST_BYTES && digits >= DIGEST_DIGITS) {
            out[n++] = '#';
            i = end;
            continue;
        }
        for (; i < end; i++)
            if (!isdigit((unsigned char)name[i]))
                out[n++] = name[i];
            else if (!n || out[n - 1] != '#')
                out[n++] = '#';
        if (i < len)
            out[n++] = name[i++];
    }
    return n;
}

/* Writes "[[16, 256], [], [512]]" as "[16,256] [512]", like people do. */
static size_t plain_shape(const char *dims, size_t len, char *out)
{
    size_t i, n = 0, depth = 0,
              begin = 0; /* begin: where the tensor that is being written begins */

    for (i = 0; i < len && n + 2 < MOST_NAME; i++) {
        if (dims[i] == '[' && ++depth == 2) {
            begin = n;
            n += n > 0;
            out[n > 0 ? n - 1 : 0] = ' ';
            out[n++] = '[';
        } else if (dims[i] == ']' && depth) {
            if (depth == 2 && out[n - 1] == '[')
                n = begin;
            else if (depth >= 2)
                out[n++] = ']';
            depth--;
        } else if (depth > 1 && !isspace((unsigned char)dims[i])) {
            out[n++] = dims[i];
        }
    }
    return n;
}

/* The length of the first two tensors of a plain shape; the rest may be the output. */
static size_t two_tensors(const char *shape, size_t len)
{
    size_t i, spaces = 0;

    for (i = 0; i < len && (shape[i] != ' ' || ++spaces < 2); i++)
        ;
    return i;
}

static bool is_mark(const struct tree_builder *p, rp_event e)
{
    size_t i;

    RP_LOWER_BOUND(i, p->marks.n, p->marks.at[i] < e);
    return (i < p->marks.n && p->marks.at[i] == e) ||
           rp_torch_is(rp_trace_str(p->t, p->t->ev.name[e]),
                       rp_trace_str_len(p->t, p->t->ev.name[e]), RP_TORCH_STEP);
}

static bool on_host(const struct tree_builder *p)
{
    return !p->w->items.n;
}

/* The kind of node that a span is in the tree, or -1. */
static int frame_kind(const struct tree_builder *p, rp_event e)
{
    uint8_t kind = p->t->ev.kind[e];

    if (kind == RP_KIND_CPU_OP)
        return is_mark(p, e) ? -1 : RP_DIFF_OP;
    if (on_host(p) && kind != RP_KIND_PYTHON && rp_report_is_host_work(p->t, p->steps->scope, e))
        return is_mark(p, e) ? -1 : RP_DIFF_OP;
    if (kind == RP_KIND_ANNOTATION)
        return is_mark(p, e) ? -1 : RP_DIFF_RANGE;
    return rp_event_is_module(p->t, e) ? RP_DIFF_MODULE : -1;
}

/* The step that contains a moment of the host, or of the device; n if there is none. */
static size_t find_window(const struct rp_diff_steps *s, int64_t at_ns, bool host)
{
    size_t i;

    RP_LOWER_BOUND(i, s->n, (host ? s->windows[i].host_begin_ns : s->windows[i].begin_ns) <= at_ns);
    if (!i || at_ns >= (host ? s->windows[i - 1].host_end_ns : s->windows[i - 1].end_ns))
        return s->n;
    return i - 1;
}

/* The number of the step of an item, or NO_STEP. Without steps there is only one. */
static uint32_t step_of_item(const struct tree_builder *p, const struct rp_work_item *x)
{
    const struct rp_diff_steps *s = p->steps;
    size_t i;

    if (!s->n)
        return 0;
    if (x->launch != RP_NONE && s->by_launch)
        i = find_window(s, p->t->ev.ts_ns[x->launch], true);
    else if (x->launch == RP_NONE && s->by_launch && x->begin_ns < p->known_ns.at[x->stream])
        return NO_STEP; /* streams run in order, so it was launched before the recording began */
    else
        i = find_window(s, x->begin_ns, false);
    return i < s->n ? (uint32_t)i : NO_STEP;
}

static bool is_taken(const struct tree_builder *p, uint32_t step)
{
    return !p->steps->n || p->steps->windows[step].taken;
}

/* Marks the spans from e outwards. If a span has the mark, all outside of it have it, too. */
static void mark_around(struct tree_builder *p, rp_event e, uint32_t number)
{
    for (; e != RP_NONE; e = p->t->ev.parent[e]) {
        uint32_t *step = &p->step.at[e];

        if (*step == number || *step == MANY)
            return;
        *step = *step == NO_STEP ? number : MANY;
    }
}

/* Parents come before their children, so the node around an event follows from its parent. */
static rp_event above(const struct tree_builder *p, const rp_event *column, rp_event e)
{
    rp_event parent = p->t->ev.parent[e];

    return parent == RP_NONE ? RP_NONE : column[parent];
}

static void mark_host(struct tree_builder *p)
{
    const struct rp_events *ev = &p->t->ev;

    for (rp_event e = 0; e < ev->n; e++) {
        bool is_op = frame_kind(p, e) == RP_DIFF_OP;
        rp_event around =
            above(p, p->around.at,
                  e); /* the innermost operator, or if there are nodes, the innermost node */
        p->around.at[e] = is_op ? e : around;
        if (!is_op || !rp_report_is_host_work(p->t, p->steps->scope, e))
            continue;
        size_t i = p->steps->n ? find_window(p->steps, ev->ts_ns[e], true) : 0;
        if (p->steps->n && i == p->steps->n)
            continue;
        mark_around(p, e, (uint32_t)i);
        rp_ns_add(&p->own.at[e], ev->dur_ns[e]);
        if (around != RP_NONE)
            p->own.at[around] = rp_ns_between(ev->dur_ns[e], p->own.at[around]);
    }
}

static void mark_all(struct tree_builder *p)
{
    if (on_host(p)) {
        mark_host(p);
        return;
    }
    for (size_t i = 0; i < p->w->items.n; i++) {
        const struct rp_work_item *x = &p->w->items.at[i];
        uint32_t step = step_of_item(p, x);

        if (step != NO_STEP)
            mark_around(p, rp_work_described_by(p->w, x), step);
    }
}

/* Copies a text of the trace to the tree's own table, which outlives the trace. */
static enum rp_code label(struct tree_builder *p, rp_str s, uint32_t *id, struct rp_err *err)
{
    *id = p->labels.at[s];
    if (*id != RP_NONE)
        return RP_OK;
    RP_TRY(
        rp_strtab_intern(&p->strings, rp_trace_str(p->t, s), rp_trace_str_len(p->t, s), id, err));
    p->labels.at[s] = *id;
    return RP_OK;
}

/* Whether an event is a line of Python of the user's own, not a module or the framework. */
static bool is_user_frame(const struct rp_trace *t, rp_event e)
{
    const char *name = rp_trace_str(t, t->ev.name[e]);

    return t->ev.kind[e] == RP_KIND_PYTHON &&
           !rp_torch_means(name, RP_TORCH_LIBRARY | RP_TORCH_MODULE);
}

/* Computes names, shape and hashes of the node that an event would be. */
static enum rp_code describe(struct tree_builder *p, rp_event e, int kind,
                             struct rp_diff_node *node, struct rp_err *err)
{
    rp_str name = p->t->ev.name[e], dims;
    const char *text = rp_trace_str(p->t, name);
    size_t len = rp_kernel_name_len(rp_trace_str(p->t, name), rp_trace_str_len(p->t, name));

    *node = (struct rp_diff_node){.parent = RP_NONE, .child = RP_NONE, .next = RP_NONE};
    node->kind = (uint8_t)kind;
    RP_TRY(label(p, name, &node->name, err));
    node->loose =
        hash_words((uint64_t)kind, rp_hash_bytes(p->text, without_numbers(text, len, p->text)), 0);
    node->exact = node->near = node->loose; /* for a node without a shape */
    if (kind == RP_DIFF_RANGE || kind == RP_DIFF_MODULE)
        return RP_OK;
    if (kind == RP_DIFF_OP && rp_arg_key_text(&p->dims, e, &dims)) {
        size_t n = plain_shape(rp_trace_str(p->t, dims), rp_trace_str_len(p->t, dims), p->text);

        RP_TRY(rp_strtab_intern(&p->strings, p->text, n, &node->shape, err));
        node->exact = rp_hash_bytes(p->text, n);
        node->near = hash_words(node->loose, rp_hash_bytes(p->text, two_tensors(p->text, n)), 0);
    }
    node->exact = hash_words((uint64_t)kind, rp_hash_bytes(text, len), node->exact);
    if (!node->shape)
        node->near = node->exact;
    return RP_OK;
}

/* Finds the node at a position; a new one becomes the last child of its parent. */
static enum rp_code add_node(struct tree_builder *p, uint32_t parent, uint64_t ordinal,
                             const struct rp_diff_node *like, rp_event e, uint32_t *id,
                             struct rp_err *err)
{
    struct rp_diff_tree *tree = p->out;
    uint32_t at = parent == RP_NONE ? 0 : parent + 1, fresh = (uint32_t)tree->nodes.n;
    struct rp_diff_node node = *like;

    RP_TRY(rp_map_intern(&p->positions, hash_words(at, like->exact, ordinal), fresh, id, err));
    if (*id != fresh)
        return RP_OK;
    node.parent = parent;
    node.depth = parent == RP_NONE ? 0 : tree->nodes.at[parent].depth + 1;
    rp_event user = e == RP_NONE ? RP_NONE : p->user.at[e];
    if (user != RP_NONE)
        RP_TRY(label(p, p->t->ev.name[user], &node.source, err));
    RP_TRY(rp_vec_push(&tree->nodes, node, err));
    RP_TRY(rp_vec_push(&p->last, RP_NONE, err));
    if (p->last.at[at] != RP_NONE)
        tree->nodes.at[p->last.at[at]].next = fresh;
    else if (parent == RP_NONE)
        tree->first = fresh;
    else
        tree->nodes.at[parent].child = fresh;
    p->last.at[at] = fresh;
    return RP_OK;
}

static enum rp_code plant_event(struct tree_builder *p, rp_event e, struct rp_err *err)
{
    int kind = p->step.at[e] < MANY ? frame_kind(p, e) : -1;
    rp_event around;
    struct rp_diff_node like;

    p->user.at[e] = is_user_frame(p->t, e) ? e : above(p, p->user.at, e);
    p->around.at[e] = around = above(p, p->around.at, e);
    if (kind < 0)
        return RP_OK;
    p->around.at[e] = e;
    uint32_t parent = around == RP_NONE ? RP_NONE : p->node.at[around];
    if (parent != RP_NONE && p->out->nodes.at[parent].depth >= MOST_DEEP) {
        p->node.at[e] = parent;
        return RP_OK;
    }
    RP_TRY(describe(p, e, kind, &like, err));
    uint64_t key = hash_words(around, around == RP_NONE ? p->step.at[e] : 0, like.exact);
    uint32_t ordinal = rp_map_get(&p->ordinals, key);
    ordinal = ordinal == RP_MAP_NONE ? 0 : ordinal + 1;
    RP_TRY(rp_map_put(&p->ordinals, key, ordinal, err));
    RP_TRY(add_node(p, parent, ordinal, &like, e, &p->node.at[e], err));
    if (!is_taken(p, p->step.at[e]))
        return RP_OK;
    int64_t dur = p->t->ev.dur_ns[e] > 0 ? p->t->ev.dur_ns[e] : 0;
    p->out->nodes.at[p->node.at[e]].calls++;
    rp_ns_add(&p->out->nodes.at[p->node.at[e]].host_ns, dur);
    if (parent != RP_NONE)
        rp_ns_add(&p->out->nodes.at[parent].host_ns, rp_ns_between(dur, 0));
    return RP_OK;
}

struct thread {
    rp_track track;
    int64_t first_ns;
};

RP_ORDER(by_first, struct thread, RP_UP(first_ns), RP_UP(track))

/* Numbers of threads differ between runs, so threads are taken in the order of their first mark. */
static enum rp_code add_nodes(struct tree_builder *p, struct rp_err *err)
{
    RP_VEC(struct thread) threads = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < p->t->ntracks && code == RP_OK; i++)
        for (rp_event e = p->t->tracks[i].first; e < p->t->tracks[i].end; e++)
            if (p->step.at[e] != NO_STEP) {
                int64_t ts = p->t->ev.ts_ns[e];
                struct thread thread = {(rp_track)i, ts == RP_NO_TS ? INT64_MAX : ts};

                code = rp_vec_push(&threads, thread, err);
                break;
            }
    rp_sort(threads.at, threads.n, sizeof *threads.at, by_first);
    for (size_t i = 0; i < threads.n && code == RP_OK; i++) {
        const struct rp_track_info *track = &p->t->tracks[threads.at[i].track];

        for (rp_event e = track->first; e < track->end && code == RP_OK; e++)
            code = plant_event(p, e, err);
    }
    rp_vec_release(&threads);
    return code;
}

static enum rp_code add_piece(struct tree_builder *p, uint32_t node, rp_str name, uint32_t step,
                              int64_t ns, struct rp_err *err)
{
    struct rp_diff_piece piece = {.node = node, .row = (uint32_t)p->out->pieces.n};
    uint32_t at, slot;

    RP_TRY(rp_map_intern(&p->pieces, (uint64_t)node << 32 | name, (uint32_t)p->out->pieces.n, &at,
                         err));
    if (at == p->out->pieces.n) {
        if (name)
            RP_TRY(label(p, name, &piece.name, err));
        piece.hash = rp_hash_bytes(
            rp_trace_str(p->t, name),
            rp_kernel_name_len(rp_trace_str(p->t, name), rp_trace_str_len(p->t, name)));
        RP_TRY(rp_vec_push(&p->out->pieces, piece, err));
        for (slot = 0; slot < p->out->nslots; slot++)
            RP_TRY(rp_vec_push(&p->out->slot_ns, 0, err));
    }
    if (step < p->out->nslots)
        p->out->slot_ns.at[(size_t)at * p->out->nslots + step] += (float)ns;
    if (!is_taken(p, step))
        return RP_OK;
    p->out->pieces.at[at].count++;
    rp_ns_add(&p->out->pieces.at[at].ns, ns);
    return RP_OK;
}

static enum rp_code add_pieces(struct tree_builder *p, struct rp_err *err)
{
    for (size_t i = 0; i < p->w->items.n; i++) {
        /* Work whose innermost span is not an operator gets a node of its own for each kernel name.
         */
        const struct rp_work_item *x = &p->w->items.at[i];
        rp_event described = rp_work_described_by(p->w, x);
        rp_event around = described == RP_NONE ? RP_NONE : p->around.at[described];
        uint32_t node = around == RP_NONE ? RP_NONE : p->node.at[around], step = step_of_item(p, x);
        struct rp_diff_node like;

        if (step == NO_STEP)
            continue;
        if (node == RP_NONE || p->out->nodes.at[node].kind != RP_DIFF_OP) {
            RP_TRY(describe(p, x->event, RP_DIFF_WORK, &like, err));
            RP_TRY(add_node(p, node, UINT64_MAX, &like, described, &node, err));
            p->out->nodes.at[node].calls += is_taken(p, step);
        }
        RP_TRY(add_piece(p, node, p->t->ev.name[x->event], step,
                         rp_ns_between(x->begin_ns, x->end_ns), err));
    }
    for (rp_event e = 0; on_host(p) && e < p->t->ev.n; e++)
        if (p->node.at[e] != RP_NONE && p->own.at[e] > 0)
            RP_TRY(add_piece(p, p->node.at[e], 0, p->step.at[e], p->own.at[e], err));
    return RP_OK;
}

RP_ORDER(by_node, struct rp_diff_piece, RP_UP(node), RP_UP(name))

/* Divides sums over all steps, rounded along the running sum so that the pieces add up to the
   rounded total. */
static void scale_and_sum(struct rp_diff_tree *tree, int64_t steps)
{
    int64_t sum = 0, before = 0;

    tree->steps = steps > 0 ? steps : 1;
    rp_sort(tree->pieces.at, tree->pieces.n, sizeof *tree->pieces.at, by_node);
    for (size_t i = 0; i < tree->pieces.n; i++) {
        struct rp_diff_piece *piece = &tree->pieces.at[i];
        struct rp_diff_node *node = &tree->nodes.at[piece->node];

        rp_ns_add(&sum, piece->ns);
        int64_t now = sum / tree->steps;
        piece->ns = rp_ns_between(before, now);
        before = now;
        if (!node->nwork++)
            node->work = (uint32_t)i;
        rp_ns_add(&node->own_ns, piece->ns);
        node->works += piece->count;
    }
    tree->total_ns = before;
    for (size_t i = tree->nodes.n; i-- > 0;) {
        struct rp_diff_node *node = &tree->nodes.at[i];

        node->host_ns /= tree->steps;
        rp_ns_add(&tree->host_ns, node->host_ns);
        rp_ns_add(&node->total_ns, node->own_ns);
        if (node->parent == RP_NONE)
            continue;
        rp_ns_add(&tree->nodes.at[node->parent].total_ns, node->total_ns);
        tree->nodes.at[node->parent].works += node->works;
    }
}

RP_ORDER(by_event, rp_event, RP_COMPARE(*a, *b))

static enum rp_code prepare_tree(struct tree_builder *p, struct rp_err *err)
{
    size_t i, n = p->t->ev.n;

    p->out->nslots = p->steps->n < RP_DIFF_SLOTS ? (uint32_t)p->steps->n : RP_DIFF_SLOTS;
    RP_TRY(rp_strtab_init(&p->strings, err));
    RP_TRY(rp_arg_key_init_dims(&p->dims, p->t, err));
    for (i = 0; i < p->t->nsteps; i++)
        if (p->t->steps[i].mark != RP_NONE)
            RP_TRY(rp_vec_push(&p->marks, p->t->steps[i].mark, err));
    rp_sort(p->marks.at, p->marks.n, sizeof *p->marks.at, by_event);

    /* Find known_ns; it is INT64_MIN if no launch is recorded. */
    for (size_t k = 0; k < p->w->streams.n; k++)
        RP_TRY(rp_vec_push(&p->known_ns, INT64_MIN, err));
    for (size_t k = p->w->items.n; k-- > 0;)
        if (p->w->items.at[k].launch != RP_NONE)
            p->known_ns.at[p->w->items.at[k].stream] = p->w->items.at[k].begin_ns;

    RP_TRY(rp_vec_nones(&p->step, n, err));
    RP_TRY(rp_vec_nones(&p->node, n, err));
    RP_TRY(rp_vec_nones(&p->around, n, err));
    RP_TRY(rp_vec_nones(&p->user, n, err));
    RP_TRY(rp_vec_nones(&p->labels, p->t->str.n, err));
    if (on_host(p))
        RP_TRY(rp_vec_zeros(&p->own, n, err));
    return rp_vec_push(&p->last, RP_NONE, err);
}

static enum rp_code keep_strings(struct tree_builder *p, struct rp_arena *arena, struct rp_err *err)
{
    for (uint32_t i = 0; i < p->strings.n; i++)
        RP_TRY(rp_vec_push(&p->out->strings, rp_arena_text(arena, rp_strtab_borrow(&p->strings, i)),
                           err));
    return rp_arena_check(arena, "building the call tree", err);
}

enum rp_code rp_diff_tree_init(struct rp_diff_tree *out, const struct rp_work *work,
                               const struct rp_diff_steps *steps, struct rp_arena *arena,
                               struct rp_err *err)
{
    struct tree_builder p = {.t = work->trace, .w = work, .steps = steps, .out = out};

    *out = (struct rp_diff_tree){.first = RP_NONE};
    enum rp_code code = prepare_tree(&p, err);
    if (code == RP_OK) {
        mark_all(&p);
        code = add_nodes(&p, err);
    }
    if (code == RP_OK)
        code = add_pieces(&p, err);
    if (code == RP_OK)
        code = keep_strings(&p, arena, err);
    if (code == RP_OK)
        scale_and_sum(out, steps->n ? steps->taken : 1);
    rp_strtab_release(&p.strings);
    rp_map_release(&p.ordinals);
    rp_map_release(&p.positions);
    rp_map_release(&p.pieces);
    rp_arg_key_release(&p.dims);
    rp_vec_release(&p.step);
    rp_vec_release(&p.node);
    rp_vec_release(&p.around);
    rp_vec_release(&p.user);
    rp_vec_release(&p.last);
    rp_vec_release(&p.own);
    rp_vec_release(&p.labels);
    rp_vec_release(&p.marks);
    rp_vec_release(&p.known_ns);
    return code;
}

static const struct rp_field tree_fields[] = {
    RP_PART_VEC(struct rp_diff_tree, strings, &rp_type_string),
    RP_PART_PLAIN_VEC(struct rp_diff_tree, nodes, struct rp_diff_node),
    RP_PART_PLAIN_VEC(struct rp_diff_tree, pieces, struct rp_diff_piece),
    RP_PART_PLAIN_VEC(struct rp_diff_tree, slot_ns, float),
    RP_PART_PLAIN(struct rp_diff_tree, nslots),
    RP_PART_PLAIN(struct rp_diff_tree, first),
    RP_PART_PLAIN(struct rp_diff_tree, steps),
    RP_PART_PLAIN(struct rp_diff_tree, total_ns),
    RP_PART_PLAIN(struct rp_diff_tree, host_ns),
    RP_PART_END};
const struct rp_type rp_diff_tree_type = {"diff_tree", sizeof(struct rp_diff_tree), tree_fields,
                                          NULL};
