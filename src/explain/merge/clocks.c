/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes clocks from collectives and messages: collectives of the ranks are matched
 * (rendezvous.h), and the clocks are found (clocks.h) and described.
 */
#include "base/decides.h"
#include "explain/merge/merge.h"
#include "result/print_units.h"

#include <math.h>
#include <string.h>

#define MOST_NOTES 12
RP_LIMIT(MOST_NOTES, "notes", "a last one says how many more there are");

struct merge_ctx {
    const struct rp_merge_input *in; /* NULL: of a job */
    const struct rp_collectives **comms;
    size_t n;
    struct rp_arena *arena;
    struct rp_merge_root *out;
    struct rp_rendezvous_list rendezvous;
    struct rp_clocks clocks;
    bool unrelated;
    bool guessed;  /* hosts and boots come from the traces */
    bool unshared; /* ... which are ignored */
};

static void add_note(struct merge_ctx *m, const char *text)
{
    RP_NOTE(m->out, m->arena, text);
}

/* Containers of one machine may have several names, and machines with the same image may share one,
   so a boot is certain and a host's name is not. */
static bool share_clock(const struct rp_merge_input *a, const struct rp_merge_input *b)
{
    if (a->boot || b->boot)
        return a->boot == b->boot;
    return a->host && b->host && !strcmp(a->host, b->host);
}

/* Gives ranks that share a clock the number of the first of them. */
static void share_clocks(const struct merge_ctx *m, uint32_t *clock_of)
{
    uint32_t r, k;

    for (r = 0; r < m->n; r++) {
        for (k = 0; k < r && !share_clock(&m->in[k], &m->in[r]); k++)
            ;
        clock_of[r] = k;
    }
}

/* ------------------------------------------------------------------ describing clocks */

static int64_t or_absent(int64_t ns, int64_t unknown)
{
    return ns == unknown ? RP_ABSENT_I64 : ns;
}

/* The caller sets number, path and host. */
static void fill_rank(struct merge_ctx *m, size_t r)
{
    const struct rp_clock *c = &m->clocks.at[r];
    struct rp_merge_rank *to = &m->out->ranks[r];

    to->clock = *c;
    if (m->rendezvous.n) /* the same correction as in every question about these ranks */
        rp_rendezvous_settle_clock(m->comms[r], m->rendezvous.base_ns[r], m->rendezvous.trusted,
                                   &to->clock);
    else
        to->clock.used = c->known;
    to->used = to->clock.used;
    to->step_count = (int64_t)c->nsteps;
    to->offset_ns = c->known ? c->offset_ns : RP_ABSENT_I64;
    to->uncertainty_ns = or_absent(c->uncertainty_ns, -1);
    to->low_ns = c->known ? or_absent(c->low_ns, INT64_MIN) : RP_ABSENT_I64;
    to->high_ns = c->known ? or_absent(c->high_ns, INT64_MAX) : RP_ABSENT_I64;
    to->drift_ppb = c->known ? c->drift_ppb : NAN;
    to->drift_at_ns = c->drift_ppb != 0 ? c->at_ns : RP_ABSENT_I64;
    to->meeting_count = c->rendezvous;
    to->message_count = c->messages;
    to->drift_uncertainty_ppb =
        c->known && c->drift_doubt_ppb >= 0 ? ceil(c->drift_doubt_ppb) : NAN;
    to->drift_text = c->drift_ppb == 0 ? "-"
                     : c->drift_doubt_ppb < 0
                         ? rp_arena_textf(m->arena, "%+.2f ppm", c->drift_ppb / 1000)
                         : rp_arena_textf(m->arena, "%+.2f ± %.2f ppm", c->drift_ppb / 1000,
                                          c->drift_doubt_ppb / 1000);
}

/* Describes a rendezvous, or a message; NULL if there is neither. */
static const char *fact_text(struct merge_ctx *m, uint32_t rendezvous, uint32_t message)
{
    if (rendezvous == RP_CLOCK_NONE)
        return message == RP_CLOCK_NONE ? NULL : "a message";
    if (!m->in)
        return "an agreement";
    const struct rp_rendezvous *x = &m->rendezvous.at[rendezvous];
    const struct rp_collective *c = &m->comms[x->rank[0]]->list.at[x->at[0]];
    return rp_arena_textf(m->arena, "%s %u", rp_coll_kind_names[c->kind], rendezvous);
}

