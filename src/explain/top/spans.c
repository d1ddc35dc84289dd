/* SPDX-License-Identifier: Apache-2.0 */
/* Names of spans and scopes, as the trees of `top` show and fold them. */
#include "explain/top/spans.h"

#include "base/decides.h"
#include "base/order.h"
#include "facts/torch_names.h"
#include "facts/work/attribution.h"

#include <ctype.h>
#include <string.h>

#define MODULE     "nn.Module: "
#define ENGINE     "autograd::engine::evaluate_function: "
#define MOST_DIGIT 18
RP_FACT(MOST_DIGIT, "digits", "fit into 64 bits");

const char *const rp_span_kind_names[RP_SPAN_KINDS] = {
    [RP_SPAN_ALL] = "all",       [RP_SPAN_MODULE] = "module", [RP_SPAN_ANNOTATION] = "annotation",
    [RP_SPAN_OP] = "op",         [RP_SPAN_PYTHON] = "python", [RP_SPAN_SCOPE] = "scope",
    [RP_SPAN_KERNEL] = "kernel", [RP_SPAN_REST] = "rest"};

/* Steps are marked by annotations around everything in them. */
static bool marks_step(const struct rp_trace *t, rp_event e)
{
    int64_t begin = t->ev.ts_ns[e];
    size_t i;

    if (rp_torch_is(rp_trace_str(t, t->ev.name[e]), rp_trace_str_len(t, t->ev.name[e]),
                    RP_TORCH_STEP))
        return true;
    RP_LOWER_BOUND(i, t->nsteps, t->steps[i].begin_ns < begin);
    for (; i < t->nsteps && t->steps[i].begin_ns == begin; i++)
        if (t->steps[i].mark == e)
            return true;
    return false;
}

enum rp_span_kind rp_span_kind_of(const struct rp_trace *t, rp_event e)
{
    switch (t->ev.kind[e]) {
    case RP_KIND_CPU_OP:
        return RP_SPAN_OP;
    case RP_KIND_PYTHON:
        return rp_event_is_module(t, e) ? RP_SPAN_MODULE : RP_SPAN_PYTHON;
    case RP_KIND_ANNOTATION:
        return marks_step(t, e) ? RP_SPAN_ALL : RP_SPAN_ANNOTATION;
    default:
        return RP_SPAN_ALL;
    }
}

const char *rp_span_name(const struct rp_trace *t, rp_event e)
{
    const char *name = rp_trace_str(t, t->ev.name[e]);

    if (!strncmp(name, MODULE, sizeof MODULE - 1))
        return name + sizeof MODULE - 1;
    return strncmp(name, ENGINE, sizeof ENGINE - 1) != 0 ? name : name + sizeof ENGINE - 1;
}

/* ------------------------------------------------------------------ scopes of XLA */

/* The end of a component: the next '/' outside of parentheses. */
static const char *component_end(const char *p)
{
    int depth = 0;

    for (; *p && (*p != '/' || depth > 0); p++)
        depth += (*p == '(') - (*p == ')');
    return p;
}

/* Removes "jvp(" and the like, with the ')' at the end. */
static void take_off(const char **begin, const char **end, bool *backward)
{
    static const char *const derived[] = {"transpose(", "jvp(",        "vmap(",
                                          "remat(",     "checkpoint(", "custom_vjp_call("};
    size_t i = 0;

    while (i < sizeof derived / sizeof derived[0]) {
        size_t n = strlen(derived[i]);

        if ((size_t)(*end - *begin) > n && !strncmp(*begin, derived[i], n) && (*end)[-1] == ')') {
            *backward |= i == 0;
            *begin += n;
            (*end)--;
            i = 0;
        } else {
            i++;
        }
    }
}

bool rp_scope_next(const char **at, const char **begin, size_t *len, bool *backward)
{
    while (**at) {
        const char *from = *at, *end = component_end(from);

        *at = *end ? end + 1 : end;
        if (!*end && end > from && end[-1] == ':') /* TensorFlow's "name:type" without a type */
            end--;
        take_off(&from, &end, backward);
        if (end > from && strncmp(from, "rematted_computation", (size_t)(end - from)) != 0) {
            *begin = from;
            *len = (size_t)(end - from);
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------ numbers in names */

size_t rp_name_without_numbers(const char *name, size_t len, char *out, int64_t *number,
                               size_t *count)
{
    size_t i = 0, n = 0;

    *number = -1;
    *count = 0;
    while (i < len) {
        size_t end = i;
        int64_t value = 0;

        if (i == 0 || strchr("._/[", name[i - 1]))
            for (; end < len && end - i < MOST_DIGIT && isdigit((unsigned char)name[end]); end++)
                value = value * 10 + (name[end] - '0');
        if (end > i && (end == len || strchr("./]", name[end]))) {
            out[n++] = '*';
            *number = value;
            ++*count;
            i = end;
        } else {
            out[n++] = name[i++];
        }
    }
    return n;
}
