/* SPDX-License-Identifier: Apache-2.0 */
/* Values recorded beside a program as protobuf text: the way from text over the wire format. The
   first byte says which of the two snapshots it is. */
#include "exec/data/snapshot.h"
#include "formats/textproto.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_limits limits = {.input_bytes = 1 << 20,
                                        .held_bytes = 1 << 20,
                                        .token_bytes = 1 << 20,
                                        .events = 1 << 16,
                                        .members = 64,
                                        .depth = 60};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rp_schema *schema =
        size && data[0] == 'u' ? &rp_schema_HLO_PROTO : &rp_schema_HLO_SNAPSHOT;
    struct rp_proto_writer w = {0};
    struct rp_snapshot s = {0};
    struct rp_bytes wire;

    if (size &&
        rp_textproto_parse(schema, (const char *)data + 1, size - 1, &limits, &w, NULL) == RP_OK &&
        rp_proto_written(&w, &wire, NULL) == RP_OK &&
        rp_snapshot_read(wire.at, wire.n, true, &s, NULL) == RP_OK)
        for (size_t i = 0; i < s.arguments.n; i++) {
            const struct rp_tensor *t = s.arguments.at[i];

            if (t->n && t->elem != RP_ELEM_TUPLE && rp_tensor_number(t, t->n - 1) == 1234567)
                abort();
        }
    rp_snapshot_release(&s);
    rp_proto_writer_release(&w);
    return 0;
}
