/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds unmarked steps: the names of the device work on the busiest stream (without a device: of
 * the outermost operators on the busiest thread) repeat with a period.
 *
 * Candidates for the period are distances between equal names: for the rarest names, from each
 * occurrence to the one 1 to 8 places later, if most of those distances are the same. A candidate
 * is rated by how many elements equal the one a period later. A loop over layers inside the step
 * also repeats, but it breaks at every step, so the smallest of the candidates that match nearly as
 * well as the best one is used. Steps begin where the pauses before them are longest.
 *
 * A trace of a single step of inference repeats too, layer by layer. So a period is accepted only
 * if it has something that a model does once per step: an update of parameters, an embedding, a
 * copy between host and device, on the host a result that is read, or a call of the program itself
 * that waits for the device. Our own recordings have the whole run, so there a period is also
 * accepted if it contains a repetition: a model and its layers (for _ in range(20): model(x)), or
 * if it occurs more often than models have layers. The work of one launch of a graph counts as one
 * element.
 *
 * At most 2^18 names are examined, with at most a few dozen candidates; linear.
 */
#include "trace/build/dense_ids.h"

#include "base/copies.h"
#include "base/decides.h"
#include "base/each.h"
#include "base/filled.h"
#include "base/order.h"
#include "trace/finish/steps.h"
#include "trace/names.h"

#define THRICE 3
RP_DECISION(THRICE, "times", "what occurs twice does not repeat", "trace/test_periods");
#define NEARLY 5000
RP_DECISION(
    NEARLY, "of a million elements",
    "that a shorter period may differ by more than twice the best: a few that come now and then",
    "trace/a_short_period_may_differ_a_little");
#define PARTS 4
RP_DECISION(
    PARTS, "parts",
    "layers are in one of so many of a pass, a start is found half of one from where it is expected, "
    "by so many elements, and models are made in one of the first of a recording",
    "trace/layers_are_in_a_quarter_of_a_pass");
#define LEAST_PASSES 5
RP_DECISION(LEAST_PASSES, "passes",
            "of a model that is known by its layers only: it may have as many blocks of layers",
            "trace/five_passes_through_a_model");
#define MANY_PASSES 300
RP_DECISION(MANY_PASSES, "passes",
            "of a model without layers: the largest models have 130 layers, or 256 experts in one",
            "trace/more_passes_than_a_model_has_layers");
#define AWAITED_SHARE 0.9
RP_DECISION(AWAITED_SHARE, "of the periods",
            "a program that waits once a step may leave out the last, and the first begins before",
            "trace/periods_that_the_program_waits_for");
#define NAMES_MAX ((size_t)1 << 18)
RP_LIMIT(NAMES_MAX, "names", "are searched for a period; more repeat it");
#define RARE_NAMES 64
RP_LIMIT(RARE_NAMES, "names", "of which the distances are candidates: each costs a look at all");
#define LAGS 8
RP_LIMIT(LAGS, "occurrences",
         "to the one with which a distance is taken, and starts that are tried where steps go on");
#define OCCURRENCES 4096
RP_LIMIT(OCCURRENCES, "occurrences of a name", "show its distance; more would say the same");
#define LONGEST_PASS 8192
RP_LIMIT(LONGEST_PASS, "elements of a pass",
         "longer ones are not searched for layers, and no steps");

struct search {
    const rp_str *names;
    size_t n;
    RP_VEC(uint32_t) dense; /* names as small numbers */
    uint32_t ndistinct;
    RP_VEC(uint32_t) offset, place; /* where each of them occurs */
    RP_VEC(uint64_t) rare;          /* count << 32 | name, for names that occur thrice or more */
    size_t candidate[RARE_NAMES];
    size_t ncandidates;
};

static enum rp_code list_places(struct search *w, struct rp_err *err)
{
    rp_id_vec id = {0};

