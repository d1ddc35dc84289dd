/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a rank is its collectives; the join matches them (rendezvous.h), finds the clocks
 * (clocks.h) and says it in words.
 */
#include "explain/merge/merge.h"

#include "facts/tensor_transfers.h"
#include "facts/trace_host.h"
#include "result/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What one process of the trace sent another. */
static enum rp_code copy_messages(const struct rp_trace *t, const rp_tensor_transfer_vec *all,
                                  struct rp_arena *arena, struct rp_merge_part *out,
                                  struct rp_err *err)
{
    size_t i;

    out->messages = RP_ARENA_NEW(arena, struct rp_clock_message, all->n + 1);
    out->names = RP_ARENA_NEW(arena, const char *, (size_t)t->nprocesses + 1);
    if (!out->messages || !out->names)
        return rp_err_nomem(err, "merging ranks");
    for (i = 0; i < t->nprocesses; i++) {
        out->names[i] = rp_arena_strdup(arena, rp_trace_str(t, t->processes[i].name));
        if (!out->names[i])
            return rp_err_nomem(err, "merging ranks");
    }
    for (i = 0; i < all->n; i++) {
        const struct rp_tensor_transfer *x = &all->at[i];

        if (x->producer != RP_NONE && x->from_process != x->to_process)
            out->messages[out->nmessages++] =
                (struct rp_clock_message){x->from_process, x->to_process, x->ready_ns, x->end_ns};
    }
    return RP_OK;
}

static enum rp_code take_messages(const struct rp_trace *t, struct rp_arena *arena,
                                  struct rp_merge_part *out, struct rp_err *err)
{
    rp_tensor_transfer_vec all = {0};
    enum rp_code code = rp_tensor_transfers_find(t, &all, err);

    if (code == RP_OK && all.n)
        code = copy_messages(t, &all, arena, out, err);
    rp_vec_release(&all);
    return code;
}

enum rp_code rp_merge_rank(const struct rp_trace *trace, const char *path,
                           const struct rp_scope *scope, struct rp_arena *arena,
                           struct rp_merge_part *out, struct rp_err *err)
{
    struct rp_work work;
    enum rp_code code = rp_work_init(&work, trace, scope, err);

    out->processes = trace->nprocesses;
    if (code == RP_OK)
        code = rp_collectives_init(&out->comm, &work, scope, arena, err);
    if (code == RP_OK)
        code = take_messages(trace, arena, out, err);
    if (code == RP_OK)
        code = rp_half_messages_find(trace, &out->halves, err);
    if (code == RP_OK)
        code = rp_trace_host(trace, path, arena, &out->host, err);
    rp_work_release(&work);
    return code;
}

void rp_merge_part_release(struct rp_merge_part *part)
{
    rp_collectives_release(&part->comm);
    rp_vec_release(&part->halves);
}

struct merger {
    const struct rp_merge_input *in; /* NULL: of a job */
    const struct rp_collectives **comms;
    size_t n;
    struct rp_arena *arena;
    struct rp_merge_root *out;
    struct rp_rendezvous_list meetings;
    struct rp_clocks clocks;
    bool unshared; /* hosts that the traces name are not believed */
};

static enum rp_code note(struct merger *m, const char *text, struct rp_err *err)
{
    if (!text)
        return rp_err_nomem(err, "merging ranks");
    m->out->notes[m->out->nnotes++] = text;
    return RP_OK;
}

/* Ranks with the same host have the number of the first of them. */
static enum rp_code share_clocks(const struct merger *m, uint32_t *clock_of)
{
    uint32_t r, k;

