/* SPDX-License-Identifier: Apache-2.0 */
/* The one door to the printers: adding a format is a row here and a file beside. */
#include "result/result.h"

static void print_json(const struct rp_type *type, const void *root,
                       const struct rp_print_options *options, struct rp_out *to)
{
    (void)options;
    rp_print_json(type, root, to);
}

static void print_csv(const struct rp_type *type, const void *root,
                      const struct rp_print_options *options, struct rp_out *to)
{
    (void)options;
    rp_print_csv(type, root, to);
}

typedef void print_fn(const struct rp_type *type, const void *root,
                      const struct rp_print_options *options, struct rp_out *to);

static print_fn *const printers[] = {
    [RP_PRINT_TABLE] = rp_print_table,
    [RP_PRINT_JSON] = print_json,
    [RP_PRINT_CSV] = print_csv,
};

void rp_print_record(const struct rp_type *type, const void *root,
                     const struct rp_print_options *options, struct rp_out *to)
{
    printers[options->format](type, root, options, to);
}
