/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an HLO protobuf, field by field: shapes, layouts, constants, places in the source.
 */
#include "abi/proto/hlo.h"
#include "formats/programs.h"
#include "io/proto_write.h"
#include "program/opcodes.h"
#include "unit.h"

/* One instruction in one computation; what is written between the two is part of it. */
struct one_op {
    struct rp_proto_writer w;
    size_t module, computation, instruction;
};

static struct one_op begin_op(const char *opcode)
{
    struct one_op m = {0};

    m.module = rp_proto_begin(&m.w, 1);
    rp_proto_put_text(&m.w, RP_HLO_MODULE_NAME, "m");
    m.computation = rp_proto_begin(&m.w, RP_HLO_MODULE_COMPUTATIONS);
    rp_proto_put_text(&m.w, RP_HLO_COMPUTATION_NAME, "e");
    m.instruction = rp_proto_begin(&m.w, RP_HLO_COMPUTATION_INSTRUCTIONS);
    rp_proto_put_text(&m.w, RP_HLO_INSTRUCTION_NAME, "p");
    rp_proto_put_text(&m.w, RP_HLO_INSTRUCTION_OPCODE, opcode);
    return m;
}

static void end_op(struct one_op *m)
{
    rp_proto_end(&m->w, m->instruction);
    rp_proto_end(&m->w, m->computation);
}

static enum rp_code read_op(struct one_op *m, struct rp_program **out, struct rp_err *err)
{
    struct rp_bytes bytes;
    enum rp_code code;

    rp_proto_end(&m->w, m->module);
    assert_ok(rp_proto_written(&m->w, &bytes, err), err);
    code = rp_hlo_proto_parse(bytes.at, bytes.n, NULL, out, err);
    rp_proto_writer_release(&m->w);
    return code;
}

static struct rp_program *program_of(struct one_op *m)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(read_op(m, &p, &err), &err);
    return p;
}

static void refuse(struct one_op *m, enum rp_code code, const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_code(read_op(m, &p, &err), code);
    assert_contains(err.text, text);
}

static void put_list(struct rp_proto_writer *w, uint32_t field, const int64_t *at, size_t n)
{
    size_t list = rp_proto_begin(w, field);

    for (size_t i = 0; i < n; i++)
        rp_proto_add_varint(w, (uint64_t)at[i]);
    rp_proto_end(w, list);
}

static size_t begin_shape(struct rp_proto_writer *w, uint32_t field, unsigned elem)
{
    size_t shape = rp_proto_begin(w, field);

    rp_proto_put_varint(w, RP_HLO_SHAPE_ELEMENT_TYPE, elem);
    return shape;
}

static void check_shape(struct one_op *m, const char *want)
{
    char shape[160];

    end_op(m);
    struct rp_program *p = program_of(m);
    rp_shape_text(p, p->shape.at[0], true, shape, sizeof shape);
    assert_string_equal(shape, want);
    rp_program_free(p);
}

