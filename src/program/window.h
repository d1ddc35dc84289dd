/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The windows and dimension numbers of convolutions, with room for all their dimensions. */
#include "program/program.h"

#define RP_WINDOW_DIMS 16

struct rp_window {
    size_t n;
    struct rp_window_dim dim[RP_WINDOW_DIMS];
};

struct rp_conv_dims { /* positions of the dimensions */
    size_t nspatial;
    int64_t input_batch, input_feature, kernel_input, kernel_output, output_batch, output_feature;
    int64_t input_spatial[RP_WINDOW_DIMS], kernel_spatial[RP_WINDOW_DIMS],
        output_spatial[RP_WINDOW_DIMS];
};

/* Makes them attributes, which are copied into the program's arena. */
struct rp_attr rp_attr_of_window(struct rp_program *p, const struct rp_window *window);
struct rp_attr rp_attr_of_conv_dims(struct rp_program *p, const struct rp_conv_dims *dims);
/* Does the reverse; false if the attribute has another type. */
bool rp_attr_window(const struct rp_attr *attr, struct rp_window *out);
bool rp_attr_conv_dims(const struct rp_attr *attr, struct rp_conv_dims *out);

/* Parses "{size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=2x2 rhs_dilate=1x1 rhs_reversal=1x1}".
   Returns false if it is malformed or has too many dimensions. */
bool rp_window_parse(const char *at, size_t n, struct rp_window *out);

/* "b01f_01io->b01f" */
bool rp_conv_dims_parse(const char *at, size_t n, struct rp_conv_dims *out);
/* Also checks that the positions are possible. */
bool rp_conv_dims_print(const struct rp_conv_dims *dims, char out[64]);
