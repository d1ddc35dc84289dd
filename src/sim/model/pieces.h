/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds which launches of a step are repeated. The launches of the steps that are judged, in the
 * order of their calls, are cut where the host waits for the device: what it launches next may
 * depend on what it reads. Two pieces are equal when they launch the same kernels on the same grids
 * for operators with the same shapes, as far as these were recorded.
 *
 *     thread   [launch][launch][launch][wait][launch][launch] | [launch][launch]...
 *     pieces   |<------------ 1 ----------->||<----- 2 ----->| step
 */
#include "facts/work/attribution.h"
#include "sim/model/part.h"

/* Fills part->pieces; its steps and the events of its nodes are known. O(n log n) in launches. */
enum rp_code rp_sim_pieces_find(struct rp_sim_part *part, const struct rp_trace *t,
                                const struct rp_work *work, const struct rp_attribution *places,
                                struct rp_err *err);
