/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that end early, at the end of memory that can be read: a reader that looks one byte further
 * crashes. What it says about the file names a place in it.
 */
#include "unit.h"

#include "formats/formats.h"

#include <glob.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int test_ends_early(void);

#define LARGEST 32768 /* bytes of a file that is read here */
#define ENDS    32    /* of a file, besides the last ones */

/* Memory whose last byte is the last one that can be read. */
static uint8_t *guarded_end(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = LARGEST + page;
    uint8_t *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + LARGEST, page, PROT_NONE), 0);
    return at + LARGEST;
}

static void read_end(uint8_t *end, const uint8_t *bytes, size_t n, bool salvage, const char *path)
{
    struct rp_read_options options = {.salvage = salvage};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;
    enum rp_code code;

    memcpy(end - n, bytes, n);
    code = rp_input_open_memory("t", end - n, n, NULL, &in, &err);
    if (code == RP_MISSING) /* compressed, and this build lacks the library */
        return;
    assert_ok(code, &err);
    code = rp_format_read(in, &options, &import, &err);
    if (code == RP_OK) {
        if (import.trace)
            assert_ok(rp_trace_validate(import.trace, &err), &err);
        rp_import_release(&import);
        return;
    }
    if (!*err.text || (err.offset != RP_NO_OFFSET && err.offset > n))
        fail_msg("%s, its first %zu bytes: code %d, at %llu: %s", path, n, (int)code,
                 (unsigned long long)err.offset, err.text);
}

static void read_ends(uint8_t *end, const char *path)
{
    static uint8_t bytes[LARGEST];
    FILE *file = fopen(path, "rb");
    size_t n, step;

    assert_non_null(file);
    n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (n == sizeof bytes)
        return;
    step = n / ENDS + 1;
    for (size_t i = 0; i < n; i += step)
        read_end(end, bytes, i, false, path);
    for (size_t i = n < 6 ? 0 : n - 6; i <= n; i++) {
        read_end(end, bytes, i, false, path);
        read_end(end, bytes, i, true, path);
    }
}

static void readers_stay_inside_of_files_that_end_early(void **state)
{
    static const char *const folders[] = {
        "tests/fuzz/corpus/blade",         "tests/fuzz/corpus/buffers",
        "tests/fuzz/corpus/byteps",        "tests/fuzz/corpus/chakra",
        "tests/fuzz/corpus/exec_trace",    "tests/fuzz/corpus/flight_recorder",
        "tests/fuzz/corpus/graphdef",      "tests/fuzz/corpus/hlo_proto",
        "tests/fuzz/corpus/hlo_text",      "tests/fuzz/corpus/lazy",
        "tests/fuzz/corpus/mlir_bytecode", "tests/fuzz/corpus/nccl_inspector",
        "tests/fuzz/corpus/nccl_profiler", "tests/fuzz/corpus/perfetto",
        "tests/fuzz/corpus/proton",        "tests/fuzz/corpus/rocprof_csv",
        "tests/fuzz/corpus/rocprof_json",  "tests/fuzz/corpus/rpt",
        "tests/fuzz/corpus/runmeta",       "tests/fuzz/corpus/sampled",
        "tests/fuzz/corpus/stablehlo",     "tests/fuzz/corpus/torch_memory",
        "tests/fuzz/corpus/xplane",        "tests/data/stablehlo/forms"};
    uint8_t *end = guarded_end();
    char pattern[300];
    glob_t found;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(pattern, sizeof pattern, RP_SOURCE_DIR "/%s/*", folders[i]);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t k = 0; k < found.gl_pathc; k++)
            read_ends(end, found.gl_pathv[k]);
        globfree(&found);
    }
    munmap(end - LARGEST, LARGEST + (size_t)sysconf(_SC_PAGESIZE));
}

int test_ends_early(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_stay_inside_of_files_that_end_early),
    };

    return cmocka_run_group_tests_name("ends_early", tests, NULL, NULL);
}
