/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptions of protobuf messages: what a row may get wrong and the compiler does not see. */
#include "abi/proto/hlo.h"
#include "abi/proto/tensorflow.h"
#include "formats/textproto.h"
#include "unit.h"

#include <ctype.h>
#include <string.h>

struct field {
    const char *message, *id, *name;
    uint32_t number;
};

static const struct field field_rows[] = {
#define RP_MEMBER(tag, id, name, number, count, type, of) {#tag, #id, name, number},
#include "abi/proto/hlo.def"
#define RP_MEMBER(tag, id, name, number, count, type, of) {#tag, #id, name, number},
#include "abi/proto/tensorflow.def"
#define RP_MEMBER(tag, id, name, number, count, type, of) {#tag, #id, name, number},
#include "abi/proto/blade.def"
#define RP_MEMBER(tag, id, name, number, count, type, of) {#tag, #id, name, number},
#include "abi/proto/chakra.def"
#define RP_MEMBER(tag, id, name, number, count, type, of) {#tag, #id, name, number},
#include "abi/proto/runmeta.def"
#define RP_MEMBER(tag, id, name, number, count, type, of) {#tag, #id, name, number},
#include "abi/proto/xspace.def"
};
#define FIELDS (sizeof field_rows / sizeof *field_rows)

struct value {
    const char *of, *word;
    int64_t value;
};

static const struct value value_rows[] = {
#define RP_WORD(tag, word, value) {#tag, #word, value},
#include "abi/proto/hlo.def"
#define RP_WORD(tag, word, value) {#tag, #word, value},
#include "abi/proto/tensorflow.def"
};
#define VALUES (sizeof value_rows / sizeof *value_rows)

struct message {
    const char *tag, *end;
    const struct rp_schema *schema;
};

/* clang-format off */
static const struct message message_rows[] = {
#define RP_MESSAGE(tag, name)     {#tag,
#define RP_MESSAGE_END(tag, name) #tag, &rp_schema_##tag},
#include "abi/proto/hlo.def"
#define RP_MESSAGE(tag, name)     {#tag,
#define RP_MESSAGE_END(tag, name) #tag, &rp_schema_##tag},
#include "abi/proto/tensorflow.def"
};
/* clang-format on */
#define MESSAGES (sizeof message_rows / sizeof *message_rows)

static void fields_have_one_number_and_one_name(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < FIELDS; i++) {
        const struct field *f = &field_rows[i];

        assert_in_range(f->number, 1, UINT16_MAX); /* what a schema holds */
        for (size_t k = 0; k < i; k++) {
            if (strcmp(field_rows[k].message, f->message) != 0)
                continue;
            if (field_rows[k].number == f->number || !strcmp(field_rows[k].name, f->name))
                fail_msg("%s: '%s' and '%s' have the same number or name", f->message,
                         field_rows[k].name, f->name);
        }
    }
}

static void ids_are_names_in_upper_case(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < FIELDS; i++) {
        const struct field *f = &field_rows[i];

        assert_int_equal(strlen(f->id), strlen(f->name));
        for (size_t k = 0; f->name[k]; k++)
            if (toupper((unsigned char)f->name[k]) != f->id[k])
                fail_msg("%s: '%s' is called %s", f->message, f->name, f->id);
    }
}

static void enums_have_no_value_twice(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < VALUES; i++)
        for (size_t k = 0; k < i; k++)
            if (!strcmp(value_rows[i].of, value_rows[k].of) &&
                (value_rows[i].value == value_rows[k].value ||
                 !strcmp(value_rows[i].word, value_rows[k].word)))
                fail_msg("%s: '%s' and '%s' are the same", value_rows[i].of, value_rows[k].word,
                         value_rows[i].word);
}