    RP_TRY(rp_vec_reserve(&w->dense, w->n, err));
    enum rp_code code = rp_vec_reserve(&id, w->n, err);
    for (size_t i = 0; code == RP_OK && i < w->n; i++)
        id.at[i] = w->names[i];
    if (code == RP_OK)
        code = rp_dense_ids(id.at, w->n, w->dense.at, &w->ndistinct, err);
    rp_vec_release(&id);
    RP_TRY(code);
    RP_TRY(rp_vec_zeros(&w->offset, w->ndistinct + 1, err));
    RP_TRY(rp_vec_reserve(&w->place, w->n, err));
    for (size_t i = 0; i < w->n; i++)
        w->offset.at[w->dense.at[i] + 2]++;
    for (uint32_t k = 2; k <= w->ndistinct; k++)
        w->offset.at[k] += w->offset.at[k - 1];
    for (size_t i = 0; i < w->n; i++)
        w->place.at[w->offset.at[w->dense.at[i] + 1]++] = (uint32_t)i;
    return RP_OK;
}

RP_ORDER(ascending, uint64_t, RP_COMPARE(*a, *b))

static enum rp_code find_rare(struct search *w, struct rp_err *err)
{
    for (uint32_t k = 0; k < w->ndistinct; k++) {
        uint64_t count = w->offset.at[k + 1] - w->offset.at[k];

        if (count >= THRICE)
            RP_TRY(rp_vec_push(&w->rare, count << 32 | k, err));
    }
    rp_sort(w->rare.at, w->rare.n, sizeof *w->rare.at, ascending);
    return RP_OK;
}

/* The distance between most pairs of places that are `lag` apart, or 0. */
static size_t common_distance(const uint32_t *place, size_t n, size_t lag)
{
    size_t best = 0, votes = 0, count = 0, i;

    for (i = 0; i + lag < n; i++) { /* majority vote: pairs of different values cancel out */
        size_t distance = place[i + lag] - place[i];

        if (votes == 0)
            best = distance;
        votes += distance == best ? 1 : (size_t)-1;
    }
    for (i = 0; i + lag < n; i++)
        count += place[i + lag] - place[i] == best;
    return n > lag && count * 2 > n - lag ? best : 0;
}

static void add_candidate(struct search *w, size_t period)
{
    if (period < 2 || period > w->n / THRICE)
        return;
    for (size_t i = 0; i < w->ncandidates; i++)
        if (w->candidate[i] == period)
            return;
    if (w->ncandidates < RARE_NAMES)
        w->candidate[w->ncandidates++] = period;
}

static void find_candidates(struct search *w)
{
    for (size_t i = 0; i < w->rare.n && i < RARE_NAMES; i++) {
        uint32_t name = (uint32_t)w->rare.at[i];
        size_t n = w->offset.at[name + 1] - w->offset.at[name];

        for (size_t lag = 1; lag <= LAGS; lag++)
            add_candidate(w, common_distance(w->place.at + w->offset.at[name],
                                             n < OCCURRENCES ? n : OCCURRENCES, lag));
    }
}

/* Elements in a million that differ from the element a period later. */
static size_t disagreement(const struct search *w, size_t period)
{
    size_t differ = 0, i;

    for (i = 0; i + period < w->n; i++)
        differ += w->names[i] != w->names[i + period];
    return differ * 1000000 / (w->n - period);
}

static bool has_two_names(const struct search *w, size_t period)
{
    for (size_t i = 1; i < period; i++)
        if (w->names[i] != w->names[0])
            return true;
    return false;
}

static size_t choose_period(const struct search *w)
{
    size_t rate[RARE_NAMES], best = SIZE_MAX, period = 0, i;

    for (i = 0; i < w->ncandidates; i++) {
        rate[i] = disagreement(w, w->candidate[i]);
        best = rate[i] < best ? rate[i] : best;
    }
    for (i = 0; i < w->ncandidates; i++)
        if (10 * rate[i] <= 1000000 && rate[i] <= 2 * best + NEARLY &&
            has_two_names(w, w->candidate[i]) && (period == 0 || w->candidate[i] < period))
            period = w->candidate[i];
    return period;
}

