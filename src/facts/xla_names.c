/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/xla_names.h"

#include "base/text.h"

#include <string.h>

#define GRAPH      "command_buffer" /* XLA since 2023; name of a thunk */
#define TRANSPOSED "transpose("     /* JAX: the transposed function is the backward pass */
#define DERIVED    "jvp("           /* JAX: the function together with its derivative */
#define DESCRIPTOR ".kd"            /* AMD's code objects, since version 3 */

bool rp_xla_is_graph(const char *instruction)
{
    return rp_text_begins(instruction, GRAPH);
}

rp_str rp_xla_instruction(const struct rp_arg_key *hlo_op, rp_event e)
{
    rp_str op;

    return rp_arg_key_text(hlo_op, e, &op) && op &&
                   !rp_xla_is_graph(rp_trace_str(hlo_op->trace, op))
               ? op
               : hlo_op->trace->ev.name[e];
}

bool rp_xla_is_backward(const char *scope)
{
    return strstr(scope, TRANSPOSED) != NULL;
}

bool rp_xla_is_forward(const char *scope)
{
    return !rp_xla_is_backward(scope) && strstr(scope, DERIVED);
}

size_t rp_kernel_name_len(const char *name, size_t len)
{
    size_t ending = strlen(DESCRIPTOR);

    return len > ending && !memcmp(name + len - ending, DESCRIPTOR, ending) ? len - ending : len;
}
