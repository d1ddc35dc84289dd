/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes are read from the argument "Input Dims" of PyTorch's operators, for names that are asked.
 */
#include "explain/stalls/inputs.h"

#include "facts/intervals.h"

#include <stdlib.h>

#define LARGER 8

enum rp_code rp_inputs_init(struct rp_inputs *in, const struct rp_trace *trace, struct rp_err *err)
{
    *in = (struct rp_inputs){.trace = trace};
    rp_map_init(&in->names);
    return rp_arg_key_init(&in->dims, trace, "Input Dims", err);
}

void rp_inputs_release(struct rp_inputs *in)
{
    rp_arg_key_release(&in->dims);
    rp_map_release(&in->names);
    rp_vec_release(&in->usual);
    rp_vec_release(&in->scratch);
}

int64_t rp_inputs_count(const char *dims)
{
    int64_t sum = 0, product = 1;
    bool any = false;

    for (; *dims; dims++) {
        if (*dims == '[') {
            product = 1;
            any = false;
        } else if (*dims >= '0' && *dims <= '9') {
            char *end;
            long long n = strtoll(dims, &end, 10);

            any = true;
            if (__builtin_mul_overflow(product, n, &product))
                return INT64_MAX;
            dims = end - 1;
        } else if (*dims == ']' && any) {
            if (__builtin_add_overflow(sum, product, &sum))
                return INT64_MAX;
            any = false;
        }
    }
    return sum;
}

static int64_t elements_of(const struct rp_inputs *in, rp_event e)
{
    rp_str text;

    return rp_arg_key_text(&in->dims, e, &text) ? rp_inputs_count(rp_trace_str(in->trace, text))
                                                : -1;
}

/* The median over calls of a name, of their elements or of their lengths. */
static enum rp_code median(struct rp_inputs *in, rp_str name, bool of_elements, int64_t *out,
                           struct rp_err *err)
{
    const struct rp_events *ev = &in->trace->ev;
    rp_event e;

    in->scratch.n = 0;
    for (e = 0; e < ev->n; e++) {
        int64_t n = ev->name[e] == name && ev->dur_ns[e] >= 0 ? elements_of(in, e) : -1;

        if (n >= 0)
            RP_TRY(rp_vec_push(&in->scratch, of_elements ? n : ev->dur_ns[e], err));
    }
    if (in->scratch.n)
        qsort(in->scratch.at, in->scratch.n, sizeof *in->scratch.at, rp_ns_order);
    *out = in->scratch.n ? in->scratch.at[in->scratch.n / 2] : 0;
    return RP_OK;
}

enum rp_code rp_inputs_are_larger(struct rp_inputs *in, rp_event call, bool *out,
                                  struct rp_err *err)
{
    rp_str name = in->trace->ev.name[call];
    uint32_t fresh = (uint32_t)in->usual.n, at;
    struct rp_usual_input usual = {0, 0};
    int64_t elements;
    double larger, longer;

    *out = false;
    if (in->dims.key == RP_NONE)
        return RP_OK;
    RP_TRY(rp_map_intern(&in->names, name, fresh, &at, err));
    if (at == fresh) {
        RP_TRY(median(in, name, true, &usual.elements, err));
        RP_TRY(median(in, name, false, &usual.dur_ns, err));
        RP_TRY(rp_vec_push(&in->usual, usual, err));
    }
    usual = in->usual.at[at];
    elements = elements_of(in, call);
    if (elements <= 0 || usual.elements <= 0 || usual.dur_ns <= 0)
        return RP_OK;
    larger = (double)elements / (double)usual.elements;
    longer = (double)in->trace->ev.dur_ns[call] / (double)usual.dur_ns;
    *out = larger >= LARGER && larger >= longer / LARGER;
    return RP_OK;
}