enum rp_code rp_steps_find_period(const rp_str *names, size_t n, size_t *period, struct rp_err *err)
{
    struct search w = {.names = names, .n = n < NAMES_MAX ? n : NAMES_MAX};

    *period = 0;
    if (n < (size_t)2 * THRICE)
        return RP_OK;
    enum rp_code code = list_places(&w, err);
    if (code == RP_OK)
        code = find_rare(&w, err);
    if (code == RP_OK) {
        find_candidates(&w);
        *period = choose_period(&w);
    }
    RP_EACH(rp_vec_release, &w.dense, &w.offset, &w.place, &w.rare);
    return code;
}

struct sequence {
    struct rp_builder *b;
    rp_row_vec event; /* in time order */
    RP_VEC(rp_str) names;
    bool on_device; /* they are device work */
};

static enum rp_code push(struct sequence *s, rp_event e, struct rp_err *err)
{
    RP_TRY(rp_vec_push(&s->event, e, err));
    return rp_vec_push(&s->names, s->b->ev.name.at[e], err);
}

static bool is_same_launch(const struct sequence *s, rp_event e)
{
    const uint32_t *link = s->b->ev.link.at;

    return s->event.n && link[e] != RP_NONE && link[e] == link[s->event.at[s->event.n - 1]];
}

static enum rp_code take_stream(struct sequence *s, struct rp_err *err)
{
    struct rp_builder *b = s->b;
    uint32_t most = 0, n, best = RP_NONE, t;
    rp_event e;

    for (t = 0; t < b->tracks.n; t++) {
        for (e = b->tracks.at[t].first, n = 0; e < b->tracks.at[t].end; e++)
            n += rp_kind_is_device_work(b->ev.kind.at[e]);
        if (n > most) {
            most = n;
            best = t;
        }
    }
    for (e = best == RP_NONE ? 0 : b->tracks.at[best].first;
         best != RP_NONE && e < b->tracks.at[best].end; e++)
        if (rp_kind_is_device_work(b->ev.kind.at[e]) && b->ev.ts_ns.at[e] != RP_NO_TS &&
            !is_same_launch(s, e))
            RP_TRY(push(s, e, err));
    return RP_OK;
}

/* Operators without an operator around them, on the thread that has most of them. */
static enum rp_code take_thread(struct sequence *s, struct rp_err *err)
{
    struct rp_builder *b = s->b;
    RP_VEC_LOCAL(uint8_t, inside); /* an operator, or inside one */
    uint32_t most = 0, n, best = RP_NONE, t;
    rp_event e;

    RP_TRY(rp_vec_reserve(&inside, (size_t)b->ev.n + 1, err));
    for (t = 0; t < b->tracks.n; t++) {
        for (e = b->tracks.at[t].first, n = 0; e < b->tracks.at[t].end; e++) {
            rp_event parent = b->ev.parent.at[e];
            bool within = parent != RP_NONE && inside.at[parent], op;

            op = b->ev.kind.at[e] == RP_KIND_CPU_OP && b->ev.ts_ns.at[e] != RP_NO_TS;
            inside.at[e] = within ? 1 : op ? 2 : 0;
            n += op && !within;
        }
        if (n > most) {
            most = n;
            best = t;
        }
    }
    for (e = best == RP_NONE ? 0 : b->tracks.at[best].first;
         best != RP_NONE && e < b->tracks.at[best].end; e++)
        if (inside.at[e] == 2)
            RP_TRY(push(s, e, err));
    return RP_OK;
}

static bool begins_with_one(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strncmp(text, list[i], strlen(list[i])))
            return true;
    return false;
}

static bool happens_once_a_step(const struct rp_builder *b, rp_str name)
{
    static const char *const on_host[] = {"aten::item", "EagerLocalExecute: AssignSubVariableOp",
                                          "EagerLocalExecute: ResourceApply"};
    const char *text = rp_strtab_borrow(&b->str, name);
    enum rp_copy_way way;

    if (begins_with_one(text, on_host, sizeof on_host / sizeof on_host[0]))
        return true;
    switch (b->name_class.at[name]) {
    case RP_NAME_OPTIMIZER:
        return true;
    case RP_NAME_EMBEDDING:
        return strcasestr(text, "embedding") && !strcasestr(text, "rotary");
    case RP_NAME_MEMCPY:
        way = rp_copy_way(text);
        return way == RP_COPY_TO_DEVICE || way == RP_COPY_TO_HOST;
    default:
        return false;
    }
}

