/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares memory snapshots for `diff`: the bytes that each line holds in one run with those in the
 * other. If a change of the program has moved lines, those of one function are paired in their
 * order.
 */
#include "explain/memory/compare.h"

#include "base/order.h"
#include "dataset/question.h"
#include "explain/memory/memory.h"
#include "result/part.h"
#include "result/print_units.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the result */

#define CHANGE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_memory_change, member, type, unit, title, doc, flags)

static const struct rp_field change_fields[] = {
    CHANGE(change_bytes, I64, BYTES, "change", "new - base", 0),
    CHANGE(base_bytes, I64, BYTES, "base", "bytes at the peak of the first run", 0),
    CHANGE(new_bytes, I64, BYTES, "new", "bytes at the peak of the second run", 0),
    CHANGE(base_buffers, I64, COUNT, "buffers", "how many; 0: not known one by one", 0),
    CHANGE(new_buffers, I64, COUNT, "new", "the same of the second run", 0),
    CHANGE(name, STR, NONE, "name", "line, operator or category; 'other': not recorded",
           RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type change_type = {"change", sizeof(struct rp_memory_change), change_fields,
                                           NULL};

#define PAIR(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_memory_pair, member, type, unit, title, doc, flags)

static const struct rp_field pair_fields[] = {
    PAIR(rank, I64, NONE, "rank", "rank", RP_NULLABLE),
    PAIR(device, STR, NONE, "device", "the device with this memory", RP_SHORTEN),
    PAIR(base_peak_bytes, I64, BYTES, "base", "peak of the first run", 0),
    PAIR(new_peak_bytes, I64, BYTES, "new", "peak of the second run", 0),
    PAIR(change_bytes, I64, BYTES, "change", "new - base", 0),
    RP_FIELD_END};
static const struct rp_type pair_type = {"pair", sizeof(struct rp_memory_pair), pair_fields, NULL};

#define TWO(member, type, unit, doc, flags) \
    RP_FIELD(struct rp_memory_two, member, type, unit, NULL, doc, flags)
#define TWO_LIST(member, item, doc) RP_FIELD_LIST(struct rp_memory_two, member, item, NULL, doc, 0)

static const struct rp_field two_fields[] = {
    TWO(rank, I64, NONE, "rank", RP_NULLABLE),
    TWO(device, STR, NONE, "the device with this memory", 0),
    TWO_LIST(peak_bytes, &rp_type_int, "the peaks: base, new"),
    TWO_LIST(reserved_bytes, &rp_type_int, "the most that was reserved; empty: not recorded"),
    TWO_LIST(begin_bytes, &rp_type_int, "allocated when the recordings begin; empty: not recorded"),
    TWO_LIST(categories, &change_type, "what the memory is for"),
    TWO_LIST(lines, &change_type, "lines of the program that hold it"),
    TWO_LIST(operators, &change_type, "operators that allocated it"),
    RP_FIELD_END};
static const struct rp_type two_type = {"memory", sizeof(struct rp_memory_two), two_fields, NULL};

#define ROOT_LIST(member, item, title, doc, flags) \
    RP_FIELD_LIST(struct rp_memory_diff, member, item, title, doc, flags)

static const struct rp_field root_fields[] = {
    RP_FIELD(struct rp_memory_diff, inputs, STR, NONE, NULL, "memory snapshots", 0),
    RP_FIELD(struct rp_memory_diff, summary, STR, NONE, "memory", "how the largest peak changed",
             0),
    RP_FIELD(struct rp_memory_diff, start, STR, NONE, "start", "text output only", RP_SCREEN),
    RP_FIELD_RECORD(struct rp_memory_diff, memory, &two_type, NULL,
                    "memory of the device with the largest peak", 0),
    ROOT_LIST(devices, &pair_type, "devices", "those that both runs have, the largest peak first",
              0),
    ROOT_LIST(categories, &change_type, "what it is for", "text output only", RP_SCREEN),
    ROOT_LIST(lines, &change_type, "lines", "text output only", RP_SCREEN),
    ROOT_LIST(operators, &change_type, "operators", "text output only", RP_SCREEN),
    ROOT_LIST(notes, &rp_type_string, "notes", "about the recordings", 0),
    RP_FIELD_END};
const struct rp_type rp_memory_diff_type = {"diff", sizeof(struct rp_memory_diff), root_fields,
                                            NULL};

/* ------------------------------------------------------------------ changes by name */

enum holder_key { BY_CATEGORY, BY_LINE, BY_OPERATOR };

/* A name in one run, or in both after joining. */
struct named {
    struct rp_memory_change change;
    const char *function; /* "model.py: forward" for "model.py(42): forward" */
    long line;            /* 42; 0 if the name has none */
    bool in[2];           /* the runs */
};

RP_ORDER(by_place, struct named, strcmp(a->function, b->function), RP_UP(line),
         strcmp(a->change.name, b->change.name))
RP_ORDER(by_change, struct rp_memory_change,
         RP_COMPARE(llabs(b->change_bytes), llabs(a->change_bytes)), RP_DOWN(base_bytes),
         strcmp(a->name, b->name))

static const char *name_of(const struct rp_memory_holder *h, enum holder_key key)
{
    const char *name = key == BY_CATEGORY ? h->category : key == BY_LINE ? h->line : h->op;

    return name ? name : "other";
}

static struct named name_holder(const struct rp_memory_holder *h, enum holder_key key, size_t run,
                                struct rp_arena *arena)
{
    const char *name = name_of(h, key), *open = strchr(name, '(');
    char *close = NULL;
    struct named out = {.change = {.name = name}, .function = name};

    if (key == BY_LINE && open)
        out.line = strtol(open + 1, &close, 10);
    if (close && *close == ')')
        out.function = rp_arena_textf(arena, "%.*s%s", (int)(open - name), name, close + 1);
    else
        out.line = 0;
    *(run ? &out.change.new_bytes : &out.change.base_bytes) = h->bytes;
    *(run ? &out.change.new_buffers : &out.change.base_buffers) = h->buffers;
    out.in[run] = true;
    return out;
}

static void add_named(struct named *to, const struct named *from)
{
    to->change.base_bytes += from->change.base_bytes;
    to->change.new_bytes += from->change.new_bytes;
    to->change.base_buffers += from->change.base_buffers;
    to->change.new_buffers += from->change.new_buffers;
    to->in[0] |= from->in[0];
    to->in[1] |= from->in[1];
}

static size_t join_equal_names(struct named *rows, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (kept && !by_place(&rows[kept - 1], &rows[i]))
            add_named(&rows[kept - 1], &rows[i]);
        else
            rows[kept++] = rows[i];
    return kept;
}

/* Pairs lines of one function in their order. If each run has as many lines that the other lacks,
   an edit has moved them, so the first of the base is the first of the new run. */
static void pair_moved_lines(struct named *rows, size_t n)
{
    size_t only[2] = {0, 0}, base = 0, fresh = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t run = 0; run < 2; run++)
            only[run] += rows[i].in[run] && !rows[i].in[!run];
    if (only[0] != only[1])
        return;
    for (size_t left = only[0]; left; left--, base++, fresh++) {
        while (!rows[base].in[0] || rows[base].in[1])
            base++;
        while (rows[fresh].in[0] || !rows[fresh].in[1])
            fresh++;
        rows[base].change.name = rows[fresh].change.name;
        add_named(&rows[base], &rows[fresh]);
        rows[fresh].change.name = NULL; /* its bytes are in the row of the base now */
    }
}

static enum rp_code list_changes(const struct rp_memory_device *const runs[2], enum holder_key key,
                                 struct rp_arena *arena, struct rp_memory_change **out,
                                 size_t *nout, struct rp_err *err)
{
    struct named *rows =
        RP_ARENA_NEW(arena, struct named, runs[0]->nholders + runs[1]->nholders + 1);
    size_t n = 0;

    RP_TRY(rp_err_need(rows, err, "comparing memory"));
    for (size_t run = 0; run < 2; run++)
        for (size_t i = 0; i < runs[run]->nholders; i++)
            rows[n++] = name_holder(&runs[run]->holders[i], key, run, arena);
    RP_TRY(rp_arena_check(arena, "comparing memory", err));
    rp_sort(rows, n, sizeof *rows, by_place);
    n = join_equal_names(rows, n);
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && !strcmp(rows[end].function, rows[first].function); end++)
            ;
        pair_moved_lines(&rows[first], end - first);
    }
    *out = RP_ARENA_NEW(arena, struct rp_memory_change, n + 1);
    RP_TRY(rp_err_need(*out, err, "comparing memory"));
    *nout = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].change.name) {
            rows[i].change.change_bytes = rows[i].change.new_bytes - rows[i].change.base_bytes;
            (*out)[(*nout)++] = rows[i].change;
        }
    rp_sort(*out, *nout, sizeof **out, by_change);
    return RP_OK;
}

