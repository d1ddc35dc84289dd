/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that was exported for inputs of any size is run for inputs of the sizes that are given:
 * those of the arrays, or of --refine. The program for these sizes is run, checked and packed.
 */
#include "program/refine.h"
#include "replay/replay.h"

/* Uses what --refine says, then the arrays. */
static enum rp_code given_shapes(struct rp_session *s, const struct rp_session_options *o,
                                 struct rp_refine_shape *shapes, size_t n, struct rp_err *err)
{
    struct rp_refine_shape *said = NULL;
    struct rp_signature sig;
    size_t nsaid = 0;

    if (o->refine)
        RP_TRY(rp_refine_parse(o->refine, s->arena, &said, &nsaid, err));
    RP_TRY(rp_signature_find(s->program.program, s->arena, &sig, err));
    if (nsaid > sig.nin)
        return rp_err_set(err, RP_USAGE, "'in%zu' of --refine: the program has %zu inputs",
                          nsaid - 1, sig.nin);
    for (size_t i = 0; i < sig.nin; i++) {
        int64_t number = s->program.program->value.at[sig.in[i].op];
        const struct rp_tensor *t = rp_session_input(s, i);

        if (number < 0 || (size_t)number >= n)
            continue;
        if (i < nsaid && said[i].given)
            shapes[number] = said[i];
        else if (t)
            shapes[number] = (struct rp_refine_shape){t->dims, t->rank, true};
    }
    return RP_OK;
}

enum rp_code rp_session_refine(struct rp_session *s, const struct rp_session_options *o,
                               struct rp_err *err)
{
    const struct rp_program *p = s->program.program;

    if (!p || p->entry == RP_NONE || !rp_program_is_dynamic(p))
        return !o->refine ? RP_OK
                          : rp_err_set(err, RP_USAGE,
                                       "'%s': all its shapes are known: --refine has nothing to do",
                                       s->file);
    size_t n = p->computations.at[p->entry].nparams;
    struct rp_refine_shape *shapes = RP_ARENA_NEW(s->arena, struct rp_refine_shape, n + 1);
    RP_TRY(rp_err_need(shapes, err, "refining shapes"));
    enum rp_code code = given_shapes(s, o, shapes, n, err);
    if (code == RP_OK)
        code = rp_program_refine(p, shapes, n, &s->refined, err);
    if (code != RP_OK)
        return rp_err_prefix(err, code, "'%s'", s->file);
    return rp_session_replace(s, s->refined, err);
}
