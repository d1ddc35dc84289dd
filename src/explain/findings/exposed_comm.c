/* SPDX-License-Identifier: Apache-2.0 */
/* Communication that compute does not cover. */
#include "explain/findings/finding.h"

enum { ALL, PARTLY, HOST };

static void exposed_comm_find(struct rp_findings *f)
{
    const struct rp_report_part *lead = rp_findings_lead(f);
    struct rp_report_finding *finding = NULL;

    if (!rp_report_has_only_transfers(lead))
        finding = rp_findings_add(f,
                                  !lead->on_device ? HOST
                                  : f->absent > 0  ? PARTLY
                                                   : ALL,
                                  f->chain->transfer_ns);
    if (!finding)
        return;
    finding->where.exposed = true;

    bool one = f->absent == 1;
    if (f->absent > 0)
        RP_SAY(f, finding, "%d rank%s of the run %s not given: waiting for %s looks like transfer",
               (int)f->absent, one ? "" : "s", one ? "was" : "were", one ? "it" : "them");
    if (f->chain->ncollectives && !f->chain->beside)
        RP_SAY(f, finding, "%s of %s, transfer only: waiting for late ranks is not included",
               rp_units_count(f->arena, (int64_t)f->chain->ncollectives, "collective"),
               rp_units_count(f->arena, (int64_t)f->ranks->n, "rank"));
    else
        RP_SAY(f, finding,
               "rank %d: %s of %s communication is exposed; it may include waiting for other ranks",
               rp_findings_lead_number(f), rp_findings_time(f, lead->whole.exposed_comm_ns),
               rp_findings_time(f, lead->whole.comm_ns));
    if (f->chain->exposed_ns[RP_PLACE_BETWEEN] > 0)
        RP_SAY(f, finding,
               "%s of the transfer between nodes is exposed and %s of that within nodes, means of "
               "the ranks",
               rp_findings_time(f, f->chain->exposed_ns[RP_PLACE_BETWEEN]),
               rp_findings_time(f, f->chain->exposed_ns[RP_PLACE_NODE]));
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY),
     .text = "overlap it with compute, send less, or use a faster network", .what_if = "overlap"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DDP),
     .text = "DistributedDataParallel(model, bucket_cap_mb={}, gradient_as_bucket_view=True, "
             "static_graph=True)",
     .what_if = "bucket=5MB|10MB|25MB|50MB|100MB"},
    {RP_ADVISE_MORE, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DDP),
     .text = "model.register_comm_hook(None, default_hooks.bf16_compress_hook): half the bytes "
             "of fp32 gradients; model.no_sync() while accumulating",
     .what_if = "net.bandwidth=2x"},
    {RP_ADVISE_MORE, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DDP), .half_comm = RP_KEY_YES,
     .text = "model.no_sync() while accumulating: fewer all-reduces (16-bit gradients cannot be "
             "halved again without loss)"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH),
     .collectives = COLL(ALL_TO_ALL),
     .text = "all_to_all (experts, sharded embeddings, sequences): overlap it with the compute of "
             "another micro-batch, and keep its group within a node",
     .what_if = "overlap"},
    {RP_ADVISE_MORE, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH),
     .collectives = COLL(ALL_TO_ALL), .half_comm = RP_KEY_NO,
     .text = "bf16 or fp8 where fp32 is sent (for torchrec: qcomm_codecs_registry): fewer bytes",
     .what_if = "net.bandwidth=2x"},
    {RP_ADVISE_MORE, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH),
     .collectives = COLL(ALL_TO_ALL), .half_comm = RP_KEY_YES,
     .text = "balance what each rank sends: the longest part sets the pace of all"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH),
     .collectives = COLL(SEND_RECV),
     .text = "pipeline stages wait for each other: more micro-batches a step, interleaved stages, "
             "or stages of equal length",
     .what_if = "overlap"},
    {RP_ADVISE_MORE, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH),
     .collectives = COLL(SEND_RECV), .text = ""},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DDP), .collectives = COLL(BROADCAST),
     .text = "DistributedDataParallel(model, broadcast_buffers=False) where buffers (statistics of "
             "batch normalization) need not be equal"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(FSDP),
     .text = "fully_shard(...): set_modules_to_forward_prefetch() and "
             "set_modules_to_backward_prefetch(), reshard_after_forward=False where memory "
             "allows",
     .what_if = "overlap"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(MEGATRON),
     .text = "--overlap-grad-reduce --overlap-param-gather (data parallel), --tp-comm-overlap "
             "--sequence-parallel (tensor parallel)",
     .what_if = "overlap"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DEEPSPEED),
     .text = "\"overlap_comm\": true, \"reduce_bucket_size\" and \"allgather_bucket_size\" in "
             "\"zero_optimization\"",
     .what_if = "overlap"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(PYTORCH),
     .parallels = PAR(NONE) | PAR(OTHER),
     .text = "collectives with async_op=True, and wait() only where the result is used",
     .what_if = "overlap"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(VLLM),
     .text = "vllm serve without --disable-custom-all-reduce, or with a smaller "
             "--tensor-parallel-size"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(SGLANG),
     .text = "sglang.launch_server without --disable-custom-all-reduce, or with a smaller "
             "--tp-size"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(TENSORRT_LLM),
     .text = "allreduce_strategy: AUTO, or a smaller tensor_parallel_size"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(JAX), .vendors = BY(NVIDIA) | BY(AMD),
     .text = "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true: collectives overlap "
             "with compute",
     .what_if = "overlap"},
    {RP_ADVISE_MORE, OF(ALL) | OF(PARTLY), .frameworks = FW(JAX), .vendors = BY(NVIDIA) | BY(AMD),
     .text = "XLA_FLAGS=--xla_gpu_all_reduce_combine_threshold_bytes=...: fewer and larger "
             "collectives"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(TENSORFLOW),
     .text = "all-reduce: tf.distribute.experimental.CommunicationOptions(bytes_per_pack=...); "
             "parameter servers: variable_partitioner",
     .what_if = "overlap"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(HOROVOD),
     .text = "HOROVOD_FUSION_THRESHOLD and HOROVOD_CYCLE_TIME (or HOROVOD_AUTOTUNE=1): other "
             "buckets",
     .what_if = "overlap"},
    {RP_ADVISE_MORE, OF(ALL) | OF(PARTLY), .frameworks = FW(HOROVOD), .modes = MODE(TRAINING),
     .half_comm = RP_KEY_NO,
     .text = "hvd.DistributedOptimizer(..., compression=hvd.Compression.fp16): half the bytes"},
    {RP_ADVISE_CALL, OF(ALL) | OF(PARTLY), .frameworks = FW(BYTEPS),
     .text = "BYTEPS_PARTITION_BYTES and BYTEPS_SCHEDULING_CREDIT: other partitions",
     .what_if = "overlap"},
    {RP_ADVISE_LOOK, OF(PARTLY),
     .text = "first give the files of all ranks: 'reprise report run/' separates waiting from "
             "transfer"},
    {RP_ADVISE_CALL, OF(HOST),
     .text = "start it earlier and do other work meanwhile, send less, or use a faster network"},
    {RP_ADVISE_CALL, OF(HOST), .transports = VIA(MPI),
     .text = "non-blocking calls (MPI_Iallreduce … MPI_Wait) with work in between; fewer and "
             "larger messages"},
    {RP_ADVISE_CALL, OF(HOST), .transports = VIA(GLOO),
     .text = "async_op=True and work before wait(); fewer and larger tensors"},
    {RP_ADVISE_LOOK, OF(HOST),
     .text = "'reprise comm' separates waiting for late ranks from transfer"},
};

const struct rp_finding rp_finding_exposed_comm = {
    .id = "exposed-comm",
    .kinds =
        {{"device", "communication runs while no compute does"},
         {"ranks missing",
          "communication runs while no compute does; it may be waiting for ranks that were not given",
          .unpredicted = true},
         {"host", "the program communicates, and nothing else runs meanwhile"}},
    .condition = "not where only transfers were recorded",
    .cost = "the transfers of the chain that compute does not cover; without matched collectives "
            "all exposed communication. Where traces of ranks are missing, the time spent waiting "
            "for them is included",
    .find = exposed_comm_find,
    RP_ADVICE(advice),
};
