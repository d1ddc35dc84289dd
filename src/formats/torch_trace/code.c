/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads code that Inductor has generated: kernels, and a function that calls them in order.
 *
 *     # AOT ID: ['0_forward']
 *     # Topologically Sorted Source Nodes: [input_1, input_2], Original ATen: [aten.view, …]
 *     # Graph fragment:
 *     #   %mul_4 : Tensor "f32[8, 128, 2048]…" = call_function[target=torch.ops.aten.mul.Tensor](…)
 *     triton_poi_fused_gelu_view_2 = async_compile.triton('triton_poi_fused_gelu_view_2', ''' …
 *     ''', device_str='cuda')
 *
 *         # Topologically Sorted Source Nodes: [linear, …, input_1], Original ATen: […]
 *         # [Provenance debug handles] extern_kernels.addmm:6
 *         extern_kernels.addmm(primals_11, …, out=buf17)
 *         triton_poi_fused_gelu_view_2.run(buf17, buf18, 2097152, stream=stream0)
 *
 * If several kernels have the same code, Inductor makes only one, with the comment of the first. So
 * if the comment of a call lists other nodes than that of its kernel, the call belongs to the last
 * of its own nodes.
 */
#include "formats/torch_trace/read.h"

#include "base/decides.h"
#include "base/each.h"

#include <stdlib.h>
#include <string.h>

const char *const rp_torch_basis_names[] = {NULL, "handle", "fragment", "node", "graph", "caller"};

struct code_kernel { /* code_kernel: what is known besides the kernel with the same number */
    uint64_t name;
    struct rp_snip nodes; /* nodes in the comment above it: "input_1, input_2" */
    uint32_t first, n;    /* place of the lines of its fragment in the shares of the trace */
    size_t first_tensor, ntensors;
};

struct code_tensor { /* '%mul : Tensor "f32[8, 128][128, 1]cuda:0"' */
    struct rp_snip name, dims;
    const char
        *type; /* as the profiler writes it; NULL if it is not known, or a size is not a number */
    double elements;
    bool moves; /* it is read, or is a result */
};

struct code_reader {
    struct rp_torch_trace *trace;
    const struct rp_torch_code *code;
    struct rp_torch_graph *graph;
    struct rp_err *err;
    RP_VEC(struct code_kernel) kernels;
    struct rp_map by_name;
    /* comments since the last statement, one after the other */
    struct rp_snip nodes, handles;
    RP_VEC(struct rp_torch_share) fragment;
    bool in_fragment;
    RP_VEC(struct code_tensor) tensors; /* of all fragments */
    size_t first_tensor;                /* of the last fragment */
    struct rp_map typed; /* from the hash of a name to a tensor whose type is known */
};

/* ------------------------------------------------------------------ lines */

/* Adds the line of a node to a set, which is short because a kernel has few lines. */
#define MOST_LINES 64
RP_LIMIT(MOST_LINES, "lines", "a kernel of more lines is given to the first of them");

static enum rp_code add_line(struct code_reader *r, uint32_t place)
{
    for (size_t i = 0; i < r->fragment.n; i++)
        if (r->fragment.at[i].place == place) {
            r->fragment.at[i].nodes++;
            return RP_OK;
        }
    if (place == RP_NONE || r->fragment.n >= MOST_LINES)
        return RP_OK;
    return rp_vec_push(&r->fragment, ((struct rp_torch_share){place, 1}), r->err);
}

static enum rp_code keep_lines(struct code_reader *r, uint32_t *first, uint32_t *n)
{
    *first = (uint32_t)r->trace->shares.n;
    *n = (uint32_t)r->fragment.n;
    for (size_t i = 0; i < r->fragment.n; i++)
        RP_TRY(rp_vec_push(&r->trace->shares, r->fragment.at[i], r->err));
    r->fragment.n = 0;
    return RP_OK;
}

/* The line of a node. A backward pass is written in nodes of the graph after all passes, other code
   in those of Dynamo's graph; names such as "add" and "view" exist in both. */
static uint32_t place_of(const struct code_reader *r, struct rp_snip name, bool fragment)
{
    bool post_first = fragment || r->graph->direction == RP_TORCH_IS_BACKWARD;
    const struct rp_torch_nodes *first = post_first ? r->code->post : r->code->source;
    const struct rp_torch_nodes *second = post_first ? r->code->source : r->code->post;
    uint32_t place = rp_torch_nodes_place(first, name);

    return place != RP_NONE || fragment ? place : rp_torch_nodes_place(second, name);
}

/* ------------------------------------------------------------------ comments */

