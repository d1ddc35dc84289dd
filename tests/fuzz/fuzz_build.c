/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder and its passes: every 12 bytes of the input are an event or an arrow. Whatever comes
 * in, the finished trace must be valid, and must come through a native file unharmed.
 */
#include "trace/build/build.h"
#include "trace/rpt/rpt.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *category;
    uint8_t kind, flags;
} categories[] = {
    {"cpu_op", RP_KIND_CPU_OP, RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP},
    {"user_annotation", RP_KIND_ANNOTATION, RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP},
    {"cuda_runtime", RP_KIND_RUNTIME, RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS},
    {"kernel", RP_KIND_KERNEL, RP_ORIGIN_GPU},
    {"gpu_memcpy", RP_KIND_MEMCPY, RP_ORIGIN_GPU},
    {"ac2g", RP_KIND_OTHER, 0},
    {"cuda_sync", RP_KIND_SYNC, 0},
    {NULL, RP_KIND_OTHER, 0},
};

static const char *const names[] = {"",           "ProfilerStep#3", "cudaLaunchKernel",
                                    "gemm",       "adam",           "step 1",
                                    "step 2",     "process_name",   "thread_name",
                                    "ncclKernel", "train_step",     "XLA Modules",
                                    "7",          "None",           "Steps",
                                    "ac2g"};
static const char *const keys[] = {"stream", "External id", "name",     "device",
                                   "run_id", "group_id",    "step_num", "sort_index"};
static const int64_t times[] = {RP_NO_TS, INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX};

#define CHOOSE(list, byte) ((list)[(byte) % (sizeof(list) / sizeof(list)[0])])

struct maker {
    struct rp_builder *b;
    struct rp_err err;
    bool failed;
};

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check(struct maker *m, enum rp_code code)
{
    require(code == RP_OK || code == RP_NOMEM);
    if (code != RP_OK)
        m->failed = true;
}

static rp_str intern(struct maker *m, const char *text)
{
    rp_str s = 0;

    check(m, rp_builder_intern(m->b, text, strlen(text), &s, &m->err));
    return m->failed ? 0 : s;
}

/* A process or thread named by a number, a text or the empty text. */
static void lane_of(struct maker *m, uint8_t byte, rp_track *track)
{
    uint32_t process = 0;
    int64_t id = byte % 4 == 3 ? RP_ID_EMPTY : byte % 4;
    rp_str text = byte & 64 ? intern(m, "1") : 0;

    check(m, rp_builder_process(m->b, byte >> 4 & 3, byte & 128 ? text : 0, &process, &m->err));
    if (!m->failed)
        check(m, rp_builder_track(m->b, process, id, text, byte % 8 != 7, track, &m->err));
}

static uint16_t origin_of(struct maker *m, char phase, uint8_t byte)
{
    struct rp_origin origin = {.phase = phase};
    uint16_t out = 0;

    if (CHOOSE(categories, byte).category) {
        origin.category = intern(m, CHOOSE(categories, byte).category);
        origin.has_category = 1;
    }
    origin.kind = phase == 'M'   ? RP_KIND_METADATA
                  : phase == 'C' ? RP_KIND_COUNTER
                  : phase == 'i' ? RP_KIND_INSTANT
                                 : CHOOSE(categories, byte).kind;
    origin.flags = phase == 'X' ? CHOOSE(categories, byte).flags : 0;
    if (!m->failed)
        check(m, rp_builder_origin(m->b, &origin, &out, &m->err));
    return out;
}

static int64_t time_of(const uint8_t *p)
{
    return p[1] >= 250 ? CHOOSE(times, p[0]) : p[0] + (p[1] << 8);
}

static void add_flow(struct maker *m, const uint8_t *p, char phase)
{
    struct rp_raw_flow flow = {.ts_ns = time_of(p + 4), .id = p[8] % 8, .flags = p[9] % 8};

    flow.name = intern(m, p[3] % 2 ? "ac2g" : "fwdbwd");
    flow.origin = origin_of(m, phase, p[1]);
    lane_of(m, p[2], &flow.track);
    if (flow.flags & RP_FLOW_ID_TEXT)
        flow.id = intern(m, CHOOSE(names, p[8]));
    if (!m->failed)
        check(m, rp_builder_add_flow(m->b, &flow, &m->err));
}

static uint32_t make_args(struct maker *m, const uint8_t *p, struct rp_arg *args)
{
    uint32_t n = p[9] % 6 == 5 ? 300 : p[9] % 6, i;

    for (i = 0; i < n; i++) {
        args[i].key = intern(m, CHOOSE(keys, p[10] + i));
        args[i].type = (p[11] + i / 8) % 4;
        if (args[i].type >= RP_ARG_STR)
            args[i].v.s = intern(m, CHOOSE(names, p[10] + p[11]));
        else
            args[i].v.i = p[11] == 255 ? CHOOSE(times, p[10]) : p[11] / 4;
    }
    return n;
}

static void add_event(struct maker *m, const uint8_t *p, char phase)
{
    bool async = strchr("beSFn", phase) != NULL;
    struct rp_arg args[300];
    struct rp_raw raw = {.ts_ns = time_of(p + 4), .args = args};

    raw.dur_ns = phase == 'X' ? time_of(p + 6) : RP_OPEN_NS;
    raw.name = intern(m, CHOOSE(names, p[3]));
    raw.origin = origin_of(m, phase, p[1]);
    lane_of(m, p[2], &raw.track);
    raw.has_link = p[8] < 128;
    raw.link = p[8] % 16 == 15 ? INT64_MAX : p[8] % 16;
    raw.flags = async && raw.has_link ? RP_EVENT_ASYNC : 0;
    raw.nargs = make_args(m, p, args);
    if (!m->failed)
        check(m, rp_builder_shape(m->b, args, raw.nargs, &raw.shape, &m->err));
    if (!m->failed)
        check(m, rp_builder_add(m->b, &raw, &m->err));
}

static void through_a_file(struct rp_trace *t)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    const char *bytes;
    enum rp_code code;
    size_t n;

    if (rp_out_open_memory(&out, &err) != RP_OK)
        return;
    code = rp_rpt_write(t, out, &err);
    bytes = rp_out_borrow_memory(out, &n);
    if (code == RP_OK && bytes)
        code = rp_rpt_verify((const uint8_t *)bytes, n, &err);
    require(code == RP_OK || code == RP_NOMEM);
    rp_out_abandon(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char phases[] = "XXXXXBEbeSFiCMstfn";
    struct maker m = {.err = RP_ERR_INIT};
    struct rp_trace *t;
    enum rp_code code;

    if (rp_builder_new(NULL, &m.b, &m.err) != RP_OK)
        return 0;
    for (; size >= 12 && !m.failed; data += 12, size -= 12) {
        char phase = phases[data[0] % (sizeof phases - 1)];

        if (strchr("stf", phase))
            add_flow(&m, data, phase);
        else
            add_event(&m, data, phase);
    }
    if (m.failed) {
        rp_builder_free(m.b);
        return 0;
    }
    code = rp_builder_finish(m.b, &t, &m.err);
    require(code == RP_OK || code == RP_NOMEM);
    if (code != RP_OK)
        return 0;
    code = rp_trace_validate(t, &m.err);
    require(code == RP_OK);
    through_a_file(t);
    rp_trace_free(t);
    return 0;
}
