/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words isolate, bisect, extract and flatten find which operation is wrong, the smallest
 * program that shows it, parts of a program by name, and programs without calls.
 */
#include "base/text.h"
#include "replay/words.h"

#include "formats/programs.h"
#include "formats/write/writers.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "replay/bundle.h"
#include "replay/search.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- operations in the answer ---- */

static const char *source_text(struct rp_arena *arena, const struct rp_program *p, uint32_t op)
{
    struct rp_source_line at;

    if (!rp_op_source(p, op, &at))
        return NULL;
    return rp_arena_textf(arena, "%s:%d", at.file, at.line);
}

static const char *scope_text(struct rp_arena *arena, const struct rp_program *p, uint32_t op)
{
    uint32_t scope = p->metas.at[p->meta.at[op]].op_name;

    return scope ? rp_arena_text(arena, rp_program_text(p, scope)) : NULL;
}

static enum rp_code put_rows(const struct rp_program *p, const struct rp_isolated *isolated,
                             struct rp_result *result, struct rp_err *err)
{
    struct rp_replay *root = result->root;
    struct rp_arena *arena = &result->arena;

    root->divergences = RP_ARENA_NEW(arena, struct rp_replay_divergence, isolated->n + 1);
    RP_TRY(rp_err_need(root->divergences, err, "describing operations"));
    for (size_t i = 0; i < isolated->n; i++) {
        const struct rp_isolated_op *row = &isolated->rows[i];

        root->divergences[root->ndivergences++] = (struct rp_replay_divergence){
            .name = rp_arena_text(arena, rp_program_text(p, p->op_name.at[row->op])),
            .opcode = rp_arena_text(arena, rp_op_opcode_name(p, row->op)),
            .verdict = row->verdict,
            .inside = row->inside ? rp_arena_text(arena, row->inside) : NULL,
            .source = source_text(arena, p, row->placed),
            .scope = scope_text(arena, p, row->op),
            .message = row->message,
            .iteration = row->iteration,
            .wrong = row->wrong,
            .elements = row->elements,
            .max_abs = row->max_abs,
            .max_rel = row->max_rel};
    }
    return rp_arena_check(arena, "describing operations", err);
}

/* ---- isolate ---- */

static enum rp_code surgery_isolate(const struct rp_search *search, struct rp_result *result,
                                    struct rp_err *err)
{
    struct rp_replay *root = result->root;
    struct rp_isolated isolated;

    RP_TRY(rp_isolate(search, &result->arena, &isolated, NULL, err));
    RP_TRY(put_rows(search->program, &isolated, result, err));
    root->isolated = isolated.tested;
    root->ok = !isolated.diverging;

    /* The first operation that differs, and inside of it again the first. */
    const struct rp_replay_divergence *first = NULL;

    for (size_t i = 0; i < root->ndivergences; i++) {
        const struct rp_replay_divergence *d = &root->divergences[i];

        if (!strcmp(d->verdict, "amplifies rounding") || !strcmp(d->verdict, "not supported"))
            continue;
        if (!first || (d->inside && !strcmp(d->inside, first->name)))
            first = d;
        else if (!d->inside)
            break;
    }

    if (first) {
        root->first = rp_arena_textf(&result->arena, "%s (%s)", first->name, first->opcode);
        root->first_source = first->source;
    }
    result->answer = root->ok ? 0 : RP_ANSWER_NO;
    return rp_arena_check(&result->arena, "isolating operations", err);
}

/* ---- isolate, of two programs ---- */

static enum rp_code put_pairs(const struct rp_isolated_pair *found, struct rp_result *result,
                              struct rp_err *err)
{
    struct rp_replay *root = result->root;

    root->divergences =
        RP_ARENA_NEW(&result->arena, struct rp_replay_divergence, found->rows.n + 1);
    RP_TRY(rp_err_need(root->divergences, err, "describing operations"));
    for (size_t i = 0; i < found->rows.n; i++) {
        const struct rp_pair_row *row = &found->rows.at[i];

        root->divergences[root->ndivergences++] =
            (struct rp_replay_divergence){.name = row->name[0],
                                          .opcode = row->opcode[0],
                                          .source = row->source[0],
                                          .other = row->name[1],
                                          .other_opcode = row->opcode[1],
                                          .other_source = row->source[1],
                                          .verdict = row->verdict,
                                          .inside = row->inside,
                                          .message = row->message,
                                          .iteration = row->iteration,
                                          .wrong = row->wrong,
                                          .elements = row->elements,
                                          .max_abs = row->max_abs,
                                          .max_rel = row->max_rel};
    }
    return RP_OK;
}

