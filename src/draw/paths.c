/* SPDX-License-Identifier: Apache-2.0 */
#include "draw/paths.h"

struct paths {
    const struct rp_tree *tree;
    struct rp_arena *arena;
    const char **of;
};

static const char *group_word(const struct paths *s, uint32_t g)
{
    const struct rp_group *group = &s->tree->groups[g];
    uint32_t place = s->tree->index[s->tree->p->nops + g];

    switch (group->kind) {
    case RP_GROUP_REPEAT:
        return rp_arena_textf(s->arena, "stack%u_x%u", place, group->n);
    case RP_GROUP_LAYER:
        return rp_arena_textf(s->arena, "layer%u", group->number);
    case RP_GROUP_PART:
        return rp_arena_textf(s->arena, "part%u", group->number);
    case RP_GROUP_INPUTS:
        return "inputs";
    default:
        return group->name;
    }
}

static const char *path_of(struct paths *s, uint32_t g, int depth);

/* The path of a computation's root is inside its caller. */
static const char *root_path(struct paths *s, uint32_t g, int depth)
{
    const struct rp_tree *t = s->tree;
    uint32_t c = t->groups[g].computation, op = t->caller[c];

    if (c == t->p->entry)
        return "";
    if (op == RP_NONE || depth > 100) /* it is not called, or is part of an operation, like the
                                         function of a reduction */
        return rp_arena_textf(s->arena, "computations/%s", t->groups[g].name);
    const char *up = path_of(s, t->home[op], depth + 1);
    const char *name = rp_program_text(t->p, t->p->op_name.at[op]);
    if (rp_op_called(t->p, op).n > 1)
        return rp_arena_textf(s->arena, "%s%s%s_calls/%s", up, *up ? "/" : "", name,
                              t->groups[g].name);
    return rp_arena_textf(s->arena, "%s%s%s_calls", up, *up ? "/" : "", name);
}

static const char *path_of(struct paths *s, uint32_t g, int depth)
{
    if (s->of[g])
        return s->of[g];
    if (s->tree->groups[g].parent == RP_NONE)
        return s->of[g] = root_path(s, g, depth);
    const char *up = path_of(s, s->tree->groups[g].parent, depth);
    const char *word = group_word(s, g);
    return s->of[g] = *up ? rp_arena_textf(s->arena, "%s/%s", up, word) : word;
}

enum rp_code rp_paths_make(const struct rp_tree *tree, struct rp_arena *arena, const char ***out,
                           struct rp_err *err)
{
    struct paths s = {tree, arena, RP_ARENA_NEW(arena, const char *, (size_t)tree->ngroups + 1)};

    RP_TRY(rp_err_need(s.of, err, "naming groups"));
    for (uint32_t g = 0; g < tree->ngroups; g++)
        path_of(&s, g, 0);
    *out = s.of;
    return rp_arena_check(arena, "naming groups", err);
}
