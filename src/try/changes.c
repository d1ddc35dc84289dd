/* SPDX-License-Identifier: Apache-2.0 */
/* The table of changes (changes.h), and the programs for which each one makes sense. */
#include "try/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ facts */

void rp_try_facts_add(struct rp_try_facts *facts, const char *key, const char *value)
{
    size_t i = 0;

    while (i < facts->n && strcmp(facts->at[i].key, key) != 0)
        i++;
    if (i == sizeof facts->at / sizeof facts->at[0])
        return;
    snprintf(facts->at[i].key, sizeof facts->at[i].key, "%s", key);
    snprintf(facts->at[i].value, sizeof facts->at[i].value, "%s", value);
    facts->n += i == facts->n;
}

const char *rp_try_fact(const struct rp_try_facts *facts, const char *key)
{
    for (size_t i = 0; i < facts->n; i++)
        if (!strcmp(facts->at[i].key, key))
            return facts->at[i].value;
    return "";
}

int64_t rp_try_fact_number(const struct rp_try_facts *facts, const char *key)
{
    return strtoll(rp_try_fact(facts, key), NULL, 10);
}

bool rp_try_is_of(const struct rp_try_facts *f, const char *framework)
{
    return !strncmp(rp_try_fact(f, "framework"), framework, strlen(framework));
}

static bool is_torch(const struct rp_try_facts *f)
{
    return rp_try_is_of(f, "torch");
}

static bool on_device(const struct rp_try_facts *f, const char *name)
{
    return strstr(rp_try_fact(f, "device"), name) != NULL;
}

static bool has_optimizer(const struct rp_try_facts *f)
{
    return !strncmp(rp_try_fact(f, "unit"), "optimizer", 9);
}

/* ------------------------------------------------------------------ PyTorch */

#define NOT_TORCH   "it is for PyTorch"
#define NO_CUDA     "it is for CUDA devices"
#define ALLOWS_TF32 "the program already allows it"

static const char *unfit_tf32(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return rp_try_is_of(f, "jax")  ? "JAX uses it by default"
           : !on_device(f, "cuda") ? NO_CUDA
           : is_torch(f) ? strcmp(rp_try_fact(f, "matmul"), "highest") != 0 ? ALLOWS_TF32 : NULL
           : rp_try_fact_number(f, "tf32") ? ALLOWS_TF32
                                           : NULL;
}

static const char *unfit_bf16(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return rp_try_is_of(f, "jax")                        ? "it is for PyTorch and Keras"
           : rp_try_fact_number(f, "autocast")           ? "the program uses autocast already"
           : !strstr(rp_try_fact(f, "types"), "float32") ? "no parameter is in float32"
           : !rp_try_fact_number(f, "models")            ? "no call of a model was seen"
                                                         : NULL;
}

static const char *unfit_optimizer(const struct rp_try_facts *f)
{
    return !is_torch(f)                               ? NOT_TORCH
           : !has_optimizer(f)                        ? "the program has no optimizer"
           : rp_try_fact_number(f, "optimizer-fused") ? "the optimizer is fused already"
           : !rp_try_fact_number(f, "optimizer-open")
               ? "no optimizer is Adam, AdamW, SGD or Adagrad with its default implementation"
               : NULL;
}

static const char *unfit_fused(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return unfit_optimizer(f);
}

static const char *unfit_foreach(const struct rp_try_facts *f, char *value, size_t cap)
{
    const char *why = unfit_optimizer(f);

    (void)value, (void)cap;
    return why ? why : on_device(f, "cuda") ? "it is the default on CUDA devices" : NULL;
}

static const char *unfit_compile(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return !is_torch(f)                        ? NOT_TORCH
           : rp_try_fact_number(f, "compiled") ? "the program compiles already"
           : !rp_try_fact_number(f, "models")  ? "no call of a model was seen"
                                               : NULL;
}

