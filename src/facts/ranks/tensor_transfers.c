/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producers are found through a map of (process, node). A device is the process whose name begins
 * with it. If a node has run several times in a recording, the last run that ended before the
 * receive did is used.
 */
#include "facts/ranks/tensor_transfers.h"

#include "base/filled.h"
#include "base/hash.h"
#include "base/order.h"
#include "facts/arg_keys.h"

#include <stdlib.h>
#include <string.h>

struct transfer_ctx {
    const struct rp_trace *t;
    rp_tensor_transfer_vec *out;
    struct rp_arg_key edge, from, to, name, bytes;
    struct rp_map last_of;   /* from the hash of (process, node) to its last event, for chains */
    RP_VEC(rp_event) before; /* by event: the previous one with the same process and node */
    struct rp_err *err;
};

/* The producer of an edge: "conv2/ReadVariableOp" for "edge_14_conv2/ReadVariableOp". */
static const char *producer_of(const char *edge)
{
    if (strncmp(edge, "edge_", 5) != 0)
        return NULL;
    size_t digits = strspn(edge + 5, "0123456789");
    return digits && edge[5 + digits] == '_' ? edge + 6 + digits : NULL;
}

static uint32_t process_of(const struct rp_trace *t, rp_str device)
{
    const char *name = rp_trace_str(t, device);
    size_t n = strlen(name);

    for (uint32_t i = 0; n && i < t->nprocesses; i++) {
        const char *process = rp_trace_str(t, t->processes[i].name);

        if (!strncmp(process, name, n) && (!process[n] || process[n] == ' '))
            return i;
    }
    return RP_NONE;
}

static uint64_t node_key(uint32_t process, const char *node)
{
    return rp_hash_join(rp_hash_bytes(node, strlen(node)), process);
}

static enum rp_code note_node(struct transfer_ctx *f, rp_event e)
{
    uint32_t process = f->t->tracks[f->t->ev.track[e]].process;
    rp_str name;

    if (!rp_arg_key_text(&f->name, e, &name))
        return RP_OK;
    uint64_t key = node_key(process, rp_trace_str(f->t, name));
    f->before.at[e] = rp_map_get(&f->last_of, key);
    return rp_map_put(&f->last_of, key, e, f->err);
}

static enum rp_code note_receive(struct transfer_ctx *f, rp_event e, rp_str edge)
{
    struct rp_tensor_transfer x = {.begin_ns = f->t->ev.ts_ns[e],
                                   .end_ns = rp_event_end_ns(f->t, e),
                                   .ready_ns = RP_NO_TS,
                                   .bytes = -1,
                                   .edge = edge,
                                   .receive = e,
                                   .producer = RP_NONE};

    if (!rp_arg_key_text(&f->from, e, &x.from) || !rp_arg_key_text(&f->to, e, &x.to))
        return RP_OK;
    rp_arg_key_int(&f->bytes, e, &x.bytes);
    x.from_process = process_of(f->t, x.from);
    x.to_process = f->t->tracks[f->t->ev.track[e]].process;
    return rp_vec_push(f->out, x, f->err);
}

static void find_producer(struct transfer_ctx *f, struct rp_tensor_transfer *x)
{
    const char *node = producer_of(rp_trace_str(f->t, x->edge));
    rp_event e, first = RP_NONE;

    if (!node || x->from_process == RP_NONE)
        return;
    for (e = rp_map_get(&f->last_of, node_key(x->from_process, node)); e != RP_NONE;
         e = f->before.at[e]) {
        first = e;
        if (rp_event_end_ns(f->t, e) <= x->end_ns)
            break;
    }
    x->producer =
        e != RP_NONE ? e : first; /* none ended in time, so clocks differ, or it ran once */
    if (x->producer != RP_NONE)
        x->ready_ns = rp_event_end_ns(f->t, x->producer);
}

RP_ORDER(by_begin, struct rp_tensor_transfer, RP_UP(begin_ns), RP_UP(receive))

static enum rp_code find_transfers(struct transfer_ctx *f)
{
    const struct rp_trace *t = f->t;
    rp_str edge;

    RP_TRY(rp_arg_key_init(&f->edge, t, "edge", f->err));
    RP_TRY(rp_arg_key_init(&f->from, t, "from", f->err));
    RP_TRY(rp_arg_key_init(&f->to, t, "to", f->err));
    RP_TRY(rp_arg_key_init(&f->name, t, "name", f->err));
    RP_TRY(rp_arg_key_init(&f->bytes, t, "output_bytes", f->err));
    if (f->edge.key == RP_NONE || f->from.key == RP_NONE)
        return RP_OK;
    RP_TRY(rp_vec_nones(&f->before, t->ev.n, f->err));
    for (rp_event e = 0; e < t->ev.n; e++) {
        if (t->ev.ts_ns[e] == RP_NO_TS || t->ev.dur_ns[e] < 0)
            continue;
        if (rp_arg_key_text(&f->edge, e, &edge))
            RP_TRY(note_receive(f, e, edge));
        else
            RP_TRY(note_node(f, e));
    }
    for (size_t i = 0; i < f->out->n; i++)
        find_producer(f, &f->out->at[i]);
    if (f->out->n)
        qsort(f->out->at, f->out->n, sizeof *f->out->at, by_begin);
    return RP_OK;
}

enum rp_code rp_tensor_transfers_find(const struct rp_trace *t, rp_tensor_transfer_vec *out,
                                      struct rp_err *err)
{
    struct transfer_ctx f = {.t = t, .out = out, .err = err};

    out->n = 0;
    enum rp_code code = find_transfers(&f);
    rp_arg_key_release(&f.edge);
    rp_arg_key_release(&f.from);
    rp_arg_key_release(&f.to);
    rp_arg_key_release(&f.name);
    rp_arg_key_release(&f.bytes);
    rp_map_release(&f.last_of);
    rp_vec_release(&f.before);
    return code;
}
