/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a question keeps of one rank until the ranks are joined, and how that is written to another
 * process or a file (digest_file.h):
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
    bool beside;  /* a recording of captures, which is a rank only if there are no others */
    uint8_t run;  /* of two: which */
    struct rp_rank_part part;
    uint64_t content[2]; /* hashes of the part if equal ones are shared; otherwise 0 */
    struct rp_rank_slot
        *owner; /* the owner of the part that this one shares; NULL if it has its own */
};

void rp_slot_free(struct rp_rank_slot *slot); /* NULL is fine */

/* Makes a copy that owns its texts. */
enum rp_code rp_digest_copy(const struct rp_digest *digest, struct rp_digest **out,
                            struct rp_err *err);

/* A question with the settings from which its part is made. */
struct rp_asked {
    const char *question;
    const struct rp_rank_row *row;
    const struct rp_settings *settings;
};

/* Writes the record of a slot. trust is what was noted about its trace, or NULL. */
enum rp_code rp_slot_write(const struct rp_rank_slot *slot, const struct rp_trust_trace *trust,
                           struct rp_out *to, struct rp_err *err);

/* Writes an answer: the part that `asked` made and the settings that it read for it, or why it made
   none (failure->code is then not RP_OK). */
enum rp_code rp_slot_write_answer(const struct rp_rank_part *part, const struct rp_asked *asked,
                                  const struct rp_settings_reads *reads,
                                  const struct rp_err *failure, struct rp_out *to,
                                  struct rp_err *err);

/*
 * Reads into a slot the record, and the answer to the question asked. *trust is what was noted; its
 * texts belong to the digest, and its path is NULL if nothing was. If *missing is true, there is no
 * such answer, and err begins with what the digest lacks. Returns RP_FORMAT if the bytes are not a
 * record. The caller frees the slot, also after a failure.
 */
enum rp_code rp_slot_read(const struct rp_asked *asked, const char *bytes, size_t n,
                          struct rp_rank_slot *out, struct rp_trust_trace *trust, bool *missing,
                          struct rp_err *err);
