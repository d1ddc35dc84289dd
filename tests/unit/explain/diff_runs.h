/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_DIFF_RUNS_H
#define RP_TESTS_DIFF_RUNS_H
/* Runs of a small model for tests of `diff`: five steps of calls, each with its kernel. */
#include "explain/diff/diff.h"
#include "explain/diff/noise.h"
#include "result/part.h"
#include "trace/trace_fixtures.h"

#define STEPS 5
#define MOST  64

/* A call of the model: its range (or NULL), operator (NULL: a bare kernel), shape, kernel, time;
   operators around it ("linear/linear"). */
struct call {
    const char *range, *op, *shape, *kernel;
    int64_t ns;
    const char *outer;
};

static const struct call plain[] = {
    {NULL, "aten::mm", "[[8, 4], [4, 2]]", "gemm", 40000},
    {NULL, "aten::gelu", "[[8, 2]]", "gelu", 8000},
    {NULL, "aten::mm", "[[8, 4], [4, 2]]", "gemm", 40000},
    {NULL, "aten::gelu", "[[8, 2]]", "gelu", 8000},
    {"Optimizer.step", "aten::add_", "[[4, 2]]", "add", 3000},
    {"Optimizer.step", "aten::add_", "[[4, 2]]", "add", 3000},
    {"Optimizer.step", "aten::mul_", "[[4, 2]]", "mul", 3000},
};
#define CALLS (sizeof plain / sizeof plain[0])

/* Lengths that steps get on top, so that they vary. */
static const int64_t none[STEPS] = {0}, some[STEPS] = {400, -300, 200, -100, 0},
                     much[STEPS] = {40000, -30000, 20000, -10000, 0};

struct maker {
    struct row rows[STEPS * (3 * MOST + 4)];
    size_t n;
};

static inline void add(struct maker *m, struct row row)
{
    m->rows[m->n++] = row;
}

/* The operators around a call, the outermost first. */
static inline void add_outer(struct maker *m, const char *names, int64_t host)
{
    static char kept[64][32]; /* names of rows must live as long as the rows */
    static size_t used;

    while (names && *names) {
        size_t n = strcspn(names, "/");
        char *name = kept[used++ % 64];

        snprintf(name, 32, "%.*s", (int)n, names);
        add(m, (struct row){'X', "cpu_op", name, 1, 1, host, 450});
        names += n + (names[n] == '/');
    }
}

/* One step from `begin` on; returns where its device work ends. */
static inline int64_t add_step(struct maker *m, int step, int64_t begin, const struct call *calls,
                               size_t n)
{
    int64_t host = begin, device = begin + 10000;
    size_t i, k;

    for (i = 0; i < n; i++) {
        const struct call *c = &calls[i];
        int64_t corr = 1 + step * MOST + (int64_t)i;

        if (c->range && (!i || !calls[i - 1].range)) {
            for (k = i; k < n && calls[k].range; k++)
                ;
            add(m,
                (struct row){'X', "user_annotation", c->range, 1, 1, host, (int64_t)(k - i) * 500});
        }
        add_outer(m, c->outer, host);
        if (c->op)
            add(m, (struct row){'X', "cpu_op", c->op, 1, 1, host, 400, 0, 0, 0, NULL, 0, 0,
                                c->shape ? "Input Dims" : NULL, c->shape});
        add(m, (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, host + 100, 50, corr});
        if (c->kernel)
            add(m, (struct row){'X', "kernel", c->kernel, 0, 7, device, c->ns, corr, 7});
        host += 500;
        device += c->ns + 100;
    }
    return device;
}

static inline struct rp_trace *run_of(const struct call *calls, size_t n, const int64_t *jitter)
{
    static const char *const names[STEPS] = {"ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3",
                                             "ProfilerStep#4", "ProfilerStep#5"};
    struct maker *m = calloc(1, sizeof *m);
    int64_t begin = 0;
    struct rp_trace *t;
    int s;

    for (s = 0; s < STEPS; s++) {
        size_t mark = m->n++;
        int64_t end = add_step(m, s, begin, calls, n) + 50000 + jitter[s];

        m->rows[mark] = (struct row){'X', "user_annotation", names[s], 1, 1, begin, end - begin};
        begin = end;
    }
    t = trace_of(m->rows, m->n);
    free(m);
    return t;
}

struct comparison {
    struct rp_arena arena;
    struct rp_trace_diff_root root;
};

#define PATHS .paths = {"a.json", "b.json"}
static const struct rp_trace_diff_options all_rows = {PATHS, .fail_share = -1, .fail_ns = -1};

static inline void make_part(struct comparison *c, const struct rp_trace *t,
                             struct rp_trace_diff_part *part)
{
    assert_code(rp_trace_diff_rank(t, NULL, NULL, true, &c->arena, part, NULL), RP_OK);
    assert_code(rp_part_adopt(&rp_trace_diff_part_type, part, &c->arena, NULL), RP_OK);
}

static inline void compare_traces(struct comparison *c, struct rp_trace *a, struct rp_trace *b,
                                  const struct rp_trace_diff_options *options)
{
    struct rp_trace_diff_part parts[2];
    struct rp_trace_diff_input in[2] = {{&parts[0], 0}, {&parts[1], 0}};

    *c = (struct comparison){0};
    make_part(c, a, &parts[0]);
    make_part(c, b, &parts[1]);
    assert_code(rp_trace_diff_join(&in[0], 1, &in[1], 1, options, &c->arena, &c->root, NULL),
                RP_OK);
    rp_trace_free(a);
    rp_trace_free(b);
}

#endif
