/* SPDX-License-Identifier: Apache-2.0 */
/* The table of writers (its lines are in list.h). A writer is chosen by its name or by the ending
   of the path. */
#include "formats/write/writers.h"
#include "base/text.h"

#include "formats/formats.h"
#include "formats/write/list.h"

#include <stdio.h>
#include <string.h>

static const struct rp_writer *const writers[] = {
#define WRITER_ADDRESS(name) &rp_writer_##name,
    RP_WRITER_ROWS(WRITER_ADDRESS)
#undef WRITER_ADDRESS
};
#define NWRITERS (sizeof writers / sizeof writers[0])

/* Row i of the table, followed by the rows that a caller adds; NULL after the last. */
static const struct rp_writer *writer_at(const struct rp_writer *const *more, size_t i)
{
    return i < NWRITERS ? writers[i] : more[i - NWRITERS];
}

static const struct rp_writer *by_name(const struct rp_writer *const *more, const char *name)
{
    const struct rp_writer *w;

    for (size_t i = 0; (w = writer_at(more, i)); i++)
        if (strcmp(w->name, name) == 0)
            return w;
    return NULL;
}

static const struct rp_writer *by_path(const struct rp_writer *const *more, const char *path)
{
    const struct rp_writer *w;

    for (size_t i = 0; (w = writer_at(more, i)); i++)
        for (size_t k = 0; k < 3 && w->endings[k]; k++)
            if (strcmp(path, w->endings[k]) != 0 && rp_text_ends(path, w->endings[k]))
                return w;
    return NULL;
}

/* Whether a list such as "*.data, perf.data" has a "*.ending" of the path that is longer than
   `longer`. */
static bool fits_files(const char *files, const char *path, size_t longer)
{
    char ending[40];

    while ((files = strstr(files, "*."))) {
        size_t n = strcspn(++files, ", ");

        snprintf(ending, sizeof ending, "%.*s", (int)n, files);
        if (n < sizeof ending && n > longer && rp_text_ends(path, ending))
            return true;
    }
    return false;
}

/* The first format of traces that a path is named after, if none of them can be written; else NULL.
   writer is what else the path fits, or NULL. */
static const struct rp_format *read_only(const struct rp_writer *const *more, const char *path,
                                         const struct rp_writer *writer)
{
    const struct rp_format *f, *found = NULL;

    /* The length of the longest ending of the writer that the path has. */
    size_t longer = 0;
    for (size_t k = 0; writer && k < 3 && writer->endings[k]; k++)
        if (rp_text_ends(path, writer->endings[k]) && strlen(writer->endings[k]) > longer)
            longer = strlen(writer->endings[k]);

    for (size_t i = 0; (f = rp_format_at(i)); i++) {
        if (f->kind != RP_FORMAT_KIND_TRACE || !fits_files(f->files, path, longer))
            continue;
        if (by_name(more, f->name))
            return NULL;
        found = found ? found : f;
    }
    return found;
}

enum rp_code rp_writer_for(const char *name, const char *path, const struct rp_writer **out,
                           struct rp_err *err)
{
    static const struct rp_writer *const none[] = {NULL};

    return rp_writer_among(none, name, path, out, err);
}

enum rp_code rp_writer_among(const struct rp_writer *const *more, const char *name,
                             const char *path, const struct rp_writer **out, struct rp_err *err)
{
    const struct rp_writer *writer = name ? by_name(more, name) : by_path(more, path);
    const struct rp_format *format = name ? NULL : read_only(more, path, writer);
    bool to_stdout = strcmp(path, "-") == 0;
    char choices[768] = "";

    *out = NULL;

    /* Appends "rpt (.rpt), json (.json, .json.gz), ..." to text. */
    size_t cap = sizeof choices;
    const struct rp_writer *w;
    for (size_t i = 0; (w = writer_at(more, i)); i++) {
        size_t len = strlen(choices);

        snprintf(choices + len, cap - len, "%s%s (%s%s%s)", i ? ", " : "", w->name, w->endings[0],
                 w->endings[1] ? ", " : "", w->endings[1] ? w->endings[1] : "");
    }
    if (!writer && name)
        return rp_err_set(err, RP_USAGE, "unknown output format '%s'; choose one of: %s", name,
                          choices);
    if (!writer && to_stdout)
        return rp_err_set(err, RP_USAGE,
                          "standard output needs the name of a format; choose one of: %s", choices);
    if (format)
        return rp_err_set(err, RP_USAGE,
                          "'%s': files of the format '%s' are read, but not written; give the "
                          "output the ending of another format: %s",
                          path, format->name, choices);
    if (!writer)
        return rp_err_set(
            err, RP_USAGE,
            "cannot infer the output format from the extension of '%s'; choose one of: %s", path,
            choices);
    if (to_stdout && !writer->streams)
        return rp_err_set(err, RP_USAGE,
                          "format '%s' cannot be written to standard output; give a path",
                          writer->name);
    *out = writer;
    return RP_OK;
}
