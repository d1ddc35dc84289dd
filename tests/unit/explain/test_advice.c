/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice for every kind of program: each finding has some, and no line names what such a program
 * does not have, or what it does already.
 */
#include "explain/report/advice.h"
#include "facts/host/signs.h"
#include "facts/ranks/collective_args.h"
#include "unit.h"

#include <ctype.h>

/* Whether a text has a part, without case. */
static bool has(const char *text, const char *part)
{
    size_t i, n = strlen(part);

    for (; *text; text++) {
        for (i = 0; i < n && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]);
             i++)
            ;
        if (i == n)
            return true;
    }
    return false;
}

/* Words that only some programs may hear. */
enum {
    ABOUT_NVIDIA,
    ABOUT_AMD,
    ABOUT_TRAINING,
    ABOUT_GRAPHS, /* to use them */
    ABOUT_FUSED,
    ABOUT_TORCH,
    ABOUT_CODE, /* in PyTorch: of the user of a framework, not of a server */
    ABOUT_JAX,
    ABOUT_TENSORFLOW,
    ABOUT_VLLM,
    ABOUT_SGLANG,
    ABOUT_DDP,
    ABOUT_PINNING,
    ABOUT_COLLECTIVES,
    ABOUT_COUNT
};

static const char *const words_about[ABOUT_COUNT] = {
    [ABOUT_NVIDIA] = "cuda|nvidia|cublas|cudnn",
    [ABOUT_AMD] = "hipGraph|hipMalloc|HIP graphs|rocm|rccl|amd-smi",
    [ABOUT_TRAINING] = "optimizer|backward|gradient|fused=True|DistributedDataParallel",
    [ABOUT_GRAPHS] = "reduce-overhead|enforce-eager|make_graphed|BeginCapture|-disable-cuda-gr",
    [ABOUT_FUSED] = "fused=True|FusedAdam",
    [ABOUT_TORCH] = "torch.|DataLoader(num|DataLoader(pin|.item()|PYTORCH_|TORCH_LOGS",
    [ABOUT_CODE] = "torch.compile(|DataLoader(num|DataLoader(pin|.item()|torch.optim",
    [ABOUT_JAX] = "jax|XLA_FLAGS=--xla_gpu",
    [ABOUT_TENSORFLOW] = "tf.|Keras",
    [ABOUT_VLLM] = "vllm",
    [ABOUT_SGLANG] = "sglang",
    [ABOUT_DDP] = "bucket_cap_mb|no_sync()",
    [ABOUT_PINNING] = "pin_memory|pinned|HostAlloc|HostMalloc",
    [ABOUT_COLLECTIVES] = "collective|nccl"};

static unsigned about_of(const char *text)
{
    unsigned i, about = 0;
    char copy[400], *word, *rest;

    for (i = 0; i < ABOUT_COUNT; i++) {
        snprintf(copy, sizeof copy, "%s", words_about[i]);
        rest = copy;
        while ((word = strtok_r(rest, "|", &rest)) != NULL)
            about |= has(text, word) ? 1u << i : 0;
    }
    return about;
}

/* What the rows are about, computed once; programs and kinds of findings are many. */
static unsigned row_about[1000];

static unsigned find_about(const char *text)
{
    size_t n, i;
    const struct rp_advice_row *rows = rp_advice_rows(&n);

    for (i = 0; i < n && rows[i].text != text; i++)
        ;
    assert_true(i < n);
    return row_about[i];
}

