/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a question keeps of one rank until the ranks are joined, and its bytes on the way from
 * another process or in a file (digest_file.h):
 *
 *     record   digest, sketch, remarks about its trace: the same for all questions
 *     answer   the name of a question, the settings that its part was made from, the part
 *     answer   …
 *
 * The record is described by one table of fields, a part by that of its question (result/part.h).
 */
#include "dataset/ranks.h"
#include "dataset/related.h"
#include "dataset/trust.h"

struct rp_rank_slot {
    struct rp_digest *digest;
    struct rp_sketch sketch;
    bool sketched;
    bool arrived; /* the digest owns the sketch */
    bool beside;  /* a recording of captures: a rank only where there are no others */
    uint8_t run;  /* of two: which */
    struct rp_rank_part part;
    uint64_t content[2];        /* hashes of the part, where equal ones are shared; else 0 */
    struct rp_rank_slot *owner; /* of the part that this one shares; NULL: its own */
};

void rp_slot_free(struct rp_rank_slot *slot); /* NULL is fine */

/* A digest of its own. */
enum rp_code rp_digest_copy(const struct rp_digest *digest, struct rp_digest **out,
                            struct rp_err *err);

/* A question with the settings that its part is made from. */
struct rp_asked {
    const char *question;
    const struct rp_rank_row *row;
    const struct rp_settings *settings;
};

/* Writes the record of a slot. trust: what was noted about its trace, or NULL. */
enum rp_code rp_slot_write(const struct rp_rank_slot *slot, const struct rp_trust_trace *trust,
                           struct rp_out *to, struct rp_err *err);

/* Writes an answer: the part that `asked` made, and the settings that it read for it; or why it
   made none (failure->code is not RP_OK). */
enum rp_code rp_slot_write_answer(const struct rp_rank_part *part, const struct rp_asked *asked,
                                  const struct rp_settings_reads *reads,
                                  const struct rp_err *failure, struct rp_out *to,
                                  struct rp_err *err);

/*
 * Reads the record, and of its answers that to the question asked, into a slot. *trust: what was
 * noted, its texts belong to the digest; path NULL: nothing. *missing: there is no such answer,
 * and err begins with what the digest lacks. RP_FORMAT where the bytes are no record. The caller
 * frees the slot, also after a failure.
 */
enum rp_code rp_slot_read(const struct rp_asked *asked, const char *bytes, size_t n,
                          struct rp_rank_slot *out, struct rp_trust_trace *trust, bool *missing,
                          struct rp_err *err);
