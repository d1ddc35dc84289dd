/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A schema lists the names, numbers and types of the fields of a protobuf message; textproto.h
 * needs it to read and print text. They are made from the descriptions in abi/proto, one for each
 * message: rp_schema_HLO_MODULE, rp_schema_TF_GRAPH ...
 */
#include <stdbool.h>
#include <stdint.h>

enum rp_schema_type { /* RP_SCHEMA_END closes a list of fields */
                      RP_SCHEMA_END,
                      RP_SCHEMA_INT, /* all numbers that are stored as varints */
                      RP_SCHEMA_BOOL,
                      RP_SCHEMA_ENUM,
                      RP_SCHEMA_FLOAT,
                      RP_SCHEMA_DOUBLE,
                      RP_SCHEMA_TEXT, /* strings and bytes */
                      RP_SCHEMA_MESSAGE
};

struct rp_schema_word {
    const char *word; /* NULL closes a list */
    int32_t value;
};

struct rp_schema_field {
    const char *name;
    uint16_t number;
    bool repeated;
    uint8_t type;
    const struct rp_schema *message;    /* of messages */
    const struct rp_schema_word *words; /* of enums */
};

struct rp_schema {
    const char *name;
    const struct rp_schema_field *fields;
};

/* The field with that number, or NULL if the schema does not have it. */
const struct rp_schema_field *rp_schema_field(const struct rp_schema *schema, uint32_t number);

#define RP_MESSAGE(tag, name) extern const struct rp_schema rp_schema_##tag;
#include "abi/proto/hlo.def"
#define RP_MESSAGE(tag, name) extern const struct rp_schema rp_schema_##tag;
#include "abi/proto/tensorflow.def"
#define RP_MESSAGE(tag, name) extern const struct rp_schema rp_schema_##tag;
#include "abi/proto/xla_dump.def"
