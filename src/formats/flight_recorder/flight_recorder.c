/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps of PyTorch's Flight Recorderhave one file for each rank, a pickle or the same as JSON, with
 * the last collectives that the rank put into its queue, and what became of each.
 *
 *     pg_config  {name: {name, desc, ranks: "[0, 1]"} ...}     the process groups of this rank
 *     entries    [{profiling_name, process_group: (name, desc), collective_seq_id, p2p_seq_id,
 *                  is_p2p, input_sizes, output_sizes, input_dtypes, state, time_created_ns,
 *                  time_discovered_completed_ns, frames: [{name, filename, line} ...]} ...]
 *
 * An entry becomes a collective of the host, on a track of its group, with the arguments that
 * PyTorch's profiler gives to collectives, its state and its stack. It begins when it was put into
 * the queue and ends when the watchdog saw its end; if it did not end, it is left open. Only the
 * name of the file tells the rank. The same keys are written by the recorders of Gloo, XCCL and
 * HCCL.
 */
#include "formats/formats.h"
#include "formats/pickle/pickle.h"
#include "formats/torch_memory/json_values.h"
#include "trace/build/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES 8192

enum {
    KEY_NAME,
    KEY_DTYPE,
    KEY_IN,
    KEY_OUT,
    KEY_GROUP,
    KEY_DESCRIPTION,
    KEY_RANKS,
    KEY_SIZE,
    KEY_SEQ,
    KEY_DIMS,
    KEY_STATE,
    KEY_STACK,
    KEY_RECORD,
    KEYS
};

static const char *const key_names[KEYS] = {"Collective name",
                                            "dtype",
                                            "In msg nelems",
                                            "Out msg nelems",
                                            "Process Group Name",
                                            "Process Group Description",
                                            "Process Group Ranks",
                                            "Group size",
                                            "Seq",
                                            "Input Dims",
                                            "State",
                                            "Call stack",
                                            "Record"};

struct dump_reader {
    struct rp_pickle values;
    struct rp_builder *b;
    rp_str keys[KEYS];
    uint16_t origin;
    uint32_t process;
    int64_t first_ns;
    rp_pickle_id groups;
    struct rp_map named; /* tracks that already have a name */
    char *text;          /* STACK_BYTES */
    size_t nbytes;       /* of the input */
    struct rp_err *err;
};

static enum rp_code list_items(struct dump_reader *r, rp_pickle_id list, const rp_pickle_id **items,
                               size_t *n)
{
    return rp_pickle_items(&r->values, list, r->nbytes, items, n, r->err);
}

static int64_t get_ns(const struct dump_reader *r, rp_pickle_id entry, const char *key)
{
    int64_t ns = rp_pickle_get_int(&r->values, entry, key, 0);

    return ns > 0 && ns < RP_TIME_MAX_NS ? ns : 0;
}

/* ------------------------------------------------------------------ texts */

/* "train.py(12): step;train.py(300): main", the innermost first. */
static enum rp_code stack_text(struct dump_reader *r, rp_pickle_id entry, rp_str *out)
{
    const rp_pickle_id *frames;
    size_t n, used = 0;

    RP_TRY(list_items(r, rp_pickle_get(&r->values, entry, "frames"), &frames, &n));
    for (size_t i = 0; i < n && used + 900 < STACK_BYTES; i++) {
        struct rp_pickle_text name = rp_pickle_get_text(&r->values, frames[i], "name");
        struct rp_pickle_text file = rp_pickle_get_text(&r->values, frames[i], "filename");

        used += (size_t)snprintf(r->text + used, STACK_BYTES - used, "%s%.*s(%lld): %.*s",
                                 used ? ";" : "", (int)(file.n < 400 ? file.n : 400), file.at,
                                 (long long)rp_pickle_get_int(&r->values, frames[i], "line", 0),
                                 (int)(name.n < 400 ? name.n : 400), name.at);
    }
    return rp_builder_intern(r->b, r->text, used, out, r->err);
}

