/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each file "X-buffer-assignment.txt" is a module. Beside it "X-live-range.txt" says what is live
 * at the peak, and "X.txt" or "X.hlo.pb" is the program, whose instructions have a name in the
 * framework and a line. Without such texts, an HloProto that contains an assignment is used.
 *
 * Values of the forward pass that are live at the peak are activations: JAX marks the forward pass
 * of a gradient by "jvp(" and its backward pass by "transpose(".
 */
#include "explain/memory/xla.h"
#include "base/text.h"

#include "base/hash.h"
#include "base/order.h"
#include "dataset/load_program.h"
#include "facts/xla_names.h"
#include "formats/buffers/buffers.h"
#include "result/print_units.h"
#include "xref/xref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASSIGNMENT "-buffer-assignment.txt"

struct module_reader {
    const struct rp_dataset *dataset;
    struct rp_arena *arena;
    size_t source; /* of the assignment */
    struct rp_buffers buffers;
    struct rp_import program; /* or empty */
    struct rp_xref xref;      /* of the program */
    struct rp_map values;     /* from the hash of a value's name to the value */
    struct rp_memory_device *out;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ files */

static bool is_assignment(const struct rp_dataset *dataset, size_t i)
{
    const struct rp_source *source = rp_sources_borrow(dataset->sources, i);
    const struct rp_format *format;
    struct rp_input *in;
    bool is = false;

    if (source->found)
        return rp_text_ends(source->name, ASSIGNMENT);
    if (rp_source_open(dataset->sources, i, &in, NULL) != RP_OK)
        return false;
    if (rp_format_sniff(in, &format, NULL) == RP_OK)
        is = format->kind == RP_FORMAT_KIND_BUFFERS;
    rp_source_return(dataset->sources, i, in);
    return is;
}

/* Whether this is a protobuf of a program that the user named, or that a dump made after
   optimisation. */
static bool may_contain(const struct rp_dataset *dataset, size_t i)
{
    const struct rp_source *source = rp_sources_borrow(dataset->sources, i);
    const struct rp_format *format;
    struct rp_input *in;
    bool is = false;

    if (source->found && !rp_text_ends(source->name, "after_optimizations.hlo.pb"))
        return false;
    if (rp_source_open(dataset->sources, i, &in, NULL) != RP_OK)
        return false;
    if (rp_format_sniff(in, &format, NULL) == RP_OK)
        is = !strcmp(format->name, "hlo-proto");
    rp_source_return(dataset->sources, i, in);
    return is;
}

/* Opens the file beside an assignment whose name has another end: among the sources, or else on
   disk. */
static enum rp_code open_beside(struct module_reader *m, const char *end, struct rp_input **out)
{
    const struct rp_source *own = rp_sources_borrow(m->dataset->sources, m->source);
    size_t stem = strlen(own->name), i, n = rp_sources_count(m->dataset->sources);
    char name[4096];

    *out = NULL;
    if (!rp_text_ends(own->name, ASSIGNMENT))
        return RP_OK;
    stem -= strlen(ASSIGNMENT);
    if ((size_t)snprintf(name, sizeof name, "%.*s%s", (int)stem, own->name, end) >= sizeof name)
        return RP_OK;
    for (i = 0; i < n; i++)
        if (!strcmp(rp_sources_borrow(m->dataset->sources, i)->name, name))
            return rp_source_open(m->dataset->sources, i, out, m->err);
    if (own->found || own->member || rp_input_open(name, &m->dataset->limits, out, NULL) != RP_OK)
        *out = NULL;
    return RP_OK;
}

typedef enum rp_code buffers_fn(struct rp_buffers *b, const char *text, size_t n,
                                const struct rp_limits *limits, struct rp_err *err);

static enum rp_code read_whole(struct module_reader *m, struct rp_input *in, buffers_fn *read)
{
    const uint8_t *bytes;
    size_t n;
    enum rp_code code = rp_input_slurp(in, &bytes, &n, m->err);

    if (code == RP_OK)
        code = read(&m->buffers, (const char *)bytes, n, &m->dataset->limits, m->err);
    if (code != RP_OK)
        rp_err_prefix(m->err, code, "'%s'", rp_input_borrow_name(in));
    rp_input_close(in);
    return code;
}

/* The program is useful but not required, so an unreadable one counts as missing. */
static enum rp_code read_program(struct module_reader *m)
{
    static const char *const ends[] = {".hlo.pb", ".txt"};
    struct rp_read_options options = {.limits = &m->dataset->limits};
    struct rp_input *in = NULL;

    for (int i = 0; i < 2 && !m->program.program; i++) {
        RP_TRY(open_beside(m, ends[i], &in));
        if (in && rp_format_read(in, &options, &m->program, NULL) == RP_NOMEM)
            return rp_err_nomem(m->err, "reading a program");
    }
    return RP_OK;
}

static enum rp_code read_text(struct module_reader *m)
{
    struct rp_input *in;

