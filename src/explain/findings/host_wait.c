/* SPDX-License-Identifier: Apache-2.0 */
/* The host waits in a call while the device has nothing to do, or without a device. */
#include "explain/findings/finding.h"

enum { DEVICE, THREAD, INPUT, OUTPUT, CHILD, RANKS, SLEEP };

/* Writes "rank 0: 312.0 ms in 80 waits, the longest 48.1 ms; mainly poll in 'step *', 203.1 ms". If
   no work is known, waits may be all that was recorded. */
static void find_waits(struct rp_findings *f)
{
    static const uint8_t kinds[RP_WAIT_KINDS] = {
        [RP_WAIT_OTHER] = THREAD,  [RP_WAIT_THREAD] = THREAD, [RP_WAIT_INPUT] = INPUT,
        [RP_WAIT_OUTPUT] = OUTPUT, [RP_WAIT_CHILD] = CHILD,   [RP_WAIT_RANKS] = RANKS,
        [RP_WAIT_SLEEP] = SLEEP};
    const struct rp_report_part *lead = rp_findings_lead(f);
    const struct rp_report_pauses *p = &lead->pauses;
    const struct rp_host_wait *first = lead->waits.rows.n ? lead->waits.rows.at : NULL;
    struct rp_report_finding *finding = NULL;

    if (first && !first->worker)
        finding = rp_findings_add(f, kinds[rp_wait_kind_of(first->call)], p->ns[RP_PAUSE_WAIT]);
    if (!finding)
        return;
    finding->where.names[0] = first->call;
    RP_SAY(f, finding, "rank %d: %s in %lld waits, the longest %s; mainly %s%s%.80s%s, %s",
           rp_findings_lead_number(f), rp_findings_time(f, p->ns[RP_PAUSE_WAIT]),
           (long long)p->count[RP_PAUSE_WAIT], rp_findings_time(f, p->longest_ns[RP_PAUSE_WAIT]),
           first->call, first->range ? " in '" : "", first->range ? first->range : "",
           first->range ? "'" : "", rp_findings_time(f, first->total_ns));
}

static void host_wait_find(struct rp_findings *f)
{
    rp_findings_idle(f);
    find_waits(f);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, OF(DEVICE),
     .text = "'reprise idle' names the call, 'reprise top --by wait' shows all of them"},
    {RP_ADVISE_CALL, OF(DEVICE),
     .text = "launch more work before the call, or make it on another thread"},
    {RP_ADVISE_LOOK, OF(THREAD),
     .text = "'reprise stalls' lists the longest waits, 'reprise convert --to json' shows what the "
             "other threads run meanwhile"},
    {RP_ADVISE_CALL, OF(THREAD),
     .text = "give the work to more threads, or hold the lock for a shorter time; do other work "
             "before asking for the result"},
    {RP_ADVISE_CALL, OF(INPUT),
     .text = "ask for the input earlier (prefetch), or have more processes prepare it"},
    {RP_ADVISE_LOOK, OF(INPUT),
     .text = "'reprise top --by wait' shows the calls; record the other side too if it is a "
             "process of the job"},
    {RP_ADVISE_CALL, OF(INPUT), .frameworks = FW(PYTORCH),
     .text = "DataLoader(num_workers=…, prefetch_factor=…, persistent_workers=True)"},
    {RP_ADVISE_CALL, OF(OUTPUT),
     .text = "write from another thread, write less often, or to faster storage; fsync only where "
             "data must survive a crash of the machine"},
    {RP_ADVISE_CALL, OF(CHILD),
     .text = "start the child earlier and wait for it later, or keep one process for all requests"},
    {RP_ADVISE_LOOK, OF(RANKS),
     .text = "'reprise comm' shows which rank is late; post receives before the messages are sent"},
    {RP_ADVISE_CALL, OF(RANKS),
     .text = "compute between MPI_Isend or MPI_Irecv and MPI_Wait; fewer and larger messages"},
    {RP_ADVISE_CALL, OF(SLEEP),
     .text = "wait for the event itself (a condition, poll) instead of sleeping and asking again"},
};

const struct rp_finding rp_finding_host_wait = {
    .id = "host-wait",
    .kinds =
        {{"device", "the host waits in a call while the device has nothing to do"},
         {"thread", "the program waits for another of its threads", .least_share = RP_PAUSE_SHARE},
         {"input", "the program waits for input of another process, a socket or file",
          .least_share = RP_PAUSE_SHARE},
         {"output", "the program waits until output is written", .least_share = RP_PAUSE_SHARE},
         {"child", "the program waits for a child process to end", .least_share = RP_PAUSE_SHARE},
         {"ranks", "the program waits for messages of other ranks", .least_share = RP_PAUSE_SHARE},
         {"sleep", "the program sleeps", .least_share = RP_PAUSE_SHARE}},
    .condition = "the kind is what the call with most time waits for",
    .cost = "idle time on the chain whose cause is `host_wait`; without a device pauses in which "
            "a thread that works waits ([Pauses](definitions/findings.md))",
    .idle = 1u << RP_GAP_HOST_WAIT,
    .numbers = RP_FINDING_NUMBER(RP_PAUSE_SHARE),
    .test = "explain/pauses_have_an_edge",
    .find = host_wait_find,
    RP_ADVICE(advice),
};
