/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_JSON_FIXTURES_H
#define RP_TESTS_JSON_FIXTURES_H
/*
 * Logs of the pull parser: the list of everything it gave out, and how it ended, as text. A log
 * must be the same for every block size, with and without a thread, and for every index variant.
 */
#include "io/json_pull.h"
#include "unit.h"

#include <stdlib.h>

struct log {
    char *text;
    size_t n, cap;
};

static inline void log_add(struct log *log, const char *bytes, size_t n)
{
    if (log->n + n + 1 > log->cap) {
        log->cap = 2 * (log->n + n) + 256;
        log->text = realloc(log->text, log->cap);
        assert_non_null(log->text);
    }
    memcpy(log->text + log->n, bytes, n);
    log->n += n;
    log->text[log->n] = '\0';
}

static inline void log_text(struct log *log, const char *text)
{
    log_add(log, text, strlen(text));
}

static inline void log_token(struct log *log, const char *before, const struct rp_json_token *t)
{
    log_text(log, before);
    log_add(log, t->text, t->len);
    log_text(log, t->has_escapes ? "\\ " : t->is_integer ? "i " : " ");
}

static inline void log_value(struct log *log, const struct rp_json_token *t)
{
    static const char *const before[] = {"?", "", "", "s:", "n:", "", "", ""};

    log_token(log, before[t->kind], t);
}

/* How it ended: "OK", or the code, the offset and whether the input ended early. */
static inline void log_end(struct log *log, struct rp_json *p)
{
    struct rp_err err;
    enum rp_code code = rp_json_finish(p, &err);
    char text[80];

    if (code == RP_OK) {
        log_text(log, "OK");
        return;
    }
    assert_int_equal(code, err.code);
    assert_true(rp_json_failed(p));
    snprintf(text, sizeof text, "%s@%llu%s", rp_code_name(code),
             (unsigned long long)rp_json_offset(p), rp_json_ended_early(p) ? " early" : "");
    log_text(log, text);
}

enum walk {
    PULL, /* every token */
    SKIP, /* the whole value in one call */
    RAW,  /* elements and fields of the first level as raw text */
    WALKS
};

static inline void walk_tokens(struct rp_json *p, enum walk walk, struct log *log)
{
    struct rp_json_token t, raw;

    if (walk == SKIP) {
        rp_json_skip(p);
        return;
    }
    if (rp_json_value(p, &t))
        log_value(log, &t);
    while (rp_json_depth(p)) {
        bool object = rp_json_in_object(p);
        bool more = object ? rp_json_field(p, &t) : rp_json_element(p);

        if (more && object)
            log_token(log, "k:", &t);
        if (!more && rp_json_failed(p))
            break;
        if (!more) {
            log_text(log, object ? "} " : "] ");
        } else if (walk == RAW) {
            if (rp_json_raw(p, &raw))
                log_token(log, "r:", &raw);
        } else if (rp_json_value(p, &t)) {
            log_value(log, &t);
        }
    }
}

static inline char *make_log(const char *bytes, size_t n, const struct rp_json_options *options,
                             enum walk walk)
{
    struct rp_input *in;
    struct rp_json *p;
    struct rp_err err;
    struct log log = {0};

    assert_ok(rp_input_open_memory("test", bytes, n, options->limits, &in, &err), &err);
    assert_ok(rp_json_open(in, options, &p, &err), &err);
    walk_tokens(p, walk, &log);
    log_end(&log, p);
    rp_json_close(p);
    rp_input_close(in);
    return log.text;
}

static inline void check_log(const char *bytes, size_t n, const struct rp_json_options *options,
                             enum walk walk, const char *want)
{
    char *got = make_log(bytes, n, options, walk);

    if (strcmp(got, want) != 0)
        fail_msg("%.*s (walk %d, block %u, thread %d): got '%s', not '%s'",
                 (int)(n < 200 ? n : 200), bytes, (int)walk, options->block_bytes,
                 options->threaded, got, want);
    free(got);
}

/* The same log for every way to read it. */
static inline void check_every_way(const char *bytes, size_t n, const struct rp_limits *limits)
{
    for (enum walk walk = PULL; walk < WALKS; walk++) {
        struct rp_json_options options = {.limits = limits};
        char *want = make_log(bytes, n, &options, walk);

        for (uint32_t block = 1; block <= n + 1; block += block < 80 ? 1 : 1 + block / 4) {
            options.block_bytes = block;
            for (size_t v = 0; rp_json_indexer_at(v); v++) {
                options.index = rp_json_indexer_at(v)->run;
                check_log(bytes, n, &options, walk, want);
            }
            options.threaded = true;
            check_log(bytes, n, &options, walk, want);
            options.threaded = false;
        }
        free(want);
    }
}

static inline uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

#endif
