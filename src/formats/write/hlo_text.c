/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an HLO module as text. A module that was read from text gets the same attributes in the
 * same words; one from a protobuf looks as XLA prints it, but with its constants in full. Unknown
 * protobuf fields have no text form and are left out.
 */
#include "formats/programs.h"
#include "formats/write/hlo_proto.h"
#include "formats/write/writers.h"
#include "io/escaped.h"
#include "program/literal.h"
#include "program/opcodes.h"
#include "program/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text_writer {
    const struct rp_program *p;
    struct rp_out *to;
    struct rp_err *err;
};

static void put_string(const struct text_writer *w, const char *key, uint32_t string)
{
    if (!string)
        return;
    rp_out_text(w->to, key);
    rp_out_escaped_bytes(w->to, RP_IN_PROTO, rp_program_text(w->p, string),
                         rp_strtab_len(&w->p->strings, string));
}

static enum rp_code put_shape(const struct text_writer *w, uint32_t shape, bool layout)
{
    RP_FREED char *large = NULL;
    char small[256];
    size_t n = rp_shape_text(w->p, shape, layout, small, sizeof small);

    if (n < sizeof small) {
        rp_out_write(w->to, small, n);
        return RP_OK;
    }
    large = malloc(n + 1);
    RP_TRY(rp_err_need(large, w->err, "writing a shape"));
    rp_shape_text(w->p, shape, layout, large, n + 1);
    rp_out_write(w->to, large, n);
    return RP_OK;
}

/* ---- names ---- */

/* Whether XLA accepts the name: a letter or '_', then letters, digits, '_', '.' and '-'. */
static bool is_hlo_name(const char *name, size_t n)
{
    return n && *name != '.' && *name != '-' && (*name < '0' || *name > '9') &&
           rp_escape_needless(RP_IN_HLO, name, n);
}

/*
 * Puts the name of operation or computation `id`. Other languages and hostile files have names that
 * HLO does not allow: StableHLO's %0 becomes %_0, and a name with other characters becomes a
 * number, %_op7. If the program has that name already, it gets one more '_'.
 */
static void put_name(const struct text_writer *w, const char *sign, uint32_t string,
                     const char *kind, uint32_t id)
{
    const char *name = rp_program_text(w->p, string);
    size_t n = rp_strtab_len(&w->p->strings, string), begin = 64;
    char own[128];

    rp_out_text(w->to, sign);
    if (is_hlo_name(name, n)) {
        rp_out_write(w->to, name, n);
        return;
    }
    if (n && n < 50 && *name >= '0' && *name <= '9' && rp_escape_needless(RP_IN_HLO, name, n))
        snprintf(own + begin, sizeof own - begin, "_%.50s", name);
    else
        snprintf(own + begin, sizeof own - begin, "_%s%u", kind, id);
    while (begin && rp_strtab_find(&w->p->strings, own + begin, strlen(own + begin)) != UINT32_MAX)
        own[--begin] = '_';
    rp_out_text(w->to, own + begin);
}

/* Puts the name of an operation. Parts of tuples that the file did not write as instructions
   ('%x#0', which older compilers do not know) get names of instructions. */
static void put_op_name(const struct text_writer *w, const char *sign, uint32_t op)
{
    bool part =
        w->p->flags.at[op] & RP_OPS_IMPLICIT && w->p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT;

    put_name(w, sign, part ? 0 : w->p->op_name.at[op], part ? "part" : "op", op);
}

static void put_computation_name(const struct text_writer *w, const char *sign, uint32_t id)
{
    put_name(w, sign, w->p->computations.at[id].name, "computation", id);
}

/* Puts a word that is not looked up: keys, opcodes of other languages, the name of the module. */
static void put_word(const struct text_writer *w, const char *word)
{
    rp_out_text(w->to, is_hlo_name(word, strlen(word)) ? "" : "_");
    rp_out_escaped(w->to, RP_IN_HLO, word);
}

/* ---- values ---- */

/* Puts an array without elements as XLA wants it: "{{}, {}}" for 2 times 0. Absurdly many braces
   are left out. */
static void put_empty(const struct text_writer *w, const int64_t *dims, uint32_t n, uint64_t rows)
{
    rp_out_char(w->to, '{');
    for (int64_t i = 0; n > 1 && i < dims[0] && rows * (uint64_t)dims[0] < 1 << 20; i++) {
        if (i)
            rp_out_text(w->to, ", ");
        put_empty(w, dims + 1, n - 1, rows * (uint64_t)dims[0]);
    }
    rp_out_char(w->to, '}');
}

