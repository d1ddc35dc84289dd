/* SPDX-License-Identifier: Apache-2.0 */
/* The table of writers, and how one is chosen: by its name, or by how the path ends. */
#include "formats/write/writers.h"

#include "rp_config.h"

#include <stdio.h>
#include <string.h>

static const struct rp_writer writers[] = {
    {"rpt",
     {".rpt"},
     "Reprise's own format: complete, opened without parsing",
     true,
     true,
     rp_write_rpt,
     NULL},
    {"json",
     {".json", ".json.gz"},
     "Chrome trace JSON, for Perfetto and other tools",
     true,
     true,
     rp_write_chrome,
     NULL},
    {"csv",
     {".csv", ".csv.gz"},
     "one row an event, for spreadsheets",
     true,
     true,
     rp_write_csv,
     NULL},
    {"sqlite",
     {".sqlite", ".db"},
     "an SQLite database, one table a noun",
     false,
     RP_HAVE_SQLITE,
     rp_write_sqlite,
     NULL},
    {"hlo-text",
     {".hlo.txt", ".hlo"},
     "an HLO module as text",
     true,
     true,
     NULL,
     rp_write_hlo_text},
    {"hlo-proto",
     {".hlo.pb"},
     "an HLO module as a protobuf (HloProto)",
     true,
     true,
     NULL,
     rp_write_hlo_proto},
    {"graphdef", {".pb"}, "a TensorFlow graph as a protobuf", true, true, NULL, rp_write_graphdef},
    {"pbtxt",
     {".pbtxt"},
     "any program as a TensorFlow graph in text",
     true,
     true,
     NULL,
     rp_write_graphdef_text},
};
#define NWRITERS (sizeof writers / sizeof writers[0])

const struct rp_writer *rp_writer_list(size_t *n)
{
    *n = NWRITERS;
    return writers;
}

static bool ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);

    return n > m && strcmp(path + n - m, ending) == 0;
}

static const struct rp_writer *by_name(const char *name)
{
    for (size_t i = 0; i < NWRITERS; i++)
        if (strcmp(writers[i].name, name) == 0)
            return &writers[i];
    return NULL;
}

static const struct rp_writer *by_path(const char *path)
{
    for (size_t i = 0; i < NWRITERS; i++)
        for (size_t k = 0; k < 3 && writers[i].endings[k]; k++)
            if (ends_in(path, writers[i].endings[k]))
                return &writers[i];
    return NULL;
}

/* Adds "rpt (.rpt), json (.json, .json.gz), ..." to what is in text. */
static void add_choices(char *text, size_t cap)
{
    for (size_t i = 0; i < NWRITERS; i++) {
        size_t len = strlen(text);

        snprintf(text + len, cap - len, "%s%s (%s%s%s)", i ? ", " : "", writers[i].name,
                 writers[i].endings[0], writers[i].endings[1] ? ", " : "",
                 writers[i].endings[1] ? writers[i].endings[1] : "");
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
        return rp_err_set(err, RP_USAGE, "no output format is called '%s'; there are: %s", name,
                          choices);
    if (!writer && to_stdout)
        return rp_err_set(err, RP_USAGE,
                          "standard output needs the name of a format; there are: %s", choices);
    if (!writer)
        return rp_err_set(err, RP_USAGE,
                          "'%s': its ending does not tell the output format; name one of: %s", path,
                          choices);
    if (to_stdout && !writer->streams)
        return rp_err_set(err, RP_USAGE,
                          "format '%s' cannot be written to standard output; give a path",
                          writer->name);
    *out = writer;
    return RP_OK;
}
