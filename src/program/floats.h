/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The small floating-point formats of machine learning, given by their parameters: converts any
 * value to the nearest one (ties to even) and back. Values beyond the range become infinity, or NaN
 * if the format has no infinity.
 */
#include "program/program.h"

bool rp_elem_is_float(unsigned elem); /* not complex */
uint64_t rp_float_encode(unsigned elem, double value);
double rp_float_decode(unsigned elem, uint64_t bits);
/* Returns the bits in which NaNs may differ; 0 if the type has at most one NaN for each sign. */
uint64_t rp_float_payload(unsigned elem);