/* The text inside the first brackets after a word. */
static struct rp_snip bracketed(struct rp_snip line, const char *word)
{
    const char *at = memmem(line.at, line.n, word, strlen(word));
    const char *end = line.at + line.n;

    if (!at)
        return (struct rp_snip){line.at, 0};
    at += strlen(word);
    const char *close = memchr(at, ']', (size_t)(end - at));
    return close ? (struct rp_snip){at, (size_t)(close - at)} : (struct rp_snip){line.at, 0};
}

static bool same_snip(struct rp_snip a, struct rp_snip b)
{
    return a.n == b.n && (!a.n || !memcmp(a.at, b.at, a.n));
}

/* The types "f32" of torch.fx are "float" and so on in the profiler. */
static const struct {
    const char *fx, *type;
} fx_types[] = {{"f32", "float"},
                {"bf16", "c10::BFloat16"},
                {"f16", "c10::Half"},
                {"f64", "double"},
                {"i64", "long int"},
                {"i32", "int"},
                {"i16", "short int"},
                {"i8", "signed char"},
                {"u8", "unsigned char"},
                {"b8", "bool"},
                {"f8e4m3fn", "c10::Float8_e4m3fn"},
                {"f8e5m2", "c10::Float8_e5m2"},
                {"c64", "c10::complex<float>"},
                {"c128", "c10::complex<double>"}};

/* 'f32[8, 128][128, 1]cuda:0' */
static void read_type(struct code_tensor *out, struct rp_snip text)
{
    const char *open = memchr(text.at, '[', text.n);
    const char *close = open ? memchr(open, ']', (size_t)(text.at + text.n - open)) : NULL;

    if (!close)
        return;
    struct rp_snip fx = {text.at, (size_t)(open - text.at)};
    out->dims = (struct rp_snip){open, (size_t)(close + 1 - open)};
    out->elements = 1;
    for (const char *at = open + 1; at < close; at += strspn(at, ", ")) {
        char *end;

        if (*at < '0' || *at > '9') /* "s0": the size is known only at run time */
            return;
        out->elements *= strtod(at, &end);
        at = end;
    }
    for (size_t i = 0; i < sizeof fx_types / sizeof *fx_types; i++)
        if (rp_snip_is(fx, fx_types[i].fx))
            out->type = fx_types[i].type;
}

/* Reads '# %mul_4 : Tensor "…" = call_function[…](…)', or "PlaceHolder[…]", which is an input and
   not a node of the kernel. */
static enum rp_code read_fragment(struct code_reader *r, struct rp_snip s)
{
    static const char results[] = "return ", typed[] = " : Tensor \"";
    const char *end = s.n ? memchr(s.at, ' ', s.n) : NULL;
    uint32_t at = (uint32_t)r->tensors.n;

    if (rp_snip_begins(s, results)) {
        /* "return %mul,%buf2": results move data, as inputs do. */
        struct rp_snip names =
            (struct rp_snip){s.at + sizeof results - 1, s.n - sizeof results + 1};
        while (names.n) {
            const char *comma = memchr(names.at, ',', names.n);
            size_t n = comma ? (size_t)(comma - names.at) : names.n, i = r->first_tensor;
            struct rp_snip name = rp_snip_trim((struct rp_snip){names.at, n});

            while (i < r->tensors.n && !same_snip(r->tensors.at[i].name, name))
                i++;
            if (i < r->tensors.n)
                r->tensors.at[i].moves = true;
            else
                RP_TRY(rp_vec_push(&r->tensors, ((struct code_tensor){.name = name, .moves = true}),
                                   r->err));
            names.at += n + (comma != NULL);
            names.n -= n + (comma != NULL);
        }
        return RP_OK;
    }
    if (!end || *s.at != '%')
        return RP_OK;
    struct code_tensor tensor = {.name = {s.at, (size_t)(end - s.at)},
                                 .moves = rp_snip_has(s, " = PlaceHolder[")};
    struct rp_snip rest = {end, (size_t)(s.at + s.n - end)};
    if (rp_snip_begins(rest, typed))
        read_type(&tensor, (struct rp_snip){end + sizeof typed - 1, rest.n - sizeof typed + 1});
    RP_TRY(rp_vec_push(&r->tensors, tensor, r->err));
    if (tensor.type)
        RP_TRY(rp_map_intern(&r->typed, rp_hash_bytes(tensor.name.at, tensor.name.n), at, &at,
                             r->err));
    return rp_snip_has(s, " = call_function[")
               ? add_line(r, place_of(r, (struct rp_snip){s.at + 1, tensor.name.n - 1}, true))
               : RP_OK;
}

