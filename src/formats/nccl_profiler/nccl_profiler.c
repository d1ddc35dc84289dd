/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON lines of a profiler plugin of NCCL (interface v5), all ranks of a process in one file:
 *
 *     {"type":"ProfilerLifecycle","gpuUuid":…,"commId":…,"rank":2,"details":{"nranks":4}}
 *     {"recordType":"event","type":"ncclProfileColl","rank":2,"start":{"ts":…,"tid":…},"stop":{…},
 *      "details":{"func":"AllReduce","seq":0,"count":…,"dtype":"ncclFloat32"}}
 *     {"recordType":"cuptiActivity","type":"KERNEL","gpuUuid":…,"extCorrId":1,"name":…}
 *     {"recordType":"state", …}
 *
 * Events become spans of their rank: collectives, calls, launches and channels of the host; kernels
 * belong to the rank that launched them, by extCorrId (their gpuUuid names whoever wrote the
 * record, and decides only if there is no launch). A file of several ranks is a merged trace
 * (trace/merged.h). Times are microseconds of the host's clock. States are steps inside events that
 * say no more than their begins and ends; they are ignored, except those of the proxy thread, which
 * tell whether it sleeps or has something to do.
 */
#include "base/decimal.h"
#include "base/each.h"
#include "base/hash.h"
#include "formats/formats.h"
#include "io/emit.h"
#include "io/json_pull.h"
#include "trace/build/build.h"
#include "trace/merged.h"

#include <stdio.h>
#include <stdlib.h>

#define PIDS  2 /* processes of each rank: its host part and its device */
#define RANKS 1000000

enum { HOST, DEVICE };

struct record { /* one line; its texts point into nccl_reader.text */
    struct rp_json_token type, kind, name, gpu, func, dtype, address;
    int64_t rank, begin_ns, end_ns, tid, comm, seq, count, channel, nranks, link, device;
    bool has_rank, has_begin, has_end, has_link;
};

