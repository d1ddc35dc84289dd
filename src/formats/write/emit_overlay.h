/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_WRITE_EMIT_OVERLAY_H
#define RP_FORMATS_WRITE_EMIT_OVERLAY_H
/* The overlay of a Chrome trace: events that stand behind the recorded ones. */
#include "formats/write/emit_json.h"
#include "formats/write/writers.h"

/* tracks: ,"pid":0,"tid":7 a track of the trace. any: events stand before; returns the same. */
bool rp_emit_overlay(struct rp_emit *e, const struct rp_write_overlay *o,
                     const struct rp_pieces *tracks, bool any);

#endif
