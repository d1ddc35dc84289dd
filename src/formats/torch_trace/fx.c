/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads graphs as torch.fx prints them: each line is a node, below a comment with the line of the
 * program that it comes from, which holds until the next comment.
 *
 *     # File: /home/user/model.py:11 in forward, code: return x + s.f(s.n2(x))
 *     mul_4: "f32[8, 128, 2048][262144, 2048, 1]cuda:0" = torch.ops.aten.mul.Tensor(view_7, 0.5)
 *     step_t += 1;  step_t_1: "f32[][]cuda:0" = step_t
 */
#include "formats/torch_trace/read.h"

#include "base/hash.h"

#include <string.h>

size_t rp_torch_name_length(struct rp_snip s)
{
    size_t n = 0;

    while (n < s.n && rp_snip_is_letter(s.at[n]))
        n++;
    return n;
}

struct rp_snip rp_torch_typed_name(struct rp_snip s, struct rp_snip *name, struct rp_snip *type)
{
    size_t n = rp_torch_name_length(s);
    struct rp_snip rest = {s.at + n, s.n - n};
    const char *quote;

    *name = (struct rp_snip){s.at, n};
    *type = (struct rp_snip){s.at, 0};
    if (!rp_snip_begins(rest, ": \"") || !(quote = memchr(rest.at + 3, '"', rest.n - 3)))
        return rest;
    *type = (struct rp_snip){rest.at + 3, (size_t)(quote - rest.at - 3)};
    return (struct rp_snip){quote + 1, rest.n - (size_t)(quote + 1 - rest.at)};
}

/* Splits "name = what" or 'name: "type" = what'; false for anything else, such as "x[0] = 1". */
static bool split_statement(struct rp_snip s, struct rp_torch_statement *out)
{
    struct rp_snip rest = rp_torch_typed_name(s, &out->name, &out->type);

    if (!out->name.n || !rp_snip_begins(rest, " = "))
        return false;
    out->what = (struct rp_snip){rest.at + 3, rest.n - 3};
    return true;
}

/* Removes the part before "; " from the statement and returns it. */
static struct rp_snip first_part(struct rp_snip *s)
{
    const char *end = memmem(s->at, s->n, ";  ", 3);
    struct rp_snip part = {s->at, end ? (size_t)(end - s->at) : s->n};

    s->n -= part.n + (end ? 3 : 0);
    s->at += part.n + (end ? 3 : 0);
    return part;
}

/* Whether there is a size like "s27" inside of brackets, which is not a constant. */
static bool has_symbol(struct rp_snip type)
{
    for (size_t i = 1; i + 1 < type.n; i++)
        if ((type.at[i] == 's' || type.at[i] == 'u') && !rp_snip_is_letter(type.at[i - 1]) &&
            type.at[i + 1] >= '0' && type.at[i + 1] <= '9')
            return true;
    return false;
}

bool rp_torch_statement_of(struct rp_snip line, struct rp_torch_statement *out)
{
    struct rp_snip rest = line, part = first_part(&rest), what = part;

    if (rp_snip_begins(line, "return") || rp_snip_begins(line, "def ") ||
        rp_snip_begins(line, "class "))
        return false;
    if (split_statement(part, out))
        return true;
    part = first_part(&rest); /* "x += 1;  x_1 = x" */
    if (!split_statement(part, out))
        return false;
    out->what = what;
    return true;
}

bool rp_torch_comment_of(struct rp_snip line, struct rp_torch_frame *out)
{
    static const char begin[] = "# File: ";
    const char *end = line.at + line.n;

    if (!rp_snip_begins(line, begin))
        return false;
    out->path.at = line.at + sizeof begin - 1;
    const char *in = memmem(out->path.at, (size_t)(end - out->path.at), " in ", 4);
    const char *colon = in ? memrchr(out->path.at, ':', (size_t)(in - out->path.at)) : NULL;
    if (!colon || !rp_snip_int((struct rp_snip){colon + 1, (size_t)(in - colon - 1)}, &out->line))
        return false;
    out->path.n = (size_t)(colon - out->path.at);
    const char *code = memmem(in, (size_t)(end - in), ", code: ", 8);
    out->function = (struct rp_snip){in + 4, (size_t)((code ? code : end) - in - 4)};
    return true;
}

static enum rp_code read_comment(struct rp_torch_trace *trace, struct rp_snip line, uint32_t *place,
                                 struct rp_err *err)
{
    struct rp_torch_frame at;

    if (rp_snip_begins(line, RP_TORCH_NO_STACK))
        *place = RP_NONE;
    if (!rp_torch_comment_of(line, &at))
        return RP_OK;
    return rp_torch_place(trace, at.path, at.line, at.function, place, err);
}

enum rp_code rp_torch_nodes_read(struct rp_torch_nodes *nodes, struct rp_snip text,
                                 struct rp_torch_trace *trace, struct rp_err *err)
{
    struct rp_snip line;
    uint32_t place = RP_NONE;

    while (rp_snip_line(&text, &line)) {
        line = rp_snip_trim(line);
        if (line.n && *line.at == '#')
            RP_TRY(read_comment(trace, line, &place, err));
        else if (line.n) {
            struct rp_torch_statement s;
            if (rp_torch_statement_of(line, &s)) {
                /* an input or an attribute has another name, and is not a call */
                nodes->ops +=
                    rp_torch_name_length(s.what) != s.what.n && !rp_snip_begins(s.what, "self.");
                nodes->dynamic = nodes->dynamic || has_symbol(s.type);
                struct rp_torch_node node = {rp_hash_bytes(s.name.at, s.name.n), place};
                uint32_t is;
                RP_TRY(rp_map_intern(&nodes->by_name, node.name, (uint32_t)nodes->at.n, &is, err));
                if (is == nodes->at.n)
                    RP_TRY(rp_vec_push(&nodes->at, node, err));
            }
        }
    }
    return RP_OK;
}

void rp_torch_nodes_release(struct rp_torch_nodes *nodes)
{
    rp_vec_release(&nodes->at);
    rp_map_release(&nodes->by_name);
    nodes->ops = 0;
    nodes->dynamic = false;
}

uint32_t rp_torch_nodes_place(const struct rp_torch_nodes *nodes, struct rp_snip name)
{
    uint32_t i = rp_map_get(&nodes->by_name, rp_hash_bytes(name.at, name.n));

    return i == RP_MAP_NONE ? RP_NONE : nodes->at.at[i].place;
}
