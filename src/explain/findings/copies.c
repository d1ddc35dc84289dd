/* SPDX-License-Identifier: Apache-2.0 */
/* The device only copies, or waits for copies. */
#include "base/copies.h"
#include "explain/findings/finding.h"

enum { OTHER, PAGEABLE, PINNED, BACK, INSIDE, FILL }; /* kinds of the finding, in its order */

#define NAMES_MOST 64
RP_LIMIT(NAMES_MOST, "names of copies",
         "later ones count, but are not named as what takes most time");

/* Times of copies and memsets, and of those with one name. */
#define KEPT(M, s)                \
    M(s, PLAIN, int64_t, count)   \
    M(s, PLAIN, int64_t, name_ns) \
    M(s, TEXT, name) /* the name with most time, or NULL */
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_copies, struct kept, KEPT);

/* A copy to the host has that kind whatever memory is its target, so its direction is asked
   first. */
static unsigned kind_of(const char *name)
{
    enum rp_copy_way way = name ? rp_copy_way(name) : RP_COPY_UNKNOWN;

    return !name                                                    ? OTHER
           : way == RP_COPY_TO_HOST                                 ? BACK
           : strstr(name, "Pageable")                               ? PAGEABLE
           : strstr(name, "Pinned")                                 ? PINNED
           : way == RP_COPY_INSIDE || way == RP_COPY_BETWEEN        ? INSIDE
           : strcasestr(name, "memset") || strcasestr(name, "fill") ? FILL
                                                                    : OTHER;
}

struct copy_name {
    rp_str name;
    int64_t ns;
};

/* Finds the name that takes most time; there are few names. */
static enum rp_code copies_measure(const struct rp_finding_rank *rank, void *kept,
                                   struct rp_err *err)
{
    struct kept *out = kept;
    RP_VEC_LOCAL(struct copy_name, names);
    rp_str best = 0;
    size_t i, k;

    for (i = 0; i < rank->work->items.n; i++) {
        const struct rp_work_item *x = &rank->work->items.at[i];
        struct copy_name fresh = {rank->trace->ev.name[x->event], 0};

        if (x->cls != RP_WORK_MEMORY)
            continue;
        out->count++;
        for (k = 0; k < names.n && names.at[k].name != fresh.name; k++)
            ;
        if (k == NAMES_MOST)
            continue;
        if (k == names.n)
            RP_TRY(rp_vec_push(&names, fresh, err));
        rp_ns_add(&names.at[k].ns, rp_ns_between(x->begin_ns, x->end_ns));
    }
    for (k = 0; k < names.n; k++)
        if (names.at[k].ns > out->name_ns) {
            out->name_ns = names.at[k].ns;
            best = names.at[k].name;
        }
    out->name = best ? rp_arena_text(rank->arena, rp_trace_str(rank->trace, best)) : NULL;
    return RP_OK;
}

