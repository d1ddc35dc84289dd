/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_PJRT_DOUBLE_WORDS_H
#define RP_TESTS_PJRT_DOUBLE_WORDS_H
/* How the double of a PJRT plugin misbehaves: the words of the variable PJRT_DOUBLE. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is(const char *word)
{
    const char *list = getenv("PJRT_DOUBLE"), *at = list ? strstr(list, word) : NULL;
    size_t n = strlen(word);

    while (at && ((at > list && at[-1] != ' ') || (at[n] && at[n] != ' ')))
        at = strstr(at + 1, word);
    return at != NULL;
}

static void crash(void)
{
    fprintf(stderr, "F0000 00:00:00 double.cc:1] Check failed: the double was told to\n"
                    "*** Check failure stack trace: ***\n    @ 0x1234 (unknown)\n");
    abort();
}

static void hang(bool told)
{
    if (told)
        fprintf(stderr, "the double waits for something that does not come\n");
    while (told)
        pause();
}

#endif