/* ------------------------------------------------------------------ two runs */

struct device_pair {
    const struct rp_memory_device *runs[2];
    int64_t rank, peak_bytes; /* the larger of both peaks */
};

RP_ORDER(by_peak, struct device_pair, RP_DOWN(peak_bytes), RP_UP(rank))

static const struct rp_memory_device *find_device(const struct rp_ranks *ranks, int64_t rank,
                                                  const char *device)
{
    for (size_t r = 0; r < ranks->n; r++) {
        size_t n;
        const struct rp_memory_device *devices = rp_memory_devices(&ranks->parts[r], &n);

        for (size_t i = 0; i < n && ranks->parts[r].number == rank; i++)
            if (!strcmp(devices[i].device, device))
                return &devices[i];
    }
    return NULL;
}

static size_t count_devices(const struct rp_ranks *ranks)
{
    size_t all = 0, n;

    for (size_t r = 0; r < ranks->n; r++) {
        (void)rp_memory_devices(&ranks->parts[r], &n);
        all += n;
    }
    return all;
}

static enum rp_code pair_devices(const struct rp_ranks runs[2], struct rp_memory_diff *root,
                                 struct rp_arena *arena, struct device_pair *largest,
                                 struct rp_err *err)
{
    size_t all = count_devices(&runs[0]), n = 0;
    struct device_pair *pairs = RP_ARENA_NEW(arena, struct device_pair, all + 1);

