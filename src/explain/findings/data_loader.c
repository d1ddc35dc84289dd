/* SPDX-License-Identifier: Apache-2.0 */
/* Input data comes too late for the device, or without a device, for the operators. */
#include "explain/findings/finding.h"

enum { DEVICE, HOST };

static void data_loader_find(struct rp_findings *f)
{
    rp_findings_idle(f);
    rp_findings_pause(f, HOST, RP_PAUSE_DATA);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, .text = "read and prepare the next batch on another thread",
     .what_if = "dataloader=free"},
    {RP_ADVISE_CALL, OF(DEVICE), .frameworks = FW(PYTORCH),
     .text = "DataLoader(num_workers=N, pin_memory=True, prefetch_factor=4, "
             "persistent_workers=True)",
     .what_if = "dataloader=free"},
    {RP_ADVISE_CALL, OF(HOST), .frameworks = FW(PYTORCH),
     .text = "DataLoader(num_workers=N, prefetch_factor=4, persistent_workers=True)",
     .what_if = "dataloader=free"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .parallels = PAR(MEGATRON),
     .text = "--num-workers N, and data on local storage", .what_if = "dataloader=free"},
    {RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .parallels = PAR(MEGATRON) | PAR(DEEPSPEED),
     .text = ""},
    {RP_ADVISE_MORE, OF(DEVICE), .frameworks = FW(PYTORCH),
     .text = "torchvision.transforms.v2 on tensors of the device; larger files, faster storage"},
    {RP_ADVISE_MORE, OF(HOST), .frameworks = FW(PYTORCH),
     .text = "cheaper transforms, larger files, faster storage: 'reprise top --by python' "
             "shows where the loader spends its time"},
    {RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "grain.DataLoader(worker_count=N), and jax.device_put of the next batch while the "
             "device works",
     .what_if = "dataloader=free"},
    {RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "dataset.map(..., "
             "num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE); .cache() where "
             "it fits",
     .what_if = "dataloader=free"},
    {RP_ADVISE_CALL, .frameworks = FW(MINDSPORE),
     .text = "dataset.map(..., num_parallel_workers=N), "
             "mindspore.dataset.config.set_prefetch_size(N)",
     .what_if = "dataloader=free"},
    {RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --api-server-count N: more processes read and tokenize requests"},
    {RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server --tokenizer-worker-num N: more processes tokenize requests"},
};

const struct rp_finding rp_finding_data_loader = {
    .id = "data-loader",
    .kinds = {{"device", "the device waits for input data"},
              {"host", "the operators wait for input data"}},
    .idle = 1u << RP_GAP_DATA_LOADER,
    .of_host = true,
    .find = data_loader_find,
    RP_ADVICE(advice),
};
