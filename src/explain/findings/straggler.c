/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that arrive late at collectives, and what they did before. */
#include "explain/comm/shared.h"
#include "explain/findings/finding.h"
#include "explain/short_name.h"
#include "facts/host/signs.h"
#include "places/peers.h"

#include <math.h>

enum { OTHER, COMPUTE, HOST, INPUT, OF_HOST, OF_STAGE, EXPERTS, UNEVEN };

#define MORE_TOKENS 1.1
RP_DECISION(MORE_TOKENS, "times the mean of its peers",
            "what is exchanged with experts differs by some percent from step to step when they "
            "are balanced; a capacity factor of 1.25 is usual",
            "explain/experts_with_more_tokens");
#define RANKS_SAID 3
#define SAID_SHARE 20
RP_LIMIT(RANKS_SAID, "ranks", "that are named as evidence; 'reprise comm' has all of them");
RP_LIMIT(SAID_SHARE, "of the cost, one part in",
         "a rank that delays the others by less is not named; 'reprise comm' has all of them");

/* What a rank did longer than the others (struct rp_late): as a kind of the finding, and in
   words. */
static const struct {
    const char *cause;
    uint8_t kind;
    const char *text;
} reasons[] = {{"compute", COMPUTE, "it computed longer than the others"},
               {"copy", OTHER, "it copied longer than the others"},
               {"host_work", HOST, "its host ran something else"},
               {"host", HOST, "it was idle longer than the others"},
               {"host_wait", HOST, "it waited longer than the others"},
               {"host_stall", HOST, "a host call took far longer than usual"},
               {"host_unrecorded", HOST, "its host ran what was not recorded"},
               {"not_launched", HOST, "its host launched more slowly"},
               {"data_loader", INPUT, "it waited for input data"},
               {"allocation", HOST, "its host allocated device memory"},
               {"sync_drain", HOST, "its host waited for its device"},
               {"other_rank", OTHER, "its host waited for other ranks"},
               {"start_up", OTHER, "it was still starting up"},
               {"profiler", OTHER, "its profiler was busy"},
               {"start", OTHER, "its recorded work had begun later than that of the others"}};
enum { REASONS = sizeof reasons / sizeof reasons[0] };

static size_t reason_of(const char *cause)
{
    size_t i = 0;

    while (i < REASONS && (!cause || strcmp(cause, reasons[i].cause) != 0))
        i++;
    return i;
}

static bool is_work(const struct rp_late *late)
{
    return late->cause && late->evidence &&
           !strcmp(late->cause, rp_gap_cause_names[RP_GAP_HOST_WORK]);
}

static unsigned kind_of(const struct rp_late *late)
{
    size_t i = reason_of(late->cause);

    if (is_work(late) && rp_host_prepares_input(late->evidence))
        return INPUT;
    return i < REASONS ? reasons[i].kind : OTHER;
}

/* Writes "; before that it ran read_shard", or "". On a host it is unknown whether the code between
   calls computes. */
static const char *late_text(struct rp_findings *f, const struct rp_late *late)
{
    size_t i = reason_of(late->cause);
    char name[120];

    if (i == REASONS)
        return "";
    if (!late->evidence)
        return rp_arena_textf(f->arena, "; before that %s",
                              rp_findings_lead(f)->by_ranges && reasons[i].kind == COMPUTE
                                  ? "its own code took longer than that of the others"
                                  : reasons[i].text);
    rp_short_name(late->evidence, name, sizeof name);
    return is_work(late) ? rp_arena_textf(f->arena, "; before that it ran %s", name)
                         : rp_arena_textf(f->arena, "; before that %s (%s)", reasons[i].text, name);
}

/* The rank that causes most delay among those with at most most_ns; SIZE_MAX if there is none. */
static size_t latest_of(const struct rp_findings *f, int64_t most_ns)
{
    const struct rp_chain_rank *ranks = f->chain->ranks;
    size_t best = SIZE_MAX;

    for (size_t r = 0; r < f->ranks->n; r++)
        if (ranks[r].margin_ns <= most_ns &&
            (best == SIZE_MAX || ranks[r].margin_ns > ranks[best].margin_ns))
            best = r;
    return best;
}