static enum rp_code put_elements(const struct text_writer *w, const struct rp_literal *literal,
                                 const unsigned char *values)
{
    const struct rp_op_shape *s = &w->p->shapes.at[literal->shape];
    const int64_t *dims = w->p->dims.at + s->first;
    size_t unit = rp_literal_unit(s->elem), n = (size_t)rp_shape_elements(w->p, literal->shape);
    char text[96];

    for (size_t i = 0; i < n; i++) {
        size_t inner = 1;

        if (i)
            rp_out_text(w->to, ", ");
        for (uint32_t k = s->n; k-- > 0;) { /* brackets that open before this element */
            inner *= (size_t)dims[k];
            if (i % inner == 0)
                rp_out_char(w->to, '{');
        }
        rp_out_write(w->to, text, rp_literal_print(s->elem, values + unit * i, text, sizeof text));
        inner = 1;
        for (uint32_t k = s->n; k-- > 0;) {
            inner *= (size_t)dims[k];
            if ((i + 1) % inner == 0)
                rp_out_char(w->to, '}');
        }
    }
    if (!n)
        put_empty(w, dims, s->n, 1);
    return RP_OK;
}

static enum rp_code put_operands(const struct text_writer *w, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(w->p, op);

    if (w->p->code.at[op] == RP_OP_CONSTANT) {
        RP_FREED unsigned char *values = NULL;
        const struct rp_literal *literal = (uint64_t)w->p->value.at[op] < w->p->literals.n
                                               ? &w->p->literals.at[w->p->value.at[op]]
                                               : NULL;

        if (literal && literal->form == RP_LITERAL_TEXT) {
            rp_out_write(w->to, literal->at, literal->n);
            return RP_OK;
        }
        if (!literal || !rp_literal_known(w->p, literal)) {
            rp_out_text(w->to, "{...}");
            return RP_OK;
        }
        size_t size = (size_t)rp_shape_elements(w->p, literal->shape) *
                      rp_literal_unit(w->p->shapes.at[literal->shape].elem);
        values = malloc(size + 1);
        RP_TRY(rp_err_need(values, w->err, "writing a constant"));
        RP_TRY(rp_literal_decode(w->p, literal, values, size, w->err));
        return put_elements(w, literal, values);
    }
    if (w->p->code.at[op] == RP_OP_PARAMETER)
        rp_out_printf(w->to, "%lld", (long long)w->p->value.at[op]);
    for (uint32_t i = 0; i < operands.n; i++) {
        if (i)
            rp_out_text(w->to, ", ");
        put_op_name(w, "%", operands.at[i]);
    }
    return RP_OK;
}

/* ---- attributes ---- */

static void put_called(const struct text_writer *w, const char *key, uint32_t computation)
{
    rp_out_printf(w->to, ", %s=", key);
    put_computation_name(w, "%", computation);
}

static void put_called_list(const struct text_writer *w, const char *key, struct rp_ids called)
{
    rp_out_printf(w->to, ", %s={", key);
    for (uint32_t i = 0; i < called.n; i++)
        put_computation_name(w, i ? ", %" : "%", called.at[i]);
    rp_out_char(w->to, '}');
}

static bool on_predicate(const struct rp_program *p, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(p, op);

    return operands.n && p->shapes.at[p->shape.at[operands.at[0]]].elem == RP_ELEM_PRED;
}

static void put_calls(const struct text_writer *w, uint32_t op)
{
    struct rp_ids called = rp_op_called(w->p, op);
    enum rp_opcode code = (enum rp_opcode)w->p->code.at[op];
    const char *first = NULL, *second = NULL;

    if (!called.n)
        return;
    if (code == RP_OP_WHILE && called.n == 2) {
        put_called(w, "condition", called.at[1]);
        put_called(w, "body", called.at[0]);
        return;
    }
    if (code == RP_OP_SELECT_AND_SCATTER) {
        first = "select";
        second = "scatter";
    } else if (code == RP_OP_CONDITIONAL && called.n == 2 && on_predicate(w->p, op)) {
        first = "true_computation";
        second = "false_computation";
    }
    if (first && called.n == 2) {
        put_called(w, first, called.at[0]);
        put_called(w, second, called.at[1]);
    } else if (code == RP_OP_CONDITIONAL) {
        put_called_list(w, "branch_computations", called);
    } else if (code == RP_OP_CUSTOM_CALL || called.n > 1) {
        put_called_list(w, "called_computations", called);
    } else {
        bool calls = code == RP_OP_FUSION || code == RP_OP_ASYNC_START ||
                     code == RP_OP_ASYNC_UPDATE || code == RP_OP_ASYNC_DONE;

        put_called(w, calls ? "calls" : "to_apply", called.at[0]);
    }
}

