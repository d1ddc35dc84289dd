/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offers pages and pictures as resources: the files that a tool's question writes by `--html` and
 * `--svg`, which a client shows to a person, and which an agent need not read.
 *
 *     reprise://page/report               of what the server was given
 *     reprise://picture/roofline/run/a    of a file or folder below it
 *
 * A question writes them into a folder that is removed again.
 */
#include "mcp/mcp.h"

#include "io/escaped.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_MAX ((size_t)64 << 20)

static const struct form {
    const char *prefix, *option, *type;
} forms[] = {{"reprise://page/", "html", "text/html"},
             {"reprise://picture/", "svg", "image/svg+xml"}};

#define FORMS (sizeof forms / sizeof forms[0])

/* Returns the option that writes this form; NULL if the question has none, or is not about one
   run. */
static const struct rp_option *form_option(const struct rp_question *question,
                                           const struct form *form)
{
    const struct rp_option *option = NULL;

    for (size_t i = 0; strcmp(question->name, "diff") != 0; i++) {
        option = rp_question_option(question, i);
        if (!option || !strcmp(option->name, form->option))
            break;
    }
    return option;
}

void rp_mcp_pages(struct rp_out *to)
{
    const struct rp_question *question;

    for (size_t i = 0; (question = rp_mcp_tool(i)) != NULL; i++)
        for (size_t k = 0; k < FORMS; k++) {
            const struct rp_option *option = form_option(question, &forms[k]);
            if (!option)
                continue;
            rp_out_printf(to, ", {\"uri\": \"%s%s\", \"name\": \"%s.%s\", \"description\": \"",
                          forms[k].prefix, question->name, question->name, forms[k].option);
            rp_out_escaped(to, RP_IN_STRING, question->summary);
            rp_out_text(to, ": ");
            rp_out_escaped(to, RP_IN_STRING,
                           option->summary + (strncmp(option->summary, "also ", 5) ? 0 : 5));
            rp_out_printf(to, "\", \"mimeType\": \"%s\"}", forms[k].type);
        }
}

void rp_mcp_page_templates(struct rp_out *to)
{
    for (size_t k = 0; k < FORMS; k++)
        rp_out_printf(to,
                      "%s{\"uriTemplate\": \"%s{question}/{+path}\", \"name\": \"%s of a run\", "
                      "\"description\": \"of a file or folder below what the server was given\", "
                      "\"mimeType\": \"%s\"}",
                      k ? ", " : "", forms[k].prefix, forms[k].option, forms[k].type);
}

/* ------------------------------------------------------------------ reading one */

/* Decodes "%20" to a space, and so on. */
static void decode(char *text)
{
    char *to = text;
    unsigned byte;

    while (*text)
        if (*text == '%' && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2]) &&
            sscanf(text + 1, "%2x", &byte) == 1 && byte) {
            *to++ = (char)byte;
            text += 3;
        } else {
            *to++ = *text++;
        }
    *to = '\0';
}

static enum rp_code write_page(struct rp_mcp *mcp, const struct rp_question *question,
                               const char *const *paths, size_t npaths, struct rp_setting *setting,
                               struct rp_err *err)
{
    struct rp_dataset *dataset = NULL;
    struct rp_result *result = NULL;
    enum rp_code code = rp_open(mcp->ctx, paths, npaths, NULL, &dataset, err);

    if (code == RP_OK)
        code = rp_ask(mcp->ctx, dataset, question->name, setting, 1, &result, err);
    rp_result_free(result);
    rp_dataset_free(dataset);
    return code;
}

static enum rp_code read_page(const char *path, struct rp_arena *arena, const char **out,
                              struct rp_err *err)
{
    FILE *file = fopen(path, "re");
    long n = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    char *text =
        n >= 0 && (size_t)n < PAGE_MAX ? rp_arena_calloc(arena, (size_t)n + 1, 1, 1) : NULL;
    bool read = text && !fseek(file, 0, SEEK_SET) && fread(text, 1, (size_t)n, file) == (size_t)n;

    if (file)
        fclose(file);
    *out = text;
    return read ? RP_OK : rp_err_set(err, RP_IO, "cannot read the page, or it is too large");
}

static enum rp_code make_page(struct rp_mcp *mcp, const struct rp_question *question,
                              const struct form *form, const char *path, struct rp_arena *arena,
                              const char **out, struct rp_err *err)
{
    const char *place = getenv("TMPDIR");
    char *folder =
        rp_arena_printf(arena, "%s/reprise-page-XXXXXX", place && *place ? place : "/tmp");
    struct rp_setting setting = {form->option, NULL};

    if (!folder || !mkdtemp(folder))
        return rp_err_set(err, RP_IO, "cannot create a folder for the page; set TMPDIR");
    const char *file = rp_arena_textf(arena, "%s/page", folder);
    setting.value = file;
    enum rp_code code = write_page(mcp, question, path ? &path : (const char *const *)mcp->roots,
                                   path ? 1 : mcp->nroots, &setting, err);
    if (code == RP_OK)
        code = read_page(file, arena, out, err);
    unlink(file);
    rmdir(folder);
    return code;
}

enum rp_code rp_mcp_page(struct rp_mcp *mcp, const char *uri, struct rp_arena *arena,
                         const char **type, const char **text, struct rp_err *err)
{
    const char *path = NULL;
    size_t k = 0;

    while (k < FORMS && strncmp(uri, forms[k].prefix, strlen(forms[k].prefix)) != 0)
        k++;
    char *words = k < FORMS ? rp_arena_strdup(arena, uri + strlen(forms[k].prefix)) : NULL;
    char *slash = words ? strchr(words, '/') : NULL;
    if (slash)
        *slash++ = '\0';
    const struct rp_question *question = words ? rp_mcp_tool_find(words) : NULL;
    if (!question || !form_option(question, &forms[k]))
        return rp_err_set(err, RP_USAGE, "there is no such resource; 'resources/list' has them");
    if (slash && *slash) {
        decode(slash);
        RP_TRY(rp_mcp_resolve(mcp, arena, slash, &path, err));
    }
    *type = forms[k].type;
    return make_page(mcp, question, &forms[k], path, arena, text, err);
}
