/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A finding is something that costs time: one file, one row of a table. It measures what it needs
 * of a rank while the trace is in memory (`measure`, on any thread), keeps that, and when the ranks
 * are known decides whether to speak, about whom, what it costs and by which evidence (`find`).
 * `report` asks all of them, orders and prints. docs/findings.md is written from the rows (page.c).
 *
 * The cost is the time by which the recording would be shorter without it; costs of different
 * findings may overlap (a rank that is late because of its host is a straggler and a host stall).
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
    bool on_device;   /* without device work only rows with `of_any_rank` measure it */
    const struct rp_segments *judged;
    const rp_interval_vec *compiles; /* when torch.compile compiled */
    const struct rp_work *work; /* of the main device */
    const rp_gap_vec *gaps;
    const struct rp_op_costs *costs; /* this and the next two are NULL if the device is unknown */
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
    const struct rp_finding *row;       /* the finding whose `find` runs now */
    int64_t span_ns;                    /* the span of the rank that ends last */
    int64_t atypical_ns[RP_GAP_CAUSES]; /* idle time that belongs to an untypical step */
    int32_t absent;                     /* so many ranks of the run were not given */
};

/* A finding has one stable name and several kinds where its cause differs, because another change
   helps then. */
struct rp_finding_kind {
    const char *key, *title; /* the manual and tests name it by its key, users read its title */
    double least_share;      /* it is reported if it costs this share of the span; 0: a hundredth */
    bool unpredicted;        /* no what-if says anything about it */
};

struct rp_finding {
    const char *id;                  /* it stays, because gates and scripts name it */
    struct rp_finding_kind kinds[8]; /* the last one has no title */
    const char *condition; /* the manual says so when it is reported, beside its least cost */
    const char *cost;      /* the manual says so what its cost is; NULL: idle time of its cause */
    uint32_t idle;         /* it is about gaps of these causes: bits 1 << enum rp_gap_cause */
    const char *numbers;   /* RP_FINDING_NUMBER of each number that it decides by, for the manual */
    const char *test;      /* the unit test of these numbers, as layer/function */
    size_t nadvice;
    const struct rp_advice_row *advice;
    /* Fills what the finding keeps of a rank: `kept` is a cleared struct of the type
       rp_kept_<name>. A finding that keeps nothing has NULL. */
    enum rp_code (*measure)(const struct rp_finding_rank *rank, void *kept, struct rp_err *err);
    uint8_t place; /* where what it keeps is in rp_report_part.kept */
    void (*find)(struct rp_findings *f);
    /* These what-ifs become this finding where no other finding proposes them. Their gain is
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

/* The rank at the end of the chain. */
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

/* Adds a finding of the row where it costs enough; NULL otherwise. */
struct rp_report_finding *rp_findings_add(struct rp_findings *f, unsigned kind, int64_t lost_ns);

/* The same of time that counts as compute; the cost is an upper limit. */
struct rp_report_finding *rp_findings_add_compute(struct rp_findings *f, unsigned kind,
                                                  int64_t lost_ns);

/* The same about a place that is slow, at its cost. */
struct rp_report_finding *rp_findings_add_place(struct rp_findings *f, unsigned kind,
                                                const struct rp_place_found *place);
/* "rank 3", "ranks 3 and 5", "host a (ranks 0 to 3)", "hosts a and b". */
const char *rp_findings_who_text(struct rp_findings *f, const struct rp_report_who *who);
/* "15.0 % longer than", "3.2 times as long as". */
const char *rp_findings_times_text(struct rp_findings *f, double times);

/* Adds one that makes numbers doubtful and costs nothing itself. */
struct rp_report_finding *rp_findings_add_doubt(struct rp_findings *f, unsigned kind);

/* Adds evidence: RP_SAY(f, finding, "format", …). */
void rp_findings_say(struct rp_report_finding *finding, const char *text);
#define RP_SAY(f, finding, ...) rp_findings_say(finding, rp_arena_textf((f)->arena, __VA_ARGS__))

/* Those of idle time on the chain (idle.c): of the row's cause, and `more`. */
struct rp_report_finding *rp_findings_add_idle(struct rp_findings *f, unsigned kind,
                                               int64_t more_ns);
/* The ranks with most of it, up to three. */
void rp_findings_say_idle(struct rp_findings *f, struct rp_report_finding *finding);
/* Both; what most of these findings are. */
void rp_findings_idle(struct rp_findings *f);
/* Idle time of a rank with the row's cause; its row with most of it is returned, or NULL. */
const struct rp_idle_cause *rp_findings_cause(const struct rp_findings *f, size_t rank,
                                              int64_t *total_ns, int64_t *count);

/* Those of time in which no operator runs, where there is no device (pause.c). */
void rp_findings_pause(struct rp_findings *f, unsigned kind, enum rp_pause pause);

/* ------------------------------------------------------------------ all of them (list.c) */

/* Fills a rank's places of what is kept. */
enum rp_code rp_findings_measure(const struct rp_finding_rank *rank, struct rp_report_part *part,
                                 struct rp_err *err);

/* Fills findings, the most costly first; those under a hundredth of the window are left out. */
enum rp_code rp_findings_find(const struct rp_ranks *ranks, const struct rp_chain *chain,
                              struct rp_arena *arena, struct rp_report_root *out,
                              struct rp_err *err);

/* Adds what opportunities would save of compute and no finding is about. */
enum rp_code rp_findings_find_changes(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                      const struct rp_opportunities *list, struct rp_arena *arena,
                                      struct rp_report_root *out, struct rp_err *err);

/* The hint of a finding: all that can be tried. */
void rp_findings_join_hint(struct rp_arena *arena, struct rp_report_finding *finding);
