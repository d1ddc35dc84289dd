/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns aligned pairs into rows: the same operator, shape and kernels in many layers and on many
 * ranks are one row. A row's times are means over the ranks, rounded along the running sum, so that
 * all rows add up to the whole. Linear in units, then a sort of the rows.
 */
#include "explain/diff/diff.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "explain/diff/noise.h"
#include "explain/short_name.h"
#include "facts/torch_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_KERNELS 8
RP_LIMIT(MOST_KERNELS, "names of a row and side", "'…' stands for more");
#define MOST_NAMED 3
RP_LIMIT(MOST_NAMED, "names in a line", "of more, the first two and '…'");
#define MOST_LINES 8
RP_LIMIT(MOST_LINES, "lines about other kernels", "a last line says how many more there are");
#define NAME_BYTES 72
RP_LIMIT(NAME_BYTES, "bytes of a kernel's name on the screen", "'…' stands for its middle");
#define SHAPE_BYTES 32
RP_LIMIT(SHAPE_BYTES, "bytes of a shape on the screen", "of longer ones the first two tensors");
#define PATH_NAMES 16
RP_LIMIT(PATH_NAMES, "names of a place", "the innermost; '…' stands for those around them");
#define UNLIKE 16.0
RP_DECISION(UNLIKE, "times as long",
            "from bf16 to fp32 without matrix units it is 15 at most (src/cost/devices.def)",
            "explain/comparable_runs_have_edges");
#define MOST_CALLS 4096
RP_LIMIT(MOST_CALLS, "times of calls", "of more, every second, fourth, … stands for all");

struct kernel_set {
    size_t n, more;
    uint64_t hash[MOST_KERNELS];
    const char *name[MOST_KERNELS];
};

/* One side of a row. */
struct side {
    const struct rp_diff_tree *tree; /* tree of the pair that changed most */
    uint32_t node;                   /* node in that tree; RP_NONE: the side has none */
    int64_t ns, host_ns;
    double calls, works; /* of a step */
    struct kernel_set kernels;
    double slot_ns[RP_DIFF_SLOTS];           /* in each step */
    const struct rp_diff_tree *counted_tree; /* tree whose calls were added last */
    uint32_t counted;
    double call_ns[RP_DIFF_SLOTS]; /* times of the current call in each step; added as a whole once
                                      it is complete */
    uint32_t ncall_ns;
    RP_VEC(double) call_times;
    uint64_t seen, stride; /* number of calls, and each how many-th is kept */
    double least_ns, most_ns;
};

struct group {
    struct side side[2];
    int64_t most_ns; /* change of the pair that changed most */
    int64_t places;
    uint8_t rule;
    bool whole, set, same_kernels;
};

struct rows_ctx {
    struct rp_arena *arena;
    struct rp_map map; /* key -> group */
    RP_VEC(struct group) groups;
    int64_t npairs;
    uint32_t nslots[2], taken[2]; /* minimum over all ranks */
    int64_t rule_ns[RP_DIFF_RULES][2];
    struct rp_trace_diff_root *out;
};

/* sum: the totals of one side of a unit */
struct sum {
    int64_t ns, host_ns;
    double calls, works; /* of a step */
    uint64_t hash;       /* hash over its different kernels */
    struct kernel_set kernels;
    double slot_ns[RP_DIFF_SLOTS];
};

/* Whether the kernel is new; beyond the limit all are, and are only counted. */
static bool add_kernel(struct kernel_set *set, uint64_t hash, const char *name)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->hash[i] == hash)
            return false;
    if (set->n == MOST_KERNELS) {
        set->more++;
        return true;
    }
    set->hash[set->n] = hash;
    set->name[set->n++] = name;
    return true;
}

static void add_piece(const struct rp_diff_tree *tree, uint32_t piece, struct sum *out)
{
    const struct rp_diff_piece *p = &tree->pieces.at[piece];

    for (uint32_t i = 0; i < tree->nslots; i++)
        out->slot_ns[i] += (double)tree->slot_ns.at[(size_t)p->row * tree->nslots + i];
    rp_ns_add(&out->ns, p->ns);
    out->works += p->name ? (double)p->count / (double)tree->steps : 0;
    if (p->count && p->name && add_kernel(&out->kernels, p->hash, tree->strings.at[p->name]))
        out->hash += rp_hash_u64(p->hash); /* a sum, because their order does not matter */
}