/* Whether a period in the middle contains what a complete step must contain. */
static bool is_whole_step(const struct sequence *s, size_t from, size_t period)
{
    size_t first = from + (s->names.n - from) / 2 / period * period, i;

    for (i = first; i < first + period && i < s->names.n; i++)
        if (happens_once_a_step(s->b, s->names.at[i]))
            return true;
    return false;
}

/* Whether at least half of the elements of a period equal the one some places later, at most a
   quarter of the period, unless all are equal. (A block of a ResNet has three convolutions.) */
static bool has_layers(const rp_str *name, size_t period)
{
    for (size_t lag = 2; lag <= period / PARTS; lag++) {
        size_t equal = 0, others = 0;

        for (size_t i = 0; i + lag < period; i++)
            equal += name[i] == name[i + lag];
        for (size_t i = 1; i < lag; i++)
            others += name[i] != name[0];
        if (others && 2 * equal >= period - lag)
            return true;
    }
    return false;
}

/* Whether a period of names [from, end) is a pass through a whole model, by its layers or because
   there are too many for layers. If a model looks its inputs up, each pass would do that, so
   periods without a lookup are layers. */
static bool is_whole_model(const struct sequence *s, size_t from, size_t end, size_t period)
{
    size_t passes = (end - from) / period;

    if (period > LONGEST_PASS || passes < LEAST_PASSES)
        return false;
    for (size_t i = 0; i < s->names.n; i++)
        if (s->b->name_class.at[s->names.at[i]] == RP_NAME_EMBEDDING)
            return false;
    return passes >= MANY_PASSES ||
           has_layers(s->names.at + from + (end - from) / 2 / period * period, period);
}

/* Whether a call waits for the device, and no operator makes it. */
static bool waits_for_device(const struct rp_builder *b, rp_event e)
{
    rp_event around = e;

    if (b->ev.kind.at[e] != RP_KIND_RUNTIME || !rp_step_is_span(b, e) ||
        !strstr(rp_strtab_borrow(&b->str, b->ev.name.at[e]), "Synchronize"))
        return false;
    while (around != RP_NONE && b->ev.kind.at[around] != RP_KIND_CPU_OP)
        around = b->ev.parent.at[around];
    return around == RP_NONE;
}

/* Whether the program waits for nearly each of the periods, which are then no layers. */
static bool is_awaited(const struct sequence *s, size_t from, size_t period)
{
    size_t awaited = 0, next = 0, i, periods = (s->names.n - from) / period;

    for (rp_event e = 0; s->on_device && e < s->b->ev.n; e++) {
        if (!waits_for_device(s->b, e))
            continue;
        int64_t end = rp_build_end_ns(s->b, e);
        RP_LOWER_BOUND(i, s->event.n, s->b->ev.ts_ns.at[s->event.at[i]] <= end);
        if (i <= from || (i - 1 - from) / period < next)
            continue;
        next = (i - 1 - from) / period + 1;
        awaited++;
    }
    return (double)awaited >= AWAITED_SHARE * (double)periods;
}

static bool is_ours(const struct rp_builder *b)
{
    return !strcmp(rp_strtab_borrow(&b->str, b->trace->framework), RP_OUR_FRAMEWORK);
}

static int64_t pause_before(const struct sequence *s, size_t i)
{
    int64_t pause;

    if (__builtin_sub_overflow(s->b->ev.ts_ns.at[s->event.at[i]],
                               rp_build_end_ns(s->b, s->event.at[i - 1]), &pause))
        return 0;
    return pause > 0 ? pause : 0;
}

/* Where the repetition begins to which the middle of the part after `from` belongs; two different
   elements do not end it. */