static enum rp_code put_first_pair(const struct rp_isolated_pair *found, struct rp_result *result,
                                   struct rp_err *err)
{
    struct rp_replay *root = result->root;
    struct rp_arena *arena = &result->arena;

    if (found->rounded)
        RP_TRY(rp_replay_warn(root, arena,
                              rp_arena_textf(arena,
                                             "%lld results are off, and no more than what the "
                                             "program makes of rounding",
                                             (long long)found->rounded),
                              err));
    if (found->unseen) {
        const struct rp_pair_row *first = &found->rows.at[0];

        RP_TRY(rp_replay_warn(root, arena,
                              rp_arena_textf(arena,
                                             "all results agree, although values on the way differ "
                                             "(%lld), first '%s' (in the other program '%s'): no "
                                             "result shows it with these inputs",
                                             (long long)found->unseen, first->name[0],
                                             first->name[1] ? first->name[1] : "-"),
                              err));
    }
    root->ok = !found->differ;
    result->answer = root->ok ? 0 : RP_ANSWER_NO;
    if (!found->differ)
        return RP_OK;
    root->compared_pairs = found->compared;
    root->unpaired = found->unpaired;
    if (found->first < found->rows.n) {
        const struct rp_pair_row *first = &found->rows.at[found->first];

        root->first = rp_arena_textf(arena, "%s (%s)", first->name[0], first->opcode[0]);
        root->first_source = first->source[0];
        if (first->name[1])
            root->counterpart = rp_arena_textf(arena, "%s (%s)", first->name[1], first->opcode[1]);
        root->counterpart_source = first->source[1];
    }
    return rp_arena_check(arena, "isolating operations", err);
}

static enum rp_code surgery_isolate_pair(const struct rp_session *s, const struct rp_search *search,
                                         struct rp_result *result, struct rp_err *err)
{
    struct rp_trial_part left = {search->program, search->arguments, search->narguments,
                                 search->partitions};
    struct rp_pair_search two = {{left, left}, search->tested, search->tolerance, false};
    struct rp_replay *root = result->root;
    RP_SCOPED(rp_isolated_pair_release) struct rp_isolated_pair found = {0};

    two.side[1].program = s->other;
    RP_TRY(rp_session_takes(s, s->other, s->other_file, err));
    root->checked = rp_arena_textf(&result->arena, "%s, operation by operation", s->other_file);
    RP_TRY(rp_isolate_pair(&two, &result->arena, &found, err));
    RP_TRY(put_pairs(&found, result, err));
    return put_first_pair(&found, result, err);
}

/* ---- programs that are written ---- */

static enum rp_code write_program(const struct rp_program *p, const char *path, struct rp_err *err)
{
    const struct rp_writer *writer;

    RP_TRY(rp_writer_for(NULL, path, &writer, err));
    if (!writer->write_program)
        return rp_err_set(err, RP_USAGE,
                          "'%s' is not a format of programs: use .hlo, .hlo.txt or .pb", path);
    return writer->write_program(p, path, NULL, err);
}

static enum rp_code expected_arrays(const struct rp_tensors *list, size_t partitions,
                                    struct rp_arrays *out, struct rp_err *err)
{
    size_t each = partitions ? list->n / partitions : 0;

    for (size_t i = 0; i < list->n; i++) {
        struct rp_tensor *t = rp_tensor_keep(list->at[i]);

        RP_TRY(partitions > 1 ? rp_arrays_add(out, t, err, "p%zu_out%zu", i / each, i % each)
                              : rp_arrays_add(out, t, err, "out%zu", i));
    }
    return RP_OK;
}

static void text_release(struct rp_out **text)
{
    rp_out_abandon(*text);
}

/* Packs a part with its inputs and outputs, as a session would be packed. */
static enum rp_code write_bundle(const struct rp_session *of, const struct rp_trial_cut *part,
                                 const struct rp_settings *settings, struct rp_result *result,
                                 struct rp_err *err)
{
    struct rp_program *p = part->cut.program;
    struct rp_session s = {.arena = &result->arena,
                           .file = of->file,
                           .import = {.program = p},
                           .program = {.program = p, .name = of->file, .format = "hlo-text"},
                           .arguments = part->arguments.at,
                           .partitions = of->partitions};
    RP_SCOPED(rp_arrays_release) struct rp_arrays expected = {0};
    RP_SCOPED(text_release) struct rp_out *text = NULL;