/* Says why a single clock is known to be one. */
static const char *one_clock_text(const struct merge_ctx *m)
{
    if (!m->in)
        return "one clock";
    if (m->in[0].boot)
        return "one clock: all were recorded on one boot of one machine, so no offset is estimated";
    return m->guessed ? "one clock: their traces name the same host"
                      : "one clock, as '--hosts' says";
}

static const char *clocks_text(struct merge_ctx *m, size_t known, size_t nclocks)
{
    const char *ranks =
        rp_units_count(m->arena, (int64_t)m->n, m->out->by_process ? "process" : "rank");
    const char *clocks = rp_units_count(m->arena, (int64_t)nclocks, "clock");
    int64_t worst = 0;

    if (nclocks == 1 && m->n > 1)
        return rp_arena_textf(m->arena, "%s on %s", ranks, one_clock_text(m));
    if (nclocks > 1 && known == 1)
        return rp_arena_textf(
            m->arena, "%s, %s: nothing ties these clocks; %s would, or %s", ranks, clocks,
            m->unrelated ? "collectives of one run" : "collectives that the ranks share",
            "ranks on one host (see '--hosts')");
    for (size_t r = 0; r < m->n; r++)
        if (m->clocks.at[r].uncertainty_ns > worst)
            worst = m->clocks.at[r].uncertainty_ns;
    return rp_arena_textf(
        m->arena, "%s, %s; %zu aligned by %s rendezvous and %s, uncertainty at most %s", ranks,
        clocks, known, rp_units_number(m->arena, m->out->meeting_count),
        rp_units_count(m->arena, m->out->message_count, "message"), rp_units_time(m->arena, worst));
}

static void add_notes(struct merge_ctx *m, size_t unknown)
{
    if (m->unshared)
        add_note(m,
                 "ranks whose traces name the same host contradict each other on one clock: each "
                 "rank gets its own");
    if (unknown)
        add_note(m, rp_arena_textf(m->arena,
                                   "nothing ties the clock%s of %s to that of the first: "
                                   "times stay as recorded",
                                   unknown == 1 ? "" : "s",
                                   rp_units_count(m->arena, (int64_t)unknown, "rank")));
    if (!m->clocks.consistent)
        add_note(m,
                 rp_arena_textf(m->arena, "more than %zu contradictions: offsets are medians only",
                                m->clocks.nconflicts));
    else if (m->clocks.nconflicts)
        add_note(m, rp_arena_textf(m->arena,
                                   "contradictions: %zu; the facts in them are not used as bounds",
                                   m->clocks.nconflicts));
}

/* Adds one note for each clock: "host node003 (ranks 12-15): set forward by 50.0 ms …". */
static void note_steps(struct merge_ctx *m)
{
    uint32_t next = 0;
    size_t more = 0;

    for (size_t r = 0; r < m->n; r++) {
        const struct rp_clock *c = &m->clocks.at[r];

        if (c->clock < next)
            continue;
        next = c->clock + 1;
        for (size_t i = 0; i < c->nsteps; i++) {
            int64_t add = c->steps[i].add_ns;

            if (m->out->nnotes >= MOST_NOTES) {
                more++;
                continue;
            }
            add_note(m,
                     rp_arena_textf(
                         m->arena,
                         "the clock of %s%s was set %s by %s during the recording: "
                         "what comes after is moved",
                         m->out->ranks[r].host ? "host " : "rank ",
                         m->out->ranks[r].host
                             ? m->out->ranks[r].host
                             : rp_arena_textf(m->arena, "%lld", (long long)m->out->ranks[r].rank),
                         add < 0 ? "forward" : "back",
                         rp_units_time(m->arena, add < 0 ? rp_ns_between(add, 0) : add)));
        }
    }
    if (more)
        add_note(m, rp_arena_textf(m->arena, "%zu more times a clock was set", more));
}

static enum rp_code describe_clocks(struct merge_ctx *m, struct rp_err *err)
{
    size_t r, unknown = 0, known = 0, nclocks = 0;