static size_t first_period(const struct sequence *s, size_t from, size_t period)
{
    size_t first = from + (s->names.n - from - period) / 2, i = first, differ = 0;

    while (i-- && differ <= 2) {
        differ = s->names.at[i] == s->names.at[i + period] ? 0 : differ + 1;
        first = differ ? first : i;
    }
    return first;
}

/* Where a step begins: the position in the period with the longest pauses before it, summed over
 * all periods in [from, end), and of its occurrences the one with the longest pause. On the host
 * possibly no position stands out; then steps begin with the repetition. */
static size_t find_anchor(const struct sequence *s, size_t from, size_t end, size_t period)
{
    int64_t longest = -1, second = 0;
    size_t best = from, start, i;

    from += !from; /* there is no pause before the first */
    for (start = from; start < from + period; start++) {
        int64_t sum = 0;

        for (i = start; i < end; i += period)
            if (__builtin_add_overflow(sum, pause_before(s, i), &sum))
                sum = INT64_MAX;
        second = sum > longest ? longest : sum > second ? sum : second;
        if (sum > longest) {
            longest = sum;
            best = start;
        }
    }
    if (!s->on_device && (longest <= 0 || longest / 2 < second))
        return first_period(s, from, period);
    for (i = best; i + period <= end; i += period)
        if (pause_before(s, i) > pause_before(s, best))
            best = i;
    return best;
}

static bool looks_like(const struct sequence *s, size_t anchor, size_t at, size_t period)
{
    for (size_t k = 0; k < PARTS && k < period && anchor + k < s->names.n; k++)
        if (at + k >= s->names.n || s->names.at[at + k] != s->names.at[anchor + k])
            return false;
    return true;
}

/* The start of a step where one is expected, or close by if a few events were added or are missing,
 * recognised by names. */
static size_t start_near(const struct sequence *s, size_t anchor, size_t expected, size_t period)
{
    for (size_t k = 0; k <= period / ((size_t)2 * PARTS); k++) {
        if (looks_like(s, anchor, expected + k, period))
            return expected + k;
        if (k <= expected && looks_like(s, anchor, expected - k, period))
            return expected - k;
    }
    return expected;
}

/* Whether the elements from `at` up to `next` are those of the anchor's period, compared from the
 * front and from the back so that an additional one in the middle does not matter. */
static bool is_alike(const struct sequence *s, size_t anchor, size_t at, size_t next, size_t period)
{
    const rp_str *name = s->names.at;
    size_t equal = 0, k;

    for (k = 0; k < period; k++) {
        equal += at + k < s->names.n && name[at + k] == name[anchor + k];
        equal +=
            next <= s->names.n && next > k && name[next - 1 - k] == name[anchor + period - 1 - k];
    }
    return 2 * equal >= period;
}

static int64_t last_end(const struct sequence *s, size_t from, size_t to)
{
    int64_t end = s->b->ev.ts_ns.at[s->event.at[from]];

    for (; from < to && from < s->event.n; from++) {
        int64_t mine = rp_build_end_ns(s->b, s->event.at[from]);

        end = mine > end ? mine : end;
    }
    return end;
}

/* Where steps continue after something else, such as an evaluation: within two periods, or a period
 * later for another search. */
static size_t start_again(const struct sequence *s, size_t anchor, size_t at, size_t period)
{
    size_t looks = 0;

    for (size_t k = at + 1; k < at + 2 * period && k + period <= s->names.n && looks < LAGS; k++)
        if (looks_like(s, anchor, k, period)) {
            looks++;
            if (is_alike(s, anchor, k, start_near(s, anchor, k + period, period), period))
                return k;
        }
    return at + period;
}

static enum rp_code cut_steps(struct sequence *s, size_t from, size_t end, size_t period,
                              struct rp_err *err)
{
    size_t anchor = find_anchor(s, from, end, period), at = anchor, next;
    struct rp_step step = rp_step_from(RP_STEP_REPETITION);