static const char *unfit_reduce(const struct rp_try_facts *f, char *value, size_t cap)
{
    const char *why = unfit_compile(f, value, cap);

    return why ? why : !on_device(f, "cuda") ? NO_CUDA : NULL;
}

static const char *unfit_channels(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return !is_torch(f)                             ? NOT_TORCH
           : !rp_try_fact_number(f, "convolutions") ? "the model has no 2-D convolution"
                                                    : NULL;
}

static const char *unfit_benchmark(const struct rp_try_facts *f, char *value, size_t cap)
{
    const char *why = unfit_channels(f, value, cap);

    return why                                  ? why
           : !on_device(f, "cuda")              ? NO_CUDA
           : rp_try_fact_number(f, "benchmark") ? "the program sets it already"
                                                : NULL;
}

static const char *unfit_workers(const struct rp_try_facts *f, char *value, size_t cap)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    snprintf(value, cap, "%ld", cores > 8 ? 4 : cores > 2 ? 2 : 1L);
    return !is_torch(f)                                        ? NOT_TORCH
           : !rp_try_fact_number(f, "loaders")                 ? "the program has no DataLoader"
           : !rp_try_fact_number(f, "loaders-without-workers") ? "its loaders have workers already"
           : rp_try_fact_number(f, "loaders-nested")
               ? "a loader is iterated while an iteration of it goes on: persistent workers would "
                 "begin that anew"
               : NULL;
}

static const char *unfit_ddp(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return !is_torch(f)                    ? NOT_TORCH
           : !rp_try_fact_number(f, "ddp") ? "the program does not use DistributedDataParallel"
                                           : NULL;
}

static const char *unfit_bucket(const struct rp_try_facts *f, char *value, size_t cap)
{
    snprintf(value, cap, "100");
    return unfit_ddp(f, value, 0);
}

static const char *unfit_tunable(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return !is_torch(f)                                       ? NOT_TORCH
           : !on_device(f, "cuda") || !*rp_try_fact(f, "hip") ? "it is for AMD devices"
           : getenv("PYTORCH_TUNABLEOP_ENABLED")              ? "it is set already"
                                                              : NULL;
}

static const char *unfit_segments(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return !is_torch(f) ? NOT_TORCH : !on_device(f, "cuda") ? NO_CUDA : NULL;
}

/* ------------------------------------------------------------------ the host */

static const char *unfit_threads(const struct rp_try_facts *f, char *value, size_t cap)
{
    int64_t now = rp_try_fact_number(f, "threads");

    snprintf(value, cap, "%lld", (long long)(now > 1 ? now / 2 : 1));
    return !is_torch(f)           ? NOT_TORCH
           : on_device(f, "cuda") ? "the program computes on a device"
           : now <= 1             ? "it uses one thread already"
                                  : NULL;
}

static const char *unfit_malloc(const struct rp_try_facts *f, char *value, size_t cap)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64", "/usr/lib", "/usr/local/lib"};
    static const char *const names[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                        "libtcmalloc.so.4", "libmimalloc.so.2"};
    const char *preload = getenv("LD_PRELOAD");
    char path[256];

    (void)f;
    if (preload && strstr(preload, "malloc"))
        return "another allocator is preloaded already";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t j = 0; j < sizeof folders / sizeof folders[0]; j++) {
            snprintf(path, sizeof path, "%s/%s", folders[j], names[i]);
            if (!access(path, R_OK)) {
                snprintf(value, cap, "%s", path);
                return NULL;
            }
        }
    return "neither jemalloc nor tcmalloc nor mimalloc is installed";
}

static const char *unfit_gc(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return has_optimizer(f) || !is_torch(f) ? NULL : "the program has no optimizer";
}

/* ------------------------------------------------------------------ JAX */

#define NOT_JAX "it is for JAX"

static bool is_jax(const struct rp_try_facts *f)
{
    return rp_try_is_of(f, "jax");
}

