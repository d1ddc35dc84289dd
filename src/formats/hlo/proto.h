/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_HLO_PROTO_H
#define RP_FORMATS_HLO_PROTO_H
/*
 * What the readers and writers of HLO protobufs share. Readers fill values of attributes from
 * fields, and the writer fields from values; attrs.def says which field is whose. A value that has
 * no field is written as text in a field of our own, which others pass over.
 */
#include "formats/string_cache.h"
#include "io/proto.h"
#include "io/proto_write.h"
#include "program/program.h"

/* Our own fields: "key=value" of an instruction, a module; the text of a layout. */
#define HLO_FIELD_TEXT 60001

#define HLO_FIELDS 128 /* fields of instructions with a larger number are no attributes */

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
    RP_VEC(char) text;            /* of the layout being read */
    RP_VEC(int64_t) ints;         /* of the attribute being read */
    RP_VEC(uint32_t) ids;         /* the same */
    RP_VEC(struct rp_slice) texts;
    RP_VEC(struct rp_alias) aliases;
    RP_VEC(struct rp_bytes) payloads;       /* of the module */
    uint16_t key_of[HLO_FIELDS];            /* the attribute that a field is; 0: none, or several */
    struct rp_string_cache cache;           /* of opcodes and metadata */
    struct rp_map sequence_of;              /* id of a computation to its place in ... */
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
/* Attributes of operation r->op that a protobuf leaves out and text has. */
enum rp_code hlo_proto_implicit(struct hlo_proto *r);

/* ---- values (proto_values.c) ---- */

/* As attribute of the newest operation. */
enum rp_code hlo_add(struct hlo_proto *r, struct rp_attr attr);
/* Behind what is in r->ints already. */
enum rp_code hlo_collect_packed(struct hlo_proto *r, struct rp_bytes packed);

/* An OpSharding; *known: it can be a value, otherwise nothing was done. */
enum rp_code hlo_add_sharding(struct hlo_proto *r, struct rp_bytes bytes, bool *known);
enum rp_code hlo_add_window(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                            const struct rp_proto_item *item);
enum rp_code hlo_add_conv_dims(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                               const struct rp_proto_item *item);
enum rp_code hlo_add_padding(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                             const struct rp_proto_item *item);
enum rp_code hlo_add_iota_groups(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                 const struct rp_proto_item *item);
enum rp_code hlo_add_mesh_groups(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                 const struct rp_proto_item *item);
/* From all elements of a repeated field of a message. */
enum rp_code hlo_add_groups(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                            uint32_t field);
enum rp_code hlo_add_slices(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset);
enum rp_code hlo_add_pairs(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset);
enum rp_code hlo_add_aliases(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset);
/* input_output_alias of the module. */
enum rp_code hlo_add_module_aliases(struct hlo_proto *r, struct rp_bytes bytes);

/* ---- building the text of a layout ---- */

enum rp_code hlo_put(struct hlo_proto *r, const char *text, size_t n);
enum rp_code hlo_putf(struct hlo_proto *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "1,2" from a packed list. */
enum rp_code hlo_put_ints(struct hlo_proto *r, struct rp_bytes packed);

/* ---- tables in both directions ---- */

struct hlo_attr_field {
    uint16_t field, inner; /* as attrs.def has them */
};
struct hlo_attr_field hlo_attr_field(uint32_t key);
/* Fills r->key_of. */
void hlo_index_fields(struct hlo_proto *r);
/* Keys of the attributes in a message of dimensions, ended by 0; NULL: the field is no such. */
const uint16_t *hlo_dims_keys(uint32_t field);

/* Words of enumerations. */
const char *hlo_enum_word(uint32_t key, bool of_dot, uint64_t value); /* NULL: none */
bool hlo_enum_value(uint32_t key, bool of_dot, const char *word, size_t n, uint64_t *value);
bool hlo_is_enum(uint32_t key); /* whether its field is a number */

#endif
