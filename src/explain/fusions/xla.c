/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what XLA left separate. The kernels of a trace are joined with the instructions of the
 * optimised program, which the profile carries or which is among the inputs (a folder with the
 * profile and the dump). An instruction that only works on elements, reduces or moves data, and
 * another such instruction that uses its result, are a pair; their operands say why they are two
 * kernels. Of overlapping pairs, only the one that saves most is kept, so that the times of rows
 * add up.
 */
#include "explain/fusions/xla.h"
#include "base/decides.h"
#include "base/text.h"

#include "base/filled.h"
#include "base/hash.h"
#include "base/named.h"
#include "base/order.h"
#include "explain/xla_programs.h"
#include "facts/work/attribution.h"
#include "facts/xla_names.h"
#include "program/opcodes.h"
#include "program/program.h"

#include <string.h>

#define MOST_PAIRS 100000
RP_LIMIT(MOST_PAIRS, "pairs", "a note says that there are more");
#define MOST_FOLLOW 64
RP_LIMIT(MOST_FOLLOW, "bitcasts and tuples",
         "between two instructions; with more they are not a pair");
#define MOST_MODULES 256
RP_LIMIT(MOST_MODULES, "modules", "instructions of further modules are not looked for");

/* A kernel of the trace. */
struct kernel {
    int64_t ns, count;
    uint32_t instances; /* number of instructions that it runs */
};

struct pair {
    uint32_t from, to; /* instructions */
    const struct kernel *a, *b;
    int64_t runs, device_ns, fused_ns;
    const char *reason;
};

struct parting {
    const struct rp_loaded *loaded;
    const struct rp_trace *t;
    struct rp_arena *arena; /* of the part */
    struct rp_fusions_part *out;
    struct rp_arg_key hlo_op, hlo_module;
    struct rp_map known; /* from the hash of module and name to a kernel */
    RP_VEC(struct kernel) kernels;
    RP_VEC(rp_str) modules;
    /* state of the current program */
    const struct rp_program *p;
    const char *module;     /* its name */
    RP_VEC(uint32_t) users; /* by instruction: the users of its result */
    RP_VEC(uint32_t) kernel_of;
    RP_VEC(struct pair) pairs;
    struct rp_map groups;
    RP_VEC(bool) taken;
};

/* ------------------------------------------------------------------ kernels of the trace */

static uint64_t text_hash(const char *text)
{
    return rp_hash_bytes(text, strlen(text));
}

static enum rp_code note_module(struct parting *x, rp_str module, struct rp_err *err)
{
    for (size_t i = 0; i < x->modules.n; i++)
        if (x->modules.at[i] == module)
            return RP_OK;
    return x->modules.n < MOST_MODULES ? rp_vec_push(&x->modules, module, err) : RP_OK;
}

static enum rp_code note_item(struct parting *x, const struct rp_work_item *item,
                              struct rp_err *err)
{
    struct kernel fresh = {0};
    rp_str module;
    uint32_t at;

    if (!rp_arg_key_text(&x->hlo_module, item->event, &module) || !module)
        return RP_OK;
    RP_TRY(note_module(x, module, err));
    const char *name = rp_trace_str(x->t, rp_xla_instruction(&x->hlo_op, item->event));
    RP_TRY(rp_map_intern(&x->known, rp_xla_name_hash(rp_trace_str(x->t, module), name),
                         (uint32_t)x->kernels.n, &at, err));
    if (at == x->kernels.n)
        RP_TRY(rp_vec_push(&x->kernels, fresh, err));
    x->kernels.at[at].count++;
    rp_ns_add(&x->kernels.at[at].ns, rp_ns_between(item->begin_ns, item->end_ns));
    return RP_OK;
}

/* ------------------------------------------------------------------ instructions */

/* The operand behind bitcasts and elements of tuples. */
static uint32_t source_of(const struct rp_program *p, uint32_t op)
{
    int left = MOST_FOLLOW;

    while (left-- > 0 &&
           (p->code.at[op] == RP_OP_BITCAST || p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT) &&
           rp_op_operands(p, op).n == 1)
        op = rp_op_operands(p, op).at[0];
    return op;
}

static const char *op_text(const struct parting *x, uint32_t op)
{
    return rp_program_text(x->p, x->p->op_name.at[op]);
}

