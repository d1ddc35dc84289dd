/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_CUPTI_H
#define FAKE_CUPTI_H
/* What a test asks of the double of CUPTI. */
#include <stddef.h>
#include <stdint.h>

uint64_t fake_cupti_now(void);           /* by the clock that was registered; 0: none was */
void fake_cupti_put(const void *record); /* copied, by the size of its kind in CUPTI 13.0 */
int fake_cupti_left(void);               /* how often it was detached */
void fake_cupti_drop(size_t n);          /* so many records were dropped */
void fake_cupti_await(int all);          /* until buffers that were given back, or all, are read */
void fake_cupti_call(int domain, uint32_t id, const void *data); /* the subscriber, if it wants */
void fake_cupti_params(const void *const *params);        /* of the calls that are put next */
void fake_cupti_enter(uint32_t id, uint32_t correlation); /* a call of the runtime; put ends it */

/* fake_counters.c */
void fake_cupti_context(int begins);                              /* a context begins, or ends */
void fake_cupti_launch(const char *kernel, uint32_t correlation); /* by the driver */

#endif