    root->devices = RP_ARENA_NEW(arena, struct rp_memory_pair, all + 1);
    RP_TRY(rp_arena_check(arena, "comparing memory", err));
    for (size_t r = 0; r < runs[0].n; r++) {
        size_t ndevices;
        const struct rp_memory_device *base = rp_memory_devices(&runs[0].parts[r], &ndevices);

        for (size_t i = 0; i < ndevices; i++) {
            const struct rp_memory_device *fresh =
                find_device(&runs[1], runs[0].parts[r].number, base[i].device);

            if (fresh)
                pairs[n++] = (struct device_pair){
                    .runs = {&base[i], fresh},
                    .rank = runs[0].parts[r].number,
                    .peak_bytes = base[i].peak_bytes > fresh->peak_bytes ? base[i].peak_bytes
                                                                         : fresh->peak_bytes};
        }
    }
    if (!n)
        return rp_err_set(err, RP_FORMAT,
                          "no device of a rank has memory in both runs: there is nothing to "
                          "compare");
    if (n < all || n < count_devices(&runs[1]))
        RP_NOTE(root, arena,
                rp_arena_textf(arena, "%zu devices are in one run only: they are not compared",
                               all + count_devices(&runs[1]) - 2 * n));
    rp_sort(pairs, n, sizeof *pairs, by_peak);
    *largest = pairs[0];
    root->ndevices = n;
    for (size_t i = 0; i < n; i++)
        root->devices[i] = (struct rp_memory_pair){.rank = pairs[i].rank,
                                                   .device = pairs[i].runs[0]->device,
                                                   .base_peak_bytes = pairs[i].runs[0]->peak_bytes,
                                                   .new_peak_bytes = pairs[i].runs[1]->peak_bytes,
                                                   .change_bytes = pairs[i].runs[1]->peak_bytes -
                                                                   pairs[i].runs[0]->peak_bytes};
    return RP_OK;
}

/* Both values; absent if one of them was not recorded. */
static int64_t *two_values(int64_t base, int64_t fresh, struct rp_arena *arena, size_t *n)
{
    int64_t *out = RP_ARENA_NEW(arena, int64_t, 2);

    *n = out && base != RP_ABSENT_I64 && fresh != RP_ABSENT_I64 ? 2 : 0;
    if (*n) {
        out[0] = base;
        out[1] = fresh;
    }
    return out;
}