    RP_TRY(rp_strtab_intern(&s->b->str, "repetition", 10, &step.name, err));
    while (at >= period) /* back to the first */
        at = start_near(s, anchor, at - period, period);
    for (; at + period <= s->event.n; at = next) {
        next = start_near(s, anchor, at + period, period);
        if (!is_alike(s, anchor, at, next, period)) {
            next = start_again(s, anchor, at, period);
            continue;
        }
        step.flags = s->on_device ? RP_STEP_ON_DEVICE : 0;
        step.number = (int64_t)s->b->steps.n;
        step.begin_ns = s->b->ev.ts_ns.at[s->event.at[at]];
        step.end_ns = next + period <= s->event.n ? s->b->ev.ts_ns.at[s->event.at[next]]
                                                  : last_end(s, at, next);
        if (!s->on_device && next + period <= s->event.n &&
            !is_alike(s, anchor, next, start_near(s, anchor, next + period, period), period)) {
            step.flags |= RP_STEP_BREAK_AFTER;
            step.end_ns = last_end(s, at, next);
        }
        RP_TRY(rp_vec_push(&s->b->steps, step, err));
    }
    return RP_OK;
}

/* If a picture is copied to the host after 25 passes through a model, the repeating sequence is a
   pass; these are the steps. */
static enum rp_code cut_passes(struct sequence *s, size_t from, size_t period, struct rp_err *err)
{
    size_t begin = from + (s->names.n - from) / 2 / period * period, pass = 0, end = s->names.n;

    if (begin + period <= end)
        RP_TRY(rp_steps_find_period(s->names.at + begin, period, &pass, err));
    if (!pass || !is_whole_model(s, begin, begin + period, pass))
        return cut_steps(s, from, end, period, err);
    return cut_steps(s, begin, begin + period, pass, err);
}

/* On the host, models are made first, so the first quarter is skipped, or half, or three quarters.
   A repetition inside of a longer period that was found before is a part of that. */
static enum rp_code find_in(struct sequence *s, struct rp_err *err)
{
    size_t longest = 0;

    for (size_t quarter = s->on_device ? 0 : 1; quarter < (s->on_device ? 1 : PARTS); quarter++) {
        size_t from = s->names.n / PARTS * quarter, period = 0;

        RP_TRY(rp_steps_find_period(s->names.at + from, s->names.n - from, &period, err));
        longest = period > longest ? period : longest;
        if (!period || period != longest)
            continue;
        if (is_whole_step(s, from, period))
            return cut_passes(s, from, period, err);
        if (is_awaited(s, from, period) ||
            (is_ours(s->b) && is_whole_model(s, from, s->names.n, period)))
            return cut_steps(s, from, s->names.n, period, err);
    }
    return RP_OK;
}

RP_ORDER(by_ns, int64_t, RP_COMPARE(*a, *b))

static enum rp_code flag_warm_up(struct rp_builder *b, struct rp_err *err)
{
    RP_VEC(int64_t) ns = {0};
    enum rp_code code = rp_vec_reserve(&ns, b->steps.n + 1, err);

    for (; code == RP_OK && ns.n < b->steps.n; ns.n++)
        ns.at[ns.n] = rp_step_between(b->steps.at[ns.n].begin_ns, b->steps.at[ns.n].end_ns);
    if (ns.n) {
        rp_sort(ns.at, ns.n, sizeof *ns.at, by_ns);
        rp_steps_flag_warm_up(b, ns.at[(ns.n - 1) / 2]);
    }
    rp_vec_release(&ns);
    return code;
}

enum rp_code rp_steps_by_repetition(struct rp_builder *b, struct rp_err *err)
{
    struct sequence s = {.b = b};
    enum rp_code code = take_stream(&s, err);

    s.on_device = s.event.n > 0;
    if (code == RP_OK && !s.on_device)
        code = take_thread(&s, err);
    if (code == RP_OK && s.names.n)
        code = find_in(&s, err);
    if (code == RP_OK)
        code = flag_warm_up(b, err);
    RP_EACH(rp_vec_release, &s.event, &s.names);
    return code;
}