/* Adds the pieces of a node, or also of everything below it, in the order of the tree. */
static void add_subtree(const struct rp_diff_tree *tree, uint32_t top, bool whole, struct sum *out)
{
    uint32_t at = top, i;

    for (;;) {
        const struct rp_diff_node *n = &tree->nodes.at[at];

        for (i = n->work; i < n->work + n->nwork; i++)
            add_piece(tree, i, out);
        rp_ns_add(&out->host_ns, n->host_ns);
        if (whole && n->child != RP_NONE) {
            at = n->child;
            continue;
        }
        while (at != top && tree->nodes.at[at].next == RP_NONE)
            at = tree->nodes.at[at].parent;
        if (at == top)
            return;
        at = tree->nodes.at[at].next;
    }
}

static struct sum sum_side(const struct rp_diff_tree *tree, uint32_t node, uint32_t piece,
                           const struct rp_diff_unit *unit)
{
    struct sum out = {0};

    if (node == RP_NONE)
        return out;
    out.calls = (double)tree->nodes.at[node].calls / (double)tree->steps;
    if (piece == RP_NONE)
        add_subtree(tree, node, unit->whole, &out);
    else
        add_piece(tree, piece, &out);
    if (unit->rule == RP_DIFF_ALONE)
        out.host_ns = tree->nodes.at[node].host_ns;
    if (unit->rule == RP_DIFF_BY_WORK)
        out.calls = out.works;
    return out;
}

static uint64_t key_of(const struct rp_diff_unit *unit, const struct rp_diff_tree *const tree[2],
                       const struct sum sums[2])
{
    uint64_t words[6] = {
        (uint64_t)unit->rule << 1 | unit->whole, 0, 0, sums[0].hash, sums[1].hash, 0};

    if (unit->rule == RP_DIFF_BY_WORK) {
        words[3] += words[4]; /* one of them is 0 */
        words[4] = 0;
        return rp_hash_bytes(words, sizeof words);
    }
    if (unit->set) {
        words[1] = unit->left != RP_NONE ? tree[0]->nodes.at[unit->left].loose
                                         : tree[1]->nodes.at[unit->right].loose;
        words[3] = words[4] = 0;
        words[5] = 1;
        return rp_hash_bytes(words, sizeof words);
    }
    if (unit->left != RP_NONE)
        words[1] = tree[0]->nodes.at[unit->left].exact;
    if (unit->right != RP_NONE)
        words[2] = tree[1]->nodes.at[unit->right].exact;
    if (unit->rule == RP_DIFF_ALONE) /* all kernels of it */
        words[3] = words[4] = 0;
    return rp_hash_bytes(words, sizeof words);
}

static enum rp_code keep_time(struct side *s, double ns, struct rp_err *err)
{
    s->least_ns = !s->seen || ns < s->least_ns ? ns : s->least_ns;
    s->most_ns = !s->seen || ns > s->most_ns ? ns : s->most_ns;
    s->stride += !s->stride;
    if (s->seen++ % s->stride)
        return RP_OK;
    if (s->call_times.n == MOST_CALLS) {
        for (size_t i = 0; i < MOST_CALLS / 2; i++)
            s->call_times.at[i] = s->call_times.at[2 * i];
        s->call_times.n = MOST_CALLS / 2;
        s->stride *= 2;
    }
    return rp_vec_push(&s->call_times, ns, err);
}

/* Completes the call that was added last. */
static enum rp_code end_call(struct side *s, struct rp_err *err)
{
    for (uint32_t i = 0; i < s->ncall_ns; i++)
        if (s->call_ns[i] > 0) /* the call is not in every step */
            RP_TRY(keep_time(s, s->call_ns[i], err));
    s->ncall_ns = 0;
    return RP_OK;
}

