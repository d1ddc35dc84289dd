/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files, one a line: joined into modules, and every stage is found by its own name. */
#include "formats/dump/folder.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAMES 64

static void find_all(const struct rp_dump *dump)
{
    size_t at;

    for (size_t i = 0; i < dump->nmodules; i++)
        for (size_t k = 0; k < dump->modules[i].nstages; k++)
            if (rp_dump_find_stage(&dump->modules[i], dump->modules[i].stages[k].name, &at, NULL) !=
                RP_OK)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_arena arena = RP_ARENA_INIT;
    char *text = rp_arena_copy(&arena, (const char *)data, size), *rest = NULL;
    const char *names[NAMES];
    struct rp_dump dump;
    bool found[NAMES];
    size_t n = 0;

    if (!text)
        return 0;
    for (char *line = strtok_r(text, "\n", &rest); line && n < NAMES;
         line = strtok_r(NULL, "\n", &rest))
        names[n++] = line;
    if (rp_dump_index(names, n, &arena, &dump, NULL) == RP_OK) {
        find_all(&dump);
        rp_dump_find_modules(&dump, n ? names[0] : "", found, NULL);
    }
    rp_arena_release(&arena);
    return 0;
}
