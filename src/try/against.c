/* SPDX-License-Identifier: Apache-2.0 */
/* Presents the result of a duel as rows and as a comment of a pull request (against.h). */
#include "try/against.h"

#include "base/order.h"
#include "io/output.h"

#include <math.h>
#include <string.h>

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_try_against_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(rank, I64, COUNT, "rank",
        "rank among several, 1 is the fastest; equal to that of 'yours' where the two cannot be "
        "told apart",
        RP_NULLABLE),
    ROW(name, STR, NONE, "program",
        "name as it was given, with its commit if it is a revision of git; or 'yours'", 0),
    ROW(measured, STR, NONE, "yours takes", "text output only", RP_SCREEN),
    ROW(same, STR, NONE, "same?", "how the parameters changed, or what was printed", 0),
    ROW(start, STR, NONE, "start-up", "text output only", RP_SCREEN),
    ROW(verdict, STR, NONE, NULL,
        "how yours compares with it: faster, slower, equal, noisy, refused or failed; 'yours' in "
        "its own row",
        0),
    ROW(by, STR, NONE, NULL, "the clock that decides: wall clock or processor time; or null", 0),
    ROW(reason, STR, NONE, NULL, "why it failed or was refused, or null", 0),
    ROW(measured_ratio, F64, RATIO, NULL, "time of yours over its, less one: centre of rounds", 0),
    ROW(measured_low_ratio, F64, RATIO, NULL, "lower end of its interval", 0),
    ROW(measured_high_ratio, F64, RATIO, NULL, "upper end of its interval", 0),
    ROW(processor_ratio, F64, RATIO, NULL, "the same of processor time", 0),
    ROW(processor_low_ratio, F64, RATIO, NULL, "lower end of its interval", 0),
    ROW(processor_high_ratio, F64, RATIO, NULL, "upper end of its interval", 0),
    ROW(update_ratio, F64, RATIO, NULL, "difference of the updates of the parameters", 0),
    ROW(time_ns, I64, NS, "takes", "median of rounds: time of a step, or from start to end",
        RP_NULLABLE),
    ROW(processor_ns, I64, NS, NULL, "processor time of it", RP_NULLABLE),
    ROW(memory_bytes, I64, BYTES, "memory", "its peak: of the device, or of the process",
        RP_NULLABLE),
    ROW(clock_mhz, I64, NONE, NULL, "mean clock of the device in its turns, if NVML tells it",
        RP_NULLABLE),
    ROW(startup_ns, I64, NS, NULL, "what yours needs longer before its steps are measured",
        RP_NULLABLE),
    ROW(rounds, I64, COUNT, NULL, "new processes that were measured", 0),
    ROW(changed, STR, NONE, NULL, "your changes that are in no commit, or null", 0),
    ROW(linked, STR, NONE, NULL,
        "files that it takes from your folder because git ignores them, or null", 0),
    RP_FIELD_END};
const struct rp_type rp_try_against_type = {"against", sizeof(struct rp_try_against_row),
                                            row_fields, NULL};

static int64_t middle_ns(const double *values, size_t n)
{
    double middle = rp_try_middle(values, n);

    return isfinite(middle) ? (int64_t)middle : RP_ABSENT_I64;
}

static void set_interval(const struct rp_try_interval *x, size_t n, double *ratio, double *low,
                         double *high)
{
    *ratio = n ? rp_try_ratio(x->median) : NAN;
    *low = n > 1 ? rp_try_ratio(x->low) : NAN;
    *high = n > 1 ? rp_try_ratio(x->high) : NAN;
}

static const char *interval_text(struct rp_arena *arena, size_t rounds, double middle, double low,
                                 double high)
{
    if (rounds < 3)
        return rp_arena_textf(arena, "%+.1f %% (only %zu round%s)", 100 * middle, rounds,
                              rounds == 1 ? "" : "s");
    return rp_arena_textf(arena, "%+.1f %% [%.1f, %.1f]", 100 * middle, 100 * low, 100 * high);
}

static const char *measured_text(struct rp_arena *arena, const struct rp_try_side *side,
                                 const struct rp_try_against_row *row)
{
    const char *wall = interval_text(arena, side->n, row->measured_ratio, row->measured_low_ratio,
                                     row->measured_high_ratio);
    const char *spent = interval_text(arena, side->n, row->processor_ratio,
                                      row->processor_low_ratio, row->processor_high_ratio);

    if (side->v.state == RP_TRY_FAILED)
        return rp_arena_textf(arena, "failed: %s", side->v.why);
    if (*side->refused)
        return rp_arena_textf(arena, "refused: %s (%s)", side->refused, wall);
    if (side->by_spent && side->verdict == RP_TRY_EQUAL)
        return rp_arena_textf(
            arena, "no difference above %.1f %% processor time (%s by the clock)",
            100 * fmax(fabs(row->processor_low_ratio), fabs(row->processor_high_ratio)), wall);
    if (side->by_spent)
        return rp_arena_textf(arena, "%s processor time (%s by the clock)", spent, wall);
    if (side->verdict == RP_TRY_EQUAL)
        return rp_arena_textf(
            arena, "no difference above %.1f %%",
            100 * fmax(fabs(row->measured_low_ratio), fabs(row->measured_high_ratio)));
    if (!side->n)
        return "no round was measured: the time was over";
    if (side->verdict != RP_TRY_NOISY)
        return wall;
    return rp_arena_textf(arena, "too noisy: %s, %s processor time", wall, spent);
}

static const char *verdict_text(const struct rp_try_side *side)
{
    return side->v.state == RP_TRY_FAILED ? "failed"
           : *side->refused               ? "refused"
                                          : rp_try_verdict_name(side->verdict);
}