/* Rows carry the tag of their message, so that a row in the wrong place is found here. */
static void rows_stand_in_their_message(void **state)
{
    size_t at = 0; /* messages with a schema come first */

    UNUSED_STATE(state);
    for (size_t m = 0; m < MESSAGES; m++) {
        const struct rp_schema_field *f = message_rows[m].schema->fields;

        assert_string_equal(message_rows[m].tag, message_rows[m].end);
        for (size_t k = 0; k < m; k++)
            if (message_rows[k].schema->name == message_rows[m].schema->name)
                assert_string_not_equal(message_rows[k].tag, message_rows[m].tag);
        for (; at < FIELDS && !strcmp(field_rows[at].message, message_rows[m].tag); at++) {
            if (f->type == RP_SCHEMA_END || f->number != field_rows[at].number)
                continue; /* a field that no schema has */
            assert_string_equal(f->name, field_rows[at].name);
            assert_true((f->type == RP_SCHEMA_MESSAGE) == (f->message != NULL));
            assert_true((f->type == RP_SCHEMA_ENUM) == (f->words != NULL));
            f++;
        }
        assert_int_equal(f->type, RP_SCHEMA_END);
    }
    assert_string_equal(field_rows[at].message, "BLADE_INPUT");
}

/* A few numbers by heart, from the .proto files: the table as a whole may not be shifted. */
static void numbers_of_the_proto_files(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(RP_HLO_INSTRUCTION_OPCODE, 2);
    assert_int_equal(RP_HLO_INSTRUCTION_OPERAND_IDS, 36);
    assert_int_equal(RP_HLO_MODULE_COMPUTATIONS, 3);
    assert_int_equal(RP_HLO_SHAPE_ELEMENT_TYPE, 2);
    assert_int_equal(RP_HLO_TYPE_BF16, 16);
    assert_int_equal(RP_TF_GRAPH_NODE, 1);
    assert_int_equal(RP_TF_NODE_ATTR, 5);
    assert_int_equal(RP_TF_FUNCTION_NODE_DEF, 3);
    assert_int_equal(RP_TF_TENSOR_TENSOR_CONTENT, 4);
    assert_int_equal(RP_TF_TYPE_DT_BFLOAT16, 14);
}

/* Element types have the numbers of XLA's PrimitiveType. */
static void element_types_are_those_of_xla(void **state)
{
    static const struct {
        const char *word;
        unsigned elem;
    } rows[] = {
#define RP_ELEM(id, name, number, bits) {#id, number},
#include "program/elements.def"
#undef RP_ELEM
    };
    size_t found = 0;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < VALUES; k++)
            if (!strcmp(value_rows[k].of, "HLO_TYPE") &&
                !strcmp(value_rows[k].word, rows[i].word)) {
                assert_int_equal(value_rows[k].value, rows[i].elem);
                found++;
            }
    assert_true(found > 30);
}

static void first_fields_are_found(void **state)
{
    static const uint8_t bytes[] = {0x08, 5, 0x12, 1, 'a', 0x1a, 1, 'b', 0x12, 2, 'c', 'd'};
    struct rp_bytes message = {bytes, sizeof bytes}, found;

    UNUSED_STATE(state);
    assert_int_equal(rp_proto_find(message, 1).n, 0); /* a number */
    assert_int_equal(rp_proto_find(message, 4).n, 0);
    found = rp_proto_find(message, 2);
    assert_int_equal(found.n, 1);
    assert_memory_equal(found.at, "a", 1);
    found = rp_proto_find_nth(message, 2, 1);
    assert_int_equal(found.n, 2);
    assert_memory_equal(found.at, "cd", 2);
    assert_int_equal(rp_proto_find_nth(message, 2, 2).n, 0);
}

int test_schema(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_have_one_number_and_one_name),
        cmocka_unit_test(ids_are_names_in_upper_case),
        cmocka_unit_test(enums_have_no_value_twice),
        cmocka_unit_test(rows_stand_in_their_message),
        cmocka_unit_test(numbers_of_the_proto_files),
        cmocka_unit_test(element_types_are_those_of_xla),
        cmocka_unit_test(first_fields_are_found),
    };

    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
