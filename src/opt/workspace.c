/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a search (workspace.h). Files are written as a whole or not at all. */
#include "opt/workspace.h"

#include "base/clock.h"
#include "base/decides.h"
#include "io/lines.h"
#include "io/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE "reprise-optimize 1"
#define BEST_MOST  (1u << 20)
RP_LIMIT(BEST_MOST, "bytes of best.txt", "a larger file is refused");

static const char *file_in(struct rp_opt_workspace *w, const char *name)
{
    return rp_arena_textf(&w->arena, "%s/%s", w->path, name);
}

/* Returns the text after a word, or NULL. */
static const char *after(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) ? NULL : line + strlen(word);
}

static enum rp_code read_line(void *user, const char *path, size_t number, const char *bytes,
                              size_t n, struct rp_err *err)
{
    struct rp_opt_workspace *w = user;
    const char *line = rp_arena_copy(&w->arena, bytes, n), *value;

    RP_TRY(rp_err_need(line, err, "reading a workspace"));
    if (number == 1 && strcmp(line, FIRST_LINE) != 0)
        return rp_err_set(err, RP_FORMAT,
                          "%s:1: '%s' is expected: this is not a workspace of optimize", path,
                          FIRST_LINE);
    if ((value = after(line, "round ")) != NULL)
        w->round = strtoull(value, NULL, 10);
    else if ((value = after(line, "step ")) != NULL)
        w->resumed_ns = strtoll(value, NULL, 10);
    else if ((value = after(line, "groups ")) != NULL)
        w->groups = value;
    else if ((value = after(line, "what-if ")) != NULL)
        w->whatifs = value;
    return RP_OK;
}

enum rp_code rp_opt_workspace_open(struct rp_opt_workspace *w, const char *path, bool resume,
                                   struct rp_err *err)
{
    *w = (struct rp_opt_workspace){.path = path, .began_ns = rp_clock_ns()};
    rp_arena_init(&w->arena);
    if (!path)
        return resume ? rp_err_set(err, RP_USAGE, "'--resume' needs '--workspace DIR'")
                      : (w->round = 1, RP_OK);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return rp_err_set(err, RP_IO, "cannot make the folder '%s': %s", path, strerror(errno));
    const char *best = file_in(w, "best.txt");
    RP_TRY(rp_arena_check(&w->arena, "reading a workspace", err));
    bool there = access(best, F_OK) == 0;
    if (there && !resume)
        return rp_err_set(err, RP_USAGE,
                          "'%s' holds a search already: go on with '--resume', or name another "
                          "folder",
                          path);
    if (there)
        RP_TRY(rp_lines_read(best, BEST_MOST, &w->arena, read_line, w, err));
    w->round++;
    return RP_OK;
}

void rp_opt_workspace_release(struct rp_opt_workspace *w)
{
    rp_vec_release(&w->points);
    rp_arena_release(&w->arena);
}

void rp_opt_workspace_point(struct rp_opt_workspace *w, int64_t tried, double step_ns)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_opt_point p = {rp_clock_ns() - w->began_ns, tried, step_ns};

    if (!w->points.n || step_ns < w->points.at[w->points.n - 1].step_ns)
        (void)!rp_vec_push(&w->points, p, &err);
}

static enum rp_code save_best(struct rp_opt_workspace *w, const char *groups, const char *whatifs,
                              int64_t step_ns, struct rp_err *err)
{
    struct rp_out *out;

    RP_TRY(rp_out_open(file_in(w, "best.txt"), &out, err));
    rp_out_printf(out, "%s\nround %llu\nstep %lld\n", FIRST_LINE, (unsigned long long)w->round,
                  (long long)step_ns);
    if (groups)
        rp_out_printf(out, "groups %s\n", groups);
    if (whatifs && *whatifs)
        rp_out_printf(out, "what-if %s\n", whatifs);
    return rp_out_close(out, err);
}

enum rp_code rp_opt_workspace_save(struct rp_opt_workspace *w, const char *groups,
                                   const char *whatifs, int64_t step_ns, struct rp_err *err)
{
    struct rp_out *out;

    if (!w->path)
        return RP_OK;
    RP_TRY(save_best(w, groups, whatifs, step_ns, err));
    RP_TRY(rp_out_open(file_in(w, "trajectory.csv"), &out, err));
    rp_out_text(out, "after_ns,tried,step_ns\n");
    for (size_t i = 0; i < w->points.n; i++)
        rp_out_printf(out, "%lld,%lld,%.0f\n", (long long)w->points.at[i].after_ns,
                      (long long)w->points.at[i].tried, w->points.at[i].step_ns);
    return rp_out_close(out, err);
}
