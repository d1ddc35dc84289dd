/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A loop over an event and the spans around it, from the inside to the outside. */
#include "facts/work/attribution.h"

#define RP_FOR_ANCESTORS(trace, e)                                  \
    for (int left_ = RP_ANCESTORS_MAX; (e) != RP_NONE && left_ > 0; \
         (e) = (trace)->ev.parent[e], left_--)