static enum rp_code add_side(struct side *to, const struct rp_diff_tree *tree, uint32_t node,
                             uint8_t rule, const struct sum *sum, struct rp_err *err)
{
    bool goes_on = rule == RP_DIFF_ALONE && to->counted_tree == tree && to->counted == node;

    if (node == RP_NONE)
        return RP_OK;

    /* A node is one call in each step, unless the unit stands for several. */
    double calls = sum->calls > 1 ? sum->calls : 1;
    uint32_t k, n = tree->nslots ? tree->nslots : 1;
    if (!goes_on)
        RP_TRY(end_call(to, err));
    for (k = 0; k < n; k++) {
        double ns = (tree->nslots ? sum->slot_ns[k] : (double)sum->ns) / calls;

        to->call_ns[k] = to->ncall_ns ? to->call_ns[k] + ns : ns;
    }
    to->ncall_ns = n;

    rp_ns_add(&to->ns, sum->ns);
    to->works += sum->works;
    for (size_t i = 0; i < RP_DIFF_SLOTS; i++)
        to->slot_ns[i] += sum->slot_ns[i];
    /* an operator that stands alone comes piece by piece but is called once */
    if (!goes_on) {
        to->calls += sum->calls;
        rp_ns_add(&to->host_ns, sum->host_ns);
    }
    to->counted_tree = tree;
    to->counted = node;
    for (size_t i = 0; i < sum->kernels.n; i++)
        add_kernel(&to->kernels, sum->kernels.hash[i], sum->kernels.name[i]);
    to->kernels.more = sum->kernels.more > to->kernels.more ? sum->kernels.more : to->kernels.more;
    return RP_OK;
}

static enum rp_code add_unit(struct rows_ctx *r, const struct rp_diff_tree *const tree[2],
                             const struct rp_diff_unit *unit, struct rp_err *err)
{
    const uint32_t node[2] = {unit->left, unit->right};
    struct sum sums[2];
    uint32_t id;

    sums[0] = sum_side(tree[0], unit->left, unit->left_piece, unit);
    sums[1] = sum_side(tree[1], unit->right, unit->right_piece, unit);
    if (!sums[0].ns && !sums[1].ns && !sums[0].works && !sums[1].works && !sums[0].host_ns &&
        !sums[1].host_ns)
        return RP_OK;
    RP_TRY(rp_map_intern(&r->map, key_of(unit, tree, sums), (uint32_t)r->groups.n, &id, err));
    if (id == r->groups.n) {
        struct group fresh = {
            .rule = unit->rule, .whole = unit->whole, .set = unit->set, .most_ns = -1};

        fresh.side[0].node = fresh.side[1].node = RP_NONE;
        fresh.same_kernels =
            sums[0].hash == sums[1].hash || unit->set || unit->rule == RP_DIFF_BY_WORK;
        RP_TRY(rp_vec_push(&r->groups, fresh, err));
    }
    struct group *g = &r->groups.at[id];
    g->places++;
    int64_t change = rp_ns_between(sums[0].ns, sums[1].ns);
    change = change < 0 ? -change : change;
    for (int s = 0; s < 2; s++) {
        RP_TRY(add_side(&g->side[s], tree[s], node[s], unit->rule, &sums[s], err));
        rp_ns_add(&r->rule_ns[unit->rule][s], sums[s].ns);
        if (node[s] != RP_NONE && (change > g->most_ns || g->side[s].node == RP_NONE)) {
            g->side[s].tree = tree[s];
            g->side[s].node = node[s];
        }
    }
    g->most_ns = change > g->most_ns ? change : g->most_ns;
    return RP_OK;
}

static const char *text_of(const struct side *s, bool shape)
{
    if (s->node == RP_NONE)
        return NULL;
    const struct rp_diff_node *node = &s->tree->nodes.at[s->node];
    if (shape && !node->shape)
        return NULL;
    return s->tree->strings.at[shape ? node->shape : node->name];
}

/* Writes "a", or "a -> b" if they differ. */
static const char *both(struct rows_ctx *r, const char *left, const char *right)
{
    if (!left || !right || !strcmp(left, right))
        return rp_arena_text(r->arena, left ? left : right);
    return rp_arena_textf(r->arena, "%s -> %s", left, right);
}

/* Writes the names around a node, the outermost first: "GPT_0 / Block_3 / aten::linear". */
static const char *place_of(struct rows_ctx *r, const struct side *s)
{
    const struct rp_diff_tree *tree = s->tree;
    const char *names[PATH_NAMES], *text = NULL;
    uint32_t at = tree->nodes.at[s->node].parent;
    size_t n = 0;

    for (; at != RP_NONE && n < PATH_NAMES; at = tree->nodes.at[at].parent) {
        names[n++] = rp_torch_module(tree->strings.at[tree->nodes.at[at].name]);
    }
    text = at != RP_NONE && n == PATH_NAMES ? "…" : NULL;
    while (n-- > 0)
        text = rp_arena_textf(r->arena, "%s%s%s", text ? text : "", text ? " / " : "", names[n]);
    return text;
}