static void dimensions_are_read(void **state)
{
    static const int64_t dims[] = {4, -1, 6}, order[] = {1, 0, 2}, tile[] = {8, 128};
    struct one_op m = begin_op("after-all");
    size_t shape, layout, part;

    UNUSED_STATE(state);
    shape = begin_shape(&m.w, RP_HLO_INSTRUCTION_SHAPE, RP_ELEM_F32);
    put_list(&m.w, RP_HLO_SHAPE_DIMENSIONS, dims, 2);
    rp_proto_put_varint(&m.w, RP_HLO_SHAPE_DIMENSIONS, 6); /* not packed: one more */
    rp_proto_put_bytes(&m.w, RP_HLO_SHAPE_IS_DYNAMIC_DIMENSION, "\1\0\0", 3);
    rp_proto_end(&m.w, shape);
    check_shape(&m, "f32[<=4,?,6]");

    m = begin_op("after-all");
    shape = begin_shape(&m.w, RP_HLO_INSTRUCTION_SHAPE, RP_ELEM_BF16);
    put_list(&m.w, RP_HLO_SHAPE_DIMENSIONS, (const int64_t[]){4, 5, 6}, 3);
    layout = rp_proto_begin(&m.w, RP_HLO_SHAPE_LAYOUT);
    put_list(&m.w, RP_HLO_LAYOUT_MINOR_TO_MAJOR, order, 3);
    for (int i = 0; i < 2; i++) {
        part = rp_proto_begin(&m.w, RP_HLO_LAYOUT_TILES);
        put_list(&m.w, RP_HLO_TILE_DIMENSIONS, tile, i ? 1 : 2);
        rp_proto_end(&m.w, part);
    }
    rp_proto_put_varint(&m.w, RP_HLO_LAYOUT_TAIL_PADDING_ALIGNMENT_IN_ELEMENTS, 2);
    rp_proto_put_varint(&m.w, RP_HLO_LAYOUT_ELEMENT_SIZE_IN_BITS, 4);
    rp_proto_put_varint(&m.w, RP_HLO_LAYOUT_MEMORY_SPACE, 1);
    rp_proto_put_varint(&m.w, RP_HLO_LAYOUT_DYNAMIC_SHAPE_METADATA_PREFIX_BYTES, 16);
    rp_proto_end(&m.w, layout);
    rp_proto_end(&m.w, shape);
    check_shape(&m, "bf16[4,5,6]{1,0,2:T(8,128)(8)L(2)E(4)S(1)M(16)}");

    m = begin_op("after-all"); /* what stands for nothing is not written */
    shape = begin_shape(&m.w, RP_HLO_INSTRUCTION_SHAPE, RP_ELEM_S32);
    put_list(&m.w, RP_HLO_SHAPE_DIMENSIONS, dims, 1);
    layout = rp_proto_begin(&m.w, RP_HLO_SHAPE_LAYOUT);
    rp_proto_put_varint(&m.w, RP_HLO_LAYOUT_MINOR_TO_MAJOR, 0);
    rp_proto_put_varint(&m.w, RP_HLO_LAYOUT_TAIL_PADDING_ALIGNMENT_IN_ELEMENTS, 1);
    rp_proto_end(&m.w, layout);
    rp_proto_end(&m.w, shape);
    check_shape(&m, "s32[4]{0}");
}

static void tuples_have_parts(void **state)
{
    struct one_op m = begin_op("after-all");
    size_t shape = begin_shape(&m.w, RP_HLO_INSTRUCTION_SHAPE, RP_ELEM_TUPLE), part;

    UNUSED_STATE(state);
    for (int64_t i = 0; i < 3; i++) { /* the last is the first again */
        part = begin_shape(&m.w, RP_HLO_SHAPE_TUPLE_SHAPES, RP_ELEM_F32);
        put_list(&m.w, RP_HLO_SHAPE_DIMENSIONS, (const int64_t[]){i % 2 + 2}, 1);
        rp_proto_end(&m.w, part);
    }
    rp_proto_end(&m.w, shape);
    check_shape(&m, "(f32[2], f32[3], f32[2])");
}

static void put_nested(struct one_op *m, unsigned depth)
{
    size_t begun[80];

    for (unsigned i = 0; i <= depth; i++)
        begun[i] = begin_shape(&m->w, i ? RP_HLO_SHAPE_TUPLE_SHAPES : RP_HLO_INSTRUCTION_SHAPE,
                               i < depth ? RP_ELEM_TUPLE : RP_ELEM_F32);
    for (unsigned i = depth + 1; i-- > 0;)
        rp_proto_end(&m->w, begun[i]);
    end_op(m);
}

static void put_rank(struct one_op *m, size_t rank)
{
    static const int64_t ones[300] = {0};
    size_t shape = begin_shape(&m->w, RP_HLO_INSTRUCTION_SHAPE, RP_ELEM_F32);

    put_list(&m->w, RP_HLO_SHAPE_DIMENSIONS, ones, rank);
    rp_proto_put_bytes(&m->w, RP_HLO_SHAPE_IS_DYNAMIC_DIMENSION, ones, 300); /* more than any */
    rp_proto_end(&m->w, shape);
    end_op(m);
}

