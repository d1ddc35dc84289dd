/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks are found by process, device and number through a small cache, so that an event costs one
 * comparison; names of processes are added at the end, when their ranks are known.
 */
#include "formats/activity/activity.h"

#include "base/each.h"
#include "base/order.h"
#include "trace/merged.h"

#include <stdio.h>

#define PID_STEP     INT64_C(100000)    /* processes of a rank, in a file of several ranks */
#define OTHER_PID    INT64_C(0x1000000) /* no process has such an id, because Linux ends at 2^22 */
#define MOST_DEVICES 65536
#define MOST_RANKS   4096

static const struct {
    uint8_t kind, flags;
    char phase;
    const char *category;
} kinds[RP_ACTIVITY_KINDS] = {
    [RP_ACTIVITY_KERNEL] = {RP_KIND_KERNEL, RP_ORIGIN_GPU, 'X', "kernel"},
    [RP_ACTIVITY_MEMCPY] = {RP_KIND_MEMCPY, RP_ORIGIN_GPU, 'X', "gpu_memcpy"},
    [RP_ACTIVITY_MEMSET] = {RP_KIND_MEMSET, RP_ORIGIN_GPU, 'X', "gpu_memset"},
    [RP_ACTIVITY_SYNC] = {RP_KIND_SYNC, 0, 'X', "cuda_sync"},
    [RP_ACTIVITY_GRAPH] = {RP_KIND_KERNEL, RP_ORIGIN_GPU, 'X', "kernel"},
    [RP_ACTIVITY_RUNTIME] = {RP_KIND_RUNTIME, RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS, 'X',
                             "cuda_runtime"},
    [RP_ACTIVITY_DRIVER] = {RP_KIND_RUNTIME, RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS, 'X',
                            "cuda_driver"},
    [RP_ACTIVITY_OPERATOR] = {RP_KIND_CPU_OP, RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP, 'X',
                              "cpu_op"},
    [RP_ACTIVITY_ANNOTATION] = {RP_KIND_ANNOTATION, RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP, 'X',
                                "user_annotation"},
    [RP_ACTIVITY_COLLECTIVE] = {RP_KIND_COMM_OP, RP_ORIGIN_NESTS, 'X', "collective_comm"},
    [RP_ACTIVITY_WAIT] = {RP_KIND_WAIT, RP_ORIGIN_NESTS, 'X', "blocking"},
    [RP_ACTIVITY_CALL] = {RP_KIND_OTHER, RP_ORIGIN_NESTS, 'X', "call"},
    [RP_ACTIVITY_OVERHEAD] = {RP_KIND_OVERHEAD, 0, 'X', "overhead"},
    [RP_ACTIVITY_MARK] = {RP_KIND_INSTANT, RP_ORIGIN_SCOPE_THREAD, 'i', "mark"},
    [RP_ACTIVITY_SAMPLE] = {RP_KIND_INSTANT, RP_ORIGIN_SCOPE_THREAD, 'i', "cpu_sample"},
    [RP_ACTIVITY_COUNTER] = {RP_KIND_COUNTER, 0, 'C', "counter"},
};

struct rp_activity_pid {
    uint32_t index; /* of the rank */
    int64_t pid;
};

enum rp_code rp_activity_init(struct rp_activity *a, struct rp_input *in,
                              const struct rp_read_options *options, const char *format,
                              struct rp_err *err)
{
    memset(a, 0, sizeof *a);
    a->first_ns = INT64_MAX;
    a->last_ns = INT64_MIN;
    RP_TRY(rp_proto_trace_init(&a->t, in, options, format, err));
    for (int i = 0; i < RP_ACTIVITY_KINDS; i++) {
        struct rp_origin o = {.phase = kinds[i].phase,
                              .kind = kinds[i].kind,
                              .flags = kinds[i].flags,
                              .has_category = 1};

        RP_TRY(rp_proto_trace_text(&a->t, kinds[i].category, &o.category, err));
        RP_TRY(rp_builder_origin(a->t.builder, &o, &a->origin[i][0], err));
        o.phase = 'B';
        RP_TRY(rp_builder_origin(a->t.builder, &o, &a->origin[i][1], err));
    }
    a->t.trace->rank = RP_NO_RANK;
    return RP_OK;
}

