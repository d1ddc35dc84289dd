/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds what should not leave its owner in the texts of a trace, by the key that a text belongs to
 * (`password`, `hostname`, `env`), by its form (a token of a service, a path, an address), and as a
 * host or user that another text of the same trace has named.
 *
 *     /home/ann/run/train.py(12): step        <path>/train.py(12): step
 *     --api-key sk-3f9…                       --api-key <token>
 *     tcp://10.0.0.7:29500                    <address>
 *
 * Names of kernels, operators and modules stay, because they have none of these forms.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "io/emit.h"
#include "trace/trace.h"

#include <stdbool.h>

/* X(NAME, "one", "its replacement", "what it is") */
#define RP_SECRET_ROWS(X)                                                                     \
    X(ENVIRONMENT, "environment", "<environment>", "environment variables")                   \
    X(TOKEN, "token", "<token>", "tokens, passwords and keys")                                \
    X(HOST, "host", "<host>", "names of hosts")                                               \
    X(USER, "user", "<user>", "names of users, and mail addresses")                           \
    X(PATH, "path", "<path>/", "folders of absolute paths")                                   \
    X(ADDRESS, "address", "<address>", "addresses: URL, IP, MAC")                             \
    X(IDENTIFIER, "identifier", "<identifier>", "unique ids: UUID, long hexadecimal numbers") \
    X(OUTPUT, "output", "<output>", "captured output of programs")                            \
    X(COMMAND, "command", "<command>", "command lines of programs")                           \
    X(SOURCE, "source", "<source>", "source code of programs")                                \
    X(NAME, "name", "", "names, which became hashes")

enum rp_secret {
#define RP_SECRET_ENUM(name, one, instead, doc) RP_SECRET_##name,
    RP_SECRET_ROWS(RP_SECRET_ENUM)
#undef RP_SECRET_ENUM
        RP_SECRETS
};

#define RP_SECRET_BIT(kind) (UINT32_C(1) << RP_SECRET_##kind)

struct rp_secret_row {
    const char *name, *instead, *doc;
};
extern const struct rp_secret_row rp_secret_rows[RP_SECRETS];

struct rp_secret_word {
    const char *text;
    enum rp_secret kind; /* RP_SECRET_HOST or _USER */
};

struct rp_secret_words {
    struct rp_arena arena;
    RP_VEC(struct rp_secret_word) list;
};

void rp_secret_words_release(struct rp_secret_words *words);

/* Notes hosts and users named in a text or, if is_json, in a JSON value. key: that of the text, or
   "". */
enum rp_code rp_secrets_learn(struct rp_secret_words *words, const char *key, const char *text,
                              size_t n, bool is_json, struct rp_err *err);

/* Whether a text is an event's name, in which fewer forms are looked for, or a value. */
enum rp_secret_place { RP_SECRET_IN_NAME, RP_SECRET_IN_VALUE };

/* Writes the text without its secrets, and counts them by kind. */
void rp_secrets_clean(const struct rp_secret_words *words, enum rp_secret_place place,
                      const char *key, const char *text, size_t n, struct rp_emit *to,
                      int64_t counts[RP_SECRETS]);

/* The same for JSON: keys and structure stay. If it is not JSON, it is cleaned as a text. */
void rp_secrets_clean_json(const struct rp_secret_words *words, const char *key, const char *json,
                           size_t n, struct rp_emit *to, int64_t counts[RP_SECRETS]);

/* Counts the secrets in the texts of a trace; a text that occurs twice may be counted twice. Keys
   of arguments are not examined. */
enum rp_code rp_secrets_count(const struct rp_trace *t, int64_t counts[RP_SECRETS],
                              struct rp_err *err);
