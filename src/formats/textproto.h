/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Protocol buffers as text (.pbtxt), by schema: from text to the wire format, and from the wire
 * format to text. So a reader of the binary form reads both. Fields that a schema does not know are
 * left out.
 */
#include "base/limits.h"
#include "formats/schema.h"
#include "io/output.h"
#include "io/proto_write.h"

/* RP_FORMAT with line and column where the text is malformed. */
enum rp_code rp_textproto_parse(const struct rp_schema *schema, const char *text, size_t n,
                                const struct rp_limits *limits, struct rp_proto_writer *to,
                                struct rp_err *err);

/* On one line ("key: 1 list { i: 2 }"), or indented by two spaces a level. */
enum rp_code rp_textproto_print(const struct rp_schema *schema, struct rp_bytes bytes,
                                bool one_line, struct rp_out *to, struct rp_err *err);
