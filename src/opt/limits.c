/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which moves are searched, and when the search ends. */
#include "opt/optimize.h"

#include "base/clock.h"
#include "dataset/dataset.h"

#include <reprise/question.h>
#include <string.h>

const char *const rp_opt_family_names[RP_OPT_FAMILIES] = {
    [RP_OPT_TENSOR] = "tensor",       [RP_OPT_FUSION] = "fusion", [RP_OPT_GRAPHS] = "graphs",
    [RP_OPT_PRECISION] = "precision", [RP_OPT_MEMORY] = "memory", [RP_OPT_OVERLAP] = "overlap",
    [RP_OPT_BALANCE] = "balance"};

static enum rp_opt_family family_of(const char *name, size_t len)
{
    unsigned i;

    for (i = 0; i < RP_OPT_FAMILIES; i++)
        if (strlen(rp_opt_family_names[i]) == len && !memcmp(rp_opt_family_names[i], name, len))
            break;
    return (enum rp_opt_family)i;
}

enum rp_opt_family rp_opt_family_of(const char *name)
{
    return family_of(name, strlen(name));
}

static enum rp_code unknown_family(const char *name, size_t len, struct rp_err *err)
{
    const char *words[RP_OPT_FAMILIES + 1] = {NULL}, *near;
    char word[40];
    size_t i, n = len < sizeof word - 1 ? len : sizeof word - 1;

    for (i = 0; i < RP_OPT_FAMILIES; i++)
        words[i] = rp_opt_family_names[i];
    memcpy(word, name, n);
    word[n] = '\0';
    near = rp_closest_word(word, words);
    return rp_err_set(err, RP_USAGE,
                      "'--moves': there is no '%s'%s%s%s; use tensor, fusion, graphs, precision, "
                      "memory, overlap, balance, or a name with ^ to leave it out",
                      word, near ? ": did you mean '" : "", near ? near : "", near ? "'" : "");
}

enum rp_code rp_opt_families(const char *text, unsigned *out, struct rp_err *err)
{
    const unsigned all = (1u << RP_OPT_FAMILIES) - 1;
    unsigned with = 0, without = 0;

    for (; text && *text; text += *text == ',') {
        bool leaves = *text == '^';

        text += leaves;
        size_t len = strcspn(text, ",");
        enum rp_opt_family f = family_of(text, len);
        if (f == RP_OPT_FAMILIES)
            return unknown_family(text, len, err);
        *(leaves ? &without : &with) |= 1u << f;
        text += len;
    }
    *out = (with ? with : all) & ~without;
    if (!*out)
        return rp_err_set(err, RP_USAGE, "'--moves' leaves no moves to search");
    return RP_OK;
}

bool rp_opt_out_of_time(struct rp_opt_limits *limits)
{
    bool certain = limits->run && limits->run->evaluated < limits->certain;

    if (limits->stopped == RP_OPT_CONVERGED && !certain && limits->until_ns != INT64_MAX &&
        rp_clock_ns() > limits->until_ns)
        limits->stopped = RP_OPT_OUT_OF_TIME;
    return limits->stopped != RP_OPT_CONVERGED;
}

/* Reports how much of the budget is used up; whoever watches may ask to stop. */
static bool is_interrupted(const struct rp_opt_limits *limits)
{
    const struct rp_ctx *ctx = limits->ctx;
    int64_t left = limits->until_ns - rp_clock_ns(), all = limits->budget_ns;

    if (!ctx || !ctx->progress)
        return false;
    left = left < 0 ? 0 : left > all ? all : left;
    return ctx->progress(ctx->progress_user, "searching", (uint64_t)(all - left), (uint64_t)all);
}

bool rp_opt_over(struct rp_opt_limits *limits)
{
    if (limits->stopped == RP_OPT_CONVERGED && is_interrupted(limits))
        limits->stopped = RP_OPT_INTERRUPTED;
    return rp_opt_out_of_time(limits);
}

const char *rp_opt_stop_name(enum rp_opt_stop stopped)
{
    static const char *const names[] = {[RP_OPT_CONVERGED] = "converged",
                                        [RP_OPT_OUT_OF_TIME] = "budget",
                                        [RP_OPT_INTERRUPTED] = "interrupted"};

    return names[stopped];
}
