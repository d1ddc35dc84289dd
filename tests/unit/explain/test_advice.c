/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice for every kind of program: each finding has some, and no line names what such a program
 * does not have, or what it does already.
 */
#include "explain/findings/finding.h"
#include "facts/host/signs.h"
#include "facts/ranks/collective_args.h"
#include "unit.h"

#include <ctype.h>
#include <limits.h>

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

#define FINDINGS 40

/* What the rows of each finding are about, computed once; programs and kinds are many. */
static unsigned row_about[FINDINGS][100];

/* A kind of a finding. */
struct kind {
    size_t finding;
    unsigned at;
};

static const struct rp_finding *finding_at(const struct kind *kind)
{
    return rp_finding_rows[kind->finding];
}

/* The next kind of all findings; false: there are no more. Begin with {0, UINT_MAX}. */
static bool next_kind(struct kind *kind)
{
    if (kind->at == UINT_MAX || finding_at(kind)->kinds[kind->at + 1].title)
        return kind->at++, rp_finding_rows[0] != NULL;
    *kind = (struct kind){kind->finding + 1, 0};
    return finding_at(kind) != NULL;
}

static bool is_kind(const struct kind *kind, const char *id, const char *key)
{
    return !strcmp(finding_at(kind)->id, id) && !strcmp(finding_at(kind)->kinds[kind->at].key, key);
}

static struct kind kind_of(const struct rp_finding *finding, const char *key)
{
    struct kind kind = {0, rp_finding_kind(finding, key)};

    while (finding_at(&kind) != finding)
        kind.finding++;
    assert_non_null(finding->kinds[kind.at].title);
    return kind;
}

static size_t advise(const struct rp_finding *finding, const char *key, const struct rp_workload *w,
                     const struct rp_advice_row *out[RP_ADVICE_MOST])
{
    return rp_advice_find(finding, rp_finding_kind(finding, key), w, out);
}

/* What a program must not hear. */
static unsigned forbidden(const struct rp_workload *w, const struct kind *kind)
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
    FORBID(PINNING, is_kind(kind, "copies", "inside") || is_kind(kind, "copies", "back") ||
                        is_kind(kind, "copies", "fill") || is_kind(kind, "copies", "pinned"));
    FORBID(COLLECTIVES, is_kind(kind, "low-occupancy", ""));
#undef FORBID
    return no;
}

