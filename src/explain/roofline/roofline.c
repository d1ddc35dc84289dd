/* SPDX-License-Identifier: Apache-2.0 */
/* The question `roofline`: its options, and the rows of all ranks added up and ranked. */
#include "explain/roofline/roofline.h"
#include "base/decides.h"
#include "draw/web.h"

#include "base/order.h"
#include "base/strtab.h"
#include "cost/models.h"
#include "dataset/question.h"
#include "explain/roofline/programs.h"
#include "explain/short_name.h"
#include "facts/host/outside.h"
#include "facts/torch_names.h"
#include "result/part.h"
#include "result/print_units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ what is kept and shown */

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_roof_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, NULL,
        "name of the operator, kernel, …; without an operator, the name of its kernel", 0),
    ROW(label, STR, NONE, "name", "name, format and shape", RP_SCREEN | RP_SHORTEN | RP_WHOLE),
    ROW(shape, STR, NONE, NULL, "shapes of its inputs; null: not recorded, or not of one shape", 0),
    ROW(type, STR, NONE, NULL, "number format of its arithmetic; null: several, or not known", 0),
    ROW(category, STR, NONE, NULL, "category of the work; null: several", 0),
    ROW(calls, I64, COUNT, "calls", "calls of the operator; for kernels, launches", RP_WIDE),
    ROW(kernels, I64, COUNT, NULL, "launched by them", 0),
    ROW(device_ns, I64, NS, "time", "sum of the durations of its kernels", 0),
    ROW(share, F64, RATIO, "share", "device_ns / device_ns of everything", RP_WIDE),
    ROW(flops, F64, FLOP, "work", "FLOPs of all calls; null: not modelled", RP_WIDE),
    ROW(bytes, F64, BYTES, "moved", "bytes of all calls; for collectives, on the busiest link",
        RP_WIDE),
    ROW(flops_per_s, F64, FLOPS, "arithmetic", "flops / time of what is modelled", RP_WIDE),
    ROW(bytes_per_s, F64, BPS, "memory", "bytes / time of what is modelled", RP_WIDE),
    ROW(flops_per_byte, F64, COUNT, "FLOP/B", "flops / bytes: the arithmetic intensity", RP_WIDE),
    ROW(bound, STR, NONE, "bound", "compute, memory or latency; null: not known", 0),
    ROW(rate, STR, NONE, "rate", "of arithmetic or memory, by what limits it", RP_SCREEN),
    ROW(peak_share, F64, RATIO, "of peak", "time at the peaks of the device / device time", 0),
    ROW(saved_ns, I64, NS, "to save", "device time less that at the achievable part of the peaks",
        RP_NULLABLE),
    ROW(missing, STR, NONE, "why", "why it is not modelled; null: it is", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_roof_row), row_fields, NULL};

#define KNOWN                                                                                  \
    "label, calls, device_ns, share, flops, bytes, flops_per_byte, flops_per_s, bytes_per_s, " \
    "bound, rate, peak_share, saved_ns"