struct nccl_reader {
    struct rp_json *json;
    struct rp_builder *b;
    const char *text; /* the file's text, with brackets added */
    size_t n;         /* bytes of the file */
    struct rp_map rank_of_gpu, rank_of_link, nranks_of, named;
    struct rp_map state_of; /* from the address of an event to proxy_states */
    int64_t world_size;
    uint64_t strange;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ a line */

static int64_t int_of(const struct rp_json_token *v)
{
    int64_t n;
    bool valid = v->kind == RP_JSON_NUMBER &&
                 !(rp_decimal_parse(v->text, v->len, 0, &n) & RP_DECIMAL_INVALID);

    return valid ? n : -1;
}

static bool is_text(const struct rp_json_token *v, const char *word)
{
    return v->kind == RP_JSON_STRING && v->len == strlen(word) && !memcmp(v->text, word, v->len);
}

/* Keeps a text: the parser lends it only until it reads on, but the lines stay in memory. */
static void keep_text(const struct nccl_reader *r, struct rp_json_token *v)
{
    v->text = r->text + r->json->offset + (v->text - r->json->text);
}

/* {"ts": 8993953423343.184, "pid": 503639, "tid": 503639} */
static void read_moment(struct nccl_reader *r, struct record *to, bool begin)
{
    struct rp_json_token key, v;
    int64_t ns;

    if (!rp_json_value(r->json, &v) || v.kind != RP_JSON_OBJECT)
        return;
    while (rp_json_field(r->json, &key)) {
        if (*r->json->at == '{' || *r->json->at == '[') {
            rp_json_skip(r->json);
            continue;
        }
        if (!rp_json_value(r->json, &v))
            return;
        if (rp_json_key_is(&key, "ts") && v.kind == RP_JSON_NUMBER &&
            !(rp_decimal_parse(v.text, v.len, 3, &ns) & (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE)) &&
            ns >= -RP_TIME_MAX_NS && ns <= RP_TIME_MAX_NS) {
            *(begin ? &to->begin_ns : &to->end_ns) = ns;
            *(begin ? &to->has_begin : &to->has_end) = true;
        } else if (rp_json_key_is(&key, "tid") && begin) {
            to->tid = int_of(&v);
        }
    }
}

static void read_details(struct nccl_reader *r, struct record *to)
{
    struct rp_json_token key, v;

    if (!rp_json_value(r->json, &v) || v.kind != RP_JSON_OBJECT)
        return;
    while (rp_json_field(r->json, &key)) {
        if (*r->json->at == '{' || *r->json->at == '[') {
            rp_json_skip(r->json);
            continue;
        }
        if (!rp_json_value(r->json, &v))
            return;
        keep_text(r, &v);
        if (rp_json_key_is(&key, "func"))
            to->func = v;
        else if (rp_json_key_is(&key, "dtype"))
            to->dtype = v;
        else if (rp_json_key_is(&key, "seq"))
            to->seq = int_of(&v);
        else if (rp_json_key_is(&key, "count"))
            to->count = int_of(&v);
        else if (rp_json_key_is(&key, "channel"))
            to->channel = int_of(&v);
        else if (rp_json_key_is(&key, "nranks"))
            to->nranks = int_of(&v);
    }
}

static void read_value(struct record *to, const struct rp_json_token *key,
                       const struct rp_json_token *v)
{
    if (rp_json_key_is(key, "recordType")) {
        to->kind = *v;
    } else if (rp_json_key_is(key, "type")) {
        to->type = *v;
    } else if (rp_json_key_is(key, "name")) {
        to->name = *v;
    } else if (rp_json_key_is(key, "eventAddr")) {
        to->address = *v;
    } else if (rp_json_key_is(key, "gpuUuid")) {
        to->gpu = *v;
    } else if (rp_json_key_is(key, "commId")) {
        to->comm = int_of(v);
    } else if (rp_json_key_is(key, "deviceId")) {
        to->device = int_of(v);
    } else if (rp_json_key_is(key, "rank")) {
        to->rank = int_of(v);
        to->has_rank = to->rank >= 0 && to->rank < RANKS;
    } else if (rp_json_key_is(key, "extCorrId")) {
        to->link = int_of(v);
        to->has_link = to->link >= 0 && to->link < RP_MERGED_ID_STEP;
    }
}

static bool read_record(struct nccl_reader *r, struct record *to)
{
    struct rp_json_token key, v;

    *to = (struct record){
        .seq = -1, .count = -1, .channel = -1, .nranks = -1, .comm = -1, .device = -1};
    if (rp_json_value(r->json, &v) != RP_JSON_OBJECT)
        return false;
    while (rp_json_field(r->json, &key)) {
        if (rp_json_key_is(&key, "start") || rp_json_key_is(&key, "stop"))
            read_moment(r, to, rp_json_key_is(&key, "start"));
        else if (rp_json_key_is(&key, "details"))
            read_details(r, to);
        else if (*r->json->at == '{' || *r->json->at == '[')
            rp_json_skip(r->json);
        else if (rp_json_value(r->json, &v)) {
            keep_text(r, &v);
            read_value(to, &key, &v);
        }
    }
    return !rp_json_failed(r->json);
}

/* ------------------------------------------------------------------ ranks */

static enum rp_code note_rank(struct nccl_reader *r, struct record *x, bool *known)
{
    uint64_t gpu = rp_hash_bytes(x->gpu.text ? x->gpu.text : "", x->gpu.text ? x->gpu.len : 0);

