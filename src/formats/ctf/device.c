/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device spans of recordings. A span of a device gets the arguments that questions use
 * (correlation, stream, device), which the recording has as fields; correlation numbers are unique
 * inside a process, so those of a second process are renumbered.
 *
 * Causality checks the clock of a device: no work ends after the wait for it has returned. (Work
 * that begins before its launch is counted by the passes of finish, for every format.) All work and
 * all waits are kept until the end, sorted by correlation, and compared in one pass with the latest
 * end of each stream and each device: 40 bytes per span, a sort, one pass.
 *
 * CUPTI may give a copy the end of work that was launched much later (a copy of 16 kB before the
 * first launch of a CUDA graph took 174 ms). A copy ends before the next work that was launched
 * into its stream begins.
 */
#include "formats/ctf/ctf.h"

#include "base/order.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_linked(uint8_t kind)
{
    return kind == RP_CTF_KIND_KERNEL || kind == RP_CTF_KIND_MEMCPY || kind == RP_CTF_KIND_MEMSET ||
           kind == RP_CTF_KIND_SYNC || kind == RP_CTF_KIND_RUNTIME || kind == RP_CTF_KIND_DRIVER;
}

uint64_t rp_ctf_device_link(struct rp_ctf_reader *r, uint32_t pid, uint64_t link)
{
    if (!link || link > UINT32_MAX)
        return link;
    if (!r->linked_pid)
        r->linked_pid = pid;
    return r->linked_pid == pid ? link : link | (uint64_t)(r->process + 1) << 32;
}

static enum rp_code add_number(struct rp_ctf_reader *r, const char *key, int64_t value,
                               struct rp_arg *arg, struct rp_err *err)
{
    *arg = (struct rp_arg){.type = RP_ARG_I64, .v.i = value};
    return rp_proto_trace_word(&r->t, key, &arg->key, err);
}

enum rp_code rp_ctf_device_args(struct rp_ctf_reader *r, const struct rp_ctf_span *e, uint64_t link,
                                struct rp_arg *args, uint32_t *n, struct rp_err *err)
{
    if (!is_linked(e->kind))
        return RP_OK;
    if (e->device != RP_CTF_SPAN_DEVICE) {
        RP_TRY(add_number(r, "device", e->device, &args[(*n)++], err));
        RP_TRY(add_number(r, "stream", (int64_t)e->track, &args[(*n)++], err));
    }
    return link ? add_number(r, "correlation", (int64_t)link, &args[(*n)++], err) : RP_OK;
}

/* -------------------------------------------------------------------------- names */

#define MAX_DEVICES 64 /* bits of device_ids */

/* The number of a device in "cuda.device.0" and what follows it, or NULL. */
static const char *device_number(const char *key, const char *start, unsigned *id)
{
    size_t n = strlen(start);
    char *end;

    if (strncmp(key, start, n) != 0 || key[n] < '0' || key[n] > '9')
        return NULL;
    *id = (unsigned)strtoul(key + n, &end, 10);
    return *id < MAX_DEVICES ? end : NULL;
}

enum rp_code rp_ctf_device_note(struct rp_ctf_reader *r, rp_str key, rp_str value,
                                struct rp_err *err)
{
    const char *text = rp_builder_borrow_str(r->t.builder, key, NULL), *rest;
    unsigned long long bytes;
    unsigned id, units;

    rest = device_number(text, "cuda.device.", &id);
    r->has_cuda |= rest != NULL;
    rest = rest ? rest : device_number(text, "hip.device.", &id);
    rest = rest ? rest : device_number(text, "opencl.device.", &id);
    if (!rest)
        return RP_OK;
    if (!strcmp(rest, ".size") && sscanf(rp_builder_borrow_str(r->t.builder, value, NULL),
                                         "%19llu bytes, %9u multiprocessors", &bytes, &units) == 2)
        r->device = (struct rp_device){
            .id = id, .memory_bytes = (int64_t)(bytes & INT64_MAX), .multiprocessors = units};
    if (*rest || r->device_ids & UINT64_C(1) << id)
        return RP_OK;
    if (r->device.id != (int64_t)id)
        r->device = (struct rp_device){.id = id};
    r->device_ids |= UINT64_C(1) << id;
    r->device.name = value;
    return rp_builder_add_device(r->t.builder, &r->device, err);
}

/* -------------------------------------------------------------------------- causality */

enum { WORK, WAIT_STREAM, WAIT_DEVICE };

/* Of a copy, and of its overlap with the next work: clocks are not exact to less. */
#define LONG_NS 10000

enum rp_code rp_ctf_device_keep(struct rp_ctf_reader *r, const struct rp_ctf_span *e,
                                const struct rp_raw *raw, struct rp_err *err)
{
    struct rp_ctf_bound b = {.link = e->link,
                             .begin_ns = raw->ts_ns,
                             .end_ns = raw->ts_ns + raw->dur_ns,
                             .device = e->device,
                             .stream = e->track};

    if (e->device == RP_CTF_SPAN_DEVICE || !e->link)
        return RP_OK;
    if (e->kind == RP_CTF_KIND_SYNC) {
        const char *text = rp_builder_borrow_str(r->t.builder, raw->name, NULL);
        if (!strcmp(text, "Context Sync"))
            b.what = WAIT_DEVICE;
        else if (!strcmp(text, "Stream Sync"))
            b.what = WAIT_STREAM;
        else
            return RP_OK;
    } else if (e->kind != RP_CTF_KIND_KERNEL && e->kind != RP_CTF_KIND_MEMCPY &&
               e->kind != RP_CTF_KIND_MEMSET) {
        return RP_OK;
    }
    if (b.what == WORK && e->kind != RP_CTF_KIND_KERNEL && raw->dur_ns > LONG_NS) {
        struct rp_ctf_copy copy = {.b = b,
                                   .next_ns = INT64_MAX,
                                   .event = rp_builder_count(r->t.builder),
                                   .bound = (uint32_t)r->bounds.n};
        RP_TRY(rp_vec_push(&r->copies, copy, err));
    }
    return rp_vec_push(&r->bounds, b, err);
}