#define UNMODELLED "label, calls, device_ns, share, missing"

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_roof_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "roofline", "text output only", RP_SCREEN),
    ROOT(by, STR, NONE, NULL, "what the rows are", 0),
    ROOT(device, STR, NONE, NULL, "the driver's name of the device; null: not recorded", 0),
    ROOT(peaks, STR, NONE, NULL, "the device whose peaks are used; null: those of --peak, or none",
         0),
    ROOT(matrix_type, STR, NONE, NULL, "number format of most products, by time; without any bf16",
         0),
    ROOT(matrix_flops_per_s, F64, FLOPS, NULL, "peak for products in this format", 0),
    ROOT(memory_bytes_per_s, F64, BPS, NULL, "peak of the memory", 0),
    ROOT(achievable_share, F64, RATIO, NULL, "part of the peaks that 'saved' assumes", 0),
    ROOT(ranks, I64, COUNT, NULL, "number of ranks", 0),
    ROOT(device_ns, I64, NS, "device time", "sum of the durations of all selected work", 0),
    ROOT(modelled_ns, I64, NS, NULL, "the part of it that has FLOPs and bytes", 0),
    ROOT(modelled_share, F64, RATIO, NULL, "modelled_ns / device_ns", 0),
    ROOT(classes_ns, I64, NS, NULL, "device time of the categories that have models", 0),
    ROOT(rated_ns, I64, NS, NULL, "the part of it that has a share of a peak", 0),
    ROOT(rated_share, F64, RATIO, NULL, "rated_ns / classes_ns", 0),
    ROOT(flops, F64, FLOP, NULL, "FLOPs of everything that is modelled", 0),
    ROOT(flops_per_s, F64, FLOPS, NULL, "flops / device_ns", 0),
    ROOT(saved_ns, I64, NS, NULL, "time saved in all rows", 0),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    RP_FIELD_LIST(struct rp_roof_root, rows, &row_type, NULL, "what would save most first", 0),
    RP_FIELD_SHOWN(struct rp_roof_root, known, &row_type, "rows", KNOWN, 0),
    RP_FIELD_SHOWN(struct rp_roof_root, unmodelled, &row_type, "not modelled", UNMODELLED, 0),
    RP_FIELD_LIST(struct rp_roof_root, notes, &rp_type_string, "notes", "about the rows",
                  RP_SCREEN),
    RP_FIELD_END};
const struct rp_type rp_roof_type = {"roofline", sizeof(struct rp_roof_root), root_fields, "rows"};

#define GROUP(member) RP_PART_TEXT(struct rp_roof_group, member)
static const struct rp_field group_fields[] = {
    GROUP(name),     GROUP(shape),   GROUP(type),
    GROUP(category), GROUP(missing), RP_PART_PLAIN(struct rp_roof_group, sums),
    RP_PART_END};
static const struct rp_type group_type = {"group", sizeof(struct rp_roof_group), group_fields,
                                          NULL};

static const struct rp_field part_fields[] = {
    RP_PART_VEC(struct rp_roof_part, groups, &group_type),
    RP_PART_PLAIN(struct rp_roof_part, all),
    RP_PART_PLAIN(struct rp_roof_part, classes_ns),
    RP_PART_TEXT(struct rp_roof_part, device),
    RP_PART_TEXT(struct rp_roof_part, peaks),
    RP_PART_PLAIN(struct rp_roof_part, memory_bytes_per_s),
    RP_PART_PLAIN(struct rp_roof_part, matrix_flops_per_s),
    RP_PART_PLAIN(struct rp_roof_part, product_ns),
    RP_PART_TEXT(struct rp_roof_part, not_counted),
    RP_PART_PLAIN(struct rp_roof_part, recorder),
    RP_PART_END};
const struct rp_type rp_roof_part_type = {"roof_part", sizeof(struct rp_roof_part), part_fields,
                                          NULL};

/* ------------------------------------------------------------------ options */

static enum rp_code bad_peak(const char *text, struct rp_err *err)
{
    return rp_err_set(err, RP_USAGE,
                      "--peak '%s': expected flops=N, bytes=N or both, as in "
                      "flops=989e12,bytes=4.8e12",
                      text);
}

static enum rp_code read_peak(const char *text, struct rp_roof_options *o, struct rp_err *err)
{
    const char *at = text;

    while (at && *at) {
        double *to = !strncmp(at, "flops=", 6)   ? &o->flops_per_s
                     : !strncmp(at, "bytes=", 6) ? &o->bytes_per_s
                                                 : NULL;
        char *end;

        if (!to)
            return bad_peak(text, err);
        *to = strtod(at + 6, &end);
        if (end == at + 6 || !(*to > 0 && isfinite(*to)) || (*end && *end != ','))
            return bad_peak(text, err);
        at = *end ? end + 1 : end;
    }
    return RP_OK;
}

static enum rp_code read_options(const struct rp_settings *settings, struct rp_roof_options *o,
                                 struct rp_err *err)
{
    const char *device = rp_settings_text(settings, "device");

