/* SPDX-License-Identifier: Apache-2.0 */
/* `dump flags`: the flags and variables that make compilers write dumps, and what each does. */
#include "dump/words.h"

#include <string.h>

struct flag_row {
    const char *name, *meaning;
};

struct flags_root {
    size_t nflags;
    struct flag_row *flags;
};

static const struct rp_field row_fields[] = {
    RP_FIELD(struct flag_row, name, STR, NONE, "name", "of the flag or variable", 0),
    RP_FIELD(struct flag_row, meaning, STR, NONE, "meaning", "what it does", 0), RP_FIELD_END};
static const struct rp_type row_type = {"flag", sizeof(struct flag_row), row_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD_LIST(struct flags_root, flags, &row_type, "flags", "flags and variables", 0),
    RP_FIELD_END};
static const struct rp_type flags_type = {"dump_flags", sizeof(struct flags_root), root_fields,
                                          "flags"};

static const struct flag_row known[] = {
    {"xla_dump_to", "folder for XLA's dumps"},
};

static enum rp_code flags_run(const struct rp_dump_call *call, struct rp_result *result,
                              struct rp_err *err)
{
    struct flags_root *root = result->root;
    size_t n = sizeof known / sizeof known[0];

    root->flags = RP_ARENA_NEW(&result->arena, struct flag_row, n);
    for (size_t i = 0; root->flags && i < n; i++)
        if (!call->subject || !strcmp(call->subject, known[i].name))
            root->flags[root->nflags++] = known[i];
    return rp_arena_check(&result->arena, "listing flags", err);
}

const struct rp_dump_word rp_dump_flags = {
    .name = "flags",
    .summary = "the flags and variables that make compilers write dumps",
    .subject = "name",
    .type = &flags_type,
    .run = flags_run};