static void check_line(const struct rp_advice_row *a, const struct rp_workload *w,
                       const struct kind *kind)
{
    size_t row = (size_t)(a - finding_at(kind)->advice);
    unsigned wrong = row_about[kind->finding][row] & forbidden(w, kind), i = 0;

    while (wrong && !(wrong >> i & 1))
        i++;
    if (wrong)
        fail_msg("%s for %s, %s, %s%s%s: '%s' says one of '%s'", finding_at(kind)->id,
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
    const struct rp_advice_row *a[RP_ADVICE_MOST];
    struct kind kind = {0, UINT_MAX};
    size_t i, n;

    while (next_kind(&kind)) {
        n = rp_advice_find(finding_at(&kind), kind.at, w, a);
        if (n < 1 || n > RP_ADVICE_MOST)
            fail_msg("%s: %zu lines for %s", finding_at(&kind)->id, n,
                     rp_framework_names[w->framework]);
        for (i = 0; i < n; i++)
            check_line(a[i], w, &kind);
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
    struct rp_workload w = {0};

    UNUSED_STATE(state);
    SKIP_WITHOUT_THREADS();
    for (size_t f = 0; rp_finding_rows[f]; f++) {
        const struct rp_finding *row = rp_finding_rows[f];

        assert_true(f < FINDINGS && row->nadvice <= 100);
        for (size_t i = 0; i < row->nadvice; i++) {
            const char *text = row->advice[i].text;

            assert_true(!*text || (strlen(text) > 10 && strlen(text) < 150));
            row_about[f][i] = about_of(text);
        }
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

static bool is_advised(const char *key, const struct rp_workload *w, const char *part)
{
    const struct rp_advice_row *advice[RP_ADVICE_MOST];
    size_t i, n = advise(&rp_finding_exposed_comm, key, w, advice);

    for (i = 0; i < n; i++)
        if (strstr(advice[i]->text, part))
            return true;
    return false;
}

/* By the collective that takes the time, and what it sends, also where ranks are missing. */
static void advice_fits_what_is_sent(void **state)
{
    static const char *const both[] = {"device", "ranks missing"};
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
    UNUSED_STATE(state);
    for (size_t f = 0; rp_finding_rows[f]; f++)
        for (size_t i = 0; i < rp_finding_rows[f]->nadvice; i++)
            for (size_t k = 0; k < i; k++) {
                const struct rp_advice_row *a = &rp_finding_rows[f]->advice[i];
                const struct rp_advice_row *b = &rp_finding_rows[f]->advice[k];

                if ((!a->kinds || !b->kinds || a->kinds & b->kinds) && a->topic == b->topic &&
                    !memcmp(&a->frameworks, &b->frameworks,
                            offsetof(struct rp_advice_row, text) -
                                offsetof(struct rp_advice_row, frameworks)))
                    fail_msg("two rows for the same programs: '%s' and '%s'", a->text, b->text);
            }
}

static void the_most_special_row_wins(void **state)
{
    struct rp_workload w = {
        .framework = RP_FRAMEWORK_PYTORCH, .vendor = RP_VENDOR_AMD, .mode = RP_MODE_INFERENCE};
    const struct rp_advice_row *a[RP_ADVICE_MOST];
    size_t n = advise(&rp_finding_launch_bound, "", &w, a);

    UNUSED_STATE(state);
    assert_true(n >= 2);
    assert_contains(a[0]->text, "HIP graphs");
    assert_string_equal(a[0]->what_if, "cuda-graphs");
    w.framework = RP_FRAMEWORK_VLLM;
    w.mode = RP_MODE_SERVING;
    w.graphs = true;
    n = advise(&rp_finding_launch_bound, "", &w, a);
    assert_contains(a[0]->text, "--max-num-seqs");
    assert_contains(a[1]->text, "--async-scheduling");
    w.in_graphs = true; /* its batch has a graph: to make one is no advice */
    n = advise(&rp_finding_launch_bound, "", &w, a);
    assert_contains(a[0]->text, "--async-scheduling");
    w.framework = RP_FRAMEWORK_SGLANG;
    w.vendor = RP_VENDOR_NVIDIA;
    n = advise(&rp_finding_launch_bound, "", &w, a);
    assert_contains(a[0]->text, "overlap-schedule");
    w.framework = RP_FRAMEWORK_JAX; /* nor are shorter graphs, where a step is one */
    w.mode = RP_MODE_TRAINING;
    n = advise(&rp_finding_launch_bound, "", &w, a);
    assert_contains(a[0]->text, "a step is a graph already");
    assert_string_equal(a[0]->what_if, "no-sync");
    w.in_graphs = false;
    w.framework = RP_FRAMEWORK_PYTORCH;
    w.mode = RP_MODE_TRAINING;
    w.vendor = RP_VENDOR_NVIDIA;
    w.graphs = false;
    w.plain_update = true;
    n = advise(&rp_finding_launch_bound, "", &w, a);
    assert_int_equal(n, 3);
    assert_contains(a[1]->text, "fused=True");
    assert_string_equal(a[1]->what_if, "fused-optimizer");
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

static void check_silence(const struct kind *kind, const struct rp_workload *w,
                          const char *const *words)
{
    const struct rp_advice_row *rows[RP_ADVICE_MOST];
    size_t n = rp_advice_find(finding_at(kind), kind->at, w, rows);

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; words[k]; k++)
            assert_false(has(rows[i]->text, words[k]));
}

/* A profiler of the whole system has no options of a framework's. */
static void system_profilers_are_not_the_frameworks(void **state)
{
    static const char *const nsys[] = {"profiler.profile(", "ProfilerActivity",
                                       "profiler.schedule(", "rocprofv3", NULL};
    static const char *const rocm[] = {"profiler.profile(", "ProfilerActivity",
                                       "profiler.schedule(", "nsys", NULL};
    struct rp_workload w = {0};

    UNUSED_STATE(state);
    for (w.system = RP_SYSTEM_NSYS; w.system < RP_SYSTEMS; w.system++)
        for (w.framework = 0; w.framework < RP_FRAMEWORKS; w.framework++) {
            struct kind kind = {0, UINT_MAX};

            w.vendor = w.system == RP_SYSTEM_NSYS ? RP_VENDOR_NVIDIA : RP_VENDOR_AMD;
            while (next_kind(&kind))
                check_silence(&kind, &w, w.system == RP_SYSTEM_NSYS ? nsys : rocm);
        }
}

/* Of a recording of ours advice names the options of `record`, not of another profiler. */
static void our_recordings_name_record(void **state)
{
    static const char *const words[] = {"profiler.profile(",
                                        "profiler.schedule(",
                                        "profiler.start_trace(",
                                        "profile_batch",
                                        "ProfileOptions",
                                        "ProfilerOptions",
                                        NULL};
    static const uint8_t frameworks[] = {RP_FRAMEWORK_PYTORCH, RP_FRAMEWORK_JAX,
                                         RP_FRAMEWORK_TENSORFLOW, RP_FRAMEWORK_NATIVE};
    const struct kind kinds[] = {kind_of(&rp_finding_host_work, "other"),
                                 kind_of(&rp_finding_host_unrecorded, ""),
                                 kind_of(&rp_finding_profiler_overhead, "device"),
                                 kind_of(&rp_finding_profiler_overhead, "host"),
                                 kind_of(&rp_finding_host_code, ""),
                                 kind_of(&rp_finding_no_operator, ""),
                                 kind_of(&rp_finding_start_up, ""),
                                 kind_of(&rp_finding_atypical_step, ""),
                                 kind_of(&rp_finding_fragmentation, "freed")};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (size_t k = 0; k < sizeof frameworks; k++) {
            struct rp_workload w = {.framework = frameworks[k], .ours = true};

            check_silence(&kinds[i], &w, words);
        }
}

int test_advice(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_program_gets_advice_in_its_own_words),
        cmocka_unit_test(advice_fits_what_is_sent),
        cmocka_unit_test(no_two_rows_have_the_same_keys),
        cmocka_unit_test(the_most_special_row_wins),
        cmocka_unit_test(input_is_known_by_its_names),
        cmocka_unit_test(system_profilers_are_not_the_frameworks),
        cmocka_unit_test(our_recordings_name_record),
    };

    return cmocka_run_group_tests_name("advice", tests, NULL, NULL);
}