    *o = (struct rp_roof_options){.by = rp_roof_by_of(rp_settings_text(settings, "by")),
                                  .achievable = rp_settings_ratio(settings, "achievable")};
    if (device) {
        o->device = rp_device_by_name(device);
        if (!o->device) {
            char list[768] = "";
            size_t i, n, at = 0;
            const struct rp_device_peaks *devices = rp_devices(&n);

            for (i = 0; i < n && at + 24 < sizeof list; i++)
                at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "",
                                       devices[i].name);
            return rp_err_set(err, RP_USAGE, "--device '%s': unknown; known devices: %s", device,
                              list);
        }
    }
    if (!(o->achievable > 0 && o->achievable <= 1))
        return rp_err_set(err, RP_USAGE,
                          "--achievable must be above 0 and at most 1, as in 0.8 or 80%%");
    return read_peak(rp_settings_text(settings, "peak"), o, err);
}

/* ------------------------------------------------------------------ adding up */

struct roof_join {
    struct rp_arena *arena;
    struct rp_strtab keys;
    RP_VEC(struct rp_roof_group) groups; /* indexed by the id of their key */
    RP_VEC(struct rp_roof_row) rows;
    RP_VEC(char) text;
    const char *shapes_option; /* NULL if the recorder has none */
};

static void add_sums(struct rp_roof_sums *to, const struct rp_roof_sums *s)
{
    to->calls += s->calls;
    to->kernels += s->kernels;
    to->device_ns = rp_ns_sum(to->device_ns, s->device_ns);
    to->modelled_ns = rp_ns_sum(to->modelled_ns, s->modelled_ns);
    to->rated_ns = rp_ns_sum(to->rated_ns, s->rated_ns);
    to->flops += s->flops;
    to->bytes += s->bytes;
    to->least_s += s->least_s;
    to->reached_s += s->reached_s;
    for (int i = 0; i < RP_BOUNDS; i++)
        to->bound_ns[i] = rp_ns_sum(to->bound_ns[i], s->bound_ns[i]);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static enum rp_code add_group(struct roof_join *j, const struct rp_roof_group *g, bool shaped,
                              struct rp_err *err)
{
    size_t known = j->groups.n;
    uint32_t id;

    /* The name, and for rows by shape also shape and format, one after the other. */
    const char *parts[] = {g->name, shaped ? g->shape : NULL, shaped ? g->type : NULL,
                           shaped && g->missing ? "-" : NULL};
    j->text.n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = parts[i] ? strlen(parts[i]) : 0;
        RP_TRY(rp_vec_reserve(&j->text, n + 1, err));
        if (n)
            memcpy(j->text.at + j->text.n, parts[i], n);
        j->text.n += n;
        j->text.at[j->text.n++] = '\1';
    }

    RP_TRY(rp_strtab_intern(&j->keys, j->text.at, j->text.n, &id, err));
    while (j->groups.n <= id) { /* the empty text is first */
        struct rp_roof_group none = {0};

        RP_TRY(rp_vec_push(&j->groups, none, err));
    }
    struct rp_roof_group *to = &j->groups.at[id];
    if (id >= known) {
        *to = *g;
        return RP_OK;
    }
    to->type = same_text(to->type, g->type) ? to->type : NULL;
    to->category = same_text(to->category, g->category) ? to->category : NULL;
    to->missing = g->missing ? to->missing : NULL;
    add_sums(&to->sums, &g->sums);
    return RP_OK;
}

static const char *const bound_names[RP_BOUNDS] = {"compute", "memory", "latency"};

static int64_t saved_ns(const struct rp_roof_sums *s)
{
    double reached = s->reached_s * 1e9, spent = (double)s->rated_ns;

    if (!s->rated_ns)
        return RP_ABSENT_I64;
    return spent > reached ? (int64_t)(spent - reached) : 0;
}

