/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the records of a log into compiles, graphs and breaks. A record names its compile by an id;
 * the ids begin again after torch._dynamo.reset(), so a record that begins a compile that has
 * already ended begins another occurrence of it. A graph comes as several records, in an order that
 * depends on whether it was found in a cache:
 *
 *     inductor_post_grad_graph     lines of its nodes     \
 *     inductor_output_code         kernels and calls       >  kept as texts, and read together when
 *     …kernel_stack_traces         lines of calls         /   the key comes, the next code, or the
 *     fx_graph_cache_{miss,hit}    the key                    metrics that end the compile
 *
 * Memory: what is made of a compile (kilobytes), and the texts of graphs that are not complete.
 */
#include "formats/torch_trace/torch_trace.h"
#include "formats/torch_trace/read.h"

#include "base/decides.h"
#include "base/each.h"
#include "base/text.h"
#include "formats/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rp_torch_direction_names[RP_TORCH_DIRECTIONS] = {"unknown", "forward", "backward",
                                                                   "inference"};
const char *const rp_torch_cache_names[] = {NULL, "miss", "hit", "bypass"};

/* The kinds that PyTorch 2.3 to 2.15 write. Others are counted. */
static const char *const known_kinds[] = {"artifact",
                                          "chromium_event",
                                          "str",
                                          "dynamo_start",
                                          "dynamo_output_graph",
                                          "dynamo_guards",
                                          "dynamo_cpp_guards_str",
                                          "aot_joint_graph",
                                          "aot_forward_graph",
                                          "aot_backward_graph",
                                          "aot_inference_graph",
                                          "inductor_post_grad_graph",
                                          "inductor_pre_grad_graph",
                                          "inductor_output_code",
                                          "graph_dump",
                                          "compilation_metrics",
                                          "bwd_compilation_metrics",
                                          "compilation_metrics_runtime",
                                          "bwd_compilation_metrics_runtime",
                                          "aot_autograd_backward_compilation_metrics",
                                          "describe_storage",
                                          "describe_tensor",
                                          "describe_source",
                                          "create_symbol",
                                          "create_unbacked_symbol",
                                          "guard_added_fast",
                                          "guard_added",
                                          "symbolic_shape_specialization",
                                          "propagate_real_tensors",
                                          "expression_created",
                                          "missing_fake_kernel",
                                          "mismatched_fake_kernel",
                                          "exported_program",
                                          "export",
                                          "optimize_ddp_split_graph",
                                          "optimize_ddp_split_child",
                                          "compiled_autograd_graph",
                                          "dump_file",
                                          "link",
                                          "rank",
                                          "propagate_real_tensors_provenance",
                                          "fbscript",
                                          "knobs"};

#define MOST_UNKNOWN 1000
RP_LIMIT(MOST_UNKNOWN, "kinds", "further kinds of records that are not known are not told apart");

/* For what a payload is wanted. */
enum wanted {
    WANT_NOTHING,
    WANT_SOURCE_GRAPH,
    WANT_POST_GRAPH,
    WANT_CODE,
    WANT_STACKS,
    WANT_KEY,
    WANT_REASONS,
    WANT_BREAK,
    WANT_ERROR,
    WANT_VERSION
};

struct open_compile { /* open_compile: what is known besides the compile of the same number, in the
                         log that is being read */
    struct rp_torch_nodes source;
    char *post, *code, *stacks; /* texts, of malloc */
    size_t post_n, code_n, stacks_n;
    const char *file, *key; /* key: it came before the code */
    uint8_t cache;
    uint32_t waits; /* the newest graph, if it has no key yet; or RP_NONE */
    bool closed;
};

struct trace_reader {
    struct rp_torch_trace *trace;
    struct rp_err *err;
    uint32_t log, first; /* the log, and its first compile */
    RP_VEC(struct open_compile) open;
    struct rp_map by_id;   /* from the hash of an id to its compile */
    struct rp_map strings; /* from a string's number in the log to its text, in names */
    RP_VEC(const char *) names;
    struct rp_map unknown;
    char text[64];      /* the name of the graph in the payload; "" if it is not a graph */
    enum wanted wanted; /* what the next payload is wanted for */
    uint32_t compile;   /* the compile it belongs to, or RP_NONE */
    uint8_t cache;
    bool of_aot;
};

/* ------------------------------------------------------------------ places */