    RP_TRY(rp_out_open_memory(&text, err));
    RP_TRY(rp_hlo_text_print(p, text, err));
    RP_TRY(rp_out_flush(text, err));
    RP_TRY(rp_signature_find(p, s.arena, &s.signature, err));
    RP_TRY(expected_arrays(&part->outputs, s.partitions, &expected, err));
    s.expected = expected;
    s.program.bytes = (const uint8_t *)rp_out_borrow_memory(text, &s.program.nbytes);
    return rp_replay_pack(&s, settings, result, err);
}

static enum rp_code write_part(const struct rp_session *s, struct rp_reproducer *r,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    const char *to = rp_settings_text(settings, "save");
    struct rp_replay *root = result->root;

    root->operations = r->part.cut.nops;
    if (rp_text_ends(to, ".tar"))
        return write_bundle(s, &r->part, settings, result, err);
    root->written = rp_arena_strdup(&result->arena, to);
    return write_program(r->part.cut.program, to, err);
}

/* ---- bisect ---- */

static const char *complaint_text(struct rp_arena *arena, const struct rp_reproducer *r)
{
    switch (r->complaint) {
    case RP_COMPLAINT_WRONG:
        return r->hidden ? "wrong results, which the outputs of the whole program do not show"
                         : "wrong results";
    case RP_COMPLAINT_FAILS:
        return rp_arena_textf(arena, "fails: %s", r->message);
    case RP_COMPLAINT_SLOW:
        return "slow";
    default:
        return "none: the whole program does what it should";
    }
}

/* Prints what is left, if that is not much. */
static enum rp_code put_left(const struct rp_program *p, struct rp_result *result,
                             struct rp_err *err)
{
    const struct rp_computation *c = &p->computations.at[p->entry];
    struct rp_isolated left = {0};

    left.rows = RP_ARENA_NEW(&result->arena, struct rp_isolated_op, (size_t)c->n + 1);
    RP_TRY(rp_err_need(left.rows, err, "describing operations"));
    for (uint32_t op = c->first; op < c->first + c->n && left.n < 20; op++) {
        enum rp_opcode code = (enum rp_opcode)p->code.at[op];

        if (code == RP_OP_PARAMETER || code == RP_OP_CONSTANT || code == RP_OP_TUPLE ||
            code == RP_OP_GET_TUPLE_ELEMENT)
            continue;
        left.rows[left.n++] = (struct rp_isolated_op){.op = op,
                                                      .placed = op,
                                                      .verdict = "left",
                                                      .iteration = RP_ABSENT_I64,
                                                      .wrong = RP_ABSENT_I64,
                                                      .elements = RP_ABSENT_I64,
                                                      .max_abs = (double)NAN,
                                                      .max_rel = (double)NAN};
    }
    return put_rows(p, &left, result, err);
}

static enum rp_code surgery_bisect(const struct rp_session *s, const struct rp_search *search,
                                   const struct rp_settings *settings, struct rp_result *result,
                                   struct rp_err *err)
{
    struct rp_replay *root = result->root;
    RP_SCOPED(rp_reproducer_release) struct rp_reproducer r = {0};

    RP_TRY(rp_bisect(search, &result->arena, &r, err));
    root->complaint = complaint_text(&result->arena, &r);
    root->operations_before = r.before;
    root->trials = r.trials;
    if (r.complaint == RP_COMPLAINT_NONE) {
        root->ok = true;
        result->answer = RP_ANSWER_NO;
        return RP_OK;
    }
    RP_TRY(write_part(s, &r, settings, result, err));
    root->ok = r.complaint == RP_COMPLAINT_SLOW;
    return put_left(r.part.cut.program, result, err);
}

/* ---- extract ---- */

static bool is_wanted(const struct rp_program *p, uint32_t op, const struct rp_settings *settings)
{
    const char *opcode = rp_settings_text(settings, "opcode");
    const char *scope = rp_settings_text(settings, "scope");
    const char *text = rp_program_text(p, p->metas.at[p->meta.at[op]].op_name);

    for (size_t i = 0; rp_settings_nth(settings, "op", i); i++)
        if (!fnmatch(rp_settings_nth(settings, "op", i), rp_program_text(p, p->op_name.at[op]), 0))
            return true;
    if (opcode && !strcmp(opcode, rp_op_opcode_name(p, op)))
        return true;
    return scope && *text && !fnmatch(scope, text, 0);
}

