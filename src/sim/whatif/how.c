/* SPDX-License-Identifier: Apache-2.0 */
/* Says how a change is made, and what it assumes, in the terms of a framework. */
#include "sim/whatif/whatifs.h"

#include <string.h>

const char *rp_whatif_how(const struct rp_whatif *row, const char *text)
{
    if (!row->move)
        return NULL;
    return row->move->how ? row->move->how(text) : row->move->apply;
}

/* Communication in these frameworks is like that of TensorFlow programs. */
static unsigned program_of(unsigned framework)
{
    return framework == RP_FRAMEWORK_HOROVOD || framework == RP_FRAMEWORK_BYTEPS
               ? RP_FRAMEWORK_TENSORFLOW
               : framework;
}

const char *rp_whatif_apply_in(unsigned framework, const char *move, const char *torch)
{
    static const struct {
        uint8_t framework;
        const char *move, *apply;
    } lines[] = {
        {RP_FRAMEWORK_JAX, "cuda-graphs",
         "XLA_FLAGS=--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUDNN,CUSTOM_CALL"},
        {RP_FRAMEWORK_JAX, "dataloader",
         "load batches in background workers (grain.DataLoader(worker_count=N)), and jax.device_put "
         "of the next one while the device works"},
        {RP_FRAMEWORK_JAX, "dtype",
         "compute in the 16 bits of the what-if, with parameters in float32 (jmp)"},
        {RP_FRAMEWORK_JAX, "fuse", "put these operators into one jax.jit"},
        {RP_FRAMEWORK_JAX, "no-sync", "block_until_ready and reads of values only every few steps"},
        {RP_FRAMEWORK_JAX, "overlap", "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true"},
        {RP_FRAMEWORK_JAX, "fused-optimizer",
         "put the update of the parameters into the jax.jit of a step"},
        {RP_FRAMEWORK_TENSORFLOW, "cuda-graphs",
         "tf.function(jit_compile=True) around the step, which XLA launches as CUDA graphs"},
        {RP_FRAMEWORK_TENSORFLOW, "dataloader",
         "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"},
        {RP_FRAMEWORK_TENSORFLOW, "fused-optimizer",
         "tf.function(jit_compile=True) around the update (jit_compile=True of a Keras optimizer)"},
        {RP_FRAMEWORK_TENSORFLOW, "no-sync",
         "read values (.numpy(), callbacks) only every few steps"},
        {RP_FRAMEWORK_TENSORFLOW, "dtype",
         "tf.keras.mixed_precision.set_global_policy('mixed_bfloat16'), or 'mixed_float16' where "
         "the device has no bf16"},
        {RP_FRAMEWORK_TENSORFLOW, "fuse", "tf.function(jit_compile=True) around these operators"}};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (lines[i].framework == program_of(framework) && !strcmp(lines[i].move, move))
            return lines[i].apply;
    return torch;
}

const char *rp_whatif_assumed(const struct rp_whatif *row, unsigned framework)
{
    unsigned program = program_of(framework);
    bool other = program == RP_FRAMEWORK_JAX || program == RP_FRAMEWORK_TENSORFLOW;

    return other && row->assumes_elsewhere ? row->assumes_elsewhere : row->assumes;
}

enum rp_code rp_whatif_assumes(const char *text, unsigned framework, struct rp_arena *arena,
                               const char **out, struct rp_err *err)
{
    struct rp_whatif_list list;
    size_t i, k;

    *out = "";
    RP_TRY(rp_whatif_parse(text, arena, &list, err));
    for (i = 0; i < list.n; i++) {
        for (k = 0; k < i && list.calls[k].row != list.calls[i].row;)
            k++;
        if (k == i)
            *out = rp_arena_textf(arena, "%s%s%s", *out, i ? "; " : "",
                                  rp_whatif_assumed(list.calls[i].row, framework));
    }
    return rp_arena_check(arena, "simulating", err);
}