RP_ORDER(by_stream, struct rp_ctf_bound, RP_COMPARE(a->link >> 32, b->link >> 32) /* process */,
         RP_UP(device), RP_UP(stream))
RP_ORDER(by_begin, struct rp_ctf_copy, by_stream(&a->b, &b->b), RP_UP(b.begin_ns))

/* Notes that this work follows the last copy before it in its stream, if it was launched later: a
   copy on the host begins, by its record, with its call, and waits for work that was launched
   before. In one graph, copies and kernels may run at the same time. */
static void follow(struct rp_ctf_reader *r, const struct rp_ctf_bound *b)
{
    const struct rp_ctf_copy work = {.b = *b};
    size_t i;

    RP_LOWER_BOUND(i, r->copies.n, by_begin(&r->copies.at[i], &work) < 0);
    if (!i)
        return;
    struct rp_ctf_copy *copy = &r->copies.at[i - 1];
    if (!by_stream(&copy->b, b) && b->link > copy->b.link && b->begin_ns < copy->next_ns)
        copy->next_ns = b->begin_ns;
}

static enum rp_code shorten_copies(struct rp_ctf_reader *r, struct rp_err *err)
{
    uint64_t n = 0;
    int64_t most_ns = 0;

    rp_sort(r->copies.at, r->copies.n, sizeof *r->copies.at, by_begin);
    for (size_t i = 0; i < r->bounds.n; i++)
        if (r->bounds.at[i].what == WORK)
            follow(r, &r->bounds.at[i]);
    for (size_t i = 0; i < r->copies.n; i++) {
        const struct rp_ctf_copy *copy = &r->copies.at[i];
        int64_t over_ns = copy->next_ns < copy->b.end_ns ? copy->b.end_ns - copy->next_ns : 0;

        if (over_ns <= LONG_NS)
            continue;
        rp_builder_end(r->t.builder, copy->event, copy->next_ns - copy->b.begin_ns);
        r->bounds.at[copy->bound].end_ns = copy->next_ns;
        n++;
        most_ns = over_ns > most_ns ? over_ns : most_ns;
    }
    if (!n)
        return RP_OK;
    return rp_builder_warn(
        r->t.builder, err,
        "the recorded end of %llu cop%s lies up to %lld ns after the begin of later work of the same "
        "stream: cut there",
        (unsigned long long)n, n == 1 ? "y or memset" : "ies or memsets", (long long)most_ns);
}

RP_ORDER(by_link, struct rp_ctf_bound, RP_UP(link), RP_UP(what))

struct latest {
    struct rp_map places; /* of a stream or device -> place in ends */
    RP_VEC(int64_t) ends;
};

/* The index of the latest end of a stream, or of the whole device. */
static enum rp_code place_of(struct latest *l, const struct rp_ctf_bound *b, bool whole,
                             uint32_t *out, struct rp_err *err)
{
    uint64_t process = b->link >> 32, device = (uint32_t)b->device;
    uint64_t key = process << 48 ^ device << 40 ^ (whole ? UINT64_C(1) << 39 : b->stream);
    uint32_t fresh = (uint32_t)l->ends.n;

    RP_TRY(rp_map_intern(&l->places, key, fresh, out, err));
    return *out == fresh ? rp_vec_push(&l->ends, INT64_MIN, err) : RP_OK;
}

static enum rp_code compare_waits(struct rp_ctf_reader *r, struct latest *l, uint64_t *late,
                                  int64_t *most_ns, struct rp_err *err)
{
    for (size_t i = 0; i < r->bounds.n; i++) {
        const struct rp_ctf_bound *b = &r->bounds.at[i];
        uint32_t stream, device;

        RP_TRY(place_of(l, b, false, &stream, err));
        RP_TRY(place_of(l, b, true, &device, err));
        if (b->what == WORK) {
            if (b->end_ns > l->ends.at[stream])
                l->ends.at[stream] = b->end_ns;
            if (b->end_ns > l->ends.at[device])
                l->ends.at[device] = b->end_ns;
            continue;
        }
        int64_t end = l->ends.at[b->what == WAIT_DEVICE ? device : stream];

        if (end > b->end_ns) {
            ++*late;
            *most_ns = end - b->end_ns > *most_ns ? end - b->end_ns : *most_ns;
        }
    }
    return RP_OK;
}

enum rp_code rp_ctf_device_judge(struct rp_ctf_reader *r, struct rp_err *err)
{
    struct latest l = {0};
    uint64_t late = 0;
    int64_t most_ns = 0;

    if (!r->bounds.n)
        return RP_OK;
    if (r->has_cuda && r->copies.n)
        RP_TRY(shorten_copies(r, err));
    qsort(r->bounds.at, r->bounds.n, sizeof *r->bounds.at, by_link);
    enum rp_code code = compare_waits(r, &l, &late, &most_ns, err);
    rp_map_release(&l.places);
    rp_vec_release(&l.ends);
    if (code != RP_OK || !late)
        return code;
    return rp_builder_warn(
        r->t.builder, err,
        "%llu waits returned before the device work that they waited for ended, by up to %lld ns: "
        "the device clock is off by that much",
        (unsigned long long)late, (long long)most_ns);
}