/* Whether an instruction could be part of a fusion. Products, convolutions and custom calls cannot;
   the name of a fusion says whether it can. */
static bool can_fuse(const struct parting *x, uint32_t op)
{
    static const char *const products[] = {"gemm",   "dot",  "conv", "cublas", "cudnn",
                                           "custom", "all-", "all_", NULL};
    const struct rp_op_info *info = &rp_op_info[x->p->code.at[op]];
    const char *name = op_text(x, op);

    if (x->p->code.at[op] == RP_OP_FUSION)
        return !rp_has_word(name, products) || strstr(name, "convert");
    return !(info->flags & RP_OPF_FREE) &&
           (info->class_ == RP_CLASS_ELEMENT || info->class_ == RP_CLASS_REDUCE ||
            info->class_ == RP_CLASS_MOVE);
}

static enum rp_code find_kernels(struct parting *x, struct rp_err *err)
{
    const struct rp_program *p = x->p;

    RP_TRY(rp_vec_zeros(&x->users, p->nops, err));
    RP_TRY(rp_vec_reserve(&x->kernel_of, p->nops + 1, err));
    for (uint32_t op = 0; op < p->nops; op++) {
        struct rp_ids operands = rp_op_operands(p, op);
        uint32_t found = RP_MAP_NONE;

        if (!p->computations.at[p->computation.at[op]].fused) {
            found = rp_map_get(&x->known, rp_xla_name_hash(x->module, op_text(x, op)));
            if (found == RP_MAP_NONE && p->meta.at[op] && p->code.at[op] == RP_OP_FUSION)
                found = rp_map_get(
                    &x->known,
                    rp_xla_name_hash(
                        x->module,
                        rp_program_text(p, p->metas.at[p->meta.at[op]].deduplicated_name)));
        }
        x->kernel_of.at[op] = found;
        if (found != RP_MAP_NONE)
            x->kernels.at[found].instances++;
        for (uint32_t i = 0; i < operands.n && p->code.at[op] != RP_OP_BITCAST &&
                             p->code.at[op] != RP_OP_GET_TUPLE_ELEMENT;
             i++)
            x->users.at[source_of(p, operands.at[i])]++;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ reasons */

/* Whether the root of a fusion, or the instruction itself, reduces. */
static bool reduces(const struct parting *x, uint32_t op)
{
    struct rp_ids called = rp_op_called(x->p, op);

    if (x->p->code.at[op] == RP_OP_FUSION && called.n)
        op = source_of(x->p, x->p->computations.at[called.at[0]].root);
    return rp_op_info[x->p->code.at[op]].class_ == RP_CLASS_REDUCE;
}

static const char *fusion_kind(const struct parting *x, uint32_t op)
{
    const struct rp_attr *kind = rp_op_attr(x->p, op, RP_ATTR_KIND);
    static const struct {
        const char *word, *name;
    } kinds[] = {{"kLoop", "loop"}, {"kInput", "input"}, {"kCustom", "Triton"}};

    for (size_t i = 0; kind && kind->type == RP_VALUE_WORD && i < sizeof kinds / sizeof kinds[0];
         i++)
        if (kind->n == strlen(kinds[i].word) && !strncmp(kind->at, kinds[i].word, kind->n))
            return kinds[i].name;
    return "single";
}

/* Says why two instructions are two kernels, as far as their operands tell. */
static const char *reason_of(struct parting *x, uint32_t from, uint32_t to)
{
    const struct rp_program *p = x->p;
    const char *a = fusion_kind(x, from), *b = fusion_kind(x, to);

    if (x->users.at[from] > 1)
        return rp_arena_textf(x->arena, "the result has %u users", x->users.at[from]);
    if (reduces(x, from))
        return "a reduction ends before its result is used";
    if (strstr(op_text(x, from), "transpose") || strstr(op_text(x, from), "copy"))
        return "a change of layout comes before";
    if (strstr(op_text(x, from), "scatter") || strstr(op_text(x, to), "scatter"))
        return "a scatter is a kernel of its own";
    if (rp_shape_elements(p, p->shape.at[from]) != rp_shape_elements(p, p->shape.at[to]))
        return reduces(x, to) ? "a reduction of another size follows" : "their sizes differ";
    if (strcmp(a, b) != 0)
        return rp_arena_textf(x->arena, "a %s and a %s fusion", a, b);
    return "the program shows no reason";
}

/* ------------------------------------------------------------------ pairs */

static int64_t mean_ns(const struct kernel *k)
{
    return k->count ? k->ns / k->count : 0;
}

static double op_bytes(const struct rp_program *p, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(p, op);
    double bytes = (double)rp_shape_bytes(p, p->shape.at[op]);

    for (uint32_t i = 0; i < operands.n; i++)
        bytes += (double)rp_shape_bytes(p, p->shape.at[operands.at[i]]);
    return bytes;
}

/* The result need not be read again, and if it has only one user, need not be written. */
static int64_t fused_pair_ns(const struct parting *x, const struct pair *e)
{
    int64_t a = mean_ns(e->a), b = mean_ns(e->b);
    double in = op_bytes(x->p, e->from), to = op_bytes(x->p, e->to), best;
    double between = (double)rp_shape_bytes(x->p, x->p->shape.at[e->from]);

    if (a <= 0 || b <= 0)
        return a + b;
    best = in / (double)a > to / (double)b ? in / (double)a : to / (double)b;
    return rp_fused_ns(a > b ? a : b, in + to - (x->users.at[e->from] > 1 ? 1 : 2) * between, best);
}

static enum rp_code add_pair(struct parting *x, uint32_t from, uint32_t to, struct rp_err *err)
{
    struct pair e = {.from = from, .to = to};

    if (x->kernel_of.at[from] == RP_MAP_NONE || x->kernel_of.at[to] == RP_MAP_NONE ||
        !can_fuse(x, from) || !can_fuse(x, to))
        return RP_OK;
    x->out->cut = x->out->cut || x->pairs.n >= MOST_PAIRS;
    if (x->out->cut)
        return RP_OK;
    e.a = &x->kernels.at[x->kernel_of.at[from]];
    e.b = &x->kernels.at[x->kernel_of.at[to]];
    e.runs = e.a->count / (e.a->instances ? e.a->instances : 1);
    int64_t each = rp_ns_sum(mean_ns(e.a), mean_ns(e.b));
    e.device_ns = each * (e.runs > 0 ? e.runs : 1);
    e.fused_ns = fused_pair_ns(x, &e);
    e.fused_ns = (e.fused_ns < each ? e.fused_ns : each) * (e.runs > 0 ? e.runs : 1);
    return rp_vec_push(&x->pairs, e, err);
}

RP_ORDER(by_saving, struct pair, RP_COMPARE(b->device_ns - b->fused_ns, a->device_ns - a->fused_ns),
         RP_UP(from), RP_UP(to))

/* The framework's name of an instruction: the last component of its path, else the opcode. */
static const char *short_op(const struct parting *x, uint32_t op)
{
    const struct rp_program *p = x->p;
    const char *path =
        p->meta.at[op] ? rp_program_text(p, p->metas.at[p->meta.at[op]].op_name) : "";
    path = rp_text_file(path);
    return *path ? path : rp_op_opcode_name(p, op);
}

static enum rp_code add_group(struct parting *x, const struct pair *e, struct rp_err *err)
{
    struct rp_source_line at;
    struct rp_fusion f = {.kind = RP_FUSION_COMPILED, .kernels = 2, .sized = true};
    char shape[128];
    uint32_t group;
    const char *path = x->p->meta.at[e->to]
                           ? rp_program_text(x->p, x->p->metas.at[x->p->meta.at[e->to]].op_name)
                           : "";

    rp_shape_text(x->p, x->p->shape.at[e->from], false, shape, sizeof shape);
    f.ops = rp_arena_textf(x->arena, "%s, %s", short_op(x, e->from), short_op(x, e->to));
    f.reason = e->reason;
    f.shape = rp_arena_text(x->arena, shape);
    f.elements = (double)rp_shape_elements(x->p, x->p->shape.at[e->from]);
    f.phase = rp_xla_is_backward(path) ? RP_PHASE_BACKWARD
              : strchr(path, '/')      ? RP_PHASE_FORWARD
                                       : RP_PHASE_OTHER;
    if (rp_op_source(x->p, e->to, &at) && at.file && *at.file)
        f.line = rp_arena_textf(x->arena, "%s(%d): %s", at.file, at.line, at.function);
    uint64_t key = rp_hash_join(text_hash(f.ops), text_hash(f.reason));
    key = rp_hash_join(rp_hash_join(key, text_hash(shape)), text_hash(f.line ? f.line : ""));
    f.key = rp_hash_join(key, f.phase);
    RP_TRY(rp_map_intern(&x->groups, f.key, (uint32_t)x->out->fusions.n, &group, err));
    if (group == x->out->fusions.n)
        RP_TRY(rp_vec_push(&x->out->fusions, f, err));
    x->out->fusions.at[group].count += e->runs;
    rp_ns_add(&x->out->fusions.at[group].device_ns, e->device_ns);
    rp_ns_add(&x->out->fusions.at[group].fused_ns, e->fused_ns);
    return RP_OK;
}

static enum rp_code find_pairs(struct parting *x, struct rp_err *err)
{
    const struct rp_program *p = x->p;

    for (uint32_t op = 0; op < p->nops; op++) {
        struct rp_ids operands = rp_op_operands(p, op);

        for (uint32_t i = 0; i < operands.n && x->kernel_of.at[op] != RP_MAP_NONE; i++)
            RP_TRY(add_pair(x, source_of(p, operands.at[i]), op, err));
    }
    rp_sort(x->pairs.at, x->pairs.n, sizeof *x->pairs.at, by_saving);
    RP_TRY(rp_vec_zeros(&x->taken, p->nops, err));
    for (size_t k = 0; k < x->pairs.n; k++) {
        struct pair *e = &x->pairs.at[k];

        if (x->taken.at[e->from] || x->taken.at[e->to])
            continue;
        x->taken.at[e->from] = x->taken.at[e->to] = true;
        e->reason = reason_of(x, e->from, e->to);
        RP_TRY(add_group(x, e, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ programs */

static bool runs_module(const struct parting *x, const char *module)
{
    for (size_t i = 0; i < x->modules.n; i++)
        if (!strcmp(rp_trace_str(x->t, x->modules.at[i]), module))
            return true;
    return false;
}

static enum rp_code look_at_program(void *user, const char *module, const struct rp_program *p,
                                    struct rp_err *err)
{
    struct parting *x = user;

    if (!runs_module(x, module))
        return RP_OK;
    x->p = p;
    x->module = module;
    x->pairs.n = 0;
    x->out->programs++;
    for (size_t i = 0; i < x->kernels.n; i++)
        x->kernels.at[i].instances = 0;
    RP_TRY(find_kernels(x, err));
    return find_pairs(x, err);
}

static enum rp_code note_items(struct parting *x, const struct rp_scope *scope, struct rp_err *err)
{
    RP_SCOPED(rp_work_release) struct rp_work w = {0};

    RP_TRY(rp_work_init(&w, x->t, scope, err));
    for (size_t i = 0; i < w.items.n; i++)
        RP_TRY(note_item(x, &w.items.at[i], err));
    return RP_OK;
}

enum rp_code rp_fusions_of_xla(const struct rp_loaded *loaded, const struct rp_scope *scope,
                               struct rp_arena *arena, struct rp_fusions_part *out,
                               struct rp_err *err)
{
    struct parting x = {.loaded = loaded, .t = loaded->trace, .arena = arena, .out = out};
    enum rp_code code = rp_arg_key_init(&x.hlo_op, x.t, "hlo_op", err);

    if (code == RP_OK)
        code = rp_arg_key_init(&x.hlo_module, x.t, "hlo_module", err);
    if (code == RP_OK)
        code = note_items(&x, scope, err);
    out->xla = x.modules.n > 0;
    if (code == RP_OK && out->xla)
        code = rp_xla_each_program(loaded, look_at_program, &x, err);
    rp_arg_key_release(&x.hlo_op);
    rp_arg_key_release(&x.hlo_module);
    rp_map_release(&x.known);
    rp_map_release(&x.groups);
    rp_vec_release(&x.kernels);
    rp_vec_release(&x.modules);
    rp_vec_release(&x.users);
    rp_vec_release(&x.kernel_of);
    rp_vec_release(&x.pairs);
    rp_vec_release(&x.taken);
    return code == RP_OK ? rp_arena_check(arena, "looking for fusions", err) : code;
}
