/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_CUPTI_H
#define FAKE_CUPTI_H
/* What a test asks of the double of CUPTI. */
#include <stddef.h>
#include <stdint.h>

uint64_t fake_cupti_now(void);           /* by the clock that was registered; 0: none was */
void fake_cupti_context(void);           /* a context is created */
void fake_cupti_put(const void *record); /* copied, by the size of its kind in CUPTI 13.0 */
void fake_cupti_drop(size_t n);          /* so many records were dropped */

#endif
