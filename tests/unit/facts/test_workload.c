/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of program a trace is of, from names that real traces have. */
#include "facts/work/workload.h"
#include "trace/trace_fixtures.h"

static struct rp_workload workload_of(struct rp_trace *t)
{
    struct rp_workload w;

    assert_code(rp_workload_find(t, &w, NULL), RP_OK);
    rp_trace_free(t);
    return w;
}

static void a_server_is_named_before_its_framework(void **state)
{
    static const struct row vllm[] = {
        {'X', "user_annotation", "execute_8_context_0(0)_generation_8(8)", 1, 1, 0, 100},
        {'X', "cpu_op", "vllm::unified_attention", 1, 1, 10, 30},
        {'X', "cuda_runtime", "hipGraphLaunch", 1, 1, 14, 4, 5},
        {'X', "cuda_runtime", "hipLaunchKernel", 1, 1, 24, 4, 6},
        {'X', "kernel", "triton_poi_fused_add_0", 0, 7, 20, 30, 5, 7},
        {'X', "kernel", "void at::native::CUDAFunctor_add", 0, 7, 60, 3, 6, 7},
    };
    static const struct row sglang[] = {
        {'X', "user_annotation", "step[EXTEND bs=15 toks=15360]", 1, 1, 0, 100},
        {'X', "python_function", "vllm/distributed/utils.py(3): f", 1, 1, 5, 10},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 24, 4, 6},
        {'X', "kernel", "gemm", 0, 7, 60, 3, 6, 7},
        {'X', "user_annotation", "step[DECODE bs=32]", 1, 1, 200, 100},
    };
    struct rp_workload w = workload_of(TRACE_OF(vllm));

    UNUSED_STATE(state);
    assert_int_equal(w.framework, RP_FRAMEWORK_VLLM);
    assert_int_equal(w.vendor, RP_VENDOR_AMD);
    assert_int_equal(w.mode, RP_MODE_SERVING);
    assert_int_equal(w.serves, RP_SERVES_DECODE);
    assert_true(w.compiled && w.graphs && !w.plain_update && !w.with_stack);
    w = workload_of(TRACE_OF(sglang));
    assert_int_equal(w.framework, RP_FRAMEWORK_SGLANG); /* it uses parts of vLLM */
    assert_int_equal(w.vendor, RP_VENDOR_NVIDIA);
    assert_int_equal(w.serves, RP_SERVES_BOTH);
    assert_true(!w.graphs && w.with_stack);
}

/* llama.cpp has kernels with "fusion" among their arguments, and is not a program of XLA. */
static void kernels_of_xla_are_known_by_their_names(void **state)
{
    static const struct row xla[] = {{'X', "kernel", "loop_add_fusion_2", 0, 7, 60, 3, 6, 7}};
    static const struct row other[] = {{'X', "kernel",
                                        "void mul<8>(void const*, ggml_cuda_mm_fusion_args_device)",
                                        0, 7, 60, 3, 6, 7}};

    UNUSED_STATE(state);
    assert_int_equal(workload_of(TRACE_OF(xla)).framework, RP_FRAMEWORK_JAX);
    assert_int_equal(workload_of(TRACE_OF(other)).framework, RP_FRAMEWORK_UNKNOWN);
}