static void fill_side(const struct rp_try_duel *d, const struct rp_try_side *side,
                      struct rp_arena *arena, struct rp_try_against_row *row)
{
    int64_t begin = middle_ns(side->begin_ns, d->whole ? 0 : side->n);
    int64_t own = middle_ns(d->side->begin_ns, d->whole ? 0 : d->side->n);
    size_t rounds = side == d->side ? 0 : side->n;

    row->time_ns = middle_ns(side->ns, side->n);
    row->processor_ns = middle_ns(side->spent_ns, side->n);
    row->memory_bytes = side->v.memory_bytes > 0 ? side->v.memory_bytes : RP_ABSENT_I64;
    row->rounds = (int64_t)side->n;
    row->clock_mhz = side->mhz_n ? (int64_t)(side->mhz / (double)side->mhz_n) : RP_ABSENT_I64;
    row->update_ratio = side->v.judged ? side->v.update_ratio : NAN;
    row->startup_ns = RP_ABSENT_I64;
    set_interval(&side->wall, rounds, &row->measured_ratio, &row->measured_low_ratio,
                 &row->measured_high_ratio);
    set_interval(&side->spent, rounds, &row->processor_ratio, &row->processor_low_ratio,
                 &row->processor_high_ratio);
    if (side == d->side)
        return;
    row->verdict = verdict_text(side);
    row->by = !side->verdict || side->verdict == RP_TRY_NOISY ? NULL
              : side->by_spent                                ? "processor time"
                                                              : "wall clock";
    row->reason = *side->v.why     ? rp_arena_text(arena, side->v.why)
                  : *side->refused ? rp_arena_text(arena, side->refused)
                                   : NULL;
    row->same = side->same;
    row->measured = measured_text(arena, side, row);
    if (begin == RP_ABSENT_I64 || own == RP_ABSENT_I64)
        return;
    row->startup_ns = own - begin;
    row->start = rp_arena_textf(arena, "%+.1f s", (double)row->startup_ns / 1e9);
}

/* What is measurably faster than yours comes before it, what is slower behind it; what was not
   compared comes last. */
static int64_t rank_of(const struct rp_try_duel *d, const struct rp_try_side *side)
{
    return side->v.state == RP_TRY_FAILED || *side->refused || !side->n ? RP_ABSENT_I64
           : side == d->side                                            ? 1
           : side->verdict == RP_TRY_SLOWER                             ? 0
           : side->verdict == RP_TRY_FASTER                             ? 2
                                                                        : 1;
}

RP_ORDER(by_rank, struct rp_try_against_row, RP_COMPARE((uint64_t)a->rank, (uint64_t)b->rank),
         RP_UP(time_ns))

size_t rp_try_against_rows(const struct rp_try_duel *d, const struct rp_try_other *others,
                           struct rp_arena *arena, struct rp_try_against_row **out)
{
    *out = RP_ARENA_NEW(arena, struct rp_try_against_row, d->n);
    for (size_t i = 0; *out && i < d->n; i++) {
        struct rp_try_against_row *row = &(*out)[i];

        *row = (struct rp_try_against_row){.name = i ? others[i - 1].name : "yours",
                                           .changed = i ? others[i - 1].changed : NULL,
                                           .linked = i ? others[i - 1].linked : NULL,
                                           .verdict = "yours"};
        fill_side(d, &d->side[i], arena, row);
        row->rank = rank_of(d, &d->side[i]);
    }
    if (!*out)
        return 0;
    rp_sort(*out, d->n, sizeof **out, by_rank);
    for (size_t i = 0, first = 0; i < d->n; i++) {
        struct rp_try_against_row *row = &(*out)[i];

        first += first == 0 && row->rank == 1 ? i + 1 : 0;
        row->rank = row->rank == RP_ABSENT_I64 || d->n == 2 ? RP_ABSENT_I64
                    : row->rank == 1                        ? (int64_t)first
                                                            : (int64_t)i + 1;
    }
    return d->n;
}

bool rp_try_against_holds(const struct rp_try_duel *d, const char *want)
{
    bool faster = !strcmp(want, "faster"), holds = true;

    for (size_t i = 1; i < d->n; i++) {
        const struct rp_try_side *side = &d->side[i];

        holds = holds && !*side->refused && side->v.state != RP_TRY_FAILED && side->n &&
                (side->verdict == RP_TRY_FASTER ||
                 (!faster && (side->verdict == RP_TRY_EQUAL ||
                              (side->n > 1 && side->wall.high <= rp_try_little()))));
    }
    return holds;
}

/* ------------------------------------------------------------------ the comment */

/* Writes a cell of a table, in which no line may end. */
static void put_cell(struct rp_out *to, const char *text)
{
    for (const char *at = text ? text : "-"; *at; at++)
        rp_out_printf(to, *at == '|' ? "\\%c" : "%c", *at == '\n' ? ' ' : *at);
    rp_out_text(to, " | ");
}

enum rp_code rp_try_against_comment(const char *path, const char *summary, const char *program,
                                    const char *unit, const struct rp_try_against_row *rows,
                                    size_t n, struct rp_err *err)
{
    struct rp_out *to;

    RP_TRY(rp_out_open(path, &to, err));
    rp_out_printf(to, "**%s**\n\n", summary);
    rp_out_text(to,
                "| program | yours takes | same? | start-up | rounds |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < n; i++) {
        const struct rp_try_against_row *row = &rows[i];

        rp_out_text(to, "| ");
        put_cell(to, row->name);
        put_cell(to, row->measured);
        put_cell(to, row->same);
        put_cell(to, row->start);
        rp_out_printf(to, "%lld |\n", (long long)row->rounds);
    }
    rp_out_printf(to, "\n%s; %s. Measured by `reprise try --against`.\n", program, unit);
    return rp_out_close(to, err);
}