/* "rank 0 arrived last 32 of 84 times and delayed the others by 167.4 ms; before that it …" */
static void say_latest(struct rp_findings *f, struct rp_report_finding *finding, bool why)
{
    size_t r = latest_of(f, INT64_MAX);

    for (int round = 0; round < RANKS_SAID && r != SIZE_MAX; round++) {
        const struct rp_chain_rank *c = &f->chain->ranks[r];
        struct rp_late late = rp_late_main(&c->lates);

        if (c->margin_ns < f->chain->margin_ns / SAID_SHARE)
            return;
        RP_SAY(f, finding, "rank %d arrived last %lld of %zu times and delayed the others by %s%s",
               rp_findings_number(f, r), (long long)c->last_count, f->chain->ncollectives,
               rp_findings_time(f, c->margin_ns), why ? late_text(f, &late) : "");
        r = latest_of(f, c->margin_ns - 1);
    }
}

/* ------------------------------------------------------------------ places */

/* What a rank sends and receives in all-to-alls, divided by the mean of the ranks that exchange
   with others, or 0. */
static double exchanged(const struct rp_findings *f, size_t rank)
{
    double own = 0, others = 0;
    size_t n = 0;

    for (size_t r = 0; r < f->ranks->n; r++) {
        const struct rp_collectives *list = f->chain->lists[r];
        double bytes = 0;

        for (size_t i = 0; i < list->list.n; i++) {
            const struct rp_collective *c = &list->list.at[i];

            if (c->kind == RP_COLL_ALL_TO_ALL && c->in_bytes >= 0 && c->out_bytes >= 0)
                bytes += (double)c->in_bytes + (double)c->out_bytes;
        }
        n += r != rank && bytes > 0;
        *(r == rank ? &own : &others) += bytes;
    }
    return n ? own * (double)n / others : 0;
}

/* Whether a rank computes longer because it has more tokens for its experts. */
static bool has_more_tokens(const struct rp_findings *f, const struct rp_place_found *p)
{
    return p->kind == RP_PLACE_RANK && p->nranks == 1 && p->what_class == RP_COURSE_KERNEL &&
           exchanged(f, p->ranks[0]) > MORE_TOKENS;
}

static unsigned kind_of_place(const struct rp_findings *f, const struct rp_place_found *p)
{
    bool input =
        p->what && (rp_host_signs(p->what) & RP_SIGN_DATA || rp_host_prepares_input(p->what));

    if (p->kind == RP_PLACE_HOST)
        return OF_HOST;
    if (p->kind == RP_PLACE_STAGE)
        return OF_STAGE;
    if (p->what_class == RP_COURSE_KERNEL)
        return has_more_tokens(f, p) ? EXPERTS : COMPUTE;
    if (p->what_class == RP_COURSE_REST)
        return OTHER;
    return p->what_class == RP_COURSE_CALL && input ? INPUT : HOST;
}

/* Says what took longer: "mostly mm", "mostly what was not recorded before mm", or "". */
static const char *what_text(struct rp_findings *f, const struct rp_place_found *p)
{
    char name[120];

    if (!p->what || !*p->what)
        return p->what ? ", mostly in what was not recorded" : "";
    rp_short_name(p->what, name, sizeof name);
    return rp_arena_textf(f->arena, ", mostly %s%s",
                          p->what_class == RP_COURSE_GAP || p->what_class == RP_COURSE_REST
                              ? "in what was not recorded before "
                              : "",
                          name);
}

static void say_place(struct rp_findings *f, struct rp_report_finding *finding,
                      const struct rp_place_found *p)
{
    const struct rp_places *places = &f->chain->places;

    if (has_more_tokens(f, p))
        RP_SAY(
            f, finding,
            "%s took %s its peers%s; its all_to_alls have %.1f times as much data as theirs, and "
            "how much longer those take is not in the cost",
            rp_findings_who_text(f, &finding->who), rp_findings_times_text(f, 1 + p->slower),
            what_text(f, p), exchanged(f, p->ranks[0]));
    else if (p->more)
        RP_SAY(f, finding, "%s did more than its peers%s", rp_findings_who_text(f, &finding->who),
               what_text(f, p));
    else
        RP_SAY(f, finding, "%s took %s its peers for the same work%s",
               rp_findings_who_text(f, &finding->who), rp_findings_times_text(f, 1 + p->slower),
               what_text(f, p));
    if (p->kind == RP_PLACE_RANK && p->nranks == 1 && p->what_class == RP_COURSE_KERNEL) {
        /* A rank whose device runs at a lower clock than that of every other rank computes longer
           for this reason. */
        size_t rank = p->ranks[0];
        const struct rp_device_clock *own = &rp_findings_part(f, rank)->clock, *next = NULL;

        for (size_t r = 0; r < f->ranks->n; r++) {
            const struct rp_device_clock *other = &rp_findings_part(f, r)->clock;

            if (r != rank && other->samples && (!next || other->mhz < next->mhz))
                next = other;
        }
        if (next && rp_device_clock_is_lower(own, next))
            RP_SAY(f, finding, "the clock of its device was %s; the others had %.0f MHz or more",
                   rp_device_clock_text(own, f->arena), next->mhz);
    }
    if (p->nsteps < places->all_steps)
        RP_SAY(f, finding, "in %zu of %zu steps, from step %lld to step %lld", p->nsteps,
               places->all_steps, (long long)p->first_step, (long long)p->last_step);
    if (p->kind == RP_PLACE_RANK && p->nranks == 1)
        RP_SAY(f, finding, "rank %d arrived last %lld of %zu times",
               rp_findings_number(f, p->ranks[0]),
               (long long)f->chain->ranks[p->ranks[0]].last_count, f->chain->ncollectives);
}