static void fill_row(struct rp_roof_row *row, const struct rp_roof_group *g, int64_t whole_ns)
{
    const struct rp_roof_sums *s = &g->sums;
    double modelled_s = (double)s->modelled_ns * 1e-9;
    int i, bound = 0;

    *row = (struct rp_roof_row){.name = g->name,
                                .label = g->name,
                                .shape = g->shape,
                                .type = g->type,
                                .category = g->category,
                                .missing = g->missing,
                                .calls = s->calls,
                                .kernels = s->kernels,
                                .device_ns = s->device_ns,
                                .saved_ns = saved_ns(s),
                                .flops = NAN,
                                .bytes = NAN,
                                .flops_per_s = NAN,
                                .bytes_per_s = NAN,
                                .flops_per_byte = NAN,
                                .peak_share = NAN};
    row->share = whole_ns > 0 ? (double)s->device_ns / (double)whole_ns : 0;
    if (!g->missing) {
        row->flops =
            rint(s->flops); /* not an integer, because a kernel may have a part of a call */
        row->bytes = rint(s->bytes);
        row->flops_per_s = modelled_s > 0 ? s->flops / modelled_s : NAN;
        row->bytes_per_s = modelled_s > 0 ? s->bytes / modelled_s : NAN;
        row->flops_per_byte = s->bytes > 0 ? s->flops / s->bytes : NAN;
    }
    if (!s->rated_ns)
        return;
    for (i = 1; i < RP_BOUNDS; i++)
        bound = s->bound_ns[i] > s->bound_ns[bound] ? i : bound;
    row->bound = bound_names[bound];
    row->peak_share = s->least_s * 1e9 / (double)s->rated_ns;
}

RP_ORDER(compare_rows, struct rp_roof_row, RP_DOWN(saved_ns), RP_DOWN(device_ns),
         strcmp(a->name, b->name), strcmp(a->shape ? a->shape : "", b->shape ? b->shape : ""))

RP_ORDER(compare_times, struct rp_roof_row, RP_DOWN(device_ns), compare_rows(a, b))

/* ------------------------------------------------------------------ texts */

#define SHAPES_SHOWN 3
RP_LIMIT(SHAPES_SHOWN, "shapes in a label", "'…' stands for the others");

/* The first shapes of a list of them. */
static const char *first_shapes(const char *shape, struct rp_arena *arena)
{
    const char *at = shape;

    for (int n = 0; n < SHAPES_SHOWN && at; n++)
        at = strchr(at + 1, '[');
    return at ? rp_arena_textf(arena, "%.*s…", (int)(at - shape), shape) : shape;
}

/* Whether the rate of a category is one of arithmetic; used if there are no peaks. */
static bool is_product(const char *category)
{
    return category && (!strcmp(category, rp_category_names[RP_CATEGORY_MATMUL]) ||
                        !strcmp(category, rp_category_names[RP_CATEGORY_CONVOLUTION]) ||
                        !strcmp(category, rp_category_names[RP_CATEGORY_ATTENTION]));
}

/* "mm bf16 [64,32] [32,16]": operators of aten without "aten::"; only names of kernels are C++. */
static void label_rows(struct rp_roof_row *rows, size_t n, const char *by, struct rp_arena *arena)
{
    const char **names = RP_ARENA_NEW(arena, const char *, n + 1);
    const char **labels = RP_ARENA_NEW(arena, const char *, n + 1);

    if (!names || !labels)
        return;
    for (size_t i = 0; i < n; i++)
        names[i] = labels[i] = rows[i].name;
    if (!strcmp(by, "kernel"))
        rp_short_names(names, labels, n, arena);
    for (size_t i = 0; i < n; i++) {
        struct rp_roof_row *r = &rows[i];
        const char *name = labels[i];

        name = rp_torch_module(rp_torch_op(name));
        r->label = r->shape ? rp_arena_textf(arena, "%s %s%s%s", name, r->type ? r->type : "",
                                             r->type ? " " : "", first_shapes(r->shape, arena))
                            : rp_arena_text(arena, name);
        if (r->bound ? !strcmp(r->bound, "compute") : is_product(r->category))
            r->rate = rp_units_text(arena, r->flops_per_s, RP_UNIT_FLOPS);
        else if (!isnan(r->bytes_per_s))
            r->rate = rp_units_text(arena, r->bytes_per_s, RP_UNIT_BPS);
    }
}

