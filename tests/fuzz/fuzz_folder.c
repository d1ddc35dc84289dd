/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about folders, whose files come from other programs: captures for `replay import`,
 * dumps of compilers for `dump`, and whatever `info` and `graph` find there.
 *
 *     replay import
 *     == 7-captures.jsonl
 *     {"module": "m", ...}
 *     == 7-program.mlir
 *     ...
 */
#include "memory_file.h"

#include <fcntl.h>
#include <ftw.h>
#include <reprise/reprise.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MARK "\n== "

static const char *const words[][2] = {
    {"replay", "import"}, {"dump", "ls"},      {"dump", "passes"}, {"dump", "fusion"},
    {"dump", "memory"},   {"dump", "kernels"}, {"dump", "comm"},   {"dump", "alias"},
    {"info", NULL},       {"graph", NULL},     {"metrics", NULL},
};

static char folder[256], to[sizeof folder + 8];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void empty_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Only names without a path are taken, so that nothing outside of the folder is written. */
static void write_file(const char *name, size_t n, const char *bytes, size_t nbytes)
{
    char path[sizeof folder + 128];
    int fd;

    if (!n || n > 100 || memchr(name, '/', n) || memchr(name, 0, n) ||
        !memcmp(name, "..", n < 2 ? n : 2))
        return;
    snprintf(path, sizeof path, "%s/%.*s", folder, (int)n, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    (void)!write(fd, bytes, nbytes);
    close(fd);
}

/* What follows the first line, into files. */
static void write_files(const char *at, const char *end)
{
    const size_t n = strlen(MARK);

    while ((at = memmem(at, (size_t)(end - at), MARK, n))) {
        const char *name = at + n, *line = memchr(name, '\n', (size_t)(end - name)), *next;

        if (!line)
            return;
        next = memmem(line, (size_t)(end - line), MARK, n);
        write_file(name, (size_t)(line - name), line + 1,
                   (size_t)((next ? next : end) - line) - (next != line));
        at = line;
    }
}

static void ask(const char *question, const char *action)
{
    struct rp_ctx_options options = {.struct_size = sizeof options, .threads = 1};
    const struct rp_setting settings[] = {
        {"action", action},
        {!strcmp(question, "dump") ? "source" : "save", !strcmp(question, "dump") ? folder : to}};
    const char *const paths[] = {folder};
    struct rp_dataset *dataset = NULL;
    struct rp_result *result = NULL;
    struct rp_ctx *ctx = NULL;
    struct rp_err err = RP_ERR_INIT;
    enum rp_code code = rp_ctx_new(&options, &ctx, &err);

    if (code == RP_OK && strcmp(question, "dump") != 0)
        code = rp_open(ctx, paths, 1, NULL, &dataset, &err);
    if (code == RP_OK)
        code = rp_ask(ctx, dataset, question, settings, action ? 2 : 0, &result, &err);
    if (code == RP_BUG || (code != RP_OK && !err.text[0]))
        abort();
    rp_result_free(result);
    rp_dataset_free(dataset);
    rp_ctx_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *line = memchr(text, '\n', size),
               *place = getenv("TMPDIR");
    char asked[32];

    if (!line || (size_t)(line - text) >= sizeof asked)
        return 0;
    snprintf(folder, sizeof folder, "%s/reprise-fuzz-XXXXXX", place ? place : "/tmp");
    if (!mkdtemp(folder))
        abort();
    snprintf(to, sizeof to, "%s/made", folder);
    write_files(line, text + size);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        snprintf(asked, sizeof asked, "%s%s%s", words[i][0], words[i][1] ? " " : "",
                 words[i][1] ? words[i][1] : "");
        if (strlen(asked) == (size_t)(line - text) && !memcmp(asked, text, strlen(asked)))
            ask(words[i][0], words[i][1]);
    }
    empty_folder();
    return 0;
}
