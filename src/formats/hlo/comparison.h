/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How a comparison orders its operands. XLA before 2026 says "type=TOTALORDER" where floats are
 * ordered by their bits, later "order=TOTAL"; some versions also write the default. Programs have
 * the older form, which all versions read, and no default.
 */
#include "program/program.h"

/* Sets how the newest operation compares, and may change the attribute; false if it is to be
   dropped. */
bool rp_hlo_comparison_attr(const struct rp_program *p, uint32_t op, struct rp_attr *attr);