#define UNMODELLED_SHOWN 8
RP_LIMIT(UNMODELLED_SHOWN, "rows on the screen", "the longest; --json has them all");

/* On the screen, what is not modelled becomes a separate table, by time. */
static void split_rows(struct roof_join *j, struct rp_roof_root *out)
{
    struct rp_roof_row *known = RP_ARENA_NEW(j->arena, struct rp_roof_row, out->nrows + 1);
    size_t i, n = 0, room = 0;

    for (i = 0; i < j->rows.n; i++)
        room += j->rows.at[i].missing != NULL;
    out->unmodelled = RP_ARENA_NEW(j->arena, struct rp_roof_row, room + 1);
    if (!known || !out->unmodelled)
        return;
    for (i = 0; i < out->nrows; i++)
        if (!out->rows[i].missing)
            known[n++] = out->rows[i];
    for (i = 0; i < j->rows.n; i++)
        if (j->rows.at[i].missing)
            out->unmodelled[out->nunmodelled++] = j->rows.at[i];
    rp_sort(out->unmodelled, out->nunmodelled, sizeof *out->unmodelled, compare_times);
    out->nunmodelled = out->nunmodelled < UNMODELLED_SHOWN ? out->nunmodelled : UNMODELLED_SHOWN;
    label_rows(known, n, out->by, j->arena);
    label_rows(out->unmodelled, out->nunmodelled, "kernel", j->arena);
    out->known = known;
    out->nknown = n;
}

static double ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

#define UNSHAPED_MUCH 0.1
RP_DECISION(UNSHAPED_MUCH, "of the device time",
            "custom kernels without shapes are in every program; more is a recording without them",
            "explain/shapes_that_are_missing_have_an_edge");

static const char *peaks_text(const struct rp_roof_root *out, struct rp_arena *arena)
{
    if (!(out->memory_bytes_per_s > 0))
        return out->device ? rp_arena_textf(arena,
                                            "the peaks of '%s' are not known: '--device' names "
                                            "one of the table, '--peak flops=N,bytes=N' gives them",
                                            out->device)
                           : "the trace does not name its device: '--device' names one of the "
                             "table, '--peak flops=N,bytes=N' gives its peaks";
    if (!(out->matrix_flops_per_s > 0))
        return rp_arena_textf(
            arena,
            "peaks%s%s: %s of memory, for products in %s not known ('--peak flops=N' gives it); "
            "'to save' assumes %s of them",
            out->peaks ? " of " : "", out->peaks ? out->peaks : "",
            rp_units_text(arena, out->memory_bytes_per_s, RP_UNIT_BPS), out->matrix_type,
            rp_units_text(arena, out->achievable_share, RP_UNIT_RATIO));
    return rp_arena_textf(
        arena, "peaks%s%s: %s for products in %s, %s of memory; 'to save' assumes %s of them",
        out->peaks ? " of " : "", out->peaks ? out->peaks : "",
        rp_units_text(arena, out->matrix_flops_per_s, RP_UNIT_FLOPS), out->matrix_type,
        rp_units_text(arena, out->memory_bytes_per_s, RP_UNIT_BPS),
        rp_units_text(arena, out->achievable_share, RP_UNIT_RATIO));
}

/* The share of operators without shapes in all device time. */
static double unshaped_share(const struct roof_join *j, int64_t device_ns)
{
    int64_t ns = 0;

    for (size_t i = 0; i < j->rows.n; i++)
        if (j->rows.at[i].missing && !strcmp(j->rows.at[i].missing, RP_NO_SHAPES))
            ns = rp_ns_sum(ns, j->rows.at[i].device_ns);
    return ratio(ns, device_ns);
}

