/* SPDX-License-Identifier: Apache-2.0 */
/* A GraphDef without its weights: doing it twice changes nothing more, and what restores variables
   is found without harm. */
#include "formats/tensorflow/restore.h"
#include "replay/redact.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_proto_writer once = {0}, twice = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_tf_restores restores = {0};
    struct rp_bytes first, second;

    if (rp_redact_graph((struct rp_bytes){data, size}, &once, NULL) == RP_OK &&
        rp_proto_written(&once, &first, NULL) == RP_OK &&
        rp_redact_graph(first, &twice, NULL) == RP_OK &&
        rp_proto_written(&twice, &second, NULL) == RP_OK &&
        (first.n != second.n || (first.n && memcmp(first.at, second.at, first.n) != 0)))
        abort();
    rp_tf_restores_find((struct rp_bytes){data, size}, &arena, &restores, NULL);
    rp_vec_release(&restores.list);
    rp_arena_release(&arena);
    rp_proto_writer_release(&once);
    rp_proto_writer_release(&twice);
    return 0;
}