    RP_TRY(rp_source_open(m->dataset->sources, m->source, &in, m->err));
    RP_TRY(read_whole(m, in, rp_buffers_read_text));
    RP_TRY(open_beside(m, "-live-range.txt", &in));
    if (in)
        RP_TRY(read_whole(m, in, rp_buffers_read_ranges));
    return read_program(m);
}

static enum rp_code read_proto(struct module_reader *m, bool *found)
{
    struct rp_input *in;
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_source_open(m->dataset->sources, m->source, &in, m->err));
    enum rp_code code = rp_input_slurp(in, &bytes, &n, m->err);
    if (code == RP_OK)
        code = rp_buffers_read_proto(&m->buffers, (struct rp_bytes){bytes, n}, found, m->err);
    if (code != RP_OK)
        rp_err_prefix(m->err, code, "'%s'", rp_input_borrow_name(in));
    rp_input_close(in);
    if (code == RP_OK && *found &&
        rp_load_program(m->dataset, m->source, &m->program, NULL) == RP_NOMEM)
        return rp_err_nomem(m->err, "reading a program");
    return code;
}

/* ------------------------------------------------------------------ instructions */

static uint64_t name_key(const char *name, size_t n)
{
    return rp_hash_bytes(name, n);
}

static enum rp_phase phase_of(const char *op_name)
{
    return rp_xla_is_backward(op_name)  ? RP_PHASE_BACKWARD
           : rp_xla_is_forward(op_name) ? RP_PHASE_FORWARD
                                        : RP_PHASE_OTHER;
}

/* ------------------------------------------------------------------ who holds it */

static const char *category_of(const struct module_reader *m, const char *name, const char *op_name)
{
    uint32_t value = rp_map_get(&m->values, name_key(name, strlen(name)));
    uint8_t kind = RP_BUFFER_TEMPORARY;

    if (value != RP_MAP_NONE)
        kind = m->buffers.allocations.at[m->buffers.values.at[value].allocation].kind;
    if (kind == RP_BUFFER_TEMPORARY && phase_of(op_name) == RP_PHASE_FORWARD &&
        m->out->peak_phase && !strcmp(m->out->peak_phase, "backward"))
        return rp_memory_category_names[RP_MEMORY_ACTIVATIONS];
    return rp_buffer_kind_names[kind];
}

static uint64_t text_key(const char *text)
{
    return text ? rp_hash_bytes(text, strlen(text)) : 3;
}

static enum rp_code add_holder(struct module_reader *m, struct rp_map *rows, const char *name,
                               int64_t bytes)
{
    uint32_t op = rp_xref_find(&m->xref, name), i;
    const char *op_name = rp_xref_scope(&m->xref, op);
    struct rp_memory_holder row = {.buffers = 1,
                                   .bytes = bytes,
                                   .category = category_of(m, name, op_name),
                                   .line = rp_xref_own_line(&m->xref, op, m->arena)};

    row.op = rp_arena_text(m->arena, op == RP_NONE ? name : rp_xref_operator(&m->xref, op));
    row.where = row.line ? row.line : op == RP_NONE ? "" : rp_arena_text(m->arena, name);
    uint64_t key =
        rp_hash_join(rp_hash_join(text_key(row.category), text_key(row.op)), text_key(row.where));
    RP_TRY(rp_map_intern(rows, key, (uint32_t)m->out->nholders, &i, m->err));
    if (i == m->out->nholders) {
        m->out->holders[m->out->nholders++] = row;
        return RP_OK;
    }
    m->out->holders[i].bytes += bytes;
    m->out->holders[i].buffers++;
    return RP_OK;
}

RP_ORDER(by_bytes, struct rp_memory_holder, RP_DOWN(bytes), strcmp(a->category, b->category),
         strcmp(a->op ? a->op : "", b->op ? b->op : ""), strcmp(a->where, b->where))
RP_ORDER(by_share, struct rp_memory_share, RP_DOWN(bytes), strcmp(a->category, b->category))

static enum rp_code sum_categories(struct module_reader *m)
{
    struct rp_memory_device *out = m->out;
    size_t i, k;