/* "92.4 % of the device time modelled", and how much of it has a peak if that is less. */
static const char *coverage_text(const struct rp_roof_root *out, struct rp_arena *arena)
{
    const char *modelled = rp_units_text(arena, out->modelled_share, RP_UNIT_RATIO);
    const char *rated = rp_units_text(arena, ratio(out->rated_ns, out->device_ns), RP_UNIT_RATIO);

    if (!modelled || !rated || !strcmp(modelled, rated) || !(out->memory_bytes_per_s > 0))
        return rp_arena_textf(arena, "%s of the device time modelled", modelled);
    return rp_arena_textf(arena, "%s of the device time modelled, %s with a share of a peak",
                          modelled, rated);
}

static void fill_notes(struct roof_join *j, struct rp_roof_root *out)
{
    struct rp_arena *arena = j->arena;
    bool cached = false;

    if (!out->row_count) {
        out->summary = "no device work was recorded";
        return;
    }
    RP_NOTE(out, arena, peaks_text(out, arena));
    if (unshaped_share(j, out->device_ns) >= UNSHAPED_MUCH)
        RP_NOTE(out, arena,
                j->shapes_option
                    ? rp_arena_textf(arena, "shapes were not recorded: %s records them",
                                     j->shapes_option)
                    : "shapes were not recorded");
    if (out->row_count > (int64_t)out->nrows)
        RP_NOTE(out, arena,
                rp_arena_textf(arena, "%zu of %s rows: '--limit 0' shows all", out->nrows,
                               rp_units_number(arena, out->row_count)));
    for (size_t i = 0; i < out->nrows; i++)
        cached = cached || out->rows[i].bytes_per_s > out->memory_bytes_per_s;
    if (cached)
        RP_NOTE(
            out, arena,
            "faster than the memory: the data came from a cache, which counts as 100 % of the peak");
    out->summary = rp_arena_textf(
        arena, "%s, by %s%s; %s", out->device ? out->device : "unknown device", out->by,
        out->ranks > 1 ? ", all ranks together" : "", coverage_text(out, arena));
}

static void fill_totals(const struct rp_roof_part *const *parts, size_t n, double achievable,
                        struct rp_roof_root *out)
{
    struct rp_roof_sums all = {0};

    /* The format that most products have. */
    int64_t ns[RP_NUMBERS] = {0};
    int i, most = RP_NUMBER_BF16;
    for (size_t p = 0; p < n; p++)
        for (i = 0; i < RP_NUMBERS; i++)
            rp_ns_add(&ns[i], parts[p]->product_ns[i]);
    for (i = 0; i < RP_NUMBERS; i++)
        most = ns[i] > ns[most] ? i : most;
    enum rp_number type = (enum rp_number)most;

    out->matrix_type = rp_number_names[type];
    for (size_t p = 0; p < n; p++) {
        add_sums(&all, &parts[p]->all);
        out->classes_ns = rp_ns_sum(out->classes_ns, parts[p]->classes_ns);
        if (!out->device)
            out->device = parts[p]->device;
        if (parts[p]->memory_bytes_per_s > 0 && !(out->memory_bytes_per_s > 0)) {
            out->peaks = parts[p]->peaks;
            out->memory_bytes_per_s = parts[p]->memory_bytes_per_s;
            out->matrix_flops_per_s = parts[p]->matrix_flops_per_s[type];
        }
    }
    out->achievable_share = achievable;
    out->device_ns = all.device_ns;
    out->modelled_ns = all.modelled_ns;
    out->rated_ns = all.rated_ns;
    out->modelled_share = ratio(all.modelled_ns, all.device_ns);
    out->rated_share = ratio(all.rated_ns, out->classes_ns);
    out->flops = rint(all.flops);
    out->flops_per_s = all.device_ns > 0 ? all.flops / ((double)all.device_ns * 1e-9) : NAN;
    if (!(out->memory_bytes_per_s > 0))
        out->memory_bytes_per_s = out->matrix_flops_per_s = NAN;
    else if (!(out->matrix_flops_per_s > 0))
        out->matrix_flops_per_s = NAN;
}