static enum rp_code read_comment(struct code_reader *r, struct rp_snip s)
{
    static const char handles[] = "# [Provenance debug handles] ";

    if (rp_snip_begins(s, "# AOT ID: ")) {
        r->graph->direction = rp_snip_has(s, "_forward")     ? RP_TORCH_IS_FORWARD
                              : rp_snip_has(s, "_backward")  ? RP_TORCH_IS_BACKWARD
                              : rp_snip_has(s, "_inference") ? RP_TORCH_IS_INFERENCE
                                                             : RP_TORCH_IS_UNKNOWN;
    } else if (rp_snip_begins(s, "# Topologically Sorted Source Nodes: [") ||
               rp_snip_begins(s, "# Source Nodes: [")) {
        r->nodes = bracketed(s, "Nodes: [");
        r->fragment.n = 0;
        r->in_fragment = false;
    } else if (rp_snip_begins(s, handles)) {
        r->handles = (struct rp_snip){s.at + sizeof handles - 1, s.n - sizeof handles + 1};
    } else if (rp_snip_begins(s, "# Graph fragment:")) {
        r->fragment.n = 0;
        r->first_tensor = r->tensors.n;
        r->in_fragment = true;
    } else if (r->in_fragment && s.n > 1) {
        return read_fragment(r, rp_snip_trim((struct rp_snip){s.at + 1, s.n - 1}));
    }
    return RP_OK;
}

static void forget_comments(struct code_reader *r)
{
    r->nodes.n = r->handles.n = 0;
    r->fragment.n = 0;
    r->first_tensor = r->tensors.n;
    r->in_fragment = false;
}

/* ------------------------------------------------------------------ kernels */

static enum rp_code kernel_of(struct code_reader *r, struct rp_snip name, bool add, uint32_t *out)
{
    struct code_kernel kernel = {.name = rp_hash_bytes(name.at, name.n)};
    struct rp_torch_kernel row = {.calls = 0};

    *out = rp_map_get(&r->by_name, kernel.name);
    if (*out != RP_MAP_NONE || !add)
        return RP_OK;
    *out = (uint32_t)r->kernels.n;
    row.name = rp_snip_copy(name, &r->trace->arena);
    RP_TRY(rp_map_put(&r->by_name, kernel.name, *out, r->err));
    RP_TRY(rp_vec_push(&r->trace->kernels, row, r->err));
    return rp_vec_push(&r->kernels, kernel, r->err);
}

/* The operator of a call: "aten::addmm" for "extern_kernels.addmm", "own::bad" for
   "torch.ops.own.bad.default". */
static const char *operator_of(struct rp_snip callee, struct rp_arena *arena)
{
    static const char extern_kernels[] = "extern_kernels.", ops[] = "torch.ops.", aten[] = "aten.";
    const char *at, *space = "aten";
    int space_n = 4;

    if (rp_snip_begins(callee, extern_kernels)) {
        at = callee.at + sizeof extern_kernels - 1;
    } else if (rp_snip_begins(callee, aten)) {
        at = callee.at + sizeof aten - 1;
    } else {
        space = callee.at + sizeof ops - 1;
        const char *dot = memchr(space, '.', (size_t)(callee.at + callee.n - space));
        if (!dot)
            return NULL;
        space_n = (int)(dot - space);
        at = dot + 1;
    }
    size_t n = (size_t)(callee.at + callee.n - at);
    const char *dot = n ? memchr(at, '.', n) : NULL;
    return rp_arena_textf(arena, "%.*s::%.*s", space_n, space, (int)(dot ? (size_t)(dot - at) : n),
                          at);
}

/* ------------------------------------------------------------------ calls */

static enum rp_code set_lines(struct code_reader *r, struct rp_torch_call *call)
{
    const struct code_kernel *kernel = &r->kernels.at[call->kernel];

    /* The lines of the stacks that were recorded for the handles of a call. The list may contain
       handles of another graph, so only those count that the code names. */
    struct rp_snip rest = r->handles;
    r->fragment.n = 0;
    while (rest.n && r->code->stacks.n) {
        const char *comma = memchr(rest.at, ',', rest.n);
        size_t n = comma ? (size_t)(comma - rest.at) : rest.n;
        RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
        struct rp_snip handle = rp_snip_trim((struct rp_snip){rest.at, n}), key, stack;
        struct rp_snip_walk walk;

        if (rp_snip_array(rp_snip_member(r->code->stacks, rp_snip_copy(handle, &scratch)), &walk))
            while (rp_snip_next(&walk, &key, &stack)) {
                const char *text = rp_snip_text(stack, &scratch);
                struct rp_torch_frame frame;
                uint32_t place;
                if (text && rp_torch_user_frame((struct rp_snip){text, strlen(text)}, &frame)) {
                    RP_TRY(rp_torch_place(r->trace, frame.path, frame.line, frame.function, &place,
                                          r->err));
                    RP_TRY(add_line(r, place));
                }
            }
        RP_TRY(rp_arena_check(&scratch, "reading provenance", r->err));
        rest.at += n + (comma != NULL);
        rest.n -= n + (comma != NULL);
    }
    if (r->fragment.n) {
        call->basis = RP_TORCH_BY_HANDLE;
        return keep_lines(r, &call->first, &call->n);
    }
    if (kernel->n && (!r->nodes.n || same_snip(kernel->nodes, r->nodes))) {
        call->basis = RP_TORCH_BY_FRAGMENT;
        call->first = kernel->first;
        call->n = kernel->n;
        return RP_OK;
    }