void rp_torch_trace_init(struct rp_torch_trace *trace)
{
    *trace = (struct rp_torch_trace){.arena = RP_ARENA_INIT};
}

void rp_torch_trace_release(struct rp_torch_trace *trace)
{
    RP_EACH(rp_vec_release, &trace->logs, &trace->compiles, &trace->graphs, &trace->kernels,
            &trace->calls, &trace->shares, &trace->places, &trace->breaks);
    rp_vec_release(&trace->unknown);
    rp_strtab_release(&trace->place_keys);
    rp_arena_release(&trace->arena);
}

enum rp_code rp_torch_place(struct rp_torch_trace *trace, struct rp_snip path, int64_t line,
                            struct rp_snip function, uint32_t *out, struct rp_err *err)
{
    char key[4096];
    int n = snprintf(key, sizeof key, "%lld\n%.*s", (long long)line,
                     (int)(path.n < 4000 ? path.n : 4000), path.at);
    struct rp_torch_place place = {.line = line};
    uint32_t id;

    if (!trace->place_keys.n)
        RP_TRY(rp_strtab_init(&trace->place_keys, err));
    RP_TRY(rp_strtab_intern(&trace->place_keys, key, (size_t)n, &id, err));
    *out = id - 1; /* 0 is the empty text, which is not a key */
    if (*out < trace->places.n)
        return RP_OK;
    place.path = rp_snip_copy(path, &trace->arena);
    place.function = rp_snip_copy(function, &trace->arena);
    return rp_vec_push(&trace->places, place, err);
}

/* ------------------------------------------------------------------ compiles */

static void release_texts(struct open_compile *open)
{
    RP_EACH(free, open->post, open->code, open->stacks);
    open->post = open->code = open->stacks = NULL;
    open->post_n = open->code_n = open->stacks_n = 0;
}

/* Writes "1/0"; with compiled autograd "!2/1/0", and "!2" for its own graph. */
static const char *id_text(const struct rp_torch_record *record, struct rp_arena *arena)
{
    const char *numbers =
        record->frame == RP_TORCH_NO_ID
            ? ""
            : rp_arena_textf(arena, "%lld/%lld", (long long)record->frame,
                             (long long)(record->compile < 0 ? 0 : record->compile));

    if (record->autograd == RP_TORCH_NO_ID)
        return numbers;
    return rp_arena_textf(arena, "!%lld%s%s", (long long)record->autograd, *numbers ? "/" : "",
                          numbers);
}

static enum rp_code new_compile(struct trace_reader *r, const struct rp_torch_record *record,
                                int64_t occurrence, uint32_t *out)
{
    static const struct rp_torch_times none = {-1, -1, -1, -1, -1, -1, -1, -1,
                                               -1, -1, -1, -1, -1, -1, -1};
    struct rp_torch_compile compile = {.log = r->log,
                                       .id = id_text(record, &r->trace->arena),
                                       .occurrence = occurrence,
                                       .frame = record->frame,
                                       .number = record->compile,
                                       .line = RP_TORCH_NO_ID,
                                       .ops = RP_TORCH_NO_ID,
                                       .guards = RP_TORCH_NO_ID,
                                       .nodes = RP_TORCH_NO_ID,
                                       .inputs = RP_TORCH_NO_ID,
                                       .guard_us = RP_TORCH_NO_ID,
                                       .attempts = 1,
                                       .forward = none,
                                       .backward = none,
                                       .start_ns = RP_TORCH_NO_ID,
                                       .end_ns = RP_TORCH_NO_ID,
                                       .record = record->number};
    struct open_compile open = {.waits = RP_NONE};

    *out = (uint32_t)r->trace->compiles.n;
    RP_TRY(rp_vec_push(&r->trace->compiles, compile, r->err));
    return rp_vec_push(&r->open, open, r->err);
}

static struct open_compile *open_of(struct trace_reader *r, uint32_t compile)
{
    return &r->open.at[compile - r->first];
}

/* Whether a record is the first of another compile with the same id. */
static bool begins_again(struct trace_reader *r, uint32_t compile, struct rp_snip kind,
                         const char *artifact)
{
    bool start = rp_snip_is(kind, "dynamo_start");

    if (start && r->trace->compiles.at[compile].started)
        return true;
    return open_of(r, compile)->closed && (start || rp_snip_is(kind, "compilation_metrics") ||
                                           (artifact && !strcmp(artifact, "recompile_reasons")));
}

