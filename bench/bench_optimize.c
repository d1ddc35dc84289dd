/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast plans are tried, and how soon the best is found.
 *
 *     bench_optimize [--svg FILE] DIR      a dPRO directory (tests/generate/dpro.py --preset r32)
 *     bench_optimize TRACE…                the ranks of a run
 *
 * Of a directory: groups of tensors tried a second on the model of the search, and message by
 * message; then the best step over time, with the walk and with the chains alone. Of traces: what
 * the search tries, a second, where only what a change reaches is simulated again, and where
 * everything is (processor time).
 */
#include "dataset/question.h"
#include "draw/plot.h"
#include "opt/job_model.h"
#include "sim/model/simulated_steps.h"
#include "sim/simulate.h"

#include <math.h>
#include <reprise/context.h>
#include <reprise/dataset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void must(enum rp_code code, const struct rp_err *err)
{
    if (code == RP_OK)
        return;
    fprintf(stderr, "bench_optimize: %s\n", err->text);
    exit(1);
}

static double now_s(void)
{
    return (double)rp_opt_clock_ns() * 1e-9;
}

/* ------------------------------------------------------------------ a job */

static void time_plans(const struct rp_opt_job_model *m, struct rp_err *err)
{
    uint8_t *ends = calloc(m->n + 1, 1);
    double began = now_s(), ns, sum = 0;
    size_t i, n = 0;

    for (i = 0; now_s() - began < 1; i++) {
        ends[(i * 7) % m->n] ^= 1;
        must(rp_opt_groups_step(&m->chain, ends, &ns, err), err);
        sum += ns;
        n++;
    }
    printf("model of the search   %10.0f plans a second (mean step %.1f ms)\n",
           (double)n / (now_s() - began), sum / (double)n * 1e-6);
    free(ends);
}

/* One plan message by message: made, and simulated. */
static void time_messages(const struct rp_job *job, const struct rp_opt_job_model *m,
                          struct rp_err *err)
{
    struct rp_job_plan_group *groups = calloc(m->n + 1, sizeof *groups);
    int64_t *ids = calloc(m->n + 1, sizeof *ids), step;
    struct rp_sim_part part;
    const struct rp_sim_part *parts[] = {&part};
    struct rp_sim_run run;
    struct rp_sim_result result = {0};
    struct rp_job_plan plan = {.ngroups = m->n, .groups = groups};
    double began = now_s(), made;
    size_t i;

    for (i = 0; i < m->n; i++) {
        ids[i] = job->tensors.at[m->tensors[i]].id;
        groups[i] = (struct rp_job_plan_group){1, &ids[i]};
    }
    must(rp_sim_part_of_plan(&part, job, &plan, err), err);
    must(rp_sim_run_init(&run, parts, 1, err), err);
    made = now_s();
    must(rp_simulate(&run.overlay, &result, err), err);
    must(rp_sim_step_ns(&run, &result, &step, err), err);
    printf("message by message    %10.2f plans a second (%zu tasks at %u points of the cycle; "
           "simulating alone: %.2f)\n",
           1 / (now_s() - began), run.tasks.tasks.n, part.nsteps, 1 / (now_s() - made));
    rp_sim_result_release(&result);
    rp_sim_run_release(&run);
    rp_sim_part_release(&part);
    free(groups);
    free(ids);
}

struct curve {
    const char *name;
    struct rp_point points[512];
    size_t n;
};

static void search(const struct rp_opt_job_model *m, bool walk, struct curve *out,
                   struct rp_err *err)
{
    struct rp_opt_chain chain = m->chain;
    struct rp_opt_workspace w;
    struct rp_opt_limits limits = {.until_ns = INT64_MAX, .seed = 1, .workspace = &w};
    uint8_t *ends = calloc(m->n + 1, 1);
    double best, began;
    size_t tried, i;

    must(rp_opt_workspace_open(&w, NULL, false, err), err);
    rp_opt_job_recorded(m, ends);
    chain.no_walk = !walk;
    began = now_s();
    must(rp_opt_search_groups(&chain, &limits, ends, &best, &tried, err), err);
    printf("%s: %.3f ms after %zu plans in %.2f s (%.0f a second)\n", out->name, best * 1e-6, tried,
           now_s() - began, (double)tried / (now_s() - began));
    for (i = 0; i < w.points.n && out->n < 510; i++) {
        const struct rp_opt_point *p = &w.points.at[i];

        out->points[out->n++] = (struct rp_point){fmax((double)p->after_ns, 1e5), p->step_ns};
        if (i < 8 || i + 1 == w.points.n || i % 16 == 0)
            printf("  %9.3f s  %8lld plans  %.3f ms\n", (double)p->after_ns * 1e-9,
                   (long long)p->tried, p->step_ns * 1e-6);
    }
    out->points[out->n++] = (struct rp_point){(now_s() - began) * 1e9, best};
    rp_opt_workspace_release(&w);
    free(ends);
}

