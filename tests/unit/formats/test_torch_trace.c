/* SPDX-License-Identifier: Apache-2.0 */
/* Structured logs of torch.compile: records, compiles, graphs with their lines, breaks, guards. */
#include "base/md5.h"
#include "formats/formats.h"
#include "formats/torch_trace/torch_trace.h"
#include "program/structure.h"
#include "unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ a log */

struct log_text {
    char at[1 << 16];
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct log_text *log, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    log->n += (size_t)vsnprintf(log->at + log->n, sizeof log->at - log->n, fmt, args);
    va_end(args);
    assert_true(log->n < sizeof log->at);
}

#define PREFIX "V1118 15:12:37.851000 17703 torch/_logging/_internal.py:1390] "
#define ID_1_0 "\"frame_id\": 1, \"frame_compile_id\": 0, \"attempt\": 0"

/* A record of a kind with a payload, whose lines get their tabs; md5 NULL: the right one. */
static void put_record(struct log_text *log, const char *kind, const char *ids, const char *payload,
                       const char *md5)
{
    char right[RP_MD5_TEXT];
    struct rp_md5 s;

    rp_md5_begin(&s);
    if (payload)
        rp_md5_add(&s, payload, strlen(payload));
    rp_md5_text(&s, right);
    put(log, PREFIX "{%s%s%s", kind, *ids ? ", " : "", ids);
    put(log, payload ? ", \"has_payload\": \"%s\"}\n" : "}\n", md5 ? md5 : right);
    for (; payload; payload = strchr(payload, '\n') ? strchr(payload, '\n') + 1 : NULL)
        put(log, "\t%.*s\n", (int)strcspn(payload, "\n"), payload);
}

static void put_artifact(struct log_text *log, const char *name, const char *ids,
                         const char *payload)
{
    char kind[200];

    snprintf(kind, sizeof kind, "\"artifact\": {\"name\": \"%s\", \"encoding\": \"string\"}", name);
    put_record(log, kind, ids, payload, NULL);
}

static enum rp_code read_bytes(struct rp_torch_trace *trace, const char *name, const char *bytes,
                               size_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;
    enum rp_code code;

    rp_torch_trace_init(trace);
    assert_ok(rp_input_open_memory(name, bytes, n, NULL, &in, &err), &err);
    code = rp_torch_trace_read(trace, in, NULL, &err);
    rp_input_close(in);
    return code;
}

static void read_text(struct rp_torch_trace *trace, const struct log_text *log)
{
    assert_int_equal(read_bytes(trace, "a.log", log->at, log->n), RP_OK);
}

static const char start_1_0[] =
    "\"dynamo_start\": {\"stack\": [{\"line\": 24, \"name\": \"<module>\", \"filename\": 0}, "
    "{\"line\": 7, \"name\": \"forward\", \"filename\": 0}]}";
static const char metrics_1_0[] =
    "\"compilation_metrics\": {\"compile_id\": \"1/0\", \"co_name\": \"forward\", \"co_filename\": "
    "\"/home/m.py\", \"co_firstlineno\": 7, \"duration_us\": 1000, "
    "\"dynamo_cumulative_compile_time_us\": 1000, \"aot_autograd_cumulative_compile_time_us\": 800, "
    "\"inductor_cumulative_compile_time_us\": 500, "
    "\"inductor_code_gen_cumulative_compile_time_us\": 400, \"triton_compile_time_us\": 150, "
    "\"pre_grad_pass_time_us\": 20, \"joint_graph_pass_time_us\": 30, \"post_grad_pass_time_us\": "
    "50, \"dynamo_compile_time_before_restart_us\": 60, \"guard_count\": 11}";