static uint64_t id_key(int64_t autograd, int64_t frame, int64_t compile)
{
    uint64_t ids[3] = {(uint64_t)autograd, (uint64_t)frame, (uint64_t)compile};

    return rp_hash_bytes(ids, sizeof ids);
}

/* The compile that a record is about, or RP_NONE. */
static enum rp_code compile_of(struct trace_reader *r, const struct rp_torch_record *record,
                               const char *artifact, uint32_t *out)
{
    uint64_t key = id_key(record->autograd, record->frame, record->compile);
    int64_t occurrence = 0;

    *out = RP_NONE;
    if (record->frame == RP_TORCH_NO_ID && record->autograd == RP_TORCH_NO_ID)
        return RP_OK;
    *out = rp_map_get(&r->by_id, key);
    if (*out != RP_MAP_NONE) {
        if (!begins_again(r, *out, record->kind, artifact))
            return RP_OK;
        occurrence = r->trace->compiles.at[*out].occurrence + 1;
    }
    RP_TRY(new_compile(r, record, occurrence, out));
    return rp_map_put(&r->by_id, key, *out, r->err);
}

/* ------------------------------------------------------------------ graphs */

/* Places calls for which nothing tells the line: foreach kernels of optimizers, modules of torch.nn
   alone. */
static enum rp_code place_the_rest(struct trace_reader *r, const struct rp_torch_graph *graph)
{
    struct rp_torch_trace *t = r->trace;
    uint32_t first = (uint32_t)t->shares.n;

    /* The line that stands for a compile as a whole: its function, or if that belongs to a library
       (a module without code of its own), the line of the program that called it. */
    const struct rp_torch_compile *c = &r->trace->compiles.at[graph->compile];
    bool own = c->path && !rp_torch_is_library(c->path);
    struct rp_torch_place at = {own ? c->path : c->caller.path,
                                own ? c->function : c->caller.function,
                                own ? c->line : c->caller.line};
    uint32_t place = RP_NONE;
    if (at.path) {
        at.function = at.function ? at.function : "";
        RP_TRY(rp_torch_place(r->trace, (struct rp_snip){at.path, strlen(at.path)}, at.line,
                              (struct rp_snip){at.function, strlen(at.function)}, &place, r->err));
    }
    for (uint32_t i = 0; place != RP_NONE && i < graph->ncalls; i++) {
        struct rp_torch_call *call = &t->calls.at[graph->first_call + i];

        if (call->n)
            continue;
        if (first == t->shares.n)
            RP_TRY(rp_vec_push(&t->shares, ((struct rp_torch_share){place, 1}), r->err));
        call->basis = RP_TORCH_BY_CALLER;
        call->first = first;
        call->n = 1;
    }
    return RP_OK;
}

/* Makes the graph of the code that is kept, if there is one. */
static enum rp_code finish_graph(struct trace_reader *r, uint32_t compile)
{
    struct open_compile *open = open_of(r, compile);
    struct rp_torch_nodes post = {0};
    struct rp_torch_graph graph = {
        .compile = compile, .cache = open->cache, .key = open->key, .file = open->file};
    struct rp_torch_code code = {.text = {open->code, open->code_n},
                                 .stacks = {open->stacks, open->stacks_n},
                                 .source = &open->source,
                                 .post = &post};
    enum rp_code status;

    if (!open->code)
        return RP_OK;
    status =
        rp_torch_nodes_read(&post, (struct rp_snip){open->post, open->post_n}, r->trace, r->err);
    if (status == RP_OK)
        status = rp_torch_code_read(r->trace, &code, &graph, r->err);
    if (status == RP_OK)
        status = place_the_rest(r, &graph);
    rp_torch_nodes_release(&post);
    open->waits = open->key ? RP_NONE : (uint32_t)r->trace->graphs.n;
    open->key = open->file = NULL;
    open->cache = RP_TORCH_NO_CACHE;
    release_texts(open);
    return status == RP_OK ? rp_vec_push(&r->trace->graphs, graph, r->err) : status;
}

static enum rp_code set_key(struct trace_reader *r, struct rp_snip text)
{
    struct open_compile *open = open_of(r, r->compile);
    const char *key = rp_snip_text(rp_snip_member(text, "key"), &r->trace->arena);

