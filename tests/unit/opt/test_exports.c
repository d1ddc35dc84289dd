/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "opt/export/exports.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Four gradients in two groups, and something of everything else. */
static struct rp_opt_plan a_plan(enum rp_opt_source source)
{
    static struct rp_opt_tensor tensors[] = {
        {.id = 7, .name = "d\"4", .bytes = 4000000},
        {.id = 6, .name = "d3", .bytes = 2000000, .ready_ns = 1000000},
        {.id = 5, .name = "d2", .bytes = 1000000, .ready_ns = 3000000},
        {.id = 2, .name = "d1", .bytes = 500000, .ready_ns = 4000000}};
    static uint32_t first[] = {0}, second[] = {1, 2, 3};
    static struct rp_opt_group groups[] = {{1, first, 4000000, 1000000}, {3, second, 3500000, 0}};
    static const char *ops[] = {"net/a/Relu", "net/a/Mul"},
                      *others[] = {"net/Add", "net/Sub", "loss"};
    static struct rp_opt_cluster clusters[] = {{.nops = 2, .ops = ops}, {.nops = 3, .ops = others}};
    static struct rp_opt_region regions[] = {{"step"}};
    static struct rp_opt_cast casts[] = {{"aten::mm", "bf16", 4, 2000000, 1000000}};

    return (struct rp_opt_plan){.source = source,
                                .ranks = 4,
                                .baseline_ns = 20000000,
                                .best_ns = 15000000,
                                .ntensors = 4,
                                .tensors = tensors,
                                .ngroups = 2,
                                .groups = groups,
                                .bucket_cap_mb = source == RP_OPT_TORCH ? 3.5 : (double)NAN,
                                .nclusters = 2,
                                .clusters = clusters,
                                .fused_optimizer = true,
                                .optimizer = "Adam",
                                .nregions = 1,
                                .regions = regions,
                                .ncasts = 1,
                                .casts = casts};
}

static const char *text_of(const struct rp_opt_exports *x, const char *name)
{
    size_t i;

    for (i = 0; i < x->nfiles; i++)
        if (!strcmp(x->files[i].name, name))
            return x->files[i].text;
    return NULL;
}

static struct rp_opt_exports exports_of(enum rp_opt_source source, struct rp_arena *arena)
{
    struct rp_opt_plan plan = a_plan(source);
    struct rp_err err = RP_ERR_INIT;
    struct rp_opt_exports x;

    rp_arena_init(arena);
    assert_ok(rp_opt_exports_fill(&plan, arena, &x, &err), &err);
    return x;
}

/* Each framework is offered its own exports, and what each holds is what it takes. */
static void exports_fit_the_framework(void **state)
{
    static const struct {
        enum rp_opt_source source;
        const char *name; /* NULL: of all those after it none */
        const char *holds;
    } cases[] = {
        {RP_OPT_TORCH, "ddp", "\nBUCKET_CAP_MB = 3.5\nBUCKETS = [1, 3]  # "},
        {RP_OPT_TORCH, "ddp", "\nBUCKET_BYTES = [4000000, 3500000]\n"},
        {RP_OPT_TORCH, "ddp", "15.000 ms with the whole plan, 20.000 ms without it"},
        {RP_OPT_TORCH, "fsdp", "\nUNIT_BYTES = 1875000\n"},
        {RP_OPT_TORCH, "optimizer",
         "\noptimizer = torch.optim.Adam(model.parameters(), fused=True)"},
        {RP_OPT_TORCH, "cuda-graphs", "with torch.cuda.graph(graph):"},
        {RP_OPT_TORCH, "autocast", "\n    \"aten::mm\",  # 2.000 ms a step, 1.000 then\n"},
        {RP_OPT_TORCH, "horovod", NULL},
        {RP_OPT_TORCH, "xla-flags", NULL},
        {RP_OPT_TORCH, "dpro-groups", NULL},
        {RP_OPT_JAX, "xla-flags",
         " --xla_gpu_all_reduce_combine_threshold_bytes=4000000 "
         "--xla_gpu_all_gather_combine_threshold_bytes=4000000 "
         "--xla_gpu_reduce_scatter_combine_threshold_bytes=4000000\"\n"},
        {RP_OPT_JAX, "ddp", NULL},
        {RP_OPT_TENSORFLOW, "tf-xla",
         "--tf_xla_auto_jit=2 --tf_xla_min_cluster_size=2 --tf_xla_max_cluster_size=3\""},
        {RP_OPT_TENSORFLOW, "jit-compile",
         "    # scope 'net/a'\n    [\"net/a/Relu\", \"net/a/Mul\"],\n"},
        {RP_OPT_TENSORFLOW, "tf-amp", "_GRAPH_REWRITE_ALLOWLIST_ADD=aten::mm\n"},
        {RP_OPT_TENSORFLOW, "dpro-clusters",
         "net/a/Relu 0\nnet/a/Mul 0\nnet/Add 1\nnet/Sub 1\nloss 1\n"},
        {RP_OPT_HOROVOD, "horovod",
         "\nexport HOROVOD_FUSION_THRESHOLD=4000000\nexport HOROVOD_CYCLE_TIME=3  # ms\n"},
        {RP_OPT_HOROVOD, "horovod-groups",
         "GROUPS = [\n    [\"d\\\"4\"],\n    [\"d3\", \"d2\", \"d1\"],\n]\n"},
        {RP_OPT_HOROVOD, "dpro-groups", "{\"mapping\": [\"7\", \"2+5+6\"]}\n"},
        {RP_OPT_HOROVOD, "ddp", NULL},
        {RP_OPT_BYTEPS, "dpro-partitions", "Distributed_Push_Pull/BytePSPushPull.7 1000000\n"},
        {RP_OPT_BYTEPS, "horovod", NULL},
    };
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_arena arena;
        struct rp_opt_exports x = exports_of(cases[i].source, &arena);
        const char *text = text_of(&x, cases[i].name);

        if (!cases[i].holds)
            assert_null(text);
        else if (!text || !strstr(text, cases[i].holds))
            fail_msg("%s: no '%s' in\n%s", cases[i].name, cases[i].holds, text ? text : "nothing");
        rp_arena_release(&arena);
    }
}

