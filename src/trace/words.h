/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The names of the model's enum values in results and exports; they are stable. */
#include <stdint.h>

const char *rp_word_kind(uint8_t kind);          /* enum rp_kind: "kernel" */
const char *rp_word_track_kind(uint8_t kind);    /* enum rp_track_kind: "stream" */
const char *rp_word_link_source(uint8_t source); /* enum rp_link_source: "correlation" */
const char *rp_word_step_source(uint32_t source);
const char *rp_word_step_phase(uint8_t phase);  /* enum rp_step_phase: "decode"; NULL: none */
const char *rp_word_weight_unit(uint32_t unit); /* enum rp_weight_unit: "ns" */
const char *rp_word_frame_kind(uint32_t kind);  /* enum rp_frame_kind: "python" */
const char *rp_word_arg_type(uint8_t type);     /* enum rp_arg_type: "int" */
