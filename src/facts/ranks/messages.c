/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings say in two ways who sends to whom. PyTorch has "Dst Rank" of a send and "Src Rank" of
 * a receive, both numbers in the job. Libraries have "peer", a number in the communicator, and
 * "Group rank", the own number; without that the communicator must have all ranks of the job.
 *
 * The arguments are those of the kernel or of an ancestor of its launch. Grouped operations are
 * recorded one by one, and then one kernel is launched for all. It gets those of its thread since
 * the previous launch of communication, or if the library describes a kernel after its launch,
 * those between its launch and the next one.
 */
#include "facts/ranks/messages.h"

#include <stdlib.h>

enum rp_code rp_message_finder_init(struct rp_message_finder *f,
                                    const struct rp_coll_reader *reader, rp_message_vec *out,
                                    struct rp_err *err)
{
    struct {
        struct rp_arg_key *key;
        const char *text;
    } keys[] = {{&f->to, "Dst Rank"},
                {&f->from, "Src Rank"},
                {&f->peer, "peer"},
                {&f->source, "source"},
                {&f->own, "Group rank"}};

    *f = (struct rp_message_finder){.reader = reader, .trace = reader->trace, .out = out};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        RP_TRY(rp_arg_key_init(keys[i].key, f->trace, keys[i].text, err));
    return RP_OK;
}

void rp_message_finder_release(struct rp_message_finder *f)
{
    struct rp_arg_key *keys[] = {&f->to, &f->from, &f->peer, &f->source, &f->own};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        rp_arg_key_release(keys[i]);
    rp_map_release(&f->launches);
}

enum rp_code rp_message_finder_note(struct rp_message_finder *f, rp_event launch,
                                    struct rp_err *err)
{
    return launch == RP_NONE ? RP_OK : rp_map_put(&f->launches, launch, 1, err);
}

/* ------------------------------------------------------------------ one operation */

/* Reads a number, which may be a text; false if there is none, or it is not a rank. */
static bool read_rank(const struct rp_arg_key *k, rp_event e, int64_t *out)
{
    rp_str text;

    if (rp_arg_key_int(k, e, out))
        return *out >= 0;
    if (!rp_arg_key_text(k, e, &text))
        return false;
    *out = strtoll(rp_trace_str(k->trace, text), NULL, 10);
    return rp_trace_str(k->trace, text)[0] >= '0' && rp_trace_str(k->trace, text)[0] <= '9';
}

static bool has_peer(const struct rp_message_finder *f, rp_event e)
{
    int64_t rank;

    return read_rank(&f->to, e, &rank) || read_rank(&f->from, e, &rank) ||
           read_rank(&f->peer, e, &rank);
}

/* The operation of an event: where it sends to and receives from (-1: nowhere), and its own number
   among these. */
struct operation {
    int64_t own, to, from;
};

static bool read_operation(const struct rp_message_finder *f, rp_event e,
                           const struct rp_coll_facts *facts, struct operation *op)
{
    *op = (struct operation){.own = f->trace->rank, .to = -1, .from = -1};
    if (!read_rank(&f->to, e, &op->to))
        op->to = -1;
    if (!read_rank(&f->from, e, &op->from))
        op->from = -1;
    if (op->to < 0 && op->from < 0) {
        /* Read numbers of a communicator. A peer is received from if only that is in the name. */
        rp_str name = f->trace->ev.name[e];
        int64_t peer;

        if (!read_rank(&f->peer, e, &peer))
            return false;
        rp_arg_key_text(&f->reader->name, e, &name);
        bool sends = strstr(rp_trace_str(f->trace, name), "end") != NULL; /* Send, MPI_Sendrecv */
        if (!read_rank(&f->own, e, &op->own)) {
            op->own = f->trace->rank;
            if (!facts->group_size || facts->group_size != f->trace->world_size)
                return false;
        }
        *(sends ? &op->to : &op->from) = peer;
        if (sends)
            read_rank(&f->source, e, &op->from);
        return op->own >= 0;
    }
    return op->own >= 0; /* of both ends of a message, one is this rank */
}

static enum rp_code add_message(struct rp_message_finder *f, uint64_t group, int64_t from,
                                int64_t to, uint32_t at, bool sends, struct rp_err *err)
{
    uint64_t words[3] = {group, (uint64_t)from, (uint64_t)to};
    struct rp_message m = {rp_hash_bytes(words, sizeof words), at, sends};

    return from == to ? RP_OK : rp_vec_push(f->out, m, err);
}