    /* The last name of "view_10, permute_7, mm_1" that has a line. */
    struct rp_snip names = r->nodes;
    uint32_t place = RP_NONE;
    while (names.n && place == RP_NONE) {
        const char *comma = memrchr(names.at, ',', names.n);
        size_t from = comma ? (size_t)(comma + 1 - names.at) : 0;

        place = place_of(r, rp_snip_trim((struct rp_snip){names.at + from, names.n - from}), false);
        names.n = from ? from - 1 : 0;
    }

    if (place == RP_NONE)
        return RP_OK;
    call->basis = RP_TORCH_BY_NODE;
    RP_TRY(add_line(r, place));
    return keep_lines(r, &call->first, &call->n);
}

static enum rp_code add_call(struct code_reader *r, uint32_t kernel, struct rp_snip arguments)
{
    struct rp_torch_call call = {.kernel = kernel};

    if (!r->trace->kernels.at[r->graph->first_kernel + kernel].op) {
        /* The numbers in "NAME.run(buf1, buf2, 1024, 512, stream=stream0)" say how often its loops
           run. */
        while (arguments.n) {
            const char *comma = memchr(arguments.at, ',', arguments.n);
            size_t n = comma ? (size_t)(comma - arguments.at) : arguments.n;
            int64_t times;

            if (rp_snip_int(rp_snip_trim((struct rp_snip){arguments.at, n}), &times) && times > 0) {
                call.outer = call.elements ? call.outer : (double)times;
                call.elements = (call.elements ? call.elements : 1) * (double)times;
            }
            arguments.at += n + (comma != NULL);
            arguments.n -= n + (comma != NULL);
        }
    }
    RP_TRY(set_lines(r, &call));
    r->trace->kernels.at[r->graph->first_kernel + kernel].calls++;
    forget_comments(r);
    return rp_vec_push(&r->trace->calls, call, r->err);
}

/* "buf6 = torch.ops.aten.f.default(…)", "extern_kernels.mm(…)", "NAME.run(…)", "NAME(…)". */
static enum rp_code read_statement(struct code_reader *r, struct rp_snip s)
{
    const char *open = memchr(s.at, '(', s.n);
    struct rp_snip callee = {s.at, open ? (size_t)(open - s.at) : 0};
    uint32_t kernel;
    const char *equals = callee.n ? memmem(callee.at, callee.n, " = ", 3) : NULL;

    if (equals)
        callee = (struct rp_snip){equals + 3, (size_t)(open - equals - 3)};
    if (!callee.n)
        return RP_OK;
    bool external = rp_snip_begins(callee, "extern_kernels.") ||
                    rp_snip_begins(callee, "torch.ops.") || rp_snip_begins(callee, "aten.");
    if (!external && callee.n > 4 && !memcmp(callee.at + callee.n - 4, ".run", 4))
        callee.n -= 4;
    RP_TRY(kernel_of(r, callee, external, &kernel));
    if (kernel == RP_MAP_NONE)
        return RP_OK;
    if (external && !r->trace->kernels.at[r->graph->first_kernel + kernel].op)
        r->trace->kernels.at[r->graph->first_kernel + kernel].op =
            operator_of(callee, &r->trace->arena);
    return add_call(r, kernel, (struct rp_snip){open + 1, (size_t)(s.at + s.n - open - 1)});
}

/* ------------------------------------------------------------------ the text */

/* If a graph has a single kernel and no other call, that kernel computes everything. */
static enum rp_code settle_single(struct code_reader *r, uint32_t first_call)
{
    if (r->trace->calls.n != first_call + 1 || r->trace->calls.at[first_call].basis)
        return RP_OK;
    r->fragment.n = 0;
    for (size_t i = 0; i < r->code->post->at.n; i++)
        RP_TRY(add_line(r, r->code->post->at.at[i].place));
    if (!r->fragment.n)
        return RP_OK;
    struct rp_torch_call *call = &r->trace->calls.at[first_call];
    call->basis = RP_TORCH_BY_GRAPH;
    return keep_lines(r, &call->first, &call->n);
}