static void training_is_known_by_gradients_and_updates(void **state)
{
    static const struct row loop[] = {
        {'X', "cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, 1, 10, 30},
        {'X', "user_annotation", "Optimizer.step#AdamW.step", 1, 1, 50, 30},
        {'X', "cpu_op", "DistributedDataParallel.forward", 1, 1, 0, 9},
        {'X', "cpu_op", "nccl:all_reduce", 1, 1, 60, 9},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 24, 4, 6},
        {'X', "kernel", "gemm", 0, 7, 60, 3, 6, 7},
    };
    static const struct row fused[] = {
        {'X', "user_annotation", "Optimizer.step#AdamW.step", 1, 1, 50, 30},
        {'X', "cpu_op", "aten::_fused_adamw_", 1, 1, 52, 9},
    };
    static const struct row forward[] = {
        {'X', "cpu_op", "aten::linear", 1, 1, 10, 30},
        {'X', "cpu_op", "aten::_foreach_copy_", 1, 1, 50, 30},
        {'X', "python_function", "torch/optim/optimizer.py(1): step", 1, 1, 5, 1},
        {'X', "cuda_runtime", "hipLaunchKernel", 1, 1, 14, 4, 6},
        {'X', "kernel", "void at::native::multi_tensor_apply_kernel", 0, 7, 60, 3, 6, 7},
    };
    struct rp_workload w = workload_of(TRACE_OF(loop));

    UNUSED_STATE(state);
    assert_int_equal(w.mode, RP_MODE_TRAINING);
    assert_int_equal(w.parallel, RP_PARALLEL_DDP);
    assert_int_equal(w.transport, RP_TRANSPORT_NCCL);
    assert_int_equal(w.vendor, RP_VENDOR_NVIDIA);
    assert_true(w.plain_update && !w.compiled && !w.graphs);
    w = workload_of(TRACE_OF(fused));
    assert_int_equal(w.mode, RP_MODE_TRAINING);
    assert_int_equal(w.vendor, RP_VENDOR_NONE);
    assert_false(w.plain_update);
    w = workload_of(TRACE_OF(forward));
    assert_true(w.mode != RP_MODE_TRAINING);
    assert_int_equal(w.framework, RP_FRAMEWORK_PYTORCH);
    assert_int_equal(w.vendor, RP_VENDOR_AMD);
    assert_false(w.plain_update);
}

static void an_allocator_that_caches_nothing_is_seen(void **state)
{
    struct row rows[400];
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < 400; i++)
        rows[i] = (struct row){
            'X', "cuda_runtime", i % 2 ? "hipFree" : "hipMalloc", 1, 1, (int64_t)i * 10,
            4,   (int64_t)i};
    assert_true(workload_of(TRACE_OF(rows)).uncached);
    assert_true(workload_of(trace_of(rows, 200)).uncached);
    assert_false(workload_of(trace_of(rows, 198)).uncached); /* 99 of each */
    for (i = 0; i < 400; i++)
        rows[i].name = i % 4 ? "hipMalloc" : "hipFree"; /* it keeps two of three blocks */
    assert_false(workload_of(TRACE_OF(rows)).uncached);
    for (i = 0; i < 400; i++)
        rows[i].name = i % 3 ? "hipMalloc" : "hipFree"; /* half of them */
    assert_true(workload_of(trace_of(rows, 399)).uncached);
    rows[0].name = "hipMalloc"; /* 132 of 267 */
    assert_false(workload_of(trace_of(rows, 399)).uncached);
    for (i = 0; i < 400; i++)
        rows[i].name = i % 2 ? "hipHostFree" : "hipHostMalloc";
    assert_false(workload_of(TRACE_OF(rows)).uncached);
    for (i = 1; i < 400; i++)
        rows[i].name = i % 2 ? "hipFree" : "hipMalloc";
    rows[0] = (struct row){'X', "cpu_op", "aten::add", 1, 1, 0, 4000};
    assert_true(workload_of(TRACE_OF(rows)).uncached);
    rows[0].name = "aten::cudnn_convolution"; /* its library tries kernels */
    assert_false(workload_of(TRACE_OF(rows)).uncached);
}