static enum rp_code add_operation(struct rp_message_finder *f, rp_event e, uint32_t at,
                                  const struct rp_coll_facts *facts, bool *any, struct rp_err *err)
{
    uint64_t group = rp_coll_group_hash(f->trace, facts);
    struct operation op;

    if (!read_operation(f, e, facts, &op))
        return RP_OK;
    *any = true;
    if (op.to >= 0)
        RP_TRY(add_message(f, group, op.own, op.to, at, true, err));
    if (op.from >= 0)
        RP_TRY(add_message(f, group, op.from, op.own, at, false, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ groups */

/* Adds one of the operations that the kernel `at` stands for. */
static enum rp_code add_grouped(struct rp_message_finder *f, rp_event e, uint32_t at,
                                struct rp_coll_facts *sum, bool *any, struct rp_err *err)
{
    struct rp_coll_facts own = rp_coll_read(f->reader, e, RP_NONE);
    size_t before = f->out->n, i;
    bool first = !*any;

    if (own.kind != RP_COLL_SEND_RECV)
        return RP_OK;
    RP_TRY(add_operation(f, e, at, &own, any, err));
    if (first && *any) {
        sum->group = own.group;
        sum->members = own.members;
        sum->group_number = own.group_number;
        sum->group_size = own.group_size;
        sum->dtype = own.dtype;
        sum->item_bytes = own.item_bytes;
        sum->in_elements = sum->out_elements = 0;
    }
    for (i = before; i < f->out->n; i++) {
        int64_t *to = f->out->at[i].sends ? &sum->in_elements : &sum->out_elements;
        int64_t elements = own.item_bytes == sum->item_bytes ? own.in_elements : -1;
        if (*to < 0 || elements < 0 || __builtin_add_overflow(*to, elements, to))
            *to = -1;
    }
    return RP_OK;
}

static bool is_launch(const struct rp_message_finder *f, rp_event e)
{
    return rp_map_get(&f->launches, e) != RP_MAP_NONE;
}

/* Adds operations of one kind among the events [from, to) of a thread. */
static enum rp_code add_range(struct rp_message_finder *f, rp_event from, rp_event to, uint8_t kind,
                              uint32_t at, struct rp_coll_facts *facts, bool *any,
                              struct rp_err *err)
{
    for (; from < to; from++)
        if (f->trace->ev.kind[from] == kind && has_peer(f, from))
            RP_TRY(add_grouped(f, from, at, facts, any, err));
    return RP_OK;
}

static enum rp_code add_group(struct rp_message_finder *f, rp_event launch, uint32_t at,
                              struct rp_coll_facts *facts, struct rp_err *err)
{
    const struct rp_track_info *track = &f->trace->tracks[f->trace->ev.track[launch]];
    rp_event first = launch, end = launch + 1;
    bool any = false;

    while (first > track->first && launch - first < RP_NEARBY_EVENTS && !is_launch(f, first - 1))
        first--;
    while (end < track->end && end - launch < RP_NEARBY_EVENTS && !is_launch(f, end))
        end++;
    RP_TRY(add_range(f, first, launch, RP_KIND_CPU_OP, at, facts, &any, err));
    if (!any)
        RP_TRY(add_range(f, launch + 1, end, RP_KIND_COMM_OP, at, facts, &any, err));
    if (!any)
        RP_TRY(add_range(f, first, launch, RP_KIND_COMM_OP, at, facts, &any, err));
    return RP_OK;
}

enum rp_code rp_messages_add(struct rp_message_finder *f, rp_event e, rp_event launch, uint32_t at,
                             struct rp_coll_facts *facts, struct rp_err *err)
{
    bool any = false;
    rp_event call = launch;

    if (facts->kind != RP_COLL_SEND_RECV)
        return RP_OK;
    RP_TRY(add_operation(f, e, at, facts, &any, err));
    for (; call != RP_NONE && !any; call = f->trace->ev.parent[call])
        RP_TRY(add_operation(f, call, at, facts, &any, err));
    return any || launch == RP_NONE ? RP_OK : add_group(f, launch, at, facts, err);
}
