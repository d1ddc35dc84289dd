/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the library a question and prints a part of the answer:
 *
 *     cc use_library.c $(pkg-config --cflags --libs reprise) -o use_library
 *
 * or, with the library inside the program:
 *
 *     cc use_library.c $(pkg-config --static --cflags --libs reprise |
 *                        sed 's/-lreprise/-l:libreprise.a/') -o use_library
 *
 * Any question of `reprise help` is asked the same way; those about traces and programs want a
 * dataset (rp_open) in place of NULL. The result is a plain C struct with a description beside it,
 * so it can be printed as a whole (rp_result_print) or looked into by path.
 */
#include <reprise/reprise.h>

#include <stdio.h>
#include <string.h>

/* The text at a path of the result, or NULL. */
static const char *find_text(const struct rp_result *result, const char *path)
{
    struct rp_cursor found;
    const char *text = NULL;

    if (rp_result_find(result, path, &found) && found.field && found.field->type == RP_T_STR)
        memcpy(&text, (const char *)found.at + found.field->offset, sizeof text);
    return text;
}

int main(void)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_ctx *ctx = NULL;
    struct rp_result *result = NULL;
    enum rp_code code = rp_ctx_new(NULL, &ctx, &err);

    if (code == RP_OK)
        code = rp_ask(ctx, NULL, "version", NULL, 0, &result, &err);
    if (code == RP_OK)
        printf("reprise %s for %s\n", find_text(result, "version"), find_text(result, "machine"));
    else
        fprintf(stderr, "use_library: %s\n", err.text);
    rp_result_free(result);
    rp_ctx_free(ctx);
    return rp_code_exit_status(code);
}
