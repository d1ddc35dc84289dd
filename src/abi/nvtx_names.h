/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Parses the names that frameworks give their NVTX ranges:
 *
 * PyTorch (emit_nvtx)   aten::mm, seq = 1, op_id = 15, sizes = [[4096, 512], [512, 1536]],
 *                       input_op_ids = [(9,0), (5,0)]
 * XLA (domain TSL)      Thunk:#name=jit(f)/jvp()/dot_general,hlo_op=custom-call.0#
 *                       XlaModule:#hlo_module=jit_f,program_id=2651#
 *
 * A name with op_id is different in each call, so storing it unparsed would cost a new text for
 * every call. Each key takes one pass over the text; names have some hundred bytes at most.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct rp_nvtx_text {
    const char *at; /* without a NUL; NULL if there is none */
    size_t n;
};

struct rp_nvtx_name {
    struct rp_nvtx_text name;
    bool is_operator; /* otherwise it is a range of the program */
    int64_t sequence; /* PyTorch's number, which forward and backward share; -1 if none */
    struct rp_nvtx_text sizes;
    struct rp_nvtx_text path; /* XLA: op_name of the instruction */
    struct rp_nvtx_text module;
    int64_t program; /* XLA's number of the program; -1 if none */
};

/* Whether it is like "aten::mm", but not "FSDP::pre_forward": namespaces of operators begin with a
   small letter, ranges of Python code with the name of a class. */
static inline bool rp_nvtx_is_in_namespace(struct rp_nvtx_text t)
{
    return t.n && !(t.at[0] >= 'A' && t.at[0] <= 'Z') && memmem(t.at, t.n, "::", 2);
}

/* "AddmmBackward0", "torch::autograd::CopyBackwards" */
static inline bool rp_nvtx_is_backward_node(struct rp_nvtx_text t)
{
    while (t.n && t.at[t.n - 1] >= '0' && t.at[t.n - 1] <= '9')
        t.n--;
    return (t.n >= 8 && !memcmp(t.at + t.n - 8, "Backward", 8)) ||
           (t.n >= 9 && !memcmp(t.at + t.n - 9, "Backwards", 9));
}

/* Returns the list of a key such as ", sizes = [...]", up to the bracket that closes it. */
static inline struct rp_nvtx_text rp_nvtx_list_after(const char *text, const char *key)
{
    struct rp_nvtx_text list = {0};
    const char *at = strstr(text, key), *p;
    int depth = 0;

    if (!at)
        return list;
    at += strlen(key);
    for (p = at; *p; p++) {
        depth += (*p == '[') - (*p == ']');
        if (depth == 0)
            break;
    }
    if (*at == '[' && *p == ']')
        list = (struct rp_nvtx_text){at, (size_t)(p + 1 - at)};
    return list;
}

/* Returns false if the text is not such a name. The result points into the text. */
static inline bool rp_nvtx_name_of_torch(const char *text, struct rp_nvtx_name *out)
{
    const char *id = strstr(text, ", op_id = "), *sequence = strstr(text, ", seq = "), *end = id;

    if (!id)
        return false;
    if (sequence && sequence < id)
        end = sequence;
    *out =
        (struct rp_nvtx_name){.name = {text, (size_t)(end - text)}, .sequence = -1, .program = -1};
    if (end == sequence)
        out->sequence = strtoll(sequence + strlen(", seq = "), NULL, 10);
    out->is_operator = out->sequence >= 0 || rp_nvtx_is_in_namespace(out->name) ||
                       rp_nvtx_is_backward_node(out->name);
    out->sizes = rp_nvtx_list_after(id, ", sizes = ");
    return true;
}

/* Whether ",key=" of one of XLA's keys begins here. */
static inline bool rp_nvtx_key_begins(const char *at)
{
    static const char *const keys[] = {
        ",hlo_op=", ",hlo_module=", ",unique_hlo_op_id=", ",program_id=", ",name=", ",run_id="};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (!strncmp(at, keys[i], strlen(keys[i])))
            return true;
    }
    return false;
}

/* Returns the value of a key in "#key=value,key=value#". It may contain commas and '=', so it ends
   at the next key or at the closing mark. */
static inline struct rp_nvtx_text rp_nvtx_value_of(const char *list, const char *key)
{
    const char *end = strrchr(list, '#'), *at = list, *p;
    size_t n = strlen(key);

    while ((at = strstr(at, key)) && (at[n] != '=' || (at[-1] != '#' && at[-1] != ',')))
        at += n;
    if (!at || at > end)
        return (struct rp_nvtx_text){0};
    at += n + 1;
    for (p = at; p < end && !(*p == ',' && rp_nvtx_key_begins(p)); p++)
        ;
    return (struct rp_nvtx_text){at, (size_t)(p - at)};
}

static inline bool rp_nvtx_name_of_xla(const char *text, struct rp_nvtx_name *out)
{
    const char *mark = strchr(text, '#');
    struct rp_nvtx_text program;

    if (!mark || mark == text || mark[-1] != ':' || strrchr(mark, '#') == mark)
        return false;
    *out = (struct rp_nvtx_name){.sequence = -1, .program = -1};
    out->module = rp_nvtx_value_of(mark, "hlo_module");
    program = rp_nvtx_value_of(mark, "program_id");
    if (program.n)
        out->program = strtoll(program.at, NULL, 10);
    if (!strncmp(text, "Thunk:", 6)) {
        out->name = rp_nvtx_value_of(mark, "hlo_op");
        out->path = rp_nvtx_value_of(mark, "name");
        out->is_operator = true;
        return out->name.n != 0;
    }
    out->name = out->module;
    return !strncmp(text, "XlaModule:", 10) && out->name.n;
}