static void shapes_have_limits(void **state)
{
    struct one_op m = begin_op("after-all");
    struct rp_program *p;

    UNUSED_STATE(state);
    put_nested(&m, 16);
    rp_program_free(program_of(&m));
    m = begin_op("after-all");
    put_nested(&m, 70);
    refuse(&m, RP_LIMIT, "nested too deep");
    m = begin_op("after-all");
    put_rank(&m, 256);
    p = program_of(&m);
    assert_int_equal(p->shapes.at[p->shape.at[0]].n, 256);
    rp_program_free(p);
    m = begin_op("after-all");
    put_rank(&m, 257);
    refuse(&m, RP_LIMIT, "more than 256 dimensions");
}

static void put_constant(struct one_op *m, unsigned elem, int64_t n, unsigned own, int64_t own_n)
{
    size_t shape = begin_shape(&m->w, RP_HLO_INSTRUCTION_SHAPE, elem), literal;

    put_list(&m->w, RP_HLO_SHAPE_DIMENSIONS, &n, 1);
    rp_proto_end(&m->w, shape);
    literal = rp_proto_begin(&m->w, RP_HLO_INSTRUCTION_LITERAL);
    shape = begin_shape(&m->w, RP_HLO_LITERAL_SHAPE, own);
    put_list(&m->w, RP_HLO_SHAPE_DIMENSIONS, &own_n, 1);
    rp_proto_put_bytes(&m->w, RP_HLO_SHAPE_LAYOUT, "\x08\0", 2);
    rp_proto_end(&m->w, shape);
    for (int64_t i = 0; i < n; i++)
        switch (elem) {
        case RP_ELEM_F32:
            rp_proto_put_float(&m->w, RP_HLO_LITERAL_F32S, (float)i);
            break;
        case RP_ELEM_F64:
            rp_proto_put_fixed64(&m->w, RP_HLO_LITERAL_F64S, (uint64_t)i << 40);
            break;
        default:
            rp_proto_put_varint(&m->w, RP_HLO_LITERAL_S32S, i % 2 ? 7 : 300 + (uint64_t)i);
        }
    rp_proto_end(&m->w, literal);
    end_op(m);
}

static struct rp_literal literal_of(struct one_op *m, struct rp_program **p)
{
    *p = program_of(m);
    assert_int_equal((*p)->literals.n, 1);
    return (*p)->literals.at[0];
}

/* Values that are not packed are joined; a literal has its own layout where it has as many. */
static void constants_are_joined(void **state)
{
    static const unsigned char numbers[] = {0xac, 2, 7, 0xae, 2};
    static const float floats[] = {0, 1, 2};
    static const uint64_t doubles[] = {0, UINT64_C(1) << 40};
    struct one_op m = begin_op("constant");
    struct rp_program *p;
    struct rp_literal literal;

    UNUSED_STATE(state);
    put_constant(&m, RP_ELEM_S32, 3, RP_ELEM_S32, 3);
    literal = literal_of(&m, &p);
    assert_int_equal(literal.form, RP_LITERAL_VARINT);
    assert_int_equal(literal.n, sizeof numbers);
    assert_memory_equal(literal.at, numbers, sizeof numbers);
    assert_true(literal.shape != p->shape.at[0]);
    rp_program_free(p);

    m = begin_op("constant");
    put_constant(&m, RP_ELEM_F32, 3, RP_ELEM_F32, 4); /* another number of values */
    literal = literal_of(&m, &p);
    assert_int_equal(literal.form, RP_LITERAL_RAW);
    assert_int_equal(literal.n, sizeof floats);
    assert_memory_equal(literal.at, floats, sizeof floats);
    assert_int_equal(literal.shape, p->shape.at[0]);
    rp_program_free(p);

    m = begin_op("constant");
    put_constant(&m, RP_ELEM_F64, 2, RP_ELEM_S64, 2); /* another type */
    literal = literal_of(&m, &p);
    assert_int_equal(literal.n, sizeof doubles);
    assert_memory_equal(literal.at, doubles, sizeof doubles);
    assert_int_equal(literal.shape, p->shape.at[0]);
    rp_program_free(p);

    m = begin_op("constant");
    put_constant(&m, RP_ELEM_S32, 0, RP_ELEM_S32, 0); /* without values, and complete */
    literal = literal_of(&m, &p);
    assert_int_equal(literal.n, 0);
    assert_int_equal(literal.form, RP_LITERAL_VARINT);
    rp_program_free(p);

    m = begin_op("constant");
    put_constant(&m, RP_ELEM_F32, 64, RP_ELEM_F32, 64);
    literal = literal_of(&m, &p);
    assert_int_equal(literal.n, 64 * sizeof(float));
    rp_program_free(p);
    m = begin_op("constant");
    put_constant(&m, RP_ELEM_F32, 65, RP_ELEM_F32, 65);
    refuse(&m, RP_UNSUPPORTED, "not packed");
}