static const char source_graph[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, L_x_: \"f32[8]\"):\n"
    "        l_x_ = L_x_\n"
    "\n"
    "        # File: /home/m.py:8 in forward, code: y = self.a(x)\n"
    "        linear: \"f32[8, s27]\" = torch._C._nn.linear(l_x_, w);  w = None\n"
    "        # File: /home/m.py:9 in forward, code: return y * 2\n"
    "        mul: \"f32[8]\" = linear * 2;  linear = None\n"
    "        mul += 1;  mul_1: \"f32[8]\" = mul\n"
    "        return (mul_1,)";
static const char post_graph[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, primals_1: \"f32[8]\"):\n"
    "        # File: /home/m.py:8 in forward, code: y = self.a(x)\n"
    "        addmm: \"f32[8]\" = torch.ops.aten.addmm.default(primals_1, primals_2, primals_3)\n"
    "        sum_1: \"f32[8]\" = torch.ops.aten.sum.dim_IntList(addmm, [0])\n"
    "        # File: /home/m.py:9 in forward, code: return y * 2\n"
    "        mul: \"f32[8]\" = torch.ops.aten.mul.Tensor(addmm, 2)\n"
    "        sum_2: \"f32[8]\" = torch.ops.aten.sum.dim_IntList(mul, [0])\n"
    "        # No stacktrace found for following nodes\n"
    "        clone: \"f32[8]\" = torch.ops.aten.clone.default(mul)\n"
    "        return (mul,)";
static const char code_text[] =
    "# AOT ID: ['0_backward']\n"
    "async_compile = AsyncCompile()\n"
    "# kernel path: /home/k.py\n"
    "# Topologically Sorted Source Nodes: [mul, sum_2], Original ATen: [aten.mul]\n"
    "# Graph fragment:\n"
    "#   %addmm : Tensor \"f32[8]\" = PlaceHolder[target=addmm]\n"
    "#   %mul : Tensor \"f32[8]\" = call_function[target=torch.ops.aten.mul.Tensor](args = ())\n"
    "#   %sum_1 : Tensor \"f32[8]\" = call_function[target=torch.ops.aten.sum](args = ())\n"
    "#   %sum_2 : Tensor \"f32[8]\" = call_function[target=torch.ops.aten.sum](args = ())\n"
    "#   return %sum_2\n"
    "triton_red_fused_mul_sum_0 = async_compile.triton('triton_red_fused_mul_sum_0', '''\n"
    "def f():\n"
    "    extern_kernels.mm(not a call)\n"
    "''', device_str='cuda')\n"
    "def call(args):\n"
    "    # Topologically Sorted Source Nodes: [view, addmm], Original ATen: [aten.addmm]\n"
    "    extern_kernels.addmm(a, b, out=c)\n"
    "    # Topologically Sorted Source Nodes: [mul, sum_2], Original ATen: [aten.mul]\n"
    "    stream0 = get_raw_stream(0)\n"
    "    triton_red_fused_mul_sum_0.run(c, d, 8)\n"
    "    # Topologically Sorted Source Nodes: [clone, sum_1], Original ATen: [aten.sum]\n"
    "    triton_red_fused_mul_sum_0.run(c, e, 8)\n"
    "    buf1 = torch.ops.own.bad.default(c, 'extern_kernels.mm(')\n"
    "    assert_size_stride(buf1, (8,), (1,), 'torch.ops.own.bad.default')\n"
    "def get_args():\n"
    "    extern_kernels.mm(not a call either)\n";

/* A whole compile: names of files, tracing, a graph, its code, the key, the metrics. */
static void put_compile(struct log_text *log)
{
    put_record(log, "\"str\": [\"/home/m.py\", 0]", "", NULL, NULL);
    put_record(log, start_1_0, ID_1_0, NULL, NULL);
    put_record(log, "\"dynamo_output_graph\": {\"sizes\": {}}", ID_1_0, source_graph, NULL);
    put_artifact(log, "inductor_post_grad_graph", ID_1_0, post_graph);
    put_record(log, "\"inductor_output_code\": {\"filename\": \"/home/c.py\"}", ID_1_0, code_text,
               NULL);
    put_artifact(log, "fx_graph_cache_miss", ID_1_0,
                 "{\"key\": \"fabc\", \"components\": [\"[x] {\\\"\"]}");
    put_record(log, metrics_1_0, ID_1_0, NULL, NULL);
}

/* ------------------------------------------------------------------ compiles and graphs */

static void a_compile_has_its_numbers(void **state)
{
    struct log_text log = {.n = 0};
    struct rp_torch_trace t;
    const struct rp_torch_compile *c;
    int64_t phases[RP_TORCH_PHASES], sum = 0;

    (void)state;
    put_compile(&log);
    read_text(&t, &log);
    assert_int_equal(t.compiles.n, 1);
    c = &t.compiles.at[0];
    assert_string_equal(c->id, "1/0");
    assert_string_equal(c->function, "forward");
    assert_string_equal(c->path, "/home/m.py");
    assert_int_equal(c->line, 7);
    assert_int_equal(c->caller.line, 24);
    assert_int_equal(c->ops, 3);
    assert_int_equal(c->guards, 11);
    assert_true(c->dynamic);
    assert_int_equal(c->fx, RP_TORCH_MISS);
    assert_null(c->failed);
    rp_torch_phases(c, phases);
    for (size_t i = 0; i < RP_TORCH_PHASES; i++)
        sum += phases[i];
    assert_int_equal(sum, 1000000);
    assert_int_equal(phases[RP_TORCH_IN_RESTARTS], 60000);
    assert_int_equal(phases[RP_TORCH_IN_DYNAMO], 120000); /* 1000 - 60 - 20 - 800 */
    assert_int_equal(phases[RP_TORCH_IN_PASSES], 100000);
    assert_int_equal(phases[RP_TORCH_IN_AOT], 270000);     /* 800 - 30 - 500 */
    assert_int_equal(phases[RP_TORCH_IN_INDUCTOR], 50000); /* 500 - 50 - 400 */
    assert_int_equal(phases[RP_TORCH_IN_CODEGEN], 250000);
    assert_int_equal(phases[RP_TORCH_IN_KERNELS], 150000);
    assert_int_equal(t.logs.at[0].counts.bad_lines + t.logs.at[0].counts.bad_md5, 0);
    rp_torch_trace_release(&t);
}

/* The lines of a call, as "8*1 9*2". */
static void assert_lines(const struct rp_torch_trace *t, uint32_t call, const char *want)
{
    const struct rp_torch_call *is = &t->calls.at[t->graphs.at[0].first_call + call];
    char got[100] = "";

    for (uint32_t i = 0; i < is->n; i++) {
        const struct rp_torch_share *share = &t->shares.at[is->first + i];

        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d*%u", i ? " " : "",
                 (int)t->places.at[share->place].line, share->nodes);
    }
    assert_string_equal(got, want);
}

static void calls_have_lines(void **state)
{
    struct log_text log = {.n = 0};
    struct rp_torch_trace t;

    (void)state;
    put_compile(&log);
    read_text(&t, &log);
    assert_int_equal(t.graphs.n, 1);
    assert_string_equal(t.graphs.at[0].key, "fabc");
    assert_int_equal(t.graphs.at[0].direction, RP_TORCH_IS_BACKWARD);
    assert_int_equal(t.graphs.at[0].nkernels, 3);
    assert_string_equal(t.kernels.at[0].name, "triton_red_fused_mul_sum_0");
    assert_int_equal(t.kernels.at[0].calls, 2);
    assert_string_equal(t.kernels.at[1].op, "aten::addmm");
    assert_string_equal(t.kernels.at[2].op, "own::bad");
    assert_int_equal(t.graphs.at[0].ncalls, 4);
    assert_lines(&t, 0, "8*1");     /* the last node of its comment */
    assert_lines(&t, 1, "9*2 8*1"); /* the fragment of its kernel */
    assert_lines(&t, 2, "8*1");     /* the same kernel for other nodes */
    assert_lines(&t, 3, "7*1");     /* the function that was compiled */
    assert_int_equal(t.calls.at[2].basis, RP_TORCH_BY_NODE);
    rp_torch_trace_release(&t);
}

/* The key may come before the code. */
static void the_order_of_records_does_not_matter(void **state)
{
    struct log_text log = {.n = 0};
    struct rp_torch_trace t;

    (void)state;
    put_artifact(&log, "fx_graph_cache_hit", ID_1_0, "{\"key\": \"fhit\"}");
    put_record(&log, "\"inductor_post_grad_graph\": {}", ID_1_0, post_graph, NULL);
    put_record(&log, "\"inductor_output_code\": {}", ID_1_0, code_text, NULL);
    put_artifact(&log, "fx_graph_cache_miss", ID_1_0, "{\"key\": \"fnext\"}");
    put_record(&log, "\"inductor_output_code\": {}", ID_1_0, code_text, NULL);
    read_text(&t, &log);
    assert_int_equal(t.graphs.n, 2);
    assert_string_equal(t.graphs.at[0].key, "fhit");
    assert_int_equal(t.graphs.at[0].cache, RP_TORCH_HIT);
    assert_string_equal(t.graphs.at[1].key, "fnext");
    rp_torch_trace_release(&t);
}

static void ids_begin_again(void **state)
{
    struct log_text log = {.n = 0};
    struct rp_torch_trace t;

    (void)state;
    put_compile(&log);
    put_artifact(&log, "recompile_reasons", ID_1_0, "0/0: len(x) == 3");
    put_compile(&log);
    put_record(&log, metrics_1_0, ID_1_0, NULL, NULL); /* refused by the limit: no start */
    read_text(&t, &log);
    assert_int_equal(t.compiles.n, 3);
    assert_int_equal(t.compiles.at[0].nreasons, 0);
    assert_int_equal(t.compiles.at[1].nreasons, 1);
    assert_int_equal(t.compiles.at[2].occurrence, 2);
    assert_false(t.compiles.at[2].started);
    rp_torch_trace_release(&t);
}

/* ------------------------------------------------------------------ damage */

static void problems_are_counted(void **state)
{
    struct log_text log = {.n = 0};
    struct rp_torch_trace t;

    (void)state;
    put(&log, "[rank0]: something else\n");
    put_record(&log, "\"dynamo_cpp_guards_str\": {}", ID_1_0, "a\nb",
               "00000000000000000000000000000000");
    put_record(&log, "\"new_kind\": {\"a\": [1, {\"b\": \"}\"}]}", ID_1_0, NULL, NULL);
    put_record(&log, "\"new_kind\": 1", "", NULL, NULL);
    put(&log, PREFIX "{\"artifact\": {\"name\": \"x\"}\n"); /* no closing bracket */
    put_artifact(&log, "recompile_reasons", ID_1_0, "[\"0/0: a\", broken");
    put_record(&log, "\"dynamo_output_graph\": {}", ID_1_0, "", NULL);
    read_text(&t, &log);
    assert_int_equal(t.logs.at[0].counts.bad_lines, 2);
    assert_int_equal(t.logs.at[0].counts.bad_md5, 1);
    assert_int_equal(t.logs.at[0].counts.records, 5);
    assert_int_equal(t.unknown.n, 1);
    assert_string_equal(t.unknown.at[0].kind, "new_kind");
    assert_int_equal(t.unknown.at[0].records, 2);
    assert_int_equal(t.compiles.at[0].nreasons, 1); /* the text itself */
    rp_torch_trace_release(&t);
}

static void a_cut_log_loses_one_record(void **state)
{
    struct log_text log = {.n = 0};
    struct rp_torch_trace t;
    uint64_t before = 0;

    (void)state;
    put_compile(&log);
    for (size_t n = 0; n <= log.n; n++) {
        char *copy = malloc(n + 1);
        uint64_t ends = 0;

        assert_non_null(copy);
        memcpy(copy, log.at, n);
        assert_int_equal(read_bytes(&t, "a.log", copy, n), RP_OK);
        for (size_t i = 0; i < n; i++)
            ends += copy[i] == '\n' && (i + 1 == n || copy[i + 1] == 'V');
        assert_true(t.logs.at[0].counts.records >= before);
        assert_true(t.logs.at[0].counts.records + 1 >= ends);
        before = t.logs.at[0].counts.records;
        rp_torch_trace_release(&t);
        free(copy);
    }
    assert_int_equal(before, 7);
}

static void ranks_come_from_records_and_names(void **state)
{
    static const struct {
        const char *name, *ids;
        int64_t rank;
    } rows[] = {{"x/dedicated_log_torch_trace_rank_12_ab.log", "", 12},
                {"x/dedicated_log_torch_trace_rank_1_7_.log", "\"rank\": 3", 3},
                {"x/dedicated_log_torch_trace__rank_.log", "", -1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct log_text log = {.n = 0};
        struct rp_torch_trace t;

        put_record(&log, "\"artifact\": {\"name\": \"x\"}", rows[i].ids, NULL, NULL);
        assert_int_equal(read_bytes(&t, rows[i].name, log.at, log.n), RP_OK);
        assert_int_equal(t.logs.at[0].rank, rows[i].rank);
        rp_torch_trace_release(&t);
    }
}

/* ------------------------------------------------------------------ breaks and guards */

static void breaks_in_all_words(void **state)
{
    static const struct {
        const char *text, *gb, *kind;
        int64_t line, user_line;
        bool skips;
    } rows[] = {
        {"Graph break in user code at /home/a.py:63\n"
         "Graph Break Reason: Encountered graph break when attempting to trace CALL\n\n"
         "Failed to trace builtin operator\n  Explanation: because\n  Hint: do not\n\n"
         " For more details: https://x/gb/gb0059.html\n\nUser code traceback:\n"
         "  File \"/home/a.py\", line 81, in g\n    f(x)\n"
         "  File \"/v/site-packages/torch/nn/modules/module.py\", line 9, in f\n    print(1)\n\n"
         "Traceback\n  File \"/home/z.py\", line 1, in h\n",
         "GB0059", "Failed to trace builtin operator", 63, 81, false},
        {"Graph break in user code at /home/a.py:75\nGraph Break Reason: Data-dependent branching\n"
         "  Explanation: because\n",
         NULL, "Data-dependent branching", 75, 75, false},
        {"Graph break in user code at /home/a.py:18\nGraph Break Reason: Failed to handle graph "
         "break gracefully. Skipping the function and falling back to eager. Graph break "
         "encountered:\n\nUnsupported Tensor.item() call\n",
         NULL, "Unsupported Tensor.item() call", 18, 18, true},
        {"Graph break: from user code at:\n  File \"/home/a.py\", line 5, in f\n    print(x)\n",
         NULL, "not stated", 5, 5, false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct log_text log = {.n = 0};
        struct rp_torch_trace t;

        put_artifact(&log, "dynamo_graph_break_reason", ID_1_0, rows[i].text);
        read_text(&t, &log);
        assert_int_equal(t.breaks.n, 1);
        assert_string_equal(t.breaks.at[0].kind, rows[i].kind);
        assert_int_equal(t.breaks.at[0].at.line, rows[i].line);
        assert_int_equal(t.breaks.at[0].user.path ? t.breaks.at[0].user.line : rows[i].user_line,
                         rows[i].user_line);
        assert_int_equal(t.breaks.at[0].skips, rows[i].skips);
        if (rows[i].gb)
            assert_string_equal(t.breaks.at[0].gb, rows[i].gb);
        assert_int_equal(t.compiles.at[0].nbreaks, 1);
        rp_torch_trace_release(&t);
    }
}

static void guards_say_what_differed(void **state)
{
    static const struct {
        const char *text, *entry, *kind, *what;
        int64_t line;
    } rows[] = {
        {"0/1: tensor 'x' size mismatch at index 1. expected 8, actual 12", "0/1", "size",
         "x: size[1] 8 -> 12", -1},
        {"0/1: tensor 'x' dtype mismatch. expected Float, actual Double", "0/1", "dtype",
         "x: dtype Float -> Double", -1},
        {"1/0: mode == 'exp'      # if mode == \"exp\":  # tt/p.py:96 in f\nUser stack trace:\n  "
         "File \"/home/p.py\", line 97, in f",
         "1/0", "constant", "not mode == 'exp'", 97},
        {"1/0: len(xs) == 3  # for x in xs  # p.py:5 in f", "1/0", "length", "not len(xs) == 3", 5},
        {"GLOBAL_STATE changed: grad_mode", NULL, "global state",
         "not GLOBAL_STATE changed: grad_mode", -1},
        {"something new", NULL, "guard", "not something new", -1},
        {"", NULL, "guard", "not ", -1}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_torch_guard guard;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rp_torch_guard_read(rows[i].text, false, &arena, &guard);
        assert_string_equal(guard.kind, rows[i].kind);
        assert_string_equal(guard.what, rows[i].what);
        assert_int_equal(guard.line, rows[i].line);
        assert_non_null(guard.avoid);
        if (rows[i].entry)
            assert_string_equal(guard.entry, rows[i].entry);
        else
            assert_null(guard.entry);
    }
    rp_arena_release(&arena);
}

/* What most of the entries failed by; the newest entry alone may say something else. */
static void most_guards_decide(void **state)
{
    static const struct rp_torch_guard guards[] = {
        {.kind = "dtype"}, {.kind = "rank"}, {.kind = "rank"}};

    (void)state;
    assert_int_equal(rp_torch_guard_main(guards, 3), 1);
    assert_int_equal(rp_torch_guard_main(guards, 2), 0);
}

/* ------------------------------------------------------------------ graphs as programs */

static const char graph_text[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(\n"
    "        self,\n"
    "        s27: \"Sym(s27)\",  # PlainAOTInput(idx=0)\n"
    "        x: \"f32[8, s27][s27, 1]cuda:0\",  # PlainAOTInput(idx=1)\n"
    "        w: \"f32[4, 16][16, 1]cuda:0\",  # PlainAOTInput(idx=2)\n"
    "    ):\n"
    "        # File: /home/a/model.py:8 in forward, code: return (x @ w.t())\n"
    "        l_x_ = x\n"
    "        permute: \"f32[16, 4][1, 16]cuda:0\" = torch.ops.aten.permute.default(w, [1, 0]);  w = None\n"
    "        mm: \"f32[8, 4][4, 1]cuda:0\" = torch.ops.aten.mm.default(l_x_, permute);  l_x_ = None\n"
    "        # No stacktrace found for following nodes\n"
    "        split = mm.split(\"mm, x\")\n"
    "        first: \"b8[8][1]cuda:0\" = split[0];  split = None\n"
    "        mm += x;  mm_1: \"i64[8][1]cuda:0\" = mm\n"
    "        return (first, mm_1)\n"
    "    class body_0(torch.nn.Module):\n"
    "        def forward(self, arg0, arg1: \"bf16[2]\"):\n"
    "            return arg1\n";

static struct rp_program *read_program(const char *text, struct rp_import *to)
{
    const struct rp_read_options options = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    *to = (struct rp_import)RP_IMPORT_INIT;
    assert_ok(
        rp_input_open_memory("a.log!fx:1/0:forward.03.x", text, strlen(text), NULL, &in, &err),
        &err);
    assert_ok(rp_format_read(in, &options, to, &err), &err);
    assert_string_equal(to->format->name, "fx");
    assert_ok(rp_program_validate(to->program, &err), &err);
    return to->program;
}

static void assert_op(const struct rp_program *p, uint32_t op, const char *want)
{
    struct rp_ids operands = rp_op_operands(p, op);
    char shape[64], text[256];
    size_t n;

    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    n = (size_t)snprintf(text, sizeof text, "%s %s", rp_op_opcode_name(p, op), shape);
    for (uint32_t i = 0; i < operands.n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %u", operands.at[i]);
    assert_string_equal(text, want);
}

static void graphs_are_programs(void **state)
{
    struct rp_source_line at;
    struct rp_import import;
    struct rp_program *p = read_program(graph_text, &import);
    uint32_t n;

    (void)state;
    assert_string_equal(rp_program_text(p, p->name), "1/0:forward.03.x");
    assert_int_equal(p->computations.n, 2);
    assert_int_equal(p->entry, 0);
    assert_int_equal(p->computations.at[0].nparams, 3);
    assert_op(p, 1, "parameter f32[8,?]");
    assert_op(p, 3, "aten.permute.default f32[16,4] 2");
    assert_op(p, 4, "aten.mm.default f32[8,4] 1 3");
    assert_op(p, 5, "split ? 4"); /* names in a string are not operands */
    assert_op(p, 6, "getitem pred[8] 5");
    assert_op(p, 7, "+= s64[8] 4 1");
    assert_op(p, 8, "tuple ? 6 7");
    assert_op(p, 10, "parameter bf16[2]");
    assert_op(p, 11, "tuple ? 10");
    assert_true(rp_op_source(p, 4, &at) && at.line == 8 && !strcmp(at.function, "forward"));
    assert_false(rp_op_source(p, 5, &at));
    assert_int_equal(p->given.n, 0); /* s27 is not known */
    (void)rp_op_attrs(p, 3, &n);     /* (%, [1, 0]); of mm there is nothing but nodes */
    assert_int_equal(n, 1);
    (void)rp_op_attrs(p, 4, &n);
    assert_int_equal(n, 0);
    rp_import_release(&import);
}

static void products_have_work(void **state)
{
    struct rp_import import;
    struct rp_program *p = read_program(
        "class <lambda>(torch.nn.Module):\n"
        "    def forward(self, a: \"f32[8, 16]\", b: \"f32[16, 4]\", c: \"f32[2, 8, 64, 16]\"):\n"
        "        mm: \"f32[8, 4]\" = torch.ops.aten.mm.default(a, b)\n"
        "        view: \"f32[4, 8]\" = mm.view(4, 8)\n"
        "        s = torch.ops.aten._scaled_dot_product_flash_attention.default(c, c, c)\n"
        "        return (view, s)\n",
        &import);

    (void)state;
    assert_true(p->given.at[3].flops == 2 * 8 * 16 * 4);
    assert_true(p->given.at[3].bytes == 4 * (8 * 16 + 16 * 4 + 8 * 4));
    assert_true(p->given.at[4].bytes == 0);
    assert_true(p->given.at[5].flops == 4.0 * 2 * 8 * 64 * 64 * 16); /* heads before the sequence */
    rp_import_release(&import);
}

int test_torch_trace(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_compile_has_its_numbers),
        cmocka_unit_test(calls_have_lines),
        cmocka_unit_test(the_order_of_records_does_not_matter),
        cmocka_unit_test(ids_begin_again),
        cmocka_unit_test(problems_are_counted),
        cmocka_unit_test(a_cut_log_loses_one_record),
        cmocka_unit_test(ranks_come_from_records_and_names),
        cmocka_unit_test(breaks_in_all_words),
        cmocka_unit_test(guards_say_what_differed),
        cmocka_unit_test(most_guards_decide),
        cmocka_unit_test(graphs_are_programs),
        cmocka_unit_test(products_have_work),
    };

    return cmocka_run_group_tests_name("torch_trace", tests, NULL, NULL);
}