/* Traces of one event, and what that alone says; the rest is not known, none or false. */
static void each_sign_alone(void **state)
{
    static const struct {
        const char *category, *name;
        struct rp_workload want;
    } rows[] = {
        {"cpu_op",
         "Megatron layer",
         {.mode = RP_MODE_TRAINING, .parallel = RP_PARALLEL_MEGATRON, .vendor = RP_VENDOR_NONE}},
        {"python_function",
         "deepspeed/engine.py(3): step",
         {.parallel = RP_PARALLEL_DEEPSPEED, .vendor = RP_VENDOR_NONE, .with_stack = true}},
        {"user_annotation",
         "FSDP::pre_forward",
         {.mode = RP_MODE_TRAINING, .parallel = RP_PARALLEL_FSDP, .vendor = RP_VENDOR_NONE}},
        {"cpu_op",
         "DistributedDataParallel.forward",
         {.mode = RP_MODE_TRAINING, .parallel = RP_PARALLEL_DDP, .vendor = RP_VENDOR_NONE}},
        {"kernel",
         "ncclDevKernel_AllReduce_Sum",
         {.parallel = RP_PARALLEL_OTHER, .transport = RP_TRANSPORT_NCCL}},
        {"cpu_op",
         "nccl:all_reduce",
         {.parallel = RP_PARALLEL_OTHER, .transport = RP_TRANSPORT_NCCL, .vendor = RP_VENDOR_NONE}},
        {"cpu_op",
         "gloo:all_reduce",
         {.parallel = RP_PARALLEL_OTHER, .transport = RP_TRANSPORT_GLOO, .vendor = RP_VENDOR_NONE}},
        {"collective_comm", "MPI_Allreduce", {.vendor = RP_VENDOR_NONE}}, /* of whatever program */
        {"cpu_op",
         "one_shot_x",
         {.vendor = RP_VENDOR_NONE}}, /* a kernel would be one that communicates */
        {"kernel", "void at::native::add", {.framework = RP_FRAMEWORK_PYTORCH}},
        {"cuda_runtime",
         "clEnqueueNDRangeKernel",
         {.framework = RP_FRAMEWORK_OPENCL, .vendor = RP_VENDOR_NONE}},
        {"cpu_op",
         "PjRt execute",
         {.framework = RP_FRAMEWORK_JAX, .compiled = true, .vendor = RP_VENDOR_NONE}},
        {"cpu_op",
         "aten::mm",
         {.framework = RP_FRAMEWORK_PYTORCH, .mode = RP_MODE_INFERENCE, .vendor = RP_VENDOR_NONE}},
        {"kernel", "Cijk_Alik_Bljk", {.vendor = RP_VENDOR_AMD}},
        {"kernel", "ampere_sgemm_128", {.vendor = RP_VENDOR_NVIDIA}},
        {"gpu_memcpy", "Memcpy HtoD", {.vendor = RP_VENDOR_UNKNOWN}},
        {"cpu_op", "mtia_launch", {.vendor = RP_VENDOR_META}},
        {"cpu_op",
         "mindspore/ops",
         {.framework = RP_FRAMEWORK_MINDSPORE, .vendor = RP_VENDOR_NONE}},
        {"python_function",
         "tensorrt_llm/run.py(3): f",
         {.framework = RP_FRAMEWORK_TENSORRT_LLM,
          .mode = RP_MODE_SERVING,
          .vendor = RP_VENDOR_NONE,
          .with_stack = true}},
        {"kernel",
         "vllm::paged_attention",
         {.framework = RP_FRAMEWORK_VLLM, .mode = RP_MODE_SERVING}},
        {"user_annotation",
         "execute_64_context_1(64)_generation_0(0)",
         {.framework = RP_FRAMEWORK_VLLM,
          .mode = RP_MODE_SERVING,
          .serves = RP_SERVES_PREFILL,
          .vendor = RP_VENDOR_NONE}},
        {"user_annotation",
         "execute_64_context_1(63)_generation_1(1)",
         {.framework = RP_FRAMEWORK_VLLM,
          .mode = RP_MODE_SERVING,
          .serves = RP_SERVES_BOTH,
          .vendor = RP_VENDOR_NONE}},
        {"user_annotation",
         "step[EXTEND bs=15 toks=15360]",
         {.framework = RP_FRAMEWORK_SGLANG,
          .mode = RP_MODE_SERVING,
          .serves = RP_SERVES_PREFILL,
          .vendor = RP_VENDOR_NONE}},
        {"cpu_op", "Torch-Compiled Region: 0/0", {.compiled = true, .vendor = RP_VENDOR_NONE}},
        {"cuda_runtime", "cudaGraphLaunch", {.graphs = true, .vendor = RP_VENDOR_NONE}},
        {"cpu_op",
         "aten::convolution_backward",
         {.mode = RP_MODE_TRAINING, .vendor = RP_VENDOR_NONE}},
        {"cpu_op",
         "adam_update",
         {.mode = RP_MODE_TRAINING, .plain_update = true, .vendor = RP_VENDOR_NONE}},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row one[] = {{'X', rows[i].category, rows[i].name, 1, 1, 0, 10, 1,
                                   strchr("kg", rows[i].category[0]) ? 7 : 0}};
        const struct rp_workload *want = &rows[i].want;
        struct rp_workload w = workload_of(TRACE_OF(one));

        if (w.framework != want->framework || w.vendor != want->vendor || w.mode != want->mode ||
            w.serves != want->serves || w.parallel != want->parallel ||
            w.transport != want->transport || w.compiled != want->compiled ||
            w.graphs != want->graphs || w.plain_update != want->plain_update ||
            w.with_stack != want->with_stack || w.uncached)
            fail_msg(
                "'%s': framework %u, vendor %u, mode %u, serves %u, parallel %u, transport %u, "
                "compiled %d, graphs %d, plain update %d",
                rows[i].name, w.framework, w.vendor, w.mode, w.serves, w.parallel, w.transport,
                w.compiled, w.graphs, w.plain_update);
    }
}