static void list_kernels(struct rows_ctx *r, const struct kernel_set *set, size_t *n,
                         const char ***out)
{
    *n = set->n;
    *out = RP_ARENA_NEW(r->arena, const char *, set->n + 1);
    for (size_t i = 0; *out && i < set->n; i++)
        (*out)[i] = rp_arena_text(r->arena, set->name[i]);
}

/* Cuts a text in its middle to at most NAME_BYTES bytes, because both ends of a name are its most
 * distinctive parts. */
static void cut_middle(char *text)
{
    size_t len = strlen(text), keep = NAME_BYTES / 2 - 2;
    char *tail;

    if (len <= NAME_BYTES)
        return;
    while (keep && ((unsigned char)text[keep] & 0xc0) == 0x80)
        keep--;
    for (tail = text + len - (NAME_BYTES / 2 - 2); ((unsigned char)*tail & 0xc0) == 0x80;)
        tail++;
    memmove(text + keep + 3, tail, strlen(tail) + 1);
    memcpy(text + keep, "…", 3);
}

/* Writes "3 x nvjet_tst" or "4 (nvjet_tst, memset, …)", with the short names of kernels. */
static const char *name_kernels(struct rows_ctx *r, const struct kernel_set *set, int64_t works)
{
    const char *text = "", **labels = RP_ARENA_NEW(r->arena, const char *, set->n + 1);
    char name[256];
    size_t i, shown = set->n <= MOST_NAMED ? set->n : MOST_NAMED - 1;
    bool cut = set->more || set->n > shown;

    if (!labels)
        return "";
    rp_short_names(set->name, labels, set->n, r->arena);
    for (i = 0; i < shown; i++) {
        snprintf(name, sizeof name, "%s", labels[i]);
        cut_middle(name);
        text = rp_arena_textf(r->arena, "%s%s%s", text, i ? ", " : "", name);
    }
    return rp_arena_textf(r->arena, set->n > 1 ? "%lld (%s%s)" : "%lld x %s%s", (long long)works,
                          text, cut ? ", …" : "");
}

static const char *change_of(const struct group *g, const struct rp_trace_diff_row *row)
{
    const char *left = text_of(&g->side[0], true), *right = text_of(&g->side[1], true);

    if (g->rule == RP_DIFF_ALONE)
        return g->side[0].node == RP_NONE ? "added" : "removed";
    if (g->set)
        return "calls";
    if (g->whole)
        return "replaced";
    if (left && right && strcmp(left, right) != 0)
        return "shape";
    if (!g->same_kernels)
        return "kernel";
    if (row->base_count != row->new_count)
        return "calls";
    if (!row->delta_ns)
        return "same";
    if (row->noise_ns != RP_ABSENT_I64 && llabs(row->delta_ns) <= row->noise_ns)
        return "noise";
    return row->delta_ns > 0 ? "slower" : "faster";
}

/* The short name of the kernel of one side; NULL if the side has none. */
static const char *short_text(struct rows_ctx *r, const struct group *g, int side)
{
    const struct kernel_set *kernels = &g->side[side].kernels;
    const char *name = text_of(&g->side[side], false);
    char text[256];

    if (g->rule == RP_DIFF_BY_WORK)
        name = kernels->n ? kernels->name[0] : NULL;
    if (!name)
        return NULL;
    rp_short_name(name, text, sizeof text);
    return rp_arena_text(r->arena, text);
}

/* The length of a shape that is shown: only the first two tensors of a long one. */
static int shown_shape(const char *shape)
{
    const char *second = shape ? strchr(shape, ' ') : NULL;
    const char *third = second ? strchr(second + 1, ' ') : NULL;

    if (!shape)
        return 0;
    return (int)(third && strlen(shape) > SHAPE_BYTES && !strstr(shape, "->")
                     ? third - shape
                     : (long)strlen(shape));
}

static enum rp_code fill_texts(struct rows_ctx *r, const struct group *g,
                               struct rp_trace_diff_row *row, struct rp_err *err)
{
    const struct side *at = g->side[1].node != RP_NONE ? &g->side[1] : &g->side[0];
    const struct rp_diff_node *node = &at->tree->nodes.at[at->node];