/* Uses the simulated courses of the ranks, which give the cost of each place. */
static void find_places(struct rp_findings *f)
{
    const struct rp_places *places = &f->chain->places;
    struct rp_report_finding *finding;

    for (size_t i = 0; i < places->n; i++) {
        const struct rp_place_found *p = &places->at[i];

        if (p->kind == RP_PLACE_LINK || p->kind == RP_PLACE_NIC)
            continue; /* slow_link.c */
        finding = rp_findings_add_place(f, kind_of_place(f, p), p);
        if (finding)
            say_place(f, finding, p);
    }
    finding = rp_findings_add(f, UNEVEN, (int64_t)places->uneven_ns);
    if (!finding)
        return;
    finding->settled = true;
    RP_SAY(f, finding,
           "with all of them as fast as their peers the recording would take %s instead of %s, and "
           "no rank, host or stage alone makes up for much of that",
           rp_findings_time(f, (int64_t)places->repaired_ns),
           rp_findings_time(f, (int64_t)places->run_ns));
    if (places->uneven.what && *places->uneven.what)
        RP_SAY(f, finding, "most on rank %d%s", rp_findings_number(f, places->uneven.rank),
               what_text(f, &places->uneven));
    say_latest(f, finding, false);
}

/* ------------------------------------------------------------------ margins */

/* Uses the margins and their causes. */
static void find_margins(struct rp_findings *f)
{
    struct rp_late late = rp_late_main(&f->chain->ranks[latest_of(f, INT64_MAX)].lates);
    struct rp_report_finding *finding =
        rp_findings_add(f, kind_of(&late), f->chain->ncollectives ? f->chain->margin_ns : 0);

    if (!finding)
        return;
    finding->at_most = finding->where.late = true;
    finding->settled = f->chain->places.known;

    /* Add evidence if several late ranks share a host or the number of their device. */
    struct rp_late_rank *ranks = RP_ARENA_NEW(f->arena, struct rp_late_rank, f->ranks->n + 1);
    for (size_t r = 0; ranks && r < f->ranks->n; r++) {
        const struct rp_report_part *part = rp_findings_part(f, r);

        ranks[r] = (struct rp_late_rank){part->collectives.host, RP_ABSENT_I64,
                                         f->chain->ranks[r].margin_ns};
        for (size_t d = 0; d < part->ndevices; d++)
            if (part->devices[d].is_main)
                ranks[r].device = part->devices[d].device;
    }
    const char *text = ranks ? rp_late_shared(ranks, f->ranks->n, f->arena) : NULL;
    if (text)
        rp_findings_say(finding, text);

    say_latest(f, finding, true);
}

/* Whether one rank arrives last far more often than chance allows although all ranks do the same:
   then it is late, even if none of its work exceeds the usual scatter. */
static bool is_always_last(const struct rp_findings *f)
{
    double n = (double)f->chain->ncollectives, part = 1 / (double)f->ranks->n;
    size_t r = latest_of(f, INT64_MAX);
    double last = r == SIZE_MAX ? 0 : (double)f->chain->ranks[r].last_count;

    return !f->chain->stages && last - n * part > RP_PEERS_CHANCE * sqrt(n * part * (1 - part));
}

/* If the courses cannot tell, the order of the arrivals decides. If they can, and no place is slow,
   the ranks' work differs only by chance. */
