/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/trace_ctf.h"

enum rp_code rp_ctf_read_other(struct rp_input *in, const char *folder,
                               const struct rp_read_options *options, struct rp_import *to,
                               struct rp_err *err)
{
    (void)in, (void)folder, (void)options, (void)to;
    return rp_err_set(err, RP_UNSUPPORTED, "not yet");
}
