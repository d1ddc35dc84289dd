/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_RESULT_PART_H
#define RP_RESULT_PART_H
/*
 * The part of a question is what it keeps of one rank: a struct that is described by the same
 * tables of fields as a result, so that it can be written, sent to another process and read there.
 *
 *     struct part { const char *device; int64_t busy_ns; RP_VEC(struct gap) gaps; };
 *     static const struct rp_field part_fields[] = {
 *         RP_PART_TEXT(struct part, device),
 *         RP_PART_PLAIN(struct part, busy_ns),
 *         RP_PART_PLAIN_VEC(struct part, gaps, struct gap),
 *         RP_PART_END};
 *     static const struct rp_type part_type = {"part", sizeof(struct part), part_fields, NULL};
 *
 * Every member must be described: a member that is not is lost on the way. "Plain" is memory
 * without pointers (numbers, flags, enums, arrays and structs of these); it is copied as it stands,
 * so both processes must run the same build, which rp_part_read checks. Lists count their items in
 * a member n<member>; vectors are RP_VEC. Result types (rp_type_string and the types of records
 * that consist of described fields) can be items too.
 */
#include "base/arena.h"
#include "io/output.h"

#include <reprise/result.h>

#define RP_PART_FIELD_(type_, offset_, count_, item_) \
    RP_FIELD_("", NULL, RP_T_##type_, RP_UNIT_NONE, 0, offset_, count_, item_, "")
#define RP_PART_PLAIN(s, member) \
    RP_PART_FIELD_(PLAIN, offsetof(s, member), sizeof(((s *)0)->member), NULL)
#define RP_PART_BOOL(s, member)         RP_PART_FIELD_(BOOL, offsetof(s, member), 0, NULL)
#define RP_PART_TEXT(s, member)         RP_PART_FIELD_(STR, offsetof(s, member), 0, NULL)
#define RP_PART_RECORD(s, member, item) RP_PART_FIELD_(RECORD, offsetof(s, member), 0, item)
#define RP_PART_LIST(s, member, item) \
    RP_PART_FIELD_(LIST, offsetof(s, member), offsetof(s, n##member), item)
#define RP_PART_VEC(s, member, item) \
    RP_PART_FIELD_(VEC, offsetof(s, member.at), offsetof(s, member.n), item)
#define RP_PART_PLAIN_LIST(s, member, item) RP_PART_LIST(s, member, RP_PART_PLAIN_TYPE(item))
#define RP_PART_PLAIN_VEC(s, member, item)  RP_PART_VEC(s, member, RP_PART_PLAIN_TYPE(item))
#define RP_PART_END                         RP_FIELD_END

/* The type of items that are plain memory; at file scope only. */
#define RP_PART_PLAIN_TYPE(item) (&(const struct rp_type){#item, sizeof(item), rp_plain_item, NULL})
extern const struct rp_field rp_plain_item[];

/* Hands the memory of all vectors of a part over to the arena, which then owns everything. */
enum rp_code rp_part_adopt(const struct rp_type *type, void *part, struct rp_arena *arena,
                           struct rp_err *err);

/* Errors stick to `to`. */
void rp_part_write(const struct rp_type *type, const void *part, struct rp_out *to);

/* Fills part, which has type->size bytes; texts and items are in the arena. Vectors that were read
   must not grow. RP_FORMAT where the bytes are not a part of this type or were cut. */
enum rp_code rp_part_read(const struct rp_type *type, const void *bytes, size_t n,
                          struct rp_arena *arena, void *part, struct rp_err *err);

#endif
