/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/merged.h"

#include "base/decimal.h"
#include "base/hash.h"
#include "io/escaped.h"
#include "io/json_pull.h"
#include "io/json_strict.h"

#include <limits.h>

#define MOST_RANKS 65536 /* records that are read */

/* ------------------------------------------------------------------ writing */

/* Keys that a merged trace never takes over from its first rank. */
static bool is_own_meta(const char *key)
{
    return !strcmp(key, "distributedInfo") || !strcmp(key, "traceName");
}

/* Whether the first rank says the same; the first call notes what it says. */
static enum rp_code is_common(struct rp_merged_common *common, bool first, uint64_t hash, bool *out,
                              struct rp_err *err)
{
    *out = false;
    if (first)
        return rp_vec_push(&common->hashes, hash, err);
    for (size_t i = 0; i < common->hashes.n && !*out; i++)
        *out = common->hashes.at[i] == hash;
    return RP_OK;
}

static enum rp_code put_meta(struct rp_emit *to, struct rp_merged_common *common,
                             const struct rp_trace *t, bool first, struct rp_err *err)
{
    bool any = false, same;

    for (uint32_t i = 0; i < t->nmeta; i++) {
        const char *key = rp_trace_str(t, t->meta[i].key);
        const char *value = rp_trace_str(t, t->meta[i].value);
        size_t nkey = rp_trace_str_len(t, t->meta[i].key);
        size_t n = rp_trace_str_len(t, t->meta[i].value);

        RP_TRY(is_common(common, first,
                         rp_hash_mix(rp_hash_bytes(key, nkey), rp_hash_bytes(value, n)), &same,
                         err));
        if (!strcmp(key, "baseTimeNanoseconds") || !strcmp(key, RP_MERGED_KEY) ||
            (!is_own_meta(key) && (same || first)))
            continue;
        rp_emit_text(to, any ? "," : ",\"meta\":{");
        rp_emit_escaped(to, RP_IN_JSON, key, nkey);
        rp_emit_char(to, ':');

        enum rp_raw_state state = rp_json_raw_check(value, n);
        if (state == RP_RAW_CLEAN)
            rp_emit_bytes(to, value, n);
        else if (state == RP_RAW_UNCLEAN)
            rp_json_put_cleaned(to, value, n);
        else
            rp_emit_escaped(to, RP_IN_JSON, value, n);
        any = true;
    }
    if (any)
        rp_emit_char(to, '}');
    return RP_OK;
}

static enum rp_code put_devices(struct rp_emit *to, struct rp_merged_common *common,
                                const struct rp_trace *t, bool first, struct rp_err *err)
{
    uint64_t hash = 1;
    bool same;

    for (uint32_t i = 0; i < t->ndevices; i++) {
        const struct rp_device *d = &t->devices[i];
        int64_t words[3] = {d->id, d->memory_bytes, d->multiprocessors};

        hash = rp_hash_mix(hash, rp_hash_bytes(words, sizeof words));
        hash = rp_hash_mix(hash,
                           rp_hash_bytes(rp_trace_str(t, d->name), rp_trace_str_len(t, d->name)));
    }
    RP_TRY(is_common(common, first, hash, &same, err));
    if (same || !t->ndevices)
        return RP_OK;
    rp_emit_text(to, ",\"devices\":[");
    for (uint32_t i = 0; i < t->ndevices; i++) {
        const struct rp_device *d = &t->devices[i];

        rp_emit_text(to, i ? ",{\"id\":" : "{\"id\":");
        rp_emit_i64(to, d->id);
        rp_emit_text(to, ",\"memory_bytes\":");
        rp_emit_i64(to, d->memory_bytes);
        rp_emit_text(to, ",\"multiprocessors\":");
        rp_emit_i64(to, d->multiprocessors);
        rp_emit_text(to, ",\"name\":");
        rp_emit_escaped(to, RP_IN_JSON, rp_trace_str(t, d->name), rp_trace_str_len(t, d->name));
        rp_emit_char(to, '}');
    }
    rp_emit_char(to, ']');
    return RP_OK;
}