    m->out->consistent = m->clocks.consistent && !m->clocks.nconflicts;
    m->out->conflicts = RP_ARENA_NEW(m->arena, struct rp_merge_conflict, m->clocks.nconflicts + 1);
    RP_TRY(rp_err_need(m->out->conflicts, err, "merging ranks"));
    for (r = 0; r < m->n; r++) {
        bool is_new = m->clocks.at[r].clock == nclocks;

        fill_rank(m, r);
        nclocks += is_new;
        known += is_new && m->clocks.at[r].known;
        unknown += !m->clocks.at[r].known;
    }
    for (m->out->nconflicts = 0; m->out->nconflicts < m->clocks.nconflicts; m->out->nconflicts++) {
        size_t i = m->out->nconflicts;
        const struct rp_clock_conflict *c = &m->clocks.conflicts[i];
        struct rp_merge_conflict *to = &m->out->conflicts[i];

        to->rank_a = m->out->ranks[c->rank_a].rank;
        to->rank_b = m->out->ranks[c->rank_b].rank;
        to->by_ns = c->by_ns;
        to->what = fact_text(m, c->rendezvous, c->message);
        to->against = fact_text(m, c->against, c->against_message);
    }
    m->out->clock_count = (int64_t)nclocks;
    m->out->aligned_count = (int64_t)known;
    m->out->run_text = clocks_text(m, known, nclocks);
    add_notes(m, unknown);
    note_steps(m);
    return rp_arena_check(m->arena, "merging ranks", err);
}

/* ------------------------------------------------------------------ finding clocks */

static enum rp_code alloc_ranks(struct merge_ctx *m, struct rp_err *err)
{
    m->out->nranks = m->n;
    m->out->pid_step = 100;
    m->out->ranks = RP_ARENA_NEW(m->arena, struct rp_merge_rank, m->n + 1);
    m->out->source = RP_ARENA_NEW(m->arena, size_t, m->n + 1);
    m->out->in_source = RP_ARENA_NEW(m->arena, uint32_t, m->n + 1);
    m->comms = RP_ARENA_NEW(m->arena, const struct rp_collectives *, m->n + 1);
    return rp_arena_check(m->arena, "merging ranks", err);
}

/* Numbers the processes that send or receive, in their order; the others get RP_NONE. */
static size_t number_processes(const struct rp_merge_part *part, uint32_t *number)
{
    size_t i, n = 0;

    memset(number, 0xff, part->processes * sizeof *number);
    for (i = 0; i < part->nmessages; i++)
        number[part->messages[i].from] = number[part->messages[i].to] = 0;
    for (i = 0; i < part->processes; i++)
        if (number[i] != RP_NONE)
            number[i] = (uint32_t)n++;
    return n;
}

/* Joins one trace of several processes that sent each other tensors; each process has a clock. */
static enum rp_code join_processes(struct merge_ctx *m, struct rp_err *err)
{
    const struct rp_merge_part *part = m->in[0].part;
    uint32_t *number = RP_ARENA_NEW(m->arena, uint32_t, part->processes + 1);
    struct rp_clock_message *messages =
        RP_ARENA_NEW(m->arena, struct rp_clock_message, part->nmessages + 1);
    struct rp_clock_input in = {
        .nmessages = part->nmessages, .messages = messages, .tolerance_ns = RP_CLOCK_TOLERANCE_NS};

    RP_TRY(rp_err_need(number && messages, err, "merging ranks"));
    m->n = in.nranks = number_processes(part, number);
    RP_TRY(alloc_ranks(m, err));
    m->out->by_process = true;
    while (m->out->pid_step <= (int64_t)part->processes)
        m->out->pid_step *= 10;
    for (size_t i = 0; i < part->nmessages; i++) {
        messages[i] = part->messages[i];
        messages[i].from = number[messages[i].from];
        messages[i].to = number[messages[i].to];
    }
    for (size_t i = 0; i < part->processes; i++) {
        struct rp_merge_rank *to = &m->out->ranks[number[i] == RP_NONE ? 0 : number[i]];

        if (number[i] == RP_NONE)
            continue;
        to->rank = number[i];
        to->path = part->names[i];
        m->out->source[number[i]] = i;
    }
    RP_TRY(rp_clocks_find(&in, m->arena, &m->clocks, err));
    for (size_t i = 0; i < m->n; i++) {
        /* Processes of one trace may share a clock, so if the recorded times are possible, they are
           kept. */
        struct rp_clock *c = &m->clocks.at[i];
        if (!c->known || c->low_ns > 0 || c->high_ns < 0)
            continue;
        c->offset_ns = 0;
        if (c->clock && c->low_ns != INT64_MIN && c->high_ns != INT64_MAX)
            c->uncertainty_ns = -c->low_ns > c->high_ns ? -c->low_ns : c->high_ns;
    }
    m->out->message_count = (int64_t)part->nmessages;
    m->out->matched_by = "transfers";
    return describe_clocks(m, err);
}

/* Finds clocks by the collectives of the ranks, and by messages with one side in each of two
   traces. */
