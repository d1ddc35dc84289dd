/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what-ifs, and the application of several together. */
#include "sim/whatif/whatifs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct rp_whatif *const rp_whatifs[] = {
#define WHATIF_ADDRESS(name) &rp_whatif_##name,
    RP_WHATIF_ROWS(WHATIF_ADDRESS)
#undef WHATIF_ADDRESS
        NULL};

/* The reason begins with the name. */
static enum rp_whatif_verdict verdict_of(const struct rp_whatif *row, const struct rp_sim_run *run,
                                         const struct rp_whatif_args *args, struct rp_err *why)
{
    enum rp_whatif_verdict verdict =
        row->applies ? row->applies(run, args, why) : RP_WHATIF_APPLIES;

    if ((verdict == RP_WHATIF_CANNOT || verdict == RP_WHATIF_UNSURE) && why->code == RP_UNSUPPORTED)
        rp_err_prefix(why, RP_UNSUPPORTED, "%s", row->name);
    return verdict;
}

const char *rp_whatif_verdict_name(enum rp_whatif_verdict verdict)
{
    static const char *const names[] = {[RP_WHATIF_APPLIES] = "yes",
                                        [RP_WHATIF_PART] = "part",
                                        [RP_WHATIF_NOT] = "no",
                                        [RP_WHATIF_CANNOT] = "no"};

    return names[verdict];
}

enum rp_whatif_verdict rp_whatif_applies(const struct rp_whatif *row, const struct rp_sim_run *run,
                                         struct rp_err *why)
{
    return verdict_of(row, run, NULL, why);
}

enum rp_code rp_whatif_stands(const struct rp_sim_run *run, const char *text,
                              struct rp_arena *arena, enum rp_whatif_verdict *verdict,
                              const char **because, struct rp_err *err)
{
    struct rp_whatif_list list;

    *verdict = RP_WHATIF_APPLIES;
    *because = NULL;
    RP_TRY(rp_whatif_parse(text, arena, &list, err));
    for (size_t i = 0; i < list.n; i++) {
        struct rp_err why = RP_ERR_INIT;
        enum rp_whatif_verdict one = verdict_of(list.calls[i].row, run, NULL, &why);

        if (why.code != RP_OK && why.code != RP_UNSUPPORTED)
            return rp_err_set(err, why.code, "%s", why.text);
        if (one < *verdict || (one == *verdict && *because))
            continue;
        *verdict = one;
        *because = *why.text && one != RP_WHATIF_UNSURE && one != RP_WHATIF_CANNOT
                       ? rp_arena_text(arena, why.text)
                       : NULL;
    }
    return rp_arena_check(arena, "simulating", err);
}

enum rp_code rp_whatif_check(const struct rp_whatif *row, const struct rp_sim_run *run,
                             const struct rp_whatif_args *args, struct rp_err *err)
{
    struct rp_err why = RP_ERR_INIT;

    if (verdict_of(row, run, args, &why) != RP_WHATIF_CANNOT)
        return RP_OK;
    if (err)
        *err = why;
    return why.code;
}

static enum rp_code apply_calls(struct rp_sim_run *run, const struct rp_whatif_list *list,
                                bool makes_tasks, struct rp_err *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->calls[i].row->makes_tasks == makes_tasks)
            RP_TRY(list->calls[i].row->apply(run, &list->calls[i].args, err));
    return RP_OK;
}

enum rp_code rp_whatif_apply(struct rp_sim_run *run, const char *text, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_whatif_list list;

    RP_TRY(rp_whatif_parse(text, &scratch, &list, err));
    RP_TRY(apply_calls(run, &list, true, err));
    return apply_calls(run, &list, false, err);
}

bool rp_whatif_sums(const char *text)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_whatif_list list;
    bool sums = rp_whatif_parse(text, &scratch, &list, NULL) == RP_OK;

    for (size_t i = 0; sums && i < list.n; i++)
        if (list.calls[i].row->sums)
            return true;
    return false;
}

bool rp_whatif_list_has(const struct rp_whatif_list *list, const struct rp_whatif *row)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->calls[i].row == row)
            return true;
    return false;
}

enum rp_code rp_whatif_factor(const struct rp_whatif_args *args, double *out, struct rp_err *err)
{
    char *end = NULL;

    *out = args->value ? strtod(args->value, &end) : 0;
    if (end && !strcmp(end, "%"))
        *out /= 100;
    else if (end && *end && strcmp(end, "x") != 0)
        end = NULL;
    if (!end || end == args->value || !isfinite(*out) || *out <= 0 || *out > 1e6)
        return rp_err_set(err, RP_USAGE,
                          "'%s': a factor such as 0.5, 2 or 50%% is expected after '='",
                          args->text);
    return RP_OK;
}