    out->categories = RP_ARENA_NEW(m->arena, struct rp_memory_share, RP_BUFFER_KINDS + 2);
    RP_TRY(rp_err_need(out->categories, m->err, "summing categories"));
    for (i = 0; i < out->nholders; i++) {
        struct rp_memory_holder *h = &out->holders[i];

        h->share = out->peak_bytes ? (double)h->bytes / (double)out->peak_bytes : 0;
        for (k = 0; k < out->ncategories && out->categories[k].category != h->category; k++)
            ;
        if (k == out->ncategories) {
            bool guessed = h->category == rp_memory_category_names[RP_MEMORY_ACTIVATIONS];

            out->categories[out->ncategories++] = (struct rp_memory_share){
                .category = h->category,
                .sure = guessed ? "medium" : "certain",
                .basis = guessed ? "temporary, of the forward pass by its name, live in backward"
                                 : "said by the buffer assignment"};
        }
        out->categories[k].bytes += h->bytes;
        out->categories[k].buffers += h->buffers;
    }
    for (k = 0; k < out->ncategories; k++)
        out->categories[k].share =
            out->peak_bytes ? (double)out->categories[k].bytes / (double)out->peak_bytes : 0;
    qsort(out->categories, out->ncategories, sizeof *out->categories, by_share);
    qsort(out->holders, out->nholders, sizeof *out->holders, by_bytes);
    return RP_OK;
}

/* Lists what is live at the peak; if that is not known, all allocations under their first
   values. */
static enum rp_code fill_holders(struct module_reader *m)
{
    const struct rp_buffers *b = &m->buffers;
    size_t i, n = b->has_peak ? b->live.n : b->allocations.n;
    const char **names = RP_ARENA_NEW(m->arena, const char *, b->allocations.n + 1);
    struct rp_map rows = {0};
    enum rp_code code = RP_OK;

    m->out->holders = RP_ARENA_NEW(m->arena, struct rp_memory_holder, n + 1);
    RP_TRY(rp_err_need(m->out->holders && names, m->err, "listing buffers"));
    for (i = b->values.n; i-- > 0;)
        names[b->values.at[i].allocation] = b->values.at[i].name;
    for (i = 0; i < n && code == RP_OK; i++) {
        if (b->has_peak)
            code = add_holder(m, &rows, b->live.at[i].name, b->live.at[i].bytes);
        else if (b->allocations.at[i].bytes)
            code = add_holder(m, &rows, names[i] ? names[i] : "", b->allocations.at[i].bytes);
    }
    rp_map_release(&rows);
    m->out->buffers = (int64_t)n;
    return code == RP_OK ? sum_categories(m) : code;
}

/* ------------------------------------------------------------------ the record */

static const char *module_name(const struct module_reader *m)
{
    const struct rp_source *source = rp_sources_borrow(m->dataset->sources, m->source);
    const char *file = rp_text_file(source->name);
    struct rp_dump_name name;

    if (rp_dump_name_read(file, &name) && name.module_n)
        return rp_arena_textf(m->arena, "module %lld %.*s", (long long)name.id, (int)name.module_n,
                              name.module);
    return rp_arena_text(m->arena, file);
}

static const char *peak_text(const struct module_reader *m)
{
    const struct rp_buffers *b = &m->buffers;

    if (b->peak_at >= 0)
        return rp_arena_textf(m->arena, "instruction %lld of %lld", (long long)b->peak_at,
                              (long long)b->length);
    return b->has_peak ? "at the peak of the heap" : "all allocations";
}

static void fill_record(struct module_reader *m)
{
    const struct rp_buffers *b = &m->buffers;
    struct rp_memory_device *out = m->out;
    uint32_t op = b->peak_instruction ? rp_xref_find(&m->xref, b->peak_instruction) : RP_NONE;
    enum rp_phase phase = phase_of(rp_xref_scope(&m->xref, op));

    *out = (struct rp_memory_device){.rank = RP_ABSENT_I64,
                                     .source = "buffer assignment",
                                     .peak_ns = RP_ABSENT_I64,
                                     .peak_step = RP_ABSENT_I64,
                                     .begin_bytes = RP_ABSENT_I64,
                                     .end_bytes = RP_ABSENT_I64,
                                     .growth_bytes = RP_ABSENT_I64,
                                     .segments = RP_ABSENT_I64,
                                     .free_bytes = RP_ABSENT_I64,
                                     .largest_free_bytes = RP_ABSENT_I64,
                                     .memory_bytes = RP_ABSENT_I64};
    out->device = module_name(m);
    out->path = rp_arena_text(m->arena, rp_sources_borrow(m->dataset->sources, m->source)->name);
    out->peak_bytes = b->has_peak ? b->peak_bytes : b->total_bytes;
    out->peak_phase = phase == RP_PHASE_OTHER ? NULL : rp_phase_names[phase];
    out->peak_text = peak_text(m);
    out->reserved_bytes = out->peak_reserved_bytes = b->total_bytes;
    out->slack_bytes = b->total_bytes - out->peak_bytes;
    out->allocations = (int64_t)b->allocations.n;
    out->allocated_bytes = b->total_bytes;
}

