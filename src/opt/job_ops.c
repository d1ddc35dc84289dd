/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which operators of a job are fused (job_ops.h). Linear in operators and edges. */
#include "opt/job_ops.h"
#include "base/each.h"

#include "io/lines.h"
#include "sim/model/fusing.h"

#include <math.h>
#include <string.h>

#define FILE_MOST (64u << 20)
RP_LIMIT(FILE_MOST, "bytes", "a larger file is refused");

/* ------------------------------------------------------------------ which may be fused */

static bool is_elementwise(const char *type, size_t len)
{
    static const char *const types[] = {
        "Add",      "AddV2",   "AddN",         "Sub",      "Mul",         "Div",      "RealDiv",
        "BiasAdd",  "Relu",    "ReluGrad",     "Relu6",    "Relu6Grad",   "Gelu",     "GeluGrad",
        "Tanh",     "Sigmoid", "TanhGrad",     "Exp",      "Log",         "Neg",      "Sqrt",
        "Rsqrt",    "Square",  "Pow",          "Maximum",  "Minimum",     "Cast",     "Select",
        "SelectV2", "Greater", "GreaterEqual", "Identity", "SigmoidGrad", "Softplus", "Erf"};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i]) == len && !memcmp(types[i], type, len))
            return true;
    return false;
}

/* Takes the type from a name, "net/relu/Relu_1", if types were not recorded: its last word without
   the number. */
static bool name_is_elementwise(const char *name)
{
    const char *leaf = strrchr(name, '/');

    leaf = leaf ? leaf + 1 : name;
    size_t len = strlen(leaf);
    while (len && leaf[len - 1] >= '0' && leaf[len - 1] <= '9')
        len--;
    if (len && leaf[len - 1] == '_')
        len--;
    return is_elementwise(leaf, len ? len : strlen(leaf));
}

struct names {
    struct rp_map set; /* from hash of a name to number */
    size_t unknown;
    const struct rp_map *known; /* operators of the job */
    bool numbered;              /* the second word is a cluster */
    uint32_t next;
    struct rp_map ids; /* from hash of the word to cluster */
    bool done;         /* the rest of the file is not about operators */
};

/* Reads "<op> <number>"; after a line "unsafe_resource_deps_" there are only pairs of numbers. */
static enum rp_code name_line(void *user, const char *path, size_t number, const char *line,
                              size_t n, struct rp_err *err)
{
    struct names *x = user;
    size_t len = 0, at;
    uint32_t value = 1;

    while (len < n && line[len] != ' ' && line[len] != '\t' && line[len] != '\r')
        len++;
    x->done |= len >= 20 && !memcmp(line, "unsafe_resource_deps", 20);
    if (x->done || !len || *line == '#')
        return RP_OK;
    uint64_t key = rp_hash_bytes(line, len);
    if (x->numbered) {
        for (at = len; at < n && (line[at] == ' ' || line[at] == '\t');)
            at++;
        if (at == n)
            return rp_err_set(err, RP_FORMAT, "%s:%zu: '<operator> <cluster>' is expected", path,
                              number);
        RP_TRY(rp_map_intern(&x->ids, rp_hash_bytes(line + at, n - at), x->next, &value, err));
        x->next += value == x->next;
    }
    x->unknown += rp_map_get(x->known, key) == RP_MAP_NONE;
    return rp_map_put(&x->set, key, value, err);
}

static enum rp_code read_names(const char *path, struct names *x, struct rp_arena *arena,
                               struct rp_err *err)
{
    return rp_lines_read(path, FILE_MOST, arena, name_line, x, err);
}

static enum rp_code index_ops(const struct rp_opt_job_model *m, struct rp_map *out,
                              struct rp_err *err)
{
    const struct rp_mean_rank *r = &m->means.ranks[0];