static void put_metadata(const struct text_writer *w, uint32_t op)
{
    const struct rp_op_meta *m = &w->p->metas.at[w->p->meta.at[op]];

    if (!w->p->meta.at[op])
        return;
    rp_out_text(w->to, ", metadata={");
    put_string(w, " op_type=", m->op_type);
    put_string(w, " op_name=", m->op_name);
    put_string(w, " source_file=", m->file);
    if (m->line)
        rp_out_printf(w->to, " source_line=%d", m->line);
    if (m->end_line)
        rp_out_printf(w->to, " source_end_line=%d", m->end_line);
    if (m->column)
        rp_out_printf(w->to, " source_column=%d", m->column);
    if (m->end_column)
        rp_out_printf(w->to, " source_end_column=%d", m->end_column);
    put_string(w, " deduplicated_name=", m->deduplicated_name);
    put_string(w, " scheduling_name=", m->scheduling_name);
    if (m->frame)
        rp_out_printf(w->to, " stack_frame_id=%u", m->frame);
    rp_out_text(w->to, "}");
}

static void put_attr_text(void *out, const char *text, size_t n)
{
    rp_out_write(out, text, n);
}

static enum rp_code put_attrs(const struct text_writer *w, const struct rp_attr *attr, size_t n)
{
    struct rp_chars to = {.sink = put_attr_text, .sink_arg = w->to};

    for (; n; n--, attr++) {
        if (attr->type == RP_VALUE_WIRE)
            continue;
        rp_out_text(w->to, ", ");
        put_word(w, rp_program_text(w->p, attr->key));
        rp_out_char(w->to, '=');
        rp_attr_print(w->p, attr, &to);
    }
    return to.failed ? rp_err_nomem(w->err, "writing attributes") : RP_OK;
}

/* ---- the whole ---- */

static enum rp_code put_op(const struct text_writer *w, uint32_t op, bool root)
{
    const struct rp_program *p = w->p;
    uint32_t n;
    const struct rp_attr *attrs = rp_op_attrs(p, op, &n);

    rp_out_text(w->to, root ? "  ROOT " : "  ");
    put_op_name(w, "%", op);
    rp_out_text(w->to, " = ");
    if (!(p->shapes.at[p->shape.at[op]].flags & RP_SHAPE_UNKNOWN)) {
        RP_TRY(put_shape(w, p->shape.at[op], true));
        rp_out_char(w->to, ' ');
    }
    put_word(w, rp_op_opcode_name(p, op));
    rp_out_char(w->to, '(');
    RP_TRY(put_operands(w, op));
    rp_out_char(w->to, ')');
    if (p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT)
        rp_out_printf(w->to, ", index=%lld", (long long)p->value.at[op]);
    put_calls(w, op);
    RP_TRY(put_attrs(w, attrs, n));
    put_metadata(w, op);
    rp_out_char(w->to, '\n');
    return RP_OK;
}

static enum rp_code put_signature(const struct text_writer *w, const struct rp_computation *c)
{
    RP_FREED uint32_t *at = calloc((size_t)c->nparams + 1, sizeof *at);

    RP_TRY(rp_err_need(at, w->err, "writing a computation"));
    rp_out_text(w->to, " (");

    /* Parameters are in the order of their numbers. */
    bool first = true;
    memset(at, 0xff, c->nparams * sizeof *at); /* RP_NONE */
    for (uint32_t op = c->first; op < c->first + c->n; op++)
        if (w->p->code.at[op] == RP_OP_PARAMETER && (uint64_t)w->p->value.at[op] < c->nparams)
            at[w->p->value.at[op]] = op;
    for (uint32_t i = 0; i < c->nparams; i++) {
        if (at[i] == RP_NONE)
            continue;
        put_op_name(w, first ? "" : ", ", at[i]);
        rp_out_text(w->to, ": ");
        RP_TRY(put_shape(w, w->p->shape.at[at[i]], false));
        first = false;
    }
    rp_out_text(w->to, ") -> ");
    RP_TRY(put_shape(w, w->p->shape.at[c->root], false));
    rp_out_text(w->to, " {\n");
    return RP_OK;
}

/* Whether a signature can be written, which requires that all shapes are known. */
static bool has_signature(const struct rp_program *p, const struct rp_computation *c)
{
    if (p->shapes.at[p->shape.at[c->root]].flags & RP_SHAPE_UNKNOWN)
        return false;
    for (uint32_t op = c->first; op < c->first + c->n; op++)
        if (p->code.at[op] == RP_OP_PARAMETER &&
            p->shapes.at[p->shape.at[op]].flags & RP_SHAPE_UNKNOWN)
            return false;
    return true;
}

