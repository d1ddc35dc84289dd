/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a GraphDef or a SavedModel: its feeds and fetches are found, and with matrices for
 * feeds it is lowered to HLO. What comes out is a program that makes sense.
 */
#include "formats/tensorflow/ports.h"
#include "lower/lower.h"
#include "program/structure.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void lower(const struct rp_tf_ports *ports)
{
    static const int32_t values[4] = {2, 2, -1, 0};
    struct rp_lower_feed feeds[4] = {{0}};
    const char *fetches[4];
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *program;
    size_t nfeeds = ports->feeds.n < 4 ? ports->feeds.n : 4;
    size_t nfetches = ports->fetches.n < 4 ? ports->fetches.n : 4;

    for (size_t i = 0; i < nfeeds; i++) {
        feeds[i].tensor = ports->feeds.at[i].tensor;
        feeds[i].value = (struct rp_tf_value){.elem = i % 2 ? RP_ELEM_S32 : RP_ELEM_F32,
                                              .rank = i % 2 ? 1 : 2,
                                              .dims = {i % 2 ? 4 : 2, 2},
                                              .n = 4,
                                              .data = i % 2 ? (const uint8_t *)values : NULL,
                                              .nbytes = 16};
    }
    for (size_t i = 0; i < nfetches; i++)
        fetches[i] = ports->fetches.at[i].tensor;
    if (rp_tf_lower(ports->graph, feeds, nfeeds, fetches, nfetches, NULL, &program, &err) ==
            RP_OK &&
        rp_program_validate(program, &err) == RP_FORMAT)
        abort();
    rp_program_free(program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_bytes bytes = {data, size};
    struct rp_err err = RP_ERR_INIT;

    for (int saved = 0; saved < 2; saved++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_tf_ports ports;

        if (rp_tf_ports_find(bytes, saved, NULL, &arena, &ports, &err) == RP_OK)
            lower(&ports);
        rp_tf_ports_release(&ports);
        rp_arena_release(&arena);
    }
    return 0;
}