struct selection {
    const struct rp_program *p;
    uint32_t first, n;
    uint32_t *order, *outputs;
    uint8_t *keep;
    size_t noutputs, wanted;
};

static void selection_release(struct selection *s)
{
    free(s->order);
    free(s->outputs);
    free(s->keep);
}

static bool is_source(const struct rp_program *p, uint32_t op)
{
    return p->code.at[op] == RP_OP_PARAMETER || p->code.at[op] == RP_OP_CONSTANT;
}

/* Extends the selection by `depth` operations, against or along the edges; negative: all. */
static void selection_grow(struct selection *s, bool backward, int64_t depth)
{
    bool grown = true;

    for (int64_t k = 0; grown && (depth < 0 || k < depth); k++) {
        grown = false;
        for (uint32_t i = 0; i < s->n; i++) {
            uint32_t op = s->order[backward ? s->n - 1 - i : i];
            struct rp_ids in = rp_op_operands(s->p, op);

            for (uint32_t o = 0; o < in.n; o++) {
                uint8_t *to = &s->keep[backward ? in.at[o] - s->first : op - s->first];
                uint8_t from = s->keep[backward ? op - s->first : in.at[o] - s->first];

                if (from == 1 && !*to && !is_source(s->p, backward ? in.at[o] : op)) {
                    *to = depth < 0 ? 1 : 2; /* 2 counts only from the next round on */
                    grown = true;
                }
            }
        }
        for (uint32_t i = 0; i < s->n; i++)
            s->keep[i] = s->keep[i] ? 1 : 0;
    }
}

static enum rp_code selection_make(struct selection *s, const struct rp_settings *settings,
                                   struct rp_err *err)
{
    const struct rp_computation *c = &s->p->computations.at[s->p->entry];
    const char *slice = rp_settings_text(settings, "slice");
    int64_t depth = rp_settings_has(settings, "depth") ? rp_settings_int(settings, "depth") : -1;
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;

    s->first = c->first;
    s->n = c->n;
    s->order = calloc((size_t)c->n + 1, sizeof *s->order);
    s->outputs = calloc((size_t)c->n + 1, sizeof *s->outputs);
    s->keep = calloc((size_t)c->n + 1, 1);
    RP_TRY(rp_err_need(s->order && s->outputs && s->keep, err, "extracting operations"));
    RP_TRY(rp_computation_order(s->p, s->p->entry, &scratch, s->order, err));
    for (uint32_t i = 0; i < s->n; i++)
        if (!is_source(s->p, s->first + i) && is_wanted(s->p, s->first + i, settings)) {
            s->keep[i] = 1;
            s->wanted++;
        }
    if (!s->wanted)
        return rp_err_set(err, RP_USAGE,
                          "no operation of the entry computation has that name, opcode or scope "
                          "('reprise graph' lists them; 'replay flatten' replaces calls)");
    if (!strcmp(slice, "backward") || !strcmp(slice, "both"))
        selection_grow(s, true, depth);
    if (!strcmp(slice, "forward") || !strcmp(slice, "both"))
        selection_grow(s, false, depth);
    /* Finds kept operations that others use, that are the root, or that nothing uses. */
    uint32_t root = s->p->computations.at[s->p->entry].root;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t op = s->order[i];
        bool used_inside = false, used_outside = op == root;

        for (uint32_t k = 0; s->keep[op - s->first] && k < s->n; k++) {
            struct rp_ids in = rp_op_operands(s->p, s->order[k]);

            for (uint32_t o = 0; o < in.n; o++)
                if (in.at[o] == op) {
                    used_inside |= s->keep[s->order[k] - s->first];
                    used_outside |= !s->keep[s->order[k] - s->first];
                }
        }
        if (s->keep[op - s->first] && (used_outside || !used_inside) &&
            rp_shape_leaves(s->p, s->p->shape.at[op]))
            s->outputs[s->noutputs++] = op;
    }
    return RP_OK;
}

static enum rp_code surgery_extract(const struct rp_session *s, const struct rp_search *search,
                                    const struct rp_settings *settings, struct rp_result *result,
                                    struct rp_err *err)
{
    struct rp_replay *root = result->root;
    RP_SCOPED(selection_release) struct selection chosen = {.p = search->program};
    RP_SCOPED(rp_reproducer_release) struct rp_reproducer r = {0};