void rp_activity_release(struct rp_activity *a)
{
    rp_proto_trace_release(&a->t);
    RP_EACH(rp_vec_release, &a->processes, &a->places, &a->pids, &a->ranks);
    RP_EACH(rp_map_release, &a->by_key, &a->place_of, &a->number_of, &a->track_of, &a->named,
            &a->used);
}

/* ------------------------------------------------------------------ processes */

static enum rp_code find_process(struct rp_activity *a, uint64_t key, uint32_t *out,
                                 struct rp_err *err)
{
    uint32_t fresh = (uint32_t)a->processes.n;
    struct rp_activity_process p = {.key = key,
                                    .pid = (int64_t)(key & 0xffffff),
                                    .rank = RP_NO_RANK,
                                    .device = INT64_MAX,
                                    .index = RP_NONE};

    RP_TRY(rp_map_intern(&a->by_key, key, fresh, out, err));
    return *out == fresh ? rp_vec_push(&a->processes, p, err) : RP_OK;
}

enum rp_code rp_activity_process(struct rp_activity *a, uint64_t key, int64_t pid, rp_str name,
                                 struct rp_err *err)
{
    uint32_t i;

    RP_TRY(find_process(a, key, &i, err));
    if (pid)
        a->processes.at[i].pid = pid;
    if (name)
        a->processes.at[i].name = name;
    return RP_OK;
}

enum rp_code rp_activity_set_rank(struct rp_activity *a, uint64_t key, int64_t rank, int64_t world,
                                  struct rp_err *err)
{
    uint32_t i;

    RP_TRY(find_process(a, key, &i, err));
    struct rp_activity_process *p = &a->processes.at[i];
    if (rank >= 0 && rank < world && world <= INT32_MAX && world > p->world) {
        p->rank = rank;
        p->world = world;
    }
    return RP_OK;
}

enum rp_code rp_activity_add_rank(struct rp_activity *a, uint64_t key, int64_t device,
                                  struct rp_err *err)
{
    uint32_t i;

    RP_TRY(find_process(a, key, &i, err));
    struct rp_activity_process *p = &a->processes.at[i];
    p->device = device < p->device ? device : p->device;
    if (p->index != RP_NONE)
        return RP_OK;
    if (a->nranks >= MOST_RANKS)
        return rp_err_set(err, RP_LIMIT, "more than %d processes with device work", MOST_RANKS);
    p->index = a->nranks++;
    return RP_OK;
}

RP_ORDER(by_device, struct rp_activity_process, RP_UP(device), RP_UP(pid), RP_UP(key))