    for (r = 0; r < m->n; r++) {
        const char *host = m->in[r].host;

        for (k = 0; host && k < r && (!m->in[k].host || strcmp(m->in[k].host, host) != 0); k++)
            ;
        clock_of[r] = host ? k : r;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ words */

static int64_t or_absent(int64_t ns, int64_t unknown)
{
    return ns == unknown ? RP_ABSENT_I64 : ns;
}

/* The rest is the caller's. */
static enum rp_code fill_rank(struct merger *m, size_t r, struct rp_err *err)
{
    const struct rp_clock *c = &m->clocks.at[r];
    struct rp_merge_rank *to = &m->out->ranks[r];

    to->clock = *c;
    to->offset_ns = c->known ? c->offset_ns : RP_ABSENT_I64;
    to->uncertainty_ns = or_absent(c->uncertainty_ns, -1);
    to->low_ns = c->known ? or_absent(c->low_ns, INT64_MIN) : RP_ABSENT_I64;
    to->high_ns = c->known ? or_absent(c->high_ns, INT64_MAX) : RP_ABSENT_I64;
    to->drift_ppb = c->known ? c->drift_ppb : NAN;
    to->drift_at_ns = c->drift_ppb != 0 ? c->at_ns : RP_ABSENT_I64;
    to->meeting_count = c->rendezvous;
    to->message_count = c->messages;
    to->drift_text =
        c->drift_ppb == 0 ? "-" : rp_arena_printf(m->arena, "%+.2f ppm", c->drift_ppb / 1000);
    return to->drift_text ? RP_OK : rp_err_nomem(err, "merging ranks");
}

static const char *meeting_text(struct merger *m, uint32_t meeting, uint32_t message)
{
    const struct rp_rendezvous *x;
    const struct rp_collective *c;

    if (meeting == RP_CLOCK_NONE)
        return message == RP_CLOCK_NONE ? NULL : "a message";
    if (!m->in)
        return "an agreement";
    x = &m->meetings.at[meeting];
    c = &m->comms[x->rank[0]]->list.at[x->at[0]];
    return rp_arena_printf(m->arena, "%s %u", rp_coll_kind_names[c->kind], meeting);
}

static enum rp_code fill_conflict(struct merger *m, size_t i, struct rp_err *err)
{
    const struct rp_clock_conflict *c = &m->clocks.conflicts[i];
    struct rp_merge_conflict *to = &m->out->conflicts[i];

    to->rank_a = m->out->ranks[c->rank_a].rank;
    to->rank_b = m->out->ranks[c->rank_b].rank;
    to->by_ns = c->by_ns;
    to->what = meeting_text(m, c->rendezvous, c->message);
    to->against = meeting_text(m, c->against, c->against_message);
    return to->what ? RP_OK : rp_err_nomem(err, "merging ranks");
}

/* What most clocks are sure to. */
static const char *summary(struct merger *m, size_t known, size_t nclocks)
{
    const char *what = m->out->by_process ? "process" : "rank", *many = "";
    int64_t worst = 0;
    size_t r;

    if (m->n != 1)
        many = m->out->by_process ? "es" : "s";
    for (r = 0; r < m->n; r++)
        if (m->clocks.at[r].uncertainty_ns > worst)
            worst = m->clocks.at[r].uncertainty_ns;
    return rp_arena_printf(m->arena,
                           "%zu %s%s, %zu clock%s; %zu fit together by %lld meetings and %lld "
                           "messages, the least certain within %.1f µs",
                           m->n, what, many, nclocks, nclocks == 1 ? "" : "s", known,
                           (long long)m->out->meeting_count, (long long)m->out->message_count,
                           (double)worst / 1000);
}

static enum rp_code add_notes(struct merger *m, size_t unknown, struct rp_err *err)
{
    if (m->unshared)
        RP_TRY(note(m,
                    "ranks whose traces name the same host contradict each other on one clock: "
                    "each has its own",
                    err));
    if (unknown)
        RP_TRY(note(m,
                    rp_arena_printf(m->arena,
                                    "nothing ties the clocks of %zu ranks to that of the first: "
                                    "their times stay as recorded",
                                    unknown),
                    err));
    if (!m->clocks.consistent)
        RP_TRY(
            note(m,
                 rp_arena_printf(m->arena, "more than %zu contradictions: offsets are medians only",
                                 m->clocks.nconflicts),
                 err));
    else if (m->clocks.nconflicts)
        RP_TRY(note(m,
                    rp_arena_printf(
                        m->arena, "contradictions: %zu; what they name does not limit the offsets",
                        m->clocks.nconflicts),
                    err));
    return RP_OK;
}

static enum rp_code describe(struct merger *m, struct rp_err *err)
{
    size_t r, unknown = 0, known = 0, nclocks = 0;

    m->out->consistent = m->clocks.consistent && !m->clocks.nconflicts;
    m->out->conflicts = RP_ARENA_NEW(m->arena, struct rp_merge_conflict, m->clocks.nconflicts + 1);
    m->out->notes = RP_ARENA_NEW(m->arena, const char *, 4);
    if (!m->out->conflicts || !m->out->notes)
        return rp_err_nomem(err, "merging ranks");
    for (r = 0; r < m->n; r++) {
        bool fresh = m->clocks.at[r].clock == nclocks;

        RP_TRY(fill_rank(m, r, err));
        nclocks += fresh;
        known += fresh && m->clocks.at[r].known;
        unknown += !m->clocks.at[r].known;
    }
    for (m->out->nconflicts = 0; m->out->nconflicts < m->clocks.nconflicts; m->out->nconflicts++)
        RP_TRY(fill_conflict(m, m->out->nconflicts, err));
    m->out->run_text = summary(m, known, nclocks);
    if (!m->out->run_text)
        return rp_err_nomem(err, "merging ranks");
    return add_notes(m, unknown, err);
}

/* ------------------------------------------------------------------ entries */

static enum rp_code copy_input(struct merger *m, size_t r, struct rp_err *err)
{
    struct rp_merge_rank *to = &m->out->ranks[r];

    *to = (struct rp_merge_rank){.rank = m->in[r].number};
    to->path = rp_arena_strdup(m->arena, m->in[r].path);
    to->host = m->in[r].host ? rp_arena_strdup(m->arena, m->in[r].host) : NULL;
    m->out->source[r] = m->in[r].source;
    while (m->out->pid_step <= (int64_t)m->in[r].part->processes)
        m->out->pid_step *= 10;
    m->comms[r] = &m->in[r].part->comm;
    return to->path && (to->host || !m->in[r].host) ? RP_OK : rp_err_nomem(err, "merging ranks");
}

static enum rp_code start(struct merger *m, struct rp_err *err)
{
    m->out->nranks = m->n;
    m->out->pid_step = 100;
    m->out->ranks = RP_ARENA_NEW(m->arena, struct rp_merge_rank, m->n + 1);
    m->out->source = RP_ARENA_NEW(m->arena, size_t, m->n + 1);
    m->comms = RP_ARENA_NEW(m->arena, const struct rp_collectives *, m->n + 1);
    return m->out->ranks && m->out->source && m->comms ? RP_OK : rp_err_nomem(err, "merging ranks");
}

/* Processes that send or receive, numbered in their order; RP_NONE: the others. */
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

/* Processes of one trace may well share a clock: where the recorded times are possible they stay.
 */
static void keep_recorded(struct rp_clock *c)
{
    if (!c->known || c->low_ns > 0 || c->high_ns < 0)
        return;
    c->offset_ns = 0;
    if (c->clock && c->low_ns != INT64_MIN && c->high_ns != INT64_MAX)
        c->uncertainty_ns = -c->low_ns > c->high_ns ? -c->low_ns : c->high_ns;
}

/* One trace of several processes that sent each other tensors: these are what has clocks. */
static enum rp_code join_processes(struct merger *m, struct rp_err *err)
{
    const struct rp_merge_part *part = m->in[0].part;
    uint32_t *number = RP_ARENA_NEW(m->arena, uint32_t, part->processes + 1);
    struct rp_clock_message *messages =
        RP_ARENA_NEW(m->arena, struct rp_clock_message, part->nmessages + 1);
    struct rp_clock_input in = {
        .nmessages = part->nmessages, .messages = messages, .tolerance_ns = RP_CLOCK_TOLERANCE_NS};
    size_t i;

    if (!number || !messages)
        return rp_err_nomem(err, "merging ranks");
    m->n = in.nranks = number_processes(part, number);
    RP_TRY(start(m, err));
    m->out->by_process = true;
    while (m->out->pid_step <= (int64_t)part->processes)
        m->out->pid_step *= 10;
    for (i = 0; i < part->nmessages; i++) {
        messages[i] = part->messages[i];
        messages[i].from = number[messages[i].from];
        messages[i].to = number[messages[i].to];
    }
    for (i = 0; i < part->processes; i++) {
        struct rp_merge_rank *to = &m->out->ranks[number[i] == RP_NONE ? 0 : number[i]];

        if (number[i] == RP_NONE)
            continue;
        to->rank = number[i];
        to->path = rp_arena_strdup(m->arena, part->names[i]);
        m->out->source[number[i]] = i;
        if (!to->path)
            return rp_err_nomem(err, "merging ranks");
    }
    RP_TRY(rp_clocks_find(&in, m->arena, &m->clocks, err));
    for (i = 0; i < m->n; i++)
        keep_recorded(&m->clocks.at[i]);
    m->out->message_count = (int64_t)part->nmessages;
    m->out->matched_by = "transfers";
    return describe(m, err);
}

/* By the collectives of the ranks, and by messages that have one side in one trace each. */
static enum rp_code find_clocks(struct merger *m, const uint32_t *clock_of, struct rp_err *err)
{
    rp_half_message_vec halves = {0};
    rp_clock_message_vec messages = {0};
    enum rp_code code = rp_rendezvous_find(m->comms, m->n, m->arena, &m->meetings, err);
    size_t r, i;

    for (r = 0; r < m->n; r++)
        for (i = 0; code == RP_OK && i < m->in[r].part->halves.n; i++) {
            struct rp_half_message half = m->in[r].part->halves.at[i];

            half.rank = (uint32_t)r;
            code = rp_vec_push(&halves, half, err);
        }
    if (code == RP_OK)
        code = rp_half_messages_join(&halves, &messages, err);
    if (code == RP_OK)
        code = rp_clocks_of_rendezvous(m->comms, m->n, &m->meetings, clock_of, &messages, m->arena,
                                       &m->clocks, err);
    m->out->message_count = (int64_t)messages.n;
    rp_vec_release(&halves);
    rp_vec_release(&messages);
    return code;
}

/* Hosts that only the traces name may be wrong: containers often have one name. */
static enum rp_code find_on_hosts(struct merger *m, bool guessed, struct rp_err *err)
{
    uint32_t *clock_of = RP_ARENA_NEW(m->arena, uint32_t, m->n + 1);
    bool shared = false;
    uint32_t r;

    if (!clock_of)
        return rp_err_nomem(err, "merging ranks");
    RP_TRY(share_clocks(m, clock_of));
    RP_TRY(find_clocks(m, clock_of, err));
    for (r = 0; r < m->n; r++)
        shared |= clock_of[r] != r;
    if (!guessed || !shared || !m->clocks.nconflicts)
        return RP_OK;
    for (r = 0; r < m->n; r++) {
        clock_of[r] = r;
        m->out->ranks[r].host = NULL;
    }
    m->unshared = true;
    return find_clocks(m, clock_of, err);
}

enum rp_code rp_merge_join(const struct rp_merge_input *ranks, size_t n, bool guessed,
                           struct rp_arena *arena, struct rp_merge_root *out, struct rp_err *err)
{
    struct merger m = {.in = ranks, .n = n, .arena = arena, .out = out};
    size_t r;

    if (n == 1 && ranks[0].part->nmessages)
        return join_processes(&m, err);
    RP_TRY(start(&m, err));
    for (r = 0; r < n; r++)
        RP_TRY(copy_input(&m, r, err));
    RP_TRY(find_on_hosts(&m, guessed, err));
    out->matched_by = rp_rendezvous_rule_names[m.meetings.rule];
    out->meeting_count = (int64_t)m.clocks.nrendezvous;
    return describe(&m, err);
}

enum rp_code rp_merge_job(const struct rp_job *job, struct rp_arena *arena,
                          struct rp_merge_root *out, struct rp_err *err)
{
    size_t r, nservers = job->has_servers ? rp_job_servers(job) : 0;
    struct merger m = {.n = job->nranks + nservers, .arena = arena, .out = out};

    RP_TRY(start(&m, err));
    out->pid_step = 1000000; /* a timeline has a process a tensor */
    if (job->has_servers)
        RP_TRY(rp_clocks_of_servers(job, false, arena, &m.clocks, err));
    else
        RP_TRY(rp_clocks_of_job(job, arena, &m.clocks, err));
    for (r = 0; r < job->nranks; r++) {
        struct rp_merge_rank *to = &out->ranks[r];

        to->rank = job->ranks[r].number;
        to->host = rp_arena_strdup(arena, job->ranks[r].host);
        to->path =
            rp_arena_printf(arena, "%s/%lld", job->ranks[r].host, (long long)job->ranks[r].local);
        if (!to->host || !to->path)
            return rp_err_nomem(err, "merging ranks");
    }
    for (r = job->nranks; r < m.n; r++) {
        out->ranks[r].rank = (int64_t)r;
        out->ranks[r].path = rp_arena_printf(arena, "server %zu", r - job->nranks);
        if (!out->ranks[r].path)
            return rp_err_nomem(err, "merging ranks");
    }
    out->matched_by = "records";
    out->message_count = (int64_t)m.clocks.nmessages;
    out->meeting_count = (int64_t)m.clocks.nrendezvous;
    return describe(&m, err);
}