/* What works with released software says so, in the answer and in its file. */
static void each_says_what_it_works_with(void **state)
{
    static const enum rp_opt_source sources[] = {RP_OPT_TORCH, RP_OPT_JAX, RP_OPT_TENSORFLOW,
                                                 RP_OPT_HOROVOD, RP_OPT_BYTEPS};
    size_t i, k;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        struct rp_arena arena;
        struct rp_opt_exports x = exports_of(sources[i], &arena);

        assert_true(x.nfiles > 0);
        for (k = 0; k < x.nfiles; k++) {
            assert_int_equal(x.files[k].stock, strncmp(x.files[k].name, "dpro", 4) != 0);
            assert_int_equal(x.files[k].stock, strstr(x.files[k].text, "stock") != NULL);
        }
        rp_arena_release(&arena);
    }
}

static void an_empty_plan_has_no_exports(void **state)
{
    struct rp_opt_plan plan = {.source = RP_OPT_TORCH, .bucket_cap_mb = NAN};
    struct rp_err err = RP_ERR_INIT;
    struct rp_opt_exports x;
    struct rp_arena arena;

    UNUSED_STATE(state);
    rp_arena_init(&arena);
    assert_ok(rp_opt_exports_fill(&plan, &arena, &x, &err), &err);
    assert_int_equal(x.nfiles, 0);
    assert_true(isnan(x.ddp.bucket_cap_mb));
    rp_arena_release(&arena);
}

static void exports_are_written(void **state)
{
    char folder[] = "/tmp/reprise-exports-XXXXXX", path[128], one[160];
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena;
    struct rp_opt_exports x = exports_of(RP_OPT_HOROVOD, &arena);
    struct stat st;
    size_t i;

    UNUSED_STATE(state);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/plan", folder);
    assert_ok(rp_opt_exports_write(&x, path, &err), &err);
    assert_ok(rp_opt_exports_write(&x, path, &err), &err); /* again */
    snprintf(path, sizeof path, "%s/plan/tensor_fusion_grp_mapping.json", folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, strlen(text_of(&x, "dpro-groups")));
    snprintf(one, sizeof one, "horovod=%s/plan/one", folder);
    assert_ok(rp_opt_exports_write(&x, one, &err), &err);
    assert_int_equal(stat(one + 8, &st), 0);
    assert_code(rp_opt_exports_write(&x, "ddp=/tmp/x", &err), RP_UNSUPPORTED);
    assert_code(rp_opt_exports_write(&x, "dpp=/tmp/x", &err), RP_USAGE);
    assert_ok(rp_opt_exports_check("./a=b", &err), &err); /* a folder */
    assert_ok(rp_opt_exports_write(&x, NULL, &err), &err);
    assert_int_equal(unlink(one + 8), 0);
    for (i = 0; i < x.nfiles; i++) {
        snprintf(path, sizeof path, "%s/plan/%s", folder, x.files[i].file);
        assert_int_equal(unlink(path), 0);
    }
    snprintf(path, sizeof path, "%s/plan", folder);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
    rp_arena_release(&arena);
}

int test_exports(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exports_fit_the_framework),
        cmocka_unit_test(each_says_what_it_works_with),
        cmocka_unit_test(an_empty_plan_has_no_exports),
        cmocka_unit_test(exports_are_written),
    };

    return cmocka_run_group_tests_name("exports", tests, NULL, NULL);
}
