/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the point-to-point operations of a rank: each send or receive is one side of a message. One
 * kernel may have many, if operations were grouped (ncclGroupStart, batch_isend_irecv), and so may
 * one call (MPI_Sendrecv). rendezvous_pairs.c matches them with those of other ranks.
 */
#include "base/hash.h"
#include "facts/ranks/collective_args.h"

struct rp_message {
    uint64_t channel; /* group, sender and receiver: the same on both sides */
    uint32_t at;      /* index in the list of collectives of its rank */
    uint32_t sends;   /* this is the side that sends */
};
typedef RP_VEC(struct rp_message) rp_message_vec;

struct rp_message_finder {
    const struct rp_coll_reader *reader;
    const struct rp_trace *trace;
    struct rp_arg_key to, from, peer, source, own;
    struct rp_map launches; /* of communication kernels */
    rp_message_vec *out;
};

/* Must be released also after a failure. The reader must live as long. */
enum rp_code rp_message_finder_init(struct rp_message_finder *f,
                                    const struct rp_coll_reader *reader, rp_message_vec *out,
                                    struct rp_err *err);
void rp_message_finder_release(struct rp_message_finder *f);

/* Notes that an event launches communication: operations before it belong to it, or to no later
   one. All launches must be noted before messages are added. */
enum rp_code rp_message_finder_note(struct rp_message_finder *f, rp_event launch,
                                    struct rp_err *err);

/* Adds the messages of the collective e, which is number `at` of its rank. For grouped operations,
   `facts` gets the bytes that are sent and received if it has none. */
enum rp_code rp_messages_add(struct rp_message_finder *f, rp_event e, rp_event launch, uint32_t at,
                             struct rp_coll_facts *facts, struct rp_err *err);
