/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats (its lines are in list.h): chooses the format of an input and reads it. */
#include "formats/formats.h"

#include "base/text.h"
#include "formats/list.h"

#include <stdio.h>
#include <string.h>

static const struct rp_format *const formats[] = {
#define FORMAT_ADDRESS(name) &rp_format_##name,
    RP_FORMAT_ROWS(FORMAT_ADDRESS)
#undef FORMAT_ADDRESS
};

const struct rp_format *rp_format_at(size_t i)
{
    return i < sizeof formats / sizeof *formats ? formats[i] : NULL;
}

void rp_import_release(struct rp_import *import)
{
    rp_trace_free(import->trace);
    rp_program_free(import->program);
    rp_input_close(import->input);
    *import = (struct rp_import)RP_IMPORT_INIT;
}

static bool is_python(const char *name)
{
    size_t len = strlen(name);

    return len > 3 && !strcmp(name + len - 3, ".py");
}

/* Whether the input is a program to record: a Python file, a script, an executable. */
static bool is_program(const uint8_t *head, size_t n, const char *name)
{
    return is_python(name) || (n > 2 && !memcmp(head, "#!", 2)) ||
           (n > 4 && !memcmp(head, "\177ELF", 4));
}

/* Files of other tools that people try, recognised by their first bytes, and what to do with
   them. */
static const struct {
    const char *begins;
    size_t n;
    const char *what, *advice;
} foreign[] = {
#define FOREIGN(begins, what, advice)           \
    {                                           \
        begins, sizeof begins - 1, what, advice \
    }
    FOREIGN("PK\003\004", "a zip archive", "unpack it and give the folder"),
    FOREIGN("7z\274\257", "a 7z archive", "unpack it and give the folder"),
    FOREIGN("\211HDF\r\n", "an HDF5 file (weights or data)",
            "give the trace of the program that uses it"),
    FOREIGN("PAR1", "a Parquet file",
            "give the file that it was made of; of Nsight Systems: 'nsys export --type sqlite'"),
    FOREIGN("%PDF", "a PDF file", "give the trace"),
    FOREIGN("\211PNG", "a picture", "give the trace"),
    FOREIGN("<!DOCTYPE html", "a page for a browser", "give the trace that it shows"),
    FOREIGN("<html", "a page for a browser", "give the trace that it shows"),
    FOREIGN("NVR\0", "a report of Nsight Compute",
            "it has metrics, no timeline: record with Nsight Systems or 'reprise record'"),
#undef FOREIGN
};

/* No format fits: shows the first bytes and the formats. */
static enum rp_code unknown_format(const uint8_t *head, size_t n, const char *name,
                                   struct rp_err *err)
{
    char shown[160], names[700];
    size_t len = 0;

    if (is_program(head, n, name))
        return rp_err_set_at(err, RP_FORMAT, 0,
                             "'%s' is a program, not a recording of one; try 'reprise record -- "
                             "%s%s'",
                             name,
                             is_python(name)     ? "python "
                             : strchr(name, '/') ? ""
                                                 : "./",
                             name);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (n >= foreign[i].n && !memcmp(head, foreign[i].begins, foreign[i].n))
            return rp_err_set_at(err, RP_FORMAT, 0, "'%s' is %s; %s", name, foreign[i].what,
                                 foreign[i].advice);
    rp_text_escape(shown, sizeof shown, (const char *)head, n < 32 ? n : 32);
    for (size_t i = 0; rp_format_at(i) && len < sizeof names; i++)
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", i ? ", " : "",
                                formats[i]->name);
    rp_err_set_at(err, RP_FORMAT, 0, "unknown format (first bytes: %s)", shown);
    return rp_err_context(err, RP_FORMAT, "supported formats: %s", names);
}

/* Adds the file name, unless the error has it already. */
static enum rp_code name_file(const struct rp_input *in, enum rp_code code, struct rp_err *err)
{
    const char *name = rp_input_borrow_name(in), *at = err ? strstr(err->text, name) : NULL;

    while (at && (at == err->text || at[-1] != '\'' || at[strlen(name)] != '\''))
        at = strstr(at + 1, name); /* a file may be called "empty" */
    if (code == RP_OK || !err || at)
        return code;
    if (strncmp(err->text, "is ", 3) == 0) {
        char text[sizeof err->text];

        memcpy(text, err->text, sizeof text);
        return rp_err_set_at(err, code, err->offset, "'%s' %s", name, text);
    }
    return rp_err_prefix(err, code, "'%s'", name);
}

static enum rp_code choose_format(struct rp_input *in, const struct rp_format **out,
                                  struct rp_err *err)
{
    enum rp_sniff best = RP_SNIFF_NO;
    const struct rp_format *format;
    const uint8_t *head;
    size_t n;

    *out = NULL;
    RP_TRY(rp_input_peek(in, RP_SNIFF_BYTES, &head, &n, err));
    if (!n) {
        /* There is no first byte: the content is empty, truncated, or damaged at its start. */
        size_t got;
        char byte;
        RP_TRY(rp_input_read(in, &byte, 1, &got, err));
        return rp_err_set_at(err, RP_FORMAT, 0, "is %s",
                             rp_input_truncated(in) ? "cut short before its first byte" : "empty");
    }
    for (size_t i = 0; best != RP_SNIFF_CERTAIN && (format = rp_format_at(i)); i++) {
        enum rp_sniff fit = format->sniff(head, n, rp_input_borrow_name(in));
        if (fit > best) {
            best = fit;
            *out = format;
        }
    }
    return *out ? RP_OK : unknown_format(head, n, rp_input_borrow_name(in), err);
}

enum rp_code rp_format_sniff(struct rp_input *in, const struct rp_format **out, struct rp_err *err)
{
    return name_file(in, choose_format(in, out, err), err);
}

enum rp_code rp_format_read(struct rp_input *in, const struct rp_read_options *options,
                            struct rp_import *to, struct rp_err *err)
{
    static const struct rp_read_options none = {0};

    *to = (struct rp_import)RP_IMPORT_INIT;
    enum rp_code code = choose_format(in, &to->format, err);
    if (code == RP_OK && to->format)
        code = to->format->read(in, options ? options : &none, to, err);
    code = name_file(in, code, err);
    if (code == RP_OK && to->borrows_input) {
        to->input = in;
        return RP_OK;
    }
    if (code != RP_OK)
        rp_import_release(to);
    rp_input_close(in);
    return code;
}