/* What a program must not hear. */
static unsigned forbidden(const struct rp_workload *w, enum rp_found found)
{
    bool server = w->framework == RP_FRAMEWORK_VLLM || w->framework == RP_FRAMEWORK_SGLANG ||
                  w->framework == RP_FRAMEWORK_TENSORRT_LLM;
    bool torch = w->framework == RP_FRAMEWORK_PYTORCH;
    unsigned no = 0;

#define FORBID(about, condition) no |= (condition) ? 1u << ABOUT_##about : 0
    FORBID(NVIDIA, w->vendor != RP_VENDOR_NVIDIA && w->framework != RP_FRAMEWORK_TENSORRT_LLM);
    FORBID(AMD, w->vendor != RP_VENDOR_AMD);
    FORBID(TRAINING, w->mode != RP_MODE_TRAINING);
    FORBID(GRAPHS, w->graphs);
    FORBID(FUSED, !w->plain_update);
    FORBID(TORCH, !torch && !server);
    FORBID(CODE, !torch);
    FORBID(JAX, w->framework != RP_FRAMEWORK_JAX);
    FORBID(TENSORFLOW, w->framework != RP_FRAMEWORK_TENSORFLOW);
    FORBID(VLLM, w->framework != RP_FRAMEWORK_VLLM);
    FORBID(SGLANG, w->framework != RP_FRAMEWORK_SGLANG);
    FORBID(DDP, w->parallel != RP_PARALLEL_DDP);
    FORBID(PINNING, found == RP_FOUND_COPIES_INSIDE || found == RP_FOUND_COPIES_BACK ||
                        found == RP_FOUND_COPIES_FILL || found == RP_FOUND_COPIES_PINNED);
    FORBID(COLLECTIVES, found == RP_FOUND_LOW_OCCUPANCY);
#undef FORBID
    return no;
}

static void check_line(const struct rp_advice *a, const struct rp_workload *w, enum rp_found found)
{
    unsigned wrong = find_about(a->text) & forbidden(w, found), i = 0;

    while (wrong && !(wrong >> i & 1))
        i++;
    if (wrong)
        fail_msg("%s for %s, %s, %s%s%s: '%s' says one of '%s'", rp_found_texts[found].id,
                 rp_framework_names[w->framework], rp_vendor_names[w->vendor],
                 rp_mode_names[w->mode], w->compiled ? ", compiled" : "",
                 w->graphs ? ", graphs" : "", a->text, words_about[i]);
    if (w->graphs && a->what_if)
        assert_string_not_equal(a->what_if, "cuda-graphs");
    if (w->compiled && a->what_if)
        assert_string_not_equal(a->what_if, "fuse");
}

static void check_program(const struct rp_workload *w)
{
    struct rp_advice a[RP_ADVICE_MOST];
    int found;
    size_t i, n;

    for (found = 0; found < RP_FOUNDS; found++) {
        n = rp_advice_find((enum rp_found)found, w, a);
        if (n < 1 || n > RP_ADVICE_MOST)
            fail_msg("%s: %zu lines for %s", rp_found_texts[found].id, n,
                     rp_framework_names[w->framework]);
        for (i = 0; i < n; i++)
            check_line(&a[i], w, (enum rp_found)found);
    }
}

/* Keys of a few rows each are varied one after the other. */
static void check_rare_keys(struct rp_workload w)
{
    struct rp_workload v = w;

    for (v.transport = 0; v.transport < RP_TRANSPORTS; v.transport++)
        check_program(&v);
    v = w;
    for (v.serves = 1; v.serves < RP_SERVES_COUNT; v.serves++)
        check_program(&v);
    v = w;
    v.with_stack = true;
    check_program(&v);
}

/* What is sent matters to few findings: once for each kind of program is enough. */
static void check_collectives(struct rp_workload w)
{
    for (w.collective = 0; w.collective < RP_COLL_KINDS; w.collective++)
        for (int half = 0; half < 2; half++) {
            w.half_comm = half;
            check_program(&w);
        }
}

/* Of the flags only those that a program can have: a server updates no parameters. */
static void check_flags(struct rp_workload w)
{
    unsigned flags;

    for (flags = 0; flags < 8; flags++) {
        w.compiled = flags & 1;
        w.graphs = flags & 2;
        w.plain_update = flags & 4;
        if (!w.plain_update || w.mode == RP_MODE_TRAINING)
            check_rare_keys(w);
    }
}