enum rp_code rp_merged_describe(struct rp_emit *to, struct rp_merged_common *common,
                                const struct rp_trace *trace, const struct rp_append *how,
                                int32_t number, struct rp_err *err)
{
    rp_emit_text(to, how->index ? ",{\"rank\":" : "[{\"rank\":");
    rp_emit_i64(to, number);
    if (trace->world_size > 0) {
        rp_emit_text(to, ",\"world_size\":");
        rp_emit_i64(to, trace->world_size);
    }
    rp_emit_text(to, ",\"label\":");
    rp_emit_escaped(to, RP_IN_JSON, how->label, strlen(how->label));
    rp_emit_text(to, ",\"first_pid\":");
    rp_emit_i64(to, (int64_t)how->index * how->pid_step);
    rp_emit_text(to, ",\"pids\":[");
    for (uint32_t i = 0; i < trace->nprocesses; i++) {
        const struct rp_process *p = &trace->processes[i];

        if (i)
            rp_emit_char(to, ',');
        if (p->text || p->native_id == RP_ID_EMPTY)
            rp_emit_escaped(to, RP_IN_JSON, rp_trace_str(trace, p->text),
                            rp_trace_str_len(trace, p->text));
        else
            rp_emit_i64(to, p->native_id);
    }
    rp_emit_char(to, ']');
    RP_TRY(put_devices(to, common, trace, how->index == 0, err));
    RP_TRY(put_meta(to, common, trace, how->index == 0, err));
    rp_emit_char(to, '}');
    return RP_OK;
}

/* ------------------------------------------------------------------ reading */

struct merged_reader {
    struct rp_json *p;
    struct rp_arena *arena;
    struct rp_err *err;
};

static const char *keep_text(struct merged_reader *r, struct rp_json_token *v)
{
    if (v->kind == RP_JSON_STRING && !rp_json_decode(r->p, v))
        return NULL;
    return rp_arena_copy(r->arena, v->text, v->len);
}

static int64_t number_of(const struct rp_json_token *v, int64_t low, int64_t high,
                         int64_t otherwise)
{
    int64_t n;

    if (v->kind != RP_JSON_NUMBER ||
        (rp_decimal_parse(v->text, v->len, 0, &n) & ~RP_DECIMAL_NEGATIVE))
        return otherwise;
    return n < low || n > high ? otherwise : n;
}

static enum rp_code read_pids(struct merged_reader *r, struct rp_merged_rank *rank)
{
    RP_VEC(struct rp_merged_process) list = {0};
    enum rp_code code = RP_OK;
    struct rp_json_token v;

    if (rp_json_value(r->p, &v) != RP_JSON_ARRAY)
        return RP_OK;
    while (code == RP_OK && rp_json_element(r->p) && rp_json_value(r->p, &v)) {
        struct rp_merged_process process = {0};

        if (v.kind == RP_JSON_STRING)
            process.text = keep_text(r, &v);
        else
            process.id = number_of(&v, INT64_MIN + 1, INT64_MAX, 0);
        code = rp_vec_push(&list, process, r->err);
    }
    rank->processes = RP_ARENA_NEW(r->arena, struct rp_merged_process, list.n + 1);
    if (code == RP_OK && rank->processes && list.n) {
        memcpy(rank->processes, list.at, list.n * sizeof *list.at);
        rank->nprocesses = list.n;
    }
    rp_vec_release(&list);
    return code;
}

static enum rp_code read_meta(struct merged_reader *r, struct rp_merged_rank *rank)
{
    RP_VEC(struct rp_merged_meta) list = {0};
    enum rp_code code = RP_OK;
    struct rp_json_token key, v;

    if (rp_json_value(r->p, &v) != RP_JSON_OBJECT)
        return RP_OK;
    while (code == RP_OK && rp_json_field(r->p, &key)) {
        struct rp_merged_meta meta;

        meta.key = keep_text(r, &key);
        if (!rp_json_raw(r->p, &v))
            break;
        meta.value = rp_arena_copy(r->arena, v.text, v.len);
        code = rp_vec_push(&list, meta, r->err);
    }
    rank->meta = RP_ARENA_NEW(r->arena, struct rp_merged_meta, list.n + 1);
    if (code == RP_OK && rank->meta && list.n) {
        memcpy(rank->meta, list.at, list.n * sizeof *list.at);
        rank->nmeta = list.n;
    }
    rp_vec_release(&list);
    return code;
}

static void read_device(struct merged_reader *r, struct rp_device *device, const char **name)
{
    struct rp_json_token key, v;

    while (rp_json_field(r->p, &key) && rp_json_value(r->p, &v)) {
        if (rp_json_key_is(&key, "id"))
            device->id = number_of(&v, 0, INT64_MAX, 0);
        else if (rp_json_key_is(&key, "memory_bytes"))
            device->memory_bytes = number_of(&v, 0, INT64_MAX, 0);
        else if (rp_json_key_is(&key, "multiprocessors"))
            device->multiprocessors = number_of(&v, 0, INT64_MAX, 0);
        else if (rp_json_key_is(&key, "name") && v.kind == RP_JSON_STRING)
            *name = keep_text(r, &v);
    }
}

