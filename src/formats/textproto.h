/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Protocol buffers as text (.pbtxt)is converted to the wire format and back by a schema, so a
 * reader of the binary form can read both. Fields that a schema does not know are dropped.
 */
#include "base/limits.h"
#include "formats/schema.h"
#include "io/output.h"
#include "io/proto_write.h"

/* Returns RP_FORMAT with line and column if the text is malformed. */
enum rp_code rp_textproto_parse(const struct rp_schema *schema, const char *text, size_t n,
                                const struct rp_limits *limits, struct rp_proto_writer *to,
                                struct rp_err *err);

/* Prints on one line ("key: 1 list { i: 2 }"), or indents each level by two spaces. */
enum rp_code rp_textproto_print(const struct rp_schema *schema, struct rp_bytes bytes,
                                bool one_line, struct rp_out *to, struct rp_err *err);
