/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ranges of frameworks as operators with arguments. An operator is one span, written when it ends;
 * until then it is on a stack of its thread, one for each domain that has such names, because
 * ranges nest within their domain only.
 */
#include "capture/core/core.h"

enum rp_nvtx_names { RP_NVTX_NAMES_PLAIN, RP_NVTX_NAMES_XLA, RP_NVTX_NAMES_COUNT };

/* Begins the range `text`. Returns the name of the range that the caller shall begin in its own
   way, which may point into `room` of `size` bytes; NULL if the range is taken as an operator. */
const char *rp_nvtx_operator_begin(const struct rp_capture *cap, enum rp_nvtx_names names,
                                   const char *text, char *room, size_t size);
/* Ends the innermost range; returns false if the caller shall end it. */
bool rp_nvtx_operator_end(const struct rp_capture *cap, enum rp_nvtx_names names);
