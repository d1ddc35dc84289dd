/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_FUZZ_TARGETS_H
#define RP_TESTS_FUZZ_TARGETS_H
/* The fuzz targets by name; tests/CMakeLists.txt generates the table from the files. */
#include <stddef.h>
#include <stdint.h>

typedef int fuzz_target(const uint8_t *data, size_t size);

struct named_target {
    const char *name; /* NULL: the end */
    fuzz_target *run;
};

extern const struct named_target fuzz_targets[];

#endif