static enum rp_code find_clocks(struct merge_ctx *m, const uint32_t *clock_of, struct rp_err *err)
{
    rp_half_message_vec halves = {0};
    rp_clock_message_vec messages = {0};
    enum rp_code code = rp_rendezvous_find(m->comms, m->n, m->arena, &m->rendezvous, err);

    if (code == RP_OK && m->unrelated)
        rp_rendezvous_drop(&m->rendezvous, m->n);
    for (size_t r = 0; r < m->n; r++)
        for (size_t i = 0; code == RP_OK && i < m->in[r].part->halves.n; i++) {
            struct rp_half_message half = m->in[r].part->halves.at[i];

            half.rank = (uint32_t)r;
            code = rp_vec_push(&halves, half, err);
        }
    if (code == RP_OK)
        code = rp_half_messages_join(&halves, &messages, err);
    if (code == RP_OK)
        code = rp_clocks_of_rendezvous(m->comms, m->n, &m->rendezvous, clock_of, &messages,
                                       m->arena, &m->clocks, err);
    m->out->message_count = (int64_t)messages.n;
    rp_vec_release(&halves);
    rp_vec_release(&messages);
    return code;
}

/* Host names in traces may be wrong, because containers often share one. */
static enum rp_code find_clocks_of_hosts(struct merge_ctx *m, struct rp_err *err)
{
    uint32_t *clock_of = RP_ARENA_NEW(m->arena, uint32_t, m->n + 1);
    bool shared = false;

    RP_TRY(rp_err_need(clock_of, err, "merging ranks"));
    share_clocks(m, clock_of);
    RP_TRY(find_clocks(m, clock_of, err));
    for (uint32_t r = 0; r < m->n; r++)
        shared |= clock_of[r] != r;
    if (!m->guessed || !shared || !m->clocks.nconflicts)
        return RP_OK;
    for (uint32_t r = 0; r < m->n; r++) {
        clock_of[r] = r;
        m->out->ranks[r].host = NULL;
    }
    m->unshared = true;
    return find_clocks(m, clock_of, err);
}

enum rp_code rp_merge_ranks(const struct rp_merge_input *ranks, size_t n, bool unrelated,
                            bool guessed, struct rp_arena *arena, struct rp_merge_root *out,
                            struct rp_err *err)
{
    struct merge_ctx m = {.in = ranks,
                          .n = n,
                          .arena = arena,
                          .out = out,
                          .unrelated = unrelated,
                          .guessed = guessed};

    if (n == 1 && ranks[0].part->nmessages)
        return join_processes(&m, err);
    RP_TRY(alloc_ranks(&m, err));
    for (size_t r = 0; r < n; r++) {
        const struct rp_merge_input *in = &m.in[r];

        m.out->ranks[r] =
            (struct rp_merge_rank){.rank = in->number, .path = in->path, .host = in->host};
        m.out->source[r] = in->source;
        m.out->in_source[r] = in->in_source;
        while (m.out->pid_step <= (int64_t)in->part->processes)
            m.out->pid_step *= 10;
        m.comms[r] = &in->part->comm;
    }
    RP_TRY(find_clocks_of_hosts(&m, err));
    out->matched_by = rp_rendezvous_rule_names[m.rendezvous.rule];
    out->meeting_count = (int64_t)m.clocks.nrendezvous;
    return describe_clocks(&m, err);
}

enum rp_code rp_merge_job(const struct rp_job *job, struct rp_arena *arena,
                          struct rp_merge_root *out, struct rp_err *err)
{
    size_t r, nservers = rp_job_servers(job);
    struct merge_ctx m = {.n = job->nranks + nservers, .arena = arena, .out = out};

    RP_TRY(alloc_ranks(&m, err));
    out->pid_step = 1000000; /* a timeline has a process for each tensor */
    RP_TRY(rp_clocks_of_job(job, false, arena, &m.clocks, err));
    for (r = 0; r < job->nranks; r++) {
        struct rp_merge_rank *to = &out->ranks[r];

        to->rank = job->ranks[r].number;
        to->host = rp_arena_text(arena, job->ranks[r].host);
        to->path =
            rp_arena_textf(arena, "%s/%lld", job->ranks[r].host, (long long)job->ranks[r].local);
    }
    for (r = job->nranks; r < m.n; r++) {
        out->ranks[r].rank = (int64_t)r;
        out->ranks[r].path = rp_arena_textf(arena, "server %zu", r - job->nranks);
    }
    out->matched_by = "records";
    out->message_count = (int64_t)m.clocks.nmessages;
    out->meeting_count = (int64_t)m.clocks.nrendezvous;
    return describe_clocks(&m, err);
}
