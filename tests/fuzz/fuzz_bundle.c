/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of bundles: what is read can be written, and reads back as the same. */
#include "replay/bundle.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const struct rp_bundle *b, size_t *n)
{
    struct rp_out *out;
    char *copy;

    if (rp_out_open_memory(&out, NULL) != RP_OK)
        return NULL;
    rp_bundle_write(b, out);
    copy = rp_out_flush(out, NULL) == RP_OK ? malloc(rp_out_position(out) + 1) : NULL;
    if (copy)
        memcpy(copy, rp_out_borrow_memory(out, n), rp_out_position(out));
    rp_out_abandon(out);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_bundle first, again = {0};
    char *one, *two = NULL;
    size_t n = 0, m = 0;
    enum rp_code code;

    if (rp_bundle_parse(data, size, &arena, &first, NULL) == RP_OK) {
        one = written(&first, &n);
        code = one ? rp_bundle_parse(one, n, &arena, &again, NULL) : RP_NOMEM;
        if (code != RP_OK && code != RP_NOMEM)
            abort();
        two = code == RP_OK ? written(&again, &m) : NULL;
        /* bytes that are no UTF-8 are escaped the first time, and characters after that */
        if (two && !memmem(one, n, "\\ufffd", 6) && (n != m || memcmp(one, two, n) != 0))
            abort();
        free(one);
        free(two);
    }
    rp_bundle_release(&first);
    rp_bundle_release(&again);
    rp_arena_release(&arena);
    return 0;
}