    if (g->rule == RP_DIFF_BY_WORK) {
        row->what = rp_arena_text(r->arena, g->side[g->side[0].kernels.n ? 0 : 1].kernels.name[0]);
    } else {
        row->what = both(r, text_of(&g->side[0], false), text_of(&g->side[1], false));
        if (!g->set)
            row->shape = both(r, text_of(&g->side[0], true), text_of(&g->side[1], true));
    }
    const char *what = node->kind == RP_DIFF_WORK || g->rule == RP_DIFF_BY_WORK
                           ? both(r, short_text(r, g, 0), short_text(r, g, 1))
                           : row->what;
    int shown = shown_shape(row->shape);
    row->label =
        rp_arena_textf(r->arena, "%s%s%.*s%s", what ? what : "", row->shape ? " " : "", shown,
                       row->shape ? row->shape : "", row->shape && row->shape[shown] ? " …" : "");
    row->place = place_of(r, at);
    if (node->source)
        row->source = rp_arena_text(r->arena, at->tree->strings.at[node->source]);
    row->counts = row->base_count == row->new_count
                      ? rp_arena_textf(r->arena, "%lld", (long long)row->new_count)
                      : rp_arena_textf(r->arena, "%lld -> %lld", (long long)row->base_count,
                                       (long long)row->new_count);
    list_kernels(r, &g->side[0].kernels, &row->nbase_kernels, &row->base_kernels);
    list_kernels(r, &g->side[1].kernels, &row->nnew_kernels, &row->new_kernels);
    return rp_arena_check(r->arena, "comparing operators", err);
}

struct mean {
    int64_t sum, before;
};

static int64_t mean_next(struct mean *m, int64_t ns, int64_t by)
{
    rp_ns_add(&m->sum, ns);
    int64_t now = m->sum / by;
    int64_t step = rp_ns_between(m->before, now);
    m->before = now;
    return step;
}

RP_ORDER(by_time, double, RP_COMPARE(*a, *b))

static enum rp_code fill_call(struct side *s, struct rp_trace_diff_call *out, struct rp_err *err)
{
    *out = (struct rp_trace_diff_call){RP_ABSENT_I64, RP_ABSENT_I64, RP_ABSENT_I64};
    RP_TRY(end_call(s, err));
    size_t n = s->call_times.n;
    if (!n)
        return RP_OK;
    qsort(s->call_times.at, n, sizeof *s->call_times.at, by_time);
    out->min_ns = llround(s->least_ns);
    out->p50_ns = llround(s->call_times.at[(n - 1) / 2]);
    out->max_ns = llround(s->most_ns);
    return RP_OK;
}

static enum rp_code fill_numbers(const struct rows_ctx *r, struct group *g, struct mean means[2],
                                 struct rp_trace_diff_row *row, struct rp_err *err)
{
    RP_TRY(fill_call(&g->side[0], &row->base_call, err));
    RP_TRY(fill_call(&g->side[1], &row->new_call, err));
    row->rule = rp_diff_rule_names[g->rule];
    row->places = (g->places + r->npairs - 1) / r->npairs;
    row->base_ns = mean_next(&means[0], g->side[0].ns, r->npairs);
    row->new_ns = mean_next(&means[1], g->side[1].ns, r->npairs);
    row->delta_ns = rp_ns_between(row->base_ns, row->new_ns);
    row->base_count = llround(g->side[0].calls / (double)r->npairs);
    row->new_count = llround(g->side[1].calls / (double)r->npairs);
    row->base_host_ns = g->side[0].host_ns / r->npairs;
    row->new_host_ns = g->side[1].host_ns / r->npairs;
    row->host_delta_ns = rp_ns_between(row->base_host_ns, row->new_host_ns);
    row->base_works = llround(g->side[0].works / (double)r->npairs);
    row->new_works = llround(g->side[1].works / (double)r->npairs);
    row->share = rp_trace_diff_share_of(r->out, row->delta_ns);

    /* The noise of a row, from its times in the steps of both runs. */
    double spread[2], steps[2], noise;
    for (int s = 0; s < 2; s++) {
        int64_t values[RP_DIFF_SLOTS], scratch[RP_DIFF_SLOTS];

        for (uint32_t i = 0; i < r->nslots[s]; i++)
            values[i] = rp_diff_whole_ns(g->side[s].slot_ns[i] / (double)r->npairs);
        spread[s] = rp_diff_spread(values, r->nslots[s], scratch);
        steps[s] = (double)r->taken[s];
    }
    noise = rp_diff_noise(spread, steps);
    row->noise_ns = noise < 0 ? RP_ABSENT_I64 : rp_diff_whole_ns(noise);