/* Keeps the tensors that a kernel moves; the largest is put last, as results are
   (cost/models_triton.c). A buffer between kernels has its type where the next kernel reads it. */
static void keep_tensors(struct code_reader *r, const struct code_kernel *kernel,
                         struct rp_torch_kernel *out)
{
    const struct code_tensor *moved[MOST_LINES], *last = NULL;
    struct rp_arena *arena = &r->trace->arena;
    const char *dims = "", *types = "";
    size_t n = 0;

    for (size_t i = 0; i < kernel->ntensors; i++) {
        const struct code_tensor *t = &r->tensors.at[kernel->first_tensor + i];

        if (!t->moves)
            continue;
        uint32_t known = rp_map_get(&r->typed, rp_hash_bytes(t->name.at, t->name.n));
        if (known == RP_MAP_NONE || n == MOST_LINES)
            return;
        moved[n] = &r->tensors.at[known];
        last = !last || moved[n]->elements >= last->elements ? moved[n] : last;
        n++;
    }
    if (!last)
        return;
    for (size_t i = 0; i < n; i++)
        if (moved[i] != last) {
            dims = rp_arena_textf(arena, "%s%.*s,", dims, (int)moved[i]->dims.n, moved[i]->dims.at);
            types = rp_arena_textf(arena, "%s\"%s\",", types, moved[i]->type);
        }
    out->dims = rp_arena_textf(arena, "%s%.*s", dims, (int)last->dims.n, last->dims.at);
    out->types = rp_arena_textf(arena, "%s\"%s\"", types, last->type);
}

static void code_reader_release(struct code_reader *r)
{
    RP_EACH(rp_vec_release, &r->kernels, &r->fragment, &r->tensors);
    RP_EACH(rp_map_release, &r->typed, &r->by_name);
}

enum rp_code rp_torch_code_read(struct rp_torch_trace *trace, const struct rp_torch_code *code,
                                struct rp_torch_graph *graph, struct rp_err *err)
{
    RP_SCOPED(code_reader_release)
    struct code_reader r = {.trace = trace, .code = code, .graph = graph, .err = err};

    graph->first_kernel = (uint32_t)trace->kernels.n;
    graph->first_call = (uint32_t)trace->calls.n;
    struct rp_snip rest = r.code->text, line;
    bool in_text = false;
    while (rp_snip_line(&rest, &line)) {
        const char *made = line.n ? memmem(line.at, line.n, " = async_compile.", 17) : NULL;
        struct rp_snip s = rp_snip_trim(line);

        if (in_text) {
            in_text = !rp_snip_has(line, "'''");
            continue;
        }
        if (rp_snip_begins(line, "def get_args") || rp_snip_begins(line, "def benchmark_compiled"))
            break; /* the rest runs the code on its own */

        /* Whether a string of three quotes begins in the line and does not end in it. */
        const char *at = line.n ? memmem(line.at, line.n, "'''", 3) : NULL;
        in_text = at && !memmem(at + 3, (size_t)(line.at + line.n - at - 3), "'''", 3);
        if (!s.n)
            continue;
        if (*s.at == '#')
            RP_TRY(read_comment(&r, s));
        else if (made) {
            /* "NAME = async_compile.triton('NAME', '''". */
            uint32_t kernel;
            RP_TRY(kernel_of(&r, (struct rp_snip){line.at, ((size_t)(made - line.at))}, true,
                             &kernel));
            r.kernels.at[kernel].nodes = r.nodes;
            r.kernels.at[kernel].first_tensor = r.first_tensor;
            r.kernels.at[kernel].ntensors = r.tensors.n - r.first_tensor;
            RP_TRY(keep_lines(&r, &r.kernels.at[kernel].first, &r.kernels.at[kernel].n));
            forget_comments(&r);
        } else if (*line.at == ' ')
            RP_TRY(read_statement(&r, s));
        else
            forget_comments(&r);
    }
    RP_TRY(settle_single(&r, graph->first_call));
    for (size_t i = 0; i < r.kernels.n; i++)
        keep_tensors(&r, &r.kernels.at[i], &trace->kernels.at[graph->first_kernel + i]);
    graph->nkernels = (uint32_t)trace->kernels.n - graph->first_kernel;
    graph->ncalls = (uint32_t)trace->calls.n - graph->first_call;
    return RP_OK;
}
