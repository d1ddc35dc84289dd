/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small files with which the fuzzers begin: what is read from each, as a row of seeds.txt, and
 * what each writer makes of it. A row has the format, counts that a person can check in the file,
 * and a sum of all that was read, which changes if anything does. The row that is not as expected
 * is printed; after a change that is meant, this writes all of them:
 *
 *     REPRISE_WRITE_SEEDS=tests/unit/formats/seeds.txt build/tests/unit_formats seeds_are_read
 */
#include "formats/formats.h"
#include "formats/write/writers.h"
#include "io/io_fixtures.h"

#include <ctype.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>

#define ROWS    RP_SOURCE_DIR "/tests/unit/formats/seeds.txt"
#define LARGEST 200000 /* bytes of a file that is read here */

static const char *const seeds[] = {
    "tests/fuzz/corpus/byteps/*",
    "tests/fuzz/corpus/chakra/*",
    "tests/fuzz/corpus/chrome/*",
    "tests/fuzz/corpus/exec_trace/*",
    "tests/fuzz/corpus/flight_recorder/*",
    "tests/fuzz/corpus/graphdef/*",
    "tests/fuzz/corpus/hlo_proto/*",
    "tests/fuzz/corpus/hlo_text/*",
    "tests/fuzz/corpus/lazy/*",
    "tests/fuzz/corpus/lower_tf/*",
    "tests/fuzz/corpus/mlir_bytecode/*",
    "tests/fuzz/corpus/nccl_inspector/*",
    "tests/fuzz/corpus/nccl_profiler/*",
    "tests/fuzz/corpus/perfetto/*",
    "tests/fuzz/corpus/proton/*",
    "tests/fuzz/corpus/rocprof_csv/*",
    "tests/fuzz/corpus/rocprof_json/*",
    "tests/fuzz/corpus/runmeta/*",
    "tests/fuzz/corpus/sampled/*",
    "tests/fuzz/corpus/sqlite/*",
    "tests/fuzz/corpus/torch_memory/*",
    "tests/fuzz/corpus/xplane/*",
    "tests/data/stablehlo/*/*.mlir*",
    "tests/golden/*/*/in.hlo",
    "tests/golden/*/*/in.mlir*",
    "tests/golden/*/*/in.pb*",
    "tests/golden/formats/sampled*/in.*",
    "tests/golden/formats/nccl_inspector/*.log",
    "tests/golden/formats/perfetto_torch/in.pftrace",
    "examples/*.hlo.txt",
    "examples/*.mlir",
};

/* ------------------------------------------------------------------ the sum of a trace */

static uint64_t add_bytes(uint64_t sum, const void *at, size_t n)
{
    const uint8_t *byte = at;

    while (n--)
        sum = (sum ^ *byte++) * UINT64_C(1099511628211);
    return sum;
}

static uint64_t add_number(uint64_t sum, int64_t value)
{
    return add_bytes(sum, &value, sizeof value);
}

static uint64_t add_text(uint64_t sum, const struct rp_trace *t, rp_str s)
{
    return add_number(add_bytes(sum, rp_trace_str(t, s), rp_trace_str_len(t, s)),
                      (int64_t)rp_trace_str_len(t, s));
}

#define NUMBER(value) sum = add_number(sum, (int64_t)(value))
#define TEXT(s)       sum = add_text(sum, t, s)

static uint64_t add_args(uint64_t sum, const struct rp_trace *t, uint16_t shape, uint32_t row,
                         uint64_t *nargs)
{
    uint32_t n = rp_args_count(&t->args, shape, row);

    *nargs += n;
    for (uint32_t k = 0; k < n; k++) {
        struct rp_arg a = rp_args_at(&t->args, shape, row, k);

        TEXT(a.key);
        NUMBER(a.type);
        if (a.type == RP_ARG_RAW || a.type == RP_ARG_STR)
            TEXT(a.v.s);
        else
            NUMBER(a.v.i);
    }
    return sum;
}