    *known = x->has_rank;
    if (!x->has_rank) {
        uint32_t rank = x->has_link ? rp_map_get(&r->rank_of_link, (uint64_t)x->link) : RP_MAP_NONE;
        rank = rank == RP_MAP_NONE ? rp_map_get(&r->rank_of_gpu, gpu) : rank;
        *known = rank != RP_MAP_NONE;
        x->rank = *known ? rank : 0;
        return RP_OK;
    }
    r->world_size = x->nranks > r->world_size && x->nranks < RANKS ? x->nranks : r->world_size;
    RP_TRY(rp_map_put(&r->nranks_of, (uint64_t)x->rank, 1, r->err));
    if (x->has_link)
        RP_TRY(rp_map_put(&r->rank_of_link, (uint64_t)x->link, (uint32_t)x->rank, r->err));
    return x->gpu.len ? rp_map_put(&r->rank_of_gpu, gpu, (uint32_t)x->rank, r->err) : RP_OK;
}

static enum rp_code name_once(struct nccl_reader *r, rp_track track, const char *what, uint64_t key,
                              const char *name)
{
    rp_str text;

    if (rp_map_get(&r->named, key) != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(rp_map_put(&r->named, key, 1, r->err));
    RP_TRY(rp_builder_intern(r->b, name, strlen(name), &text, r->err));
    return rp_builder_label(r->b, track, what, "name", text, r->err);
}

/* Collectives and channels overlap with calls of the same thread, so they have tracks of their
   own. */
static enum rp_code find_track(struct nccl_reader *r, const struct record *x, int part,
                               rp_track *out)
{
    bool collective = is_text(&x->type, "ncclProfileColl") || is_text(&x->type, "ncclProfileP2p");
    int64_t tid = part == DEVICE    ? 0
                  : x->channel >= 0 ? 2000000 + x->channel
                  : collective      ? 1000000
                                    : x->tid;
    uint32_t process;
    char name[64];

    RP_TRY(rp_builder_process(r->b, x->rank * PIDS + part, 0, &process, r->err));
    RP_TRY(rp_builder_track(r->b, process, tid, 0, true, out, r->err));
    snprintf(name, sizeof name, part == DEVICE ? "GPU %lld" : "NCCL",
             (long long)(x->device >= 0 ? x->device : x->rank));
    RP_TRY(name_once(r, *out, "process_name", UINT64_C(1) << 40 | process, name));
    snprintf(name, sizeof name,
             part == DEVICE    ? "kernels"
             : x->channel >= 0 ? "channel %lld"
                               : "collectives",
             (long long)x->channel);
    return part == DEVICE || collective || x->channel >= 0
               ? name_once(r, *out, "thread_name", *out, name)
               : RP_OK;
}

/* ------------------------------------------------------------------ events */

static const struct {
    const char *type, *category;
    uint8_t kind, flags;
} kinds[] = {
    {"KERNEL", "kernel", RP_KIND_KERNEL, RP_ORIGIN_GPU},
    {"ncclProfileColl", "nccl_collective", RP_KIND_COMM_OP, 0},
    {"ncclProfileP2p", "nccl_collective", RP_KIND_COMM_OP, 0},
    {"ncclProfileKernelLaunch", "nccl_launch", RP_KIND_RUNTIME, RP_ORIGIN_RUNTIME},
    {"ncclProfileCollApi", "nccl_api", RP_KIND_CPU_OP, 0},
    {"ncclProfileP2pApi", "nccl_api", RP_KIND_CPU_OP, 0},
    {"ncclProfileGroupApi", "nccl_api", RP_KIND_CPU_OP, 0},
    {"", "nccl", RP_KIND_OTHER, 0},
};

/* The states with which a span of the proxy thread begins. */
static const struct {
    const char *name;
    uint8_t kind;
} proxy_states[] = {{"ProxyCtrlIdle", RP_KIND_WAIT},
                    {"ProxyCtrlSleep", RP_KIND_WAIT},
                    {"ProxyCtrlActive", RP_KIND_OTHER},
                    {"ProxyCtrlAppend", RP_KIND_OTHER}};
#define PROXY_STATES (sizeof proxy_states / sizeof *proxy_states)

/* Takes the state of an event that ends and whose address may be reused for another one;
   PROXY_STATES: none. */
static enum rp_code take_state(struct nccl_reader *r, const struct record *x, uint32_t *out)
{
    *out = PROXY_STATES;
    if (!x->address.len || !is_text(&x->type, "ncclProfileProxyCtrl"))
        return RP_OK;
    uint64_t key = rp_hash_bytes(x->address.text, x->address.len);
    uint32_t found = rp_map_get(&r->state_of, key);
    if (found >= PROXY_STATES)
        return RP_OK;
    *out = found;
    return rp_map_put(&r->state_of, key, PROXY_STATES, r->err);
}

static enum rp_code intern(struct nccl_reader *r, const struct rp_json_token *v, rp_str *out)
{
    struct rp_json_token copy = *v;

    if (copy.has_escapes && !rp_json_decode(r->json, &copy))
        return rp_json_finish(r->json, r->err);
    return rp_builder_intern(r->b, copy.text, copy.len, out, r->err);
}

/* Writes "ncclFloat32" as "Float", as PyTorch writes types. */
static const char *type_name(const struct rp_json_token *v)
{
    static const char *const names[][2] = {{"ncclFloat16", "Half"},  {"ncclBfloat16", "BFloat16"},
                                           {"ncclFloat32", "Float"}, {"ncclFloat64", "Double"},
                                           {"ncclInt32", "Int"},     {"ncclInt64", "Long"},
                                           {"ncclInt8", "Char"},     {"ncclUint8", "Byte"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_text(v, names[i][0]))
            return names[i][1];
    return NULL;
}

static enum rp_code add_arg(struct nccl_reader *r, struct rp_arg *args, uint32_t *n,
                            const char *key, const char *text, int64_t number)
{
    struct rp_arg *arg = &args[(*n)++];

    *arg = (struct rp_arg){.type = text ? RP_ARG_STR : RP_ARG_I64};
    RP_TRY(rp_builder_intern(r->b, key, strlen(key), &arg->key, r->err));
    if (text)
        return rp_builder_intern(r->b, text, strlen(text), &arg->v.s, r->err);
    arg->v.i = number;
    return RP_OK;
}

static enum rp_code fill_args(struct nccl_reader *r, const struct record *x, struct rp_arg *args,
                              uint32_t *n)
{
    const char *type = type_name(&x->dtype);
    char comm[32];

    if (x->comm >= 0) {
        snprintf(comm, sizeof comm, "%lld", (long long)x->comm);
        RP_TRY(add_arg(r, args, n, "Process Group Name", comm, 0));
    }
    if (x->count >= 0)
        RP_TRY(add_arg(r, args, n, "In msg nelems", NULL, x->count));
    if (type)
        RP_TRY(add_arg(r, args, n, "dtype", type, 0));
    if (x->seq >= 0)
        RP_TRY(add_arg(r, args, n, "Seq", NULL, x->seq));
    if (x->channel >= 0)
        RP_TRY(add_arg(r, args, n, "channel", NULL, x->channel));
    return x->has_link ? add_arg(r, args, n, "correlation", NULL, x->link) : RP_OK;
}

static enum rp_code add_span(struct nccl_reader *r, const struct record *x)
{
    struct rp_arg args[8];
    struct rp_raw raw = {.ts_ns = x->begin_ns,
                         .args = args,
                         .has_link = x->has_link,
                         .link = x->rank * RP_MERGED_ID_STEP + x->link};
    struct rp_origin o = {.phase = 'X', .has_category = 1};
    bool kernel = is_text(&x->type, "KERNEL");
    uint32_t state;
    size_t i = 0;

    while (*kinds[i].type && !is_text(&x->type, kinds[i].type))
        i++;
    RP_TRY(take_state(r, x, &state));
    o.kind = state < PROXY_STATES ? proxy_states[state].kind : kinds[i].kind;
    o.flags = kinds[i].flags;
    RP_TRY(
        rp_builder_intern(r->b, kinds[i].category, strlen(kinds[i].category), &o.category, r->err));
    RP_TRY(rp_builder_origin(r->b, &o, &raw.origin, r->err));
    if (state < PROXY_STATES)
        RP_TRY(rp_builder_intern(r->b, proxy_states[state].name, strlen(proxy_states[state].name),
                                 &raw.name, r->err));
    else
        RP_TRY(intern(r, x->name.len ? &x->name : x->func.len ? &x->func : &x->type, &raw.name));
    RP_TRY(find_track(r, x, kernel ? DEVICE : HOST, &raw.track));
    RP_TRY(fill_args(r, x, args, &raw.nargs));
    if (raw.nargs)
        RP_TRY(rp_builder_shape(r->b, args, raw.nargs, &raw.shape, r->err));
    raw.dur_ns = x->has_end ? x->end_ns - x->begin_ns : RP_OPEN_NS;
    if (!x->has_end) {
        raw.flags = RP_EVENT_UNENDED;
        rp_builder_borrow_trace(r->b)->health.unended++;
    }
    return rp_builder_add(r->b, &raw, r->err);
}

static enum rp_code add_record(struct nccl_reader *r, struct record *x)
{
    bool known;

    if (is_text(&x->kind, "state")) {
        for (uint32_t i = 0; i < PROXY_STATES && x->address.len; i++)
            if (is_text(&x->name, proxy_states[i].name))
                return rp_map_put(&r->state_of, rp_hash_bytes(x->address.text, x->address.len), i,
                                  r->err);
        return RP_OK;
    }
    RP_TRY(note_rank(r, x, &known));
    if (!known || !x->has_begin || !x->type.len) {
        r->strange++;
        return RP_OK;
    }
    return is_text(&x->type, "ProfilerLifecycle") ? RP_OK : add_span(r, x);
}

/* ------------------------------------------------------------------ the file */

/* Corrects the error of the parser, which saw one more byte at the beginning and at the end. */
static enum rp_code line_error(struct nccl_reader *r)
{
    uint64_t at = rp_json_offset(r->json), line = 1;
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code = rp_json_finish(r->json, &why);

    if (code != RP_FORMAT) {
        if (r->err)
            *r->err = why;
        return code;
    }
    at = at > r->n ? r->n : at - (at > 0);
    for (uint64_t i = 0; i < at; i++)
        line += r->text[i + 1] == '\n';
    return rp_err_set_at(r->err, RP_FORMAT, at, "byte %llu: line %llu is not a JSON object",
                         (unsigned long long)at, (unsigned long long)line);
}

static enum rp_code read_lines(struct nccl_reader *r)
{
    struct rp_json_token v;
    struct record x;

    if (rp_json_value(r->json, &v) != RP_JSON_ARRAY)
        return line_error(r);
    while (rp_json_element(r->json)) {
        if (!read_record(r, &x))
            break;
        RP_TRY(add_record(r, &x));
    }
    if (rp_json_failed(r->json))
        return line_error(r);
    if (r->strange)
        RP_TRY(rp_builder_warn(r->b, r->err, "ignored records without a time or a rank: %llu",
                               (unsigned long long)r->strange));
    if (!rp_builder_count(r->b))
        return rp_err_set(r->err, RP_FORMAT, "no event in the file");

    /* Says which processes belong to which rank. */
    struct rp_trace *t = rp_builder_borrow_trace(r->b);
    char text[160];
    struct rp_emit e;
    rp_str key, value;
    size_t n = 0;
    t->world_size = (int32_t)r->world_size;
    RP_TRY(rp_emit_open_memory(&e, r->err));
    rp_emit_char(&e, '[');
    for (int64_t rank = 0; rank < RANKS && n < r->nranks_of.n; rank++) {
        if (rp_map_get(&r->nranks_of, (uint64_t)rank) == RP_MAP_NONE)
            continue;
        t->rank = (int32_t)rank;
        snprintf(text, sizeof text,
                 "%s{\"rank\":%lld,\"world_size\":%lld,\"label\":\"rank %lld\",\"first_pid\":%lld,"
                 "\"pids\":[0,1]}",
                 n++ ? "," : "", (long long)rank, (long long)r->world_size, (long long)rank,
                 (long long)rank * PIDS);
        rp_emit_text(&e, text);
    }
    rp_emit_char(&e, ']');
    enum rp_code code = e.failure.code != RP_OK ? rp_err_nomem(r->err, "joining ranks") : RP_OK;
    if (code == RP_OK && n > 1) {
        t->rank = RP_NO_RANK;
        code = rp_builder_intern(r->b, RP_MERGED_KEY, strlen(RP_MERGED_KEY), &key, r->err);
        if (code == RP_OK)
            code = rp_builder_intern(r->b, e.buffer, rp_emit_length(&e), &value, r->err);
        if (code == RP_OK)
            code = rp_builder_add_meta(r->b, key, value, false, r->err);
    }
    rp_emit_abandon(&e);
    return code;
}

/* Opens the lines as one list in which commas may be missing. */
static enum rp_code open_lines(struct nccl_reader *r, const uint8_t *bytes, size_t n,
                               const struct rp_limits *limits, struct rp_input **list)
{
    struct rp_json_options options = {.limits = limits, .missing_comma = true};
    char *text = malloc(n + 3);

    RP_TRY(rp_err_need(text, r->err, "reading lines"));
    text[0] = '[';
    memcpy(text + 1, bytes, n);
    text[n + 1] = ']';
    text[n + 2] = '\0';
    r->text = text;
    r->n = n;
    RP_TRY(rp_input_open_memory("lines", text, n + 2, NULL, list, r->err));
    return rp_json_open(*list, &options, &r->json, r->err);
}

static enum rp_code read_plugin(struct rp_input *in, const struct rp_read_options *options,
                                struct rp_import *to, struct rp_err *err)
{
    struct nccl_reader r = {.err = err};
    struct rp_input *list = NULL;
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    enum rp_code code = rp_builder_new(options->limits, &r.b, err);
    if (code == RP_OK) {
        struct rp_trace *t = rp_builder_borrow_trace(r.b);
        t->rank = RP_NO_RANK;
        code = rp_builder_intern(r.b, "nccl-profiler", 13, &t->format, err);
    }
    if (code == RP_OK)
        code = open_lines(&r, bytes, n, options->limits, &list);
    if (code == RP_OK)
        code = read_lines(&r);
    rp_json_close(r.json);
    rp_input_close(list);
    free((void *)(uintptr_t)r.text);
    RP_EACH(rp_map_release, &r.rank_of_gpu, &r.rank_of_link, &r.nranks_of, &r.named, &r.state_of);
    to->content_bytes = n;
    if (code == RP_OK)
        return rp_builder_finish(r.b, &to->trace, err);
    rp_builder_free(r.b);
    return code;
}

static enum rp_sniff sniff_plugin(const uint8_t *head, size_t n, const char *file)
{
    size_t at = rp_sniff_space(head, n, 0);

    (void)file;
    if (at == n || head[at] != '{' || !memmem(head, n, "\"commId\"", 8))
        return RP_SNIFF_NO;
    return memmem(head, n, "\"ProfilerLifecycle\"", 19) || memmem(head, n, "\"ncclProfile", 12)
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_nccl_profiler = {
    .name = "nccl-profiler",
    .summary = "events of an NCCL profiler plugin, one a line",
    .files = "*.jsonl",
    .written_by = "profiler plugins of NCCL",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_plugin,
    .read = read_plugin,
};
