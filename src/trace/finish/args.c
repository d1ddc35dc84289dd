/* SPDX-License-Identifier: Apache-2.0 */
/* Closes the blocks of arguments that are not full; later passes read trace->args. */
#include "trace/build/state.h"
#include "trace/finish/finish.h"

enum rp_code rp_pass_args(struct rp_builder *b, struct rp_err *err)
{
    return rp_build_args_seal(b, err);
}