static uint64_t add_tables(uint64_t sum, const struct rp_trace *t)
{
    NUMBER(t->has_base);
    NUMBER(t->base_ns);
    NUMBER(t->rank);
    NUMBER(t->world_size);
    TEXT(t->format);
    TEXT(t->framework);
    TEXT(t->framework_version);
    for (uint32_t i = 0; i < t->nprocesses; i++) {
        const struct rp_process *p = &t->processes[i];

        NUMBER(p->native_id);
        TEXT(p->text);
        TEXT(p->name);
        TEXT(p->labels);
        NUMBER(p->device);
        NUMBER(p->sort_index);
    }
    for (uint32_t i = 0; i < t->ntracks; i++) {
        const struct rp_track_info *k = &t->tracks[i];

        NUMBER(k->native_id);
        NUMBER(k->process);
        TEXT(k->text);
        TEXT(k->name);
        NUMBER(k->kind);
        NUMBER(k->sort_index);
    }
    for (uint32_t i = 0; i < t->nsteps; i++) {
        TEXT(t->steps[i].name);
        NUMBER(t->steps[i].begin_ns);
        NUMBER(t->steps[i].end_ns);
        NUMBER(t->steps[i].number);
    }
    for (uint32_t i = 0; i < t->ndevices; i++) {
        TEXT(t->devices[i].name);
        NUMBER(t->devices[i].id);
        NUMBER(t->devices[i].memory_bytes);
    }
    for (uint32_t i = 0; i < t->nmeta; i++) {
        TEXT(t->meta[i].key);
        TEXT(t->meta[i].value);
        NUMBER(t->meta[i].after_events);
    }
    for (uint32_t i = 0; i < t->nwarnings; i++)
        if (!strstr(rp_trace_str(t, t->warnings[i]), RP_SOURCE_DIR))
            TEXT(t->warnings[i]);
    return sum;
}

static uint64_t add_samples(uint64_t sum, const struct rp_trace *t)
{
    const struct rp_call_samples *s = &t->samples;

    NUMBER(s->unit);
    TEXT(s->unit_name);
    for (uint32_t i = 0; i < s->n; i++) {
        NUMBER(s->ts_ns[i]);
        NUMBER(s->weight[i]);
        NUMBER(s->track[i]);
        NUMBER(s->stack[i]);
        NUMBER(s->flags[i]);
    }
    NUMBER(s->nframes);
    NUMBER(s->nstacks);
    return sum;
}

static void describe_trace(const struct rp_trace *t, char *out, size_t cap)
{
    uint64_t sum = UINT64_C(14695981039346656037), nargs = 0, busy = 0;

    for (rp_event i = 0; i < t->ev.n; i++) {
        const struct rp_origin *o = &t->origins[t->ev.origin[i]];
        rp_link link = t->ev.link[i];

        TEXT(t->ev.name[i]);
        NUMBER(o->phase);
        TEXT(o->category);
        NUMBER(t->ev.kind[i]);
        NUMBER(t->ev.ts_ns[i]);
        NUMBER(t->ev.dur_ns[i]);
        NUMBER(t->ev.track[i]);
        NUMBER(t->ev.parent[i]);
        NUMBER(t->ev.flags[i]);
        NUMBER(link == RP_NONE ? -1 : t->links.native_id[link]);
        sum = add_args(sum, t, t->ev.shape[i], t->ev.arg_row[i], &nargs);
        busy += t->ev.dur_ns[i] > 0 ? (uint64_t)t->ev.dur_ns[i] : 0;
    }
    for (uint32_t i = 0; i < t->flows.n; i++) {
        NUMBER(t->flows.ts_ns[i]);
        NUMBER(t->flows.id[i]);
        NUMBER(t->flows.track[i]);
        NUMBER(t->flows.event[i]);
        NUMBER(t->flows.flags[i]);
        TEXT(t->flows.name[i]);
    }
    sum = add_samples(add_tables(sum, t), t);
    snprintf(out, cap,
             "%u processes, %u tracks, %u events of %" PRIu64 " ns, %" PRIu64
             " arguments, %u arrows, %u steps, %u samples, %" PRIx64,
             t->nprocesses, t->ntracks, t->ev.n, busy, nargs, t->flows.n, t->nsteps, t->samples.n,
             sum);
}

/* ------------------------------------------------------------------ what is written */

/* The bytes of a file and their sum, or why it cannot be written. */
static void describe_written(const char *path, enum rp_code code, char *out, size_t cap)
{
    size_t n = strlen(out);

    if (code != RP_OK) {
        snprintf(out + n, cap - n, " %s", rp_code_name(code));
        return;
    }
    struct bytes b = file_get(path);
    snprintf(out + n, cap - n, " %zu/%" PRIx64, b.n,
             add_bytes(UINT64_C(14695981039346656037), b.at, b.n) & UINT32_MAX);
    free(b.at);
}

static void describe_writers(const struct rp_import *import, const char *folder, char *out,
                             size_t cap)
{
    static const char *const of_traces[] = {"json",    "csv",   "perfetto", "speedscope",
                                            "firefox", "pprof", "folded",   NULL};
    static const char *const of_programs[] = {"hlo-text", "hlo-proto", "stablehlo",
                                              "pbtxt",    "graphdef",  NULL};

    for (const char *const *name = import->trace ? of_traces : of_programs; *name; name++) {
        const struct rp_writer *writer;
        struct rp_err err = RP_ERR_INIT;
        char path[192];

        file_put(path, sizeof path, folder, "written", NULL, 0);
        assert_ok(rp_writer_for(*name, path, &writer, &err), &err);
        describe_written(path,
                         import->trace ? writer->write(import->trace, path, NULL, &err)
                                       : writer->write_program(import->program, path, NULL, &err),
                         out, cap);
    }
}