/* The first row that has a name of its own. */
static const struct rp_memory_change *first_named(const struct rp_memory_two *two)
{
    for (size_t i = 0; i < two->nlines; i++)
        if (strcmp(two->lines[i].name, "other") != 0 && two->lines[i].change_bytes)
            return &two->lines[i];
    return NULL;
}

static const char *bytes_text(int64_t bytes, struct rp_arena *arena)
{
    return rp_units_text(arena, (double)bytes, RP_UNIT_BYTES);
}

static const char *summary_of(const struct rp_memory_two *two, struct rp_arena *arena)
{
    int64_t base = two->peak_bytes[0], fresh = two->peak_bytes[1];
    const struct rp_memory_change *most = first_named(two);
    const char *by = "equal peaks", *line = "";

    if (fresh != base)
        by = rp_arena_textf(arena, "%s %s (%+.1f %%)", bytes_text(llabs(fresh - base), arena),
                            fresh > base ? "more" : "less",
                            base ? 100.0 * (double)(fresh - base) / (double)base : 0.0);
    if (most)
        line = rp_arena_textf(arena, "; %s holds %s %s", most->name,
                              bytes_text(llabs(most->change_bytes), arena),
                              most->change_bytes > 0 ? "more" : "less");
    return rp_arena_textf(arena, "peak %s -> %s: %s%s", bytes_text(base, arena),
                          bytes_text(fresh, arena), by, line);
}

static size_t at_most(size_t n, int64_t limit)
{
    return limit > 0 && (size_t)limit < n ? (size_t)limit : n;
}

static enum rp_code join_two(const struct rp_ranks runs[2], const struct rp_settings *settings,
                             struct rp_result *result, struct rp_err *err)
{
    struct rp_memory_diff *root = result->root;
    int64_t limit = rp_settings_int(settings, "limit");
    struct device_pair largest;

    root->inputs = "memory snapshots";
    RP_TRY(pair_devices(runs, root, &result->arena, &largest, err));

    /* The device with the largest peak. */
    struct rp_memory_two *out = &root->memory;
    struct rp_arena *arena = &result->arena;
    const struct rp_memory_device *base = largest.runs[0], *fresh = largest.runs[1];
    out->rank = largest.rank;
    out->device = base->device;
    out->peak_bytes = two_values(base->peak_bytes, fresh->peak_bytes, arena, &out->npeak_bytes);
    out->reserved_bytes = two_values(base->peak_reserved_bytes, fresh->peak_reserved_bytes, arena,
                                     &out->nreserved_bytes);
    out->begin_bytes = two_values(base->begin_bytes, fresh->begin_bytes, arena, &out->nbegin_bytes);
    RP_TRY(
        list_changes(largest.runs, BY_CATEGORY, arena, &out->categories, &out->ncategories, err));
    RP_TRY(list_changes(largest.runs, BY_LINE, arena, &out->lines, &out->nlines, err));
    RP_TRY(list_changes(largest.runs, BY_OPERATOR, arena, &out->operators, &out->noperators, err));
    root->categories = root->memory.categories;
    root->ncategories = root->memory.ncategories;
    root->lines = root->memory.lines;
    root->nlines = at_most(root->memory.nlines, limit);
    root->operators = root->memory.operators;
    root->noperators = at_most(root->memory.noperators, limit);
    if (root->memory.nbegin_bytes)
        root->start = rp_arena_textf(&result->arena, "%s -> %s when the recordings begin",
                                     bytes_text(root->memory.begin_bytes[0], &result->arena),
                                     bytes_text(root->memory.begin_bytes[1], &result->arena));
    root->summary = summary_of(&root->memory, &result->arena);
    return rp_arena_check(&result->arena, "comparing memory", err);
}

static enum rp_code rank_whole(const struct rp_loaded *loaded, const struct rp_scope *scope,
                               const struct rp_settings *settings, struct rp_rank_part *part,
                               struct rp_err *err)
{
    (void)settings;
    return rp_memory_rank(loaded, scope, 0, part, err);
}

const struct rp_rank_row rp_memory_diff_ranks = {
    .part = &rp_memory_part_type, .memory = true, .rank = rank_whole, .join_two = join_two};
