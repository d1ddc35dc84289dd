/* SPDX-License-Identifier: Apache-2.0 */
/* `dump breaks` shows where torch.compile had to end a graph, why, what it cost to compile, and
   what PyTorch suggests. */
#include "dump/torch.h"
#include "result/print_units.h"

struct advice_row {
    const char *place, *advice;
};

struct breaks_root {
    const char *summary;
    int64_t count, compiles;
    size_t nbreaks, nadvice, nnotes;
    struct rp_break_row *breaks;
    struct advice_row *advice;
    struct rp_compile_problems problems;
    const char **notes;
};

static const struct rp_field advice_fields[] = {
    RP_FIELD(struct advice_row, place, STR, NONE, "at", "text output only", 0),
    RP_FIELD(struct advice_row, advice, STR, NONE, "PyTorch's hint", "text output only", 0),
    RP_FIELD_END};
static const struct rp_type advice_type = {"advice", sizeof(struct advice_row), advice_fields,
                                           NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct breaks_root, summary, STR, NONE, "graph breaks", "text output only", RP_SCREEN),
    RP_FIELD(struct breaks_root, count, I64, COUNT, NULL, "graph breaks in the logs", 0),
    RP_FIELD(struct breaks_root, compiles, I64, COUNT, NULL, "compiles in the logs", 0),
    RP_FIELD_LIST(struct breaks_root, breaks, &rp_break_row_type, "graph breaks",
                  "distinct ones, most frequent first", 0),
    RP_FIELD_SHOWN(struct breaks_root, advice, &advice_type, "what to change", "place, advice", 0),
    RP_FIELD_RECORD(struct breaks_root, problems, &rp_compile_problems_type, NULL,
                    "what the logs lack", 0),
    RP_FIELD_LIST(struct breaks_root, notes, &rp_type_string, "notes", "what to know", 0),
    RP_FIELD_END};
static const struct rp_type breaks_type = {"dump_breaks", sizeof(struct breaks_root), root_fields,
                                           "breaks"};

static enum rp_code fill_breaks(const struct rp_dump_torch *torch, struct breaks_root *root,
                                struct rp_arena *arena, struct rp_err *err)
{
    int64_t skipped = 0;

    root->breaks = rp_dump_torch_breaks(torch, arena, &root->nbreaks);
    root->advice = RP_ARENA_NEW(arena, struct advice_row, root->nbreaks + 1);
    RP_TRY(rp_arena_check(arena, "listing graph breaks", err));
    root->compiles = (int64_t)torch->nwanted;
    for (size_t i = 0; i < root->nbreaks; i++) {
        root->count += root->breaks[i].count;
        skipped += root->breaks[i].skipped_frame;
        if (root->breaks[i].hint)
            root->advice[root->nadvice++] =
                (struct advice_row){root->breaks[i].place, root->breaks[i].hint};
    }
    root->summary = rp_arena_textf(arena, "%s at %s, in %s", rp_units_number(arena, root->count),
                                   rp_units_count(arena, (int64_t)root->nbreaks, "place"),
                                   rp_units_count(arena, root->compiles, "compile"));
    rp_dump_torch_problems(torch, arena, &root->problems);
    RP_NOTE(root, arena, rp_dump_torch_warning(&root->problems, arena));
    if (skipped)
        RP_NOTE(root, arena,
                "a break in a loop or a 'with' makes the whole function run eagerly; what it calls "
                "is compiled by itself");
    return rp_arena_check(arena, "listing graph breaks", err);
}

static enum rp_code breaks_run(const struct rp_dump_call *call, struct rp_result *result,
                               struct rp_err *err)
{
    RP_SCOPED(rp_dump_torch_release) struct rp_dump_torch torch = {0};

    RP_TRY(rp_dump_torch_need(call, &result->arena, &torch, err));
    return fill_breaks(&torch, result->root, &result->arena, err);
}

const struct rp_dump_word rp_dump_breaks = {.name = "breaks",
                                            .summary =
                                                "where torch.compile had to end a graph, and why",
                                            .options = "module",
                                            .files = true,
                                            .type = &breaks_type,
                                            .run = breaks_run};