static enum rp_code read_devices(struct merged_reader *r, struct rp_merged_rank *rank)
{
    RP_VEC(struct rp_device) list = {0};
    RP_VEC(const char *) names = {0};
    enum rp_code code = RP_OK;
    struct rp_json_token v;

    if (rp_json_value(r->p, &v) != RP_JSON_ARRAY)
        return RP_OK;
    while (code == RP_OK && rp_json_element(r->p) && rp_json_value(r->p, &v) == RP_JSON_OBJECT) {
        struct rp_device device = {0};
        const char *name = "";

        read_device(r, &device, &name);
        code = rp_vec_push(&list, device, r->err);
        if (code == RP_OK)
            code = rp_vec_push(&names, name, r->err);
    }
    rank->devices = RP_ARENA_NEW(r->arena, struct rp_device, list.n + 1);
    rank->device_names = RP_ARENA_NEW(r->arena, const char *, list.n + 1);
    if (code == RP_OK && rank->devices && rank->device_names && list.n) {
        memcpy(rank->devices, list.at, list.n * sizeof *list.at);
        memcpy(rank->device_names, names.at, list.n * sizeof *names.at);
        rank->ndevices = list.n;
    }
    rp_vec_release(&list);
    rp_vec_release(&names);
    return code;
}

static enum rp_code read_rank(struct merged_reader *r, struct rp_merged_rank *rank)
{
    struct rp_json_token key, v;

    *rank = (struct rp_merged_rank){.number = RP_NO_RANK, .first_pid = -1};
    while (rp_json_field(r->p, &key)) {
        if (rp_json_key_is(&key, "pids"))
            RP_TRY(read_pids(r, rank));
        else if (rp_json_key_is(&key, "devices"))
            RP_TRY(read_devices(r, rank));
        else if (rp_json_key_is(&key, "meta"))
            RP_TRY(read_meta(r, rank));
        else if (!rp_json_key_is(&key, "rank") && !rp_json_key_is(&key, "world_size") &&
                 !rp_json_key_is(&key, "first_pid") && !rp_json_key_is(&key, "label"))
            rp_json_skip(r->p);
        else if (!rp_json_value(r->p, &v))
            break;
        else if (rp_json_key_is(&key, "rank"))
            rank->number = (int32_t)number_of(&v, 0, INT32_MAX, RP_NO_RANK);
        else if (rp_json_key_is(&key, "world_size"))
            rank->world_size = (int32_t)number_of(&v, 0, INT32_MAX, 0);
        else if (rp_json_key_is(&key, "first_pid"))
            rank->first_pid = number_of(&v, 0, INT64_MAX / 2, -1);
        else if (v.kind == RP_JSON_STRING)
            rank->label = keep_text(r, &v);
    }
    return RP_OK;
}

/* Returns false if the records are not what rp_merged_describe writes. */
static enum rp_code read_ranks(struct merged_reader *r, struct rp_merged *out, bool *valid)
{
    RP_VEC(struct rp_merged_rank) list = {0};
    enum rp_code code = RP_OK;
    struct rp_json_token v;

    *valid = rp_json_value(r->p, &v) == RP_JSON_ARRAY;
    while (code == RP_OK && *valid && rp_json_element(r->p)) {
        struct rp_merged_rank rank;

        *valid = list.n < MOST_RANKS && rp_json_value(r->p, &v) == RP_JSON_OBJECT;
        if (*valid)
            code = read_rank(r, &rank);
        if (!*valid || code != RP_OK)
            break;
        rank.index = (uint32_t)list.n;
        *valid = rank.first_pid >= 0 && rank.nprocesses && rank.label && *rank.label &&
                 (!list.n || rank.first_pid >= list.at[list.n - 1].first_pid +
                                                   (int64_t)list.at[list.n - 1].nprocesses);
        code = rp_vec_push(&list, rank, r->err);
    }
    *valid = *valid && !rp_json_failed(r->p) && list.n;
    if (code == RP_OK && *valid) {
        out->ranks = RP_ARENA_NEW(r->arena, struct rp_merged_rank, list.n);
        if (out->ranks)
            memcpy(out->ranks, list.at, list.n * sizeof *list.at);
        out->n = out->ranks ? list.n : 0;
    }
    rp_vec_release(&list);
    return code;
}