    for (size_t i = 0; i < r->ops.n; i++)
        RP_TRY(rp_map_put(out, rp_means_name_key(r->ops.at[i].name), (uint32_t)i, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ the walk */

struct walk_ctx {
    const struct rp_opt_job_model *m;
    struct rp_map types; /* from hash of an operator to 1 if it is element-wise, otherwise 2 */
    struct rp_map
        sends; /* from hash of an operator to the tensor that it makes, by place in the model */
    struct names names; /* the candidates in a file */
    bool has_names;
    struct rp_arena *arena;
    struct rp_opt_job_ops *out;
    size_t first; /* of the chain at hand */
    double sum_ns, longest_ns, sends_ns;
};

static bool may_fuse(const struct walk_ctx *w, const struct rp_mean_op *op)
{
    uint64_t key = rp_means_name_key(op->name);
    uint32_t type = rp_map_get(&w->types, key);

    if (op->is_update)
        return false;
    if (w->has_names)
        return rp_map_get(&w->names.set, key) != RP_MAP_NONE;
    return type == RP_MAP_NONE ? name_is_elementwise(op->name) : type == 1;
}

static double fused_ns(double longest_ns, double sum_ns)
{
    double fused = longest_ns * rp_sim_fused_factor(llround(longest_ns));

    return fused < sum_ns ? fused : sum_ns;
}

/* Returns how long the gradient that an operator makes takes to be sent; 0 if it makes none. */
static double sends_ns(const struct walk_ctx *w, const struct rp_mean_op *op)
{
    const struct rp_opt_job_model *m = w->m;
    uint32_t t = rp_map_get(&w->sends, rp_means_name_key(op->name));
    size_t i;

    if (t == RP_MAP_NONE)
        return 0;
    double bytes = m->sum[t + 1] - m->sum[t];
    for (i = 0; i + 1 < m->nsizes && m->sizes[i] < bytes;)
        i++;
    return m->ring_ns[i * m->nranks];
}

static enum rp_code close_chain(struct walk_ctx *w, size_t end, struct rp_err *err)
{
    const struct rp_mean_op *ops = w->m->means.ranks[0].ops.at;
    struct rp_job_plan_cluster *c = &w->out->clusters[w->out->n];
    size_t i, n = 0;

    if (w->first == SIZE_MAX || end - w->first < 2 || !(w->sum_ns > 0))
        return RP_OK;
    const char **names = RP_ARENA_NEW(w->arena, const char *, end - w->first);
    RP_TRY(rp_arena_check(w->arena, "searching", err));
    for (i = w->first; i < end; i++)
        if (!ops[i].is_update)
            names[n++] = rp_arena_text(w->arena, ops[i].name);
    *c = (struct rp_job_plan_cluster){n, names, fused_ns(w->longest_ns, w->sum_ns) / w->sum_ns};
    w->out->n++;
    return rp_arena_check(w->arena, "searching", err);
}

static void begin_chain(struct walk_ctx *w, const struct rp_mean_op *op, size_t i)
{
    w->first = i;
    w->sum_ns = w->longest_ns = op->dur_ns;
    w->sends_ns = sends_ns(w, op);
}

static enum rp_code walk_ops(struct walk_ctx *w, struct rp_err *err)
{
    const struct rp_mean_rank *r = &w->m->means.ranks[0];

    w->first = SIZE_MAX;
    for (size_t i = 0; i < r->ops.n; i++) {
        const struct rp_mean_op *op = &r->ops.at[i];

        if (!may_fuse(w, op)) {
            RP_TRY(close_chain(w, i, err));
            w->first = SIZE_MAX;
            continue;
        }
        w->out->left++;
        if (w->first == SIZE_MAX || i - w->first >= RP_OPT_CHAIN_MOST) {
            RP_TRY(close_chain(w, i, err));
            begin_chain(w, op, i);
            continue;
        }
        double longest = fmax(w->longest_ns, op->dur_ns);
        double before = fused_ns(w->longest_ns, w->sum_ns) + op->gap_ns + op->dur_ns;
        double saved = before - fused_ns(longest, w->sum_ns + op->dur_ns);
        if (saved <= w->sends_ns || saved <= 0) {
            RP_TRY(close_chain(w, i, err));
            begin_chain(w, op, i);
            continue;
        }
        w->longest_ns = longest;
        w->sum_ns += op->dur_ns;
        w->sends_ns += sends_ns(w, op);
    }
    return close_chain(w, r->ops.n, err);
}

static enum rp_code index_types(struct walk_ctx *w, struct rp_err *err)
{
    const struct rp_job *job = w->m->job;

    for (size_t i = 0; i < job->types.n; i++) {
        const struct rp_job_type *t = &job->types.at[i];

        if (t->type)
            RP_TRY(rp_map_put(&w->types, rp_means_name_key(t->op),
                              is_elementwise(t->type, strlen(t->type)) ? 1 : 2, err));
    }
    return RP_OK;
}

/* Finds which operator makes which tensor of the model. */
static enum rp_code index_sends(const struct rp_opt_job_model *m, struct rp_map *out,
                                struct rp_err *err)
{
    const struct rp_job_rank *r = &m->job->ranks[0];
    RP_SCOPED(rp_map_release) struct rp_map place = {0};

    for (size_t i = 0; i < m->n; i++)
        RP_TRY(
            rp_map_put(&place, (uint64_t)m->job->tensors.at[m->tensors[i]].id, (uint32_t)i, err));
    for (size_t i = 0; i < r->edges.n; i++) {
        uint32_t t = r->edges.at[i].to_tensor < 0
                         ? RP_MAP_NONE
                         : rp_map_get(&place, (uint64_t)r->edges.at[i].to_tensor);

        if (t != RP_MAP_NONE)
            RP_TRY(rp_map_put(out, rp_means_name_key(r->edges.at[i].from), t, err));
    }
    return RP_OK;
}

static void names_init(struct names *x)
{
    *x = (struct names){0};
}

static void names_release(struct names *x)
{
    RP_EACH(rp_map_release, &x->set, &x->ids);
}

enum rp_code rp_opt_find_job_ops(const struct rp_opt_job_model *m, const char *candidates,
                                 struct rp_arena *arena, struct rp_opt_job_ops *out,
                                 struct rp_err *err)
{
    struct walk_ctx w = {.m = m, .arena = arena, .out = out, .has_names = candidates};
    struct rp_map known = {0};

    *out = (struct rp_opt_job_ops){
        .clusters = RP_ARENA_NEW(arena, struct rp_job_plan_cluster, m->means.ranks[0].ops.n + 1)};
    names_init(&w.names);
    w.names.known = &known;
    enum rp_code code = rp_arena_check(arena, "searching", err);
    if (code == RP_OK)
        code = index_ops(m, &known, err);
    if (code == RP_OK && candidates)
        code = read_names(candidates, &w.names, arena, err);
    if (code == RP_OK)
        code = index_types(&w, err);
    if (code == RP_OK)
        code = index_sends(m, &w.sends, err);
    if (code == RP_OK)
        code = walk_ops(&w, err);
    out->given = w.names.unknown;
    names_release(&w.names);
    RP_EACH(rp_map_release, &w.types, &w.sends, &known);
    return code;
}

/* ------------------------------------------------------------------ given clusters */

static enum rp_code fill_clusters(const struct rp_opt_job_model *m, const struct names *x,
                                  struct rp_arena *arena, struct rp_opt_job_ops *out,
                                  struct rp_err *err)
{
    const struct rp_mean_rank *r = &m->means.ranks[0];

    out->clusters = RP_ARENA_NEW(arena, struct rp_job_plan_cluster, x->next + 1);
    RP_TRY(rp_arena_check(arena, "searching", err));
    for (uint32_t cluster = 0; cluster < x->next; cluster++) {
        const char **names = RP_ARENA_NEW(arena, const char *, r->ops.n + 1);
        double sum = 0, longest = 0;
        size_t n = 0;

        RP_TRY(rp_arena_check(arena, "searching", err));
        for (size_t i = 0; i < r->ops.n; i++) {
            const struct rp_mean_op *op = &r->ops.at[i];

            if (op->is_update || rp_map_get(&x->set, rp_means_name_key(op->name)) != cluster)
                continue;
            names[n++] = rp_arena_text(arena, op->name);
            sum += op->dur_ns;
            longest = fmax(longest, op->dur_ns);
        }
        if (n > 1 && sum > 0)
            out->clusters[out->n++] =
                (struct rp_job_plan_cluster){n, names, fused_ns(longest, sum) / sum};
    }
    return rp_arena_check(arena, "searching", err);
}

enum rp_code rp_opt_read_job_ops(const struct rp_opt_job_model *m, const char *path,
                                 struct rp_arena *arena, struct rp_opt_job_ops *out,
                                 struct rp_err *err)
{
    RP_SCOPED(names_release) struct names x = {0};
    RP_SCOPED(rp_map_release) struct rp_map known = {0};

    *out = (struct rp_opt_job_ops){0};
    names_init(&x);
    x.known = &known;
    x.numbered = true;
    RP_TRY(index_ops(m, &known, err));
    RP_TRY(read_names(path, &x, arena, err));
    RP_TRY(fill_clusters(m, &x, arena, out, err));
    out->given = x.unknown;
    return RP_OK;
}

void rp_opt_groups_of_ops(const struct rp_opt_job_model *m, const struct rp_opt_job_ops *ops,
                          uint8_t *joined)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_map sends = {0};

    memset(joined, 0, m->n);
    if (index_sends(m, &sends, &err) == RP_OK)
        for (size_t c = 0; c < ops->n; c++) {
            size_t low = SIZE_MAX, high = 0;

            for (size_t i = 0; i < ops->clusters[c].n; i++) {
                uint32_t t = rp_map_get(&sends, rp_means_name_key(ops->clusters[c].ops[i]));

                if (t == RP_MAP_NONE)
                    continue;
                low = t < low ? t : low;
                high = t > high ? t : high;
            }
            for (size_t k = low; low != SIZE_MAX && k < high; k++)
                joined[k] = 1;
        }
    rp_map_release(&sends);
}
