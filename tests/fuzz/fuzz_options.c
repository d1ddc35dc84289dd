/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the value of any option of any question: what passes the check has a value in range.
 */
#include <reprise/question.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_value(const struct rp_option *option, const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    enum rp_code code = rp_option_check(option, text, &err);

    if (code != RP_OK && (code != RP_USAGE || !err.text[0]))
        abort();
    if (code == RP_OK && option->type >= RP_OPT_INT && option->type <= RP_OPT_DURATION &&
        rp_option_number(option, text) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rp_question *const *list;
    char *text = size < 4096 ? malloc(size + 1) : NULL;
    const char *words[64];
    size_t i, k, n, nwords = 0;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    list = rp_question_list(&n);
    for (i = 0; i < n; i++) {
        const struct rp_option *option;

        words[nwords++] = list[i]->name;
        for (k = 0; (option = rp_question_option(list[i], k)); k++)
            check_value(option, text);
    }
    words[nwords] = NULL;
    rp_closest_word(text, words);
    free(text);
    return 0;
}
