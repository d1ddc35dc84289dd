/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A finding is something that costs time: one file, one row of a table. While the trace of a rank
 * is in memory, it measures what it needs (`measure`, on any thread) and keeps the result. When all
 * ranks are known, it decides whether there is something to report, about which rank, with what
 * cost and evidence (`find`). `report` asks all of them, orders and prints. docs/findings.md is
 * written from the rows (page.c).
 *
 * The cost is the time by which the recording would be shorter without the problem; costs of
 * different findings may overlap (a rank that is late because of its host is a straggler and a host
 * stall).
 */
#include "base/decides.h"
#include "explain/findings/advice.h"
#include "explain/report/answer.h"
#include "explain/report/chain.h"
#include "explain/report/part.h"
#include "result/print_units.h"

struct rp_cost_calls;
struct rp_cost_peaks;
struct rp_op_costs;
struct rp_opportunities;

/* A rank while its trace is in memory. */
struct rp_finding_rank {
    const struct rp_trace *trace;
    bool on_device; /* without device work only rows with `of_any_rank` measure it */
    const struct rp_segments *judged;
    const rp_interval_vec *compiles; /* when torch.compile compiled */
    const struct rp_work *work;      /* of the main device */
    const rp_gap_vec *gaps;
    const struct rp_op_costs *costs; /* NULL, like the next two, if the device is unknown */
    const struct rp_cost_calls *calls;
    const struct rp_cost_peaks *peaks;
    struct rp_arena *arena;
};

/* All ranks. */
struct rp_findings {
    const struct rp_ranks *ranks;
    const struct rp_chain *chain;
    struct rp_arena *arena;
    struct rp_report_root *out;
    const struct rp_finding *row;       /* the finding whose `find` is running */
    int64_t span_ns;                    /* the longest span of a rank, of which costs are shares */
    int64_t atypical_ns[RP_GAP_CAUSES]; /* idle time in untypical steps, by cause */
    int32_t absent;                     /* number of ranks of the run that were not given */
};

/* A finding has one stable name, and several kinds if its cause differs and so another change
   helps. */
struct rp_finding_kind {
    const char *key, *title; /* the manual and tests use the key, users read the title */
    double least_share; /* the finding is reported if it costs at least this share of the span; 0
                           means a hundredth */
    bool unpredicted;   /* there is no what-if about it */
};

struct rp_finding {
    const char *id;                  /* never changes, because gates and scripts use it */
    struct rp_finding_kind kinds[9]; /* the last one has no title */
    const char *condition; /* in the manual: when it is reported, besides its least cost */
    const char *cost;      /* in the manual: what its cost is; NULL: idle time of its cause */
    uint32_t idle;         /* causes of the gaps it is about: bits 1 << enum rp_gap_cause */
    const char *numbers;   /* RP_FINDING_NUMBER for each number that decides, for the manual */
    const char *test;      /* the unit test of these numbers, as layer/function */
    size_t nadvice;
    const struct rp_advice_row *advice;
    /* Fills what the finding keeps about a rank: `kept` is a cleared struct of type rp_kept_<name>.
       NULL if it keeps nothing. */
    enum rp_code (*measure)(const struct rp_finding_rank *rank, void *kept, struct rp_err *err);
    uint8_t place; /* index in rp_report_part.kept of what it keeps */
    void (*find)(struct rp_findings *f);
    /* What-ifs that become this finding, unless another finding proposes them. Their gain is
       compute time, and the cost of the finding. */
    struct {
        const char *what_if;
        uint8_t kind;
    } changes[3];
    const char *replaced_by; /* where this what-if can be predicted, its gain is the cost */
    bool overlaps;           /* another finding has its time, too: the costs do not add up */
    bool of_any_rank;        /* it is measured also without device work */
    bool of_host;            /* the host does work that could run beside that of the device */
};

#define RP_ADVICE(rows)                 .nadvice = sizeof(rows) / sizeof(rows)[0], .advice = (rows)
#define RP_KEEPS(name, fn)              .place = RP_KEPT_##name, .measure = (fn) /* both or none */
#define RP_TEXT_OF_(x)                  #x
#define RP_FINDING_NUMBER(name)         RP_FINDING_NUMBER_(#name, name)
#define RP_FINDING_NUMBER_(text, value) "`" text "` = " RP_TEXT_OF_(value) ". "

#define RP_PAUSE_SHARE 0.05
RP_DECISION(
    RP_PAUSE_SHARE, "of the span",
    "without a device, time in which no operator runs is often the program's own: less says "
    "nothing about it",
    "explain/pauses_have_an_edge");

/* ------------------------------------------------------------------ the ranks */

