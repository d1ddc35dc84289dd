/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_IO_TAR_WRITE_H
#define RP_IO_TAR_WRITE_H
/*
 * Writing a tar: ustar headers with fixed times and owners, so that equal content gives equal
 * files.
 *
 *     rp_tar_put_header(out, "arrays/x.npy", n);
 *     rp_out_write(out, ...);                     n bytes in all
 *     rp_tar_put_end(out, n);
 *     ...
 *     rp_tar_put_last(out);
 */
#include "io/output.h"

void rp_tar_put_header(struct rp_out *out, const char *name, uint64_t n); /* name under 100 bytes */
void rp_tar_put_end(struct rp_out *out, uint64_t n); /* of a member of n bytes */
void rp_tar_put_last(struct rp_out *out);

#endif