static void fill_findings(struct module_reader *m)
{
    struct rp_memory_device *out = m->out;
    const struct rp_memory_share *c = out->categories;
    const struct rp_memory_holder *h = out->holders;

    out->findings = RP_ARENA_NEW(m->arena, const char *, 3);
    if (!out->findings)
        return;
    const char *text = rp_arena_textf(
        m->arena, "%s needs %s%s%s%s", out->device,
        rp_units_text(m->arena, (double)out->peak_bytes, RP_UNIT_BYTES),
        m->buffers.has_peak ? " at its peak" : "", m->buffers.peak_instruction ? ", at " : "",
        m->buffers.peak_instruction ? m->buffers.peak_instruction : "");
    if (out->ncategories)
        text = rp_arena_textf(m->arena, "%s: %s %s", text,
                              rp_units_text(m->arena, c->share, RP_UNIT_RATIO), c->category);
    if (out->ncategories > 1)
        text = rp_arena_textf(m->arena, "%s, %s %s", text,
                              rp_units_text(m->arena, c[1].share, RP_UNIT_RATIO), c[1].category);
    if (out->nholders && h->share >= RP_MEMORY_NAMED)
        text = rp_arena_textf(m->arena, "%s; most of it %s%s%s (%s)", text, h->op ? h->op : "",
                              *h->where ? ", " : "", h->where,
                              rp_units_text(m->arena, (double)h->bytes, RP_UNIT_BYTES));
    out->findings[out->nfindings++] = text;
    if (m->buffers.has_peak && out->slack_bytes > 0 &&
        (double)out->slack_bytes >= RP_MEMORY_SPARE * (double)out->reserved_bytes)
        out->findings[out->nfindings++] = rp_arena_textf(
            m->arena, "XLA reserves %s, of which %s are not live at the peak",
            rp_units_text(m->arena, (double)out->reserved_bytes, RP_UNIT_BYTES),
            rp_units_text(m->arena, (double)out->slack_bytes / (double)out->reserved_bytes,
                          RP_UNIT_RATIO));
}

static enum rp_code describe_module(struct module_reader *m, bool text, size_t limit, bool *found)
{
    *found = true;
    RP_TRY(text ? read_text(m) : read_proto(m, found));
    if (!*found)
        return RP_OK;

    uint32_t first, i;
    RP_TRY(rp_xref_init(&m->xref, m->program.program, m->err));
    for (i = 0; i < m->buffers.values.n; i++) {
        const char *name = m->buffers.values.at[i].name;

        RP_TRY(rp_map_intern(&m->values, name_key(name, strlen(name)), i, &first, m->err));
    }
    fill_record(m);
    RP_TRY(fill_holders(m));
    fill_findings(m);
    m->out->holder_count = (int64_t)m->out->nholders;
    if (limit && m->out->nholders > limit)
        m->out->nholders = limit;
    return rp_arena_check(m->arena, "describing a module", m->err);
}

static enum rp_code read_module(const struct rp_dataset *dataset, size_t source, bool text,
                                size_t limit, struct rp_arena *arena, struct rp_memory_device *out,
                                bool *found, struct rp_err *err)
{
    struct module_reader m = {
        .dataset = dataset, .arena = arena, .source = source, .out = out, .err = err};

    rp_buffers_init(&m.buffers);
    enum rp_code code = describe_module(&m, text, limit, found);
    rp_xref_release(&m.xref);
    rp_map_release(&m.values);
    rp_buffers_release(&m.buffers);
    rp_import_release(&m.program);
    return code;
}

static bool module_wanted(const struct rp_dataset *dataset, size_t i, const char *module)
{
    return !module || strstr(rp_text_file(rp_sources_borrow(dataset->sources, i)->name), module);
}

enum rp_code rp_memory_xla(const struct rp_dataset *dataset, const char *module, size_t limit,
                           struct rp_arena *arena, struct rp_memory_device **out, size_t *n,
                           bool *found, struct rp_err *err)
{
    size_t i, nsources = rp_sources_count(dataset->sources), assignments = 0, modules = 0;
    bool here;

    *out = RP_ARENA_NEW(arena, struct rp_memory_device, nsources + 1);
    RP_TRY(rp_err_need(*out, err, "describing modules"));
    for (i = 0; i < nsources; i++)
        if (is_assignment(dataset, i)) {
            assignments++;
            if (module_wanted(dataset, i, module))
                RP_TRY(read_module(dataset, i, true, limit, arena, &(*out)[modules++], &here, err));
        }
    for (i = 0; i < nsources && !assignments; i++)
        if (may_contain(dataset, i) && module_wanted(dataset, i, module)) {
            RP_TRY(read_module(dataset, i, false, limit, arena, &(*out)[modules], &here, err));
            modules += here;
        }
    *n = modules;
    *found = assignments || modules;
    if (assignments && !modules)
        return rp_err_set(err, RP_USAGE, "no module with '%s' in its name", module);
    return RP_OK;
}
