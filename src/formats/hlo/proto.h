/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_HLO_PROTO_H
#define RP_FORMATS_HLO_PROTO_H
/*
 * What the readers and writers of HLO protobufs share. The model keeps attributes in the words of
 * HLO text, so a reader turns fields into words and the writer words into fields. A word that has
 * no field is written as text in a field of our own, which others pass over.
 */
#include "formats/string_cache.h"
#include "io/proto.h"
#include "io/proto_write.h"
#include "program/program.h"

/* Our own fields: "key=value" of an instruction, a module; the text of a layout. */
#define HLO_FIELD_TEXT 60001

struct hlo_proto {
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(uint32_t) dense;       /* low half of an id to operation + 1; the operation must agree */
    RP_VEC(uint64_t) id_of;       /* of every operation */
    struct rp_map op_of;          /* the same for ids that are far apart */
    struct rp_map computation_of; /* id of a computation to its index */
    struct rp_strtab shape_bytes; /* shapes as written ... */
    RP_VEC(uint32_t) shape_of;    /* ... and what they are */
    RP_VEC(char) text;            /* of the attribute being made */
    struct rp_string_cache cache; /* of opcodes and metadata */
    struct rp_map sequence_of;    /* id of a computation to its place in ... */
    RP_VEC(struct rp_bytes) sequences;      /* ... the schedule: lists of ids */
    RP_VEC(struct rp_bytes) found, ordered; /* instructions of a computation */
    RP_VEC(uint64_t) computation_ids;       /* by index */
    uint32_t op;                            /* being read */
    bool metadata_rest; /* its metadata has fields that the model has no place for */
};

/* One instruction, its fields found but not looked into. */
struct hlo_fields {
    struct rp_bytes name, opcode, shape, metadata, literal, operand_ids, called_ids, control_ids;
    int64_t id, parameter, index;
    bool loose_ids; /* lists of ids that are not packed: the slow way */
    bool others;    /* there are fields that are not among these: attributes */
};

/* The operation of an id, or RP_MAP_NONE. */
static inline uint32_t hlo_proto_op(const struct hlo_proto *r, uint64_t id)
{
    uint32_t low = (uint32_t)id;
    uint32_t op = low < r->dense.n ? r->dense.at[low] : 0;

    return op && r->id_of.at[op - 1] == id ? op - 1 : rp_map_get(&r->op_of, id);
}

enum rp_code hlo_proto_shape(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                             unsigned depth, uint32_t *id);
enum rp_code hlo_proto_literal(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                               uint32_t shape, int64_t *index);
enum rp_code hlo_proto_metadata(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                uint32_t *id);
/* Whether a field of OpMetadata has a place in the model. */
bool hlo_proto_metadata_known(const struct rp_proto_item *it);
enum rp_code hlo_proto_frames(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset);
/* All fields of an instruction that are attributes, for operation r->op. */
enum rp_code hlo_proto_attrs(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset);

/* The schedule of the module (proto_schedule.c), and the instructions of one computation in its
   order, into r->ordered; none where there is none for it. */
enum rp_code hlo_proto_schedule(struct hlo_proto *r, struct rp_bytes bytes);
enum rp_code hlo_proto_order(struct hlo_proto *r, struct rp_bytes bytes, uint64_t computation);
/* Attributes of operation r->op that a protobuf leaves out and text has (proto_implicit.c). */
enum rp_code hlo_proto_said(struct hlo_proto *r);
/* operand_layout_constraints of a custom call, from all its fields. */
enum rp_code hlo_proto_constraints(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset);

/* An OpSharding; *known: it has words, otherwise nothing was done. */
enum rp_code hlo_proto_sharding(struct hlo_proto *r, struct rp_bytes bytes, bool *known);

/* Messages of a field, as attributes (proto_window.c). */
enum rp_code hlo_proto_window(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item);
enum rp_code hlo_proto_conv_dims(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                 const struct rp_proto_item *item);
enum rp_code hlo_proto_padding(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                               const struct rp_proto_item *item);
/* "{[0:4:1], [2:8:2]}", from all fields of an instruction. */
enum rp_code hlo_proto_mesh_groups(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                   const struct rp_proto_item *item);
enum rp_code hlo_proto_slices(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset);
/* Up to three numbers of a small message. */
enum rp_code hlo_proto_triple(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item, int64_t v[4]);

/* ---- building the text of an attribute ---- */

enum rp_code hlo_put(struct hlo_proto *r, const char *text, size_t n);
enum rp_code hlo_put_word(struct hlo_proto *r, const char *text); /* up to its NUL */
/* As "%lld" would, which costs more than the rest of reading an attribute. */
enum rp_code hlo_put_int(struct hlo_proto *r, int64_t value);
enum rp_code hlo_putf(struct hlo_proto *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "{1,2}" from a packed or single list field; `first` is "{" or "," before. */
enum rp_code hlo_put_ints(struct hlo_proto *r, struct rp_bytes packed, const char *separator);
enum rp_code hlo_put_quoted(struct hlo_proto *r, struct rp_bytes bytes);
/* What was put becomes the attribute of the operation; of the module where module is true. */
enum rp_code hlo_put_attr(struct hlo_proto *r, uint32_t key, bool module);

/* ---- tables in both directions ---- */

/* How one attribute is one field. */
enum hlo_codec {
    HLO_INT,    /* number; absent where 0 */
    HLO_INT0,   /* number; 0 is one, too */
    HLO_INT1,   /* number; absent where 0 or 1 */
    HLO_BOOL,   /* absent where false */
    HLO_WORD,   /* text as it is */
    HLO_QUOTED, /* text in quotes */
    HLO_INTS,   /* {1,2} */
    HLO_FLOAT   /* six digits */
};
struct hlo_codec_row {
    uint16_t field, key;
    uint8_t codec;
};
const struct hlo_codec_row *hlo_codec_of_field(uint32_t field); /* or NULL */
const struct hlo_codec_row *hlo_codec_of_key(uint32_t key);     /* or NULL */

/* Fields that are a message of lists, one attribute each: dot, gather and scatter dimensions. */
struct hlo_group_row {
    uint16_t field, inner, key;
    bool single; /* a number instead of a list */
};
const struct hlo_group_row *hlo_group_rows(size_t *n);

/* Words of enums. */
const char *hlo_enum_word(uint32_t key, bool of_dot, uint64_t value); /* NULL: none */
bool hlo_enum_value(uint32_t key, bool of_dot, const char *word, size_t n, uint64_t *value);
bool hlo_enum_field(uint32_t key, bool of_dot, uint32_t *field); /* whether it is a plain enum */

#endif