static void every_program_gets_advice_in_its_own_words(void **state)
{
    size_t n, i;
    const struct rp_advice_row *rows = rp_advice_rows(&n);
    struct rp_workload w = {0};

    UNUSED_STATE(state);
    SKIP_WITHOUT_THREADS();
    assert_true(n <= sizeof row_about / sizeof row_about[0]);
    for (i = 0; i < n; i++) {
        assert_true(!*rows[i].text || (strlen(rows[i].text) > 10 && strlen(rows[i].text) < 150));
        row_about[i] = about_of(rows[i].text);
    }
    for (w.framework = 0; w.framework < RP_FRAMEWORKS; w.framework++)
        for (w.vendor = 0; w.vendor < RP_VENDORS; w.vendor++)
            for (w.mode = 0; w.mode < RP_MODES; w.mode++)
                for (w.parallel = 0; w.parallel < RP_PARALLELS; w.parallel++) {
                    check_flags(w);
                    if (w.vendor == RP_VENDOR_NVIDIA && w.mode == RP_MODE_TRAINING)
                        check_collectives(w);
                }
}

static bool is_advised(enum rp_found found, const struct rp_workload *w, const char *part)
{
    struct rp_advice advice[RP_ADVICE_MOST];
    size_t i, n = rp_advice_find(found, w, advice);

    for (i = 0; i < n; i++)
        if (strstr(advice[i].text, part))
            return true;
    return false;
}

/* By the collective that takes the time, and what it sends, also where ranks are missing. */
static void advice_fits_what_is_sent(void **state)
{
    const enum rp_found both[] = {RP_FOUND_EXPOSED_COMM, RP_FOUND_EXPOSED_PARTLY};
    struct rp_workload w = {.framework = RP_FRAMEWORK_PYTORCH,
                            .vendor = RP_VENDOR_NVIDIA,
                            .mode = RP_MODE_TRAINING,
                            .parallel = RP_PARALLEL_DDP,
                            .collective = RP_COLL_ALL_REDUCE};

    UNUSED_STATE(state);
    for (size_t i = 0; i < 2; i++) {
        w.collective = RP_COLL_ALL_REDUCE;
        w.half_comm = false;
        assert_true(is_advised(both[i], &w, "bf16_compress_hook"));
        assert_true(is_advised(both[i], &w, "bucket_cap_mb"));
        w.half_comm = true;
        assert_false(is_advised(both[i], &w, "compress_hook"));
        assert_true(is_advised(both[i], &w, "no_sync()"));
        w.collective = RP_COLL_ALL_TO_ALL;
        assert_false(is_advised(both[i], &w, "bucket_cap_mb"));
        assert_false(is_advised(both[i], &w, "bf16"));
        assert_true(is_advised(both[i], &w, "all_to_all"));
        w.collective = RP_COLL_SEND_RECV;
        assert_true(is_advised(both[i], &w, "micro-batches"));
        assert_false(is_advised(both[i], &w, "bucket_cap_mb"));
    }
}

/* Otherwise the second could never be chosen. */
static void no_two_rows_have_the_same_keys(void **state)
{
    size_t n, i, k;
    const struct rp_advice_row *rows = rp_advice_rows(&n);

    UNUSED_STATE(state);
    for (i = 0; i < n; i++)
        for (k = 0; k < i; k++)
            if (rows[i].found == rows[k].found && rows[i].topic == rows[k].topic &&
                !memcmp(&rows[i].frameworks, &rows[k].frameworks,
                        offsetof(struct rp_advice_row, text) -
                            offsetof(struct rp_advice_row, frameworks)))
                fail_msg("two rows for the same programs: '%s' and '%s'", rows[i].text,
                         rows[k].text);
}