/* Writes a list of shapes as "[[4096, 1024], [8]]", and counts the elements of all of them. */
static enum rp_code shapes_text(struct dump_reader *r, rp_pickle_id shapes, rp_str *out,
                                int64_t *elements)
{
    const rp_pickle_id *items, *sizes;
    size_t n, m, used = 0;

    *elements = 0;
    RP_TRY(list_items(r, shapes, &items, &n));
    r->text[used++] = '[';
    for (size_t i = 0; i < n; i++) {
        int64_t product = 1;

        RP_TRY(list_items(r, items[i], &sizes, &m));
        if (used + 2 + 24 * (m + 1) >= STACK_BYTES)
            break;
        used += (size_t)snprintf(r->text + used, STACK_BYTES - used, "%s[", i ? ", " : "");
        for (size_t k = 0; k < m; k++) {
            const struct rp_pickle_value *v = rp_pickle_at(&r->values, sizes[k]);
            int64_t size = v->type == RP_PICKLE_INT && v->v.i >= 0 ? v->v.i : 0;

            used += (size_t)snprintf(r->text + used, STACK_BYTES - used, "%s%lld", k ? ", " : "",
                                     (long long)size);
            if (__builtin_mul_overflow(product, size, &product))
                product = 0;
        }
        r->text[used++] = ']';
        if (__builtin_add_overflow(*elements, product, elements))
            *elements = 0;
    }
    r->text[used++] = ']';
    return rp_builder_intern(r->b, r->text, used, out, r->err);
}

static enum rp_code intern(struct dump_reader *r, struct rp_pickle_text text, rp_str *out)
{
    return rp_builder_intern(r->b, text.at ? text.at : "", text.n < 4096 ? text.n : 4096, out,
                             r->err);
}

/* ------------------------------------------------------------------ groups */

struct group {
    struct rp_pickle_text name, description, ranks;
    int64_t size;
};

/* Reads process_group, (name, description); the ranks are in pg_config. */
static enum rp_code find_group(struct dump_reader *r, rp_pickle_id entry, struct group *out)
{
    const rp_pickle_id *pair;
    char key[64];
    size_t n;

    *out = (struct group){.size = 0};
    RP_TRY(list_items(r, rp_pickle_get(&r->values, entry, "process_group"), &pair, &n));
    for (size_t i = 0; i < n && i < 2; i++) {
        const struct rp_pickle_value *v = rp_pickle_at(&r->values, pair[i]);

        if (v->type == RP_PICKLE_TEXT)
            *(i ? &out->description : &out->name) = (struct rp_pickle_text){v->v.text, v->n};
    }
    snprintf(key, sizeof key, "%.*s", (int)(out->name.n < 60 ? out->name.n : 60),
             out->name.at ? out->name.at : "");
    rp_pickle_id config = rp_pickle_get(&r->values, r->groups, key);
    if (config == RP_NONE)
        return RP_OK;
    out->ranks = rp_pickle_get_text(&r->values, config, "ranks");
    for (size_t i = 0; i < out->ranks.n; i++)
        out->size += out->ranks.at[i] == ',' || out->ranks.at[i] == ']';
    return RP_OK;
}

/* ------------------------------------------------------------------ entries */

static struct rp_arg number_arg(const struct dump_reader *r, int key, int64_t value)
{
    return (struct rp_arg){.key = r->keys[key], .type = RP_ARG_I64, .v.i = value};
}

static enum rp_code add_text_arg(struct dump_reader *r, struct rp_arg *args, uint32_t *n, int key,
                                 struct rp_pickle_text text)
{
    args[*n] = (struct rp_arg){.key = r->keys[key], .type = RP_ARG_STR};
    RP_TRY(intern(r, text, &args[*n].v.s));
    ++*n;
    return RP_OK;
}

static struct rp_pickle_text first_text(const struct dump_reader *r, rp_pickle_id list)
{
    if (!rp_pickle_is_list(&r->values, list) || !rp_pickle_at(&r->values, list)->n)
        return (struct rp_pickle_text){"", 0};
    const struct rp_pickle_value *v =
        rp_pickle_at(&r->values, rp_pickle_at(&r->values, list)->v.items[0]);
    return v->type == RP_PICKLE_TEXT ? (struct rp_pickle_text){v->v.text, v->n}
                                     : (struct rp_pickle_text){"", 0};
}

static enum rp_code fill_args(struct dump_reader *r, rp_pickle_id entry, const struct group *g,
                              struct rp_arg *args, uint32_t *n)
{
    struct rp_pickle_text name = rp_pickle_get_text(&r->values, entry, "profiling_name");
    const char *colon = name.n ? memchr(name.at, ':', name.n) : NULL;
    bool p2p = rp_pickle_get_int(&r->values, entry, "is_p2p", 0) != 0;
    int64_t in, out;
    rp_str dims, ignored;

