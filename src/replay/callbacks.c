/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces calls back into Python whose results are recorded, as arrays beside the inputs:
 * callback<k>_<i> is array i of callback k, counted in the order of the flattened program. The call
 * becomes a parameter of the program for each of its arrays, so that every engine can run it:
 *
 *     custom-call(x), target "xla_ffi_python_cpu_callback"   ->   parameter(1)
 *
 * A callback in a loop runs several times with different results, so it stays, and is refused.
 */
#include "formats/programs.h"
#include "program/opcodes.h"
#include "replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_callback(const struct rp_program *p, uint32_t op)
{
    const struct rp_attr *target =
        p->code.at[op] == RP_OP_CUSTOM_CALL ? rp_op_attr(p, op, RP_ATTR_CUSTOM_CALL_TARGET) : NULL;

    return target && rp_attr_is_bytes(target) && memmem(target->at, target->n, "callback", 8) &&
           rp_shape_leaves(p, p->shape.at[op]);
}

static bool any_recorded(const struct rp_arrays *arrays)
{
    for (size_t i = 0; i < arrays->list.n; i++)
        if (!strncmp(arrays->list.at[i].name, "callback", 8))
            return true;
    return false;
}

/* The former name of the array of a parameter of the new program, or NULL. */
static const char *old_name(const struct rp_program *flat, const struct rp_signature *sig,
                            const struct rp_cut_input *in, char *to, size_t cap)
{
    uint32_t leaf = 0, number = 0;

    if (flat->code.at[in->op] == RP_OP_CUSTOM_CALL) {
        for (uint32_t op = flat->computations.at[flat->entry].first; op < in->op; op++)
            number += is_callback(flat, op);
        snprintf(to, cap, "callback%u_%u", number, in->leaf);
        return to;
    }
    for (size_t i = 0; i < sig->nin; i++)
        if (sig->in[i].op == in->op && leaf++ == in->leaf) {
            snprintf(to, cap, "in%zu", i);
            return to;
        }
    return NULL;
}

/* Names the arrays of the new parameters in0, in1 ... in their order. */
static enum rp_code rename_arrays(struct rp_session *s, const struct rp_signature *sig,
                                  struct rp_err *err)
{
    const struct rp_recorded *r = &s->recorded;
    RP_SCOPED(rp_arrays_release) struct rp_arrays arrays = {0};

    for (size_t i = 0; i < r->cut.inputs.n; i++) {
        char name[64];
        const char *old = old_name(r->flat, sig, &r->cut.inputs.at[i], name, sizeof name);
        struct rp_tensor *t = old ? rp_arrays_find(&s->inputs, old) : NULL;

        if (!t)
            return rp_err_set(err, RP_FORMAT, "'%s': array '%s' is missing", s->file,
                              old ? old : "of a parameter");
        RP_TRY(rp_arrays_add(&arrays, rp_tensor_keep(t), err, "in%zu", i));
    }
    rp_arrays_release(&s->inputs);
    s->inputs = arrays;
    arrays = (struct rp_arrays){0};
    return RP_OK;
}

static enum rp_code cut_callbacks(struct rp_session *s, struct rp_err *err)
{
    struct rp_recorded *r = &s->recorded;
    const struct rp_program *flat = r->flat;
    const struct rp_computation *c = &flat->computations.at[flat->entry];
    RP_FREED uint8_t *keep = calloc((size_t)c->n + 1, 1);
    struct rp_cut cut = {flat->entry, keep, &c->root, 1, false};

    RP_TRY(rp_err_need(keep, err, "preparing inputs"));
    for (uint32_t i = 0; i < c->n; i++)
        keep[i] =
            !is_callback(flat, c->first + i) && flat->code.at[c->first + i] != RP_OP_PARAMETER;
    if (!keep[c->root - c->first])
        return rp_err_set(err, RP_UNSUPPORTED,
                          "'%s': its results are those of the recorded callback: nothing is left "
                          "to run",
                          s->file);
    return rp_program_cut(flat, &cut, &r->cut, err);
}

enum rp_code rp_session_callbacks(struct rp_session *s, struct rp_err *err)
{
    struct rp_recorded *r = &s->recorded;
    struct rp_signature sig;

    if (!s->program.program || !any_recorded(&s->inputs))
        return RP_OK;
    RP_TRY(rp_program_flatten(s->program.program, 0, &r->flat, err));
    RP_TRY(rp_signature_find(r->flat, s->arena, &sig, err));
    if (sig.partitions > 1)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "'%s': recorded callbacks are for programs of one partition", s->file);
    RP_TRY(cut_callbacks(s, err));
    RP_TRY(rename_arrays(s, &sig, err));
    return rp_session_replace(s, r->cut.program, err);
}

enum rp_code rp_session_replace(struct rp_session *s, const struct rp_program *program,
                                struct rp_err *err)
{
    struct rp_bytes bytes;

    rp_proto_writer_release(&s->module);
    RP_TRY(rp_hlo_module_write(program, &s->module, err));
    RP_TRY(rp_proto_written(&s->module, &bytes, err));
    s->program.program = program;
    s->program.format = "hlo-proto";
    s->program.bytes = bytes.at;
    s->program.nbytes = bytes.n;
    s->program.module = bytes.at;
    s->program.nmodule = bytes.n;
    return RP_OK;
}

void rp_session_callbacks_release(struct rp_session *s)
{
    rp_proto_writer_release(&s->module);
    rp_cut_release(&s->recorded.cut);
    rp_program_free(s->recorded.flat);
    rp_program_free(s->refined);
}