/* What the file's metadata says, where no event tells; and from two ranks on the run is parallel.
 */
static void metadata_tells_of_ranks(void **state)
{
    static const struct row row[] = {{'X', "cpu_op", "aten::mm", 1, 1, 0, 10}};
    static const struct row nccl[] = {
        {'X', "kernel", "ncclDevKernel_Broadcast", 0, 7, 0, 10, 1, 7}};
    static const struct {
        const char *info;
        int world_size;
        uint8_t transport, parallel;
    } rows[] = {
        {"{\"backend\": \"nccl\", \"rank\": 0}", 2, RP_TRANSPORT_NCCL, RP_PARALLEL_OTHER},
        {"{\"rank\": 0, \"backend\": \"gloo\"}", 2, RP_TRANSPORT_GLOO, RP_PARALLEL_OTHER},
        {"{\"backend\": \"mpi\"}", 3, RP_TRANSPORT_MPI, RP_PARALLEL_OTHER},
        {"{\"backend\": \"other\"}", 2, RP_TRANSPORT_NONE, RP_PARALLEL_OTHER},
        {"{\"backend\": 1}", 2, RP_TRANSPORT_NONE, RP_PARALLEL_OTHER},
        {"{\"backend\": \"nccl\"}", 1, RP_TRANSPORT_NONE, RP_PARALLEL_NONE},
        {"{\"backend\": \"gloo\"}", -1, RP_TRANSPORT_NCCL, RP_PARALLEL_OTHER}, /* with kernels */
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rp_builder *b = build_rows(rows[i].world_size < 0 ? nccl : row, 1);
        struct rp_trace *t;
        struct rp_workload w;

        assert_code(rp_builder_add_meta(b, str_of(b, "distributedInfo"), str_of(b, rows[i].info),
                                        false, NULL),
                    RP_OK);
        t = finish_valid(b);
        t->world_size = rows[i].world_size;
        w = workload_of(t);
        if (w.transport != rows[i].transport || w.parallel != rows[i].parallel)
            fail_msg("%s: transport %u, parallel %u", rows[i].info, w.transport, w.parallel);
    }
}

/* Recordings of our own say which frameworks the program imported; operators say more. */
static void a_version_names_the_framework(void **state)
{
    static const struct {
        const char *fact, *op;
        uint8_t framework;
    } rows[] = {{"framework.jax", "compute", RP_FRAMEWORK_JAX},
                {"framework.pytorch", "compute", RP_FRAMEWORK_PYTORCH},
                {"framework.jax", "aten::mm", RP_FRAMEWORK_PYTORCH},
                {"framework.numpy", "compute", RP_FRAMEWORK_UNKNOWN}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct row row = {'X', "cpu_op", rows[i].op, 1, 1, 0, 10};
        struct rp_builder *b = build_rows(&row, 1);

        assert_code(
            rp_builder_add_meta(b, str_of(b, rows[i].fact), str_of(b, "\"1.0\""), false, NULL),
            RP_OK);
        assert_int_equal(workload_of(finish_valid(b)).framework, rows[i].framework);
    }
}

static void optimizers_that_can_be_fused(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_update_of_mark("Optimizer.step#Adam.step"), RP_UPDATE_FUSIBLE);
    assert_int_equal(rp_update_of_mark("Optimizer.step#AdamW.step"), RP_UPDATE_FUSIBLE);
    assert_int_equal(rp_update_of_mark("Optimizer.step#SGD.step"), RP_UPDATE_FUSIBLE);
    assert_int_equal(rp_update_of_mark("Optimizer.step#Adagrad.step"), RP_UPDATE_FUSIBLE);
    assert_int_equal(rp_update_of_mark("Optimizer.step#Adamax.step"), RP_UPDATE_OTHER);
    assert_int_equal(rp_update_of_mark("Optimizer.step#Ada.step"), RP_UPDATE_OTHER);
    assert_int_equal(rp_update_of_mark("Optimizer.step#"), RP_UPDATE_OTHER);
    assert_int_equal(rp_update_of_mark("Optimizer.zero_grad#SGD.zero_grad"), RP_UPDATE_NONE);
}