static const char *unfit_matmul(const struct rp_try_facts *f, char *value, size_t cap)
{
    snprintf(value, cap, "bfloat16");
    return !is_jax(f)                                         ? NOT_JAX
           : strcmp(rp_try_fact(f, "matmul"), "default") != 0 ? "the program sets it already"
                                                              : NULL;
}

static const char *unfit_xla_gpu(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return !is_jax(f) ? NOT_JAX : on_device(f, "gpu") || on_device(f, "cuda") ? NULL : NO_CUDA;
}

static const char *unfit_xla_cpu(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return !is_jax(f) ? NOT_JAX : !on_device(f, "cpu") ? "the program computes on a device" : NULL;
}

/* ------------------------------------------------------------------ TensorFlow */

#define NOT_TENSORFLOW "it is for TensorFlow"
#define ON_DEVICE      "the program computes on a device"

static bool is_tensorflow(const struct rp_try_facts *f)
{
    return rp_try_is_of(f, "tensorflow");
}

static bool has_function(const struct rp_try_facts *f)
{
    return rp_try_fact_number(f, "functions") > 0;
}

static const char *unfit_jit(const struct rp_try_facts *f)
{
    return !is_tensorflow(f)                   ? NOT_TENSORFLOW
           : !has_function(f)                  ? "the program calls no tf.function"
           : rp_try_fact_number(f, "compiled") ? "the program compiles already"
                                               : NULL;
}

static const char *unfit_auto_jit(const struct rp_try_facts *f, char *value, size_t cap)
{
    const char *why = unfit_jit(f);

    (void)value, (void)cap;
    return why                                 ? why
           : on_device(f, "cpu")               ? "on the CPU it is 'auto-jit-cpu'"
           : rp_try_fact_number(f, "auto-jit") ? "the program sets it already"
                                               : NULL;
}

static const char *unfit_auto_jit_cpu(const struct rp_try_facts *f, char *value, size_t cap)
{
    const char *why = unfit_jit(f);

    (void)value, (void)cap;
    return why                                 ? why
           : !on_device(f, "cpu")              ? ON_DEVICE
           : rp_try_fact_number(f, "auto-jit") ? "the program sets it already"
                                               : NULL;
}

static const char *unfit_jit_compile(const struct rp_try_facts *f, char *value, size_t cap)
{
    const char *why = unfit_jit(f);

    (void)value, (void)cap;
    return why                                                   ? why
           : strncmp(rp_try_fact(f, "unit"), "function", 8) != 0 ? "no tf.function takes gradients"
                                                                 : NULL;
}

static const char *unfit_rewrite(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return !is_tensorflow(f)                   ? NOT_TENSORFLOW
           : !on_device(f, "cpu")              ? ON_DEVICE
           : !has_function(f)                  ? "the program calls no tf.function"
           : rp_try_fact_number(f, "autocast") ? "the program uses mixed precision already"
                                               : NULL;
}

static const char *unfit_prefetch(const struct rp_try_facts *f, char *value, size_t cap)
{
    (void)value, (void)cap;
    return !is_tensorflow(f) ? NOT_TENSORFLOW
           : !rp_try_fact_number(f, "datasets-without-prefetch")
               ? "no data set is iterated that is not read ahead already"
               : NULL;
}

static const char *unfit_pool(const struct rp_try_facts *f, const char *key, long threads,
                              char *value, size_t cap)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    snprintf(value, cap, "%ld", threads > 1 ? threads : 1L);
    return !is_tensorflow(f)            ? NOT_TENSORFLOW
           : !on_device(f, "cpu")       ? ON_DEVICE
           : rp_try_fact_number(f, key) ? "the program sets it already"
           : cores <= 1                 ? "the machine has one core"
                                        : NULL;
}

static const char *unfit_intra(const struct rp_try_facts *f, char *value, size_t cap)
{
    return unfit_pool(f, "intra-op", sysconf(_SC_NPROCESSORS_ONLN) / 2, value, cap);
}

