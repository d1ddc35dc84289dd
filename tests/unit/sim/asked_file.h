/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_ASKED_FILE_H
#define RP_TESTS_ASKED_FILE_H
/* A question about a file of the golden cases, in which some texts are replaced before. */
#include "unit.h"

#include <reprise/reprise.h>
#include <stdlib.h>
#include <unistd.h>

#define GOLDEN RP_SOURCE_DIR "/tests/golden/simulate/"

struct replaced {
    const char *from, *to; /* every occurrence; from NULL: the end */
};

struct asked_file {
    char path[48];
    struct rp_ctx *ctx;
    struct rp_dataset *dataset;
};

static inline char *file_read(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text;
    long n;

    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    n = ftell(f);
    rewind(f);
    text = (char *)calloc((size_t)n + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    fclose(f);
    return text;
}

static inline char *text_replaced(char *text, const struct replaced *r)
{
    size_t from = strlen(r->from), to = strlen(r->to), n = 0, at = 0;
    char *found = text, *out;

    while ((found = strstr(found, r->from)) != NULL) {
        n++;
        found += from;
    }
    assert_true(n > 0); /* otherwise the test tests nothing */
    out = (char *)calloc(strlen(text) + n * to + 1, 1);
    assert_non_null(out);
    for (const char *at_text = text; *at_text;) {
        if (strncmp(at_text, r->from, from)) {
            out[at++] = *at_text++;
            continue;
        }
        memcpy(out + at, r->to, to);
        at += to;
        at_text += from;
    }
    free(text);
    return out;
}

static inline void asked_open_text(struct asked_file *f, const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    const char *path = f->path;
    int fd;

    snprintf(f->path, sizeof f->path, "/tmp/reprise-sim-XXXXXX.json");
    fd = mkstemps(f->path, 5);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    assert_ok(rp_ctx_new(NULL, &f->ctx, &err), &err);
    assert_ok(rp_open(f->ctx, &path, 1, NULL, &f->dataset, &err), &err);
}

static inline void asked_open(struct asked_file *f, const char *golden, const struct replaced *r)
{
    char *text = file_read(golden);

    for (; r && r->from; r++)
        text = text_replaced(text, r);
    asked_open_text(f, text);
    free(text);
}

static inline void asked_close(struct asked_file *f)
{
    rp_dataset_free(f->dataset);
    rp_ctx_free(f->ctx);
    unlink(f->path);
}

#endif
