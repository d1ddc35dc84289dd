/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel leads to its call in the log (xref/compiled.h). The tensors that the log states for it
 * become the inputs that the profiler would have recorded, and have the same model.
 */
#include "explain/roofline/inductor.h"

#include "cost/models.h"

#include <stdio.h>

static enum rp_code read_logs(struct rp_inductor_costs *x, const char *dumps, struct rp_err *err)
{
    const struct rp_loaded *loaded = x->loaded;

    x->was_read = true;
    RP_TRY(rp_compiled_read_logs(&x->log, loaded->trace,
                                 loaded->source ? loaded->source->path : NULL, dumps, err));
    return rp_compiled_init(&x->compiled, loaded->trace, &x->log, err);
}

enum rp_code rp_inductor_costs_init(struct rp_inductor_costs *x, const struct rp_loaded *loaded,
                                    const char *dumps, struct rp_err *err)
{
    *x = (struct rp_inductor_costs){.loaded = loaded};
    rp_torch_trace_init(&x->log);
    if (dumps)
        RP_TRY(read_logs(x, dumps, err));
    return !dumps || x->log.logs.n
               ? RP_OK
               : rp_err_set(err, RP_FORMAT,
                            "'%s': no log of torch.compile; 'reprise dump run' makes PyTorch write "
                            "one",
                            dumps);
}

void rp_inductor_costs_release(struct rp_inductor_costs *x)
{
    rp_compiled_release(&x->compiled);
    rp_torch_trace_release(&x->log);
    rp_inputs_release(&x->inputs);
}

bool rp_inductor_cost_of(struct rp_inductor_costs *x, rp_event item, struct rp_op_cost *out)
{
    char dims[4096], types[4096], numbers[4096];
    size_t tensors = 1, n = 0;

    /* A log that merely lies beside the trace was not asked for, so if it cannot be read, nothing
       is known. */
    if (!x->was_read && read_logs(x, NULL, NULL) != RP_OK)
        x->log.graphs.n = 0;
    if (!x->log.graphs.n)
        return false;
    struct rp_compiled_span span = rp_compiled_of_event(&x->compiled, item);
    if (span.graph == RP_NONE || span.call == RP_NONE)
        return false;
    const struct rp_torch_call *call = &x->log.calls.at[span.call];
    const struct rp_torch_kernel *kernel =
        &x->log.kernels.at[x->log.graphs.at[span.graph].first_kernel + call->kernel];
    if (!kernel->dims)
        return false;

    /* the tensors, followed by the numbers of its loops */
    for (const char *at = kernel->types; *at; at++)
        tensors += *at == ',';
    for (size_t i = 0; i < tensors && n + 8 < sizeof numbers; i++)
        n += (size_t)snprintf(numbers + n, sizeof numbers - n, "%s\"\"", i ? "," : "[");
    if (n + 64 > sizeof numbers)
        return false;
    snprintf(numbers + n, sizeof numbers - n, ",\"%.0f\",\"%.0f\"]", call->outer,
             call->outer > 0 ? call->elements / call->outer : 0);
    if ((size_t)snprintf(dims, sizeof dims, "[%s,[],[]]", kernel->dims) >= sizeof dims ||
        (size_t)snprintf(types, sizeof types, "[%s,\"Scalar\",\"Scalar\"]", kernel->types) >=
            sizeof types ||
        rp_inputs_parse(&x->inputs, kernel->name, dims, NULL, types, numbers, NULL) != RP_OK)
        return false;
    struct rp_op_cost cost = {.category = out->category};
    cost.missing = rp_model_triton(&x->inputs, 0, &cost);
    if (cost.missing)
        return false;
    *out = cost;
    return true;
}