    if (!key || !*key)
        return RP_OK;
    if (open->code && open->key) /* the record belongs to the next graph */
        RP_TRY(finish_graph(r, r->compile));
    else if (open->code) {
        open->key = key;
        open->cache = r->cache;
        return finish_graph(r, r->compile);
    }
    if (open->waits != RP_NONE) {
        r->trace->graphs.at[open->waits].key = key;
        r->trace->graphs.at[open->waits].cache = r->cache;
        open->waits = RP_NONE;
        return RP_OK;
    }
    open->key = key;
    open->cache = r->cache;
    return RP_OK;
}

static enum rp_code keep_text(struct rp_snip text, char **at, size_t *n, struct rp_err *err)
{
    char *copy = malloc(text.n + 1);

    RP_TRY(rp_err_need(copy, err, "reading a graph"));
    memcpy(copy, text.at, text.n);
    free(*at);
    *at = copy;
    *n = text.n;
    return RP_OK;
}

static enum rp_code read_source_graph(struct trace_reader *r, struct rp_snip text)
{
    struct rp_torch_compile *compile = &r->trace->compiles.at[r->compile];
    struct open_compile *open = open_of(r, r->compile);

    rp_torch_nodes_release(&open->source);
    RP_TRY(rp_torch_nodes_read(&open->source, text, r->trace, r->err));
    compile->ops = open->source.ops;
    compile->dynamic = open->source.dynamic;
    return RP_OK;
}

/* ------------------------------------------------------------------ payloads */

/* If there is one reason, it is the text itself; several are a list. */
static void read_reasons(struct rp_snip text, struct rp_arena *arena,
                         struct rp_torch_compile *compile)
{
    struct rp_snip_walk walk;
    struct rp_snip key, value;
    const char **reasons = NULL;
    size_t n = 0;

    if (rp_snip_array(text, &walk)) {
        while (rp_snip_next(&walk, &key, &value))
            rp_arena_append(arena, &reasons, &n, rp_snip_text(value, arena));
        if (!rp_snip_whole(&walk))
            n = 0;
    }
    if (!n && text.n > 1 && *text.at == '"')
        rp_arena_append(arena, &reasons, &n, rp_snip_text(text, arena));
    if (!n && text.n)
        rp_arena_append(arena, &reasons, &n, rp_snip_copy(text, arena));
    compile->reasons = reasons;
    compile->nreasons = n;
}

static enum rp_code trace_payload(void *user, struct rp_snip text, struct rp_err *err)
{
    struct trace_reader *r = user;
    struct rp_torch_log *log = &r->trace->logs.at[r->log];
    struct open_compile *open = r->compile == RP_NONE ? NULL : open_of(r, r->compile);