static void every_place_is_read(void **state)
{
    struct one_op m = begin_op("after-all");
    const struct rp_op_meta *meta;
    struct rp_program *p;
    size_t metadata = rp_proto_begin(&m.w, RP_HLO_INSTRUCTION_METADATA);

    UNUSED_STATE(state);
    rp_proto_put_text(&m.w, RP_HLO_METADATA_OP_TYPE, "type");
    rp_proto_put_text(&m.w, RP_HLO_METADATA_OP_NAME, "name");
    rp_proto_put_text(&m.w, RP_HLO_METADATA_SOURCE_FILE, "file");
    rp_proto_put_text(&m.w, RP_HLO_METADATA_DEDUPLICATED_NAME, "once");
    rp_proto_put_text(&m.w, RP_HLO_METADATA_SCHEDULING_NAME, "plan");
    rp_proto_put_varint(&m.w, RP_HLO_METADATA_SOURCE_LINE, 11);
    rp_proto_put_varint(&m.w, RP_HLO_METADATA_SOURCE_END_LINE, 12);
    rp_proto_put_varint(&m.w, RP_HLO_METADATA_SOURCE_COLUMN, 13);
    rp_proto_put_varint(&m.w, RP_HLO_METADATA_SOURCE_END_COLUMN, 14);
    rp_proto_put_varint(&m.w, RP_HLO_METADATA_STACK_FRAME_ID, 1);
    rp_proto_end(&m.w, metadata);
    end_op(&m);
    p = program_of(&m);
    meta = &p->metas.at[p->meta.at[0]];
    assert_string_equal(rp_program_text(p, meta->op_type), "type");
    assert_string_equal(rp_program_text(p, meta->op_name), "name");
    assert_string_equal(rp_program_text(p, meta->file), "file");
    assert_string_equal(rp_program_text(p, meta->deduplicated_name), "once");
    assert_string_equal(rp_program_text(p, meta->scheduling_name), "plan");
    assert_int_equal(meta->line, 11);
    assert_int_equal(meta->end_line, 12);
    assert_int_equal(meta->column, 13);
    assert_int_equal(meta->end_column, 14);
    rp_program_free(p);
}

static void put_location(struct rp_proto_writer *w, uint64_t file, uint64_t function)
{
    size_t location = rp_proto_begin(w, RP_HLO_FRAME_INDEX_FILE_LOCATIONS);

    rp_proto_put_varint(w, RP_HLO_FILE_LOCATION_FILE_NAME_ID, file);
    rp_proto_put_varint(w, RP_HLO_FILE_LOCATION_FUNCTION_NAME_ID, function);
    rp_proto_put_varint(w, RP_HLO_FILE_LOCATION_LINE, 21);
    rp_proto_put_varint(w, RP_HLO_FILE_LOCATION_COLUMN, 22);
    rp_proto_put_varint(w, RP_HLO_FILE_LOCATION_END_LINE, 23);
    rp_proto_put_varint(w, RP_HLO_FILE_LOCATION_END_COLUMN, 24);
    rp_proto_end(w, location);
}