static void straggler_find(struct rp_findings *f)
{
    const struct rp_places *places = &f->chain->places;

    if (places->known && !places->unsure && (places->n || !is_always_last(f)))
        find_places(f);
    else
        find_margins(f);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, OF(OTHER),
     .text = "'reprise comm' names the late ranks and 'reprise idle --rank N' what they do "
             "before",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(COMPUTE),
     .text = "give the ranks equal work: the same number of samples and tokens, the same layers",
     .what_if = "straggler=median"},
    {RP_ADVISE_MORE, OF(COMPUTE), .vendors = BY(NVIDIA),
     .text = "compare the clocks and the power of their devices: nvidia-smi -q -d "
             "PERFORMANCE,CLOCK"},
    {RP_ADVISE_MORE, OF(COMPUTE), .vendors = BY(AMD),
     .text = "compare the clocks and the power of their devices: amd-smi metric --clock --power"},
    {RP_ADVISE_LOOK, OF(HOST),
     .text = "'reprise idle --rank N' shows what the host of the late rank does; do it on all "
             "ranks alike, less often, or off the thread that launches",
     .what_if = "straggler=median"},
    {RP_ADVISE_MORE, OF(HOST),
     .text = "look for other processes on that host, and for its clocks and its pinning to cores "
             "(taskset, numactl)"},
    {RP_ADVISE_LOOK, OF(INPUT),
     .text = "prepare the next input in another thread or process while the device works",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(INPUT), .frameworks = FW(PYTORCH),
     .text = "DataLoader(dataset, num_workers=N, prefetch_factor=4): inputs are read while the "
             "device works",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(INPUT), .frameworks = FW(JAX),
     .text = "grain.DataLoader(worker_count=N): inputs are read while the device works",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(INPUT), .frameworks = FW(TENSORFLOW),
     .text = "dataset.prefetch(tf.data.AUTOTUNE): inputs are read while the device works",
     .what_if = "straggler=median"},
    {RP_ADVISE_MORE, OF(INPUT),
     .text = "compare the storage, the size of the shards and the CPUs of the late rank with "
             "those of the others"},
    {RP_ADVISE_LOOK, OF(OF_HOST),
     .text = "look at that host: other processes, clocks and power of its devices, pinning to "
             "cores, storage; 'reprise comm' compares the hosts",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(OF_STAGE),
     .text = "give the stages equal work: move layers from the slow stage to the others",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(EXPERTS),
     .text = "balance the experts: a loss or a bias of the router for it, a capacity factor, or "
             "experts placed by their load",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(EXPERTS), .parallels = PAR(MEGATRON),
     .text = "--moe-router-load-balancing-type aux_loss and --moe-aux-loss-coeff N: the router "
             "learns to give experts equally many tokens",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(EXPERTS), .frameworks = FW(VLLM),
     .text = "vllm serve --enable-eplb: experts are placed by their load",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(EXPERTS), .frameworks = FW(SGLANG),
     .text = "sglang.launch_server --enable-eplb: experts are placed by their load",
     .what_if = "straggler=median"},
    {RP_ADVISE_LOOK, OF(UNEVEN),
     .text = "give the ranks equal work in each step: batches with as many tokens, experts with as "
             "many of them; look for what interrupts their hosts"},
};

const struct rp_finding rp_finding_straggler = {
    .id = "straggler",
    .kinds =
        {{"other", "some ranks arrive late at collectives, and the others wait for them"},
         {"compute",
          "some ranks compute longer and arrive late at collectives: the others wait for them"},
         {"host",
          "some ranks arrive late at collectives because of their hosts: the others wait for them"},
         {"input",
          "some ranks arrive late at collectives because of their input: the others wait for them"},
         {"of a host", "the ranks of a host are slower than the others, which wait for them"},
         {"of a stage",
          "a stage of the pipeline takes longer for the same work, and the others wait for it"},
         {"experts", "the experts of some ranks get more tokens, and the others wait for them"},
         {"uneven", "work is uneven: ranks are late in turn, and the others wait for them",
          .unpredicted = true}},
    .condition =
        "collectives were matched; the kind is what the rank that delays the others most did "
        "longer before ([Communication](definitions/ranks.md#communication))",
    .cost =
        "what the recording would be shorter by if the abnormal work of the place took as long as "
        "that of its peers ([Places](definitions/findings.md#places)). Where that cannot be known (no "
        "device, one rank alone): for each collective of the chain the time from the second last start to the last in "
        "which the second last rank does not compute; no time is counted twice; an upper "
        "bound. Where `simulate` can predict `straggler=median` and finds at least half as "
        "much, its gain",
    .numbers = RP_FINDING_NUMBER(MORE_TOKENS),
    .test = "explain/experts_with_more_tokens",
    .replaced_by = "straggler=median",
    .overlaps = true,
    .find = straggler_find,
    RP_ADVICE(advice),
};
