/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_HOST_SIGNS_H
#define RP_FACTS_HOST_SIGNS_H
/* What the name of a host span says about why it takes its time. */
#include <stdint.h>

enum rp_host_sign {
    RP_SIGN_DATA = 1,      /* loads input data */
    RP_SIGN_BLOCKS = 2,    /* waits for the device */
    RP_SIGN_RANKS = 4,     /* waits for other ranks: NCCL's calls return at once, gloo's do not */
    RP_SIGN_ALLOCATES = 8, /* device or pinned memory */
    RP_SIGN_STEP = 16,     /* marks a step of the profiler */
    RP_SIGN_GARBAGE = 32   /* collects Python's garbage */
};

/* Bits of enum rp_host_sign. */
uint8_t rp_host_signs(const char *name);

#endif
