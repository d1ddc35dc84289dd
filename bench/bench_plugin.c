/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_plugin PLUGIN [RUNS]: what a run through the engine pjrt costs beside the plugin's own
 * work. A program of one addition runs RUNS times, in this process and in a child; for each:
 *
 *   clock_ns   median of what the engine reports: the plugin's execute and its completion, and our
 *              two calls of them
 *   around_ns  wall time of the whole loop for a run, less that: what we add around it
 *
 * With a plugin that does nothing (tests/doubles), clock_ns is our own cost inside of the clock.
 */
#include "exec/engine/timing.h"
#include "exec/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char program_text[] =
    "module @bench { func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> "
    "(tensor<4xf32>, tensor<4xf32>) { %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>\n"
    "return %0, %arg1 : tensor<4xf32>, tensor<4xf32> } }\n";

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static enum rp_code measure(const char *plugin, bool in_process, size_t n, struct rp_err *err)
{
    struct rp_engine_program program = {.name = "bench",
                                        .bytes = (const uint8_t *)program_text,
                                        .nbytes = sizeof program_text - 1,
                                        .format = "stablehlo"};
    struct rp_engine_options options = {.in_process = in_process};
    struct rp_executable *exe;
    struct rp_tensor *arguments[2];
    int64_t *ns = calloc(n, sizeof *ns), begin, wall, sum = 0;

    if (!ns)
        return rp_err_nomem(err, "the bench");
    for (size_t i = 0; i < 2; i++) {
        RP_TRY(rp_tensor_new(RP_ELEM_F32, (int64_t[]){4}, 1, &arguments[i], err));
        memset(arguments[i]->data, 0, rp_tensor_bytes(arguments[i]));
    }
    RP_TRY(rp_engine_pjrt.compile(plugin, &program, &options, &exe, err));
    RP_TRY(rp_engine_pjrt.upload(exe, arguments, err));
    RP_TRY(rp_engine_pjrt.run_timed(exe, n / 10 + 1, ns, err));
    begin = rp_clock_ns();
    RP_TRY(rp_engine_pjrt.run_timed(exe, n, ns, err));
    wall = rp_clock_ns() - begin;
    for (size_t i = 0; i < n; i++)
        sum += ns[i];
    qsort(ns, n, sizeof *ns, by_value);
    printf("%s: clock_ns %lld around_ns %lld\n", in_process ? "in process" : "in a child",
           (long long)ns[n / 2], (long long)((wall - sum) / (int64_t)n));
    rp_engine_pjrt.release(exe);
    for (size_t i = 0; i < 2; i++)
        rp_tensor_drop(arguments[i]);
    free(ns);
    return RP_OK;
}

int main(int argc, char **argv)
{
    struct rp_err err = RP_ERR_INIT;
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000;

    if (argc < 2 || !n) {
        fprintf(stderr, "usage: bench_plugin PLUGIN [RUNS]\n");
        return 2;
    }
    if (measure(argv[1], false, n, &err) || measure(argv[1], true, n, &err)) {
        fprintf(stderr, "bench_plugin: %s\n", err.text);
        return rp_code_exit_status(err.code);
    }
    return 0;
}
