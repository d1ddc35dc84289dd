/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The native file holds the columns of a trace as they are in memory, and is read by mapping.
 * docs/formats/rpt.md describes its layout. Header and section table are verified when it is
 * opened, a section when it is first used, everything by rp_rpt_verify.
 */
#include "io/input.h"
#include "io/output.h"
#include "trace/trace.h"

/* Whether the first bytes (8 are enough) are those of a native file. */
bool rp_rpt_sniff(const uint8_t *bytes, size_t n);

/* Appends one part: one rank. A file of several ranks is several parts in sequence. */
enum rp_code rp_rpt_write(const struct rp_trace *trace, struct rp_out *out, struct rp_err *err);

/* The length of the part that begins here; the next one, if any, follows it. */
enum rp_code rp_rpt_part_bytes(const uint8_t *bytes, size_t n, size_t *part, struct rp_err *err);

/* Opens the part that begins here. The trace borrows from bytes, which must outlive it (if they are
   not aligned to 8, they are copied). Only strings and small tables are verified: see
   rp_trace_require. */
enum rp_code rp_rpt_open(const uint8_t *bytes, size_t n, struct rp_trace **out, struct rp_err *err);

/* Reads everything, all parts: checksums of all sections and rp_trace_validate. */
enum rp_code rp_rpt_verify(const uint8_t *bytes, size_t n, struct rp_err *err);
