/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which rank or host of a job is late in a window of its last steps, and why: by what is abnormal
 * beside its peers (places/peers.h), where a slice of the window stands for a step.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define RP_WINDOW_SLICES 8 /* the window; older ones are forgotten */

/* What a rank did between two readings. */
struct rp_window_slice {
    double steps, step_ns;      /* how many ended, and how long they took together */
    double collective_ns;       /* of that: in collectives */
    double input_ns, device_ns; /* loading input; the device's work but collectives */
    double delay_ns;            /* its thread could have run and had no processor */
};

struct rp_window_rank {
    const char *host;                               /* NULL: not known */
    double clock;                                   /* of the device, MHz; NAN: not known */
    struct rp_window_slice slice[RP_WINDOW_SLICES]; /* the newest is the last of those used */
};

enum rp_window_cause {
    RP_WINDOW_HOST, /* neither collectives nor input nor the device */
    RP_WINDOW_INPUT,
    RP_WINDOW_DEVICE,
    RP_WINDOW_PROCESSOR, /* the host or its input, which had none */
    RP_WINDOW_CLOCK,     /* the device, whose clock is lower than that of others */
    RP_WINDOW_CAUSES
};
extern const char *const rp_window_causes[RP_WINDOW_CAUSES];

struct rp_window_late {
    size_t rank;     /* the latest; n: nobody is late */
    bool whole_host; /* all ranks of its host, and none of another */
    enum rp_window_cause cause;
    double late_ns, share; /* later than its peers in a step, and of a step */
};

/* The first `used` slices of each rank, of n ranks. */
enum rp_code rp_window_judge(const struct rp_window_rank *ranks, size_t n, size_t used,
                             struct rp_window_late *out, struct rp_err *err);

/* Whether what a rank did is enough for a slice, or for a past to compare with. */
bool rp_window_is_slice(double steps);
bool rp_window_is_past(double steps);
/* Whether it is worth a word that nothing has moved for so long. */
bool rp_window_is_still(double ns, double usual_ns, double longest_ns);
