/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the host library. */
#include "capture/core/core.h"

/* As in <reprise/record.h>: begin and end of a range, a mark, a counter. */
struct rp_host_functions {
    void (*at[4])(void);
};

/* Hands them to all programs and libraries that have been loaded with that header. */
__attribute__((visibility("hidden"))) void rp_host_tables(struct rp_host_functions f);
