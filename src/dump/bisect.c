/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump passes --bisect` finds the first pass after which a module computes something else. The
 * programs that were dumped between passes run on our engine with the same inputs; the one before
 * optimization is right. The last one is run first: if it is right, no pass is to blame. Otherwise
 * a binary search, which skips programs that cannot run, ends at two neighbours, the last that is
 * right and the first that is wrong, and these are compared operation by operation. Takes about
 * log2(passes) runs.
 */
#include "dump/bisect.h"
#include "replay/search.h"

#include <string.h>

struct skipped_row {
    int64_t number;
    const char *stage, *why;
};

struct bisect_root {
    const char *module, *inputs, *summary, *pass, *right, *wrong;
    const char *operation, *source, *counterpart, *counterpart_source;
    int64_t number, stages, runs;
    double max_abs;
    bool ok;
    size_t nskipped, nnotes;
    struct skipped_row *skipped;
    const char **notes;
};

static const struct rp_field skipped_fields[] = {
    RP_FIELD(struct skipped_row, number, I64, NONE, "number", "number of the program in the dump",
             RP_NULLABLE),
    RP_FIELD(struct skipped_row, stage, STR, NONE, "program", "its name", RP_SHORTEN),
    RP_FIELD(struct skipped_row, why, STR, NONE, "cannot run because", "what the engine said",
             RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type skipped_type = {"skipped", sizeof(struct skipped_row), skipped_fields,
                                            NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct bisect_root, module, STR, NONE, "module", "that was compiled", 0),
    RP_FIELD(struct bisect_root, inputs, STR, NONE, "inputs", "their source", RP_SHORTEN),
    RP_FIELD(struct bisect_root, summary, STR, NONE, "answer", "the answer in words", 0),
    RP_FIELD(struct bisect_root, ok, BOOL, NONE, NULL, "true if no pass is to blame", 0),
    RP_FIELD(struct bisect_root, pass, STR, NONE, "broken by", "the pass", 0),
    RP_FIELD(struct bisect_root, number, I64, NONE, NULL, "number of the program after it",
             RP_NULLABLE),
    RP_FIELD(struct bisect_root, right, STR, NONE, "last right", "program", RP_SHORTEN),
    RP_FIELD(struct bisect_root, wrong, STR, NONE, "first wrong", "program", RP_SHORTEN),
    RP_FIELD(struct bisect_root, operation, STR, NONE, "first to diverge",
             "the operation of the last program that is right", 0),
    RP_FIELD(struct bisect_root, source, STR, NONE, "made at", "its line in the user's program",
             RP_SHORTEN),
    RP_FIELD(struct bisect_root, counterpart, STR, NONE, "counterpart",
             "the operation of the first program that is wrong", 0),
    RP_FIELD(struct bisect_root, counterpart_source, STR, NONE, "its line",
             "its line in the user's program", RP_SHORTEN),
    RP_FIELD(struct bisect_root, max_abs, F64, NONE, "difference", "the largest of an element", 0),
    RP_FIELD(struct bisect_root, stages, I64, COUNT, "programs", "stages between passes", 0),
    RP_FIELD(struct bisect_root, runs, I64, COUNT, "programs run", "runs with the same inputs", 0),
    RP_FIELD_LIST(struct bisect_root, skipped, &skipped_type, "skipped", "programs that cannot run",
                  0),
    RP_FIELD_LIST(struct bisect_root, notes, &rp_type_string, "notes", "what is missing", 0),
    RP_FIELD_END};
static const struct rp_type bisect_type = {"dump_passes_bisect", sizeof(struct bisect_root),
                                           root_fields, "skipped"};

enum verdict { UNKNOWN, RIGHT, WRONG, NOT_RUN };

struct bisect {
    const struct rp_dump_call *call;
    const struct rp_dump_folder *folder;
    const struct rp_dump_stage **stages; /* the first is the one before optimization */
    size_t n;
    uint8_t *verdict;
    struct rp_session session; /* of the first */
    struct rp_trial_engine on;
    struct rp_arena *arena;
    struct bisect_root *root;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ programs */

static enum rp_code bisect_stages(struct bisect *b, const struct rp_dump_module *module)
{
    const struct rp_dump_stage *last = rp_dump_stage_at(module, RP_DUMP_AT_AFTER);

    b->stages = RP_ARENA_NEW(b->arena, const struct rp_dump_stage *, module->nstages + 1);
    b->verdict = RP_ARENA_NEW(b->arena, uint8_t, module->nstages + 1);
    b->root->skipped = RP_ARENA_NEW(b->arena, struct skipped_row, module->nstages + 1);
    RP_TRY(rp_err_need(b->stages && b->verdict && b->root->skipped, b->err, "listing passes"));
    for (size_t i = 0; i < module->nstages; i++)
        if (module->stages[i].point == RP_DUMP_AT_BEFORE ||
            module->stages[i].point == RP_DUMP_AT_PASS)
            b->stages[b->n++] = &module->stages[i];
    if (last)
        b->stages[b->n++] = last;
    b->root->stages = (int64_t)b->n;
    if (b->n < 2)
        return rp_err_set(b->err, RP_FORMAT,
                          "no programs between passes: compile with --xla_dump_hlo_pass_re=.* "
                          "('dump run --preset passes')");
    return RP_OK;
}

/* Opens the first program and the inputs of all. */
static enum rp_code bisect_open(struct bisect *b)
{
    const struct rp_settings *settings = b->call->settings;
    struct rp_session_options options = {.inputs = rp_settings_text(settings, "inputs"),
                                         .seed = (uint64_t)rp_settings_int(settings, "seed")};
    struct rp_session *s = &b->session;
    struct rp_replay said = {0};

    s->arena = b->arena;
    s->file = rp_dataset_borrow_name(b->call->dataset, b->stages[0]->source);
    RP_TRY(rp_load_program(b->call->dataset, b->stages[0]->source, &s->import, b->err));
    s->program = (struct rp_engine_program){
        .program = s->import.program, .name = s->file, .format = s->import.format->name};
    RP_TRY(rp_session_inputs(s, &options, &said, b->err));
    b->root->inputs = said.inputs;
    return RP_OK;
}

/* Whether a program gives the same as another one; where: what rp_isolate_pair finds, or NULL. */
static enum rp_code bisect_compare(struct bisect *b, size_t left, size_t right, bool *differ,
                                   struct rp_isolated_pair *where)
{
    RP_SCOPED(rp_import_release) struct rp_import first = RP_IMPORT_INIT, other = RP_IMPORT_INIT;
    RP_SCOPED(rp_isolated_pair_release) struct rp_isolated_pair found = {0};

    if (left)
        RP_TRY(rp_load_program(b->call->dataset, b->stages[left]->source, &first, b->err));
    RP_TRY(rp_load_program(b->call->dataset, b->stages[right]->source, &other, b->err));
    RP_TRY(rp_session_compare(&b->session, left ? first.program : b->session.import.program,
                              other.program, &b->on, !where, b->arena, &found, b->err));
    *differ = found.differ;
    if (where) {
        *where = found;
        found = (struct rp_isolated_pair){0};
    }
    return RP_OK;
}

static enum rp_code bisect_judge(struct bisect *b, size_t i)
{
    struct bisect_root *root = b->root;
    char message[256];
    bool differ;

    if (b->verdict[i] != UNKNOWN)
        return RP_OK;
    enum rp_code code = bisect_compare(b, 0, i, &differ, NULL);
    if (rp_trial_is_ours(code))
        return code;
    if (code == RP_OK) {
        root->runs++;
        b->verdict[i] = differ ? WRONG : RIGHT;
        return RP_OK;
    }
    b->verdict[i] = NOT_RUN;
    rp_trial_message(b->err, message, sizeof message);
    root->skipped[root->nskipped++] =
        (struct skipped_row){b->stages[i]->number, rp_arena_text(b->arena, b->stages[i]->name),
                             rp_arena_text(b->arena, message)};
    return RP_OK;
}

/* ------------------------------------------------------------------ the search */

/* The program nearest to the middle that can run, strictly in between; n if there is none. */
static enum rp_code bisect_middle(struct bisect *b, size_t low, size_t high, size_t *out)
{
    size_t middle = low + (high - low) / 2;

    for (size_t away = 0; away < high - low; away++)
        for (int side = 0; side < 2; side++) {
            size_t i = side ? middle + away : middle - away;

            if ((!side && away > middle) || i <= low || i >= high)
                continue;
            RP_TRY(bisect_judge(b, i));
            if (b->verdict[i] != NOT_RUN) {
                *out = i;
                return RP_OK;
            }
        }
    *out = b->n;
    return RP_OK;
}

/* Names a pass: "cse (fusion)" for "0021.fusion.after_cse.before_dce". */
static const char *pass_of(const struct bisect *b, size_t i)
{
    const struct rp_dump_stage *stage = b->stages[i];
    const char *pipeline = strchr(stage->name, '.');
    const char *after = strstr(stage->name, ".after_");

    if (stage->point != RP_DUMP_AT_PASS || !pipeline || !after)
        return "the last passes";
    const char *end = strstr(after, ".before_");
    end = end ? end : after + strlen(after);
    after += strlen(".after_");
    pipeline++;
    return rp_arena_textf(b->arena, "%.*s (%.*s)", (int)(end - after), after,
                          (int)strcspn(pipeline, "."), pipeline);
}

static enum rp_code bisect_blame(struct bisect *b, size_t right, size_t wrong)
{
    struct bisect_root *root = b->root;
    RP_SCOPED(rp_isolated_pair_release) struct rp_isolated_pair found = {0};
    size_t between = wrong - right - 1;
    bool differ;

    root->pass = pass_of(b, wrong);
    root->number = b->stages[wrong]->number;
    root->right = rp_arena_text(b->arena, b->stages[right]->name);
    root->wrong = rp_arena_text(b->arena, b->stages[wrong]->name);
    root->summary =
        between ? rp_arena_textf(b->arena,
                                 "wrong after %s, or after one that cannot run (%zu before it)",
                                 root->pass, between)
                : rp_arena_textf(b->arena, "wrong after %s, right before it", root->pass);
    enum rp_code code = bisect_compare(b, right, wrong, &differ, &found);
    if (code == RP_OK && differ && found.first < found.rows.n) {
        const struct rp_pair_row *row = &found.rows.at[found.first];

        root->operation = rp_arena_textf(b->arena, "%s (%s)", row->name[0], row->opcode[0]);
        root->source = row->source[0];
        if (row->name[1])
            root->counterpart = rp_arena_textf(b->arena, "%s (%s)", row->name[1], row->opcode[1]);
        root->counterpart_source = row->source[1];
        root->max_abs = row->max_abs;
    }
    return rp_trial_is_ours(code) ? code : rp_arena_check(b->arena, "searching passes", b->err);
}

static enum rp_code bisect_search(struct bisect *b)
{
    size_t low = 0, high = b->n - 1, middle;

    RP_TRY(bisect_judge(b, 0));
    if (b->verdict[0] != RIGHT)
        return rp_err_set(b->err, RP_UNSUPPORTED, "the program before the passes cannot run: %s",
                          b->root->nskipped ? b->root->skipped[0].why : "its results vary");
    for (; high > 0; high--) {
        RP_TRY(bisect_judge(b, high));
        if (b->verdict[high] != NOT_RUN)
            break;
    }
    if (!high)
        return rp_err_set(b->err, RP_UNSUPPORTED, "none of the programs after a pass can run: %s",
                          b->root->skipped[0].why);
    if (b->verdict[high] == RIGHT) {
        b->root->ok = true;
        b->root->summary = high + 1 == b->n ? "no pass changes what the program computes"
                                            : "no pass changes what the program computes, as far "
                                              "as programs can run";
        return RP_OK;
    }
    while (high - low > 1) {
        RP_TRY(bisect_middle(b, low, high, &middle));
        if (middle == b->n)
            break;
        if (b->verdict[middle] == RIGHT)
            low = middle;
        else
            high = middle;
    }
    return bisect_blame(b, low, high);
}

enum rp_code rp_dump_bisect(const struct rp_dump_call *call, const struct rp_dump_folder *folder,
                            const struct rp_dump_module *module, struct rp_result *result,
                            struct rp_err *err)
{
    struct bisect b = {.call = call,
                       .folder = folder,
                       .on = {.engine = &rp_engine_fast},
                       .arena = &result->arena,
                       .err = err};

    result->type = &bisect_type;
    result->root = b.root = RP_ARENA_NEW(b.arena, struct bisect_root, 1);
    RP_TRY(rp_err_need(b.root, err, "searching passes"));
    b.on.options.threads = rp_pool_threads(call->ctx->pool);
    b.root->module = rp_dump_label(module, b.arena);
    b.root->number = RP_ABSENT_I64;
    b.root->max_abs = __builtin_nan("");
    RP_NOTE(b.root, b.arena, rp_dump_one_of(folder, b.arena));
    RP_TRY(bisect_stages(&b, module));
    enum rp_code code = bisect_open(&b);
    if (code == RP_OK)
        code = bisect_search(&b);
    rp_session_release(&b.session);
    result->answer = code == RP_OK && !b.root->ok ? RP_ANSWER_NO : 0;
    return code;
}
