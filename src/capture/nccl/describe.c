/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads descriptions of collectives, sends and receives. Each version of the interface has its own
 * layout, and the first has numbers where the others have names. The arguments of a span have the
 * keys of PyTorch's traces. NCCL reports broadcasts and gathers as bytes, whatever their type.
 */
#include "capture/nccl/nccl.h"

#include <stdio.h>
#include <string.h>

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static const char *word(const char *const *words, size_t n, unsigned i)
{
    return i < n ? words[i] : "";
}
#define WORD(words, i) word(words, sizeof(words) / sizeof(words)[0], i)

/* Names for the numbers of version 1. */
static const char *const funcs[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                    "AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const types[] = {"ncclInt8",     "ncclUint8",      "ncclInt32",
                                    "ncclUint32",   "ncclInt64",      "ncclUint64",
                                    "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
                                    "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
static const char *const algorithms[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};

/* Type names of PyTorch's traces, and the bytes of an element. */
static const struct {
    const char *nccl, *name;
    int bytes;
} elements[] = {{"ncclInt8", "Char", 1},
                {"ncclUint8", "Byte", 1},
                {"ncclInt32", "Int", 4},
                {"ncclUint32", "Int", 4},
                {"ncclInt64", "Long", 8},
                {"ncclUint64", "Long", 8},
                {"ncclFloat16", "Half", 2},
                {"ncclFloat32", "Float", 4},
                {"ncclFloat64", "Double", 8},
                {"ncclBfloat16", "BFloat16", 2},
                {"ncclFloat8e4m3", "Float8_e4m3fn", 1},
                {"ncclFloat8e5m2", "Float8_e5m2", 1}};

static const char *element_of(const char *type, int *bytes)
{
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        if (!strcmp(type, elements[i].nccl)) {
            *bytes = elements[i].bytes;
            return elements[i].name;
        }
    }
    *bytes = 0;
    return type;
}

static void describe_op(struct rp_nccl_op *e, const char *func, const char *datatype,
                        uint64_t count)
{
    copy_text(e->func, sizeof e->func, func);
    copy_text(e->datatype, sizeof e->datatype, datatype);
    e->count = count;
}

/* The fields that versions 2 to 6 have under the same names. */
#define DESCRIBE_COLL(e, c)                                              \
    do {                                                                 \
        describe_op(e, (c)->func, (c)->datatype, (c)->count);            \
        copy_text((e)->algorithm, sizeof(e)->algorithm, (c)->algorithm); \
        copy_text((e)->protocol, sizeof(e)->protocol, (c)->protocol);    \
        (e)->seq = (c)->seq;                                             \
        (e)->root = (c)->root;                                           \
        (e)->channels = (c)->channels;                                   \
    } while (0)

static void describe_coll(struct rp_nccl_op *e, const struct rp_nccl_descr *d, int version)
{
    if (version == 1) {
        /* Version 1 of the description. */
        describe_op(e, WORD(funcs, d->coll1.func), WORD(types, d->coll1.datatype), d->coll1.count);
        copy_text(e->algorithm, sizeof e->algorithm, WORD(algorithms, d->coll1.algorithm));
        copy_text(e->protocol, sizeof e->protocol, WORD(protocols, d->coll1.protocol));
        copy_text(e->group, sizeof e->group, d->coll1.name);
        e->hash = d->coll1.comm;
        e->seq = d->coll1.seq;
        e->root = d->coll1.root;
        e->traffic = (int64_t)d->coll1.traffic_bytes;
        e->channels = d->coll1.channels;
    } else if (version == 2) {
        DESCRIBE_COLL(e, &d->coll2);
        e->traffic = (int64_t)d->coll2.traffic_bytes;
    } else if (version == 3) {
        DESCRIBE_COLL(e, &d->coll3);
    } else {
        DESCRIBE_COLL(e, &d->coll4);
    }
    if (version == 2 || version == 3) { /* these fields are at the same offset in both */
        e->hash = d->coll3.comm;
        copy_text(e->group, sizeof e->group, d->coll3.name);
    }
}

