/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counts of health that need the events in the order of the file: phases (before `pairs`
 * removes end events) and launches; if several runtime calls have one correlation id, the last one
 * in the file counts. Linear; docs/definitions.md says what each counter means.
 */
#include "base/each.h"
#include "base/filled.h"
#include "trace/build/dense_ids.h"
#include "trace/build/state.h"
#include "trace/device_calls.h"
#include "trace/finish/finish.h"

#define DAYS_NS(n) ((int64_t)(n)*86400 * 1000000000)

static void count_phase(struct rp_health *h, char phase, int64_t n)
{
    switch (phase) {
    case 'X':
        h->X += n;
        break;
    case 'M':
        h->M += n;
        break;
    case 's':
        h->flow_s += n;
        break;
    case 'f':
        h->flow_f += n;
        break;
    case 'i':
        h->instant += n;
        break;
    case 'C':
        h->counter += n;
        break;
    default:
        break;
    }
}

/* Keeps the larger count: the reader may have counted what it repaired. */
static void at_least(int64_t *counter, int64_t seen)
{
    if (*counter < seen)
        *counter = seen;
}

struct tally {
    RP_VEC(uint32_t) origin, track; /* events of each */
};

/* Moves a time into the range of the model; true if that was needed. */
static bool clamp_time(int64_t *ts)
{
    if (*ts == RP_NO_TS || (*ts >= -RP_TIME_MAX_NS && *ts <= RP_TIME_MAX_NS))
        return false;
    *ts = *ts < 0 ? -RP_TIME_MAX_NS : RP_TIME_MAX_NS;
    return true;
}

/* The same for an event and its end; an event with a duration keeps some of it. A reader may have
   moved the time to the end of the range, and counted that. */
static bool clamp_event(int64_t *ts, int64_t *dur)
{
    bool moved = clamp_time(ts);
    int64_t room = RP_TIME_MAX_NS - (*ts == RP_NO_TS ? 0 : *ts);

    if (*dur <= room)
        return moved;
    *dur = room ? room : 1;
    *ts -= !room;
    return moved || room;
}

/* One pass for everything that is counted event by event, and for times outside of the range. */
static void count_events(struct rp_builder *b, struct tally *w)
{
    struct rp_health *h = &b->trace->health;
    int64_t no_ts = 0, no_dur = 0, negative = 0, absurd = 0;

    for (uint32_t i = 0; i < b->ev.n; i++) {
        int64_t dur = b->ev.dur_ns.at[i];

        absurd += dur > DAYS_NS(7);
        h->huge_time += clamp_event(&b->ev.ts_ns.at[i], &b->ev.dur_ns.at[i]);
        w->origin.at[b->ev.origin.at[i]]++;
        w->track.at[b->ev.track.at[i]]++;
        no_ts += b->ev.ts_ns.at[i] == RP_NO_TS && rp_build_origin_of(b, i)->phase != 'M';
        no_dur += (b->ev.flags.at[i] & RP_EVENT_NO_DUR) != 0;
        negative += dur < RP_OPEN_NS;
    }
    for (uint32_t i = 0; i < b->flows.n; i++) {
        h->huge_time += clamp_time(&b->flows.ts_ns.at[i]);
        w->origin.at[b->flows.origin.at[i]]++;
        w->track.at[b->flows.track.at[i]]++;
    }
    for (size_t i = 0; i < b->samples.ts_ns.n; i++)
        h->huge_time += clamp_time(&b->samples.ts_ns.at[i]);
    at_least(&h->missing_ts, no_ts);
    at_least(&h->missing_dur, no_dur);
    at_least(&h->negative_dur, negative);
    at_least(&h->absurd_dur, absurd);
}

static void sum_up(struct rp_builder *b, const struct tally *w)
{
    struct rp_health *h = &b->trace->health;

    h->events = (int64_t)b->ev.n + b->flows.n + h->skipped_events + h->empty_events;
    h->X = h->M = h->flow_s = h->flow_f = h->instant = h->counter = h->string_pid = 0;
    for (size_t i = 0; i < b->origins.n; i++)
        count_phase(h, b->origins.at[i].phase, w->origin.at[i]);
    for (size_t i = 0; i < b->tracks.n; i++) {
        const struct rp_process *p = &b->processes.at[b->tracks.at[i].process];

        if (p->text || p->native_id == RP_ID_EMPTY)
            h->string_pid += w->track.at[i];
    }
}

static enum rp_code count_plainly(struct rp_builder *b, struct rp_err *err)
{
    struct tally w = {0};
    enum rp_code code = rp_vec_zeros(&w.origin, b->origins.n, err);

    if (code == RP_OK)
        code = rp_vec_zeros(&w.track, b->tracks.n, err);
    if (code == RP_OK) {
        count_events(b, &w);
        sum_up(b, &w);
    }
    RP_EACH(rp_vec_release, &w.origin, &w.track);
    return code;
}

struct launches {               /* by correlation number */
    RP_VEC(uint32_t) last_call; /* the last runtime call in the file, or RP_NONE */
    RP_VEC(uint32_t) ngpu;
    RP_VEC(uint8_t) is_launch; /* by name: 0 not known yet, 1 no, 2 yes */
    int64_t gpu_without_id;
};

static enum rp_code collect_launches(struct rp_builder *b, struct launches *w, struct rp_err *err)
{
    size_t n = b->links.ncorrelation;
    struct rp_health *h = &b->trace->health;

