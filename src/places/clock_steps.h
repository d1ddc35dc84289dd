/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Takes out of the course of a rank the time by which its clock was set forward: no work took it.
 */
#include "facts/clocks/clocks.h"
#include "places/course.h"

/* Replaces the course and the collectives by copies in the arena if the clock was set. */
enum rp_code rp_course_undo_steps(const struct rp_clock *clock, const struct rp_course **course,
                                  const struct rp_collectives **list, struct rp_arena *arena,
                                  struct rp_err *err);
