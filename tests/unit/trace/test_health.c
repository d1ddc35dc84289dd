/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counts of health, of random traces against the definitions written down as plainly as
 * possible: every event compared with every other.
 */
#include "trace_fixtures.h"

enum { MOST = 80 };

/* A trace as text rows: ids are texts here, as the definitions compare them. */
struct plain {
    char phase;
    bool gpu, call, nests, text_pid;
    char pid[8], tid[8], lane[8], flow_id[8];
    const char *category, *name;
    bool has_corr;
    int64_t corr, ts, dur;
};

static bool same_lane(const struct plain *a, const struct plain *b)
{
    return !strcmp(a->pid, b->pid) && !strcmp(a->lane, b->lane);
}

static const struct plain *last_call(const struct plain *p, size_t n, int64_t corr)
{
    while (n-- > 0)
        if (p[n].call && p[n].has_corr && p[n].corr == corr)
            return &p[n];
    return NULL;
}

static size_t gpu_with(const struct plain *p, size_t n, bool has_corr, int64_t corr)
{
    size_t i, count = 0;

    for (i = 0; i < n; i++)
        count += p[i].gpu && p[i].has_corr == has_corr && (!has_corr || p[i].corr == corr);
    return count;
}

/* Whether row i is the first with its correlation (or without one) among device events or calls. */
static bool first_of_corr(const struct plain *p, size_t i, bool gpu)
{
    size_t j;

    for (j = 0; j < i; j++)
        if ((gpu ? p[j].gpu : p[j].call && p[j].has_corr) && p[j].has_corr == p[i].has_corr &&
            (!p[i].has_corr || p[j].corr == p[i].corr))
            return false;
    return true;
}

static void count_launches(const struct plain *p, size_t n, struct rp_health *h)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const struct plain *call = p[i].has_corr ? last_call(p, n, p[i].corr) : NULL;

        if (p[i].gpu) {
            h->gpu_events++;
            h->gpu_without_runtime += !call;
            h->gpu_start_before_launch += call && p[i].ts < call->ts;
            h->zero_dur_gpu += p[i].dur == 0;
            h->ts_zero_gpu += p[i].ts == 0;
            if (first_of_corr(p, i, true))
                h->multi_gpu_per_corr += gpu_with(p, n, p[i].has_corr, p[i].corr) > 1;
        }
        h->runtime_events += p[i].call;
        if (p[i].call && p[i].has_corr && first_of_corr(p, i, false) &&
            gpu_with(p, n, true, p[i].corr) == 0)
            h->launches_without_gpu += strstr(call->name, "Launch") ||
                                       strstr(call->name, "Memcpy") || strstr(call->name, "Memset");
    }
}

static int shorter_first(const void *pa, const void *pb)
{
    const struct plain *a = *(const struct plain *const *)pa, *b = *(const struct plain *const *)pb;

    return a->ts != b->ts ? (a->ts < b->ts ? -1 : 1) : a->dur < b->dur ? -1 : a->dur > b->dur;
}

static int longer_first(const void *pa, const void *pb)
{
    const struct plain *a = *(const struct plain *const *)pa, *b = *(const struct plain *const *)pb;

    return a->ts != b->ts ? (a->ts < b->ts ? -1 : 1) : a->dur > b->dur ? -1 : a->dur < b->dur;
}

static void count_overlaps(const struct plain *const *row, size_t n, struct rp_health *h)
{
    int64_t until = INT64_MIN;
    size_t i;

    for (i = 0; i < n; i++) {
        int64_t end = row[i]->ts + row[i]->dur;

        if (row[i]->ts < until) {
            h->same_stream_overlaps++;
            h->same_stream_overlap_ns += (end < until ? end : until) - row[i]->ts;
        }
        until = end > until ? end : until;
    }
}

static void count_crossings(const struct plain *const *row, size_t n, struct rp_health *h)
{
    int64_t stack[MOST];
    size_t depth = 0, i;

    for (i = 0; i < n; i++) {
        while (depth && stack[depth - 1] <= row[i]->ts)
            depth--;
        h->cpu_not_nested += depth && row[i]->ts + row[i]->dur > stack[depth - 1];
        stack[depth++] = row[i]->ts + row[i]->dur;
    }
}

