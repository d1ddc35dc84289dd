/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files in dump folders, and the modules they make. */
#include "formats/dump/folder.h"
#include "unit.h"

#include <stdlib.h>

static const struct {
    const char *path;
    enum rp_dump_role role;
    enum rp_dump_point point;
    int64_t id;
    const char *module, *stage;
} names[] = {
    {"d/module_3976.jit_f.before_optimizations.txt", RP_DUMP_PROGRAM, RP_DUMP_AT_BEFORE, 3976,
     "jit_f", "before_optimizations"},
    {"module_0001.a.b_3.cpu_after_optimizations.hlo.pb.gz", RP_DUMP_PROGRAM, RP_DUMP_AT_AFTER, 1,
     "a.b_3", "cpu_after_optimizations"},
    {"module_0001.f.sm_9.0a_gpu_after_optimizations.txt", RP_DUMP_PROGRAM, RP_DUMP_AT_AFTER, 1, "f",
     "sm_9.0a_gpu_after_optimizations"},
    {"module_0001.f.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt", RP_DUMP_BUFFERS,
     RP_DUMP_AT_NONE, 1, "f", ""},
    {"module_0001.f.gfx942_gpu_after_optimizations-buffer-assignment-values.txt", RP_DUMP_VALUES,
     RP_DUMP_AT_NONE, 1, "f", ""},
    {"module_0001.f.cpu_after_optimizations-live-range.txt", RP_DUMP_LIVE_RANGE, RP_DUMP_AT_NONE, 1,
     "f", ""},
    {"module_0001.f.cpu_after_optimizations-memory-usage-report.txt", RP_DUMP_MEMORY_REPORT,
     RP_DUMP_AT_NONE, 1, "f", ""},
    {"module_0001.f.tpu_after_optimizations_before_buffer_assignment.txt", RP_DUMP_PROGRAM,
     RP_DUMP_AT_BEYOND, 1, "f", "tpu_after_optimizations_before_buffer_assignment"},
    {"module_0001.f.0021.fusion.after_cse.before_pipeline-end.txt", RP_DUMP_PROGRAM,
     RP_DUMP_AT_PASS, 1, "f", "0021.fusion.after_cse.before_pipeline-end"},
    {"module_0001.f.0061.copy-insertion.after_adding_special-case_copies.hlo.pb", RP_DUMP_PROGRAM,
     RP_DUMP_AT_PASS, 1, "f", "0061.copy-insertion.after_adding_special-case_copies"},
    {"module_0001.f.7.g.after_cse.txt", RP_DUMP_OTHER, RP_DUMP_AT_NONE, 1, "f", ""},
    {"module_0001.f.after_spmd_partitioner.txt", RP_DUMP_PROGRAM, RP_DUMP_AT_NAMED, 1, "f",
     "after_spmd_partitioner"},
    {"module_0001.f", RP_DUMP_OTHER, RP_DUMP_AT_NONE, 1, "f", ""},
    {"module_0002.after_optimizations.dot", RP_DUMP_DRAWING, RP_DUMP_AT_NONE, 2, "", ""},
    {"1763162372123456.module_0002.f.before_optimizations.txt", RP_DUMP_PROGRAM, RP_DUMP_AT_BEFORE,
     2, "f", "before_optimizations"},
    {"module_3977.f.execution_0004.hlo_unoptimized_snapshot.pb", RP_DUMP_EXECUTION, RP_DUMP_AT_RUN,
     3977, "f", "execution_0004.hlo_unoptimized_snapshot"},
    {"module_a_inference_12.3.execution_0000.hlo_snapshot.pb", RP_DUMP_EXECUTION, RP_DUMP_AT_RUN,
     -1, "a_inference_12.3", "execution_0000.hlo_snapshot"},
    {"module_0005.f.snapshot.17.pb", RP_DUMP_EXECUTION, RP_DUMP_AT_RUN, 5, "f", "snapshot.17"},
    {"module_0007.metadata.textproto", RP_DUMP_PASS_TIMES, RP_DUMP_AT_NONE, 7, "", ""},
    {"module_0007.f.debug_options", RP_DUMP_CONFIG, RP_DUMP_AT_NONE, 7, "f", ""},
    {"module_0007.f.gpu_target_config.pbtxt", RP_DUMP_TARGET, RP_DUMP_AT_NONE, 7, "f", ""},
    {"module_0007.f.autotune_results.pbtxt", RP_DUMP_AUTOTUNE, RP_DUMP_AT_NONE, 7, "f", ""},
    {"module_0007.f.thunk_sequence_after_thunk_passes.txt", RP_DUMP_THUNKS, RP_DUMP_AT_NONE, 7, "f",
     ""},
    {"module_0007.f.thunk_metadata.pb", RP_DUMP_THUNK_METADATA, RP_DUMP_AT_NONE, 7, "f", ""},
    {"module_0007.f.priority_fusion_dump.txt", RP_DUMP_FUSION_LOG, RP_DUMP_AT_NONE, 7, "f", ""},
    {"module_0007.f.obj-file.wrapped_scatter.1.o", RP_DUMP_OBJECT, RP_DUMP_AT_NONE, 7, "f", ""},
    {"module_0007.f.3.ir-no-opt.ll", RP_DUMP_LLVM, RP_DUMP_AT_NONE, 7, "f", ""},
    {"module_0007.f.fusion_3.ptx", RP_DUMP_PTX, RP_DUMP_AT_NONE, 7, "f", ""},
    {"d/module_3976.jit_f/module.mlir", RP_DUMP_PROGRAM, RP_DUMP_AT_SOURCE, 3976, "jit_f",
     "source"},
    {"d/module_3976.jit_f/topology.textproto", RP_DUMP_TARGET, RP_DUMP_AT_NONE, 3976, "jit_f", ""},
    {"d/module_3976.jit_f/compile_options.pb", RP_DUMP_CONFIG, RP_DUMP_AT_NONE, 3976, "jit_f", ""},
    {"mark_for_compilation_annotated_2.pbtxt", RP_DUMP_PROGRAM, RP_DUMP_AT_NAMED, 2, "",
     "mark_for_compilation_annotated"},
    {"encapsulate_fdef_graph_cluster_0.pbtxt", RP_DUMP_PROGRAM, RP_DUMP_AT_NAMED, -1, "cluster_0",
     "encapsulate_fdef_graph"},
    {"xla_compile_graph_cluster_1.pbtxt.gz", RP_DUMP_PROGRAM, RP_DUMP_AT_NAMED, -1, "cluster_1",
     "xla_compile_graph"},
    {"jax_ir0007_jit_f_x_compile.mlir", RP_DUMP_PROGRAM, RP_DUMP_AT_SOURCE, 7, "jit_f_x",
     "compile"},
};

