/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dump memory` shows what a compiled program needs, from XLA's buffer assignment and live ranges:
 * the peak, what is live there or at any other point, how much of the heap is lost between buffers,
 * and which values hold most memory for longest. Linear in values and positions.
 */
#include "base/order.h"
#include "dump/buffers.h"
#include "dump/folder.h"
#include "facts/times/intervals.h"
#include "formats/buffers/lives.h"
#include "result/print_units.h"
#include "xref/xref.h"

#include <stdlib.h>
#include <string.h>

struct memory_module {
    const char *module;
    int64_t id, allocated_bytes, reported_bytes, peak_bytes, heap_bytes, fragmentation_bytes,
        padding_bytes, instructions;
};

struct memory_kind {
    const char *kind;
    int64_t allocations, bytes;
    double share;
};

struct memory_value {
    const char *value, *kind, *operator_, *scope, *line;
    int64_t bytes, value_bytes, first, last, span, byte_steps;
    double share;
};

struct memory_sum { /* for an operator or a line */
    const char *name;
    int64_t values, bytes;
    double share;
};

struct memory_point {
    int64_t position, live_bytes;
    const char *instruction;
};

struct memory_root {
    const char *module, *peak_text, *at_text, *heap_text, *report_text, *source;
    int64_t allocated_bytes, reported_bytes, peak_bytes, stated_peak_bytes, peak_position,
        positions, at_position, at_bytes, heap_bytes, heap_live_bytes, fragmentation_bytes,
        padding_bytes;
    const char *peak_instruction, *at_instruction;
    double fragmentation_ratio;
    size_t nmodules, nkinds, nlive, nlines, noperators, nlongest, ntimeline, nnotes;
    struct memory_module *modules;
    struct memory_kind *kinds;
    struct memory_value *live, *longest;
    struct memory_sum *lines, *operators;
    struct memory_point *timeline;
    const char **notes;
};

static const struct rp_field module_fields[] = {
    RP_FIELD(struct memory_module, id, I64, NONE, "module", "number", RP_NULLABLE),
    RP_FIELD(struct memory_module, module, STR, NONE, "name", "name of the module", RP_SHORTEN),
    RP_FIELD(struct memory_module, allocated_bytes, I64, BYTES, "allocated",
             "all allocations of the buffer assignment", 0),
    RP_FIELD(struct memory_module, reported_bytes, I64, BYTES, "reported",
             "total bytes in XLA's memory usage report", RP_NULLABLE),
    RP_FIELD(struct memory_module, peak_bytes, I64, BYTES, "peak", "live where most is live",
             RP_NULLABLE),
    RP_FIELD(struct memory_module, heap_bytes, I64, BYTES, "heap",
             "size of the heap of temporary buffers", 0),
    RP_FIELD(struct memory_module, fragmentation_bytes, I64, BYTES, "fragmented",
             "bytes of the heap that are never live at once", RP_NULLABLE),
    RP_FIELD(struct memory_module, padding_bytes, I64, BYTES, NULL,
             "bytes of values beyond their elements", RP_NULLABLE),
    RP_FIELD(struct memory_module, instructions, I64, COUNT, "positions", "instructions, in order",
             RP_NULLABLE | RP_WIDE),
    RP_FIELD_END};
static const struct rp_type module_type = {"module", sizeof(struct memory_module), module_fields,
                                           NULL};

static const struct rp_field kind_fields[] = {
    RP_FIELD(struct memory_kind, kind, STR, NONE, "kind", "kind of allocation", 0),
    RP_FIELD(struct memory_kind, allocations, I64, COUNT, "allocations",
             "number of allocations of this kind", 0),
    RP_FIELD(struct memory_kind, bytes, I64, BYTES, "size", "their bytes", 0),
    RP_FIELD(struct memory_kind, share, F64, RATIO, "share", "share of all allocations", RP_BAR),
    RP_FIELD_END};
static const struct rp_type kind_type = {"kind", sizeof(struct memory_kind), kind_fields, NULL};

#define VALUE_FIELDS                                                                               \
    RP_FIELD(struct memory_value, bytes, I64, BYTES, "size",                                       \
             "bytes of the value, without what it shares with others in the list", 0),             \
        RP_FIELD(struct memory_value, value_bytes, I64, BYTES, NULL, "bytes of the value", 0),     \
        RP_FIELD(struct memory_value, share, F64, RATIO, "share", "share of what is live", 0),     \
        RP_FIELD(struct memory_value, kind, STR, NONE, "kind", "kind of its allocation", RP_WIDE), \
        RP_FIELD(struct memory_value, value, STR, NONE, "value", "instruction that makes it",      \
                 RP_SHORTEN),                                                                      \
        RP_FIELD(struct memory_value, first, I64, NONE, "from", "position", 0),                    \
        RP_FIELD(struct memory_value, last, I64, NONE, "to", "position, included", 0),             \
        RP_FIELD_AS("operator", struct memory_value, operator_, STR, NONE, "operator",             \
                    "operator of the framework", RP_SHORTEN | RP_WIDE),                            \
        RP_FIELD(struct memory_value, scope, STR, NONE, NULL, "scope of the operator", 0),         \
        RP_FIELD(struct memory_value, line, STR, NONE, "line", "line of the user's code",          \
                 RP_SHORTEN)

static const struct rp_field value_fields[] = {VALUE_FIELDS, RP_FIELD_END};
static const struct rp_type value_type = {"value", sizeof(struct memory_value), value_fields, NULL};

static const struct rp_field longest_fields[] = {
    RP_FIELD(struct memory_value, byte_steps, I64, COUNT, "size x span",
             "bytes times positions while live", 0),
    RP_FIELD(struct memory_value, span, I64, COUNT, "span", "positions while live", 0),
    VALUE_FIELDS, RP_FIELD_END};
static const struct rp_type longest_type = {"value", sizeof(struct memory_value), longest_fields,
                                            NULL};

static const struct rp_field line_fields[] = {
    RP_FIELD(struct memory_sum, bytes, I64, BYTES, "size", "bytes of its values", 0),
    RP_FIELD(struct memory_sum, share, F64, RATIO, "share", "share of what is live", RP_BAR),
    RP_FIELD(struct memory_sum, values, I64, COUNT, "values", "that are live", 0),
    RP_FIELD(struct memory_sum, name, STR, NONE, "line", "line of the user's code", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type line_type = {"line", sizeof(struct memory_sum), line_fields, NULL};

static const struct rp_field operator_fields[] = {
    RP_FIELD(struct memory_sum, bytes, I64, BYTES, "size", "bytes of its values", 0),
    RP_FIELD(struct memory_sum, share, F64, RATIO, "share", "share of what is live", RP_BAR),
    RP_FIELD(struct memory_sum, values, I64, COUNT, "values", "that are live", 0),
    RP_FIELD(struct memory_sum, name, STR, NONE, "operator", "name with its scope", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type operator_type = {"operator", sizeof(struct memory_sum), operator_fields,
                                             NULL};

static const struct rp_field point_fields[] = {
    RP_FIELD(struct memory_point, position, I64, NONE, "position",
             "position in the order of instructions", 0),
    RP_FIELD(struct memory_point, live_bytes, I64, BYTES, "live", "bytes", 0),
    RP_FIELD(struct memory_point, instruction, STR, NONE, "instruction",
             "the instruction at the position", 0),
    RP_FIELD_END};
static const struct rp_type point_type = {"point", sizeof(struct memory_point), point_fields, NULL};

static const struct rp_field root_fields[] = {
    RP_FIELD(struct memory_root, module, STR, NONE, "module", "module of the dump", 0),
    RP_FIELD(struct memory_root, source, STR, NONE, NULL,
             "live ranges, heap events, or allocations only", 0),
    RP_FIELD(struct memory_root, allocated_bytes, I64, BYTES, "allocated",
             "all allocations of the buffer assignment", 0),
    RP_FIELD(struct memory_root, report_text, STR, NONE, "reported", "text output only", RP_SCREEN),
    RP_FIELD(struct memory_root, reported_bytes, I64, BYTES, NULL,
             "total bytes in XLA's memory usage report", RP_NULLABLE),
    RP_FIELD(struct memory_root, peak_text, STR, NONE, "peak", "text output only", RP_SCREEN),
    RP_FIELD(struct memory_root, peak_bytes, I64, BYTES, NULL, "live where most is live",
             RP_NULLABLE),
    RP_FIELD(struct memory_root, stated_peak_bytes, I64, BYTES, NULL,
             "peak that XLA's live ranges state", RP_NULLABLE),
    RP_FIELD(struct memory_root, peak_position, I64, NONE, NULL, "position of the peak",
             RP_NULLABLE),
    RP_FIELD(struct memory_root, peak_instruction, STR, NONE, NULL, "the instruction at the peak",
             0),
    RP_FIELD(struct memory_root, positions, I64, COUNT, NULL,
             "positions in the order of instructions", RP_NULLABLE),
    RP_FIELD(struct memory_root, heap_text, STR, NONE, "heap", "text output only", RP_SCREEN),
    RP_FIELD(struct memory_root, heap_bytes, I64, BYTES, NULL,
             "size of the heap of temporary buffers", 0),
    RP_FIELD(struct memory_root, heap_live_bytes, I64, BYTES, NULL,
             "bytes of the heap that are live where most of it is", RP_NULLABLE),
    RP_FIELD(struct memory_root, fragmentation_bytes, I64, BYTES, NULL,
             "bytes of the heap that are never live at once", RP_NULLABLE),
    RP_FIELD(struct memory_root, fragmentation_ratio, F64, RATIO, NULL,
             "fragmentation_bytes / bytes of the heap", 0),
    RP_FIELD(struct memory_root, padding_bytes, I64, BYTES, NULL,
             "bytes of values beyond their elements", RP_NULLABLE),
    RP_FIELD(struct memory_root, at_text, STR, NONE, "live at", "text output only", RP_SCREEN),
    RP_FIELD(struct memory_root, at_position, I64, NONE, NULL,
             "the position that the lists below describe", RP_NULLABLE),
    RP_FIELD(struct memory_root, at_bytes, I64, BYTES, NULL, "live there", RP_NULLABLE),
    RP_FIELD(struct memory_root, at_instruction, STR, NONE, NULL,
             "the instruction at that position", 0),
    RP_FIELD_LIST(struct memory_root, kinds, &kind_type, "allocations", "by kind", 0),
    RP_FIELD_LIST(struct memory_root, lines, &line_type, "live by line",
                  "of the user's code, at the position", 0),
    RP_FIELD_LIST(struct memory_root, operators, &operator_type, "live by operator",
                  "of the framework, at the position", 0),
    RP_FIELD_LIST(struct memory_root, live, &value_type, "live values", "at the position", 0),
    RP_FIELD_LIST(struct memory_root, longest, &longest_type, "size and lifetime",
                  "temporary values, by bytes times positions", 0),
    RP_FIELD_LIST(struct memory_root, timeline, &point_type, NULL, "live bytes by position", 0),
    RP_FIELD_LIST(struct memory_root, modules, &module_type, "modules",
                  "that have a buffer assignment", 0),
    RP_FIELD_LIST(struct memory_root, notes, &rp_type_string, "notes", "what is missing", 0),
    RP_FIELD_END};
static const struct rp_type memory_type = {"dump_memory", sizeof(struct memory_root), root_fields,
                                           "live"};

/* ------------------------------------------------------------------ one module */

struct memory_ctx {
    const struct rp_dump_call *call;
    struct rp_dump_folder folder;
    const struct rp_dump_module *module;
    struct rp_arena *arena;
    struct memory_root *root;
    struct rp_buffers buffers;
    struct rp_buffer_lives lives;
    struct rp_import program;
    struct rp_xref xref;
    struct rp_err *err;
};

static void fill_value(const struct memory_ctx *ctx, const struct rp_buffer_live *l, int64_t bytes,
                       int64_t whole, struct memory_value *out)
{
    const struct rp_buffer_value *v = &ctx->buffers.values.at[l->value];
    struct rp_xref_place place;

    rp_xref_place(&ctx->xref, rp_xref_find(&ctx->xref, v->name), ctx->arena, &place);
    *out = (struct memory_value){
        .value = rp_arena_text(ctx->arena, v->name),
        .kind = rp_buffer_kind_names[ctx->buffers.allocations.at[v->allocation].kind],
        .operator_ = *place.operator_ ? place.operator_ : NULL,
        .scope = *place.scope ? place.scope : NULL,
        .line = place.line,
        .bytes = bytes,
        .value_bytes = v->bytes,
        .first = l->first,
        .last = l->last,
        .span = l->last - l->first + 1,
        .share = whole > 0 ? (double)bytes / (double)whole : 0};
    if (__builtin_mul_overflow(out->bytes, out->span, &out->byte_steps))
        out->byte_steps = INT64_MAX;
}

RP_ORDER(by_bytes, struct memory_value, RP_DOWN(bytes), RP_UP(first), strcmp(a->value, b->value))
RP_ORDER(by_steps, struct memory_value, RP_DOWN(byte_steps), strcmp(a->value, b->value))
RP_ORDER(by_sum, struct memory_sum, RP_DOWN(bytes), strcmp(a->name, b->name))

static enum rp_code add_sum(struct rp_map *map, struct memory_sum *sums, size_t *n,
                            const char *name, int64_t bytes, int64_t whole, struct rp_err *err)
{
    uint32_t at;

    RP_TRY(rp_map_intern(map, rp_hash_bytes(name, strlen(name)), (uint32_t)*n, &at, err));
    if (at == *n)
        sums[(*n)++] = (struct memory_sum){.name = name};
    sums[at].values++;
    rp_ns_add(&sums[at].bytes, bytes);
    sums[at].share = whole > 0 ? (double)sums[at].bytes / (double)whole : 0;
    return RP_OK;
}

static enum rp_code sum_live(struct memory_ctx *ctx)
{
    struct memory_root *root = ctx->root;
    RP_SCOPED(rp_map_release) struct rp_map lines = {0}, operators = {0};

    root->lines = RP_ARENA_NEW(ctx->arena, struct memory_sum, root->nlive + 1);
    root->operators = RP_ARENA_NEW(ctx->arena, struct memory_sum, root->nlive + 1);
    RP_TRY(rp_err_need(root->lines && root->operators, ctx->err, "summing buffers"));
    for (size_t i = 0; i < root->nlive; i++) {
        const struct memory_value *v = &root->live[i];
        const char *unknown = rp_arena_textf(ctx->arena, "(%s)", v->kind);

        RP_TRY(add_sum(&lines, root->lines, &root->nlines, v->line ? v->line : unknown, v->bytes,
                       root->at_bytes, ctx->err));
        RP_TRY(add_sum(&operators, root->operators, &root->noperators,
                       v->scope       ? v->scope
                       : v->operator_ ? v->operator_
                                      : unknown,
                       v->bytes, root->at_bytes, ctx->err));
    }
    rp_sort(root->lines, root->nlines, sizeof *root->lines, by_sum);
    rp_sort(root->operators, root->noperators, sizeof *root->operators, by_sum);
    return RP_OK;
}

static enum rp_code list_longest(struct memory_ctx *ctx)
{
    const struct rp_buffer_lives *lives = &ctx->lives;
    const struct rp_buffers *b = &ctx->buffers;
    struct memory_root *root = ctx->root;

    root->longest = RP_ARENA_NEW(ctx->arena, struct memory_value, lives->n + 1);
    RP_TRY(rp_err_need(root->longest, ctx->err, "listing buffers"));
    for (size_t i = 0; i < lives->n; i++) {
        const struct rp_buffer_live *l = &lives->at[i];

        if (l->value != RP_NONE && b->values.at[l->value].bytes &&
            b->allocations.at[b->values.at[l->value].allocation].kind == RP_BUFFER_TEMPORARY)
            fill_value(ctx, l, b->values.at[l->value].bytes, root->peak_bytes,
                       &root->longest[root->nlongest++]);
    }
    rp_sort(root->longest, root->nlongest, sizeof *root->longest, by_steps);
    return RP_OK;
}

static enum rp_code list_live(struct memory_ctx *ctx)
{
    struct memory_root *root = ctx->root;
    struct rp_buffer_share *shares;
    size_t n;

    RP_TRY(rp_buffers_live_at(&ctx->buffers, &ctx->lives, root->at_position, ctx->arena, &shares,
                              &n, ctx->err));
    root->live = RP_ARENA_NEW(ctx->arena, struct memory_value, n + 1);
    RP_TRY(rp_err_need(root->live, ctx->err, "listing buffers"));
    for (size_t i = 0; i < n; i++)
        fill_value(ctx, &ctx->lives.at[shares[i].live], shares[i].bytes, root->at_bytes,
                   &root->live[root->nlive++]);
    rp_sort(root->live, root->nlive, sizeof *root->live, by_bytes);
    RP_TRY(list_longest(ctx));
    return sum_live(ctx);
}

static enum rp_code sum_kinds(struct memory_ctx *ctx)
{
    const struct rp_buffers *b = &ctx->buffers;
    struct memory_kind sums[RP_BUFFER_KINDS] = {{0}};
    struct memory_root *root = ctx->root;

    root->kinds = RP_ARENA_NEW(ctx->arena, struct memory_kind, RP_BUFFER_KINDS);
    RP_TRY(rp_err_need(root->kinds, ctx->err, "listing buffers"));
    for (size_t i = 0; i < b->allocations.n; i++) {
        sums[b->allocations.at[i].kind].allocations++;
        rp_ns_add(&sums[b->allocations.at[i].kind].bytes, b->allocations.at[i].bytes);
    }
    for (size_t i = 0; i < RP_BUFFER_KINDS; i++)
        if (sums[i].allocations) {
            sums[i].kind = rp_buffer_kind_names[i];
            sums[i].share = b->total_bytes > 0 ? (double)sums[i].bytes / (double)b->total_bytes : 0;
            root->kinds[root->nkinds++] = sums[i];
        }
    return RP_OK;
}

/* The memory that values take beyond their elements; RP_ABSENT_I64 without a program. */
static int64_t find_padding(const struct memory_ctx *ctx)
{
    int64_t padding = 0;

    if (!ctx->xref.program)
        return RP_ABSENT_I64;
    for (size_t i = 0; i < ctx->buffers.values.n; i++) {
        const struct rp_buffer_value *v = &ctx->buffers.values.at[i];
        uint32_t op = strchr(v->name, '{') ? RP_NONE : rp_xref_find(&ctx->xref, v->name);
        const struct rp_program *p = ctx->xref.program;

        if (op == RP_NONE || p->shapes.at[p->shape.at[op]].elem == RP_ELEM_TUPLE)
            continue;
        int64_t bytes = rp_shape_bytes(p, p->shape.at[op]);
        if (v->bytes > bytes)
            rp_ns_add(&padding, v->bytes - bytes);
    }
    return padding;
}

/* ------------------------------------------------------------------ the point */

static const char *instruction_at(const struct memory_ctx *ctx, int64_t at)
{
    return at >= 0 && at < (int64_t)ctx->buffers.order.n
               ? rp_arena_text(ctx->arena, ctx->buffers.order.at[at])
               : NULL;
}

/* Finds the point of --at: a position, or the name of an instruction; else the peak. */
static enum rp_code find_point(struct memory_ctx *ctx)
{
    const char *text = rp_settings_text(ctx->call->settings, "at");
    struct memory_root *root = ctx->root;
    char *end;

    root->at_position = ctx->lives.peak;
    if (text && !ctx->lives.n)
        return rp_err_set(ctx->err, RP_USAGE,
                          "'--at' needs live ranges, which this dump does not have");
    if (text) {
        long long number = strtoll(text, &end, 10);

        root->at_position = *end || !*text ? -1 : number;
        for (size_t i = 0; *end && i < ctx->buffers.order.n && root->at_position < 0; i++)
            if (!strcmp(ctx->buffers.order.at[i], text))
                root->at_position = (int64_t)i;
    }
    if (text && (root->at_position < 0 || root->at_position >= (int64_t)ctx->lives.npositions))
        return rp_err_set(ctx->err, RP_USAGE,
                          "'--at %s': neither an instruction nor a position from 0 to %zu", text,
                          ctx->lives.npositions - 1);
    root->at_bytes = ctx->lives.n ? ctx->lives.taken[root->at_position] : RP_ABSENT_I64;
    root->at_instruction = instruction_at(ctx, root->at_position);
    if (!ctx->lives.n)
        root->at_position = RP_ABSENT_I64;
    return RP_OK;
}

static const char *position_text(struct memory_ctx *ctx, int64_t bytes, int64_t at,
                                 const char *instruction)
{
    return rp_arena_textf(ctx->arena, "%s at %s%s%lld of %zu",
                          rp_units_text(ctx->arena, (double)bytes, RP_UNIT_BYTES),
                          instruction ? instruction : "", instruction ? ", position " : "position ",
                          (long long)at, ctx->lives.npositions - 1);
}

static enum rp_code fill_timeline(struct memory_ctx *ctx)
{
    struct memory_root *root = ctx->root;

    if (!ctx->lives.n)
        return RP_OK;
    root->timeline = RP_ARENA_NEW(ctx->arena, struct memory_point, ctx->lives.npositions);
    RP_TRY(rp_err_need(root->timeline, ctx->err, "listing positions"));
    for (size_t i = 0; i < ctx->lives.npositions; i++)
        root->timeline[root->ntimeline++] =
            (struct memory_point){(int64_t)i, ctx->lives.taken[i], instruction_at(ctx, (int64_t)i)};
    return RP_OK;
}

static void fill_texts(struct memory_ctx *ctx)
{
    struct memory_root *root = ctx->root;

    if (ctx->lives.n) {
        root->peak_text =
            position_text(ctx, root->peak_bytes, root->peak_position, root->peak_instruction);
        root->at_text = position_text(ctx, root->at_bytes, root->at_position, root->at_instruction);
    }
    if (root->reported_bytes != RP_ABSENT_I64)
        root->report_text = rp_arena_textf(
            ctx->arena, "%s%s",
            rp_units_text(ctx->arena, (double)root->reported_bytes, RP_UNIT_BYTES),
            root->reported_bytes == root->allocated_bytes ? ", the same" : ", NOT the same");
    if (root->heap_bytes && root->fragmentation_bytes != RP_ABSENT_I64)
        root->heap_text = rp_arena_textf(
            ctx->arena, "%s, of which %s are never live at once (%.1f %%: fragmentation)",
            rp_units_text(ctx->arena, (double)root->heap_bytes, RP_UNIT_BYTES),
            rp_units_text(ctx->arena, (double)root->fragmentation_bytes, RP_UNIT_BYTES),
            root->fragmentation_ratio * 100);
    if (root->allocated_bytes && !ctx->lives.n && ctx->buffers.has_peak)
        root->peak_text = rp_units_text(ctx->arena, (double)root->peak_bytes, RP_UNIT_BYTES);
}

static enum rp_code describe_module(struct memory_ctx *ctx)
{
    struct memory_root *root = ctx->root;
    const struct rp_buffer_lives *lives = &ctx->lives;

    root->module = rp_dump_label(ctx->module, ctx->arena);
    root->allocated_bytes = ctx->buffers.total_bytes;
    root->peak_bytes = lives->n                ? lives->peak_bytes
                       : ctx->buffers.has_peak ? ctx->buffers.peak_bytes
                                               : RP_ABSENT_I64;
    root->peak_position = lives->n ? lives->peak : RP_ABSENT_I64;
    root->stated_peak_bytes =
        ctx->buffers.stated_peak_bytes < 0 ? RP_ABSENT_I64 : ctx->buffers.stated_peak_bytes;
    root->positions = lives->n ? (int64_t)lives->npositions : RP_ABSENT_I64;
    root->peak_instruction = instruction_at(ctx, lives->n ? lives->peak : -1);
    root->heap_bytes = lives->heap_bytes;
    root->heap_live_bytes = lives->heap_peak_bytes < 0 ? RP_ABSENT_I64 : lives->heap_peak_bytes;
    root->fragmentation_bytes = lives->heap_peak_bytes < 0 ? RP_ABSENT_I64
                                : lives->heap_peak_bytes > lives->heap_bytes
                                    ? 0
                                    : lives->heap_bytes - lives->heap_peak_bytes;
    root->fragmentation_ratio = lives->heap_peak_bytes < 0 || !lives->heap_bytes
                                    ? __builtin_nan("")
                                    : (double)root->fragmentation_bytes / (double)lives->heap_bytes;
    root->padding_bytes = find_padding(ctx);
    root->source = !lives->n                                                      ? "allocations"
                   : rp_dump_file_of(ctx->module, RP_DUMP_LIVE_RANGE) != SIZE_MAX ? "live ranges"
                                                                                  : "heap events";
    RP_TRY(rp_dump_reported_bytes(&ctx->folder, ctx->module, &root->reported_bytes, ctx->err));
    RP_TRY(find_point(ctx));
    RP_TRY(sum_kinds(ctx));
    RP_TRY(list_live(ctx));
    RP_TRY(fill_timeline(ctx));
    fill_texts(ctx);
    return RP_OK;
}

/* ------------------------------------------------------------------ all modules */

static enum rp_code module_row(struct memory_ctx *ctx, const struct rp_dump_module *module,
                               struct memory_module *row, bool *found, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    RP_SCOPED(rp_buffers_release) struct rp_buffers b = {0};
    struct rp_buffer_lives lives;

    RP_TRY(rp_dump_buffers(&ctx->folder, module, &b, found, err));
    if (*found)
        RP_TRY(rp_buffers_lives(&b, &scratch, &lives, err));
    if (*found) {
        *row = (struct memory_module){.module = module->name,
                                      .id = module->id < 0 ? RP_ABSENT_I64 : module->id,
                                      .allocated_bytes = b.total_bytes,
                                      .peak_bytes = lives.n      ? lives.peak_bytes
                                                    : b.has_peak ? b.peak_bytes
                                                                 : RP_ABSENT_I64,
                                      .heap_bytes = lives.heap_bytes,
                                      .fragmentation_bytes =
                                          lives.heap_peak_bytes < 0 ? RP_ABSENT_I64
                                          : lives.heap_peak_bytes > lives.heap_bytes
                                              ? 0
                                              : lives.heap_bytes - lives.heap_peak_bytes,
                                      .padding_bytes = RP_ABSENT_I64,
                                      .instructions = lives.n ? (int64_t)b.order.n : RP_ABSENT_I64};
        RP_TRY(rp_dump_reported_bytes(&ctx->folder, module, &row->reported_bytes, err));
    }
    return RP_OK;
}

static enum rp_code list_modules(struct memory_ctx *ctx)
{
    struct memory_root *root = ctx->root;
    int64_t most = -1;

    root->modules = RP_ARENA_NEW(ctx->arena, struct memory_module, ctx->folder.nwanted + 1);
    RP_TRY(rp_err_need(root->modules, ctx->err, "listing modules"));
    for (size_t i = 0; i < ctx->folder.dump.nmodules; i++) {
        struct memory_module *row = &root->modules[root->nmodules];
        struct rp_err local = {0};
        bool found = false;

        if (!ctx->folder.wanted[i])
            continue;
        enum rp_code code = module_row(ctx, &ctx->folder.dump.modules[i], row, &found, &local);
        if (code != RP_OK && (code == RP_NOMEM || ctx->folder.nwanted == 1)) {
            *ctx->err = local;
            return code;
        }
        if (code != RP_OK)
            RP_NOTE(ctx->root, ctx->arena, rp_arena_text(ctx->arena, local.text));
        if (code != RP_OK || !found)
            continue;
        root->nmodules++;
        if (row->allocated_bytes > most) {
            most = row->allocated_bytes;
            ctx->module = &ctx->folder.dump.modules[i];
        }
    }
    if (!root->nmodules)
        return rp_err_set(ctx->err, RP_FORMAT,
                          "no buffer assignment in the dump: compile with --xla_dump_to and "
                          "--xla_dump_hlo_as_text");
    return RP_OK;
}

static enum rp_code answer_memory(struct memory_ctx *ctx)
{
    bool found;

    RP_TRY(list_modules(ctx));
    RP_TRY(rp_dump_buffers(&ctx->folder, ctx->module, &ctx->buffers, &found, ctx->err));
    RP_TRY(rp_buffers_lives(&ctx->buffers, ctx->arena, &ctx->lives, ctx->err));
    if (ctx->lives.n && ctx->buffers.peak_at >= 0)
        ctx->lives.peak =
            ctx->buffers
                .peak_at; /* if several positions have the same peak, the one that XLA names */
    const struct rp_dump_stage *final = rp_dump_stage_at(ctx->module, RP_DUMP_AT_AFTER);
    if (!final)
        final = rp_dump_stage_at(ctx->module, RP_DUMP_AT_NAMED);
    if (final &&
        rp_load_program(ctx->call->dataset, final->source, &ctx->program, NULL) == RP_NOMEM)
        return rp_err_nomem(ctx->err, "reading a program");
    RP_TRY(rp_xref_init(&ctx->xref, ctx->program.program, ctx->err));
    RP_TRY(describe_module(ctx));

    if (!ctx->lives.n)
        RP_NOTE(ctx->root, ctx->arena,
                "no live ranges in the dump: what is live when is not known");
    if (!ctx->xref.program)
        RP_NOTE(ctx->root, ctx->arena,
                "no optimised program in the dump: operators and lines are not known");
    if (ctx->buffers.stated_peak_bytes >= 0 &&
        ctx->buffers.stated_peak_bytes != ctx->lives.peak_bytes)
        RP_NOTE(
            ctx->root, ctx->arena,
            rp_arena_textf(
                ctx->arena,
                "XLA's file of live ranges states a peak of %s at position %lld; its own "
                "ranges and the addresses of the buffers give the peak above",
                rp_units_text(ctx->arena, (double)ctx->buffers.stated_peak_bytes, RP_UNIT_BYTES),
                (long long)ctx->buffers.stated_peak_at));
    return rp_arena_check(ctx->arena, "describing memory", ctx->err);
}

static enum rp_code memory_run(const struct rp_dump_call *call, struct rp_result *result,
                               struct rp_err *err)
{
    struct memory_ctx ctx = {.call = call,
                             .arena = &result->arena,
                             .root = result->root,
                             .program = RP_IMPORT_INIT,
                             .err = err};

    rp_buffers_init(&ctx.buffers);
    RP_TRY(rp_dump_folder_open(call, ctx.arena, &ctx.folder, err));
    enum rp_code code = answer_memory(&ctx);
    rp_buffers_release(&ctx.buffers);
    rp_xref_release(&ctx.xref);
    rp_import_release(&ctx.program);
    return code;
}

const struct rp_dump_word rp_dump_memory = {
    .name = "memory",
    .summary = "what a compiled program holds in memory: peak, any point, fragmentation",
    .options = "module at",
    .files = true,
    .type = &memory_type,
    .run = memory_run};
