/* SPDX-License-Identifier: Apache-2.0 */
/* `dump flags`: the flags and variables that make compilers write dumps, and what each does. */
#include "dump/table.h"
#include "dump/words.h"

#include <string.h>

/* ---- the answer ---- */

struct flag_row {
    const char *framework, *where, *name, *type, *fallback, *versions, *status;
    const char *meaning, *caution;
    const char *mark; /* on the screen: "removed", or "caution" if there is one */
};

struct flags_root {
    const char *summary;
    size_t nflags, ntable, nblocks;
    struct flag_row *flags;
    struct flag_row *table, *blocks; /* for the screen: many flags, or one */
};

static const struct rp_field row_fields[] = {
    RP_FIELD(struct flag_row, framework, STR, NONE, NULL, "the framework that it belongs to", 0),
    RP_FIELD(struct flag_row, where, STR, NONE, NULL, "variable that holds the flag, or null", 0),
    RP_FIELD(struct flag_row, name, STR, NONE, "name", "name of the flag or variable", 0),
    RP_FIELD(struct flag_row, mark, STR, NONE, "", "removed, or a caution", RP_SCREEN),
    RP_FIELD(struct flag_row, type, STR, NONE, "type", "bool, int, float or text", 0),
    RP_FIELD_AS("default", struct flag_row, fallback, STR, NONE, "default",
                "what holds without it; null: not known", 0),
    RP_FIELD(struct flag_row, versions, STR, NONE, NULL, "releases of jaxlib that accept it", 0),
    RP_FIELD(struct flag_row, status, STR, NONE, NULL, "known or removed", 0),
    RP_FIELD(struct flag_row, meaning, STR, NONE, "meaning", "what it does", 0),
    RP_FIELD(struct flag_row, caution, STR, NONE, "caution",
             "what it breaks or hides, or what replaced it; or null", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"flag", sizeof(struct flag_row), row_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct flags_root, summary, STR, NONE, NULL, "what the table rests on", 0),
    RP_FIELD_LIST(struct flags_root, flags, &row_type, NULL, "flags and variables", 0),
    RP_FIELD_SHOWN(struct flags_root, table, &row_type, "flags and variables",
                   "name~, mark, meaning~", 0),
    RP_FIELD_SHOWN(struct flags_root, blocks, &row_type, "",
                   "name, meaning, caution, framework:of, where:set in, type, default, "
                   "versions:accepted by",
                   RP_BLOCKS),
    RP_FIELD_END};
static const struct rp_type flags_type = {"dump_flags", sizeof(struct flags_root), root_fields,
                                          "flags"};

/* ---- one row ---- */

/* Writes "0.4.30 to 0.10.2", "until 0.8.1", "0.6.2 and later", among the releases that were
   tried. */
static const char *versions_of(const struct rp_flag *flag, struct rp_arena *arena)
{
    size_t first = 0, last = RP_XLA_RELEASES;

    if (flag->kind == RP_FLAG_XLA_OLD)
        return rp_arena_textf(arena, "none since %s", rp_xla_releases[0].name);
    if (flag->kind != RP_FLAG_XLA)
        return NULL;
    while (first < RP_XLA_RELEASES && !flag->in[first])
        first++;
    while (last > first && !flag->in[last - 1])
        last--;
    if (first + 1 == last)
        return rp_arena_textf(arena, "jaxlib %s", rp_xla_releases[first].name);
    return rp_arena_textf(arena, "jaxlib %s to %s", rp_xla_releases[first].name,
                          rp_xla_releases[last - 1].name);
}

static struct flag_row flag_row_of(const struct rp_flag *flag, struct rp_arena *arena)
{
    static const char *const types[] = {"bool", "int", "float", "text"};
    static const char *const where[] = {"XLA_FLAGS", "XLA_FLAGS", "TF_XLA_FLAGS", NULL};
    bool gone = flag->kind == RP_FLAG_XLA_OLD ||
                (flag->kind == RP_FLAG_XLA && !flag->in[RP_XLA_RELEASES - 1]);

    return (struct flag_row){.framework = flag->framework,
                             .where = where[flag->kind],
                             .name = flag->name,
                             .type = types[flag->type],
                             .fallback = flag->fallback,
                             .versions = versions_of(flag, arena),
                             .status = gone ? "removed" : "known",
                             .meaning = flag->meaning,
                             .caution = flag->caution,
                             .mark = gone            ? "removed"
                                     : flag->caution ? "caution"
                                                     : NULL};
}

/* ---- which rows ---- */

/* Whether a flag is about dumps, or needs a warning. The others are for --every. */
static bool is_about_dumps(const struct rp_flag *flag)
{
    return flag->kind == RP_FLAG_VARIABLE || flag->kind == RP_FLAG_XLA_OLD || flag->caution ||
           strstr(flag->name, "dump") || strstr(flag->name, "hlo_graph") ||
           strstr(flag->name, "debug");
}

static bool is_wanted(const struct rp_flag *flag, const struct rp_dump_call *call)
{
    const char *framework = rp_settings_text(call->settings, "framework");

    if (framework && !strcasestr(framework, flag->framework))
        return false;
    if (call->subject)
        return strcasestr(flag->name, call->subject) != NULL;
    return rp_settings_flag(call->settings, "every") || is_about_dumps(flag);
}

static enum rp_code no_such_flag(const char *name, struct rp_err *err)
{
    const char *nearest = "";

    for (int kind = RP_FLAG_XLA; kind <= RP_FLAG_VARIABLE && !*nearest; kind++)
        nearest = rp_flag_nearest((enum rp_flag_kind)kind, name);
    return rp_err_set(err, RP_USAGE, "no flag or variable has '%s' in its name%s%s%s", name,
                      *nearest ? "; did you mean '" : "", nearest, *nearest ? "'?" : "");
}

static enum rp_code flags_run(const struct rp_dump_call *call, struct rp_result *result,
                              struct rp_err *err)
{
    struct flags_root *root = result->root;
    const char *name = call->subject ? call->subject + strspn(call->subject, "-") : NULL;
    struct rp_dump_call wanted = *call;
    size_t n;

    wanted.subject = name;
    const struct rp_flag *all = rp_flags(&n);
    const struct rp_flag *exact = name ? rp_flag_find(name, strcspn(name, "=")) : NULL;
    root->flags = RP_ARENA_NEW(&result->arena, struct flag_row, n);
    for (size_t i = 0; root->flags && i < n; i++)
        if (exact ? exact == &all[i] : is_wanted(&all[i], &wanted))
            root->flags[root->nflags++] = flag_row_of(&all[i], &result->arena);
    if (!root->nflags && name)
        return no_such_flag(name, err);
    root->summary = "flags of XLA as jaxlib 0.4.30, 0.6.2, 0.8.1 and 0.10.2 accept them, flags of "
                    "TensorFlow 2.21";
    if (root->nflags > 3) {
        root->table = root->flags;
        root->ntable = root->nflags;
    } else {
        root->blocks = root->flags;
        root->nblocks = root->nflags;
    }
    return rp_arena_check(&result->arena, "listing flags", err);
}

const struct rp_dump_word rp_dump_flags = {
    .name = "flags",
    .summary = "the flags and variables that make compilers write dumps, and what each does",
    .subject = "name",
    .options = "framework every",
    .type = &flags_type,
    .run = flags_run};