static void draw(const char *path, const struct curve *curves, size_t n, struct rp_err *err)
{
    struct rp_svg svg;
    struct rp_out *to;
    double low = INFINITY, high = 0, last = 0;
    struct rp_plot plot;
    size_t i, k;

    for (i = 0; i < n; i++)
        for (k = 0; k < curves[i].n; k++) {
            low = fmin(low, curves[i].points[k].y);
            high = fmax(high, curves[i].points[k].y);
            last = fmax(last, curves[i].points[k].x);
        }
    plot = (struct rp_plot){
        .left = 90,
        .top = 50,
        .width = 640,
        .height = 280,
        .x = {RP_SCALE_LOG, RP_UNIT_NS, 1e5, last, "time of the search"},
        .y = {RP_SCALE_LINEAR, RP_UNIT_NS, low * 0.98, high * 1.01, "best step so far"}};
    must(rp_out_open(path, &to, err), err);
    rp_svg_begin(&svg, to, 780, 400, "optimize: 32 ranks, 41 tensors", NULL);
    rp_plot_begin(&plot, &svg);
    for (i = 0; i < n; i++) {
        rp_plot_steps(&plot, curves[i].points, curves[i].n, (unsigned)i, RP_LINE_PLAIN);
        rp_svg_text(&svg, 560, 90 + 18 * (double)i, RP_ANCHOR_START, RP_TEXT_PLAIN, curves[i].name);
        rp_svg_rect(&svg, 540, 80 + 18 * (double)i, 14, 10, (unsigned)i, 1);
    }
    rp_plot_end(&plot);
    rp_svg_end(&svg);
    must(rp_out_close(to, err), err);
}

static void bench_job(struct rp_ctx *ctx, struct rp_dataset *dataset, const char *svg,
                      struct rp_err *err)
{
    static struct curve curves[2] = {{.name = "walk, then chains"}, {.name = "chains alone"}};
    struct rp_opt_job_model m;
    struct rp_job job;
    double began;

    must(rp_load_job(ctx, dataset, &job, err), err);
    must(rp_job_align(&job, err), err);
    must(rp_load_job_tensors(dataset, &job, err), err);
    began = now_s();
    must(rp_opt_job_model_init(&m, &job, NULL, err), err);
    printf("%zu ranks, %zu tensors; the model is learned in %.2f s\n", m.nranks, m.n,
           now_s() - began);
    time_plans(&m, err);
    time_messages(&job, &m, err);
    search(&m, true, &curves[0], err);
    search(&m, false, &curves[1], err);
    if (svg)
        draw(svg, curves, 2, err);
    rp_opt_job_model_release(&m);
    rp_job_release(&job);
}

/* ------------------------------------------------------------------ traces */

/* A search tries these; the last two touch one operator only. */
static const char *const tries[] = {"cuda-graphs",
                                    "fused-optimizer",
                                    "dtype=bf16",
                                    "fuse",
                                    "no-sync",
                                    "fused-optimizer+cuda-graphs",
                                    "recompute=aten::gelu",
                                    "scale:aten::gelu=0.5",
                                    "scale:aten::addmm=0.5"};

/* Of this process: the machine may be busy with others. */
static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double step_s(struct rp_opt_run *x, const char *text, bool whole, bool *ok)
{
    double began;
    int i, n = 10;

    x->whole = whole;
    began = cpu_s();
    for (i = 0; i <= n; i++) {
        struct rp_err why = RP_ERR_INIT;
        int64_t ns;

        *ok = rp_opt_run_step(x, text, &ns, &why) == RP_OK;
        if (!*ok)
            return 0;
        if (!i)
            began = cpu_s(); /* the first prepares */
    }
    return (cpu_s() - began) / n;
}

static enum rp_code bench_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                               struct rp_result *result, struct rp_err *err)
{
    const struct rp_sim_part **parts = calloc(ranks->n + 1, sizeof *parts);
    struct rp_opt_run x;
    double again = 0, whole = 0;
    size_t i, n = 0;

    (void)settings;
    (void)result;
    for (i = 0; i < ranks->n; i++)
        parts[i] = ranks->parts[i].data;
    must(rp_opt_run_init(&x, parts, ranks->n, NULL, err), err);
    printf("%zu ranks, %zu tasks\n%-30s %12s %12s %10s\n", ranks->n, x.run.tasks.tasks.n, "change",
           "incremental", "everything", "simulated");
    for (i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        bool ok;
        double a = step_s(&x, tries[i], false, &ok), b;
        size_t visited = x.base.visited;

        if (!ok)
            continue;
        b = step_s(&x, tries[i], true, &ok);
        printf("%-30s %9.2f ms %9.2f ms %8.1f %%\n", tries[i], a * 1e3, b * 1e3,
               100.0 * (double)visited / (double)x.run.tasks.tasks.n);
        again += a;
        whole += b;
        n++;
    }
    if (n)
        printf("moves a second: %.0f incremental, %.0f everything\n", (double)n / again,
               (double)n / whole);
    rp_opt_run_release(&x);
    free((void *)parts);
    return RP_OK;
}

static const struct rp_option no_options[] = {RP_OPTION_END};
static const struct rp_rank_row bench_row = {
    .part = &rp_sim_part_type, .waits = true, .rank = rp_sim_rank_part, .join = bench_join};

int main(int argc, char **argv)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_settings settings;
    struct rp_result *result;
    struct rp_dataset *dataset;
    struct rp_ctx *ctx;
    const char *svg = NULL;
    int first = 1;

    if (argc > 2 && !strcmp(argv[1], "--svg")) {
        svg = argv[2];
        first = 3;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: bench_optimize [--svg FILE] DIR|TRACE…\n");
        return 2;
    }
    must(rp_ctx_new(NULL, &ctx, &err), &err);
    must(rp_open(ctx, (const char *const *)argv + first, (size_t)(argc - first), NULL, &dataset,
                 &err),
         &err);
    if (rp_dataset_is_job(dataset)) {
        bench_job(ctx, dataset, svg, &err);
    } else {
        must(rp_settings_init(&settings, no_options, NULL, 0, &err), &err);
        must(rp_result_new(&rp_sim_part_type, &result, &err), &err);
        must(rp_ask_ranks(ctx, dataset, &settings, &bench_row, result, &err), &err);
        rp_result_free(result);
    }
    rp_dataset_free(dataset);
    rp_ctx_free(ctx);
    return 0;
}