    if (colon)
        name = (struct rp_pickle_text){colon + 1, name.n - (size_t)(colon + 1 - name.at)};
    RP_TRY(shapes_text(r, rp_pickle_get(&r->values, entry, "input_sizes"), &dims, &in));
    RP_TRY(shapes_text(r, rp_pickle_get(&r->values, entry, "output_sizes"), &ignored, &out));
    RP_TRY(add_text_arg(r, args, n, KEY_NAME, name));
    RP_TRY(add_text_arg(r, args, n, KEY_DTYPE,
                        first_text(r, rp_pickle_get(&r->values, entry, "input_dtypes"))));
    args[(*n)++] = number_arg(r, KEY_IN, in);
    args[(*n)++] = number_arg(r, KEY_OUT, out);
    RP_TRY(add_text_arg(r, args, n, KEY_GROUP, g->name));
    RP_TRY(add_text_arg(r, args, n, KEY_DESCRIPTION, g->description));
    RP_TRY(add_text_arg(r, args, n, KEY_RANKS, g->ranks));
    args[(*n)++] = number_arg(r, KEY_SIZE, g->size);
    args[(*n)++] = number_arg(
        r, KEY_SEQ,
        rp_pickle_get_int(&r->values, entry, p2p ? "p2p_seq_id" : "collective_seq_id", -1));
    args[(*n)++] = (struct rp_arg){.key = r->keys[KEY_DIMS], .type = RP_ARG_RAW, .v.s = dims};
    RP_TRY(add_text_arg(r, args, n, KEY_STATE, rp_pickle_get_text(&r->values, entry, "state")));
    args[(*n)++] = number_arg(r, KEY_RECORD, rp_pickle_get_int(&r->values, entry, "record_id", -1));
    args[*n] = (struct rp_arg){.key = r->keys[KEY_STACK], .type = RP_ARG_STR};
    return stack_text(r, entry, &args[(*n)++].v.s);
}

static enum rp_code add_entry(struct dump_reader *r, rp_pickle_id entry)
{
    struct rp_pickle_text state = rp_pickle_get_text(&r->values, entry, "state");
    int64_t begin = get_ns(r, entry, "time_created_ns"),
            end = get_ns(r, entry, "time_discovered_completed_ns");
    struct rp_arg args[KEYS];
    struct rp_raw raw = {.ts_ns = begin - r->first_ns, .args = args, .origin = r->origin};
    struct group g;

    RP_TRY(find_group(r, entry, &g));
    rp_str name;
    RP_TRY(intern(r, g.name, &name));
    RP_TRY(rp_builder_track(r->b, r->process, 0, name, name != 0, &raw.track, r->err));
    if (rp_map_get(&r->named, raw.track) == RP_MAP_NONE) {
        RP_TRY(rp_map_put(&r->named, raw.track, 1, r->err));
        int n = snprintf(r->text, STACK_BYTES, "group %.*s %.*s",
                         (int)(g.name.n < 200 ? g.name.n : 200), g.name.at ? g.name.at : "",
                         (int)(g.description.n < 200 ? g.description.n : 200),
                         g.description.at ? g.description.at : "");
        RP_TRY(rp_builder_intern(r->b, r->text, (size_t)n, &name, r->err));
        RP_TRY(rp_builder_label(r->b, raw.track, "thread_name", "name", name, r->err));
    }
    RP_TRY(intern(r, rp_pickle_get_text(&r->values, entry, "profiling_name"), &raw.name));
    RP_TRY(fill_args(r, entry, &g, args, &raw.nargs));
    raw.dur_ns = end > begin ? end - begin : 0;
    if (!rp_pickle_text_is(state, "completed")) {
        raw.dur_ns = RP_OPEN_NS;
        raw.flags = RP_EVENT_UNENDED;
        rp_builder_borrow_trace(r->b)->health.unended++;
    }
    RP_TRY(rp_builder_shape(r->b, args, raw.nargs, &raw.shape, r->err));
    return rp_builder_add(r->b, &raw, r->err);
}

/* ------------------------------------------------------------------ the file */

/* The number after the last "rank" in the name of the file, as in nccl_trace_rank_3. */
static int32_t rank_of_name(const char *file)
{
    const char *slash = strrchr(file, '/'), *at = slash ? slash + 1 : file, *found = NULL;

    for (; (at = strstr(at, "rank")); at += 4)
        found = at + 4;
    if (!found)
        return RP_NO_RANK;
    found += strspn(found, "_-.");
    if (*found < '0' || *found > '9')
        return RP_NO_RANK;
    long rank = strtol(found, NULL, 10);
    return rank < 10000000 ? (int32_t)rank : RP_NO_RANK;
}

/* The size of the largest group. */
static int32_t world_size_of(const struct dump_reader *r)
{
    const struct rp_pickle_value *v =
        r->groups == RP_NONE ? NULL : rp_pickle_at(&r->values, r->groups);
    int32_t most = 0;

    for (uint32_t i = 1; v && v->type == RP_PICKLE_DICT && i < v->n; i += 2) {
        struct rp_pickle_text ranks = rp_pickle_get_text(&r->values, v->v.items[i], "ranks");
        int32_t n = 0;

        for (size_t k = 0; k < ranks.n; k++)
            n += ranks.at[k] == ',' || ranks.at[k] == ']';
        most = n > most ? n : most;
    }
    return most;
}

