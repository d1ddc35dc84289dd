/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Programs from bytes in memory and back, without an input: for nested formats, tests and writers.
 * Programs borrow the bytes. */
#include "io/output.h"
#include "io/proto_write.h"
#include "program/program.h"

/* limits may be NULL for the defaults. */
enum rp_code rp_hlo_text_parse(const char *text, size_t n, const struct rp_limits *limits,
                               struct rp_program **out, struct rp_err *err);

/* An HLO module as text that XLA and this reader accept. An error stays in `to`. */
enum rp_code rp_hlo_text_print(const struct rp_program *p, struct rp_out *to, struct rp_err *err);
/* The same, as StableHLO text. */
enum rp_code rp_stablehlo_print(const struct rp_program *p, struct rp_out *to, struct rp_err *err);

/* Reads any of the messages that hold an HLO module. */
enum rp_code rp_hlo_proto_parse(const void *bytes, size_t n, const struct rp_limits *limits,
                                struct rp_program **out, struct rp_err *err);

/* The bytes of the HloModuleProto inside any of them; false if there is none. */
bool rp_hlo_proto_module(const void *bytes, size_t n, struct rp_bytes *module);

/* Reads such a message into a new program of the language "hlo". */
enum rp_code rp_hlo_proto_fill(struct rp_program *p, const void *bytes, size_t n,
                               const struct rp_limits *limits, struct rp_err *err);

/* An HloProto. */
enum rp_code rp_hlo_proto_write(const struct rp_program *p, struct rp_proto_writer *to,
                                struct rp_err *err);

/* An HloModuleProto for a compiler: shapes without a layout get the row-major one, and a constant
 * whose values are elided in the text is an error. */
enum rp_code rp_hlo_module_write(const struct rp_program *p, struct rp_proto_writer *to,
                                 struct rp_err *err);

/* Reads a GraphDef into a new program of the language "graphdef"; with the text form, the bytes
 * need not outlive the call. */
enum rp_code rp_graphdef_fill(struct rp_program *p, struct rp_bytes graph,
                              const struct rp_limits *limits, struct rp_err *err);
enum rp_code rp_graphdef_fill_text(struct rp_program *p, const char *text, size_t n,
                                   const struct rp_limits *limits, struct rp_err *err);
