/* SPDX-License-Identifier: Apache-2.0 */
/* Texts without secrets: the first line is the key, the rest the text, as a value, a name and as
   JSON; twice, because a clean text may be cleaned again. */
#include "trace/secrets.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void clean_twice(const struct rp_secret_words *words, const char *key, const char *text,
                        size_t n, bool json)
{
    int64_t counts[RP_SECRETS] = {0};
    struct rp_emit once, twice;

    if (rp_emit_open_memory(&once, NULL) != RP_OK)
        return;
    if (rp_emit_open_memory(&twice, NULL) == RP_OK) {
        if (json)
            rp_secrets_clean_json(words, key, text, n, &once, counts);
        else
            rp_secrets_clean(words, RP_SECRET_IN_NAME, key, text, n, &once, counts);
        rp_secrets_clean(words, RP_SECRET_IN_VALUE, key, once.buffer, rp_emit_length(&once), &twice,
                         counts);
        rp_emit_abandon(&twice);
    }
    rp_emit_abandon(&once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    size_t nkey = line ? (size_t)(line - data) : 0, from = line ? nkey + 1 : 0;
    struct rp_secret_words words = {.arena = RP_ARENA_INIT};
    char *key = strndup((const char *)data, nkey), *text = malloc(size - from + 1);

    if (key && text) {
        memcpy(text, data + from, size - from); /* of its own, so that its end is guarded */
        text[size - from] = '\0';
        if (rp_secrets_learn(&words, key, text, size - from, size & 1, NULL) == RP_OK) {
            clean_twice(&words, key, text, size - from, false);
            clean_twice(&words, key, text, size - from, true);
        }
    }
    rp_secret_words_release(&words);
    free(key);
    free(text);
    return 0;
}