static enum rp_code build_trace(struct dump_reader *r, const char *file)
{
    struct rp_origin o = {.phase = 'X', .kind = RP_KIND_COMM_OP, .has_category = 1};
    struct rp_trace *t = rp_builder_borrow_trace(r->b);
    const rp_pickle_id *entries;
    size_t n;

    for (int i = 0; i < KEYS; i++)
        RP_TRY(rp_builder_intern(r->b, key_names[i], strlen(key_names[i]), &r->keys[i], r->err));
    RP_TRY(rp_builder_intern(r->b, "flight_recorder", 15, &o.category, r->err));
    RP_TRY(rp_builder_origin(r->b, &o, &r->origin, r->err));
    RP_TRY(rp_builder_intern(r->b, "flight-recorder", 15, &t->format, r->err));
    RP_TRY(rp_builder_intern(r->b, "pytorch", 7, &t->framework, r->err));
    r->groups = rp_pickle_get(&r->values, r->values.root, "pg_config");
    t->rank = rank_of_name(file);
    t->world_size = world_size_of(r);
    RP_TRY(rp_builder_process(r->b, t->rank == RP_NO_RANK ? 0 : t->rank, 0, &r->process, r->err));
    RP_TRY(list_items(r, rp_pickle_get(&r->values, r->values.root, "entries"), &entries, &n));
    for (size_t i = 0; i < n; i++) {
        int64_t ns = get_ns(r, entries[i], "time_created_ns");

        r->first_ns = ns && (!r->first_ns || ns < r->first_ns) ? ns : r->first_ns;
    }
    t->base_ns = r->first_ns;
    t->has_base = r->first_ns > 0;
    for (size_t i = 0; i < n; i++)
        RP_TRY(add_entry(r, entries[i]));
    if (n && rp_pickle_get_int(&r->values, entries[0], "record_id", 0) > 0)
        return rp_builder_warn(
            r->b, r->err,
            "the ring was full: %lld collectives before the first one are lost "
            "(TORCH_FR_BUFFER_SIZE)",
            (long long)rp_pickle_get_int(&r->values, entries[0], "record_id", 0));
    return RP_OK;
}

static enum rp_code read_values(struct dump_reader *r, struct rp_input *in,
                                const struct rp_limits *limits, size_t *n)
{
    const uint8_t *bytes;

    RP_TRY(rp_input_slurp(in, &bytes, n, r->err));
    size_t first = rp_sniff_space(bytes, *n, 0);
    if (first < *n && bytes[first] == '{')
        RP_TRY(rp_json_values_read(&r->values, bytes, *n, limits, r->err));
    else
        RP_TRY(rp_pickle_read(&r->values, bytes, *n, limits, r->err));
    if (!rp_pickle_is_list(&r->values, rp_pickle_get(&r->values, r->values.root, "entries")))
        return rp_err_set(r->err, RP_FORMAT, "is not a dump of the Flight Recorder: no 'entries'");
    r->nbytes = *n;
    return RP_OK;
}

static enum rp_code read_dump(struct rp_input *in, const struct rp_read_options *options,
                              struct rp_import *to, struct rp_err *err)
{
    struct dump_reader r = {.err = err, .values = {.root = RP_NONE}, .text = malloc(STACK_BYTES)};
    enum rp_code code =
        r.text ? rp_builder_new(options->limits, &r.b, err) : rp_err_nomem(err, "reading a dump");
    size_t n = 0;

    if (code == RP_OK)
        code = read_values(&r, in, options->limits, &n);
    if (code == RP_OK)
        code = build_trace(&r, rp_input_borrow_name(in));
    rp_pickle_release(&r.values);
    rp_map_release(&r.named);
    free(r.text);
    to->content_bytes = n;
    if (code == RP_OK)
        return rp_builder_finish(r.b, &to->trace, err);
    rp_builder_free(r.b);
    return code;
}

static enum rp_sniff sniff_dump(const uint8_t *head, size_t n, const char *file)
{
    size_t first = rp_sniff_space(head, n, 0);
    bool has = memmem(head, n, "pg_config", 9) && memmem(head, n, "entries", 7);

    (void)file;
    if (!has || first == n)
        return RP_SNIFF_NO;
    if (head[first] == '{')
        return rp_sniff_json_key(head, n, 1, "pg_config") == 1 ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
    return rp_pickle_begins(head, n) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

const struct rp_format rp_format_flight_recorder = {
    .name = "flight-recorder",
    .summary = "last collectives of a rank",
    .files = "nccl_trace_rank_*, *.json",
    .written_by = "PyTorch's Flight Recorder (NCCL watchdog)",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_dump,
    .read = read_dump,
};
