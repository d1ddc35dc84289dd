/* SPDX-License-Identifier: Apache-2.0 */
/* The table of writers (its lines are in list.h). One is chosen by its name or by the ending of the
   path. */
#include "formats/write/writers.h"
#include "base/text.h"

#include "formats/write/list.h"

#include <stdio.h>
#include <string.h>

static const struct rp_writer *const writers[] = {
#define WRITER_ADDRESS(name) &rp_writer_##name,
    RP_WRITER_ROWS(WRITER_ADDRESS)
#undef WRITER_ADDRESS
};
#define NWRITERS (sizeof writers / sizeof writers[0])

static const struct rp_writer *by_name(const char *name)
{
    for (size_t i = 0; i < NWRITERS; i++)
        if (strcmp(writers[i]->name, name) == 0)
            return writers[i];
    return NULL;
}

static const struct rp_writer *by_path(const char *path)
{
    for (size_t i = 0; i < NWRITERS; i++)
        for (size_t k = 0; k < 3 && writers[i]->endings[k]; k++)
            if (strcmp(path, writers[i]->endings[k]) != 0 &&
                rp_text_ends(path, writers[i]->endings[k]))
                return writers[i];
    return NULL;
}

/* Adds "rpt (.rpt), json (.json, .json.gz), ..." to what is in text. */
static void add_choices(char *text, size_t cap)
{
    for (size_t i = 0; i < NWRITERS; i++) {
        size_t len = strlen(text);

        snprintf(text + len, cap - len, "%s%s (%s%s%s)", i ? ", " : "", writers[i]->name,
                 writers[i]->endings[0], writers[i]->endings[1] ? ", " : "",
                 writers[i]->endings[1] ? writers[i]->endings[1] : "");
    }
}

enum rp_code rp_writer_for(const char *name, const char *path, const struct rp_writer **out,
                           struct rp_err *err)
{
    const struct rp_writer *writer = name ? by_name(name) : by_path(path);
    bool to_stdout = strcmp(path, "-") == 0;
    char choices[512] = "";

    *out = NULL;
    add_choices(choices, sizeof choices);
    if (!writer && name)
        return rp_err_set(err, RP_USAGE, "unknown output format '%s'; choose one of: %s", name,
                          choices);
    if (!writer && to_stdout)
        return rp_err_set(err, RP_USAGE,
                          "standard output needs the name of a format; choose one of: %s", choices);
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