static void reads_names(void **state)
{
    struct rp_dump_name name;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!rp_dump_name_read(names[i].path, &name))
            fail_msg("not known: %s", names[i].path);
        if (name.role != names[i].role || name.point != names[i].point || name.id != names[i].id)
            fail_msg("%s: role %d point %d id %lld", names[i].path, (int)name.role, (int)name.point,
                     (long long)name.id);
        assert_int_equal(name.module_n, strlen(names[i].module));
        assert_memory_equal(name.module, names[i].module, name.module_n);
        assert_int_equal(name.stage_n, strlen(names[i].stage));
        assert_memory_equal(name.stage, names[i].stage, name.stage_n);
    }
    assert_true(rp_dump_name_read("module_1.f.cpu_after_optimizations.hlo.pb", &name) &&
                name.proto);
    assert_true(rp_dump_name_read("module_1.f.0012.p.after_a.txt", &name) && name.number == 12);
}

static void passes_over_others(void **state)
{
    static const char *const others[] = {"",
                                         "model.hlo.txt",
                                         "module_",
                                         "module_x.txt",
                                         "a/b/c",
                                         "rank0.json.gz",
                                         "module",
                                         "module_12",
                                         "jax_ir",
                                         "jax_ir7_f.mlir",
                                         "mark_for_compilation_x.pbtxt",
                                         "graph.pbtxt"};
    struct rp_dump_name name;
    char *longest = malloc(70000);

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (rp_dump_name_read(others[i], &name))
            fail_msg("taken: '%s'", others[i]);
    memset(longest, '.', 69999);
    longest[69999] = '\0';
    memcpy(longest, "module_1", 8);
    assert_false(rp_dump_name_read(longest, &name));
    free(longest);
}

