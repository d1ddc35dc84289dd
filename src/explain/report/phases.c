/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums up the time of a server's steps by phase, and if their marks state the numbers, per request
 * and token. Waiting for work that was launched before the recording is left out, because it is not
 * theirs. Ranks work on the same steps, so counts and totals are means over the ranks, medians
 * those of all steps.
 */
#include "base/decides.h"
#include "explain/report/report.h"

#include <string.h>

#define MOST_PHASES 4
RP_LIMIT(MOST_PHASES, "phases", "there are prefill, decode, mixed and none");

struct phase_sums {
    const char *phase; /* NULL: none */
    int64_t steps, total_ns, unrecorded_ns;
    int64_t requests, requests_ns; /* sums of known numbers, and time of the steps that have one */
    int64_t tokens, tokens_ns;
    int64_t *ns; /* of its steps */
};

struct phases_ctx {
    struct phase_sums sums[MOST_PHASES];
    size_t n;
    int64_t total_ns;
    bool any; /* a step has a phase */
};

static bool same_phase(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Numbers of requests and tokens come from names, so they may be anything. */
static void add_known(int64_t count, int64_t ns, int64_t *sum, int64_t *sum_ns)
{
    if (count == RP_ABSENT_I64)
        return;
    if (__builtin_add_overflow(*sum, count, sum))
        *sum = INT64_MAX;
    rp_ns_add(sum_ns, ns);
}

static void add_step(struct phases_ctx *c, const struct rp_report_step *s, size_t room,
                     struct rp_arena *arena)
{
    size_t i;

    for (i = 0; i < c->n && !same_phase(c->sums[i].phase, s->phase); i++)
        ;
    if (i == MOST_PHASES)
        return;
    struct phase_sums *p = &c->sums[i];
    if (i == c->n) {
        c->n++;
        p->phase = s->phase;
        p->ns = RP_ARENA_NEW(arena, int64_t, room);
    }
    if (!p->ns)
        return;
    p->ns[p->steps++] = s->b.window_ns;
    rp_ns_add(&p->total_ns, s->b.window_ns);
    rp_ns_add(&c->total_ns, s->b.window_ns);
    rp_ns_add(&p->unrecorded_ns, s->unrecorded_ns);
    add_known(s->requests, rp_ns_between(s->unrecorded_ns, s->b.window_ns), &p->requests,
              &p->requests_ns);
    add_known(s->tokens, rp_ns_between(s->unrecorded_ns, s->b.window_ns), &p->tokens,
              &p->tokens_ns);
    c->any = c->any || s->phase;
}

static int64_t per(int64_t ns, int64_t count)
{
    return count > 0 ? ns / count : RP_ABSENT_I64;
}

static struct rp_report_phase row_of(struct phase_sums *p, int64_t total_ns, int64_t nranks)
{
    rp_ns_sort(p->ns, (size_t)p->steps);
    return (struct rp_report_phase){
        .phase = p->phase,
        .label = p->phase ? p->phase : "other",
        .steps = p->steps / nranks,
        .median_ns = rp_ns_median(p->ns, (size_t)p->steps),
        .total_ns = p->total_ns / nranks,
        .unrecorded_ns = p->unrecorded_ns ? p->unrecorded_ns / nranks : RP_ABSENT_I64,
        .share = total_ns > 0 ? (double)p->total_ns / (double)total_ns : 0,
        .requests = p->requests_ns ? p->requests / nranks : RP_ABSENT_I64,
        .tokens = p->tokens_ns ? p->tokens / nranks : RP_ABSENT_I64,
        .request_ns = per(p->requests_ns, p->requests),
        .token_ns = per(p->tokens_ns, p->tokens)};
}

enum rp_code rp_report_sum_phases(const struct rp_ranks *ranks, struct rp_arena *arena,
                                  struct rp_report_root *out, struct rp_err *err)
{
    struct phases_ctx c = {0};

    for (size_t i = 0; i < out->nsteps; i++)
        add_step(&c, &out->steps[i], out->nsteps, arena);
    out->phases = RP_ARENA_NEW(arena, struct rp_report_phase, MOST_PHASES);
    RP_TRY(rp_arena_check(arena, "adding up phases", err));
    for (size_t i = 0; c.any && i < c.n; i++)
        out->phases[out->nphases++] = row_of(&c.sums[i], c.total_ns, (int64_t)ranks->n);
    return RP_OK;
}

#define PHASE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_phase, member, type, unit, title, doc, flags)

static const struct rp_field phase_fields[] = {
    PHASE(label, STR, NONE, "phase", "text output only", RP_SCREEN),
    PHASE(phase, STR, NONE, NULL, "prefill, decode, mixed; or null", 0),
    PHASE(steps, I64, COUNT, "steps", "how many, per rank", 0),
    PHASE(median_ns, I64, NS, "median", "median duration of a step", 0),
    PHASE(total_ns, I64, NS, "total", "time of all its steps on each rank", RP_WIDE),
    PHASE(unrecorded_ns, I64, NS, "unrecorded",
          "the part of it that waits for work launched before the recording; null: none",
          RP_NULLABLE),
    PHASE(share, F64, RATIO, "share", "share of the time of all steps", RP_BAR),
    PHASE(requests, I64, COUNT, "requests",
          "requests in all its steps; a request counts in each step", RP_NULLABLE),
    PHASE(tokens, I64, COUNT, "tokens", "tokens in all its steps", RP_NULLABLE),
    PHASE(request_ns, I64, NS, "per request", "total without unrecorded / requests", RP_NULLABLE),
    PHASE(token_ns, I64, NS, "per token", "total without unrecorded / tokens", RP_NULLABLE),
    RP_FIELD_END};
const struct rp_type rp_report_phase_type = {"phase", sizeof(struct rp_report_phase), phase_fields,
                                             NULL};