    if (*r->text)
        RP_TRY(r->trace->texts->text(r->trace->texts->user, r->compile, r->text, text, err));
    if (r->wanted == WANT_VERSION) {
        const char *version =
            rp_snip_text(rp_snip_member(text, "pytorch_version"), &r->trace->arena);

        log->version = version ? version : log->version;
        return RP_OK;
    }
    if (!open)
        return RP_OK;
    switch (r->wanted) {
    case WANT_SOURCE_GRAPH:
        return read_source_graph(r, text);
    case WANT_POST_GRAPH:
        RP_TRY(finish_graph(r, r->compile));
        return keep_text(text, &open->post, &open->post_n, err);
    case WANT_CODE:
        return keep_text(text, &open->code, &open->code_n, err);
    case WANT_STACKS:
        return keep_text(text, &open->stacks, &open->stacks_n, err);
    case WANT_KEY:
        return set_key(r, text);
    case WANT_REASONS:
        read_reasons(text, &r->trace->arena, &r->trace->compiles.at[r->compile]);
        return RP_OK;
    case WANT_BREAK: {
        struct rp_torch_break found = {.compile = r->compile,
                                       .attempt = r->trace->compiles.at[r->compile].attempts - 1};
        rp_torch_break_read(text, &r->trace->arena, &found);
        r->trace->compiles.at[r->compile].nbreaks++;
        return rp_vec_push(&r->trace->breaks, found, r->err);
    }
    case WANT_ERROR: {
        struct rp_torch_compile *compile = &r->trace->compiles.at[r->compile];
        const char *line = rp_torch_error_line(text, NULL, &r->trace->arena);
        compile->backend_error = line ? line : "failed";
        if (!compile->failed)
            compile->failed = compile->backend_error;
    }
        return RP_OK;
    case WANT_NOTHING:
    case WANT_VERSION:
        break;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ records */

/* {"line": 24, "name": "step", "filename": 1, "loc": "…"} */
static bool read_frame(struct trace_reader *r, struct rp_snip value, struct rp_torch_place *out)
{
    struct rp_snip file = rp_snip_member(value, "filename");
    int64_t id;

    *out = (struct rp_torch_place){.line = RP_TORCH_NO_ID};
    if (rp_snip_int(file, &id)) {
        uint32_t known = rp_map_get(&r->strings, (uint64_t)id);
        out->path = known == RP_MAP_NONE ? NULL : r->names.at[known];
    } else {
        out->path = rp_snip_text(file, &r->trace->arena);
    }
    out->function = rp_snip_text(rp_snip_member(value, "name"), &r->trace->arena);
    return rp_snip_int(rp_snip_member(value, "line"), &out->line) && out->path;
}

/* Reads the stack, outermost first; the last frame is the function. */
static void read_start(struct trace_reader *r, struct rp_snip value)
{
    struct rp_torch_compile *compile = &r->trace->compiles.at[r->compile];
    struct rp_snip key, frame;
    struct rp_snip_walk walk;
    struct rp_torch_place place, before = {NULL, NULL, RP_TORCH_NO_ID};

    compile->started = true;
    if (!rp_snip_array(rp_snip_member(value, "stack"), &walk))
        return;
    while (rp_snip_next(&walk, &key, &frame)) {
        if (!read_frame(r, frame, &place))
            continue;
        if (before.path && !rp_torch_is_library(before.path))
            compile->caller = before;
        before = place;
    }
    compile->function = before.function;
    compile->path = before.path;
    compile->line = before.line;
}

static int64_t us_to_ns(int64_t us)
{
    return us < 0 || us > INT64_MAX / 1000 ? RP_TORCH_NO_ID : us * 1000;
}

static enum rp_code read_metrics(struct trace_reader *r, const struct rp_torch_record *record,
                                 enum rp_torch_metrics kind)
{
    struct rp_torch_compile *compile = &r->trace->compiles.at[r->compile];

    if (kind != RP_TORCH_RUN_METRICS)
        RP_TRY(finish_graph(r, r->compile));
    rp_torch_metrics_read(record->value, kind, &r->trace->arena, compile,
                          &r->trace->logs.at[r->log].version);
    if (kind != RP_TORCH_FORWARD_METRICS)
        return RP_OK;
    open_of(r, r->compile)->closed = true;
    if (!compile->function) {
        /* A compile that the limit refused does not say its function, which is that of the first
           compile with its id. */
        uint32_t first = rp_map_get(&r->by_id, id_key(RP_TORCH_NO_ID, compile->frame, 0));
        if (first != RP_MAP_NONE) {
            compile->function = r->trace->compiles.at[first].function;
            compile->path = r->trace->compiles.at[first].path;
            compile->line = r->trace->compiles.at[first].line;
        }
    }
    compile->start_ns = us_to_ns(compile->forward.start_us);
    compile->end_ns = us_to_ns(compile->forward.end_us);
    return RP_OK;
}

/* Reads names like "fx_graph_cache_miss": whether the name is that of a cache, of which, and what
   it says. */
static bool cache_of(const char *name, bool *aot, uint8_t *what)
{
    *aot = rp_text_begins(name, "aotautograd_cache_");
    *what = rp_text_ends(name, "_miss")     ? RP_TORCH_MISS
            : rp_text_ends(name, "_hit")    ? RP_TORCH_HIT
            : rp_text_ends(name, "_bypass") ? RP_TORCH_BYPASS
                                            : RP_TORCH_NO_CACHE;
    return *what && (*aot || rp_text_begins(name, "fx_graph_cache_") ||
                     rp_text_begins(name, "fx_graph_bundled_cache_"));
}

static enum wanted want_artifact(struct trace_reader *r, const char *name)
{
    static const struct {
        const char *name;
        enum wanted wanted;
    } rows[] = {{"inductor_post_grad_graph", WANT_POST_GRAPH},
                {"after_post_grad_graph", WANT_POST_GRAPH},
                {"inductor_provenance_tracking_kernel_stack_traces", WANT_STACKS},
                {"recompile_reasons", WANT_REASONS},
                {"dynamo_graph_break_reason", WANT_BREAK},
                {"dynamo_error", WANT_ERROR},
                {"torch_version", WANT_VERSION}};
    struct rp_torch_compile *compile =
        r->compile == RP_NONE ? NULL : &r->trace->compiles.at[r->compile];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strcmp(name, rows[i].name))
            return rows[i].wanted;
    if (!compile || !cache_of(name, &r->of_aot, &r->cache))
        return WANT_NOTHING;
    if (r->of_aot) {
        compile->aot = compile->aot ? compile->aot : r->cache;
        return WANT_NOTHING;
    }
    compile->fx = compile->fx ? compile->fx : r->cache;
    return WANT_KEY;
}

static enum rp_code count_unknown(struct trace_reader *r, struct rp_snip kind)
{
    struct rp_torch_trace *trace = r->trace;

