/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes protocol buffers into memory, field by field.
 *
 *     struct rp_proto_writer w = {0};
 *     size_t plane = rp_proto_begin(&w, 1);
 *     rp_proto_put_text(&w, 2, "/device:GPU:0");
 *     rp_proto_end(&w, plane);
 *     RP_TRY(rp_proto_written(&w, &bytes, err));
 *     ...
 *     rp_proto_writer_release(&w);
 *
 * Errors stick (there is one: no memory): after it puts do nothing, and rp_proto_written returns
 * it. A large file is written message by message: what rp_proto_written gave goes to an rp_out,
 * rp_proto_rewind begins anew in the same memory.
 */
#include "base/vec.h"
#include "io/proto.h"

struct rp_proto_writer { /* all zero: empty */
    RP_VEC(uint8_t) bytes;
    enum rp_code code;
};

void rp_proto_writer_release(struct rp_proto_writer *w); /* it may be used again */
void rp_proto_rewind(struct rp_proto_writer *w);         /* discards the content and the failure */

/* Returns what was written, borrowed until the next call, or the failure. */
enum rp_code rp_proto_written(const struct rp_proto_writer *w, struct rp_bytes *bytes,
                              struct rp_err *err);

/* Writes one field. Negative int32, int64 and enums are given as (uint64_t)(int64_t)value. */
void rp_proto_put_varint(struct rp_proto_writer *w, uint32_t number, uint64_t value);
void rp_proto_put_fixed32(struct rp_proto_writer *w, uint32_t number, uint32_t value);
void rp_proto_put_fixed64(struct rp_proto_writer *w, uint32_t number, uint64_t value);
void rp_proto_put_float(struct rp_proto_writer *w, uint32_t number, float value);
void rp_proto_put_bytes(struct rp_proto_writer *w, uint32_t number, const void *bytes, size_t n);
void rp_proto_put_text(struct rp_proto_writer *w, uint32_t number, const char *text);

/* Begins a field that is written piece by piece: a nested message, or a packed list (with the
   adds). Ends come in the reverse order of their begins. The end puts the length in its place, and
   moves the content by a few bytes if necessary. */
size_t rp_proto_begin(struct rp_proto_writer *w, uint32_t number);
void rp_proto_end(struct rp_proto_writer *w, size_t begun);

/* These write no tag: elements of packed lists, or whole fields. */
void rp_proto_add_varint(struct rp_proto_writer *w, uint64_t value);
void rp_proto_add_fixed32(struct rp_proto_writer *w, uint32_t value);
void rp_proto_add_fixed64(struct rp_proto_writer *w, uint64_t value);
void rp_proto_add_bytes(struct rp_proto_writer *w, const void *bytes, size_t n);
