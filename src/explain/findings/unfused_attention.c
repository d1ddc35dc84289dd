/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention that is written out: a softmax between two batched products, which writes all scores to
 * memory and reads them again, in the forward and in the backward pass.
 */
#include "explain/findings/finding.h"

#include "facts/torch_names.h"

#define KEPT(M, s)              \
    M(s, PLAIN, int64_t, count) \
    M(s, PLAIN, int64_t, between_ns)
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_unfused_attention, struct kept, KEPT);

enum { KNOWN = 1, BATCHED = 2, MATRICES = 4, SOFTMAX = 8 };

/* What a name means, looked up once for each name. */
static unsigned meaning(const struct rp_trace *t, uint8_t *known, rp_event e)
{
    if (e == RP_NONE)
        return 0;
    uint8_t *at = &known[t->ev.name[e]];
    const char *name = rp_trace_str(t, t->ev.name[e]);
    size_t n = rp_trace_str_len(t, t->ev.name[e]);
    if (!*at)
        *at = (uint8_t)(KNOWN | (rp_torch_is(name, n, RP_TORCH_BATCHED) ? BATCHED : 0) |
                        (rp_torch_is(name, n, RP_TORCH_MATRICES) ? MATRICES : 0) |
                        (rp_torch_is(name, n, RP_TORCH_SOFTMAX) ? SOFTMAX : 0));
    return *at;
}

struct stream {
    bool open, softmax;
    int64_t ns;
};

/* On each stream, in the order of time, the work between two batched products counts if it contains
   a softmax. */
static enum rp_code unfused_attention_measure(const struct rp_finding_rank *rank, void *kept,
                                              struct rp_err *err)
{
    const struct rp_trace *t = rank->trace;
    struct stream *streams = RP_ARENA_NEW(rank->arena, struct stream, rank->work->streams.n + 1);
    uint8_t *known = RP_ARENA_NEW(rank->arena, uint8_t, (size_t)t->str.n + 1);
    struct kept *out = kept;

    RP_TRY(rp_err_need(streams && known ? known : NULL, err, "measuring attention"));
    for (size_t i = 0; i < rank->work->items.n; i++) {
        const struct rp_work_item *x = &rank->work->items.at[i];
        struct stream *s = &streams[x->stream];

        if (x->cls != RP_WORK_COMPUTE)
            continue;
        unsigned op = x->launch == RP_NONE
                          ? 0
                          : meaning(t, known, rp_event_around(t, x->launch, RP_KIND_CPU_OP));
        if (!(op & (BATCHED | MATRICES))) {
            s->softmax |= ((op | meaning(t, known, x->event)) & SOFTMAX) != 0;
            rp_ns_add(&s->ns, rp_ns_between(x->begin_ns, x->end_ns));
            continue;
        }
        if (s->open && s->softmax && op & BATCHED) {
            out->count++;
            rp_ns_add(&out->between_ns, s->ns);
        }
        *s = (struct stream){.open = op & BATCHED};
    }
    return RP_OK;
}

static void unfused_attention_find(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    struct rp_report_finding *finding =
        k && k->count ? rp_findings_add_compute(f, 0, k->between_ns) : NULL;

    if (finding)
        RP_SAY(f, finding,
               "rank %d: %lld times a softmax runs between two batched products; what is between "
               "them takes %s",
               rp_findings_lead_number(f), (long long)k->count, rp_findings_time(f, k->between_ns));
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, .text = "one kernel for attention, which keeps the scores on the chip"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "torch.nn.functional.scaled_dot_product_attention(q, k, v, ...) in place of matmul, "
             "softmax and matmul; of Transformers attn_implementation=\"sdpa\""},
    {RP_ADVISE_CALL, .frameworks = FW(JAX), .text = "jax.nn.dot_product_attention(q, k, v)"},
};

const struct rp_finding rp_finding_unfused_attention = {
    .id = "unfused-attention",
    .kinds = {{"", "attention is written out: all scores pass through memory"}},
    .condition = "a softmax runs between two batched products (`aten::bmm`, `aten::baddbmm`) on a "
                 "stream, and no other product does",
    .cost = "device time between these products: scaling, mask, softmax, dropout; an upper bound",
    RP_KEEPS(unfused_attention, unfused_attention_measure),
    .find = unfused_attention_find,
    RP_ADVICE(advice),
};