    if (!rp_settings_has(settings, "op") && !rp_settings_has(settings, "opcode") &&
        !rp_settings_has(settings, "scope"))
        return rp_err_set(err, RP_USAGE, "'replay extract' needs --op, --opcode or --scope");
    RP_TRY(selection_make(&chosen, settings, err));
    struct rp_cut cut = {search->program->entry, chosen.keep, chosen.outputs, chosen.noutputs,
                         false};
    RP_TRY(rp_text_ends(rp_settings_text(settings, "save"), ".tar")
               ? rp_search_part(search, chosen.keep, chosen.outputs, chosen.noutputs, &r, err)
               : rp_program_cut(search->program, &cut, &r.part.cut, err));
    root->operations_before = chosen.n;
    return write_part(s, &r, settings, result, err);
}

/* ---- flatten ---- */

static enum rp_code surgery_flatten(const struct rp_session *s, const struct rp_settings *settings,
                                    struct rp_result *result, struct rp_err *err)
{
    const char *to = rp_settings_text(settings, "save");
    struct rp_replay *root = result->root;
    struct rp_program *flat;

    if (rp_text_ends(to, ".tar"))
        return rp_err_set(err, RP_USAGE,
                          "'replay flatten' writes a program, not a bundle: use .hlo, "
                          ".hlo.txt or .pb; 'replay pack' bundles it");
    RP_TRY(rp_program_flatten(s->program.program, rp_settings_int(settings, "unroll"), &flat, err));
    root->operations_before = s->program.program->nops;
    root->operations = flat->nops;
    root->written = rp_arena_strdup(&result->arena, to);
    enum rp_code code = write_program(flat, to, err);
    rp_program_free(flat);
    return code;
}

/* ---- the words ---- */

static bool has_operation(const struct rp_program *p, const char *name)
{
    for (uint32_t op = 0; op < p->nops; op++)
        if (!strcmp(rp_program_text(p, p->op_name.at[op]), name))
            return true;
    return false;
}

bool rp_replay_is_surgery(const char *action)
{
    return !strcmp(action, "isolate") || !strcmp(action, "bisect") || !strcmp(action, "extract") ||
           !strcmp(action, "flatten");
}

enum rp_code rp_replay_surgery(const struct rp_session *s, const struct rp_settings *settings,
                               const struct rp_session_run *run, struct rp_result *result,
                               struct rp_err *err)
{
    const char *action = rp_settings_text(settings, "action");
    struct rp_replay *root = result->root;
    /* Tests make an operation wrong, which engines are not. */
    struct rp_trial_engine tested = {run->engine, run->where, run->options,
                                     getenv("REPRISE_TEST_FAULT")};
    struct rp_trial_engine oracle = {.engine = &rp_engine_ref, .options = run->options};
    struct rp_search search = {.program = s->program.program,
                               .arguments = s->arguments,
                               .narguments = s->signature.nin,
                               .partitions = s->partitions,
                               .tested = &tested,
                               .oracle = &oracle,
                               .slower_ns = rp_settings_int(settings, "slower")};
    char found[256];

    rp_replay_no_times(root);
    root->partitions = (int64_t)s->partitions;
    if (!search.program || (strcmp(search.program->language, "hlo") != 0 &&
                            strcmp(search.program->language, "stablehlo") != 0))
        return rp_err_set(err, RP_UNSUPPORTED, "'%s': 'replay %s' takes HLO and StableHLO", s->file,
                          action);
    if (tested.fault && !has_operation(search.program, tested.fault))
        return rp_err_set(err, RP_USAGE, "'%s' has no operation '%s'", s->file, tested.fault);
    if (strcmp(action, "isolate") != 0 && !rp_settings_has(settings, "save"))
        return rp_err_set(err, RP_USAGE, "'replay %s' needs --save FILE", action);
    RP_TRY(rp_replay_tolerance(settings, &search.tolerance, err));
    tested.options.profile = oracle.options.profile = false;
    if (!strcmp(action, "flatten") || !strcmp(action, "extract"))
        root->engine = root->choice = NULL;
    if (!strcmp(action, "flatten"))
        return surgery_flatten(s, settings, result, err);
    if (!strcmp(action, "extract"))
        return surgery_extract(s, &search, settings, result, err);
    RP_TRY(run->engine->probe(run->where, found, sizeof found, err));
    if (s->other)
        return surgery_isolate_pair(s, &search, result, err);
    root->checked = "engine ref, operation by operation";
    return strcmp(action, "isolate") ? surgery_bisect(s, &search, settings, result, err)
                                     : surgery_isolate(&search, result, err);
}