/* ------------------------------------------------------------------ the seeds */

/* Files that a fuzzer found have the sum of their content as a name. What is read of compressed
   ones depends on the libraries of the build. */
static bool is_named(const char *name)
{
    size_t n = 0;

    while (isxdigit((unsigned char)name[n]))
        n++;
    return n < 16 && !strstr(name, "gzip") && !strstr(name, "zstd");
}

static enum rp_code read_seed(const char *path, const struct bytes *b, bool salvage,
                              struct rp_import *import, struct rp_err *err)
{
    bool sampled = strstr(path, "/corpus/sampled/") != NULL; /* the first byte chooses the reader */
    struct rp_read_options options = {.salvage = salvage};
    struct rp_input *in;

    *err = (struct rp_err)RP_ERR_INIT;
    RP_TRY(sampled
               ? rp_input_open_memory(strrchr(path, '/') + 1, b->at + 1, b->n - 1, NULL, &in, err)
               : rp_input_open(path, NULL, &in, err));
    return rp_format_read(in, &options, import, err);
}

static void describe_import(const struct rp_import *import, const char *folder, char *out,
                            size_t cap)
{
    size_t n = strlen(out);

    n += (size_t)snprintf(out + n, cap - n, "%s: ", import->format->name);
    if (import->trace)
        describe_trace(import->trace, out + n, cap - n);
    else
        snprintf(out + n, cap - n, "%zu computations, %zu operations",
                 (size_t)import->program->computations.n, (size_t)import->program->nops);
    n = strlen(out);
    snprintf(out + n, cap - n, ";");
    describe_writers(import, folder, out, cap);
}

/* A file that is damaged is read again, for what can be read of it. False if this build lacks a
   library. */
static bool describe(const char *path, const char *folder, char *out, size_t cap)
{
    struct bytes b = file_get(path);
    enum rp_code code = RP_OK;

    *out = '\0';
    for (int salvage = 0; salvage < 2; salvage++) {
        struct rp_import import = RP_IMPORT_INIT;
        struct rp_err err;
        size_t n = strlen(out);

        code = read_seed(path, &b, salvage, &import, &err);
        if (code != RP_OK)
            snprintf(out + n, cap - n, "%s at %lld%s", rp_code_name(code), (long long)err.offset,
                     salvage ? "" : "; salvaged: ");
        else if (import.trace || import.program)
            describe_import(&import, folder, out, cap);
        rp_import_release(&import);
        if (code == RP_OK || code == RP_MISSING)
            break;
    }
    free(b.at);
    return code != RP_MISSING;
}

static void write_rows(const char *to, const char *folder)
{
    FILE *out = fopen(to, "w");

    assert_non_null(out);
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        char pattern[300], row[2048];
        struct stat info;
        glob_t found;

        snprintf(pattern, sizeof pattern, RP_SOURCE_DIR "/%s", seeds[i]);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t k = 0; k < found.gl_pathc; k++)
            if (is_named(strrchr(found.gl_pathv[k], '/') + 1) && !stat(found.gl_pathv[k], &info) &&
                info.st_size && info.st_size <= LARGEST &&
                describe(found.gl_pathv[k], folder, row, sizeof row))
                fprintf(out, "%s %s\n", found.gl_pathv[k] + strlen(RP_SOURCE_DIR "/"), row);
        globfree(&found);
    }
    fclose(out);
}

/* Whether the file of a row, which is cut there, is read as it says. */
static bool is_as_before(char *row, const char *folder)
{
    char *before = strchr(row, ' '), path[300], now[2048];

    assert_non_null(before);
    *before++ = '\0';
    snprintf(path, sizeof path, RP_SOURCE_DIR "/%s", row);
    if (!describe(path, folder, now, sizeof now) || !strcmp(before, now))
        return true;
    print_error("%s is read as\n  %s\nand not as\n  %s\n", row, now, before);
    return false;
}

static void seeds_are_read(void **state)
{
    const char *to = getenv("REPRISE_WRITE_SEEDS");
    size_t seen = 0, differ = 0;
    char folder[128];

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    if (to)
        write_rows(to, folder);
    struct bytes rows = file_get(to ? to : ROWS);
    bytes_append(&rows, "", 1);
    for (char *row = strtok((char *)rows.at, "\n"); row; row = strtok(NULL, "\n"), seen++)
        differ += !is_as_before(row, folder);
    free(rows.at);
    folder_remove(folder);
    assert_true(seen > 100);
    assert_int_equal(differ, 0);
}

int test_seeds(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_are_read),
    };

    return cmocka_run_group_tests_name("seeds", tests, NULL, NULL);
}
