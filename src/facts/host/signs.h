/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Recognises causes of host time by the name of a span. */
#include <stdbool.h>
#include <stdint.h>

enum rp_host_sign {
    RP_SIGN_DATA = 1,   /* loads input data */
    RP_SIGN_BLOCKS = 2, /* waits for the device */
    RP_SIGN_RANKS =
        4, /* waits for other ranks; calls of NCCL return at once, those of gloo do not */
    RP_SIGN_ALLOCATES = 8,   /* allocates device or pinned memory */
    RP_SIGN_STEP = 16,       /* marks a step of the profiler */
    RP_SIGN_GARBAGE = 32,    /* Python's garbage collection */
    RP_SIGN_STARTS_UP = 64,  /* sets up a device or a library, or loads code */
    RP_SIGN_WARMS_UP = 128,  /* its content is thrown away */
    RP_SIGN_HANDS_OVER = 256 /* waits for another thread */
};

/* Bits of enum rp_host_sign. */
uint16_t rp_host_signs(const char *name);

/* Whether a name has a word that does not follow a letter: "read_", but not in "thread_". */
bool rp_host_has_word(const char *text, const char *word);

/* Whether a span with this name reads or prepares the input of a step. text may be NULL. */
bool rp_host_prepares_input(const char *text);