/* Puts one of the tables of names: each name of a column, numbered by its first use. */
static enum rp_code put_names(const struct text_writer *w, const char *heading, bool functions,
                              struct rp_map *numbers)
{
    uint32_t next = 0, number;

    rp_out_printf(w->to, "\n%s\n", heading);
    for (size_t i = 0; i < w->p->locations.n; i++) {
        const struct rp_location *at = &w->p->locations.at[i];
        uint32_t string = functions ? at->function : at->file;

        RP_TRY(rp_map_intern(numbers, string, next, &number, w->err));
        if (number != next)
            continue;
        rp_out_printf(w->to, "%u ", ++next);
        rp_out_escaped_bytes(w->to, RP_IN_PROTO, rp_program_text(w->p, string),
                             rp_strtab_len(&w->p->strings, string));
        rp_out_char(w->to, '\n');
    }
    return RP_OK;
}

static enum rp_code put_frames(const struct text_writer *w)
{
    RP_SCOPED(rp_map_release) struct rp_map files = {0};
    RP_SCOPED(rp_map_release) struct rp_map functions = {0};

    if (!w->p->frames.n)
        return RP_OK;
    const struct rp_program *p = w->p;
    RP_TRY(put_names(w, "FileNames", false, &files));
    RP_TRY(put_names(w, "FunctionNames", true, &functions));
    rp_out_text(w->to, "\nFileLocations\n");
    for (size_t i = 0; i < p->locations.n; i++) {
        const struct rp_location *at = &p->locations.at[i];

        rp_out_printf(w->to,
                      "%zu {file_name_id=%u function_name_id=%u line=%d end_line=%d column=%d "
                      "end_column=%d}\n",
                      i + 1, rp_map_get(&files, at->file) + 1,
                      rp_map_get(&functions, at->function) + 1, at->line, at->end_line, at->column,
                      at->end_column);
    }
    rp_out_text(w->to, "\nStackFrames\n"); /* parents are written one too high, as XLA does */
    for (size_t i = 0; i < p->frames.n; i++)
        rp_out_printf(w->to, "%zu {file_location_id=%u parent_frame_id=%u}\n", i + 1,
                      p->frames.at[i].location + 1, p->frames.at[i].parent + 1);
    return RP_OK;
}

enum rp_code rp_hlo_text_print(const struct rp_program *p, struct rp_out *to, struct rp_err *err)
{
    struct text_writer w = {p, to, err};

    RP_TRY(rp_hlo_writable(p, err));
    rp_out_text(to, "HloModule ");
    put_word(&w, p->name ? rp_program_text(p, p->name) : "module");
    RP_TRY(put_attrs(&w, p->module_attrs.at, p->module_attrs.n));
    rp_out_char(to, '\n');
    RP_TRY(put_frames(&w));

    /* Callees come first, because XLA reads in one pass. If they do in the file, its order is
       kept. */
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    uint32_t *order;
    RP_TRY(rp_program_call_order(w.p, &scratch, &order, w.err));
    for (size_t i = 0; i < w.p->computations.n; i++) {
        /* The name of the computation, then its operations in braces. */
        uint32_t id = order[i];
        const struct rp_computation *c = &w.p->computations.at[id];
        rp_out_text(w.to, id == w.p->entry ? "\nENTRY " : "\n");
        put_computation_name(&w, "%", id);
        if (!has_signature(w.p, c))
            rp_out_text(w.to, " {\n");
        else
            RP_TRY(put_signature(&w, c));
        for (uint32_t op = c->first; op < c->first + c->n; op++)
            RP_TRY(put_op(&w, op, op == c->root));
        rp_out_char(w.to, '}');
        put_string(&w, ", execution_thread=", c->thread);
        rp_out_char(w.to, '\n');
    }
    return RP_OK;
}

static enum rp_code write_text(const struct rp_program *program, const char *path,
                               const struct rp_write_options *options, struct rp_err *err)
{
    struct rp_out *to;

    (void)options;
    RP_TRY(rp_out_open(path, &to, err));
    return rp_out_end(to, rp_hlo_text_print(program, to, err), err);
}

const struct rp_writer rp_writer_hlo_text = {
    .name = "hlo-text",
    .endings = {".hlo.txt", ".hlo"},
    .summary = "HLO module as text",
    .streams = true,
    .available = true,
    .write_program = write_text,
};
