/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_CHAKRA_EXEC_TRACE_H
#define RP_FORMATS_CHAKRA_EXEC_TRACE_H
/* What the two forms of execution traces share: PyTorch's JSON and Chakra's nodes. */
#include "program/program.h"

/* The first output from the texts "[[16, 256]]" and "['Tensor(float)']", which end at `end`; either
   may be NULL. 0 where they do not say one. */
enum rp_code rp_exec_shape(struct rp_program *p, const char *shapes, const char *types,
                           const char *end, uint32_t *id, struct rp_err *err);

#endif
