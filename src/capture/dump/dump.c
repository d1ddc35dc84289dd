/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded by `reprise dump run` into every process that it starts: if a launcher has given the
 * process a rank, its dumps go to a folder of that rank. Before the program's main function, in the
 * variables that REPRISE_DUMP_VARIABLES lists,
 *
 *     <folder>/xla  becomes  <folder>/rank3/xla        (<folder> is REPRISE_DUMP)
 *
 * and that folder is made. A process without a rank is left alone; if its parent had another rank,
 * it gets a folder of its own.
 */
#include "abi/launcher_env.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define VALUE_MOST 65536

/* length of a "/rank12" at the beginning of a path, else 0 */
static size_t rank_length(const char *at)
{
    size_t n = 5;

    if (strncmp(at, "/rank", 5) != 0 || !isdigit((unsigned char)at[5]))
        return 0;
    while (isdigit((unsigned char)at[n]))
        n++;
    return at[n] == '/' ? n : 0;
}

/* Makes the folder of a rank and the one that follows in a value. */
static void make_folders(const char *root, int32_t rank, const char *rest)
{
    size_t len = strcspn(rest + 1, "/ \t\"'");
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/rank%d", root, (int)rank);

    if (n < 0 || (size_t)n + len + 2 > sizeof path)
        return;
    mkdir(path, 0755);
    snprintf(path + n, sizeof path - (size_t)n, "/%.*s", (int)len, rest + 1);
    mkdir(path, 0755);
}

static void move_variable(const char *name, const char *root, int32_t rank)
{
    static char out[VALUE_MOST]; /* constructors run in one thread */
    const char *value = getenv(name), *at, *rest;
    size_t n = 0, len = strlen(root);

    for (; value && (at = strstr(value, root)); value = rest) {
        size_t before = (size_t)(at - value);

        rest = at + len;
        rest += rank_length(rest);
        int more = snprintf(out + n, sizeof out - n, "%.*s%s", (int)before, value, root);
        if (more < 0 || (size_t)more + 32 >= sizeof out - n)
            return;
        n += (size_t)more;
        if (*rest == '/') {
            n += (size_t)snprintf(out + n, sizeof out - n, "/rank%d", (int)rank);
            make_folders(root, rank, rest);
        }
    }
    if (n && snprintf(out + n, sizeof out - n, "%s", value) < (int)(sizeof out - n))
        setenv(name, out, 1);
}

__attribute__((constructor)) static void dump_by_rank(void)
{
    static const char *const ranks[] = RP_LAUNCHER_RANKS;
    const char *root = getenv("REPRISE_DUMP"), *list = getenv("REPRISE_DUMP_VARIABLES");
    int32_t rank = rp_launcher_number(ranks);

    if (!root || !*root || !list || rank < 0)
        return;
    while (*list) {
        size_t len = strcspn(list, ",");
        char name[128];

        if (len < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)len, list);
            move_variable(name, root, rank);
        }
        list += len + (list[len] == ',');
    }
}