static inline const struct rp_report_part *rp_findings_part(const struct rp_findings *f,
                                                            size_t rank)
{
    return rp_report_part_of(f->ranks, rank);
}

static inline int rp_findings_number(const struct rp_findings *f, size_t rank)
{
    return f->ranks->parts[rank].number;
}

/* The rank at the end of the chain that sets the pace. */
static inline const struct rp_report_part *rp_findings_lead(const struct rp_findings *f)
{
    return rp_findings_part(f, f->chain->lead);
}

static inline int rp_findings_lead_number(const struct rp_findings *f)
{
    return rp_findings_number(f, f->chain->lead);
}

/* What a finding kept of a rank; NULL without device work, unless the row is `of_any_rank`. */
static inline const void *rp_findings_kept(const struct rp_findings *f, size_t rank)
{
    return rp_findings_part(f, rank)->kept[f->row->place].at;
}

static inline const char *rp_findings_time(const struct rp_findings *f, int64_t ns)
{
    return rp_units_time(f->arena, ns);
}

/* ------------------------------------------------------------------ adding one (add.c) */

/* Adds a finding if it costs enough; otherwise returns NULL. */
struct rp_report_finding *rp_findings_add(struct rp_findings *f, unsigned kind, int64_t lost_ns);

/* The same for time that counts as compute; the cost is an upper limit. */
struct rp_report_finding *rp_findings_add_compute(struct rp_findings *f, unsigned kind,
                                                  int64_t lost_ns);

/* The same for a place that is slow, with its cost. */
struct rp_report_finding *rp_findings_add_place(struct rp_findings *f, unsigned kind,
                                                const struct rp_place_found *place);
/* "rank 3", "ranks 3 and 5", "host a (ranks 0 to 3)", "hosts a and b". */
const char *rp_findings_who_text(struct rp_findings *f, const struct rp_report_who *who);
/* "15.0 % longer than", "3.2 times as long as". */
const char *rp_findings_times_text(struct rp_findings *f, double times);

/* The same for idle time of several causes, which the findings of these causes then leave out. */
struct rp_report_finding *rp_findings_take_idle(struct rp_findings *f, unsigned kind,
                                                const int64_t cause_ns[RP_GAP_CAUSES]);
/* Adds up the idle time of a rank in intervals, by cause: what the host does there, and not what
   happens once or waits for others. Sorts and joins the intervals. */
void rp_findings_sum_idle(const struct rp_finding_rank *rank, rp_interval_vec *in,
                          int64_t cause_ns[RP_GAP_CAUSES]);

/* Adds a finding that costs nothing itself, but makes numbers doubtful. */
struct rp_report_finding *rp_findings_add_doubt(struct rp_findings *f, unsigned kind);

/* Adds evidence: RP_SAY(f, finding, "format", …). */
void rp_findings_say(struct rp_report_finding *finding, const char *text);
#define RP_SAY(f, finding, ...) rp_findings_say(finding, rp_arena_textf((f)->arena, __VA_ARGS__))

/* Adds a finding about idle time on the chain (idle.c), of the row's cause and `more`. */
struct rp_report_finding *rp_findings_add_idle(struct rp_findings *f, unsigned kind,
                                               int64_t more_ns);
/* Names the ranks with most of it, up to three. */
void rp_findings_say_idle(struct rp_findings *f, struct rp_report_finding *finding);
/* Does both, which is all that most of these findings need. */
void rp_findings_idle(struct rp_findings *f);
/* The entry with most idle time of the row's cause in a rank, or NULL. */
const struct rp_idle_cause *rp_findings_cause(const struct rp_findings *f, size_t rank,
                                              int64_t *total_ns, int64_t *count);

/* Adds findings about time in which no operator runs, if there is no device (pause.c). */
void rp_findings_pause(struct rp_findings *f, unsigned kind, enum rp_pause pause);

/* ------------------------------------------------------------------ all of them (list.c) */

/* Fills in what findings keep about a rank. */
enum rp_code rp_findings_measure(const struct rp_finding_rank *rank, struct rp_report_part *part,
                                 struct rp_err *err);

/* Makes the findings, the most costly first; those below a hundredth of the window are left out. */
enum rp_code rp_findings_find(const struct rp_ranks *ranks, const struct rp_chain *chain,
                              struct rp_arena *arena, struct rp_report_root *out,
                              struct rp_err *err);

/* Adds opportunities that would save compute and that no finding is about. */
enum rp_code rp_findings_find_changes(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                      const struct rp_opportunities *list, struct rp_arena *arena,
                                      struct rp_report_root *out, struct rp_err *err);

/* Joins everything that can be tried to the hint of a finding. */
void rp_findings_join_hint(struct rp_arena *arena, struct rp_report_finding *finding);
