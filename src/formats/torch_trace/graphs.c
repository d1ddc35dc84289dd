/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Presents the graphs of compile logs as files of their own. A compilation makes one graph for the
 * forward and one for the backward pass; graphs before the joint graph is divided belong to the
 * forward pass:
 *
 *     dynamo_output_graph  before_pre_grad_graph  …  aot_joint_graph     forward; the last, both
 *     aot_forward_graph  aot_backward_graph                              one each
 *     before_post_grad_graph  inductor_post_grad_graph                   of the code that follows
 *     inductor_output_code                                               says its direction
 */
#include "formats/torch_trace/torch_trace.h"

#include "base/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stage {
    size_t source;
    uint32_t compile, number; /* number: in the log, counted from 0 */
    uint8_t direction;        /* enum rp_torch_direction; unknown until the code has been read */
    char name[64];
    uint8_t *text;
    size_t n;
};

struct lister {
    struct rp_sources *sources;
    struct rp_torch_trace trace;
    struct rp_torch_texts texts;
    size_t source;       /* that is read */
    uint64_t held, most; /* bytes */
    RP_VEC(struct stage) stages;
};

static uint8_t direction_of(const char *name)
{
    return !strcmp(name, "aot_backward_graph")    ? RP_TORCH_IS_BACKWARD
           : !strcmp(name, "aot_inference_graph") ? RP_TORCH_IS_INFERENCE
           : !strcmp(name, "aot_forward_graph")   ? RP_TORCH_IS_FORWARD
                                                  : RP_TORCH_IS_UNKNOWN;
}

static enum rp_code add_stage(void *user, uint32_t compile, const char *name, struct rp_snip text,
                              struct rp_err *err)
{
    struct lister *l = user;
    struct stage stage = {.source = l->source,
                          .compile = compile,
                          .number = (uint32_t)l->stages.n,
                          .direction = direction_of(name),
                          .n = text.n};

    if (!strcmp(name, "inductor_output_code")) {
        /* The graphs since the last code have the direction of this code, which its first lines
           state. */
        struct rp_snip head = {text.at, text.n < 200 ? text.n : 200};
        uint8_t direction = rp_snip_has(head, "_backward'")    ? RP_TORCH_IS_BACKWARD
                            : rp_snip_has(head, "_inference'") ? RP_TORCH_IS_INFERENCE
                                                               : RP_TORCH_IS_FORWARD;

        for (size_t i = l->stages.n; i-- > 0;) {
            struct stage *s = &l->stages.at[i];

            if (s->compile == compile && strstr(s->name, "post_grad") && !s->direction)
                s->direction = direction;
        }
        return RP_OK;
    }
    if (!rp_snip_has((struct rp_snip){text.at, text.n < 400 ? text.n : 400}, "class "))
        return RP_OK; /* it is AOTInductor's C++, or a graph that could not be printed */
    l->held += text.n;
    if (l->held > l->most)
        return rp_err_set(err, RP_LIMIT, "the graphs of the log have more than %llu bytes",
                          (unsigned long long)l->most);
    snprintf(stage.name, sizeof stage.name, "%s", name);
    stage.text = malloc(text.n + 1);
    RP_TRY(rp_err_need(stage.text, err, "listing graphs"));
    memcpy(stage.text, text.at, text.n);
    if (rp_vec_push(&l->stages, stage, err) == RP_OK)
        return RP_OK;
    free(stage.text);
    return RP_NOMEM;
}

static enum rp_code read_logs(struct lister *l, const struct rp_limits *limits, bool *is,
                              struct rp_err *err)
{
    size_t n = rp_sources_count(l->sources);

    for (l->source = 0; l->source < n; l->source++)
        RP_TRY(rp_torch_trace_add(&l->trace, l->sources, l->source, limits, &is[l->source], err));
    return RP_OK;
}

static enum rp_code add_part(struct lister *l, struct stage *s, uint8_t direction,
                             struct rp_err *err)
{
    const struct rp_torch_compile *c = &l->trace.compiles.at[s->compile];
    char name[256], again[24] = "";
    uint8_t *copy = malloc(s->n + 1);

    RP_TRY(rp_err_need(copy, err, "listing graphs"));
    memcpy(copy, s->text, s->n);
    if (c->occurrence)
        snprintf(again, sizeof again, "#%lld", (long long)c->occurrence + 1);
    snprintf(name, sizeof name, "fx:%.80s%s:%s.%05u.%s", c->id, again,
             rp_torch_direction_names[direction], s->number, s->name);
    return rp_sources_add_part(l->sources, s->source, name, copy, s->n, err);
}

static bool has_direction(const struct lister *l, uint32_t compile, uint8_t direction)
{
    for (size_t i = 0; i < l->stages.n; i++)
        if (l->stages.at[i].compile == compile && l->stages.at[i].direction == direction)
            return true;
    return false;
}

static enum rp_code add_parts(struct lister *l, bool *is, struct rp_err *err)
{
    size_t n = rp_sources_count(l->sources);

    memset(is, 0, n);
    for (size_t i = 0; i < l->stages.n; i++) {
        struct stage *s = &l->stages.at[i];
        uint8_t direction = s->direction ? s->direction
                            : has_direction(l, s->compile, RP_TORCH_IS_INFERENCE)
                                ? RP_TORCH_IS_INFERENCE
                                : RP_TORCH_IS_FORWARD;

        is[s->source] = true;
        RP_TRY(add_part(l, s, direction, err));
        if (!strcmp(s->name, "aot_joint_graph") &&
            has_direction(l, s->compile, RP_TORCH_IS_BACKWARD))
            RP_TRY(add_part(l, s, RP_TORCH_IS_BACKWARD, err));
    }
    rp_sources_settle(l->sources, is, n);
    return RP_OK;
}

enum rp_code rp_torch_graphs_list(struct rp_sources *sources, const struct rp_limits *limits,
                                  struct rp_err *err)
{
    struct lister l = {.sources = sources,
                       .most = limits ? limits->held_bytes : RP_LIMITS_DEFAULT.held_bytes};
    bool *is = calloc(rp_sources_count(sources) + 1, sizeof *is);
    enum rp_code code = rp_err_need(is, err, "listing graphs");

    l.texts = (struct rp_torch_texts){&l, add_stage};
    rp_torch_trace_init(&l.trace);
    l.trace.texts = &l.texts;
    if (code == RP_OK)
        code = read_logs(&l, limits, is, err);
    if (code == RP_OK)
        code = add_parts(&l, is, err);
    for (size_t i = 0; i < l.stages.n; i++)
        free(l.stages.at[i].text);
    rp_vec_release(&l.stages);
    rp_torch_trace_release(&l.trace);
    free(is);
    return code;
}
