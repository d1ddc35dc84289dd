/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Field numbers of Perfetto's traces: RP_PFT_PACKET_TRACK_EVENT is 11; and values of their enums.
 */

enum rp_perfetto_field {
#define RP_MEMBER(tag, id, name, number, count, type, of) RP_##tag##_##id = number,
#include "abi/proto/perfetto.def"
};

enum rp_perfetto_type { /* TrackEvent.type */
                        RP_PFT_BEGIN = 1,
                        RP_PFT_END,
                        RP_PFT_INSTANT,
                        RP_PFT_COUNT,
                        RP_PFT_STATE
};

enum { RP_PFT_FLAG_CLEARED = 1, RP_PFT_FLAG_NEEDED = 2 };                  /* sequence_flags */
enum { RP_PFT_MERGE_BY_NAME = 1, RP_PFT_MERGE_NONE, RP_PFT_MERGE_BY_KEY }; /* siblings */
enum { RP_PFT_CLOCK_REALTIME = 1, RP_PFT_CLOCK_BOOTTIME = 6 };
enum { /* Frame.kind */
       RP_PFT_FRAME_NATIVE = 1,
       RP_PFT_FRAME_KERNEL,
       RP_PFT_FRAME_INTERPRETED
};
#define RP_PFT_ORDER_EXPLICIT 3 /* child_ordering */

/* A key of our own for the category of an arrow, at its begin; Perfetto's arrows have none. */
#define RP_PFT_ARROW_KEY "reprise.arrow"