enum rp_code rp_activity_order_ranks(struct rp_activity *a, struct rp_err *err)
{
    rp_sort(a->processes.at, a->processes.n, sizeof *a->processes.at, by_device);
    for (uint32_t i = 0; i < a->processes.n; i++) {
        struct rp_activity_process *p = &a->processes.at[i];

        RP_TRY(rp_map_put(&a->by_key, p->key, i, err));
        if (p->index == RP_NONE)
            continue;
        p->index = (uint32_t)a->ranks.n;
        RP_TRY(rp_vec_push(&a->ranks, i, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ tracks */

static uint32_t index_of(const struct rp_activity *a, uint32_t process)
{
    uint32_t index = a->processes.at[process].index;

    return index == RP_NONE ? 0 : index;
}

/* Finds the process of the trace for a process of the file, or for its device, whose id is its
   number, as in PyTorch's traces; if two would have the same id, the second gets another one. In a
   file of several ranks the ids of processes are moved apart, as in a merged trace. */
static enum rp_code find_place(struct rp_activity *a, uint32_t process, int64_t device,
                               uint32_t *out, struct rp_err *err)
{
    struct rp_activity_place place = {.process = process, .device = device, .track = RP_NONE};
    struct rp_activity_pid pid = {.index = index_of(a, process)};
    uint32_t fresh = (uint32_t)a->places.n, taken, *k;

    RP_TRY(rp_map_intern(&a->place_of, (uint64_t)process << 32 | (uint64_t)(device + 1), fresh, out,
                         err));
    if (*out != fresh)
        return RP_OK;
    pid.pid = device < 0 ? a->processes.at[process].pid : device;
    RP_TRY(rp_map_intern(&a->used, rp_hash_join(pid.index, (uint64_t)pid.pid), fresh, &taken, err));
    pid.pid += taken == fresh ? 0 : OTHER_PID;
    int64_t id = pid.pid;
    if (a->nranks > 1) {
        k = &a->processes.at[a->ranks.at[pid.index]].nplaces;
        if (a->pids.n >= PID_STEP)
            return rp_err_set(err, RP_LIMIT, "more than %lld processes", (long long)PID_STEP);
        a->others += device < 0 && a->processes.at[process].index == RP_NONE;
        id = pid.index * PID_STEP + (*k)++;
    }
    RP_TRY(rp_vec_push(&a->pids, pid, err));
    RP_TRY(rp_builder_process(a->t.builder, id, 0, &place.id, err));
    return rp_vec_push(&a->places, place, err);
}

static enum rp_code open_track(struct rp_activity *a, uint32_t place, int64_t track, rp_track *out,
                               struct rp_err *err)
{
    uint32_t number, found;

    RP_TRY(rp_map_intern(&a->number_of, (uint64_t)track, a->nnumbers, &number, err));
    a->nnumbers += number == a->nnumbers;
    found = rp_map_get(&a->track_of, (uint64_t)place << 32 | number);
    if (found == RP_MAP_NONE) {
        RP_TRY(rp_builder_track(a->t.builder, a->places.at[place].id, track, 0, true, &found, err));
        RP_TRY(rp_map_put(&a->track_of, (uint64_t)place << 32 | number, found, err));
        a->places.at[place].track = found;
    }
    *out = found;
    return RP_OK;
}

static enum rp_code find_track(struct rp_activity *a, uint64_t process, int64_t device,
                               int64_t track, rp_track *out, uint32_t *index, struct rp_err *err)
{
    size_t slot = rp_hash_join(rp_hash_join(process, (uint64_t)device), (uint64_t)track) %
                  (sizeof a->cache / sizeof *a->cache);
    uint32_t p, place;

    if (!a->cache[slot].set || a->cache[slot].process != process ||
        a->cache[slot].device != device || a->cache[slot].track != track) {
        RP_TRY(find_process(a, process, &p, err));
        RP_TRY(find_place(a, p, device < MOST_DEVICES ? device : MOST_DEVICES, &place, err));
        RP_TRY(open_track(a, place, track, &a->cache[slot].found, err));
        a->cache[slot].process = process;
        a->cache[slot].device = device;
        a->cache[slot].track = track;
        a->cache[slot].index = index_of(a, p);
        a->cache[slot].set = true;
    }
    *out = a->cache[slot].found;
    *index = a->cache[slot].index;
    return RP_OK;
}

bool rp_activity_has_track(const struct rp_activity *a, uint64_t process, int64_t device,
                           int64_t track)
{
    uint32_t p = rp_map_get(&a->by_key, process), place, number;

    if (p == RP_MAP_NONE)
        return false;
    place = rp_map_get(&a->place_of, (uint64_t)p << 32 | (uint64_t)(device + 1));
    number = rp_map_get(&a->number_of, (uint64_t)track);
    return place != RP_MAP_NONE && number != RP_MAP_NONE &&
           rp_map_get(&a->track_of, (uint64_t)place << 32 | number) != RP_MAP_NONE;
}

enum rp_code rp_activity_name_track(struct rp_activity *a, uint64_t process, int64_t device,
                                    int64_t track, rp_str name, struct rp_err *err)
{
    rp_track found;
    uint32_t index;

    RP_TRY(find_track(a, process, device, track, &found, &index, err));
    if (rp_map_get(&a->named, found) != RP_MAP_NONE || !name)
        return RP_OK;
    RP_TRY(rp_map_put(&a->named, found, 1, err));
    return rp_proto_trace_name(&a->t, found, false, name, err);
}

/* ------------------------------------------------------------------ events */

enum rp_code rp_activity_int(struct rp_activity *a, struct rp_activity_event *e, const char *key,
                             int64_t value, struct rp_err *err)
{
    struct rp_arg *arg = &e->args[e->nargs];

    if (e->nargs >= RP_ACTIVITY_ARGS)
        return RP_OK;
    e->nargs++;
    *arg = (struct rp_arg){.type = RP_ARG_I64, .v.i = value};
    return rp_proto_trace_word(&a->t, key, &arg->key, err);
}

enum rp_code rp_activity_real(struct rp_activity *a, struct rp_activity_event *e, const char *key,
                              double value, struct rp_err *err)
{
    RP_TRY(rp_activity_int(a, e, key, 0, err));
    e->args[e->nargs - 1].type = RP_ARG_F64;
    e->args[e->nargs - 1].v.f = value;
    return RP_OK;
}

enum rp_code rp_activity_text(struct rp_activity *a, struct rp_activity_event *e, const char *key,
                              rp_str value, struct rp_err *err)
{
    RP_TRY(rp_activity_int(a, e, key, 0, err));
    e->args[e->nargs - 1] =
        (struct rp_arg){.key = e->args[e->nargs - 1].key, .type = RP_ARG_STR, .v.s = value};
    return RP_OK;
}

enum rp_code rp_activity_dims(struct rp_activity *a, struct rp_activity_event *e, const char *key,
                              const int64_t xyz[3], struct rp_err *err)
{
    uint64_t hash = rp_hash_bytes(xyz, 3 * sizeof *xyz);
    size_t slot = hash % (sizeof a->dims / sizeof *a->dims);
    char text[80];

    if (!a->dims[slot].set || memcmp(a->dims[slot].xyz, xyz, 3 * sizeof *xyz) != 0) {
        int n = snprintf(text, sizeof text, "[%lld, %lld, %lld]", (long long)xyz[0],
                         (long long)xyz[1], (long long)xyz[2]);
        RP_TRY(rp_builder_intern(a->t.builder, text, (size_t)n, &a->dims[slot].text, err));
        memcpy(a->dims[slot].xyz, xyz, 3 * sizeof *xyz);
        a->dims[slot].set = true;
    }
    RP_TRY(rp_activity_text(a, e, key, a->dims[slot].text, err));
    e->args[e->nargs - 1].type = RP_ARG_RAW;
    return RP_OK;
}

enum rp_code rp_activity_intern(struct rp_activity *a, const char *text, size_t n, rp_str *out,
                                struct rp_err *err)
{
    struct rp_bytes bytes = {(const uint8_t *)text, n};

    if (n > a->t.limits.token_bytes)
        return rp_err_set(err, RP_LIMIT, "a text of %zu bytes exceeds the limit of %llu", n,
                          (unsigned long long)a->t.limits.token_bytes);
    return rp_proto_trace_intern(&a->t, bytes, out, err);
}

enum rp_code rp_activity_add(struct rp_activity *a, struct rp_activity_event *e, struct rp_err *err)
{
    struct rp_raw raw = {.name = e->name, .origin = a->origin[e->kind][0]};
    uint32_t index;

    RP_TRY(find_track(a, e->process, e->device < 0 ? RP_ACTIVITY_HOST : e->device, e->track,
                      &raw.track, &index, err));

    /* Adds device, stream and correlation as the passes and questions look for them. */
    if (e->nargs > RP_ACTIVITY_ARGS - 4)
        e->nargs = RP_ACTIVITY_ARGS - 4;
    if (e->device != RP_ACTIVITY_HOST && e->kind != RP_ACTIVITY_COUNTER) {
        RP_TRY(rp_activity_int(a, e, "device", e->device, err));
        RP_TRY(rp_activity_int(a, e, "stream", e->track, err));
    }
    if (e->waits_for > 0 && e->waits_for < RP_MERGED_ID_STEP)
        RP_TRY(rp_activity_int(a, e, "wait_on_cuda_event_record_corr_id",
                               e->waits_for + (int64_t)index * RP_MERGED_ID_STEP, err));
    if (e->correlation > 0 && e->correlation < RP_MERGED_ID_STEP) {
        raw.has_link = true;
        raw.link = e->correlation + (int64_t)index * RP_MERGED_ID_STEP;
        RP_TRY(rp_activity_int(a, e, "correlation", raw.link, err));
    }

    /* The times; a span may have no end, or end before its begin. */
    raw.ts_ns = rp_proto_trace_clamp(&a->t, e->begin_ns);
    raw.dur_ns = RP_OPEN_NS;
    if (kinds[e->kind].phase == 'X' && e->end_ns == RP_ACTIVITY_NO_END)
        raw.origin = a->origin[e->kind][1];
    else if (kinds[e->kind].phase == 'X')
        raw.dur_ns = rp_proto_trace_clamp(&a->t, e->end_ns) - raw.ts_ns;
    if (raw.dur_ns < RP_OPEN_NS) {
        a->t.health->negative_dur++;
        raw.dur_ns = 0;
    }
    a->first_ns = raw.ts_ns < a->first_ns ? raw.ts_ns : a->first_ns;
    a->last_ns = raw.ts_ns > a->last_ns ? raw.ts_ns : a->last_ns;
    raw.args = e->args;
    raw.nargs = e->nargs;
    if (e->nargs)
        RP_TRY(rp_builder_shape(a->t.builder, e->args, e->nargs, &raw.shape, err));
    a->t.nevents++;
    return rp_builder_add(a->t.builder, &raw, err);
}

void rp_activity_skip(struct rp_activity *a, const char *where, uint64_t row)
{
    if (!a->skipped++)
        snprintf(a->first_skipped, sizeof a->first_skipped, "row %llu of '%.100s'",
                 (unsigned long long)row, where ? where : "");
}

/* ------------------------------------------------------------------ names of calls */

size_t rp_activity_plain_call(const char *name, size_t n)
{
    size_t i = n;

    while (i && name[i - 1] >= '0' && name[i - 1] <= '9')
        i--;
    return i < n && i > 2 && name[i - 1] == 'v' && name[i - 2] == '_' ? i - 2 : n;
}

enum rp_activity_kind rp_activity_call_kind(const char *name, size_t n)
{
    static const char *const waits[] = {"poll",
                                        "ppoll",
                                        "select",
                                        "pselect",
                                        "epoll_",
                                        "sem_wait",
                                        "sem_timedwait",
                                        "sem_clockwait",
                                        "pthread_cond_",
                                        "pthread_mutex_lock",
                                        "pthread_mutex_timedlock",
                                        "pthread_rwlock_",
                                        "pthread_join",
                                        "pthread_barrier_wait",
                                        "nanosleep",
                                        "clock_nanosleep",
                                        "usleep",
                                        "sleep",
                                        "futex",
                                        "wait",
                                        "sigwait",
                                        "sigtimedwait",
                                        "accept",
                                        "recv",
                                        "read",
                                        "pread",
                                        "flock",
                                        "msgrcv",
                                        "semop",
                                        "semtimedop",
                                        "pause"};

    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        size_t len = strlen(waits[i]);

        if (n >= len && !memcmp(name, waits[i], len) &&
            (n == len || waits[i][len - 1] == '_' || name[len] < 'a' || len < 6))
            return RP_ACTIVITY_WAIT;
    }
    return RP_ACTIVITY_CALL;
}

const char *rp_activity_collective(const char *name)
{
    static const char *const calls[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                        "Bcast",     "Reduce",    "AlltoAll",      "AllToAll",
                                        "Gather",    "Scatter",   "Send",          "Recv"};

    if (strncmp(name, "nccl", 4) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(name + 4, calls[i]))
            return calls[i];
    return NULL;
}

/* ------------------------------------------------------------------ the end */

/* Whether the file itself gives each rank a different number. */
static enum rp_code ranks_are_numbered(const struct rp_activity *a, bool *out, struct rp_err *err)
{
    RP_SCOPED(rp_map_release) struct rp_map seen = {0};
    uint32_t first;

    *out = true;
    for (uint32_t i = 0; *out && i < a->ranks.n; i++) {
        const struct rp_activity_process *p = &a->processes.at[a->ranks.at[i]];

        *out = p->rank != RP_NO_RANK;
        RP_TRY(rp_map_intern(&seen, (uint64_t)p->rank, i, &first, err));
        *out = *out && first == i;
    }
    return RP_OK;
}

static void put_rank(struct rp_activity *a, struct rp_emit *e, const struct rp_activity_process *p,
                     int64_t rank, int64_t world)
{
    bool any = false;

    rp_emit_text(e, p->index ? ",{\"rank\":" : "[{\"rank\":");
    rp_emit_i64(e, rank);
    rp_emit_text(e, ",\"world_size\":");
    rp_emit_i64(e, world);
    rp_emit_text(e, ",\"label\":\"rank ");
    rp_emit_i64(e, rank);
    rp_emit_text(e, "\",\"first_pid\":");
    rp_emit_i64(e, p->index * PID_STEP);
    rp_emit_text(e, ",\"pids\":[");
    for (size_t i = 0; i < a->pids.n; i++)
        if (a->pids.at[i].index == p->index) {
            if (any)
                rp_emit_char(e, ',');
            rp_emit_i64(e, a->pids.at[i].pid);
            any = true;
        }
    rp_emit_text(e, "]}");
}

static enum rp_code name_ranks(struct rp_activity *a, struct rp_err *err)
{
    bool numbered;

    RP_TRY(ranks_are_numbered(a, &numbered, err));
    for (size_t i = 0; i < a->places.n; i++) {
        const struct rp_activity_place *place = &a->places.at[i];
        uint32_t index = index_of(a, place->process);
        int64_t rank = numbered && a->nranks > 1 ? a->processes.at[a->ranks.at[index]].rank : index;

        /* "python (rank 3)", "GPU 0 (rank 3)" */
        const struct rp_activity_process *p = &a->processes.at[place->process];
        const char *own = rp_builder_borrow_str(a->t.builder, p->name, NULL);
        char name[300], text[340];
        rp_str id;
        if (place->track == RP_NONE)
            continue;
        if (place->device >= 0)
            snprintf(name, sizeof name, "GPU %lld", (long long)place->device);
        else
            snprintf(name, sizeof name, "%.250s", own);
        if (a->nranks > 1)
            snprintf(text, sizeof text, *name ? "%s (rank %lld)" : "%srank %lld", name,
                     (long long)rank);
        else
            snprintf(text, sizeof text, "%s", name);
        if (!*text)
            continue;
        RP_TRY(rp_proto_trace_text(&a->t, text, &id, err));
        RP_TRY(rp_proto_trace_name(&a->t, place->track, true, id, err));
    }
    if (a->nranks > 1) {
        /* Writes the records that describe the ranks of a merged trace. */
        RP_SCOPED(rp_emit_abandon) struct rp_emit e = {0};
        RP_TRY(rp_emit_open_memory(&e, err));
        for (uint32_t i = 0; i < a->ranks.n; i++) {
            const struct rp_activity_process *p = &a->processes.at[a->ranks.at[i]];
            put_rank(a, &e, p, numbered ? p->rank : i, p->world ? p->world : a->nranks);
        }
        rp_emit_char(&e, ']');
        return rp_proto_trace_meta(&a->t, RP_MERGED_KEY, &e, err);
    }
    if (a->ranks.n && a->processes.at[a->ranks.at[0]].rank != RP_NO_RANK) {
        a->t.trace->rank = (int32_t)a->processes.at[a->ranks.at[0]].rank;
        a->t.trace->world_size = (int32_t)a->processes.at[a->ranks.at[0]].world;
    }
    return RP_OK;
}

enum rp_code rp_activity_finish(struct rp_activity *a, struct rp_import *to, int64_t begin_ns,
                                struct rp_err *err)
{
    RP_TRY(name_ranks(a, err));
    if (a->skipped) {
        a->t.health->skipped_events += (int64_t)a->skipped;
        RP_TRY(rp_builder_warn(
            a->t.builder, err, "%llu row%s skipped for want of usable times; the first is %s",
            (unsigned long long)a->skipped, a->skipped == 1 ? " was" : "s were", a->first_skipped));
    }
    if (a->others)
        RP_TRY(rp_builder_warn(a->t.builder, err,
                               "%u processes without device work belong to no known rank: their "
                               "calls are shown with the first",
                               a->others));
    return rp_proto_trace_finish(&a->t, to, begin_ns, err);
}
