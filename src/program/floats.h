/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The small floating-point formats of machine learning, by their parameters: any value to the
 * nearest one (ties to even) and back. Values beyond the range become infinity, or NaN where the
 * format has no infinity.
 */
#include "program/program.h"

bool rp_elem_is_float(unsigned elem); /* not complex */
uint64_t rp_float_encode(unsigned elem, double value);
double rp_float_decode(unsigned elem, uint64_t bits);
/* The bits of a NaN that may differ between NaNs; 0: the type has one NaN for each sign at most. */
uint64_t rp_float_payload(unsigned elem);