    RP_TRY(rp_vec_nones(&w->last_call, n, err));
    RP_TRY(rp_vec_zeros(&w->ngpu, n, err));
    RP_TRY(rp_vec_zeros(&w->is_launch, b->str.n, err));
    h->gpu_events = h->runtime_events = h->zero_dur_gpu = h->ts_zero_gpu = 0;
    for (uint32_t i = 0; i < b->ev.n; i++) {
        unsigned flags = rp_build_origin_of(b, i)->flags;
        uint32_t link = b->ev.link.at[i] < n ? b->ev.link.at[i] : RP_NONE;

        if (flags & RP_ORIGIN_GPU) {
            h->gpu_events++;
            h->zero_dur_gpu += b->ev.dur_ns.at[i] == 0;
            h->ts_zero_gpu += b->ev.ts_ns.at[i] == 0;
            if (link == RP_NONE)
                w->gpu_without_id++;
            else
                w->ngpu.at[link]++;
        } else if (flags & RP_ORIGIN_RUNTIME) {
            h->runtime_events++;
            if (link != RP_NONE)
                w->last_call.at[link] = i;
        }
    }
    return RP_OK;
}

static bool names_launch(const struct rp_builder *b, struct launches *w, rp_str name)
{
    uint8_t *known = &w->is_launch.at[name];

    if (*known == 0) {
        *known = rp_device_call_does(rp_strtab_borrow(&b->str, name)) & RP_DOES_WORK ? 2 : 1;
    }
    return *known == 2;
}

static void judge_launches(struct rp_builder *b, struct launches *w)
{
    struct rp_health *h = &b->trace->health;
    uint32_t n = b->links.ncorrelation, i;

    h->gpu_without_runtime = w->gpu_without_id;
    h->multi_gpu_per_corr = w->gpu_without_id > 1;
    h->launches_without_gpu = h->gpu_start_before_launch = 0;
    for (i = 0; i < n; i++) {
        uint32_t call = w->last_call.at[i];

        h->multi_gpu_per_corr += w->ngpu.at[i] > 1;
        if (call == RP_NONE)
            h->gpu_without_runtime += w->ngpu.at[i];
        else if (w->ngpu.at[i] == 0)
            h->launches_without_gpu += names_launch(b, w, b->ev.name.at[call]);
    }
    for (i = 0; i < b->ev.n; i++) {
        uint32_t link = b->ev.link.at[i];

        if (link < n && (rp_build_origin_of(b, i)->flags & RP_ORIGIN_GPU) &&
            w->last_call.at[link] != RP_NONE)
            h->gpu_start_before_launch += b->ev.ts_ns.at[i] < b->ev.ts_ns.at[w->last_call.at[link]];
    }
}

static enum rp_code count_launches(struct rp_builder *b, struct rp_err *err)
{
    struct launches w = {0};
    enum rp_code code = collect_launches(b, &w, err);

    if (code == RP_OK)
        judge_launches(b, &w);
    RP_EACH(rp_vec_release, &w.last_call, &w.ngpu, &w.is_launch);
    return code;
}

static struct rp_plain_id flow_id(const struct rp_builder *b, uint32_t i)
{
    if (b->flows.flags.at[i] & RP_FLOW_NO_ID)
        return rp_plain_none(&b->str);
    if (b->flows.flags.at[i] & RP_FLOW_ID_TEXT)
        return rp_plain_text(&b->str, (uint32_t)b->flows.id.at[i]);
    return rp_plain_number(b->flows.id.at[i]);
}

struct arrows {
    rp_id_vec id;
    RP_VEC(uint32_t) dense;
    RP_VEC(uint64_t)
    key, tmp; /* a key of: id, whether it is a text, category, whether it is an end */
    rp_row_vec category;
};

static enum rp_code make_arrow_keys(const struct rp_builder *b, struct arrows *w,
                                    struct rp_err *err)
{
    uint32_t i, n;

    RP_TRY(rp_vec_reserve(&w->id, b->flows.n, err));
    RP_TRY(rp_vec_reserve(&w->dense, b->flows.n, err));
    RP_TRY(rp_vec_reserve(&w->key, b->flows.n, err));
    RP_TRY(rp_vec_reserve(&w->tmp, b->flows.n, err));
    RP_TRY(rp_build_categories(b, &w->category, err));
    for (i = 0; i < b->flows.n; i++)
        w->id.at[i] = flow_id(b, i).value;
    RP_TRY(rp_dense_ids(w->id.at, b->flows.n, w->dense.at, &n, err));
    for (i = 0; i < b->flows.n; i++) {
        uint16_t origin = b->flows.origin.at[i];
        char phase = b->origins.at[origin].phase;

        if (phase == 's' || phase == 'f')
            w->key.at[w->key.n++] = (uint64_t)w->dense.at[i] << 18 |
                                    (uint64_t)flow_id(b, i).is_text << 17 |
                                    (uint64_t)w->category.at[origin] << 1 | (phase == 'f');
    }
    return RP_OK;
}

static void count_lonely(struct rp_health *h, const uint64_t *key, size_t n)
{
    size_t i, end;

    h->flow_s_without_f = h->flow_f_without_s = 0;
    for (i = 0; i < n; i = end) {
        for (end = i + 1; end < n && key[end] >> 1 == key[i] >> 1; end++)
            ;
        h->flow_s_without_f += !(key[end - 1] & 1);
        h->flow_f_without_s += key[i] & 1;
    }
}

enum rp_code rp_pass_counts(struct rp_builder *b, struct rp_err *err)
{
    RP_TRY(count_plainly(b, err));
    RP_TRY(count_launches(b, err));

    struct arrows w = {0};
    if (b->flows.n == 0)
        return RP_OK;
    enum rp_code code = make_arrow_keys(b, &w, err);
    if (code == RP_OK)
        count_lonely(&b->trace->health, rp_radix_sort(w.key.at, w.tmp.at, w.key.n, 0), w.key.n);
    RP_EACH(rp_vec_release, &w.id, &w.dense, &w.key, &w.tmp, &w.category);
    return code;
}
