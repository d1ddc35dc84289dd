/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump ops` shows which operations of a program an engine runs, on which types, and why not. The
 * engines' own tables answer: kernels and what they refuse when a plan is made (ref, fast), their
 * lanes for the types of element-wise operations, the table of lowered operators (tf2xla), and, for
 * custom calls, the names in the plugin's library (pjrt). One program of each module is read: the
 * one before optimization, with which a replay begins. Without a program the target's whole table
 * is the answer.
 */
#include "base/order.h"
#include "dump/folder.h"
#include "dump/frameworks.h"
#include "exec/eval/lanes.h"
#include "exec/fast/kernels.h"
#include "exec/plugin/plugin.h"
#include "exec/ref/kernels.h"
#include "lower/lower.h"
#include "program/opcodes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- the answer ---- */

struct ops_row {
    const char *op;        /* opcode, operator or target of a custom call */
    const char *supported; /* "yes", "no", "unknown" */
    int64_t count;
    const char *types;   /* types of operands and results in the program */
    const char *accepts; /* "T={f32,f64}"; NULL: not restricted, or not known */
    const char *why;     /* why not, or why it is not known; or NULL */
    const char *example, *source;
    uint64_t elems[2]; /* private: types by number */
    unsigned opcode;   /* private: RP_OP_COUNT if it is not in HLO */
};

struct ops_root {
    const char *target, *plugin, *summary;
    int64_t programs, operations, unsupported;
    size_t nops, nnotes;
    struct ops_row *ops;
    const char **notes;
};

static const struct rp_field row_fields[] = {
    RP_FIELD(struct ops_row, op, STR, NONE, "operation",
             "opcode, operator of TensorFlow, or target of a custom call", RP_SHORTEN),
    RP_FIELD(struct ops_row, supported, STR, NONE, "runs", "yes, no or unknown", 0),
    RP_FIELD(struct ops_row, count, I64, COUNT, "count",
             "number in all programs; null without a program", RP_NULLABLE),
    RP_FIELD(struct ops_row, types, STR, NONE, "types", "types of operands and results there",
             RP_SHORTEN),
    RP_FIELD(struct ops_row, accepts, STR, NONE, "accepts",
             "types that the target has it for; null: not restricted, or not known",
             RP_SHORTEN | RP_WIDE),
    RP_FIELD(struct ops_row, why, STR, NONE, "why not", "or null", RP_SHORTEN),
    RP_FIELD(struct ops_row, example, STR, NONE, NULL, "the first operation of this kind", 0),
    RP_FIELD(struct ops_row, source, STR, NONE, "made at", "its line in the user's program",
             RP_SHORTEN | RP_WIDE),
    RP_FIELD_END};
static const struct rp_type row_type = {"op", sizeof(struct ops_row), row_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct ops_root, target, STR, NONE, "target", "what was asked", 0),
    RP_FIELD(struct ops_root, plugin, STR, NONE, "plugin", "whose library was searched; or null",
             RP_SHORTEN),
    RP_FIELD(struct ops_root, programs, I64, COUNT, NULL, "that were read; null: none was given",
             RP_NULLABLE),
    RP_FIELD(struct ops_root, operations, I64, COUNT, NULL,
             "operations in them, or in the target's table", 0),
    RP_FIELD(struct ops_root, unsupported, I64, COUNT, NULL, "that the target does not run", 0),
    RP_FIELD(struct ops_root, summary, STR, NONE, "answer", "one line", 0),
    RP_FIELD_LIST(struct ops_root, ops, &row_type, "operations",
                  "those that are not supported first", 0),
    RP_FIELD_LIST(struct ops_root, notes, &rp_type_string, "notes", "programs that were not judged",
                  RP_WARN),
    RP_FIELD_END};
static const struct rp_type ops_type = {"dump_ops", sizeof(struct ops_root), root_fields, "ops"};

/* ---- rows ---- */

struct ops_ctx {
    struct rp_arena *arena;
    struct ops_root *root;
    enum { REF, FAST, PJRT, TF2XLA } target;
    const struct rp_kernel **kernels; /* of ref or fast */
    char *plugin;                     /* of pjrt, or NULL */
    const struct rp_program *program;
    bool *refused; /* by operation of the program: whether it already has a row */
    RP_VEC(struct ops_row) rows;
    struct rp_err *err;
    enum rp_code code; /* of what callbacks did */
};

struct verdict {
    const char *op, *supported, *why;
    unsigned opcode;
};

static struct ops_row *row_of(struct ops_ctx *x, const struct verdict *v, uint32_t op)
{
    const struct rp_program *p = x->program;
    struct rp_source_line line;
    struct ops_row row;

    for (size_t i = 0; i < x->rows.n; i++) {
        struct ops_row *r = &x->rows.at[i];

        if (!strcmp(r->supported, v->supported) && !strcmp(r->op, v->op) &&
            (r->why ? v->why && !strcmp(r->why, v->why) : !v->why))
            return r;
    }
    row =
        (struct ops_row){.op = rp_arena_text(x->arena, v->op),
                         .supported = v->supported,
                         .why = rp_arena_text(x->arena, v->why),
                         .opcode = v->opcode,
                         .example = rp_arena_text(x->arena, rp_program_text(p, p->op_name.at[op]))};
    if (rp_op_source(p, op, &line))
        row.source = rp_arena_textf(x->arena, "%s:%d", line.file, (int)line.line);
    if (rp_vec_push(&x->rows, row, x->err) != RP_OK) {
        x->code = RP_NOMEM;
        return NULL;
    }
    return &x->rows.at[x->rows.n - 1];
}

static void add_elem(struct ops_row *row, unsigned elem)
{
    if (elem < 128)
        row->elems[elem / 64] |= UINT64_C(1) << (elem % 64);
}

/* Counts an operation, and its types. */
static void add_op(struct ops_ctx *x, uint32_t op, const struct verdict *v)
{
    const struct rp_program *p = x->program;
    struct rp_ids operands = rp_op_operands(p, op);
    struct ops_row *row = row_of(x, v, op);

    if (!row)
        return;
    row->count++;
    x->root->operations++;
    x->root->unsupported += !strcmp(v->supported, "no");
    add_elem(row, p->shapes.at[p->shape.at[op]].elem);
    for (uint32_t i = 0; i < operands.n; i++)
        add_elem(row, p->shapes.at[p->shape.at[operands.at[i]]].elem);
}

/* ---- types ---- */

static const char *elem_list(struct rp_arena *arena, const uint64_t elems[2])
{
    const char *list = "";

    for (unsigned e = 1; e < 128; e++)
        if ((elems[e / 64] >> (e % 64) & 1) && e != RP_ELEM_TUPLE && rp_elem_name(e))
            list = rp_arena_textf(arena, "%s%s%s", list, *list ? "," : "", rp_elem_name(e));
    return *list ? list : NULL;
}

/* Whether an element-wise operation has a lane for a type: with a result of the same type, that of
   a comparison, or the parts of a complex number. */
static bool has_lane(unsigned opcode, unsigned elem)
{
    static const uint8_t results[] = {0, RP_ELEM_PRED, RP_ELEM_F32, RP_ELEM_F64};

    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        struct rp_lane lane = {.from = (uint8_t)elem,
                               .to = results[i] ? results[i] : (uint8_t)elem,
                               .exponent = 8,
                               .mantissa = 7,
                               .unit = (uint8_t)(rp_elem_bits(elem) / 8)};

        if (rp_lane_find(opcode, false, &lane))
            return true;
    }
    return false;
}

static const char *accepted_types(struct rp_arena *arena, unsigned opcode)
{
    uint64_t elems[2] = {0, 0};

    if (opcode >= RP_OP_COUNT || rp_op_info[opcode].class_ != RP_CLASS_ELEMENT ||
        opcode == RP_OP_MAP)
        return NULL;
    for (unsigned e = 1; e < RP_ELEM_COUNT; e++)
        if (rp_elem_name(e) && rp_elem_bits(e) && has_lane(opcode, e))
            elems[e / 64] |= UINT64_C(1) << (e % 64);
    const char *list = elem_list(arena, elems);
    return list ? rp_arena_textf(arena, "T={%s}", list) : NULL;
}

/* ---- judging HLO ---- */

static const char *call_target(struct ops_ctx *x, uint32_t op)
{
    const struct rp_attr *attr = rp_op_attr(x->program, op, RP_ATTR_CUSTOM_CALL_TARGET);

    return attr && rp_attr_is_bytes(attr) ? rp_arena_textf(x->arena, "%.*s", (int)attr->n, attr->at)
                                          : "custom-call";
}

static const char *name_of(struct ops_ctx *x, uint32_t op)
{
    return x->program->code.at[op] == RP_OP_CUSTOM_CALL ? call_target(x, op)
                                                        : rp_op_opcode_name(x->program, op);
}

static void note_refused(void *user, uint32_t op, const char *why)
{
    struct ops_ctx *x = user;
    struct verdict v = {name_of(x, op), "no", why, x->program->code.at[op]};

    if (x->refused[op]) /* its computation may be planned in several places */
        return;
    if (v.opcode == RP_OP_CUSTOM_CALL && strstr(v.op, "callback"))
        v.why = "it calls back into Python";
    else if (!strncmp(why, "unsupported custom call", 23)) /* which its row names */
        v.why = "no such custom call";
    x->refused[op] = true;
    add_op(x, op, &v);
}

/* Operations that ref and fast have not refused are supported. */
static enum rp_code judge_kernels(struct ops_ctx *x)
{
    const struct rp_program *p = x->program;

    x->refused = RP_ARENA_NEW(x->arena, bool, p->nops + 1);
    RP_TRY(rp_err_need(x->refused, x->err, "judging operations"));
    RP_TRY(rp_plan_check(p, x->kernels, note_refused, x, x->err));
    for (uint32_t op = 0; op < p->nops; op++) {
        struct verdict v = {"", "yes", NULL, p->code.at[op]};

        if (x->refused[op])
            continue;
        v.op = name_of(x, op);
        if (!x->kernels[p->code.at[op]]) { /* it is in a computation that is not reached */
            v.supported = "no";
            v.why = "unsupported operation";
        }
        add_op(x, op, &v);
    }
    return RP_OK;
}

/* Whether the library of the plugin has the name of a custom call; 0: not known. */
static int plugin_has(struct ops_ctx *x, const char *target)
{
    for (size_t i = 0; i < x->rows.n; i++) { /* asked before */
        const struct ops_row *row = &x->rows.at[i];

        if (row->opcode == RP_OP_CUSTOM_CALL && !strcmp(row->op, target))
            return !strcmp(row->supported, "yes") ? 1 : !strcmp(row->supported, "no") ? -1 : 0;
    }
    if (!x->plugin)
        return 0;
    return rp_file_has_name(x->plugin, target) ? 1 : -1;
}

static struct verdict judge_call(struct ops_ctx *x, const char *target)
{
    int has = plugin_has(x, target);

    if (strstr(target, "callback"))
        return (struct verdict){target, "no", "it calls back into Python", RP_OP_CUSTOM_CALL};
    if (has > 0)
        return (struct verdict){target, "yes", NULL, RP_OP_CUSTOM_CALL};
    if (has < 0)
        return (struct verdict){target, "no", "the plugin's library does not have this call",
                                RP_OP_CUSTOM_CALL};
    return (struct verdict){target, "unknown",
                            "no plugin was found: 'reprise replay engines' says how to get one",
                            RP_OP_CUSTOM_CALL};
}

/* XLA runs all of HLO; custom calls depend on its plugin. */
static enum rp_code judge_pjrt(struct ops_ctx *x)
{
    const struct rp_program *p = x->program;

    for (uint32_t op = 0; op < p->nops; op++) {
        unsigned code = p->code.at[op];
        struct verdict v = {rp_op_opcode_name(p, op), "yes", NULL, code};

        if (code == RP_OP_CUSTOM_CALL)
            v = judge_call(x, call_target(x, op));
        else if (code == RP_OP_FOREIGN) {
            v.supported = "no";
            v.why = "not an operation of HLO";
        }
        add_op(x, op, &v);
    }
    return RP_OK;
}

/* ---- judging TensorFlow ---- */

static bool is_function(const struct rp_program *p, const char *name)
{
    for (size_t i = 0; i < p->computations.n; i++)
        if (!strcmp(rp_program_text(p, p->computations.at[i].name), name))
            return true;
    return false;
}

/* The type of a node: "float" for "type: DT_FLOAT"; "" if it has none. */
static void tensorflow_type(const struct rp_program *p, uint32_t op, char *out, size_t cap)
{
    uint32_t n;
    const struct rp_attr *attrs = rp_op_attrs(p, op, &n);

    *out = '\0';
    for (uint32_t i = 0; i < n && !*out; i++) {
        const char *key = rp_program_text(p, attrs[i].key), *at;

        if ((strcmp(key, "T") != 0 && strcmp(key, "dtype") != 0) || !rp_attr_is_bytes(&attrs[i]) ||
            !(at = memmem(attrs[i].at, attrs[i].n, "DT_", 3)))
            continue;
        for (at += 3; at < attrs[i].at + attrs[i].n && cap > 1 &&
                      (isalnum((unsigned char)*at) || *at == '_');
             at++, cap--)
            *out++ = (char)tolower((unsigned char)*at);
        *out = '\0';
        return;
    }
}

static void add_type_name(struct ops_ctx *x, struct ops_row *row, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = row->types; at && *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL))
        if (!strncmp(at, name, n) && (at[n] == ',' || !at[n]))
            return;
    row->types = rp_arena_textf(x->arena, "%s%s%s", row->types ? row->types : "",
                                row->types ? "," : "", name);
}

/* Nodes that are given to a replay, or give nothing. */
static bool is_edge_of_graph(const char *op)
{
    static const char *const names[] = {"_Arg",          "_DeviceArg",    "Placeholder",
                                        "PlaceholderV2", "_DeviceRetval", "NoOp"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(op, names[i]))
            return true;
    return false;
}

static enum rp_code judge_lowering(struct ops_ctx *x)
{
    const struct rp_program *p = x->program;

    for (uint32_t op = 0; op < p->nops; op++) {
        const char *name = rp_op_opcode_name(p, op);
        unsigned opcode = RP_OP_COUNT;
        char type[32];
        struct verdict v = {name, "yes", NULL, RP_OP_COUNT};

        if (p->code.at[op] != RP_OP_FOREIGN ||
            *name == '(') /* arguments and results of functions */
            continue;
        if (rp_tf_lower_knows(name, strlen(name), &opcode)) {
            v.opcode = opcode;
            if (rp_tf_lower_needs_known(name)) {
                v.supported = "unknown";
                v.why = "its size depends on data: only with inputs that are given";
            }
        } else if (!is_edge_of_graph(name) && !is_function(p, name)) {
            v.supported = "no";
            v.why = "not converted to HLO; the engine tf runs it";
        }
        tensorflow_type(p, op, type, sizeof type);
        if (!strcmp(v.supported, "yes") && (!strcmp(type, "string") || !strcmp(type, "variant"))) {
            v.supported = "no";
            v.why = "HLO has no such type; the engine tf runs it";
        }
        add_op(x, op, &v);
        struct ops_row *row = row_of(x, &v, op);
        if (row && *type)
            add_type_name(x, row, type);
    }
    return RP_OK;
}

/* ---- programs ---- */

static bool is_tensorflow(const struct rp_program *p)
{
    return p->language && !strcmp(p->language, "graphdef");
}

/* Graphs of lazy tensors, RAF and execution traces have operations that no engine runs. */
static enum rp_code judge_foreign(struct ops_ctx *x)
{
    const struct rp_program *p = x->program;

    for (uint32_t op = 0; op < p->nops; op++) {
        struct verdict v = {name_of(x, op), "no",
                            "only HLO, StableHLO and TensorFlow graphs run: dump the HLO that this "
                            "becomes",
                            p->code.at[op]};

        add_op(x, op, &v);
    }
    return RP_OK;
}

static enum rp_code judge_program(struct ops_ctx *x, const char *label)
{
    const struct rp_program *p = x->program;
    enum rp_code code;

    x->root->programs++;
    if (is_tensorflow(p)) /* for every other target the conversion decides */
        code = judge_lowering(x);
    else if (x->target == TF2XLA)
        code = rp_err_set(x->err, RP_UNSUPPORTED, "not a TensorFlow graph");
    else if (strcmp(p->language, "hlo") != 0 && strcmp(p->language, "stablehlo") != 0)
        code = judge_foreign(x);
    else
        code = x->target == PJRT ? judge_pjrt(x) : judge_kernels(x);
    if (code == RP_OK || code == RP_NOMEM)
        return code == RP_OK ? x->code : code;
    RP_NOTE(x->root, x->arena, rp_arena_textf(x->arena, "'%s': %s", label, x->err->text));
    rp_err_clear(x->err);
    return RP_OK;
}

/* The stage with which a replay begins. */
static const struct rp_dump_stage *stage_to_judge(const struct rp_dump_module *module)
{
    const struct rp_dump_stage *stage = rp_dump_stage_at(module, RP_DUMP_AT_BEFORE);

    if (!stage)
        stage = rp_dump_stage_at(module, RP_DUMP_AT_SOURCE);
    return stage ? stage : rp_dump_final(module);
}

static enum rp_code judge_modules(struct ops_ctx *x, const struct rp_dump_folder *folder)
{
    for (size_t i = 0; i < folder->dump.nmodules; i++) {
        const struct rp_dump_module *module = &folder->dump.modules[i];
        const struct rp_dump_stage *stage = folder->wanted[i] ? stage_to_judge(module) : NULL;
        RP_SCOPED(rp_import_release) struct rp_import import = RP_IMPORT_INIT;

        if (!stage)
            continue;
        enum rp_code code = rp_load_program(folder->dataset, stage->source, &import, x->err);
        if (code == RP_OK) {
            x->program = import.program;
            code = judge_program(x, rp_dump_label(module, x->arena));
        } else if (folder->dump.nmodules > 1 && code != RP_NOMEM) { /* one of many */
            code = RP_OK;
            RP_NOTE(x->root, x->arena, rp_arena_text(x->arena, x->err->text));
            rp_err_clear(x->err);
        }
        RP_TRY(code);
    }
    return RP_OK;
}

/* ---- without a program ---- */

static enum rp_code list_one(struct ops_ctx *x, const char *op, bool runs, unsigned opcode)
{
    struct ops_row row = {.op = op,
                          .supported = runs ? "yes" : "no",
                          .why = runs ? NULL : "unsupported operation",
                          .count = RP_ABSENT_I64,
                          .opcode = opcode};

    if (opcode == RP_OP_CUSTOM_CALL) {
        row.supported = "unknown";
        row.why = "depends on its target: ask with a program";
    }
    x->root->operations++;
    x->root->unsupported += !strcmp(row.supported, "no");
    return rp_vec_push(&x->rows, row, x->err);
}

/* Lists everything about which a target can be asked: the operators that are converted, or the
   opcodes of HLO. */
static enum rp_code list_operations(struct ops_ctx *x)
{
    const char *op;

    x->root->programs = RP_ABSENT_I64;
    for (size_t i = 0; x->target == TF2XLA && (op = rp_tf_lower_at(i)); i++) {
        unsigned opcode;

        rp_tf_lower_knows(op, strlen(op), &opcode);
        RP_TRY(list_one(x, op, true, opcode));
        if (rp_tf_lower_needs_known(op)) {
            x->rows.at[x->rows.n - 1].supported = "unknown";
            x->rows.at[x->rows.n - 1].why = "only where its input is known before the run";
        }
    }
    for (unsigned code = 0; x->target != TF2XLA && code < RP_OP_COUNT; code++)
        if (code != RP_OP_FOREIGN && rp_op_info[code].name)
            RP_TRY(list_one(x, rp_op_info[code].name, x->target == PJRT || x->kernels[code], code));
    return RP_OK;
}

/* ---- the word ---- */

static int verdict_rank(const char *supported)
{
    return !strcmp(supported, "no") ? 0 : !strcmp(supported, "unknown") ? 1 : 2;
}

RP_ORDER(by_verdict, struct ops_row,
         RP_COMPARE(verdict_rank(a->supported), verdict_rank(b->supported)), RP_DOWN(count),
         strcmp(a->op, b->op), strcmp(a->why ? a->why : "", b->why ? b->why : ""))

static void finish_rows(struct ops_ctx *x)
{
    struct ops_root *root = x->root;
    int64_t kinds = 0, unknown = 0;

    root->ops = RP_ARENA_NEW(x->arena, struct ops_row, x->rows.n + 1);
    if (!root->ops)
        return;
    rp_sort(x->rows.at, x->rows.n, sizeof *x->rows.at, by_verdict);
    for (size_t i = 0; i < x->rows.n; i++) {
        struct ops_row *row = &x->rows.at[i];

        if (!row->types)
            row->types = elem_list(x->arena, row->elems);
        if (x->target != PJRT)
            row->accepts = accepted_types(x->arena, row->opcode);
        kinds += !strcmp(row->supported, "no");
        unknown += strcmp(row->supported, "unknown") != 0 ? 0 : row->count < 0 ? 1 : row->count;
        root->ops[root->nops++] = *row;
    }
    if (root->unsupported)
        root->summary =
            rp_arena_textf(x->arena, "%lld of %lld operations do not run on %s (%lld kind%s)",
                           (long long)root->unsupported, (long long)root->operations, root->target,
                           (long long)kinds, kinds == 1 ? "" : "s");
    else if (unknown)
        root->summary =
            rp_arena_textf(x->arena, "%lld of %lld operations run on %s, %lld are not known",
                           (long long)(root->operations - unknown), (long long)root->operations,
                           root->target, (long long)unknown);
    else if (root->operations)
        root->summary = rp_arena_textf(x->arena, "all %lld operations run on %s",
                                       (long long)root->operations, root->target);
}

static void ops_release(struct ops_ctx *x)
{
    free(x->plugin);
    rp_vec_release(&x->rows);
}

static enum rp_code ops_run(const struct rp_dump_call *call, struct rp_result *result,
                            struct rp_err *err)
{
    static const char *const targets[] = {
        [REF] = "ref", [FAST] = "fast", [PJRT] = "pjrt", [TF2XLA] = "tf2xla"};
    struct ops_root *root = result->root;
    RP_SCOPED(ops_release)
    struct ops_ctx x = {.arena = &result->arena, .root = root, .err = err};
    struct rp_dump_folder folder;

    root->target = rp_settings_text(call->settings, "target");
    while (strcmp(targets[x.target], root->target) != 0)
        x.target++;
    x.kernels = RP_ARENA_NEW(&result->arena, const struct rp_kernel *, RP_OP_COUNT);
    RP_TRY(rp_err_need(x.kernels, err, "judging operations"));
    if (x.target == FAST)
        rp_kernels_fast(x.kernels);
    else
        rp_kernels_reference(x.kernels);
    if (x.target == PJRT && rp_plugin_resolve(RP_PLUGIN_PJRT, NULL, &x.plugin, err) != RP_OK)
        rp_err_clear(err);
    root->plugin = rp_arena_text(&result->arena, x.plugin);
    if (call->dataset)
        RP_TRY(rp_dump_folder_open(call, &result->arena, &folder, err));
    RP_TRY(call->dataset ? judge_modules(&x, &folder) : list_operations(&x));
    if (!root->operations && root->nnotes)
        return rp_err_set(err, RP_UNSUPPORTED, "%s", root->notes[0]);
    finish_rows(&x);
    result->answer = call->dataset && root->unsupported ? RP_ANSWER_NO : 0;
    return rp_arena_check(&result->arena, "judging operations", err);
}

const struct rp_dump_word rp_dump_ops = {
    .name = "ops",
    .summary = "which operations an engine runs, on which types, and why not",
    .options = "target module",
    .files = true,
    .alone = "target",
    .type = &ops_type,
    .run = ops_run};
