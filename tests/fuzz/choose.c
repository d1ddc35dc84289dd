/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One libFuzzer program for all targets, because linking one for each would take longer than a
 * short run: FUZZ_TARGET names the target. It is a variable and not an argument so that libFuzzer
 * passes it on to the processes that it starts.
 */
#include "targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct named_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("FUZZ_TARGET");

    (void)argc;
    for (target = fuzz_targets; target->name && (!name || strcmp(target->name, name) != 0);)
        target++;
    if (!target->name) {
        fprintf(stderr, "%s: no target '%s'; set FUZZ_TARGET to one of:", (*argv)[0],
                name ? name : "");
        for (target = fuzz_targets; target->name; target++)
            fprintf(stderr, " %s", target->name);
        fprintf(stderr, "\n");
        exit(2);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target->run(data, size);
}
