/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the readers and the writer of HLO protobufs. Readers set attributes from fields, and
 * the writer sets fields from attributes; attrs.def maps attributes to fields. A value that has no
 * field is written as text in a private field, which other readers ignore.
 */
#include "formats/string_cache.h"
#include "io/proto.h"
#include "io/proto_write.h"
#include "program/program.h"

/* Fields of our own: "key=value" of an instruction or module; the text of a layout. */
#define RP_HLO_OWN_FIELD 60001

/* Fields of instructions with a larger number are not attributes. */
#define RP_HLO_PROTO_FIELDS 128

struct rp_hlo_proto {
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(uint32_t)
    dense; /* from the low half of an id to operation + 1; that operation must have this id */
    RP_VEC(uint64_t) id_of;       /* of every operation */
    struct rp_map op_of;          /* the same for ids that are not consecutive */
    struct rp_map computation_of; /* from the id of a computation to its index */
    struct rp_strtab shape_bytes; /* shapes as written ... */
    RP_VEC(uint32_t) shape_of;    /* ... and what they are */
    RP_VEC(char) text;            /* text of the layout that is being read */
    RP_VEC(int64_t) ints;         /* numbers of the attribute that is being read */
    RP_VEC(uint32_t) ids;         /* the same */
    RP_VEC(struct rp_slice) texts;
    RP_VEC(struct rp_alias) aliases;
    RP_VEC(struct rp_bytes) payloads;     /* of the module */
    uint16_t key_of[RP_HLO_PROTO_FIELDS]; /* from field number to attribute; 0: none, or several */
    struct rp_string_cache cache;         /* strings of opcodes and metadata */
    struct rp_map sequence_of; /* from the id of a computation to its index in `sequences` */
    RP_VEC(struct rp_bytes) sequences;      /* the schedule: lists of ids of instructions */
    RP_VEC(struct rp_bytes) found, ordered; /* instructions of a computation */
    RP_VEC(uint64_t) computation_ids;       /* by index */
    uint32_t op;                            /* being read */
    bool metadata_rest; /* the metadata has fields that the model has no place for */
};

/* One instruction whose fields were found but not yet read. */
struct rp_hlo_fields {
    struct rp_bytes name, opcode, shape, metadata, literal, operand_ids, called_ids;
    int64_t id, parameter, index;
    bool loose_ids; /* some lists of ids are not packed and need the slow way */
    bool others;    /* there are other fields than these: attributes */
};

/* The operation with an id, or RP_MAP_NONE. */
static inline uint32_t rp_hlo_proto_op(const struct rp_hlo_proto *r, uint64_t id)
{
    uint32_t low = (uint32_t)id;
    uint32_t op = low < r->dense.n ? r->dense.at[low] : 0;

    return op && r->id_of.at[op - 1] == id ? op - 1 : rp_map_get(&r->op_of, id);
}

enum rp_code rp_hlo_proto_shape(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                unsigned depth, uint32_t *id);
enum rp_code rp_hlo_proto_literal(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                  uint32_t shape, int64_t *index);
enum rp_code rp_hlo_proto_metadata(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                   uint32_t *id);
/* Whether a field of OpMetadata has a place in the model. */
bool rp_hlo_proto_metadata_known(const struct rp_proto_item *it);
enum rp_code rp_hlo_proto_frames(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset);
/* Adds frontend attributes of the module. */
enum rp_code rp_hlo_proto_add_module_map(struct rp_hlo_proto *r, struct rp_proto_cursor c);
/* Adds all fields of an instruction that are attributes to operation r->op. */
enum rp_code rp_hlo_proto_attrs(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset);

/* Adds the attributes that a protobuf leaves out and text has to operation r->op. */
enum rp_code rp_hlo_proto_implicit(struct rp_hlo_proto *r);

/* ---- values (proto_values.c) ---- */

/* Adds an attribute to the newest operation. */
enum rp_code rp_hlo_proto_add(struct rp_hlo_proto *r, struct rp_attr attr);
/* Appends numbers to r->ints. */
enum rp_code rp_hlo_proto_collect(struct rp_hlo_proto *r, struct rp_proto_cursor list);

/* Adds an OpSharding; *known is false if it cannot be a value, and then nothing was done. */
enum rp_code rp_hlo_proto_add_sharding(struct rp_hlo_proto *r, struct rp_bytes bytes, bool *known);
/* Reads how the results of a partitioned module are placed. */
enum rp_code rp_hlo_proto_placement(struct rp_hlo_proto *r, struct rp_bytes bytes);
enum rp_code rp_hlo_proto_add_window(struct rp_hlo_proto *r, struct rp_proto_cursor c);
enum rp_code rp_hlo_proto_add_conv_dims(struct rp_hlo_proto *r, struct rp_proto_cursor c);
enum rp_code rp_hlo_proto_add_padding(struct rp_hlo_proto *r, struct rp_proto_cursor c);
enum rp_code rp_hlo_proto_add_iota_groups(struct rp_hlo_proto *r, struct rp_proto_cursor c);
enum rp_code rp_hlo_proto_add_mesh_groups(struct rp_hlo_proto *r, struct rp_proto_cursor c);
/* Adds groups from all elements of a repeated field of a message. */
enum rp_code rp_hlo_proto_add_groups(struct rp_hlo_proto *r, struct rp_proto_cursor c,
                                     uint32_t field);
enum rp_code rp_hlo_proto_add_slices(struct rp_hlo_proto *r, struct rp_proto_cursor c);
enum rp_code rp_hlo_proto_add_pairs(struct rp_hlo_proto *r, struct rp_proto_cursor c);
enum rp_code rp_hlo_proto_add_aliases(struct rp_hlo_proto *r, struct rp_proto_cursor c);
/* Adds input_output_alias of the module. */
enum rp_code rp_hlo_proto_add_module_aliases(struct rp_hlo_proto *r, struct rp_proto_cursor c);

/* ---- tables in both directions ---- */

struct rp_hlo_attr_field {
    uint16_t field, inner; /* as attrs.def has them */
};
struct rp_hlo_attr_field rp_hlo_attr_field(uint32_t key);
/* Fills r->key_of. */
void rp_hlo_index_fields(struct rp_hlo_proto *r);
/* Keys of the attributes in a message of dimensions, terminated by 0; NULL if the field is none. */
const uint16_t *rp_hlo_dims_keys(uint32_t field);

/* The word for a value of an enumeration. */
const char *rp_hlo_enum_word(uint32_t key, bool of_dot, uint64_t value); /* NULL: none */
bool rp_hlo_enum_value(uint32_t key, bool of_dot, const char *word, size_t n, uint64_t *value);
bool rp_hlo_is_enum(uint32_t key); /* whether the field of the key is a number */