static void the_most_special_row_wins(void **state)
{
    struct rp_workload w = {
        .framework = RP_FRAMEWORK_PYTORCH, .vendor = RP_VENDOR_AMD, .mode = RP_MODE_INFERENCE};
    struct rp_advice a[RP_ADVICE_MOST];
    size_t n = rp_advice_find(RP_FOUND_LAUNCH_BOUND, &w, a);

    UNUSED_STATE(state);
    assert_true(n >= 2);
    assert_contains(a[0].text, "HIP graphs");
    assert_string_equal(a[0].what_if, "cuda-graphs");
    w.framework = RP_FRAMEWORK_VLLM;
    w.mode = RP_MODE_SERVING;
    w.graphs = true;
    n = rp_advice_find(RP_FOUND_LAUNCH_BOUND, &w, a);
    assert_contains(a[0].text, "--max-num-seqs");
    assert_contains(a[1].text, "--async-scheduling");
    w.in_graphs = true; /* its batch has a graph: to make one is no advice */
    n = rp_advice_find(RP_FOUND_LAUNCH_BOUND, &w, a);
    assert_contains(a[0].text, "--async-scheduling");
    w.framework = RP_FRAMEWORK_SGLANG;
    w.vendor = RP_VENDOR_NVIDIA;
    n = rp_advice_find(RP_FOUND_LAUNCH_BOUND, &w, a);
    assert_contains(a[0].text, "overlap-schedule");
    w.framework = RP_FRAMEWORK_JAX; /* nor are shorter graphs, where a step is one */
    w.mode = RP_MODE_TRAINING;
    n = rp_advice_find(RP_FOUND_LAUNCH_BOUND, &w, a);
    assert_contains(a[0].text, "a step is a graph already");
    assert_string_equal(a[0].what_if, "no-sync");
    w.in_graphs = false;
    w.framework = RP_FRAMEWORK_PYTORCH;
    w.mode = RP_MODE_TRAINING;
    w.vendor = RP_VENDOR_NVIDIA;
    w.graphs = false;
    w.plain_update = true;
    n = rp_advice_find(RP_FOUND_LAUNCH_BOUND, &w, a);
    assert_int_equal(n, 3);
    assert_contains(a[1].text, "fused=True");
    assert_string_equal(a[1].what_if, "fused-optimizer");
}

static void input_is_known_by_its_names(void **state)
{
    UNUSED_STATE(state);
    assert_true(rp_host_prepares_input("normalize_images"));
    assert_true(rp_host_prepares_input("transformers/image_transforms.py(412): normalize"));
    assert_false(rp_host_prepares_input("nn.Module: TransformerBlock_0"));
    assert_false(rp_host_prepares_input("aten::mm"));
    assert_false(rp_host_prepares_input(NULL));
    assert_true(rp_host_prepares_input("read_shard_from_nfs"));
    assert_false(rp_host_prepares_input("thread_pool"));
}

static void host_work_is_told_apart(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_found_host_work("preprocess (40 % of it)"), RP_FOUND_HOST_INPUT);
    assert_int_equal(rp_found_host_work("/tmp/torchinductor_root/ov/cov4.py(2533): call"),
                     RP_FOUND_HOST_COMPILED);
    assert_int_equal(rp_found_host_work("aten::arange"), RP_FOUND_HOST_OPERATOR);
    assert_int_equal(rp_found_host_work("ExecutorState::Process"), RP_FOUND_HOST_EXECUTOR);
    assert_int_equal(rp_found_host_work("PjRtStreamExecutorLoadedExecutable::Execute"),
                     RP_FOUND_HOST_EXECUTOR);
    assert_int_equal(rp_found_host_work("write_checkpoint"), RP_FOUND_HOST_WORK);
    assert_int_equal(rp_found_host_work(NULL), RP_FOUND_HOST_WORK);
}

static void late_ranks_are_told_apart(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_found_straggler("compute", "gemm"), RP_FOUND_STRAGGLER_COMPUTE);
    assert_int_equal(rp_found_straggler("host_work", "read_shard"), RP_FOUND_STRAGGLER_INPUT);
    assert_int_equal(rp_found_straggler("data_loader", NULL), RP_FOUND_STRAGGLER_INPUT);
    assert_int_equal(rp_found_straggler("host_work", "save"), RP_FOUND_STRAGGLER_HOST);
    assert_int_equal(rp_found_straggler("previous", "all_reduce"), RP_FOUND_STRAGGLER);
    assert_int_equal(rp_found_straggler(NULL, NULL), RP_FOUND_STRAGGLER);
}

