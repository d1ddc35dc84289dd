/* SPDX-License-Identifier: Apache-2.0 */
/* jit_compile=True compiles a function, which is found by the scope of the operators in a
   cluster. */
#include "opt/export/exports.h"

#include <string.h>

static bool jit_compile_fits(const struct rp_opt_plan *plan)
{
    return rp_opt_is_tensorflow(plan) && plan->nclusters > 0;
}

/* Returns the length of the prefix that all names of a cluster share, up to a '/'. */
static size_t common_scope(const struct rp_opt_cluster *c)
{
    size_t i, n = c->nops ? strlen(c->ops[0]) : 0;

    for (i = 1; i < c->nops; i++) {
        size_t k = 0;

        while (k < n && c->ops[i][k] == c->ops[0][k])
            k++;
        n = k;
    }
    while (n && c->ops[0][n - 1] != '/')
        n--;
    return n ? n - 1 : 0;
}

static void jit_compile_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    rp_out_text(to,
                "# Functions to compile with XLA, found by 'reprise optimize'. Works with stock "
                "TensorFlow 2.5 or newer.\n");
    rp_opt_write_times(plan, to, "# ");
    rp_out_text(to, "# Decorate the functions that make these operators:\n#\n"
                    "#     @tf.function(jit_compile=True)\n\nCLUSTERS = [\n");
    for (size_t i = 0; i < plan->nclusters; i++) {
        const struct rp_opt_cluster *c = &plan->clusters[i];
        size_t n = common_scope(c);

        if (n) {
            rp_out_text(to, "    # scope '");
            rp_out_escaped_bytes(to, RP_IN_LINE, c->ops[0], n);
            rp_out_text(to, "'\n");
        }
        rp_out_text(to, "    [");
        for (size_t k = 0; k < c->nops; k++) {
            rp_out_text(to, k ? ", " : "");
            rp_out_escaped(to, RP_IN_PYTHON, c->ops[k]);
        }
        rp_out_text(to, "],\n");
    }
    rp_out_text(to, "]\n");
}

const struct rp_exporter rp_exporter_jit_compile = {
    .name = "jit-compile",
    .file = "jit_compile.py",
    .stock = true,
    .works_with = "TensorFlow 2.5 or newer",
    .summary = "operators to compile together, and their scopes",
    .fits = jit_compile_fits,
    .write = jit_compile_write};
