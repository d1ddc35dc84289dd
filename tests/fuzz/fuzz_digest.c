/* SPDX-License-Identifier: Apache-2.0 */
/* Digests: the head, the records and the part of a question, as if the sum at the end were right.
 */
#include "dataset/digest_file.h"
#include "dataset/question.h"

#include <stdlib.h>

extern const struct rp_question_row rp_ask_info;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_record(const struct rp_digest_record *record)
{
    struct rp_settings settings = {.options = rp_ask_info.question.options};
    struct rp_asked asked = {"info", &rp_ask_info.ranks, &settings};
    struct rp_rank_slot *slot = calloc(1, sizeof *slot);
    struct rp_trust_trace trust;
    bool missing;

    if (slot)
        (void)rp_slot_read(&asked, record->bytes, record->n, slot, &trust, &missing, NULL);
    rp_slot_free(slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_digest_reader reader;
    struct rp_digest_record record;
    bool more = true;

    if (rp_digest_open(data, size, true, &arena, &reader, NULL) == RP_OK)
        while (more && rp_digest_next(&reader, &record, &more, NULL) == RP_OK)
            if (more)
                read_record(&record);
    rp_arena_release(&arena);
    return 0;
}
