/* SPDX-License-Identifier: Apache-2.0 */
/* A result written to a file: whole or not at all. */
#include "result/result.h"

enum rp_code rp_result_save(const struct rp_result *result, const struct rp_print_options *options,
                            const char *path, struct rp_err *err)
{
    struct rp_out *to;

    RP_TRY(rp_out_open(path, &to, err));
    rp_print_record(result->type, result->root, options, to);
    return rp_out_close(to, err);
}
