/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as BladeDISC's pair: two bytes say how long the program is, the rest is the tar. What
 * is accepted has a graph, and a value an argument whose bytes are all there.
 */
#include "formats/blade/blade.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct rp_blade *b)
{
    volatile uint8_t sum = 0;

    if (!b->graph.bytes.n || !b->function[0])
        abort();
    for (size_t i = 0; i < b->arguments.n; i++) {
        const struct rp_tf_value *v = &b->arguments.at[i].value;

        for (size_t k = 0; k < v->nbytes; k++)
            sum = (uint8_t)(sum + v->data[k]);
        if (!b->feeds[i])
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_blade b = {0};
    enum rp_code code;
    size_t n = size >= 2 ? (size_t)(data[0] | data[1] << 8) : 0;

    if (size < 2 || n > size - 2)
        return 0;
    limits.held_bytes = 1 << 20;
    limits.members = 100;
    code = rp_blade_parse(data + 2, n, &b, &err);
    if (code == RP_OK)
        code = rp_input_open_memory("fuzz", data + 2 + n, size - 2 - n, &limits, &b.data, &err);
    if (code == RP_OK)
        code = rp_tar_open(b.data, &limits, &b.tar, &err);
    if (code == RP_OK)
        code = rp_blade_take_values(&b, b.tar, &limits, &err);
    if (code == RP_OK)
        code = rp_blade_make_graph(&b, &err);
    if (code == RP_OK)
        check(&b);
    rp_blade_release(&b);
    return 0;
}