static void copies_are_told_apart(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_found_copies("Memcpy HtoD (Pageable -> Device)"), RP_FOUND_COPIES_PAGEABLE);
    assert_int_equal(rp_found_copies("Memcpy HtoD (Pinned -> Device)"), RP_FOUND_COPIES_PINNED);
    assert_int_equal(rp_found_copies("Memcpy DtoH (Device -> Pageable)"), RP_FOUND_COPIES_BACK);
    assert_int_equal(rp_found_copies("Memcpy DtoD (Device -> Device)"), RP_FOUND_COPIES_INSIDE);
    assert_int_equal(rp_found_copies("Memset (Device)"), RP_FOUND_COPIES_FILL);
    assert_int_equal(rp_found_copies("Memcpy HtoD (Host -> Device)"), RP_FOUND_COPIES);
    assert_int_equal(rp_found_copies(NULL), RP_FOUND_COPIES);
}

/* A profiler of the whole system has no options of a framework's. */
static void system_profilers_are_not_the_frameworks(void **state)
{
    struct rp_advice lines[RP_ADVICE_MOST];
    struct rp_workload w = {0};
    size_t n, i;
    int found;

    UNUSED_STATE(state);
    for (w.system = RP_SYSTEM_NSYS; w.system < RP_SYSTEMS; w.system++)
        for (w.framework = 0; w.framework < RP_FRAMEWORKS; w.framework++)
            for (found = 0; found < RP_FOUNDS; found++) {
                w.vendor = w.system == RP_SYSTEM_NSYS ? RP_VENDOR_NVIDIA : RP_VENDOR_AMD;
                n = rp_advice_find((enum rp_found)found, &w, lines);
                for (i = 0; i < n; i++) {
                    assert_false(has(lines[i].text, "profiler.profile("));
                    assert_false(has(lines[i].text, "ProfilerActivity"));
                    assert_false(has(lines[i].text, "profiler.schedule("));
                    assert_false(has(lines[i].text, "rocprofv3") && w.system == RP_SYSTEM_NSYS);
                    assert_false(has(lines[i].text, "nsys") && w.system != RP_SYSTEM_NSYS);
                }
            }
}

/* Of a recording of ours advice names the options of `record`, not of another profiler. */
static void our_recordings_name_record(void **state)
{
    static const enum rp_found found[] = {
        RP_FOUND_HOST_WORK,     RP_FOUND_HOST_SILENT,   RP_FOUND_PROFILER,
        RP_FOUND_PROFILER_HOST, RP_FOUND_HOST_CODE,     RP_FOUND_NO_OPERATOR,
        RP_FOUND_START_UP,      RP_FOUND_ATYPICAL_STEP, RP_FOUND_FRAGMENTATION};
    static const uint8_t frameworks[] = {RP_FRAMEWORK_PYTORCH, RP_FRAMEWORK_JAX,
                                         RP_FRAMEWORK_TENSORFLOW, RP_FRAMEWORK_NATIVE};
    size_t i, k, a, n;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof found / sizeof found[0]; i++)
        for (k = 0; k < sizeof frameworks; k++) {
            struct rp_workload w = {.framework = frameworks[k], .ours = true};
            struct rp_advice advice[RP_ADVICE_MOST];

            n = rp_advice_find(found[i], &w, advice);
            for (a = 0; a < n; a++) {
                assert_false(has(advice[a].text, "profiler.profile("));
                assert_false(has(advice[a].text, "profiler.schedule("));
                assert_false(has(advice[a].text, "profiler.start_trace("));
                assert_false(has(advice[a].text, "profile_batch"));
                assert_false(has(advice[a].text, "ProfileOptions"));
                assert_false(has(advice[a].text, "ProfilerOptions"));
            }
        }
}

int test_advice(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_program_gets_advice_in_its_own_words),
        cmocka_unit_test(advice_fits_what_is_sent),
        cmocka_unit_test(no_two_rows_have_the_same_keys),
        cmocka_unit_test(the_most_special_row_wins),
        cmocka_unit_test(copies_are_told_apart),
        cmocka_unit_test(input_is_known_by_its_names),
        cmocka_unit_test(host_work_is_told_apart),
        cmocka_unit_test(late_ranks_are_told_apart),
        cmocka_unit_test(system_profilers_are_not_the_frameworks),
        cmocka_unit_test(our_recordings_name_record),
    };

    return cmocka_run_group_tests_name("advice", tests, NULL, NULL);
}