enum rp_code rp_merged_read(const struct rp_trace *trace, struct rp_arena *arena,
                            struct rp_merged *out, struct rp_err *err)
{
    struct merged_reader r = {.arena = arena, .err = err};
    struct rp_input *in = NULL;
    enum rp_code code = RP_OK;
    bool valid;
    uint32_t i;

    *out = (struct rp_merged){0};
    for (i = 0; i < trace->nmeta; i++)
        if (!strcmp(rp_trace_str(trace, trace->meta[i].key), RP_MERGED_KEY))
            break;
    if (i == trace->nmeta)
        return RP_OK;
    code = rp_input_open_memory(RP_MERGED_KEY, rp_trace_str(trace, trace->meta[i].value),
                                rp_trace_str_len(trace, trace->meta[i].value), NULL, &in, err);
    if (code == RP_OK)
        code = rp_json_open(in, NULL, &r.p, err);
    if (code == RP_OK)
        code = read_ranks(&r, out, &valid);
    rp_json_close(r.p);
    rp_input_close(in);
    return code == RP_OK ? rp_arena_check(arena, "reading a merged trace", err) : code;
}

/* ------------------------------------------------------------------ dividing */

static enum rp_code intern(struct rp_builder *b, const char *text, rp_str *out, struct rp_err *err)
{
    return rp_builder_intern(b, text, strlen(text), out, err);
}

static bool rank_says(const struct rp_merged_rank *rank, const char *key)
{
    size_t i;

    for (i = 0; i < rank->nmeta && strcmp(rank->meta[i].key, key) != 0; i++)
        ;
    return i < rank->nmeta;
}

static enum rp_code fill_builder(struct rp_builder *b, const struct rp_trace *t,
                                 const struct rp_merged_rank *rank, struct rp_err *err)
{
    struct rp_append how = {.index = rank->index, .label = rank->label, .only = rank};
    struct rp_trace *to = rp_builder_borrow_trace(b);

    to->base_ns = t->base_ns;
    to->has_base = t->has_base;
    to->rank = rank->number;
    to->world_size = rank->world_size;
    RP_TRY(intern(b, rp_trace_str(t, t->format), &to->format, err));
    RP_TRY(intern(b, rp_trace_str(t, t->framework), &to->framework, err));
    RP_TRY(intern(b, rp_trace_str(t, t->framework_version), &to->framework_version, err));
    RP_TRY(rp_builder_append(b, t, &how, err));

    size_t i, n = rank->ndevices ? rank->ndevices : t->ndevices;
    for (i = 0; i < n; i++) {
        struct rp_device device = rank->ndevices ? rank->devices[i] : t->devices[i];

        RP_TRY(intern(b,
                      rank->ndevices ? rank->device_names[i] : rp_trace_str(t, t->devices[i].name),
                      &device.name, err));
        RP_TRY(rp_builder_add_device(b, &device, err));
    }

    /* Add what the merged trace says about all ranks, and what it says about this one. */
    rp_str key, value;
    for (size_t k = 0; k < t->nmeta; k++) {
        const char *name = rp_trace_str(t, t->meta[k].key);

        if (!strcmp(name, RP_MERGED_KEY) || rank_says(rank, name))
            continue;
        RP_TRY(intern(b, name, &key, err));
        RP_TRY(rp_builder_intern(b, rp_trace_str(t, t->meta[k].value),
                                 rp_trace_str_len(t, t->meta[k].value), &value, err));
        RP_TRY(rp_builder_add_meta(b, key, value, t->meta[k].after_events, err));
    }
    for (size_t k = 0; k < rank->nmeta; k++) {
        RP_TRY(intern(b, rank->meta[k].key, &key, err));
        RP_TRY(intern(b, rank->meta[k].value, &value, err));
        RP_TRY(rp_builder_add_meta(b, key, value, true, err));
    }
    return RP_OK;
}

enum rp_code rp_merged_split(const struct rp_trace *trace, const struct rp_merged_rank *rank,
                             const struct rp_limits *limits, struct rp_trace **out,
                             struct rp_err *err)
{
    struct rp_builder *b;

    *out = NULL;
    RP_TRY(rp_builder_new(limits, &b, err));
    enum rp_code code = fill_builder(b, trace, rank, err);
    if (code == RP_OK)
        return rp_builder_finish(b, out, err);
    rp_builder_free(b);
    return code;
}
