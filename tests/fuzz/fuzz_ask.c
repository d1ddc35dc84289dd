/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question about a file, from the option's text to the printed answer:
 *
 *     simulate what-if=scale:gemm=2 rank=0
 *     the file; after a line "====" a second one
 *
 * A value of an option that is a path is the first file if it is "in", else a file in a folder of
 * this process.
 */
#include "memory_file.h"

#include <ftw.h>
#include <reprise/reprise.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS 8

/* Without those that start other programs or look at the machine. */
static const char *const questions[] = {
    "info",     "report", "top",   "roofline", "fusions",  "idle",    "comm",  "critpath", "stalls",
    "launches", "memory", "merge", "simulate", "optimize", "convert", "graph", "diff"};

struct asked {
    char line[256]; /* cut into words */
    const struct rp_question *question;
    struct rp_setting settings[SETTINGS + 1];
    size_t n;
};

static char folder[256];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *own_folder(void)
{
    const char *place = getenv("TMPDIR");

    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%s/reprise-fuzz-XXXXXX", place ? place : "/tmp");
        if (!mkdtemp(folder) || atexit(remove_folder))
            abort();
    }
    return folder;
}

static const struct rp_option *option_of(const struct rp_question *question, const char *name)
{
    const struct rp_option *option;

    for (size_t i = 0; (option = rp_question_option(question, i)); i++)
        if (!strcmp(option->name, name))
            return option;
    return NULL;
}

/* Nothing is written outside of the own folder. */
static void add_setting(struct asked *a, char *word, const char *in)
{
    static char out[sizeof folder + 4];
    char *value = strchr(word, '=');
    const struct rp_option *option;

    if (value)
        *value++ = '\0';
    option = option_of(a->question, word);
    snprintf(out, sizeof out, "%s/out", own_folder());
    if (option && (option->type == RP_OPT_PATH || !strcmp(word, "export")))
        value = value && !strcmp(value, "in") && option->type == RP_OPT_PATH ? (char *)(uintptr_t)in
                                                                             : out;
    if (strcmp(word, "budget") != 0)
        a->settings[a->n++] = (struct rp_setting){word, value};
}

static bool read_line(struct asked *a, const char *line, size_t n, const char *in)
{
    char *rest = NULL, *word;

    if (n >= sizeof a->line)
        return false;
    memcpy(a->line, line, n);
    a->line[n] = '\0';
    word = strtok_r(a->line, " ", &rest);
    for (size_t i = 0; word && i < sizeof questions / sizeof *questions; i++)
        if (!strcmp(word, questions[i]))
            a->question = rp_question_find(word);
    if (!a->question)
        return false;
    while (a->n < SETTINGS && (word = strtok_r(NULL, " ", &rest)))
        add_setting(a, word, in);
    if (option_of(a->question, "budget"))
        a->settings[a->n++] = (struct rp_setting){"budget", "0.05"};
    return true;
}

static void print(const struct rp_result *result)
{
    struct memory_file to;

    for (int format = RP_PRINT_TABLE; format <= RP_PRINT_CSV; format++) {
        struct rp_print_options options = {.struct_size = sizeof options,
                                           .format = (enum rp_print_format)format};
        struct rp_err err = RP_ERR_INIT;

        if (memory_file_open(&to, NULL, 0)) {
            (void)rp_result_print(result, &options, to.fd, &err);
            memory_file_close(&to);
        }
    }
}

static void ask(const struct asked *a, const char *const *paths, size_t npaths)
{
    struct rp_ctx_options options = {.struct_size = sizeof options, .threads = 1};
    struct rp_dataset *dataset = NULL;
    struct rp_result *result = NULL;
    struct rp_ctx *ctx = NULL;
    struct rp_err err = RP_ERR_INIT;
    enum rp_code code = rp_ctx_new(&options, &ctx, &err);

    if (code == RP_OK)
        code = rp_open(ctx, paths, npaths, NULL, &dataset, &err);
    if (code == RP_OK)
        code = rp_ask(ctx, dataset, a->question->name, a->settings, a->n, &result, &err);
    if (code == RP_OK)
        print(result);
    else if (code == RP_BUG || !err.text[0])
        abort();
    rp_result_free(result);
    rp_dataset_free(dataset);
    rp_ctx_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line_end = memchr(data, '\n', size), *end = data + size, *cut;
    struct memory_file files[2];
    const char *paths[2];
    struct asked a = {.n = 0};

    if (!line_end)
        return 0;
    cut = memmem(line_end + 1, (size_t)(end - line_end) - 1, "====\n", 5);
    if (!memory_file_open(&files[0], line_end + 1, (size_t)((cut ? cut : end) - line_end) - 1))
        return 0;
    paths[0] = files[0].path;
    if (cut && !memory_file_open(&files[1], cut + 5, (size_t)(end - cut) - 5))
        cut = NULL;
    paths[1] = files[1].path;
    if (read_line(&a, (const char *)data, (size_t)(line_end - data), paths[0]))
        ask(&a, paths, cut ? 2 : 1);
    if (cut)
        memory_file_close(&files[1]);
    memory_file_close(&files[0]);
    return 0;
}
