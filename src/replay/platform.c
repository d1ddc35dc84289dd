/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that was exported for several platforms takes the index of the current platform as its
 * first parameter, which is not an input of the user's: it is that of this machine, "cpu", unless
 * the inputs contain it. The list of platforms is in a file of jax.export, a FlatBuffer:
 *
 *     03000000  <offset> <offset> <offset>  ...  03000000 "cpu\0"
 *
 * A module alone has no list, so the first one is assumed.
 */
#include "replay/replay.h"

#include "program/opcodes.h"

#include <string.h>

#define MOST_PLATFORMS 8

static uint32_t word_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The name to which the offset at `at` leads, such as "cuda", or NULL. */
static const char *name_at(const uint8_t *bytes, size_t n, size_t at)
{
    uint64_t to = at + 4 <= n ? at + word_at(bytes + at) : n;
    uint32_t len = to + 4 <= n ? word_at(bytes + to) : 0;

    if (len < 3 || len > 7 || to + 5 + len > n || bytes[to + 4 + len])
        return NULL;
    for (uint32_t i = 0; i < len; i++)
        if (bytes[to + 4 + i] < 'a' || bytes[to + 4 + i] > 'z')
            return NULL;
    return (const char *)bytes + to + 4;
}

/* The place of "cpu" in the list; 0 if there is none. */
static int64_t find_platform(const uint8_t *bytes, size_t n)
{
    for (size_t at = 0; at + 4 <= n; at += 4) {
        uint32_t count = word_at(bytes + at);
        int64_t cpu = -1;
        uint32_t i = 0;

        if (count < 2 || count > MOST_PLATFORMS)
            continue;
        for (const char *name; i < count && (name = name_at(bytes, n, at + 4 + (size_t)4 * i)); i++)
            if (!strcmp(name, "cpu"))
                cpu = i;
        if (i == count && cpu >= 0)
            return cpu;
    }
    return 0;
}

/* Whether its first parameter is that index. */
static bool takes_platform(const struct rp_session *s)
{
    static const char mark[] = "_platform_index";
    const struct rp_program *p = s->program.program;

    if (!p || strcmp(p->language, "stablehlo") != 0 || p->entry >= p->computations.n ||
        !memmem(s->program.bytes, s->program.nbytes, mark, sizeof mark - 1))
        return false;
    const struct rp_computation *c = &p->computations.at[p->entry];
    for (uint32_t op = c->first; op < c->first + c->n; op++)
        if (p->code.at[op] == RP_OP_PARAMETER && p->value.at[op] == 0) {
            const struct rp_op_shape *shape = &p->shapes.at[p->shape.at[op]];

            return !shape->n && (shape->elem == RP_ELEM_S32 || shape->elem == RP_ELEM_S64);
        }
    return false;
}

static enum rp_code index_array(const struct rp_session *s, unsigned elem, struct rp_tensor **out,
                                struct rp_err *err)
{
    RP_TRY(rp_tensor_new(elem, NULL, 0, out, err));
    rp_tensor_set(*out, 0, (double)s->platform);
    return RP_OK;
}

/* Makes the index in0; what was in0 becomes in1, and so on. */
static enum rp_code shift_arrays(struct rp_session *s, size_t n, struct rp_err *err)
{
    RP_SCOPED(rp_arrays_release) struct rp_arrays arrays = {0};
    struct rp_tensor *t;

    RP_TRY(index_array(s, RP_ELEM_S32, &t, err));
    RP_TRY(rp_arrays_add(&arrays, t, err, "in0"));
    for (size_t i = 0; i < n; i++)
        if ((t = rp_session_input(s, i)))
            RP_TRY(rp_arrays_add(&arrays, rp_tensor_keep(t), err, "in%zu", i + 1));
    rp_arrays_release(&s->inputs);
    s->inputs = arrays;
    arrays = (struct rp_arrays){0};
    return RP_OK;
}

enum rp_code rp_session_platform(struct rp_session *s, struct rp_err *err)
{
    s->platform = -1;
    if (!takes_platform(s))
        return RP_OK;
    size_t n = s->program.program->computations.at[s->program.program->entry].nparams;
    if (s->inputs.list.n && rp_session_input(s, n - 1))
        return RP_OK; /* given */
    s->platform = find_platform(s->program.bytes, s->program.nbytes);
    return s->inputs.list.n ? shift_arrays(s, n - 1, err) : RP_OK;
}

enum rp_code rp_session_set_platform(struct rp_session *s, struct rp_err *err)
{
    for (size_t p = 0; p < s->partitions; p++) {
        struct rp_tensor **slot = &s->arguments[p * s->signature.nin];

        rp_tensor_drop(*slot);
        *slot = NULL;
        RP_TRY(index_array(s, s->signature.in[0].elem, slot, err));
    }
    return RP_OK;
}