/* What devices are called decides, then the calls of the runtime, versions of tools, and kernels.
 */
static void vendors_are_named(void **state)
{
    static const struct {
        const char *device, *category, *name, *meta;
        uint8_t vendor;
    } rows[] = {
        {"NVIDIA H200", "kernel", "k", NULL, RP_VENDOR_NVIDIA},
        {"Tesla V100", "kernel", "k", NULL, RP_VENDOR_NVIDIA},
        {"GeForce RTX", "kernel", "k", NULL, RP_VENDOR_NVIDIA},
        {"Quadro", "kernel", "k", NULL, RP_VENDOR_NVIDIA},
        {"AMD", "kernel", "k", NULL, RP_VENDOR_AMD},
        {"Instinct MI300", "kernel", "k", NULL, RP_VENDOR_AMD},
        {"Radeon", "kernel", "k", NULL, RP_VENDOR_AMD},
        {"gfx942", "kernel", "k", NULL, RP_VENDOR_AMD},
        {"Intel", "kernel", "k", NULL, RP_VENDOR_INTEL},
        {"TPU v5", "kernel", "k", NULL, RP_VENDOR_GOOGLE},
        {"MTIA", "kernel", "k", NULL, RP_VENDOR_META},
        {"ARTEMIS", "kernel", "k", NULL, RP_VENDOR_META},
        {"AMD", "kernel", "cutlass_x", NULL, RP_VENDOR_AMD},
        {"other", "kernel", "Cijk_x", NULL, RP_VENDOR_AMD},
        {"other", "kernel", "k", NULL, RP_VENDOR_UNKNOWN},
        {NULL, "gpu_memcpy", "Memcpy", NULL, RP_VENDOR_UNKNOWN},
        {NULL, "kernel", "k", "roctracer_version", RP_VENDOR_AMD},
        {NULL, "kernel", "k", "hip_runtime_version", RP_VENDOR_AMD},
        {NULL, "kernel", "k", "cupti_version", RP_VENDOR_NVIDIA},
        {NULL, "kernel", "sm90_x", NULL, RP_VENDOR_NVIDIA},
        {NULL, "kernel", "sm90_x", "roctracer_version", RP_VENDOR_AMD},
        {NULL, "kernel", "mtia_x", NULL, RP_VENDOR_META},
        {NULL, "cpu_op", "aten::mm", "cupti_version", RP_VENDOR_NONE},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct row row = {'X', rows[i].category, rows[i].name, 0, 7, 0, 10, 1, 7};
        struct rp_builder *b = build_rows(&row, 1);
        struct rp_device device = {0}, *own;
        struct rp_workload w;
        struct rp_trace *t;
        uint32_t n;

        if (rows[i].meta)
            assert_code(
                rp_builder_add_meta(b, str_of(b, rows[i].meta), str_of(b, "12"), false, NULL),
                RP_OK);
        str_of(b, rows[i].device ? rows[i].device : "none");
        t = finish_valid(b);
        own = t->devices;
        n = t->ndevices;
        if (rows[i].device) {
            device.name = find_str(t, rows[i].device);
            assert_int_not_equal(device.name, RP_NONE);
            t->devices = &device;
            t->ndevices = 1;
        }
        assert_code(rp_workload_find(t, &w, NULL), RP_OK);
        t->devices = own;
        t->ndevices = n;
        rp_trace_free(t);
        if (w.vendor != rows[i].vendor)
            fail_msg("row %zu: vendor %u", i, w.vendor);
    }
}

int test_workload(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vendors_are_named),
        cmocka_unit_test(a_server_is_named_before_its_framework),
        cmocka_unit_test(kernels_of_xla_are_known_by_their_names),
        cmocka_unit_test(training_is_known_by_gradients_and_updates),
        cmocka_unit_test(an_allocator_that_caches_nothing_is_seen),
        cmocka_unit_test(each_sign_alone),
        cmocka_unit_test(metadata_tells_of_ranks),
        cmocka_unit_test(a_version_names_the_framework),
        cmocka_unit_test(optimizers_that_can_be_fused),
    };

    return cmocka_run_group_tests_name("workload", tests, NULL, NULL);
}