static void copies_find(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    struct rp_report_finding *finding = NULL;

    if (!rp_report_has_only_transfers(rp_findings_lead(f)))
        finding = rp_findings_add_idle(f, kind_of(k ? k->name : NULL), f->chain->copies_ns);
    if (!finding)
        return;
    if (f->chain->copies_ns && k && k->name) {
        /* "rank 0: 5 copies and memsets; for 30.0 ms nothing else runs, for 1.00 ms …" */
        const struct rp_breakdown *b = &rp_findings_lead(f)->whole;
        int64_t waits, count;

        rp_findings_cause(f, f->chain->lead, &waits, &count);
        RP_SAY(f, finding, "rank %d: %lld %s; for %s nothing else runs%s; mainly %.80s (%s)",
               rp_findings_lead_number(f), (long long)k->count,
               k->count == 1 ? "copy or memset" : "copies and memsets",
               rp_findings_time(
                   f, rp_ns_between(rp_ns_sum(b->compute_ns, b->exposed_comm_ns), b->busy_ns)),
               waits ? rp_arena_textf(f->arena, ", for %s the device waits for one",
                                      rp_findings_time(f, waits))
                     : "",
               k->name, rp_findings_time(f, k->name_ns));
    }
    rp_findings_say_idle(f, finding);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, OF(OTHER) | OF(PINNED),
     .text = "copy on another stream while kernels run, and combine small copies"},
    {RP_ADVISE_CALL, OF(OTHER), .frameworks = FW(PYTORCH),
     .text = ".to(device, non_blocking=True) for the next batch while this one runs; inputs "
             "from DataLoader(pin_memory=True)"},
    {RP_ADVISE_CALL, OF(PAGEABLE),
     .text = "pin the host memory that is copied, and copy while kernels run"},
    {RP_ADVISE_CALL, OF(PAGEABLE), .frameworks = FW(PYTORCH),
     .text = "DataLoader(pin_memory=True) or tensor.pin_memory(), then .to(device, "
             "non_blocking=True) while kernels run"},
    {RP_ADVISE_CALL, OF(PINNED), .frameworks = FW(PYTORCH),
     .text = ".to(device, non_blocking=True) of the next batch on a second torch.Stream while "
             "this one runs"},
    {RP_ADVISE_CALL, OF(PINNED), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"): gloo copies every gradient to "
             "the host and back"},
    {RP_ADVISE_CALL, OF(PINNED), .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"), which is RCCL: gloo copies every "
             "gradient to the host and back"},
    {RP_ADVISE_LOOK, OF(PINNED), .frameworks = FW(PYTORCH), .parallels = PAR(FSDP),
     .text =
         "if FSDP keeps parameters on the host (CPUOffload), each layer copies its own: keep them "
         "on the device, over more ranks if need be"},
    {RP_ADVISE_CALL, OF(OTHER) | OF(PAGEABLE) | OF(PINNED), .frameworks = FW(JAX),
     .text = "jax.device_put of the next input while the device works"},
    {RP_ADVISE_CALL, OF(OTHER) | OF(PAGEABLE) | OF(PINNED), .frameworks = FW(TENSORFLOW),
     .text = "dataset.apply(tf.data.experimental.prefetch_to_device(\"/GPU:0\"))"},
    {RP_ADVISE_CALL, OF(INSIDE),
     .text = "'reprise top --by op' shows which operators copy: work in place, or in the "
             "layout that the next operator needs"},
    {RP_ADVISE_CALL, OF(INSIDE), .frameworks = FW(PYTORCH),
     .text = "'reprise top --by op' shows them: avoid .contiguous(), .clone(), torch.cat; "
             "write with out= or into slices"},
    {RP_ADVISE_CALL, OF(INSIDE), .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "'reprise top --by op' shows them: avoid .contiguous(), .clone(), torch.cat; "
             "torch.compile(model) removes many"},
    {RP_ADVISE_CALL, OF(INSIDE), .frameworks = FW(JAX),
     .text = "jax.jit(step, donate_argnums=...): outputs take the memory of inputs"},
    {RP_ADVISE_CALL, OF(OTHER) | OF(PAGEABLE) | OF(PINNED) | OF(INSIDE),
     .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .text = "'reprise top --by op' shows which operators copy; more tokens per step amortize "
             "them"},
    {RP_ADVISE_CALL, OF(OTHER) | OF(PINNED), .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaMemcpyAsync on a second stream while kernels run"},
    {RP_ADVISE_CALL, OF(OTHER) | OF(PINNED), .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipMemcpyAsync on a second stream while kernels run"},
    {RP_ADVISE_CALL, OF(OTHER) | OF(PINNED), .frameworks = FW(OPENCL),
     .text = "a second command queue for transfers"},
    {RP_ADVISE_CALL, OF(BACK), .frameworks = FW(OPENCL),
     .text = "clEnqueueReadBuffer with CL_FALSE on a second queue, while kernels run on the first"},
    {RP_ADVISE_CALL, OF(BACK), .text = "copy less often, and while kernels run"},
    {RP_ADVISE_CALL, OF(BACK), .frameworks = FW(PYTORCH),
     .text = ".to(\"cpu\", non_blocking=True) into a buffer that is reused, every N steps; sum "
             "up on the device"},
    {RP_ADVISE_CALL, OF(OTHER) | OF(BACK), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"): gloo copies every gradient to "
             "the host and back"},
    {RP_ADVISE_CALL, OF(OTHER) | OF(BACK), .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"), which is RCCL: gloo copies every "
             "gradient to the host and back"},
    {RP_ADVISE_CALL, OF(PAGEABLE), .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaHostAlloc or cudaHostRegister for the host memory, then cudaMemcpyAsync "
             "while kernels run"},
    {RP_ADVISE_CALL, OF(PAGEABLE), .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipHostMalloc or hipHostRegister for the host memory, then hipMemcpyAsync while "
             "kernels run"},
    {RP_ADVISE_CALL, OF(PAGEABLE), .frameworks = FW(NATIVE), .vendors = BY(INTEL),
     .text = "sycl::malloc_host for the host memory"},
    {RP_ADVISE_CALL, OF(PAGEABLE), .frameworks = FW(OPENCL),
     .text = "CL_MEM_ALLOC_HOST_PTR with clEnqueueMapBuffer for the host memory"},
    {RP_ADVISE_CALL, OF(BACK), .frameworks = FW(JAX),
     .text = "x.copy_to_host_async(), then read it one step later"},
    {RP_ADVISE_CALL, OF(BACK), .frameworks = FW(TENSORFLOW),
     .text = "fetch results every N steps; tf.keras metrics stay on the device"},
    {RP_ADVISE_CALL, OF(BACK), .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .text = "'reprise top --by op' shows which operators copy; logprobs and logits of all "
             "tokens are large"},
    {RP_ADVISE_CALL, OF(FILL),
     .text = "allocate without filling where everything is written anyway"},
    {RP_ADVISE_CALL, OF(FILL), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .text = "optimizer.zero_grad(set_to_none=True), and torch.empty instead of torch.zeros "
             "where everything is written"},
    {RP_ADVISE_CALL, OF(FILL), .frameworks = FW(PYTORCH),
     .modes = MODE(INFERENCE) | MODE(UNKNOWN) | MODE(SERVING),
     .text = "torch.empty instead of torch.zeros where everything is written"},
    {RP_ADVISE_CALL, OF(FILL), .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .text = "'reprise top --by op' shows which operators fill memory"},
};

const struct rp_finding rp_finding_copies = {
    .id = "copies",
    .kinds = {{"other", "the device only copies, or waits for copies to begin"},
              {"pageable", "the device only copies, from host memory that is not pinned"},
              {"pinned", "the device only copies, or waits for copies to begin"},
              {"back", "the device only copies results to the host"},
              {"inside", "the device only copies inside its own memory"},
              {"fill", "the device only fills memory with a value"}},
    .condition =
        "not where only transfers were recorded; the kind is that of the name with most time",
    .cost = "idle time on the chain whose cause is `copy`, and the copies and memsets on it, "
            "outside of its collectives, while no kernel runs",
    .idle = 1u << RP_GAP_COPY,
    RP_KEEPS(copies, copies_measure),
    .find = copies_find,
    RP_ADVICE(advice),
};
