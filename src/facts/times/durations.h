/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How exact recorded times are, and how long things take between a host and its devices. */
#include "base/decides.h"

#define RP_CLOCK_RESOLUTION_NS 1000
RP_FACT(RP_CLOCK_RESOLUTION_NS, "ns",
        "times of Chrome's trace format are microseconds, and many recorders write whole ones");

#define RP_CLOCK_TOLERANCE_NS 10000
RP_DECISION(
    RP_CLOCK_TOLERANCE_NS, "ns",
    "times of two clocks that are so close are equal: the conversion of device times to the clock "
    "of the host is off by a few microseconds",
    "facts/times_of_two_clocks_have_a_tolerance");

#define RP_CLOCK_DRIFT_PPM 500
RP_FACT(
    RP_CLOCK_DRIFT_PPM, "ppm",
    "Linux changes the rate of its clock by at most that (MAXFREQ of adjtimex(2)); crystals drift by "
    "less");

#define RP_LAUNCH_NS 20000
RP_DECISION(
    RP_LAUNCH_NS, "ns",
    "a launch may take that long to reach an idle device: several times what it usually takes, as "
    "profilers add to it",
    "facts/launched_work_is_on_its_way");

#define RP_WAKE_UP_NS 100000
RP_DECISION(
    RP_WAKE_UP_NS, "ns",
    "a thread that waited continues this soon after the event: a thread that sleeps must be "
    "scheduled, and a first launch is longer on its way",
    "facts/what_waits_goes_on_soon");

#define RP_LONG_NS 1000000
RP_DECISION(
    RP_LONG_NS, "ns",
    "launches, signals and usual calls take microseconds: what lasts so long is something else, "
    "and has a cause of its own",
    "facts/from_a_millisecond_on_there_is_a_cause");
