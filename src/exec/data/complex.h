/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* <complex.h> without its macro I, and with CMPLX and CMPLXF, which glibc defines for gcc only. */
#include <complex.h>
#undef I

#ifndef CMPLX
#define CMPLX(re, im)  __builtin_complex((double)(re), (double)(im))
#define CMPLXF(re, im) __builtin_complex((float)(re), (float)(im))
#endif

typedef double complex rp_c128;