    row->change = change_of(g, row);
    return RP_OK;
}

struct order {
    int64_t delta, time;
    uint32_t group;
};

RP_ORDER(by_delta, struct order, RP_DOWN(delta), RP_DOWN(time), RP_UP(group))

/* The row whose calls on the host changed most in the direction of idle time. */
static enum rp_code find_host(struct rows_ctx *r, const struct rp_trace_diff_row *all,
                              struct rp_err *err)
{
    bool less = r->out->parts[RP_DIFF_IDLE].delta_ns < 0;
    int64_t most = 0;
    size_t i, best = 0;

    for (i = 0; i < r->groups.n; i++) {
        int64_t change = less ? -all[i].host_delta_ns : all[i].host_delta_ns;

        if (change > most) {
            most = change;
            best = i;
        }
    }
    if (!most)
        return RP_OK;
    r->out->host = all[best];
    return fill_texts(r, &r->groups.at[best], &r->out->host, err);
}

/* Whether this is a row; a span that only has work below it is not. */
static bool is_row(const struct rp_trace_diff_row *row)
{
    return row->base_ns || row->new_ns || row->base_works || row->new_works;
}

/* Whether two groups of the same name hardly do the same work: there are no shapes, the kernels
   differ, and a call takes many times as long. */
static bool is_unlike(const struct group *g)
{
    double per_call[2];

    if (g->rule == RP_DIFF_ALONE || g->rule == RP_DIFF_BY_WORK || g->same_kernels)
        return false;
    for (int s = 0; s < 2; s++) {
        const struct side *side = &g->side[s];

        if (!side->tree || side->node == RP_NONE || side->tree->nodes.at[side->node].shape ||
            side->calls <= 0 || side->ns <= 0)
            return false;
        per_call[s] = (double)side->ns / side->calls;
    }
    return per_call[0] > UNLIKE * per_call[1] || per_call[1] > UNLIKE * per_call[0];
}

/* Computes numbers of all groups, and texts of those that are shown. */
static enum rp_code make_rows(struct rows_ctx *r, int64_t limit, struct rp_err *err)
{
    size_t i, n = 0, shown;
    struct rp_trace_diff_row *all =
        RP_ARENA_NEW(r->arena, struct rp_trace_diff_row, r->groups.n + 1);
    struct order *order = RP_ARENA_NEW(r->arena, struct order, r->groups.n + 1);
    struct mean means[2] = {{0, 0}, {0, 0}};

    RP_TRY(rp_err_need(all && order, err, "comparing operators"));
    for (i = 0; i < r->groups.n; i++) {
        RP_TRY(fill_numbers(r, &r->groups.at[i], means, &all[i], err));
        if (is_row(&all[i]))
            order[n++] = (struct order){llabs(all[i].delta_ns),
                                        rp_ns_sum(all[i].base_ns, all[i].new_ns), (uint32_t)i};
    }
    RP_TRY(find_host(r, all, err));
    for (size_t k = 0; k < r->groups.n; k++)
        for (int s = 0; s < 2 && is_unlike(&r->groups.at[k]); s++)
            rp_ns_add(&r->out->unlike_ns[s], r->groups.at[k].side[s].ns / r->npairs);
    rp_sort(order, n, sizeof *order, by_delta);
    shown = limit > 0 && (size_t)limit < n ? (size_t)limit : n;
    r->out->rows = RP_ARENA_NEW(r->arena, struct rp_trace_diff_row, shown + 1);
    RP_TRY(rp_err_need(r->out->rows, err, "comparing operators"));
    for (i = 0; i < shown; i++) {
        const struct group *g = &r->groups.at[order[i].group];
        struct rp_trace_diff_row *row = &r->out->rows[r->out->nrows++];

        *row = all[order[i].group];
        RP_TRY(fill_texts(r, g, row, err));
        if (!g->same_kernels && row->nbase_kernels && row->nnew_kernels) {
            char name[256];

            snprintf(name, sizeof name, "%s", row->label);
            cut_middle(name);
            row->kernels = rp_arena_textf(r->arena, "%s: %s -> %s", name,
                                          name_kernels(r, &g->side[0].kernels, row->base_works),
                                          name_kernels(r, &g->side[1].kernels, row->new_works));
        }
    }
    r->out->row_count = (int64_t)n;
    r->out->look = r->out->rows; /* in the sorted rows, those that did not change come last */
    while (r->out->nlook < r->out->nrows && r->out->rows[r->out->nlook].delta_ns)
        r->out->nlook++;
    return RP_OK;
}

