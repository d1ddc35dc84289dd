/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context. Options structs begin with their size, so a program built against an older header
 * keeps working: what it did not know about reads as zero.
 */
#include "dataset/ctx.h"

#include "rp_config.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(RP_VERSION_NUMBER == REPRISE_VERSION_NUMBER,
               "<reprise/context.h> has another version than CMakeLists.txt");

const char *rp_version(void)
{
    return RP_VERSION;
}

unsigned rp_version_number(void)
{
    return REPRISE_VERSION_NUMBER;
}

enum rp_code rp_ctx_new(const struct rp_ctx_options *options, struct rp_ctx **out,
                        struct rp_err *err)
{
    struct rp_ctx_options o = {0};
    struct rp_ctx *ctx;
    enum rp_code code;

    *out = NULL;
    if (options)
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return rp_err_nomem(err, "making a context");
    code = rp_pool_new(o.threads, &ctx->pool, err);
    if (code != RP_OK) {
        free(ctx);
        return code;
    }
    ctx->progress = o.progress;
    ctx->progress_user = o.progress_user;
    *out = ctx;
    return RP_OK;
}

void rp_ctx_free(struct rp_ctx *ctx)
{
    if (!ctx)
        return;
    rp_pool_free(ctx->pool);
    free(ctx);
}