    for (uint32_t i = 0; i < sizeof known_kinds / sizeof known_kinds[0]; i++)
        if (rp_snip_is(kind, known_kinds[i]))
            return RP_OK;
    for (uint32_t i = 0; i < trace->unknown.n; i++)
        if (rp_snip_is(kind, trace->unknown.at[i].kind) || i + 1 == MOST_UNKNOWN) {
            trace->unknown.at[i].records++;
            return RP_OK;
        }
    return rp_vec_push(&trace->unknown,
                       ((struct rp_torch_unknown){rp_snip_copy(kind, &trace->arena), 1}), r->err);
}

static enum rp_code read_kind(struct trace_reader *r, const struct rp_torch_record *record,
                              const char *artifact)
{
    struct rp_snip kind = record->kind;

    if (artifact) {
        r->wanted = want_artifact(r, artifact);
        return RP_OK;
    }
    if (rp_snip_is(kind, "str")) {
        /* {"str": ["/home/user/a.py", 3]} */
        struct rp_snip_walk walk;
        struct rp_snip key, text, number;
        int64_t id;
        if (!rp_snip_array(record->value, &walk) || !rp_snip_next(&walk, &key, &text) ||
            !rp_snip_next(&walk, &key, &number) || !rp_snip_int(number, &id))
            return RP_OK;
        const char *name = rp_snip_text(text, &r->trace->arena);
        if (!name)
            return RP_OK;
        RP_TRY(rp_map_put(&r->strings, (uint64_t)id, (uint32_t)r->names.n, r->err));
        return rp_vec_push(&r->names, name, r->err);
    }
    if (r->compile == RP_NONE)
        return count_unknown(r, kind);
    if (rp_snip_is(kind, "dynamo_start"))
        read_start(r, record->value);
    else if (rp_snip_is(kind, "dynamo_output_graph"))
        r->wanted = WANT_SOURCE_GRAPH;
    else if (rp_snip_is(kind, "inductor_post_grad_graph"))
        r->wanted = WANT_POST_GRAPH;
    else if (rp_snip_is(kind, "inductor_output_code")) {
        RP_TRY(finish_graph(r, r->compile));
        open_of(r, r->compile)->file =
            rp_snip_text(rp_snip_member(record->value, "filename"), &r->trace->arena);
        r->wanted = WANT_CODE;
    } else if (rp_snip_is(kind, "compilation_metrics"))
        return read_metrics(r, record, RP_TORCH_FORWARD_METRICS);
    else if (rp_snip_is(kind, "bwd_compilation_metrics") ||
             rp_snip_is(kind, "aot_autograd_backward_compilation_metrics"))
        return read_metrics(r, record, RP_TORCH_BACKWARD_METRICS);
    else if (rp_snip_is(kind, "compilation_metrics_runtime") ||
             rp_snip_is(kind, "bwd_compilation_metrics_runtime"))
        return read_metrics(r, record, RP_TORCH_RUN_METRICS);
    else
        return count_unknown(r, kind);
    return RP_OK;
}

/* Whether a payload is a graph that torch.fx printed, or the code made of it. */
static bool is_graph(const char *name)
{
    return rp_text_ends(name, "_graph") || rp_text_ends(name, "_grad") ||
           !strcmp(name, "inductor_output_code") || !strcmp(name, "optimize_ddp_split_child");
}

static enum rp_code trace_record(void *user, const struct rp_torch_record *record, bool *keep,
                                 struct rp_err *err)
{
    struct trace_reader *r = user;
    struct rp_torch_log *log = &r->trace->logs.at[r->log];
    const char *artifact = NULL;
    char name[200];