static const char *const folder[] = {
    "r/module_0010.f.cpu_after_optimizations.txt",                /* 0 */
    "r/module_0010.f.before_optimizations.txt",                   /* 1 */
    "r/module_0010.f.before_optimizations.hlo.pb",                /* 2 */
    "r/module_0010.f.0002.p.after_b.before_c.txt",                /* 3 */
    "r/module_0010.f.0001.p.after_a.before_b.txt",                /* 4 */
    "r/module_0010.f/module.mlir",                                /* 5 */
    "r/module_0010.metadata.textproto",                           /* 6 */
    "r/module_0011.f.execution_0000.hlo_unoptimized_snapshot.pb", /* 7 */
    "r/module_0011.g.h.cpu_after_optimizations.txt",              /* 8 */
    "r/module_0011.g.h.fusion.1.ptx",                             /* 9 */
    "r/notes.txt",                                                /* 10 */
    "s/module_0010.f.before_optimizations.txt",                   /* 11 */
    "s/module_0010.f.add_fusion_kernel_module.ir-no-opt.ll",      /* 12: CPU, a file a kernel */
};
#define NFOLDER (sizeof folder / sizeof *folder)

static void joins_modules(void **state)
{
    static const size_t order[] = {5, 2, 4, 3, 0, 7};
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_dump dump;
    const struct rp_dump_module *f;

    (void)state;
    assert_ok(rp_dump_index(folder, NFOLDER, &arena, &dump, &err), &err);
    assert_int_equal(dump.nmodules, 3);
    assert_int_equal(dump.nfiles, NFOLDER - 1);
    f = &dump.modules[0];
    assert_string_equal(f->name, "f");
    assert_string_equal(f->root, "r");
    assert_int_equal(f->id, 10);
    assert_int_equal(f->nfiles, 8);
    assert_int_equal(f->nstages, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(f->stages[i].source, order[i]);
    assert_int_equal(f->stages[1].nfiles, 2);
    assert_string_equal(dump.modules[1].name, "g.h");
    assert_int_equal(dump.modules[1].nfiles, 2);
    assert_string_equal(dump.modules[2].root, "s");
    assert_int_equal(dump.modules[2].nfiles, 2);
    rp_arena_release(&arena);
}

static void finds(const struct rp_dump *dump, const char *module, const char *stage, size_t source)
{
    struct rp_err err = RP_ERR_INIT;
    bool wanted[3];
    size_t m = 0, s;

    assert_ok(rp_dump_find_modules(dump, module, wanted, &err), &err);
    while (!wanted[m])
        m++;
    for (size_t i = m + 1; i < dump->nmodules; i++)
        assert_false(wanted[i]);
    assert_ok(rp_dump_find_stage(&dump->modules[m], stage, &s, &err), &err);
    assert_int_equal(dump->modules[m].stages[s].source, source);
}

static void finds_stages(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_dump dump;
    bool many[3];
    size_t found;

    (void)state;
    assert_ok(rp_dump_index(folder, NFOLDER - 2, &arena, &dump, &err), &err);
    finds(&dump, "f", "after", 0);
    finds(&dump, "10", "before", 2);
    finds(&dump, "module_0010.f", "source", 5);
    finds(&dump, "10.f", "2", 3);
    finds(&dump, "f", "after_a", 4);
    finds(&dump, "f", "run", 7);
    finds(&dump, "h", "after", 8);
    assert_code(rp_dump_find_stage(&dump.modules[0], "nowhere", &found, &err), RP_USAGE);
    assert_contains(err.text, "0001.p.after_a.before_b");
    assert_code(rp_dump_find_modules(&dump, "x", many, &err), RP_USAGE);
    assert_contains(err.text, "11 g.h");
    assert_ok(rp_dump_index(folder, NFOLDER, &arena, &dump, &err), &err);
    assert_ok(rp_dump_find_modules(&dump, "f", many, &err), &err);
    assert_true(many[0] && !many[1] && many[2]);
    rp_arena_release(&arena);
}

int test_dump_dir(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_names),
        cmocka_unit_test(passes_over_others),
        cmocka_unit_test(joins_modules),
        cmocka_unit_test(finds_stages),
    };

    return cmocka_run_group_tests_name("dump_dir", tests, NULL, NULL);
}
