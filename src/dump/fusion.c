/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump fusion` shows why instructions are fused or not. XLA's priority fusion logs what it
 * considered: estimates, reasons against, and what it fused. Without the log, the program shows
 * where an instruction went, and the rules of the compiler why; the answer states its source.
 *
 *     log       producer_ineligible { producer_name: "dot.3" reason: "the producer is not fusible"
 * } program   add.7 is in the body of loop_add_fusion.2 rule      a convolution is a library call
 */
#include "base/order.h"
#include "dump/folder.h"
#include "formats/dump/logs.h"
#include "formats/formats.h"
#include "program/opcodes.h"
#include "result/print_units.h"
#include "xref/xref.h"

#include <string.h>

struct fusion_op {
    const char *name, *state, *certainty, *why, *kernel, *operator_, *line;
    int64_t steps, fused_into;
    double saved_us;
};

struct fusion_step_row {
    int64_t step;
    const char *kind, *producer, *consumer, *fusion, *reason, *text;
    double fused_us, unfused_us;
};

struct fusion_reason {
    const char *reason, *example;
    int64_t count;
};

struct fusion_root {
    const char *module, *log, *summary;
    int64_t steps, fused, fusions, ineligible, unprofitable;
    size_t nops, nhistory, nreasons, nnotes;
    struct fusion_op *ops;
    struct fusion_step_row *history;
    struct fusion_reason *reasons;
    const char **notes;
};

static const struct rp_field op_fields[] = {
    RP_FIELD(struct fusion_op, name, STR, NONE, "instruction", "name before fusion", 0),
    RP_FIELD(struct fusion_op, state, STR, NONE, "state",
             "fused, not fused, a fusion, no code, not known", 0),
    RP_FIELD(struct fusion_op, why, STR, NONE, "why", "the reason", RP_SHORTEN),
    RP_FIELD(struct fusion_op, certainty, STR, NONE, "from",
             "what that rests on: log, program or rule", 0),
    RP_FIELD(struct fusion_op, kernel, STR, NONE, "kernel", "instruction that executes it",
             RP_SHORTEN),
    RP_FIELD_AS("operator", struct fusion_op, operator_, STR, NONE, "operator",
                "operator of the framework", RP_SHORTEN | RP_WIDE),
    RP_FIELD(struct fusion_op, line, STR, NONE, "line", "line of the user's code",
             RP_SHORTEN | RP_WIDE),
    RP_FIELD(struct fusion_op, steps, I64, COUNT, NULL, "steps of the log that concern it",
             RP_NULLABLE),
    RP_FIELD(struct fusion_op, fused_into, I64, COUNT, NULL, "consumers it was fused into",
             RP_NULLABLE),
    RP_FIELD(struct fusion_op, saved_us, F64, NONE, NULL,
             "µs that XLA expected from fusing it, by its last estimate", 0),
    RP_FIELD_END};
static const struct rp_type op_type = {"instruction", sizeof(struct fusion_op), op_fields, NULL};

static const struct rp_field step_fields[] = {
    RP_FIELD(struct fusion_step_row, step, I64, NONE, "step", "step of the pass", 0),
    RP_FIELD(struct fusion_step_row, kind, STR, NONE, NULL, "estimate, ineligible or fused", 0),
    RP_FIELD(struct fusion_step_row, text, STR, NONE, "what happened", "text output only",
             RP_SCREEN),
    RP_FIELD(struct fusion_step_row, producer, STR, NONE, NULL, "instruction", 0),
    RP_FIELD(struct fusion_step_row, consumer, STR, NONE, NULL, "instruction, or several", 0),
    RP_FIELD(struct fusion_step_row, fusion, STR, NONE, NULL, "the fusion that was made", 0),
    RP_FIELD(struct fusion_step_row, reason, STR, NONE, NULL, "why not", 0),
    RP_FIELD(struct fusion_step_row, fused_us, F64, NONE, NULL, "estimated µs if fused", 0),
    RP_FIELD(struct fusion_step_row, unfused_us, F64, NONE, NULL, "estimated µs if not", 0),
    RP_FIELD_END};
static const struct rp_type step_type = {"step", sizeof(struct fusion_step_row), step_fields, NULL};

static const struct rp_field reason_fields[] = {
    RP_FIELD(struct fusion_reason, count, I64, COUNT, "count",
             "instructions and fusions with this reason", 0),
    RP_FIELD(struct fusion_reason, reason, STR, NONE, "not fused because",
             "the reason in XLA's words", 0),
    RP_FIELD(struct fusion_reason, example, STR, NONE, "for example", "the first of them", 0),
    RP_FIELD_END};
static const struct rp_type reason_type = {"reason", sizeof(struct fusion_reason), reason_fields,
                                           NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct fusion_root, module, STR, NONE, "module", "module of the dump", 0),
    RP_FIELD(struct fusion_root, log, STR, NONE, NULL, "file of the fusion log", 0),
    RP_FIELD(struct fusion_root, summary, STR, NONE, "fusion", "text output only", RP_SCREEN),
    RP_FIELD(struct fusion_root, steps, I64, COUNT, NULL, "steps of the log", RP_NULLABLE),
    RP_FIELD(struct fusion_root, fused, I64, COUNT, NULL, "instructions that were fused", 0),
    RP_FIELD(struct fusion_root, fusions, I64, COUNT, NULL, "fusions in the final program", 0),
    RP_FIELD(struct fusion_root, ineligible, I64, COUNT, NULL,
             "instructions that were never fused, for a reason", 0),
    RP_FIELD(struct fusion_root, unprofitable, I64, COUNT, NULL,
             "instructions that were never fused for their estimate", 0),
    RP_FIELD_LIST(struct fusion_root, reasons, &reason_type, "reasons",
                  "why XLA did not fuse an instruction, or a fusion further; most frequent first",
                  0),
    RP_FIELD_LIST(struct fusion_root, ops, &op_type, "instructions",
                  "that were asked for; else those that were never fused", 0),
    RP_FIELD_LIST(struct fusion_root, history, &step_type, "history",
                  "steps of the log that are about the instruction", 0),
    RP_FIELD_LIST(struct fusion_root, notes, &rp_type_string, "notes", "what is missing", 0),
    RP_FIELD_END};
static const struct rp_type fusion_type = {"dump_fusion", sizeof(struct fusion_root), root_fields,
                                           "ops"};

struct step_names { /* step_names: numbers of names; RP_NONE if the step has none */
    uint32_t producer, consumer, fusion;
};

struct fusion_ctx {
    const struct rp_dump_call *call;
    struct rp_dump_folder folder;
    const struct rp_dump_module *module;
    struct rp_arena *arena;
    struct fusion_root *root;
    struct rp_fusion_log log;
    struct step_names *steps;       /* of the log */
    struct rp_map names;            /* from the hash of a name to its number */
    struct rp_import before, after; /* programs, or empty */
    struct rp_xref before_x, after_x;
    struct rp_map stems; /* from the stem of a name in fused bodies of `after` to operation + 1 */
    RP_VEC(struct fusion_op) ops;
    RP_VEC(struct fusion_step_row) history;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ inputs */

static enum rp_code read_log(struct fusion_ctx *ctx)
{
    size_t source = rp_dump_file_of(ctx->module, RP_DUMP_FUSION_LOG);
    struct rp_dump_content file;

    if (source == SIZE_MAX)
        return RP_OK;
    ctx->root->log =
        rp_arena_text(ctx->arena, rp_sources_borrow(ctx->call->dataset->sources, source)->name);
    RP_TRY(rp_dump_open(&file, &ctx->folder, source, ctx->err));
    enum rp_code code = rp_fusion_log_read(file.bytes, file.n, &ctx->call->dataset->limits,
                                           ctx->arena, &ctx->log, ctx->err);
    return rp_dump_close(&file, code, ctx->err);
}

static enum rp_code number_of(struct fusion_ctx *ctx, const char *name, uint32_t *out)
{
    *out = RP_NONE;
    return *name ? rp_map_intern(&ctx->names, rp_hash_bytes(name, strlen(name)),
                                 (uint32_t)ctx->names.n, out, ctx->err)
                 : RP_OK;
}

/* The log contains the program to which its names refer; one that cannot be read counts as
   missing. */
static enum rp_code read_before(struct fusion_ctx *ctx)
{
    struct rp_read_options options = {.limits = &ctx->call->dataset->limits};
    const struct rp_dump_stage *before = rp_dump_stage_at(ctx->module, RP_DUMP_AT_BEFORE);
    struct rp_input *in;

    if (ctx->log.before) {
        RP_TRY(rp_input_open_memory("hlo_module_before_fusion", ctx->log.before, ctx->log.before_n,
                                    &ctx->call->dataset->limits, &in, ctx->err));
        if (rp_format_read(in, &options, &ctx->before, NULL) == RP_NOMEM)
            return rp_err_nomem(ctx->err, "reading a program");
    } else if (before && !ctx->log.n) {
        if (rp_load_program(ctx->call->dataset, before->source, &ctx->before, NULL) == RP_NOMEM)
            return rp_err_nomem(ctx->err, "reading a program");
    }
    return rp_xref_init(&ctx->before_x, ctx->before.program, ctx->err);
}

/* The length of a name without its last number, which cloning into a fusion changes:
   "reduce_sum.95" for "reduce_sum.95.0". */
static size_t stem_of(const char *name)
{
    size_t n = strlen(name), digits = n;

    while (digits && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        digits--;
    return digits > 1 && digits < n && name[digits - 1] == '.' ? digits - 1 : n;
}

static uint64_t stem_key(const struct rp_program *p, const char *name, size_t n, uint32_t op)
{
    const char *opcode = rp_op_opcode_name(p, op);

    return rp_hash_join(rp_hash_bytes(name, n), rp_hash_bytes(opcode, strlen(opcode)));
}

static enum rp_code read_after(struct fusion_ctx *ctx)
{
    const struct rp_dump_stage *final = rp_dump_final(ctx->module);
    uint32_t known;

    if (final)
        RP_TRY(rp_dump_load(&ctx->folder, ctx->module, "fusions", &ctx->after, ctx->err));
    RP_TRY(rp_xref_init(&ctx->after_x, ctx->after.program, ctx->err));
    const struct rp_program *p = ctx->after.program;
    for (uint32_t op = 0; p && op < p->nops; op++) {
        const char *name = rp_program_text(p, p->op_name.at[op]);

        ctx->root->fusions += p->code.at[op] == RP_OP_FUSION;
        if (!p->computations.at[p->computation.at[op]].fused)
            continue;
        RP_TRY(
            rp_map_intern(&ctx->stems, stem_key(p, name, stem_of(name), op), op, &known, ctx->err));
        RP_TRY(
            rp_map_intern(&ctx->stems, stem_key(p, name, strlen(name), op), op, &known, ctx->err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ where it ended */

/* The operation in a fusion of the final program that an operation of `p` became; or RP_NONE. */
static uint32_t counterpart(const struct fusion_ctx *ctx, const struct rp_program *p, uint32_t op)
{
    const char *name = rp_program_text(p, p->op_name.at[op]);

    if (p == ctx->after.program)
        return p->computations.at[p->computation.at[op]].fused ? op : RP_NONE;
    uint32_t at = rp_map_get(&ctx->stems, stem_key(p, name, strlen(name), op));
    if (at == RP_MAP_NONE)
        at = rp_map_get(&ctx->stems, stem_key(p, name, stem_of(name), op));
    return at == RP_MAP_NONE ? RP_NONE : at;
}

static const char *rule_of(const struct rp_xref *x, uint32_t op, const char **state)
{
    const struct rp_program *p = x->program;
    const struct rp_op_info *info = &rp_op_info[p->code.at[op]];
    uint32_t users = x->user_begin[op + 1] - x->user_begin[op], blocked = 0;

    *state = "not fused";
    if (p->code.at[op] == RP_OP_FUSION) {
        *state = "a fusion";
        return "it is a fusion itself; its body lists what it contains";
    }
    if (p->code.at[op] == RP_OP_PARAMETER || p->code.at[op] == RP_OP_CONSTANT ||
        (info->flags & RP_OPF_FREE)) {
        *state = "no code";
        return "it needs no kernel";
    }
    if (p->code.at[op] == RP_OP_CUSTOM_CALL)
        return "a custom call is a library call";
    if (p->code.at[op] == RP_OP_COPY)
        return "copies are inserted after fusion";
    switch (info->class_) {
    case RP_CLASS_DOT:
        return "a matrix product is a kernel of its own; what follows it element by element may be "
               "fused into a Triton kernel";
    case RP_CLASS_CONV:
        return "a convolution is a library call";
    case RP_CLASS_COLLECTIVE:
        return "it communicates";
    case RP_CLASS_CONTROL:
        return "control flow: its body is compiled on its own";
    case RP_CLASS_RANDOM:
    case RP_CLASS_LINALG:
        return "it has an implementation of its own";
    default:
        break;
    }
    for (uint32_t i = x->user_begin[op]; i < x->user_begin[op + 1]; i++) {
        uint8_t user = rp_op_info[p->code.at[x->users[i]]].class_;

        blocked += user == RP_CLASS_DOT || user == RP_CLASS_CONV || user == RP_CLASS_COLLECTIVE ||
                   user == RP_CLASS_CONTROL || p->code.at[x->users[i]] == RP_OP_TUPLE ||
                   p->code.at[x->users[i]] == RP_OP_CUSTOM_CALL;
    }
    if (!users)
        return "nothing reads it: it is an output";
    if (blocked == users)
        return "all that reads it are outputs or instructions that cannot be fused with it";
    return users > 1 ? "several instructions read it: fusing would compute it several times"
                     : "the compiler expected no gain, or cannot combine its shape with its reader";
}

/* ------------------------------------------------------------------ from the log */

static const char *join_names(const struct fusion_ctx *ctx, const char *const *names, size_t n)
{
    const char *text = "";

    for (size_t i = 0; i < n && i < 6; i++)
        text = rp_arena_textf(ctx->arena, "%s%s%s", text, i ? ", " : "", names[i]);
    return n > 6 ? rp_arena_textf(ctx->arena, "%s and %zu more", text, n - 6) : text;
}

static enum rp_code add_step(struct fusion_ctx *ctx, size_t i)
{
    const struct rp_fusion_step *s = &ctx->log.at[i];
    struct fusion_step_row row = {.step = (int64_t)i + 1,
                                  .producer = s->producer,
                                  .fused_us = __builtin_nan(""),
                                  .unfused_us = __builtin_nan("")};

    if (s->kind == RP_FUSION_FUSED) {
        row.kind = "fused";
        row.consumer = s->consumer;
        row.fusion = s->fusion;
        row.text = rp_arena_textf(ctx->arena, "%s is fused into %s, as %s", s->producer,
                                  s->consumer, s->fusion);
    } else if (s->kind == RP_FUSION_INELIGIBLE) {
        row.kind = "ineligible";
        row.reason = s->reason;
        row.text = rp_arena_textf(ctx->arena, "%s cannot be fused: %s", s->producer, s->reason);
    } else {
        row.kind = "estimate";
        row.consumer = join_names(ctx, s->consumers, s->nconsumers);
        row.fused_us = s->fused_us;
        row.unfused_us = s->unfused_us;
        row.text = rp_arena_textf(ctx->arena, "%s with %s: %.3f µs fused, %.3f µs not (%s %.3f µs)",
                                  s->producer, row.consumer, s->fused_us, s->unfused_us,
                                  s->fused_us < s->unfused_us ? "saves" : "costs",
                                  s->fused_us < s->unfused_us ? s->unfused_us - s->fused_us
                                                              : s->fused_us - s->unfused_us);
    }
    return rp_vec_push(&ctx->history, row, ctx->err);
}

struct producer_sum { /* producer_sum: of an instruction, and of the fusions it became part of */
    const char *name, *reason;
    int64_t steps, fused,
        absorbed; /* fused: into consumers; absorbed: producers that were fused into it */
    int64_t last; /* index of the last step */
    double fused_us, unfused_us;
};

/* Adds what the log says about an instruction as a producer; the last entry decides. */
static void sum_step(struct producer_sum *to, const struct rp_fusion_step *s, size_t i)
{
    to->steps++;
    to->last = (int64_t)i;
    if (s->kind == RP_FUSION_FUSED) {
        to->fused++;
        to->reason = NULL;
        to->fused_us = to->unfused_us = 0;
    } else if (s->kind == RP_FUSION_INELIGIBLE) {
        to->reason = s->reason;
    } else {
        to->reason = NULL;
        to->fused_us = s->fused_us;
        to->unfused_us = s->unfused_us;
    }
}

static void describe_sum(struct fusion_ctx *ctx, const struct producer_sum *sum,
                         struct fusion_op *op)
{
    const char *rest = "";

    op->certainty = "log";
    op->steps = sum->steps;
    op->fused_into = sum->fused;
    op->state = sum->fused || sum->absorbed ? "fused" : "not fused";
    if (sum->unfused_us > 0)
        op->saved_us = sum->unfused_us - sum->fused_us;
    if (sum->reason) /* the text after a colon is in the history */
        rest = rp_arena_textf(ctx->arena, "%.*s", (int)strcspn(sum->reason, ":"), sum->reason);
    else if (sum->unfused_us > 0)
        rest = rp_arena_textf(ctx->arena, "%.2f µs fused, %.2f µs not%s", sum->fused_us,
                              sum->unfused_us,
                              sum->fused_us < sum->unfused_us ? "" : ": it would cost time");
    /* "fused into 2 consumers; 3 producers fused into it" */
    const char *text = "";
    if (sum->fused)
        text = rp_arena_textf(ctx->arena, "fused into %s",
                              rp_units_count(ctx->arena, sum->fused, "consumer"));
    if (sum->absorbed)
        text = rp_arena_textf(ctx->arena, "%s%s%s fused into it", text, *text ? "; " : "",
                              rp_units_count(ctx->arena, sum->absorbed, "producer"));
    op->why = text;
    if (*rest)
        op->why =
            rp_arena_textf(ctx->arena, "%s%s%s", op->why, *op->why ? "; not further: " : "", rest);
}

/* ------------------------------------------------------------------ one instruction */

/* Whether the program was dumped before the compiler fused anything. */
static bool is_unfused_yet(const struct fusion_ctx *ctx)
{
    const struct rp_program *p = ctx->after.program;

    if (!p || ctx->log.n || ctx->root->fusions ||
        rp_dump_stage_at(ctx->module, RP_DUMP_AT_AFTER) != NULL)
        return false;
    for (size_t i = 0; i < p->module_attrs.n; i++)
        if (p->module_attrs.at[i].key == RP_ATTR_IS_SCHEDULED)
            return false;
    return true;
}

/* Explains an instruction without a log and outside of fusions by the final program, if that has
   it. */
static void explain_by_rule(const struct fusion_ctx *ctx, const struct rp_xref *x, uint32_t at,
                            const char *name, struct fusion_op *op)
{
    bool early = x->program != ctx->after.program && ctx->after.program && !ctx->log.n;
    uint32_t then = early ? rp_xref_find(&ctx->after_x, name) : RP_NONE;

    op->certainty = "rule";
    if (then != RP_NONE) {
        op->why = rule_of(&ctx->after_x, then, &op->state);
        return;
    }
    op->why = rule_of(x, at, &op->state);
    if (strcmp(op->state, "no code") == 0)
        return;
    if (is_unfused_yet(ctx)) {
        op->state = "not known";
        op->certainty = "program";
        op->why = "the program was dumped before fusion";
    } else if (early) {
        op->state = "gone";
        op->certainty = "program";
        op->why = "the final program has none of this name: a pass replaced, renamed or removed it "
                  "('dump passes')";
    }
}

static enum rp_code explain_op(struct fusion_ctx *ctx, const struct rp_xref *x, uint32_t at,
                               const char *name, const struct producer_sum *sum)
{
    struct fusion_op op = {.name = rp_arena_text(ctx->arena, name),
                           .steps = RP_ABSENT_I64,
                           .fused_into = RP_ABSENT_I64,
                           .saved_us = __builtin_nan("")};
    struct rp_xref_place place;
    uint32_t then = RP_NONE;

    rp_xref_place(x, at, ctx->arena, &place);
    if (at != RP_NONE)
        then = counterpart(ctx, x->program, at);
    if (!place.line && then != RP_NONE)
        rp_xref_place(&ctx->after_x, then, ctx->arena, &place);
    op.operator_ = *place.operator_ ? place.operator_ : NULL;
    op.line = place.line;
    /* The fusion of the final program that executes the operation; NULL if none is known. */
    const struct rp_program *after = ctx->after.program;
    uint32_t caller = then == RP_NONE ? RP_NONE : ctx->after_x.caller[after->computation.at[then]];
    op.kernel = caller == RP_NONE
                    ? NULL
                    : rp_arena_text(ctx->arena, rp_program_text(after, after->op_name.at[caller]));
    if (sum && (sum->steps || sum->absorbed)) {
        describe_sum(ctx, sum, &op);
    } else if (op.kernel) {
        op.state = "fused";
        op.certainty = "program";
        op.why = x->program == ctx->after.program
                     ? "it is in the body of the fusion"
                     : "an instruction of its name is in the body of the fusion";
    } else if (at != RP_NONE) {
        explain_by_rule(ctx, x, at, name, &op);
    } else {
        op.state = "not known";
        op.certainty = "log";
        op.why = "only the log names it";
    }
    return rp_vec_push(&ctx->ops, op, ctx->err);
}

#define MAX_NAMES 64

struct names { /* names: numbers of the names of an instruction and of the fusions it is part of */
    uint32_t at[MAX_NAMES];
    size_t n;
};

static bool has_name(const struct names *names, uint32_t name)
{
    for (size_t i = 0; i < names->n; i++)
        if (names->at[i] == name)
            return true;
    return false;
}

/* Follows an instruction through the fusions that it becomes part of. */
static struct producer_sum follow(const struct fusion_ctx *ctx, const char *name,
                                  struct names *names)
{
    struct producer_sum sum = {.name = name};

    names->at[0] = rp_map_get(&ctx->names, rp_hash_bytes(name, strlen(name)));
    names->n = names->at[0] != RP_MAP_NONE;
    for (size_t i = 0; names->n && i < ctx->log.n; i++) {
        const struct step_names *s = &ctx->steps[i];
        bool produces = has_name(names, s->producer);

        if (produces)
            sum_step(&sum, &ctx->log.at[i], i);
        if (ctx->log.at[i].kind != RP_FUSION_FUSED || (!produces && !has_name(names, s->consumer)))
            continue;
        sum.absorbed += !produces;
        if (names->n < MAX_NAMES && !has_name(names, s->fusion))
            names->at[names->n++] = s->fusion;
    }
    return sum;
}

static struct producer_sum sum_of(const struct fusion_ctx *ctx, const char *name)
{
    struct names names;

    return follow(ctx, name, &names);
}

/* Whether the text "add.7", "add", "dot_general" or "m.py:4" means an operation. */
static bool op_matches(const struct fusion_ctx *ctx, const struct rp_xref *x, uint32_t op,
                       const char *text)
{
    const struct rp_program *p = x->program;
    const char *name = rp_program_text(p, p->op_name.at[op]);
    uint32_t then = p == ctx->after.program ? RP_NONE : counterpart(ctx, p, op);
    size_t n = strlen(text);

    if (then != RP_NONE && op_matches(ctx, &ctx->after_x, then, text))
        return true;
    if (strchr(text, ':')) {
        const char *line = rp_xref_own_line(x, op, ctx->arena);
        return line && !strncmp(line, text, n) && (line[n] == 0 || line[n] == ' ');
    }
    return !strcmp(rp_op_opcode_name(p, op), text) || !strcmp(rp_xref_operator(x, op), text) ||
           (!strncmp(name, text, n) && name[n] == '.');
}

/* Explains all operations that the text means; an exact name means only that one. */
static enum rp_code explain_matches(struct fusion_ctx *ctx, const struct rp_xref *x,
                                    const char *text)
{
    const struct rp_program *p = x->program;
    uint32_t exact = rp_xref_find(x, text);

    if (exact != RP_NONE) {
        struct producer_sum sum = sum_of(ctx, text);
        return explain_op(ctx, x, exact, text, &sum);
    }
    for (uint32_t op = 0; p && op < p->nops; op++) {
        const char *name = rp_program_text(p, p->op_name.at[op]);

        if (p->code.at[op] == RP_OP_PARAMETER || !op_matches(ctx, x, op, text))
            continue;
        struct producer_sum sum = sum_of(ctx, name);
        RP_TRY(explain_op(ctx, x, op, name, &sum));
    }
    return RP_OK;
}

static enum rp_code explain_subject(struct fusion_ctx *ctx, const char *text)
{
    struct producer_sum sum = sum_of(ctx, text);

    if (!ctx->log.n &&
        ctx->after
            .program) /* the final program is what runs; names of earlier stages may be gone */
        RP_TRY(explain_matches(ctx, &ctx->after_x, text));
    if (!ctx->ops.n && ctx->before.program)
        RP_TRY(explain_matches(ctx, &ctx->before_x, text));
    if (!ctx->ops.n && ctx->after.program)
        RP_TRY(explain_matches(ctx, &ctx->after_x, text));
    if (!ctx->ops.n && sum.steps)
        RP_TRY(explain_op(ctx, &ctx->before_x, RP_NONE, text, &sum));
    if (ctx->ops.n == 1) {
        /* Adds the steps in which it, or a fusion that contains it, is the producer or absorbs one.
         */
        struct names names;

        follow(ctx, ctx->ops.at[0].name, &names);
        for (size_t i = 0; i < ctx->log.n; i++)
            if (has_name(&names, ctx->steps[i].producer) ||
                has_name(&names, ctx->steps[i].consumer))
                RP_TRY(add_step(ctx, i));
    }
    if (ctx->ops.n)
        return RP_OK;
    return rp_err_set(ctx->err, RP_USAGE,
                      "'%s' is not an instruction, opcode, operator or line of %s", text,
                      rp_dump_label(ctx->module, ctx->arena));
}

/* ------------------------------------------------------------------ the summary */

RP_ORDER(by_count, struct fusion_reason, RP_DOWN(count), strcmp(a->reason, b->reason))
RP_ORDER(by_first, struct producer_sum, RP_UP(last))

static enum rp_code add_reason(struct fusion_ctx *ctx, struct rp_map *reasons,
                               const struct producer_sum *sum)
{
    struct fusion_root *root = ctx->root;
    /* the same reason quotes different things for several instructions */
    size_t n = strcspn(sum->reason, ":");
    uint32_t at;

    RP_TRY(rp_map_intern(reasons, rp_hash_bytes(sum->reason, n), (uint32_t)root->nreasons, &at,
                         ctx->err));
    if (at == root->nreasons)
        root->reasons[root->nreasons++] = (struct fusion_reason){
            rp_arena_textf(ctx->arena, "%.*s", (int)n, sum->reason), sum->name, 0};
    root->reasons[at].count++;
    return RP_OK;
}

static enum rp_code sum_for(struct fusion_ctx *ctx, struct rp_map *names, struct producer_sum *sums,
                            size_t *n, const char *name, struct producer_sum **out)
{
    uint32_t at;

    RP_TRY(rp_map_intern(names, rp_hash_bytes(name, strlen(name)), (uint32_t)*n, &at, ctx->err));
    if (at == *n)
        sums[(*n)++] = (struct producer_sum){.name = name, .last = -1};
    *out = &sums[at];
    return RP_OK;
}

/* Sums up every name in the log; `sums` has room for two in each step. */
static enum rp_code sum_producers(struct fusion_ctx *ctx, struct producer_sum *sums, size_t *n)
{
    struct producer_sum *sum;
    RP_SCOPED(rp_map_release) struct rp_map names = {0};

    *n = 0;
    for (size_t i = 0; i < ctx->log.n; i++) {
        const struct rp_fusion_step *s = &ctx->log.at[i];

        RP_TRY(sum_for(ctx, &names, sums, n, s->producer, &sum));
        sum_step(sum, s, i);
        if (s->kind == RP_FUSION_FUSED) {
            RP_TRY(sum_for(ctx, &names, sums, n, s->consumer, &sum));
            sum->absorbed++;
        }
    }
    return RP_OK;
}

static enum rp_code explain_all(struct fusion_ctx *ctx)
{
    struct fusion_root *root = ctx->root;
    struct producer_sum *sums = RP_ARENA_NEW(ctx->arena, struct producer_sum, 2 * ctx->log.n + 1);
    struct rp_map reasons = {0};
    size_t n;

    root->reasons = RP_ARENA_NEW(ctx->arena, struct fusion_reason, ctx->log.n + 1);
    RP_TRY(rp_err_need(sums && root->reasons, ctx->err, "summing fusions"));
    RP_TRY(sum_producers(ctx, sums, &n));
    rp_sort(sums, n, sizeof *sums, by_first);
    enum rp_code code = RP_OK;
    for (size_t i = 0; i < n && code == RP_OK; i++) {
        bool fused = sums[i].fused || sums[i].absorbed;

        if (!ctx->before.program || rp_xref_find(&ctx->before_x, sums[i].name) != RP_NONE)
            root->fused += fused; /* fusions themselves do not count */
        if (sums[i].reason)
            code = add_reason(ctx, &reasons, &sums[i]);
        if (fused || !sums[i].steps)
            continue;
        root->ineligible += sums[i].reason != NULL;
        root->unprofitable += !sums[i].reason;
        if (code == RP_OK)
            code = explain_op(ctx, &ctx->before_x, rp_xref_find(&ctx->before_x, sums[i].name),
                              sums[i].name, &sums[i]);
    }
    rp_map_release(&reasons);
    rp_sort(root->reasons, root->nreasons, sizeof *root->reasons, by_count);
    root->steps = ctx->log.n ? (int64_t)ctx->log.n : RP_ABSENT_I64;
    int64_t never = root->ineligible + root->unprofitable;
    if (ctx->log.n)
        root->summary = rp_arena_textf(
            ctx->arena, "%lld instructions fused, %lld never; %s in the final program",
            (long long)root->fused, (long long)never,
            rp_units_count(ctx->arena, root->fusions, "fusion"));
    else if (is_unfused_yet(ctx))
        root->summary = "none yet: the program was dumped before fusion";
    else
        root->summary = rp_arena_textf(ctx->arena, "%s in the final program",
                                       rp_units_count(ctx->arena, root->fusions, "fusion"));
    return code;
}

/* Without a log: explains instructions of the final program that are not in a fusion. */
static enum rp_code explain_unfused(struct fusion_ctx *ctx)
{
    const struct rp_program *p = ctx->after.program;

    if (!p || p->entry == RP_NONE || is_unfused_yet(ctx))
        return RP_OK;
    for (uint32_t op = p->computations.at[p->entry].first;
         op < p->computations.at[p->entry].first + p->computations.at[p->entry].n; op++) {
        const char *state;

        if (p->code.at[op] == RP_OP_FUSION)
            continue;
        rule_of(&ctx->after_x, op, &state);
        if (strcmp(state, "no code") != 0)
            RP_TRY(explain_op(ctx, &ctx->after_x, op, rp_program_text(p, p->op_name.at[op]), NULL));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the answer */

static enum rp_code fill_root(struct fusion_ctx *ctx)
{
    struct fusion_root *root = ctx->root;

    root->module = rp_dump_label(ctx->module, ctx->arena);
    if (ctx->call->subject && ctx->ops.n == 1)
        root->summary = rp_arena_textf(ctx->arena, "%s: %s%s%s", ctx->ops.at[0].state,
                                       ctx->ops.at[0].why, ctx->ops.at[0].kernel ? "; in " : "",
                                       ctx->ops.at[0].kernel ? ctx->ops.at[0].kernel : "");
    if (is_unfused_yet(ctx))
        RP_NOTE(ctx->root, ctx->arena,
                "the program was dumped before fusion: dump the optimised one "
                "(--xla_dump_to), or with reasons: 'reprise dump run --preset fusion'");
    else if (!ctx->log.n)
        RP_NOTE(ctx->root, ctx->arena,
                "no log of the fusion pass (GPU only): compile with "
                "--xla_dump_hlo_pass_re=.*fusion.* and --xla_dump_to; until then the "
                "reasons are derived from the compiler's rules");
    root->ops = RP_ARENA_NEW(ctx->arena, struct fusion_op, ctx->ops.n + 1);
    root->history = RP_ARENA_NEW(ctx->arena, struct fusion_step_row, ctx->history.n + 1);
    RP_TRY(rp_err_need(root->ops && root->history, ctx->err, "listing instructions"));
    for (; root->nops < ctx->ops.n; root->nops++)
        root->ops[root->nops] = ctx->ops.at[root->nops];
    for (; root->nhistory < ctx->history.n; root->nhistory++)
        root->history[root->nhistory] = ctx->history.at[root->nhistory];
    return rp_arena_check(ctx->arena, "explaining fusions", ctx->err);
}

static enum rp_code answer_fusion(struct fusion_ctx *ctx)
{
    /* Uses the wanted module with a log; else the largest. */
    for (size_t i = 0; i < ctx->folder.dump.nmodules && !ctx->module; i++)
        if (ctx->folder.wanted[i] &&
            rp_dump_file_of(&ctx->folder.dump.modules[i], RP_DUMP_FUSION_LOG) != SIZE_MAX)
            ctx->module = &ctx->folder.dump.modules[i];
    RP_TRY(ctx->module ? RP_OK : rp_dump_largest(&ctx->folder, &ctx->module, ctx->err));
    RP_TRY(read_log(ctx));
    ctx->steps = RP_ARENA_NEW(ctx->arena, struct step_names, ctx->log.n + 1);
    RP_TRY(rp_err_need(ctx->steps, ctx->err, "reading a fusion log"));
    for (size_t i = 0; i < ctx->log.n; i++) {
        RP_TRY(number_of(ctx, ctx->log.at[i].producer, &ctx->steps[i].producer));
        RP_TRY(number_of(ctx, ctx->log.at[i].consumer, &ctx->steps[i].consumer));
        RP_TRY(number_of(ctx, ctx->log.at[i].fusion, &ctx->steps[i].fusion));
    }
    RP_TRY(read_before(ctx));
    RP_TRY(read_after(ctx));
    ctx->root->steps = RP_ABSENT_I64;
    if (!ctx->log.n && !ctx->after.program)
        return rp_err_set(ctx->err, RP_FORMAT, "%s: neither a program nor a log of fusions",
                          rp_dump_label(ctx->module, ctx->arena));
    if (ctx->call->subject)
        RP_TRY(explain_subject(ctx, ctx->call->subject));
    else
        RP_TRY(explain_all(ctx));
    if (!ctx->call->subject && !ctx->log.n)
        RP_TRY(explain_unfused(ctx));
    return fill_root(ctx);
}

static enum rp_code fusion_run(const struct rp_dump_call *call, struct rp_result *result,
                               struct rp_err *err)
{
    struct fusion_ctx ctx = {.call = call,
                             .arena = &result->arena,
                             .root = result->root,
                             .before = RP_IMPORT_INIT,
                             .after = RP_IMPORT_INIT,
                             .err = err};

    RP_TRY(rp_dump_folder_open(call, ctx.arena, &ctx.folder, err));
    enum rp_code code = answer_fusion(&ctx);
    rp_xref_release(&ctx.before_x);
    rp_xref_release(&ctx.after_x);
    rp_import_release(&ctx.before);
    rp_import_release(&ctx.after);
    rp_map_release(&ctx.stems);
    rp_map_release(&ctx.names);
    rp_vec_release(&ctx.ops);
    rp_vec_release(&ctx.history);
    return code;
}

const struct rp_dump_word rp_dump_fusion = {
    .name = "fusion",
    .summary = "why an instruction, operator or line was fused or not",
    .subject = "instruction, opcode, operator or line",
    .options = "module",
    .files = true,
    .type = &fusion_type,
    .run = fusion_run};