static void describe_p2p(struct rp_nccl_op *e, const struct rp_nccl_descr *d, int version)
{
    if (version == 1) {
        describe_op(e, WORD(funcs, d->p2p1.func), WORD(types, d->p2p1.datatype), d->p2p1.count);
        e->peer = d->p2p1.peer;
    } else if (version <= 3) {
        describe_op(e, d->p2p2.func, d->p2p2.datatype, d->p2p2.count);
        e->peer = d->p2p2.peer;
    } else {
        describe_op(e, d->p2p4.func, d->p2p4.datatype, d->p2p4.count);
        e->peer = d->p2p4.peer;
        e->channels = d->p2p4.channels;
    }
    if (version <= 3) {
        e->hash = d->p2p2.comm;
        copy_text(e->group, sizeof e->group, d->p2p2.name);
    }
}

void rp_nccl_describe(struct rp_nccl_op *e, const struct rp_nccl_descr *d, int version)
{
    switch (e->type) {
    case RP_NCCL_COLL:
        describe_coll(e, d, version);
        break;
    case RP_NCCL_P2P:
        describe_p2p(e, d, version);
        break;
    case RP_NCCL_COLL_API:
        describe_op(e, d->coll_api.func, d->coll_api.datatype, d->coll_api.count);
        e->root = d->coll_api.root;
        break;
    case RP_NCCL_P2P_API:
        describe_op(e, d->p2p_api.func, d->p2p_api.datatype, d->p2p_api.count);
        break;
    case RP_NCCL_CE_COLL:
        describe_op(e, d->ce_coll.func, d->ce_coll.datatype, d->ce_coll.count);
        e->seq = d->ce_coll.seq;
        e->root = d->ce_coll.root;
        break;
    default:
        break;
    }
}

/* -------------------------------------------------------------------------- arguments */

static void add_text(struct rp_capture_args *a, const char *key, const char *text)
{
    if (text[0])
        rp_capture_add_text(a, key, text);
}

/* Elements of the output of a rank that contributes `count`. */
static uint64_t output_elements(const struct rp_nccl_op *e)
{
    uint64_t ranks = e->comm->ranks > 0 ? (uint64_t)e->comm->ranks : 1;

    return !strcmp(e->func, "AllGather") ? e->count * ranks : e->count;
}

void rp_nccl_args(const struct rp_nccl_op *e, struct rp_capture_args *a, char group[40])
{
    uint64_t ranks = e->comm->ranks > 0 ? (uint64_t)e->comm->ranks : 1;
    int bytes;
    const char *type = element_of(e->datatype, &bytes);

    snprintf(group, 40, "%016llx", (unsigned long long)(e->hash ? e->hash : e->comm->hash));
    add_text(a, "Collective name", e->func);
    rp_capture_add_number(
        a, "In msg nelems",
        (int64_t)(!strcmp(e->func, "ReduceScatter") ? e->count * ranks : e->count));
    rp_capture_add_number(a, "Out msg nelems", (int64_t)output_elements(e));
    add_text(a, "dtype", type);
    add_text(a, "Process Group Name", group);
    add_text(a, "Process Group Description", e->group[0] ? e->group : e->comm->name);
    if (e->comm->ranks > 0)
        rp_capture_add_number(a, "Group size", e->comm->ranks);
    if (bytes)
        rp_capture_add_number(a, "bytes", (int64_t)e->count * bytes);
    add_text(a, "algorithm", e->algorithm);
    add_text(a, "protocol", e->protocol);
    if (e->channels)
        rp_capture_add_number(a, "channels", e->channels);
    if (e->traffic)
        rp_capture_add_number(a, "traffic bytes", e->traffic);
    if (e->type == RP_NCCL_P2P) {
        rp_capture_add_number(a, "peer", e->peer);
        if (e->comm->ranks > 0)
            rp_capture_add_number(a, "Group rank", e->comm->rank);
    } else if (e->root >= 0) {
        rp_capture_add_number(a, "root", e->root);
    }
    if (e->type == RP_NCCL_COLL || e->type == RP_NCCL_CE_COLL)
        rp_capture_add_number(a, "Seq", (int64_t)e->seq);
}
