/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_PJRT_MODULE_H
#define RP_EXEC_PJRT_MODULE_H
/* What has to be known of a module to compile and call it, from its own bytes. */
#include "base/vec.h"
#include "exec/pjrt/client.h"

struct rp_pjrt_module {
    RP_VEC(uint8_t) donated; /* a flag an argument: n is their number */
    bool tupled;             /* one parameter, a tuple: its parts are the arguments */
    bool scheduled;          /* it was optimised */
    bool shardy;
};

/* Of an HloModuleProto. RP_UNSUPPORTED where tuples are among several parameters. */
enum rp_code rp_pjrt_read_hlo(const uint8_t *bytes, size_t n, struct rp_pjrt_module *out,
                              struct rp_err *err);
/* Of StableHLO (or any MLIR) text: the arguments of the function main. */
enum rp_code rp_pjrt_read_mlir(const char *text, size_t n, struct rp_pjrt_module *out,
                               struct rp_err *err);
void rp_pjrt_module_release(struct rp_pjrt_module *module);

#endif