static enum rp_code fill_root(struct roof_join *j, int64_t limit, struct rp_roof_root *out,
                              struct rp_err *err)
{
    for (size_t i = 0; i < j->groups.n; i++) {
        struct rp_roof_row row;

        if (!j->groups.at[i].name)
            continue;
        fill_row(&row, &j->groups.at[i], out->device_ns);
        RP_TRY(rp_vec_push(&j->rows, row, err));
    }
    rp_sort(j->rows.at, j->rows.n, sizeof *j->rows.at, compare_rows);
    out->row_count = (int64_t)j->rows.n;
    out->nrows = limit > 0 && (size_t)limit < j->rows.n ? (size_t)limit : j->rows.n;
    out->rows = RP_ARENA_NEW(j->arena, struct rp_roof_row, out->nrows + 1);
    RP_TRY(rp_err_need(out->rows, err, "adding up ranks"));
    if (out->nrows)
        memcpy(out->rows, j->rows.at, out->nrows * sizeof *out->rows);
    for (size_t i = 0; i < j->rows.n; i++)
        if (j->rows.at[i].saved_ns > 0)
            out->saved_ns = rp_ns_sum(out->saved_ns, j->rows.at[i].saved_ns);
    split_rows(j, out);
    fill_notes(j, out);
    return rp_arena_check(j->arena, "adding up ranks", err);
}

enum rp_code rp_roof_join(const struct rp_roof_part *const *parts, size_t nparts,
                          const struct rp_roof_options *options, const char *by, int64_t limit,
                          struct rp_arena *arena, struct rp_roof_root *out, struct rp_err *err)
{
    struct roof_join j = {.arena = arena};
    enum rp_code code = rp_strtab_init(&j.keys, err);

    *out = (struct rp_roof_root){.by = rp_arena_text(arena, by), .ranks = (int64_t)nparts};
    if (nparts)
        j.shapes_option = rp_recorder_option(&parts[0]->recorder, RP_RECORDS_SHAPES);
    for (size_t p = 0; p < nparts; p++)
        for (size_t i = 0; i < parts[p]->groups.n && code == RP_OK; i++)
            code = add_group(&j, &parts[p]->groups.at[i], options->by == RP_ROOF_SHAPE, err);
    if (code == RP_OK) {
        fill_totals(parts, nparts, options->achievable, out);
        code = fill_root(&j, limit, out, err);
    }
    rp_strtab_release(&j.keys);
    rp_vec_release(&j.groups);
    rp_vec_release(&j.rows);
    rp_vec_release(&j.text);
    return code;
}

/* ------------------------------------------------------------------ the question */

static enum rp_code roofline_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                  const struct rp_settings *settings, struct rp_rank_part *part,
                                  struct rp_err *err)
{
    struct rp_roof_part *out = part->data;
    struct rp_scope steps = *scope;
    struct rp_roof_options options;
    RP_SCOPED(rp_program_costs_release) struct rp_program_costs programs = {0};

    RP_TRY(read_options(settings, &options, err));
    RP_TRY(rp_judged_scope(loaded->trace, &steps, &part->arena, &out->not_counted, err));
    RP_TRY(rp_recorder_find(loaded->trace, &out->recorder, err));
    RP_TRY(rp_program_costs_init(&programs, loaded, rp_settings_text(settings, "dumps"), err));
    return rp_roof_group_calls(loaded->trace, &steps, rp_loaded_categories(loaded), &options,
                               rp_program_cost_of, &programs, &part->arena, out, err);
}

static enum rp_code roofline_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                  struct rp_result *result, struct rp_err *err)
{
    const struct rp_roof_part **parts =
        RP_ARENA_NEW(&result->arena, const struct rp_roof_part *, ranks->n + 1);
    struct rp_roof_root *root = result->root;
    struct rp_roof_options options;