static void put_frame(struct rp_proto_writer *w, uint64_t location, uint64_t parent)
{
    size_t frame = rp_proto_begin(w, RP_HLO_FRAME_INDEX_STACK_FRAMES);

    rp_proto_put_varint(w, RP_HLO_STACK_FRAME_FILE_LOCATION_ID, location);
    rp_proto_put_varint(w, RP_HLO_STACK_FRAME_PARENT_FRAME_ID, parent);
    rp_proto_end(w, frame);
}

static size_t begin_frames(struct one_op *m)
{
    *m = begin_op("after-all");
    end_op(m);
    return rp_proto_begin(&m->w, RP_HLO_MODULE_STACK_FRAME_INDEX);
}

/* Files and functions are counted from 1; what there is not is nothing. Parents come first. */
static void frames_are_read(void **state)
{
    static const struct {
        const char *file, *function;
    } want[] = {{"a.py", "g"}, {"b.py", ""}, {"", "f"}, {"", ""}};
    struct rp_program *p;
    struct one_op m;
    size_t frames = begin_frames(&m);

    UNUSED_STATE(state);
    rp_proto_put_text(&m.w, RP_HLO_FRAME_INDEX_FILE_NAMES, "a.py");
    rp_proto_put_text(&m.w, RP_HLO_FRAME_INDEX_FILE_NAMES, "b.py");
    rp_proto_put_text(&m.w, RP_HLO_FRAME_INDEX_FUNCTION_NAMES, "f");
    rp_proto_put_text(&m.w, RP_HLO_FRAME_INDEX_FUNCTION_NAMES, "g");
    put_location(&m.w, 1, 2);
    put_location(&m.w, 2, 3);
    put_location(&m.w, 0, 1);
    put_location(&m.w, 3, 0);
    put_frame(&m.w, 1, 0);
    put_frame(&m.w, 4, 1);
    put_frame(&m.w, 2, 3);                                         /* itself */
    put_frame(&m.w, 2, 4);                                         /* none yet */
    rp_proto_put_varint(&m.w, RP_HLO_FRAME_INDEX_STACK_FRAMES, 1); /* no message */
    rp_proto_put_bytes(&m.w, RP_HLO_FRAME_INDEX_STACK_FRAMES + 1, "", 0);
    rp_proto_end(&m.w, frames);
    p = program_of(&m);
    assert_int_equal(p->locations.n, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(rp_program_text(p, p->locations.at[i].file), want[i].file);
        assert_string_equal(rp_program_text(p, p->locations.at[i].function), want[i].function);
    }
    assert_int_equal(p->locations.at[0].line, 21);
    assert_int_equal(p->locations.at[0].column, 22);
    assert_int_equal(p->locations.at[0].end_line, 23);
    assert_int_equal(p->locations.at[0].end_column, 24);
    assert_int_equal(p->frames.n, 4);
    assert_int_equal(p->frames.at[0].location, 0);
    assert_int_equal(p->frames.at[1].location, 3);
    assert_int_equal(p->frames.at[1].parent, 1);
    assert_int_equal(p->frames.at[2].parent, 0);
    assert_int_equal(p->frames.at[3].parent, 0);
    rp_program_free(p);
    for (uint64_t location = 0; location < 3; location += 2) { /* there is one */
        frames = begin_frames(&m);
        put_location(&m.w, 0, 0);
        put_frame(&m.w, location, 0);
        rp_proto_end(&m.w, frames);
        refuse(&m, RP_FORMAT, "undefined location");
    }
}

int test_hlo_proto_data(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dimensions_are_read), cmocka_unit_test(tuples_have_parts),
        cmocka_unit_test(shapes_have_limits),  cmocka_unit_test(constants_are_joined),
        cmocka_unit_test(every_place_is_read), cmocka_unit_test(frames_are_read),
    };

    return cmocka_run_group_tests_name("hlo_proto_data", tests, NULL, NULL);
}
