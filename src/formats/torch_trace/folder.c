/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the logs of a run, one for each process, among other files. */
#include "formats/torch_trace/torch_trace.h"

#include "base/decides.h"
#include "base/text.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD_BYTES 65536
RP_LIMIT(HEAD_BYTES, "bytes", "a file without a record before is not a log");

/* Whether the first bytes of a source are those of a log; false if it cannot be opened. */
static bool is_log(struct rp_sources *sources, size_t i)
{
    struct rp_input *in;
    const uint8_t *head;
    bool is = false;
    size_t n;

    if (rp_source_open(sources, i, &in, NULL) != RP_OK)
        return false;
    if (rp_input_peek(in, HEAD_BYTES, &head, &n, NULL) == RP_OK)
        is = rp_torch_begins((const char *)head, n);
    rp_source_return(sources, i, in);
    return is;
}

/* Reads a log; at damage it ends, and the part before that is used. */
static enum rp_code read_log(struct rp_torch_trace *trace, struct rp_sources *sources, size_t i,
                             const struct rp_limits *limits, struct rp_err *err)
{
    struct rp_input *in;
    struct rp_err local = {0};

    RP_TRY(rp_source_open(sources, i, &in, err));
    enum rp_code code = rp_torch_trace_read(trace, in, limits, &local);
    rp_input_close(in);
    if (code == RP_FORMAT || code == RP_IO) {
        trace->logs.at[trace->logs.n - 1].counts.cut = true;
        return RP_OK;
    }
    if (code != RP_OK && err)
        *err = local;
    return code;
}

enum rp_code rp_torch_trace_add(struct rp_torch_trace *trace, struct rp_sources *sources, size_t i,
                                const struct rp_limits *limits, bool *is, struct rp_err *err)
{
    *is = is_log(sources, i);
    return *is ? read_log(trace, sources, i, limits, err) : RP_OK;
}

enum rp_code rp_torch_trace_find(struct rp_torch_trace *trace, struct rp_sources *sources,
                                 const struct rp_limits *limits, bool *is, struct rp_err *err)
{
    size_t n = rp_sources_count(sources);
    bool log;

    for (size_t i = 0; i < n; i++)
        RP_TRY(rp_torch_trace_add(trace, sources, i, limits, is ? &is[i] : &log, err));
    return RP_OK;
}

/* Adds the logs of one file or folder, except those of another rank. */
static enum rp_code add_of_rank(struct rp_torch_trace *trace, const char *path, int64_t rank,
                                const struct rp_limits *limits, struct rp_err *err)
{
    struct rp_sources *sources;
    bool is;

    RP_TRY(rp_sources_open(&path, 1, limits, &sources, err));
    enum rp_code code = RP_OK;
    for (size_t i = 0; i < rp_sources_count(sources) && code == RP_OK; i++) {
        int64_t of = rp_torch_rank_of_name(rp_sources_borrow(sources, i)->name);

        if (of == RP_TORCH_NO_ID || rank == RP_TORCH_NO_ID || of == rank)
            code = rp_torch_trace_add(trace, sources, i, limits, &is, err);
    }
    rp_sources_close(sources);
    return code;
}

enum rp_code rp_torch_trace_open(struct rp_torch_trace *trace, const char *path,
                                 const struct rp_limits *limits, struct rp_err *err)
{
    return add_of_rank(trace, path, RP_TORCH_NO_ID, limits, err);
}

/* Adds the logs in a folder, and those in its folder "torch_trace". */
static enum rp_code add_in(struct rp_torch_trace *trace, const char *folder, int64_t rank,
                           const struct rp_limits *limits, struct rp_err *err)
{
    DIR *dir = opendir(folder);
    char file[PATH_MAX];
    struct dirent *entry;
    enum rp_code code = RP_OK;

    while (dir && code == RP_OK && (entry = readdir(dir)))
        if ((!strcmp(entry->d_name, "torch_trace") ||
             rp_text_begins(entry->d_name, "dedicated_log_torch_trace_")) &&
            snprintf(file, sizeof file, "%s/%s", folder, entry->d_name) < (int)sizeof file)
            code = add_of_rank(trace, file, rank, limits, err);
    if (dir)
        closedir(dir);
    return code;
}

/* A recording has a CTF trace in a folder for each host or rank, and the logs beside these. */
enum rp_code rp_torch_trace_beside(struct rp_torch_trace *trace, const char *path, int64_t rank,
                                   const struct rp_limits *limits, struct rp_err *err)
{
    char folder[PATH_MAX], other[PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct stat is;

    if (!stat(path, &is) && S_ISDIR(is.st_mode))
        snprintf(folder, sizeof folder, "%s", path);
    else
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1,
                 slash ? path : ".");
    RP_TRY(add_in(trace, folder, rank, limits, err));
    if (trace->logs.n ||
        snprintf(other, sizeof other, "%s/metadata", folder) >= (int)sizeof other ||
        stat(other, &is) || snprintf(other, sizeof other, "%s/..", folder) >= (int)sizeof other)
        return RP_OK;
    return add_in(trace, other, rank, limits, err);
}
