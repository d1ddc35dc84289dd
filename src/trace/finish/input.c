/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises functions of tf.data. TensorFlow runs them like a model: with operators, in its
 * executor, on threads of a pool. Work called by a stage of the input has the step number of that
 * call, the argument "id" of "InstantiatedCapturedFunction::…". The executor's spans with such a
 * number get that name, and operators in them belong to the input, not to the model.
 */
#include "trace/finish/finish.h"

#include "base/filled.h"
#include "base/order.h"
#include "trace/build/state.h"

#include <string.h>

#define CALLER   "InstantiatedCapturedFunction::"
#define EXECUTOR "ExecutorState::Process"
#define RENAMED  "tf.data " EXECUTOR

RP_ORDER(ascending, int64_t, RP_COMPARE(*a, *b))

struct input_ctx {
    struct rp_builder *b;
    rp_str id, executor, renamed;
    RP_VEC(int64_t) steps;   /* step numbers of functions of tf.data, ascending */
    RP_VEC(uint8_t) callers; /* by string: 1 is a call of a function, 2 is not, 0 not examined */
    RP_VEC(uint8_t) inside;  /* by event */
};

static bool step_of(const struct input_ctx *w, rp_event e, int64_t *step)
{
    struct rp_arg arg;

    if (!rp_args_find(&w->b->trace->args, w->b->ev.shape.at[e], w->b->ev.arg_row.at[e], w->id,
                      &arg) ||
        arg.type != RP_ARG_I64)
        return false;
    *step = arg.v.i;
    return true;
}

static enum rp_code list_steps(struct input_ctx *w, struct rp_err *err)
{
    int64_t step;

    for (rp_event e = 0; e < w->b->ev.n; e++) {
        uint8_t *caller = &w->callers.at[w->b->ev.name.at[e]];

        if (!*caller)
            *caller = strncmp(rp_strtab_borrow(&w->b->str, w->b->ev.name.at[e]), CALLER,
                              sizeof CALLER - 1) != 0
                          ? 2
                          : 1;
        if (*caller == 1 && step_of(w, e, &step))
            RP_TRY(rp_vec_push(&w->steps, step, err));
    }
    rp_sort(w->steps.at, w->steps.n, sizeof *w->steps.at, ascending);
    return RP_OK;
}

static bool is_of_input(const struct input_ctx *w, rp_event e)
{
    int64_t step;
    size_t i;

    if (w->b->ev.name.at[e] != w->executor || !step_of(w, e, &step))
        return false;
    RP_LOWER_BOUND(i, w->steps.n, w->steps.at[i] < step);
    return i < w->steps.n && w->steps.at[i] == step;
}

enum rp_code rp_pass_input(struct rp_builder *b, struct rp_err *err)
{
    struct input_ctx w = {
        .b = b, .id = rp_build_find_str(b, "id"), .executor = rp_build_find_str(b, EXECUTOR)};

    if (w.id == RP_NONE || w.executor == RP_NONE)
        return RP_OK;
    enum rp_code code = rp_vec_zeros(&w.callers, b->str.n, err);
    if (code == RP_OK)
        code = list_steps(&w, err);
    if (code == RP_OK && w.steps.n)
        code = rp_strtab_intern(&b->str, RENAMED, sizeof RENAMED - 1, &w.renamed, err);
    if (code == RP_OK && w.steps.n)
        code = rp_vec_reserve(&w.inside, (size_t)b->ev.n + 1, err);
    if (code == RP_OK && w.steps.n) {
        /* A span precedes those inside it. */
        struct rp_build_events *ev = &w.b->ev;

        for (rp_event e = 0; e < ev->n; e++) {
            rp_event parent = ev->parent.at[e];

            w.inside.at[e] = parent != RP_NONE && w.inside.at[parent];
            if (w.inside.at[e] && ev->kind.at[e] == RP_KIND_CPU_OP)
                ev->kind.at[e] = RP_KIND_ANNOTATION;
            if (is_of_input(&w, e)) {
                w.inside.at[e] = 1;
                ev->name.at[e] = w.renamed;
            }
        }
    }
    rp_vec_release(&w.steps);
    rp_vec_release(&w.callers);
    rp_vec_release(&w.inside);
    return code;
}