static const char *unfit_inter(const struct rp_try_facts *f, char *value, size_t cap)
{
    return unfit_pool(f, "inter-op", 1, value, cap);
}

/* ------------------------------------------------------------------ the table */

/* clang-format off */
const struct rp_try_change rp_try_changes[] = {
    {"tf32", "precision", "tf32", RP_TRY_SAME_TF32, NULL, NULL,
     "torch.set_float32_matmul_precision(\"high\")", unfit_tf32},
    {"bf16", "precision", "dtype=bf16", RP_TRY_SAME_BF16, NULL, NULL,
     "with torch.autocast(device, dtype=torch.bfloat16): out = model(x); then the loss of out.float()", unfit_bf16},
    {"fused", "optimizer", "fused-optimizer", RP_TRY_SAME_ROUNDING, NULL, NULL,
     "torch.optim.AdamW(..., fused=True); the same for Adam, SGD, Adagrad", unfit_fused},
    {"foreach", "optimizer", NULL, RP_TRY_SAME_ROUNDING, NULL, NULL,
     "torch.optim.AdamW(..., foreach=True); the same for Adam, SGD, Adagrad", unfit_foreach},
    {"compile", "compile", "compile", RP_TRY_SAME_KERNELS, NULL, NULL,
     "model.compile() before the first call, inside DistributedDataParallel; nn.Sequential: torch.compile(model)", unfit_compile},
    {"reduce-overhead", "compile", "compile+cuda-graphs=forward+cuda-graphs=backward", RP_TRY_SAME_KERNELS, NULL, NULL,
     "model.compile(mode=\"reduce-overhead\") before the first call", unfit_reduce},
    {"channels-last", "", "channels-last", RP_TRY_SAME_KERNELS, NULL, NULL,
     "model.to(memory_format=torch.channels_last)", unfit_channels},
    {"cudnn-benchmark", "", NULL, RP_TRY_SAME_KERNELS, NULL, NULL,
     "torch.backends.cudnn.benchmark = True", unfit_benchmark},
    {"workers", "", "dataloader=free", RP_TRY_SAME_ROUNDING, NULL, NULL,
     "DataLoader(..., num_workers=%s, persistent_workers=True, pin_memory=True on CUDA)", unfit_workers},
    {"ddp-views", "", NULL, RP_TRY_SAME_ROUNDING, NULL, NULL,
     "DistributedDataParallel(..., gradient_as_bucket_view=True)", unfit_ddp},
    {"ddp-bucket", "", "bucket=100MiB", RP_TRY_SAME_ROUNDING, NULL, NULL,
     "DistributedDataParallel(..., bucket_cap_mb=%s)", unfit_bucket},
    {"tunable-op", "", NULL, RP_TRY_SAME_KERNELS, "PYTORCH_TUNABLEOP_ENABLED", "1",
     "export PYTORCH_TUNABLEOP_ENABLED=1", unfit_tunable},
    {"segments", "", NULL, RP_TRY_SAME_ROUNDING, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True",
     "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", unfit_segments},
    {"threads", "", NULL, RP_TRY_SAME_ROUNDING, "OMP_NUM_THREADS", "%s",
     "export OMP_NUM_THREADS=%s", unfit_threads},
    {"malloc", "", NULL, RP_TRY_SAME_ROUNDING, "LD_PRELOAD", "%s",
     "export LD_PRELOAD=%s", unfit_malloc},
    {"gc", "", NULL, RP_TRY_SAME_ROUNDING, NULL, NULL,
     "gc.collect(); gc.freeze() after the first step", unfit_gc},
    {"matmul", "precision", NULL, RP_TRY_SAME_BF16, "JAX_DEFAULT_MATMUL_PRECISION", "%s",
     "jax.config.update(\"jax_default_matmul_precision\", \"%s\")", unfit_matmul},
    {"xla-latency-hiding", "xla", NULL, RP_TRY_SAME_ROUNDING, "XLA_FLAGS",
     "--xla_gpu_enable_latency_hiding_scheduler=true",
     "export XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true", unfit_xla_gpu},
    {"xla-triton-gemm", "xla", NULL, RP_TRY_SAME_ROUNDING, "XLA_FLAGS", "--xla_gpu_triton_gemm_any=true",
     "export XLA_FLAGS=--xla_gpu_triton_gemm_any=true", unfit_xla_gpu},
    {"xla-command-buffers", "xla", NULL, RP_TRY_SAME_ROUNDING, "XLA_FLAGS",
     "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUDNN,COLLECTIVES",
     "export XLA_FLAGS=--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUDNN,COLLECTIVES", unfit_xla_gpu},
    {"xla-fast-math", "xla", NULL, RP_TRY_SAME_ROUNDING, "XLA_FLAGS", "--xla_cpu_enable_fast_math=true",
     "export XLA_FLAGS=--xla_cpu_enable_fast_math=true", unfit_xla_cpu},
    {"auto-jit", "compile", NULL, RP_TRY_SAME_KERNELS, "TF_XLA_FLAGS", "--tf_xla_auto_jit=2",
     "tf.config.optimizer.set_jit(\"autoclustering\")", unfit_auto_jit},
    {"auto-jit-cpu", "compile", NULL, RP_TRY_SAME_KERNELS, "TF_XLA_FLAGS", "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit",
     "export TF_XLA_FLAGS=\"--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit\"", unfit_auto_jit_cpu},
    {"jit-compile", "compile", NULL, RP_TRY_SAME_KERNELS, NULL, NULL,
     "model.compile(..., jit_compile=True); @tf.function(jit_compile=True) for the step", unfit_jit_compile},
    {"bf16-rewrite", "precision", NULL, RP_TRY_SAME_BF16, NULL, NULL,
     "tf.config.optimizer.set_experimental_options({\"auto_mixed_precision_onednn_bfloat16\": True})", unfit_rewrite},
    {"prefetch", "", NULL, RP_TRY_SAME_ROUNDING, NULL, NULL,
     "dataset.prefetch(tf.data.AUTOTUNE), as the last stage", unfit_prefetch},
    {"intra-op", "", NULL, RP_TRY_SAME_ROUNDING, NULL, NULL,
     "tf.config.threading.set_intra_op_parallelism_threads(%s)", unfit_intra},
    {"inter-op", "", NULL, RP_TRY_SAME_ROUNDING, NULL, NULL,
     "tf.config.threading.set_inter_op_parallelism_threads(%s)", unfit_inter},
};

static const char *const tensorflow_lines[][2] = { /* how the same change is made in TensorFlow */
    {"tf32", "tf.config.experimental.enable_tensor_float_32_execution(True)"},
    {"bf16", "keras.mixed_precision.set_global_policy(\"mixed_bfloat16\") before the model is built; then the loss of "
             "tf.cast(out, tf.float32)"},
};
/* clang-format on */

const char *rp_try_lines(const struct rp_try_change *change, const struct rp_try_facts *facts)
{
    for (size_t i = 0; i < sizeof tensorflow_lines / sizeof tensorflow_lines[0]; i++)
        if (is_tensorflow(facts) && !strcmp(change->name, tensorflow_lines[i][0]))
            return tensorflow_lines[i][1];
    return change->lines;
}

size_t rp_try_change_count(void)
{
    return sizeof rp_try_changes / sizeof rp_try_changes[0];
}

const struct rp_try_change *rp_try_change_find(const char *name, size_t len)
{
    for (size_t i = 0; i < rp_try_change_count(); i++)
        if (strlen(rp_try_changes[i].name) == len && !memcmp(rp_try_changes[i].name, name, len))
            return &rp_try_changes[i];
    return NULL;
}
