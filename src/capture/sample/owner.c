/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads without Python, such as those of OpenMP and of PyTorch's backward pass, work for a thread
 * with Python. Their samples are put under the Python line for which they work, so that the line
 * has all of its CPU time. The owner of a thread is found on the stacks of the same tick: both run
 * the body of the same parallel region, which is near the root of a worker's stack, or the owner
 * waits in the function that passed the work on.
 */
#include "capture/sample/sample.h"

#include <string.h>

#define NEAR 8 /* the shared function is at most so many frames from the root */

/* Parts of frames: of threads that get work, and of the one that waits for them. */
static const struct {
    const char *worker, *owner;
} handed_on[] = {{"/libgomp", "\tGOMP_parallel"},
                 {"/libiomp5", "\t__kmpc_fork_call"},
                 {"/libomp", "\t__kmpc_fork_call"},
                 {"autograd6Engine11thread_main", "autograd6Engine7execute"}};

/* Whether threads may share a function without working for each other. */
static bool is_common(const char *frame)
{
    const char *python = rp_sample_python_path();

    return strstr(frame, "/libc.so") || (python && strstr(frame, python));
}

/* The number of frames up to the innermost one that equals `frame`, or has the part in its name. */
static size_t find_frame(const char *frame, const char *part, const char *const *in, size_t n)
{
    while (n && (part ? !strstr(in[n - 1], part) : in[n - 1] != frame))
        n--;
    return n;
}

/* ... if Python has called it; else 0. */
static size_t find_called(const char *frame, const char *part, const char *const *owner, size_t n)
{
    size_t found = find_frame(frame, part, owner, n);

    for (size_t i = found; i--;)
        if (!strncmp(owner[i], "python\t", 7))
            return found;
    return 0;
}

/* Finds how many frames of the owner are kept, and how many of the worker are left out. */
static bool find_join(const char *const *frames, size_t n, const char *const *owner, size_t nowner,
                      size_t *kept, size_t *left)
{
    for (size_t i = 0; i < n && i < NEAR; i++) {
        *kept = is_common(frames[i]) ? 0 : find_called(frames[i], NULL, owner, nowner);
        *left = i + 1;
        if (*kept)
            return true;
    }
    for (size_t i = 0; i < sizeof handed_on / sizeof *handed_on; i++) {
        size_t at = find_frame(NULL, handed_on[i].worker, frames, n < NEAR ? n : NEAR);

        *left = at ? at - 1 : 0;
        *kept = at ? find_called(NULL, handed_on[i].owner, owner, nowner) : 0;
        if (*kept)
            return true;
    }
    return false;
}

size_t rp_sample_hang(const char *frames[RP_SAMPLE_FRAMES], size_t n, const char *const *owner,
                      size_t nowner)
{
    size_t kept, left;

    if (!find_join(frames, n, owner, nowner, &kept, &left) ||
        kept + 1 + (n - left) > RP_SAMPLE_FRAMES)
        return 0;
    memmove(frames + kept + 1, frames + left, (n - left) * sizeof *frames);
    memcpy(frames, owner, kept * sizeof *frames);
    frames[kept] = "native\t[on another thread]\t\t0";
    return kept + 1 + (n - left);
}
