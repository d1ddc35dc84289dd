/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds which rank or host of a job is late in a window of its last steps, and why: by work that is
 * abnormal beside that of its peers (places/peers.h), with a slice of the window in the role of a
 * step.
 */
#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>

#define RP_WINDOW_SLICES 8 /* the window; older ones are forgotten */

/* The work of a rank between two readings. */
struct rp_window_slice {
    double steps, step_ns;      /* number of steps that ended, and their time together */
    double collective_ns;       /* part of that time: in collectives */
    double input_ns, device_ns; /* loading input; the device's work except collectives */
    double delay_ns;            /* time in which its thread was ready but had no processor */
};

struct rp_window_rank {
    const char *host; /* NULL: not known */
    double clock;     /* clock of the device in MHz; NAN if not known */
    struct rp_window_slice slice[RP_WINDOW_SLICES]; /* the newest slice is the last one in use */
};

enum rp_window_cause {
    RP_WINDOW_HOST, /* neither collectives nor input nor the device */
    RP_WINDOW_INPUT,
    RP_WINDOW_DEVICE,
    RP_WINDOW_PROCESSOR, /* the host or its input, which lacked a processor */
    RP_WINDOW_CLOCK,     /* the device, whose clock is lower than that of others */
    RP_WINDOW_CAUSES
};
extern const char *const rp_window_causes[RP_WINDOW_CAUSES];

struct rp_window_late {
    size_t rank;     /* the latest rank; n if none is late */
    bool whole_host; /* all ranks of its host, and none of another host */
    enum rp_window_cause cause;
    double late_ns, share; /* how much later than its peers, per step and as a share of a step */
};

/* Judges the first `used` slices of each of n ranks. */
enum rp_code rp_window_judge(const struct rp_window_rank *ranks, size_t n, size_t used,
                             struct rp_window_late *out, struct rp_err *err);

/* Whether a rank did enough for a slice, or for a past to compare with. */
bool rp_window_is_slice(double steps);
bool rp_window_is_past(double steps);
/* Whether a step is longer than in earlier slices, beyond what these differ by. Changes `past`. */
bool rp_window_is_longer(double step_ns, double *past, size_t n);
/* Whether nothing has moved for so long that it is worth reporting. */
bool rp_window_is_still(double ns, double usual_ns, double longest_ns);

/* Subjects of alerts, and how many looks ago they were told last. */
typedef RP_VEC(struct rp_window_subject {
    char *about;
    size_t looks;
}) rp_window_told;

/* Whether a subject is not among them; it is from now on. */
bool rp_window_is_news(rp_window_told *told, const char *about, struct rp_err *err);
/* Called after each look: forgets those that were not told in so many. */
void rp_window_forget_told(rp_window_told *told, size_t looks);
