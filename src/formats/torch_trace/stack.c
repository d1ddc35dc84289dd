/* SPDX-License-Identifier: Apache-2.0 */
/* Reads stacks of Python as tracebacks write them, and finds which of their lines is in the user's
   program. */
#include "formats/torch_trace/read.h"

#include <string.h>

bool rp_torch_is_library(const char *path)
{
    static const char *const parts[] = {"/site-packages/",   "/dist-packages/",
                                        "/lib/python",       "/torch/_dynamo/",
                                        "/torch/_inductor/", "/torch/nn/modules/"};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(path, parts[i]))
            return true;
    return *path == '<' && strncmp(path, "<path>/", 7) != 0; /* "<path>/" is what 'scrub' writes */
}

static bool is_library(struct rp_snip path)
{
    char text[512];
    size_t n = path.n < sizeof text ? path.n : sizeof text - 1;

    if (n)
        memcpy(text, path.at, n);
    text[n] = '\0';
    return rp_torch_is_library(text);
}

bool rp_torch_frame_of(struct rp_snip line, struct rp_torch_frame *out)
{
    static const char begin[] = "File \"", middle[] = "\", line ";
    struct rp_snip s = rp_snip_trim(line);

    if (!rp_snip_begins(s, begin))
        return false;
    out->path.at = s.at + sizeof begin - 1;
    const char *after =
        memmem(out->path.at, (size_t)(s.at + s.n - out->path.at), middle, sizeof middle - 1);
    if (!after)
        return false;
    out->path.n = (size_t)(after - out->path.at);
    after += sizeof middle - 1;
    struct rp_snip rest = {after, (size_t)(s.at + s.n - after)};
    out->line = 0;
    for (; rest.n && *rest.at >= '0' && *rest.at <= '9' && out->line < INT32_MAX;
         rest.at++, rest.n--)
        out->line = out->line * 10 + (*rest.at - '0');
    out->function = rp_snip_begins(rest, ", in ") ? (struct rp_snip){rest.at + 5, rest.n - 5}
                                                  : (struct rp_snip){rest.at, 0};
    return true;
}

bool rp_torch_user_frame(struct rp_snip stack, struct rp_torch_frame *out)
{
    struct rp_torch_frame frame;
    struct rp_snip line;
    bool any = false, own = false;

    while (rp_snip_line(&stack, &line))
        if (rp_torch_frame_of(line, &frame)) {
            bool mine = !is_library(frame.path);

            if (mine || !own)
                *out = frame;
            any = true;
            own = own || mine;
        }
    return any;
}