static enum rp_code list_lines(struct rows_ctx *r, struct rp_err *err)
{
    size_t n = 0;

    r->out->kernels = RP_ARENA_NEW(r->arena, const char *, MOST_LINES + 1);
    RP_TRY(rp_err_need(r->out->kernels, err, "comparing kernels"));
    for (size_t i = 0; i < r->out->nrows; i++)
        if (r->out->rows[i].kernels && n++ < MOST_LINES)
            r->out->kernels[r->out->nkernels++] = r->out->rows[i].kernels;
    if (n > MOST_LINES)
        r->out->kernels[r->out->nkernels++] =
            rp_arena_textf(r->arena, "… and %zu more", n - MOST_LINES);
    return rp_arena_check(r->arena, "comparing kernels", err);
}

static enum rp_code fill_coverage(struct rows_ctx *r, struct rp_err *err)
{
    struct rp_trace_diff_root *out = r->out;
    int64_t all = 0, aligned = 0;

    out->coverage = RP_ARENA_NEW(r->arena, struct rp_trace_diff_rule, RP_DIFF_RULES);
    RP_TRY(rp_err_need(out->coverage, err, "comparing operators"));
    for (int rule = 0; rule < RP_DIFF_RULES; rule++) {
        int64_t ns = rp_ns_sum(r->rule_ns[rule][0], r->rule_ns[rule][1]);

        rp_ns_add(&all, ns);
        rp_ns_add(&aligned, rule == RP_DIFF_ALONE ? 0 : ns);
    }
    for (int rule = 0; rule < RP_DIFF_RULES; rule++) {
        const int64_t *ns = r->rule_ns[rule];

        if (ns[0] || ns[1])
            out->coverage[out->ncoverage++] = (struct rp_trace_diff_rule){
                rp_diff_rule_names[rule], ns[0] / r->npairs, ns[1] / r->npairs,
                all ? (double)rp_ns_sum(ns[0], ns[1]) / (double)all : 0};
    }
    out->aligned_share = all ? (double)aligned / (double)all : (double)NAN;
    return RP_OK;
}

static enum rp_code add_pair(struct rows_ctx *r, const struct rp_diff_tree *base,
                             const struct rp_diff_tree *fresh, struct rp_err *err)
{
    const struct rp_diff_tree *const trees[2] = {base, fresh};
    rp_diff_units units = {0};
    enum rp_code code = rp_diff_align(base, fresh, &units, err);

    for (int s = 0; s < 2; s++) {
        r->nslots[s] = trees[s]->nslots < r->nslots[s] ? trees[s]->nslots : r->nslots[s];
        r->taken[s] = trees[s]->steps < r->taken[s] ? (uint32_t)trees[s]->steps : r->taken[s];
    }

    for (size_t i = 0; i < units.n && code == RP_OK; i++)
        code = add_unit(r, trees, &units.at[i], err);
    rp_vec_release(&units);
    return code;
}

enum rp_code rp_trace_diff_rows(const struct rp_trace_diff_input *base,
                                const struct rp_trace_diff_input *fresh,
                                const struct rp_diff_pair *pairs, size_t npairs, int64_t limit,
                                struct rp_arena *arena, struct rp_trace_diff_root *out,
                                struct rp_err *err)
{
    struct rows_ctx r = {.arena = arena,
                         .out = out,
                         .npairs = npairs ? (int64_t)npairs : 1,
                         .nslots = {RP_DIFF_SLOTS, RP_DIFF_SLOTS},
                         .taken = {UINT32_MAX, UINT32_MAX}};
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < npairs && code == RP_OK; i++)
        code =
            add_pair(&r, &base[pairs[i].base].part->tree, &fresh[pairs[i].fresh].part->tree, err);
    if (code == RP_OK)
        code = make_rows(&r, limit, err);
    if (code == RP_OK)
        code = list_lines(&r, err);
    if (code == RP_OK)
        code = fill_coverage(&r, err);
    rp_map_release(&r.map);
    for (size_t i = 0; i < 2 * r.groups.n; i++)
        rp_vec_release(&r.groups.at[i / 2].side[i % 2].call_times);
    rp_vec_release(&r.groups);
    return code;
}
