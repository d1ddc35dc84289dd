/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump passes` shows how long each pass of the compiler took, from its times
 * (--xla_dump_module_metadata), and what it changed, from the programs that were dumped between
 * passes (--xla_dump_hlo_pass_re). Each program is read once and compared with the one before.
 */
#include "base/hash.h"
#include "base/order.h"
#include "dump/bisect.h"
#include "dump/change.h"
#include "dump/folder.h"
#include "explain/program_diff/program_diff.h"
#include "facts/times/intervals.h"
#include "formats/torch_trace/torch_trace.h"
#include "result/print_units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NESTED 64

struct pass_row {
    int64_t number, time_ns, before, after, added, removed, changed, moved, fusions;
    double flops, bytes, share;
    const char *pipeline, *pass, *effect, *what, *flops_text, *bytes_text, *stage;
    int64_t self_ns; /* time without passes inside it */
    bool timed, compared, detailed;
};

struct pass_profile { /* all runs of a pass */
    const char *pass;
    int64_t runs, changed, time_ns;
    double share;
};

struct detail_row {
    const char *kind, *what, *where, *place;
    int64_t count;
    const char *text;
};

struct passes_root {
    const char *module, *summary, *detail;
    int64_t modules, passes_run, changed_count, time_ns;
    size_t npasses, nprofile, nchanges, nunchanged, nquiet_lines, ndetails, nnotes;
    struct pass_row *passes, *changes;
    struct pass_profile *profile;
    const char **unchanged, **quiet_lines, **notes;
    struct detail_row *details;
};

static const struct rp_field pass_fields[] = {
    RP_FIELD(struct pass_row, number, I64, NONE, "number",
             "number in the order of compilation; for a dumped program, its own number",
             RP_NULLABLE),
    RP_FIELD(struct pass_row, pipeline, STR, NONE, "pipeline", "the pass belongs to",
             RP_SHORTEN | RP_WIDE),
    RP_FIELD(struct pass_row, pass, STR, NONE, "pass", "name", 0),
    RP_FIELD(struct pass_row, effect, STR, NONE, NULL, "changed, nothing or not known", 0),
    RP_FIELD(struct pass_row, time_ns, I64, NS, "time", "time of the pass", RP_NULLABLE),
    RP_FIELD(struct pass_row, self_ns, I64, NS, NULL, "time without the passes that it runs itself",
             RP_NULLABLE),
    RP_FIELD(struct pass_row, before, I64, COUNT, NULL, "instructions before the pass",
             RP_NULLABLE),
    RP_FIELD(struct pass_row, after, I64, COUNT, "after", "instructions after the pass",
             RP_NULLABLE | RP_WIDE),
    RP_FIELD(struct pass_row, added, I64, COUNT, "added", "instructions without a partner before",
             RP_NULLABLE | RP_WIDE),
    RP_FIELD(struct pass_row, removed, I64, COUNT, "removed",
             "instructions without a partner after", RP_NULLABLE | RP_WIDE),
    RP_FIELD(struct pass_row, changed, I64, COUNT, NULL,
             "instructions with another shape, layout or attributes", RP_NULLABLE),
    RP_FIELD(struct pass_row, moved, I64, COUNT, NULL,
             "instructions that are in another computation", RP_NULLABLE),
    RP_FIELD(struct pass_row, fusions, I64, COUNT, NULL, "fusions more than before", RP_NULLABLE),
    RP_FIELD(struct pass_row, flops, F64, FLOP, NULL, "more than before", 0),
    RP_FIELD(struct pass_row, flops_text, STR, NONE, "flops", "text output only",
             RP_SCREEN | RP_WIDE),
    RP_FIELD(struct pass_row, bytes, F64, BYTES, NULL, "read and written, more than before", 0),
    RP_FIELD(struct pass_row, bytes_text, STR, NONE, "traffic", "text output only",
             RP_SCREEN | RP_WIDE),
    RP_FIELD(struct pass_row, what, STR, NONE, "what changed", "work by opcode", RP_WHOLE),
    RP_FIELD(struct pass_row, stage, STR, NONE, NULL, "the program after the pass", 0),
    RP_FIELD_END};
static const struct rp_type pass_type = {"pass", sizeof(struct pass_row), pass_fields, NULL};

static const struct rp_field profile_fields[] = {
    RP_FIELD(struct pass_profile, pass, STR, NONE, "pass", "name", RP_SHORTEN),
    RP_FIELD(struct pass_profile, runs, I64, COUNT, "runs", "how often it ran", 0),
    RP_FIELD(struct pass_profile, changed, I64, COUNT, "changed", "runs that changed the module",
             0),
    RP_FIELD(struct pass_profile, time_ns, I64, NS, "time",
             "time of all runs, without the passes that they run themselves", RP_LARGEST),
    RP_FIELD(struct pass_profile, share, F64, RATIO, "share", "share of the time of all passes",
             RP_BAR),
    RP_FIELD_END};
static const struct rp_type profile_type = {"row", sizeof(struct pass_profile), profile_fields,
                                            NULL};

static const struct rp_field detail_fields[] = {
    RP_FIELD(struct detail_row, count, I64, COUNT, "count", "operations that changed so", 0),
    RP_FIELD(struct detail_row, kind, STR, NONE, "kind", "kind of the change", 0),
    RP_FIELD(struct detail_row, what, STR, NONE, NULL, "values before and after", 0),
    RP_FIELD(struct detail_row, where, STR, NONE, NULL, "scope or layer", 0),
    RP_FIELD(struct detail_row, place, STR, NONE, NULL, "source line", 0),
    RP_FIELD(struct detail_row, text, STR, NONE, "what", "text output only", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type detail_type = {"detail", sizeof(struct detail_row), detail_fields,
                                           NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct passes_root, module, STR, NONE, "module", "that was compiled", 0),
    RP_FIELD(struct passes_root, summary, STR, NONE, "passes", "text output only", RP_SCREEN),
    RP_FIELD(struct passes_root, modules, I64, COUNT, NULL, "modules in the folder", 0),
    RP_FIELD(struct passes_root, passes_run, I64, COUNT, NULL, "passes that are known to have run",
             0),
    RP_FIELD(struct passes_root, changed_count, I64, COUNT, NULL, "passes that changed the module",
             0),
    RP_FIELD(struct passes_root, time_ns, I64, NS, NULL, "time of all passes", RP_NULLABLE),
    RP_FIELD_LIST(struct passes_root, profile, &profile_type, "compile time",
                  "by pass, longest first", 0),
    RP_FIELD_LIST(struct passes_root, passes, &pass_type, NULL, "in the order of the compilation",
                  0),
    RP_FIELD_SHOWN(struct passes_root, changes, &pass_type, "changes", NULL, 0),
    RP_FIELD(struct passes_root, detail, STR, NONE, "detail of", "the pass of --pass", 0),
    RP_FIELD_LIST(struct passes_root, details, &detail_type, "changes of the pass",
                  "one row for equal changes", 0),
    RP_FIELD_LIST(struct passes_root, unchanged, &rp_type_string, NULL,
                  "passes that ran and never changed the module", 0),
    RP_FIELD_LIST(struct passes_root, quiet_lines, &rp_type_string, "changed nothing",
                  "text output only", RP_SCREEN),
    RP_FIELD_LIST(struct passes_root, notes, &rp_type_string, "notes", "what is missing", 0),
    RP_FIELD_END};
static const struct rp_type passes_type = {"dump_passes", sizeof(struct passes_root), root_fields,
                                           "passes"};

/* ------------------------------------------------------------------ names of stages */

struct stage_name {                        /* "0021.fusion.after_cse.before_dce" */
    const char *pipeline, *after, *before; /* "" where not given */
};

static struct stage_name split_stage(const char *stage, struct rp_arena *arena)
{
    struct stage_name out = {"", "", ""};
    const char *pipeline = strchr(stage, '.');

    if (!pipeline)
        return out;
    pipeline++;
    const char *rest = pipeline + strcspn(pipeline, ".");
    out.pipeline = rp_arena_textf(arena, "%.*s", (int)(rest - pipeline), pipeline);
    const char *before = strstr(rest, ".before_");
    if (!strncmp(rest, ".after_", 7))
        out.after = rp_arena_textf(
            arena, "%.*s", (int)((before ? before : rest + strlen(rest)) - rest - 7), rest + 7);
    if (before)
        out.before = rp_arena_text(arena, before + 8);
    return out;
}

static bool is_pass(const char *name)
{
    return *name && strcmp(name, "pipeline-start") != 0 && strcmp(name, "pipeline-end") != 0;
}

/* ------------------------------------------------------------------ the module */

struct passes_ctx {
    const struct rp_dump_call *call;
    struct rp_dump_folder folder;
    const struct rp_dump_module *module;
    struct rp_arena *arena;
    struct passes_root *root;
    struct rp_pass_times times;
    RP_VEC(struct pass_row) rows;
    bool named; /* stages have names of their own, as in TensorFlow */
    RP_VEC(const char *)
    quiet; /* passes that are named in a file, but after which nothing was dumped */
    struct rp_err *err;
};

static void passes_release(struct passes_ctx *ctx)
{
    rp_vec_release(&ctx->rows);
    rp_vec_release(&ctx->quiet);
}

static struct pass_row new_row(void)
{
    return (struct pass_row){.number = RP_ABSENT_I64,
                             .time_ns = RP_ABSENT_I64,
                             .self_ns = RP_ABSENT_I64,
                             .before = RP_ABSENT_I64,
                             .after = RP_ABSENT_I64,
                             .added = RP_ABSENT_I64,
                             .removed = RP_ABSENT_I64,
                             .changed = RP_ABSENT_I64,
                             .moved = RP_ABSENT_I64,
                             .fusions = RP_ABSENT_I64,
                             .flops = __builtin_nan(""),
                             .bytes = __builtin_nan(""),
                             .share = __builtin_nan(""),
                             .effect = "not known"};
}

static enum rp_code add_times(struct passes_ctx *ctx)
{
    for (size_t i = 0; i < ctx->times.n; i++) {
        const struct rp_pass_time *t = &ctx->times.at[i];
        struct pass_row row = new_row();

        if (!is_pass(t->name))
            continue;
        row.number = t->id;
        row.pipeline = t->pipeline;
        row.pass = t->name;
        row.time_ns = rp_pass_ns(t);
        row.effect = t->changed ? "changed" : "nothing";
        row.timed = true;
        RP_TRY(rp_vec_push(&ctx->rows, row, ctx->err));
    }
    /* A fixed-point pipeline is a pass that runs others. Passes come in the order of their begins,
     * so the open ones form a stack. */
    size_t open[MAX_NESTED], depth = 0, row = 0;
    int64_t ends[MAX_NESTED];
    for (size_t i = 0; i < ctx->times.n; i++) {
        const struct rp_pass_time *t = &ctx->times.at[i];

        if (!is_pass(t->name))
            continue;
        while (depth && ends[depth - 1] < t->end_us)
            depth--;
        ctx->rows.at[row].self_ns = ctx->rows.at[row].time_ns;
        if (depth && ctx->rows.at[open[depth - 1]].self_ns >= ctx->rows.at[row].time_ns)
            ctx->rows.at[open[depth - 1]].self_ns -= ctx->rows.at[row].time_ns;
        if (depth < MAX_NESTED) {
            ends[depth] = t->end_us;
            open[depth++] = row;
        }
        row++;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ comparing */

/* Finds the row of times for a dumped program: the next one of its name that changed something.
   Without times, adds a row. */
static enum rp_code row_for(struct passes_ctx *ctx, struct stage_name name, uint32_t number,
                            size_t *from, struct pass_row **out)
{
    struct pass_row row = new_row();

    for (size_t i = *from; i < ctx->rows.n; i++) {
        struct pass_row *r = &ctx->rows.at[i];

        if (r->timed && !r->compared && !strcmp(r->pass, name.after) &&
            !strcmp(r->pipeline, name.pipeline) && !strcmp(r->effect, "changed")) {
            *out = r;
            *from = i + 1;
            return RP_OK;
        }
    }
    row.number = number;
    row.pipeline = name.pipeline;
    row.pass = is_pass(name.after) ? name.after : "(between pipelines)";
    RP_TRY(rp_vec_push(&ctx->rows, row, ctx->err));
    *out = &ctx->rows.at[ctx->rows.n - 1];
    return RP_OK;
}

static void fill_change(struct pass_row *row, const struct rp_dump_change *change,
                        const char *stage, struct rp_arena *arena)
{
    row->compared = true;
    row->before = change->before;
    row->after = change->after;
    row->added = change->added;
    row->removed = change->removed;
    row->changed = change->changed;
    row->moved = change->moved;
    row->fusions = change->fusions;
    row->flops = change->flops;
    row->bytes = change->bytes;
    row->what = change->what;
    row->stage = stage;
    row->effect = "changed";
    row->flops_text = rp_dump_signed(arena, change->flops, RP_UNIT_FLOP);
    row->bytes_text = rp_dump_signed(arena, change->bytes, RP_UNIT_BYTES);
}

/* Whether --pass names this row, by its number, or by a part of the pass's name. */
static bool row_wanted(const struct pass_row *row, uint32_t number, const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*text && !*end)
        return value == number;
    return strstr(row->pass, text) != NULL;
}

static enum rp_code add_details(struct passes_ctx *ctx, const struct rp_program *left,
                                const struct rp_program *right, const struct pass_row *row)
{
    struct rp_program_diff diff = {0};
    struct passes_root *root = ctx->root;

    RP_TRY(rp_program_diff_compare(left, right, ctx->arena, &diff, ctx->err));
    struct detail_row *rows =
        RP_ARENA_NEW(ctx->arena, struct detail_row, root->ndetails + diff.nchanges + 1);
    RP_TRY(rp_err_need(rows, ctx->err, "listing changes"));
    if (root->ndetails)
        memcpy(rows, root->details, root->ndetails * sizeof *rows);
    root->details = rows;
    for (size_t i = 0; i < diff.nchanges; i++) {
        const struct rp_program_diff_change *c = &diff.changes[i];

        rows[root->ndetails++] = (struct detail_row){
            .kind = c->kind,
            .what = c->what,
            .where = c->where,
            .place = c->place,
            .count = c->count,
            .text = rp_program_diff_sentence(c->what, c->where, c->place, ctx->arena)};
    }
    root->detail = root->detail
                       ? rp_arena_textf(ctx->arena, "%s, %lld %s", root->detail,
                                        (long long)row->number, row->pass)
                       : rp_arena_textf(ctx->arena, "%lld %s", (long long)row->number, row->pass);
    return RP_OK;
}

struct stage_program {
    struct rp_import import;
    struct rp_dump_version version;
};

static enum rp_code open_stage(const struct passes_ctx *ctx, size_t source,
                               struct stage_program *out)
{
    *out = (struct stage_program){.import = RP_IMPORT_INIT};

    RP_TRY(rp_load_program(ctx->call->dataset, source, &out->import, ctx->err));
    return rp_dump_version_init(&out->version, out->import.program, ctx->err);
}

static void close_stage(struct stage_program *stage)
{
    rp_dump_version_release(&stage->version);
    rp_import_release(&stage->import);
}

static enum rp_code compare_stage(struct passes_ctx *ctx, const struct rp_dump_stage *stage,
                                  const struct stage_program *before,
                                  const struct stage_program *after, size_t *from)
{
    const char *wanted = rp_settings_text(ctx->call->settings, "pass");
    struct stage_name name = {"", stage->name, ""};
    struct rp_dump_change change;
    struct pass_row *row;

    if (!ctx->named)
        name = split_stage(stage->name, ctx->arena);
    if (is_pass(name.before))
        RP_TRY(rp_vec_push(&ctx->quiet, name.before, ctx->err));
    RP_TRY(rp_dump_compare(&before->version, &after->version, ctx->arena, &change, ctx->err));
    if (!is_pass(name.after) && change.same && !change.changed)
        return RP_OK;
    RP_TRY(row_for(ctx, name, stage->number, from, &row));
    fill_change(row, &change, stage->name, ctx->arena);
    if (ctx->named && change.same && !change.changed)
        row->effect = "nothing";
    row->detailed = wanted && row_wanted(row, stage->number, wanted);
    if (row->detailed)
        return add_details(ctx, before->import.program, after->import.program, row);
    return RP_OK;
}

/* Programs between passes are steps; for frameworks that name their stages, all stages are. */
static bool is_step(const struct passes_ctx *ctx, const struct rp_dump_stage *stage)
{
    if (ctx->named)
        return stage->point == RP_DUMP_AT_NAMED;
    return stage->point == RP_DUMP_AT_BEFORE || stage->point == RP_DUMP_AT_PASS;
}

/* Without programs between passes: compares the ends, which shows what all of them did together. */
static enum rp_code compare_ends(struct passes_ctx *ctx)
{
    const struct rp_dump_stage *from = rp_dump_stage_at(ctx->module, RP_DUMP_AT_BEFORE);
    const struct rp_dump_stage *to = rp_dump_stage_at(ctx->module, RP_DUMP_AT_AFTER);
    RP_SCOPED(close_stage) struct stage_program a = {0}, b = {0};
    struct rp_dump_change change;
    struct pass_row row = new_row();

    if (!from || !to)
        return RP_OK;
    RP_TRY(open_stage(ctx, from->source, &a));
    RP_TRY(open_stage(ctx, to->source, &b));
    RP_TRY(rp_dump_compare(&a.version, &b.version, ctx->arena, &change, ctx->err));
    row.pipeline = "";
    row.pass = "(all passes)";
    fill_change(&row, &change, to->name, ctx->arena);
    return rp_vec_push(&ctx->rows, row, ctx->err);
}

/* ------------------------------------------------------------------ the answer */

RP_ORDER(by_time, struct pass_profile, RP_DOWN(time_ns), RP_DOWN(changed), strcmp(a->pass, b->pass))
RP_ORDER(by_number, struct pass_row, RP_UP(number))

static enum rp_code add_to_profile(struct passes_root *root, struct rp_map *names,
                                   const struct pass_row *row, struct rp_err *err)
{
    uint32_t at;

    RP_TRY(rp_map_intern(names, rp_hash_bytes(row->pass, strlen(row->pass)),
                         (uint32_t)root->nprofile, &at, err));
    if (at == root->nprofile)
        root->profile[root->nprofile++] = (struct pass_profile){.pass = row->pass};
    struct pass_profile *p = &root->profile[at];
    p->runs++;
    p->changed += !strcmp(row->effect, "changed");
    rp_ns_add(&p->time_ns, row->self_ns);
    rp_ns_add(&root->time_ns, row->self_ns);
    return RP_OK;
}

static enum rp_code sum_profile(struct passes_ctx *ctx)
{
    struct passes_root *root = ctx->root;
    RP_SCOPED(rp_map_release) struct rp_map names = {0};

    root->time_ns = ctx->times.n ? 0 : RP_ABSENT_I64;
    root->profile = RP_ARENA_NEW(ctx->arena, struct pass_profile, ctx->rows.n + 1);
    root->unchanged = RP_ARENA_NEW(ctx->arena, const char *, ctx->rows.n + ctx->quiet.n + 1);
    RP_TRY(rp_err_need(root->profile && root->unchanged, ctx->err, "summing times"));
    for (size_t i = 0; i < ctx->rows.n; i++) {
        const struct pass_row *row = &ctx->rows.at[i];

        root->changed_count += !strcmp(row->effect, "changed") && row->number != RP_ABSENT_I64;
        if (row->timed)
            RP_TRY(add_to_profile(root, &names, row, ctx->err));
    }
    for (size_t i = 0; i < root->nprofile; i++) {
        root->profile[i].share =
            root->time_ns > 0 ? (double)root->profile[i].time_ns / (double)root->time_ns : 0;
        if (!root->profile[i].changed)
            root->unchanged[root->nunchanged++] = root->profile[i].pass;
    }
    rp_sort(root->profile, root->nprofile, sizeof *root->profile, by_time);
    for (size_t i = 0; i < ctx->rows.n; i++)
        if (ctx->rows.at[i].timed && root->time_ns > 0)
            ctx->rows.at[i].share = (double)ctx->rows.at[i].self_ns / (double)root->time_ns;
    return RP_OK;
}

static bool has_text(const char *const *list, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i], text))
            return true;
    return false;
}

/* Without times: lists passes that a file name announces ("before_x") and after which nothing was
   dumped. */
static void list_quiet(struct passes_ctx *ctx)
{
    struct passes_root *root = ctx->root;

    for (size_t i = 0; !ctx->times.n && i < ctx->quiet.n; i++) {
        bool changed = has_text(root->unchanged, root->nunchanged, ctx->quiet.at[i]);

        for (size_t k = 0; !changed && k < ctx->rows.n; k++)
            changed = !strcmp(ctx->rows.at[k].pass, ctx->quiet.at[i]);
        if (!changed)
            root->unchanged[root->nunchanged++] = ctx->quiet.at[i];
    }
}

static enum rp_code add_notes(struct passes_ctx *ctx, bool dumped)
{
    struct passes_root *root = ctx->root;

    RP_NOTE(root, ctx->arena, rp_dump_one_of(&ctx->folder, ctx->arena));
    if (!ctx->times.n && !ctx->named)
        RP_NOTE(root, ctx->arena,
                "no times of passes: compile with --xla_dump_module_metadata (and --xla_dump_to)");
    if (!dumped)
        RP_NOTE(root, ctx->arena,
                "no programs between passes: compile with --xla_dump_hlo_pass_re=.*");
    else if (!ctx->times.n && !ctx->named)
        RP_NOTE(root, ctx->arena,
                "passes that changed nothing are known only where a file name announces them");
    return RP_OK;
}

/* Joins all names in one paragraph. */
static enum rp_code join_unchanged(struct passes_ctx *ctx)
{
    struct passes_root *root = ctx->root;
    size_t room = 64;

    root->quiet_lines = RP_ARENA_NEW(ctx->arena, const char *, 1);
    for (size_t i = 0; i < root->nunchanged; i++)
        room += strlen(root->unchanged[i]) + 2;
    char *text = rp_arena_alloc(ctx->arena, room, 1);
    RP_TRY(rp_err_need(root->quiet_lines && text, ctx->err, "listing passes"));
    if (!root->nunchanged)
        return RP_OK;
    size_t used = (size_t)snprintf(text, room, "%zu passes: ", root->nunchanged);
    for (size_t i = 0; i < root->nunchanged; i++)
        used +=
            (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", root->unchanged[i]);
    root->quiet_lines[root->nquiet_lines++] = text;
    return RP_OK;
}

static enum rp_code fill_root(struct passes_ctx *ctx, bool dumped)
{
    const char *wanted = rp_settings_text(ctx->call->settings, "pass");
    struct passes_root *root = ctx->root;

    root->module = rp_dump_label(ctx->module, ctx->arena);
    root->modules = (int64_t)ctx->folder.dump.nmodules;
    if (!ctx->times.n && ctx->rows.n)
        qsort(ctx->rows.at, ctx->rows.n, sizeof *ctx->rows.at, by_number);
    RP_TRY(sum_profile(ctx));
    list_quiet(ctx);
    root->passes = RP_ARENA_NEW(ctx->arena, struct pass_row, ctx->rows.n + 1);
    root->changes = RP_ARENA_NEW(ctx->arena, struct pass_row, ctx->rows.n + 1);
    RP_TRY(rp_err_need(root->passes && root->changes, ctx->err, "listing passes"));
    for (size_t i = 0; i < ctx->rows.n; i++) {
        root->passes[root->npasses++] = ctx->rows.at[i];
        if (!strcmp(ctx->rows.at[i].effect, "changed") && (!wanted || ctx->rows.at[i].detailed))
            root->changes[root->nchanges++] = ctx->rows.at[i];
    }
    for (size_t i = 0; i < root->npasses; i++)
        root->passes_run += root->passes[i].number != RP_ABSENT_I64;
    root->passes_run += ctx->times.n ? 0 : (int64_t)root->nunchanged;
    if (root->time_ns != RP_ABSENT_I64)
        root->summary = rp_arena_textf(
            ctx->arena, "%lld in %s; %lld changed the module", (long long)root->passes_run,
            rp_units_time(ctx->arena, root->time_ns), (long long)root->changed_count);
    else if (dumped)
        root->summary =
            rp_arena_textf(ctx->arena, "%lld changed the module", (long long)root->changed_count);
    if (!wanted)
        RP_TRY(join_unchanged(ctx));
    RP_TRY(add_notes(ctx, dumped));
    return rp_arena_check(ctx->arena, "listing passes", ctx->err);
}

static enum rp_code answer_passes(struct passes_ctx *ctx)
{
    const char *wanted = rp_settings_text(ctx->call->settings, "pass");
    size_t stages = ctx->module->nstages;
    bool dumped = rp_dump_stage_at(ctx->module, RP_DUMP_AT_PASS) != NULL;

    for (size_t i = 0; i < ctx->module->nstages; i++)
        stages -= ctx->module->stages[i].point == RP_DUMP_AT_RUN;
    ctx->named = !dumped && !rp_dump_stage_at(ctx->module, RP_DUMP_AT_BEFORE) &&
                 !rp_dump_stage_at(ctx->module, RP_DUMP_AT_AFTER) && stages > 1;
    dumped = dumped || ctx->named;

    size_t times = rp_dump_file_of(ctx->module, RP_DUMP_PASS_TIMES);
    if (times != SIZE_MAX)
        RP_TRY(rp_dump_pass_times(&ctx->folder, times, ctx->arena, &ctx->times, ctx->err));
    RP_TRY(add_times(ctx));
    if (dumped) {
        /* Compares each program with the previous one. */
        RP_SCOPED(close_stage) struct stage_program a = {0};
        bool have = false;
        size_t from = 0;
        for (size_t i = 0; i < ctx->module->nstages; i++) {
            const struct rp_dump_stage *stage = &ctx->module->stages[i];
            RP_SCOPED(close_stage) struct stage_program b = {0};

            if (!is_step(ctx, stage))
                continue;
            RP_TRY(open_stage(ctx, stage->source, &b));
            if (have)
                RP_TRY(compare_stage(ctx, stage, &a, &b, &from));
            struct stage_program before = a;
            a = b;
            b = before;
            have = true;
        }
    } else {
        RP_TRY(compare_ends(ctx));
    }
    if (wanted && !ctx->root->detail)
        return rp_err_set(ctx->err, RP_USAGE,
                          "no program was dumped after a pass '%s': 'dump passes' lists those with "
                          "a number or part of a name",
                          wanted);
    return fill_root(ctx, dumped);
}

static enum rp_code passes_run(const struct rp_dump_call *call, struct rp_result *result,
                               struct rp_err *err)
{
    RP_SCOPED(passes_release)
    struct passes_ctx ctx = {
        .call = call, .arena = &result->arena, .root = result->root, .err = err};

    RP_TRY(rp_torch_graphs_list(call->dataset->sources, &call->dataset->limits, err));
    RP_TRY(rp_dump_folder_open(call, ctx.arena, &ctx.folder, err));
    /* Chooses the module with most programs between passes, then with times, then with most
       stages. */
    const struct rp_dump_folder *folder = &ctx.folder;
    const struct rp_dump_module *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < folder->dump.nmodules; i++) {
        const struct rp_dump_module *m = &folder->dump.modules[i];
        size_t weight = m->nstages * 2 + 1 + (rp_dump_file_of(m, RP_DUMP_PASS_TIMES) != SIZE_MAX);

        if (folder->wanted[i] && (!best || weight > most)) {
            best = m;
            most = weight;
        }
    }
    if (!best || (!rp_dump_stage_at(best, RP_DUMP_AT_PASS) &&
                  rp_dump_file_of(best, RP_DUMP_PASS_TIMES) == SIZE_MAX))
        RP_TRY(rp_dump_largest(&ctx.folder, &best, err));
    ctx.module = best;
    if (rp_settings_flag(call->settings, "bisect"))
        return rp_dump_bisect(call, &ctx.folder, ctx.module, result, err);
    if (rp_settings_has(call->settings, "inputs") || rp_settings_has(call->settings, "seed"))
        return rp_err_set(err, RP_USAGE, "--inputs and --seed are for 'dump passes --bisect'");
    return answer_passes(&ctx);
}

const struct rp_dump_word rp_dump_passes = {
    .name = "passes",
    .summary = "how long each pass of the compiler took, and what it changed",
    .options = "module pass bisect inputs seed",
    .files = true,
    .type = &passes_type,
    .run = passes_run};
