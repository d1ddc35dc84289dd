/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads why a graph ended, which each release of PyTorch says in different words:
 *
 *     Graph break in user code at /home/user/model.py:63       older: "Graph break: from user code
 *     Graph Break Reason: Encountered graph break when …       at:" and a stack
 *
 *     Failed to trace builtin operator                          the kind; of a branch on data it is
 *       Explanation: Dynamo does not know how to trace …        in the line of the reason instead
 *       Hint: Avoid calling builtin …
 *      For more details …: https://…/gb/gb0059.html             its number
 *
 *     User code traceback:
 *       File "/home/user/model.py", line 81, in breaks
 */
#include "formats/torch_trace/read.h"

#include <string.h>

/* What follows a word at the beginning of a line. */
static bool after_word(struct rp_snip line, const char *word, struct rp_snip *rest)
{
    if (!rp_snip_begins(line, word))
        return false;
    *rest = rp_snip_trim((struct rp_snip){line.at + strlen(word), line.n - strlen(word)});
    return true;
}

/* "/home/user/model.py:63" */
static void set_place(struct rp_snip s, struct rp_arena *arena, struct rp_torch_place *out)
{
    const char *colon = s.n ? memrchr(s.at, ':', s.n) : NULL;
    int64_t line;

    if (colon && rp_snip_int((struct rp_snip){colon + 1, (size_t)(s.at + s.n - colon - 1)}, &line))
        *out = (struct rp_torch_place){
            rp_snip_copy((struct rp_snip){s.at, (size_t)(colon - s.at)}, arena), "", line};
}

static struct rp_torch_place place_of(const struct rp_torch_frame *frame, struct rp_arena *arena)
{
    return (struct rp_torch_place){rp_snip_copy(frame->path, arena),
                                   rp_snip_copy(frame->function, arena), frame->line};
}

/* "…/gb/gb0124.html" -> "GB0124" */
static const char *number_of(struct rp_snip line, struct rp_arena *arena)
{
    const char *at = memmem(line.at, line.n, "/gb/gb", 6);
    int n = 0;

    if (!at)
        return NULL;
    at += 6;
    while (at + n < line.at + line.n && n < 8 && at[n] >= '0' && at[n] <= '9')
        n++;
    return n ? rp_arena_textf(arena, "GB%.*s", n, at) : NULL;
}

void rp_torch_break_read(struct rp_snip text, struct rp_arena *arena, struct rp_torch_break *out)
{
    static const char heading[] = "User code traceback:";
    const char *stack = text.n ? memmem(text.at, text.n, heading, sizeof heading - 1) : NULL;
    const char *end = stack ? memmem(stack, (size_t)(text.at + text.n - stack), "\n\n", 2) : NULL;
    struct rp_snip head = {text.at, stack ? (size_t)(stack - text.at) : text.n}, line;
    struct rp_snip user =
        stack ? (struct rp_snip){stack, (size_t)((end ? end : text.at + text.n) - stack)} : text;
    struct rp_torch_frame frame;

    while (rp_snip_line(&head, &line)) {
        /* Reads the text of a break line by line; each part is taken where it occurs first. */
        struct rp_snip s = rp_snip_trim(line), rest;
        if (after_word(s, "Graph break in user code at ", &rest)) {
            set_place(rest, arena, &out->at);
        } else if (!out->reason && (after_word(s, "Graph Break Reason:", &rest) ||
                                    after_word(s, "Reason:", &rest))) {
            out->reason = rp_snip_copy(rest, arena);
            out->skips =
                rp_snip_has(rest, "Skipping the function") || rp_snip_has(rest, "Skipping frame");
        } else if (!out->explanation && after_word(s, "Explanation:", &rest)) {
            out->explanation = rp_snip_copy(rest, arena);
        } else if (!out->hint && after_word(s, "Hint:", &rest)) {
            out->hint = rp_snip_copy(rest, arena);
        } else if (!out->gb && rp_snip_has(s, "/gb/gb")) {
            out->gb = number_of(s, arena);
        } else if (out->reason && !out->kind && !out->explanation && s.n && line.n &&
                   *line.at != ' ' && !rp_snip_begins(s, "User code traceback")) {
            out->kind = rp_snip_copy(s, arena);
        }
    }
    if (rp_torch_user_frame(user, &frame))
        out->user = place_of(&frame, arena);
    if (!out->at.path)
        out->at = out->user;
    if (!out->kind)
        out->kind = out->reason ? out->reason : "not stated";
    if (!out->reason)
        out->reason = out->kind;
}