/* Each lane once: the rows of the lane of its first row. */
static void count_lanes(const struct plain *p, size_t n, bool gpu, struct rp_health *h)
{
    const struct plain *row[MOST];
    size_t i, j, k;

    for (i = 0; i < n; i++) {
        if (gpu ? !p[i].gpu : !p[i].nests)
            continue;
        for (j = 0; j < i; j++)
            if ((gpu ? p[j].gpu : p[j].nests) && same_lane(&p[j], &p[i]))
                break;
        if (j < i)
            continue;
        for (j = i, k = 0; j < n; j++)
            if ((gpu ? p[j].gpu : p[j].nests) && same_lane(&p[j], &p[i]))
                row[k++] = &p[j];
        qsort(row, k, sizeof row[0], gpu ? shorter_first : longer_first);
        if (gpu)
            count_overlaps(row, k, h);
        else
            count_crossings(row, k, h);
    }
}

static bool same_arrow(const struct plain *a, const struct plain *b)
{
    return !strcmp(a->flow_id, b->flow_id) &&
           (a->category == b->category ||
            (a->category && b->category && !strcmp(a->category, b->category)));
}

static size_t lonely(const struct plain *p, size_t n, char phase, char other)
{
    size_t i, j, count = 0;

    for (i = 0; i < n; i++) {
        bool found = p[i].phase != phase;

        for (j = 0; j < n && !found; j++)
            found =
                same_arrow(&p[i], &p[j]) && (p[j].phase == other || (p[j].phase == phase && j < i));
        count += !found;
    }
    return count;
}

static struct rp_health slow_health(const struct plain *p, size_t n)
{
    struct rp_health h = {.events = (int64_t)n};
    size_t i;

    for (i = 0; i < n; i++) {
        h.X += p[i].phase == 'X';
        h.M += p[i].phase == 'M';
        h.flow_s += p[i].phase == 's';
        h.flow_f += p[i].phase == 'f';
        h.instant += p[i].phase == 'i';
        h.counter += p[i].phase == 'C';
        h.string_pid += p[i].text_pid;
    }
    count_launches(p, n, &h);
    count_lanes(p, n, true, &h);
    count_lanes(p, n, false, &h);
    h.flow_s_without_f = (int64_t)lonely(p, n, 's', 'f');
    h.flow_f_without_s = (int64_t)lonely(p, n, 'f', 's');
    return h;
}

static struct plain random_plain(struct random *r)
{
    static const char *const names[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSync",
                                        "hipMemsetAsync"};
    struct plain p = {.phase = "XXXXXXXMisfC"[random_below(r, 12)],
                      .name = names[random_below(r, 4)],
                      .ts = random_below(r, 40),
                      .dur = random_below(r, 12),
                      .corr = random_below(r, 6),
                      .has_corr = random_below(r, 5) != 0,
                      .text_pid = random_below(r, 4) == 0};

    snprintf(p.pid, sizeof p.pid, "%u", random_below(r, 2));
    snprintf(p.tid, sizeof p.tid, "%u", random_below(r, 2));
    snprintf(p.flow_id, sizeof p.flow_id, "%u", random_below(r, 5));
    if (random_below(r, 6) == 0)
        strcpy(p.flow_id, "None");
    strcpy(p.lane, p.tid);
    if (p.phase == 'X') {
        unsigned which = random_below(r, 3);

        p.gpu = which == 0;
        p.call = which == 1;
        p.nests = which != 0;
        p.category = which == 0 ? "kernel" : which == 1 ? "cuda_runtime" : "cpu_op";
        if (p.gpu && random_below(r, 2))
            snprintf(p.lane, sizeof p.lane, "%u", random_below(r, 3));
    } else {
        p.category = random_below(r, 3) ? "ac2g" : random_below(r, 2) ? "" : NULL;
    }
    return p;
}

/* An id as number or as text, as chance has it. */
static rp_str maybe_text(struct rp_builder *b, struct random *r, const char *id)
{
    return random_below(r, 2) ? str_of(b, id) : 0;
}