    if (record->rank != RP_TORCH_NO_ID && log->rank == RP_TORCH_NO_ID)
        log->rank = record->rank;
    log->pid = log->pid == RP_TORCH_NO_ID ? record->pid : log->pid;
    if (rp_snip_is(record->kind, "artifact")) {
        struct rp_snip s = rp_snip_member(record->value, "name");

        snprintf(name, sizeof name, "%.*s", s.n > 2 ? (int)(s.n < 200 ? s.n - 2 : 0) : 0, s.at + 1);
        artifact = name;
    }
    r->wanted = WANT_NOTHING;
    RP_TRY(compile_of(r, record, artifact, &r->compile));
    if (r->compile != RP_NONE && record->attempt >= r->trace->compiles.at[r->compile].attempts &&
        record->attempt < INT32_MAX)
        r->trace->compiles.at[r->compile].attempts = record->attempt + 1;
    RP_TRY(read_kind(r, record, artifact));
    snprintf(r->text, sizeof r->text, "%.*s",
             artifact ? 60 : (int)(record->kind.n < 60 ? record->kind.n : 60),
             artifact ? artifact : record->kind.at);
    if (!r->trace->texts || r->compile == RP_NONE || !is_graph(r->text))
        *r->text = '\0';
    *keep = r->wanted != WANT_NOTHING || *r->text;
    return rp_arena_check(&r->trace->arena, "reading a compile log", err);
}

/* ------------------------------------------------------------------ a log */

int64_t rp_torch_rank_of_name(const char *name)
{
    const char *at = strstr(rp_text_file(name), "rank_");
    int64_t rank = 0;
    int n = 0;

    for (at = at ? at + 5 : ""; at[n] >= '0' && at[n] <= '9' && n < 9; n++)
        rank = rank * 10 + (at[n] - '0');
    return n && at[n] == '_' ? rank : RP_TORCH_NO_ID;
}

enum rp_code rp_torch_trace_read(struct rp_torch_trace *trace, struct rp_input *in,
                                 const struct rp_limits *limits, struct rp_err *err)
{
    struct trace_reader r = {.trace = trace,
                             .err = err,
                             .log = (uint32_t)trace->logs.n,
                             .first = (uint32_t)trace->compiles.n};
    struct rp_torch_sink sink = {&r, trace_record, trace_payload};
    struct rp_torch_log log = {.pid = RP_TORCH_NO_ID, .rank = RP_TORCH_NO_ID};
    struct rp_torch_counts counts;

    log.name = rp_arena_text(&trace->arena, rp_input_borrow_name(in));
    RP_TRY(rp_vec_push(&trace->logs, log, err));
    enum rp_code code = rp_torch_records(in, limits, &sink, &counts, err);
    trace->logs.at[r.log].counts = counts;
    for (uint32_t i = r.first; i < trace->compiles.n && code == RP_OK; i++)
        code = finish_graph(&r, i);
    if (trace->logs.at[r.log].rank == RP_TORCH_NO_ID)
        trace->logs.at[r.log].rank = rp_torch_rank_of_name(log.name);
    for (size_t i = 0; i < r.open.n; i++) {
        release_texts(&r.open.at[i]);
        rp_torch_nodes_release(&r.open.at[i].source);
    }
    RP_EACH(rp_vec_release, &r.open, &r.names);
    RP_EACH(rp_map_release, &r.by_id, &r.strings, &r.unknown);
    return code == RP_OK ? rp_arena_check(&trace->arena, "reading a compile log", err) : code;
}

/* ------------------------------------------------------------------ the format */

static enum rp_sniff sniff_log(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return rp_torch_begins((const char *)head, n) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

/* A log is neither a trace nor a program: `dump` reads it with rp_torch_trace_read. Nothing is read
   here, since a folder of traces may contain large logs. */
static enum rp_code read_log(struct rp_input *in, const struct rp_read_options *options,
                             struct rp_import *to, struct rp_err *err)
{
    (void)in;
    (void)options;
    (void)to;
    (void)err;
    return RP_OK;
}

const struct rp_format rp_format_torch_trace = {
    .name = "torch-trace",
    .summary = "structured log of torch.compile, for 'dump' and 'top --dumps'",
    .files = "dedicated_log_torch_trace_*.log",
    .written_by = "PyTorch (TORCH_TRACE)",
    .kind = RP_FORMAT_KIND_COMPILES,
    .sniff = sniff_log,
    .read = read_log,
};
