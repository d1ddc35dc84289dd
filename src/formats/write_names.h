/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_WRITE_NAMES_H
#define RP_FORMATS_WRITE_NAMES_H
/* The words that tables use for the model's enums: one word each, for queries, and stable. */
#include <stdint.h>

const char *rp_write_kind(uint8_t kind);          /* enum rp_kind: "kernel" */
const char *rp_write_track_kind(uint8_t kind);    /* enum rp_track_kind: "stream" */
const char *rp_write_link_source(uint8_t source); /* enum rp_link_source: "correlation" */
const char *rp_write_step_source(uint32_t source);
const char *rp_write_arg_type(uint8_t type); /* enum rp_arg_type: "int" */

#endif