static void add_plain(struct rp_builder *b, struct random *r, const struct plain *p)
{
    rp_str tid_text = maybe_text(b, r, p->tid), id_text = maybe_text(b, r, p->flow_id);
    struct rp_arg arg = {.key = str_of(b, "stream"), .type = RP_ARG_I64};
    struct rp_raw raw = {.ts_ns = p->ts,
                         .dur_ns = p->phase == 'X' ? p->dur : RP_OPEN_NS,
                         .name = str_of(b, p->name),
                         .has_link = p->has_corr && p->phase == 'X',
                         .link = p->corr,
                         .args = &arg};
    uint32_t process;

    assert_code(
        rp_builder_process(b, atoi(p->pid), p->text_pid ? str_of(b, p->pid) : 0, &process, NULL),
        RP_OK);
    assert_code(rp_builder_track(b, process, atoi(p->tid), tid_text, true, &raw.track, NULL),
                RP_OK);
    raw.origin = origin_of(b, p->phase, p->category);
    if (p->phase == 's' || p->phase == 'f') {
        bool none = !strcmp(p->flow_id, "None");
        struct rp_raw_flow flow = {.ts_ns = p->ts,
                                   .id = none      ? 0
                                         : id_text ? (int64_t)id_text
                                                   : atoi(p->flow_id),
                                   .track = raw.track,
                                   .origin = raw.origin,
                                   .flags = none      ? RP_FLOW_NO_ID
                                            : id_text ? RP_FLOW_ID_TEXT
                                                      : 0};

        assert_code(rp_builder_add_flow(b, &flow, NULL), RP_OK);
        return;
    }
    if (p->gpu && (strcmp(p->lane, p->tid) != 0 || random_below(r, 2))) {
        raw.nargs = 1;
        if (random_below(r, 3)) {
            arg.v.i = atoi(p->lane);
        } else {
            arg.type = RP_ARG_STR;
            arg.v.s = str_of(b, p->lane);
        }
        assert_code(rp_builder_shape(b, &arg, 1, &raw.shape, NULL), RP_OK);
    }
    assert_code(rp_builder_add(b, &raw, NULL), RP_OK);
}

static void test_random_traces(void **state)
{
    struct random r = {5};
    int round;

    UNUSED_STATE(state);
    for (round = 0; round < 3000; round++) {
        struct plain p[MOST];
        size_t n = random_below(&r, MOST), i;
        struct rp_builder *b = build_rows(NULL, 0);
        struct rp_health want;
        struct rp_trace *t;

        for (i = 0; i < n; i++) {
            p[i] = random_plain(&r);
            add_plain(b, &r, &p[i]);
        }
        want = slow_health(p, n);
        t = finish_valid(b);
#define SAME(key, unit, doc)                                                              \
    if (t->health.key != want.key)                                                        \
        fail_msg("round %d: " #key " is %lld, not %lld", round, (long long)t->health.key, \
                 (long long)want.key);
        RP_HEALTH_MAP(SAME)
#undef SAME
        rp_trace_free(t);
    }
}

static void test_bad_times(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "a", 1, 1, 0, -10},
        {'X', "cpu_op", "b", 1, 1, 0, INT64_C(8) * 86400 * 1000000000},
        {'X', "cpu_op", "c", 1, 1, RP_NO_TS, 5},
        {'M', NULL, "m", 1, 1, RP_NO_TS, 0},
        {'X', "kernel", "k", 0, 7, RP_TIME_MAX_NS - 1, INT64_MAX},
        {'X', "kernel", "k", 0, 7, RP_TIME_MAX_NS - 1, INT64_MAX},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->health.negative_dur, 1);
    assert_int_equal(t->health.absurd_dur, 3);
    assert_int_equal(t->health.missing_ts, 1);
    assert_int_equal(t->health.same_stream_overlaps, 1);
    rp_trace_free(t);
}

/* The empty text is a text too. */
static void test_empty_pid(void **state)
{
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_raw raw = {.origin = origin_of(b, 'i', NULL), .dur_ns = RP_OPEN_NS};
    struct rp_trace *t;
    uint32_t process;

    UNUSED_STATE(state);
    assert_code(rp_builder_process(b, RP_ID_EMPTY, 0, &process, NULL), RP_OK);
    assert_code(rp_builder_track(b, process, RP_ID_EMPTY, 0, true, &raw.track, NULL), RP_OK);
    assert_code(rp_builder_add(b, &raw, NULL), RP_OK);
    t = finish_valid(b);
    assert_int_equal(t->health.string_pid, 1);
    rp_trace_free(t);
}

int test_health(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_traces),
        cmocka_unit_test(test_bad_times),
        cmocka_unit_test(test_empty_pid),
    };

    return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