    RP_TRY(rp_err_need(parts, err, "adding up ranks"));
    for (size_t i = 0; i < ranks->n; i++)
        parts[i] = ranks->parts[i].data;
    RP_TRY(read_options(settings, &options, err));
    RP_TRY(rp_roof_join(parts, ranks->n, &options, rp_settings_text(settings, "by"),
                        rp_settings_int(settings, "limit"), &result->arena, root, err));
    RP_NOTE(root, &result->arena, ranks->graphs);
    if (ranks->n)
        RP_NOTE(root, &result->arena, parts[0]->not_counted);
    if (!rp_settings_has(settings, "svg") && !rp_settings_has(settings, "html"))
        return RP_OK;
    root->picture = RP_ARENA_NEW(&result->arena, struct rp_roof_root, 1);
    return root->picture ? rp_roof_join(parts, ranks->n, &options, rp_settings_text(settings, "by"),
                                        0, &result->arena, root->picture, err)
                         : rp_err_nomem(err, "adding up ranks");
}

static void draw_page(void *user, struct rp_out *to)
{
    struct rp_result *result = user;

    rp_roof_draw(((struct rp_roof_root *)result->root)->picture, &result->arena, to);
}

static enum rp_code roofline_write(const struct rp_settings *settings, struct rp_result *result,
                                   struct rp_err *err)
{
    const char *svg = rp_settings_text(settings, "svg"), *html = rp_settings_text(settings, "html");
    struct rp_web_answer page = {
        .result = result, .name = "roofline", .draw = draw_page, .user = result};

    if (svg)
        RP_TRY(rp_roof_write_picture(((struct rp_roof_root *)result->root)->picture, svg, err));
    return html ? rp_web_write_answer(&page, html, err) : RP_OK;
}

static const struct rp_option roofline_options[] = {
    {"by", 'b', RP_OPT_CHOICE, RP_ROOF_BY_WORDS, "shape",
     "what the rows are; shape: an operator with the shapes and format of its inputs", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "20", "at most N rows; 0: all", 0},
    {"achievable", 0, RP_OPT_RATIO, "PART", "0.8", "part of the peaks that 'to save' assumes", 0},
    {"device", 0, RP_OPT_TEXT, "NAME", NULL,
     "peaks of this device (H100, MI300X, …) instead of the recorded one", 0},
    {"peak", 0, RP_OPT_TEXT, "flops=N,bytes=N", NULL,
     "these peaks, per second, instead of the published ones; one of the two is enough", 0},
    {"dumps", 0, RP_OPT_PATH, "DIR", NULL,
     "where shapes were not recorded: what generated kernels read and write, from the logs of "
     "torch.compile (TORCH_TRACE) in this folder or file (default: those beside the trace)",
     0},
    {"svg", 0, RP_OPT_PATH, "FILE", NULL, "also write all rows below the roofs as a picture", 0},
    {"html", 0, RP_OPT_PATH, "FILE", NULL,
     "also write a page for a browser: the picture and all tables", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_roofline = {
    .question =
        {.name = "roofline",
         .group = "traces",
         .summary = "how close each operator comes to the peaks of the device: FLOPs and bytes",
         .details =
             "The work of each operator follows from its recorded shapes, types and "
             "arguments. Its rates are compared with the peaks of the device: what limits "
             "it, how much of that limit it reaches, and how much time would be saved at the achievable part. What cannot be modelled is listed with the reason.",
         .examples = "reprise roofline trace.json.gz\tthe operators that would save most\n"
                     "reprise roofline --by category run/\tone row per category\n"
                     "reprise roofline --svg roofline.svg run/\ta picture of all operators\n"
                     "reprise roofline --peak flops=989e12,bytes=4.8e12 run/\tgiven peaks\n",
         .accepts = RP_ACCEPTS_TRACES,
         .options = roofline_options,
         .type = &rp_roof_type},
    .ranks = {.part = &rp_roof_part_type, .rank = roofline_rank, .join = roofline_join},
    .write = roofline_write};
