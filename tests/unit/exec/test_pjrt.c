/* SPDX-License-Identifier: Apache-2.0 */
/* The engine pjrt against a plugin of our own that misbehaves in every way we know of
   (tests/doubles/pjrt_double.c), in a child process and in this one. */
#include "unit.h"

#include "exec/engines.h"
#include "exec/pjrt/client.h"
#include "io/proto.h"
#include "io/proto_write.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define DOUBLE RP_DOUBLES "/pjrt_double.so"

static const char two_arguments[] =
    "module @m {\n  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, "
    "%arg1: tensor<4xi32> {mhlo.sharding = \"{replicated, (,)}\"}) -> (tensor<2x3xf32>, "
    "tensor<4xi32>) {\n    return %arg0, %arg1 : tensor<2x3xf32>, tensor<4xi32>\n  }\n}\n";

static struct rp_engine_program mlir_program(void)
{
    return (struct rp_engine_program){.name = "m.mlir",
                                      .bytes = (const uint8_t *)two_arguments,
                                      .nbytes = sizeof two_arguments - 1,
                                      .format = "stablehlo"};
}

static void make_arguments(struct rp_tensor *out[2])
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_tensor_new(RP_ELEM_F32, (int64_t[]){2, 3}, 2, &out[0], &err), &err);
    assert_ok(rp_tensor_new(RP_ELEM_S32, (int64_t[]){4}, 1, &out[1], &err), &err);
    for (size_t i = 0; i < 6; i++)
        rp_tensor_set(out[0], i, 0.5 + (double)i);
    for (size_t i = 0; i < 4; i++)
        rp_tensor_set_integer(out[1], i, -7 * (int64_t)i);
}

static int64_t patience_ns = 300000000; /* for a double that hangs */

static enum rp_code start(const char *misbehave, bool in_process, struct rp_executable **exe,
                          struct rp_err *err)
{
    bool hangs = strstr(misbehave, "hang-") != NULL;
    struct rp_engine_options options = {.in_process = in_process,
                                        .timeout_ns = hangs ? patience_ns : 0};
    struct rp_engine_program program = mlir_program();

    setenv("PJRT_DOUBLE", misbehave, 1);
    return rp_engine_pjrt.compile(DOUBLE, &program, &options, exe, err);
}

/* Everything once, and the outputs are the arguments. */
static void whole(const char *misbehave, bool in_process)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *arguments[2], *outputs[2];
    struct rp_executable *exe;
    int64_t ns[5] = {0};
    uint8_t *bytes;
    size_t n;

    make_arguments(arguments);
    assert_ok(start(misbehave, in_process, &exe, &err), &err);
    assert_int_equal(exe->narguments, 2);
    assert_int_equal(exe->noutputs, 2);
    assert_int_equal(exe->partitions, 1);
    assert_string_equal(exe->device, "double device (cpu)");
    assert_ok(rp_engine_pjrt.upload(exe, arguments, &err), &err);
    assert_ok(rp_engine_pjrt.mark(exe, true, &err), &err);
    assert_ok(rp_engine_pjrt.run_timed(exe, 5, ns, &err), &err);
    assert_ok(rp_engine_pjrt.mark(exe, false, &err), &err);
    for (size_t i = 0; i < 5; i++)
        assert_true(ns[i] > 0);
    assert_ok(rp_engine_pjrt.fetch(exe, outputs, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(outputs[i]->elem, arguments[i]->elem);
        assert_int_equal(outputs[i]->rank, arguments[i]->rank);
        assert_memory_equal(outputs[i]->data, arguments[i]->data, rp_tensor_bytes(arguments[i]));
        rp_tensor_drop(outputs[i]);
    }
    if (strcmp(misbehave, "old") != 0) { /* that one has no extensions */
        assert_ok(rp_engine_pjrt.profile(exe, 2, &bytes, &n, &err), &err);
        assert_int_equal(n, 6);
        assert_memory_equal(bytes, "xspace", 6);
        free(bytes);
    } else {
        assert_code(rp_engine_pjrt.profile(exe, 2, &bytes, &n, &err), RP_MISSING);
        assert_contains(err.text, "no profiler");
    }
    rp_engine_pjrt.release(exe);
    rp_tensor_drop(arguments[0]);
    rp_tensor_drop(arguments[1]);
}

static void runs(void **state)
{
    UNUSED_STATE(state);
    whole("", false);
    whole("", true);
}

static void sizes_and_versions(void **state)
{
    UNUSED_STATE(state);
    whole("exact", false);
    whole("exact", true);
    whole("old", false);
    whole("newer", false);
    whole("own-buffer", false);
}

/* Nothing that the plugin prints comes to our standard output. */
static void prints(void **state)
{
    char path[] = "/tmp/reprise-test-XXXXXX", text[64];
    int file = mkstemp(path), was;
    ssize_t n;

    UNUSED_STATE(state);
    assert_true(file >= 0);
    fflush(stdout);
    was = dup(STDOUT_FILENO);
    dup2(file, STDOUT_FILENO);
    whole("print", false);
    dup2(was, STDOUT_FILENO);
    n = pread(file, text, sizeof text, 0);
    assert_int_equal(n, 0);

    dup2(file, STDOUT_FILENO); /* in this process it goes to standard error, here the same file */
    int error = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    whole("print", true);
    dup2(error, STDERR_FILENO);
    dup2(was, STDOUT_FILENO);
    n = pread(file, text, sizeof text, 0);
    close(error);
    close(null);
    close(was);
    close(file);
    unlink(path);
    assert_int_equal(n, 0);
}

static void refuses(const char *misbehave, enum rp_code code, const char *words)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_executable *exe = NULL;

    assert_code(start(misbehave, false, &exe, &err), code);
    assert_null(exe);
    assert_contains(err.text, words);
}

static void failures(void **state)
{
    UNUSED_STATE(state);
    refuses("major", RP_MISSING, "has PJRT version 1.81; reprise supports versions 0.x");
    refuses("short", RP_MISSING, "too short");
    refuses("fail-create", RP_MISSING, "error from the plugin: no device is here");
    refuses("fail-compile", RP_UNSUPPORTED, "the double does not compile");
    refuses("custom-call", RP_UNSUPPORTED, "custom call to tripler");
}

static void aborts(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *arguments[2];
    struct rp_executable *exe;
    int64_t ns[3];

    UNUSED_STATE(state);
    refuses("abort-create", RP_IO, "signal 6 (Aborted)");
    refuses("abort-compile", RP_IO, "its last output: F0000 00:00:00 double.cc:1] Check failed");
    make_arguments(arguments);
    assert_ok(start("abort-run", false, &exe, &err), &err);
    assert_ok(rp_engine_pjrt.upload(exe, arguments, &err), &err);
    assert_ok(rp_engine_pjrt.run_timed(exe, 1, ns, &err), &err);
    assert_code(rp_engine_pjrt.run_timed(exe, 3, ns, &err), RP_IO);
    assert_contains(err.text, "the plugin ended its process while running the program");
    assert_code(rp_engine_pjrt.run_timed(exe, 1, ns, &err), RP_IO); /* and stays so */
    rp_engine_pjrt.release(exe);
    rp_tensor_drop(arguments[0]);
    rp_tensor_drop(arguments[1]);
}

static bool is_patient(void)
{
    return (patience_ns *= 2) < 100 * INT64_C(1000000000);
}

/* A plugin that never comes back is given up, and a later request does not wait for it. */
static void hangs(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *arguments[2];
    struct rp_executable *exe = NULL;
    int64_t ns[3];

    UNUSED_STATE(state);
    refuses("hang-create", RP_IO, "did not answer for 0.3 s while loading and compiling");
    /* a busy machine may need longer to come to where it hangs */
    while (start("hang-compile", false, &exe, &err) && !strstr(err.text, "the double waits") &&
           is_patient())
        ;
    assert_null(exe);
    assert_contains(err.text, "its last output: the double waits");
    make_arguments(arguments);
    while (start("hang-run", false, &exe, &err) && is_patient())
        ;
    assert_non_null(exe);
    assert_ok(rp_engine_pjrt.upload(exe, arguments, &err), &err);
    assert_code(rp_engine_pjrt.run_timed(exe, 3, ns, &err), RP_IO);
    assert_contains(err.text, "while running the program: its process was killed");
    assert_code(rp_engine_pjrt.run_timed(exe, 1, ns, &err), RP_IO);
    rp_engine_pjrt.release(exe);
    assert_ok(start("exit-run", false, &exe, &err), &err);
    assert_ok(rp_engine_pjrt.upload(exe, arguments, &err), &err);
    assert_code(rp_engine_pjrt.run_timed(exe, 1, ns, &err), RP_IO);
    assert_contains(err.text, "exit status 0");
    rp_engine_pjrt.release(exe);
    rp_tensor_drop(arguments[0]);
    rp_tensor_drop(arguments[1]);
}

static void fails_later(const char *misbehave, enum rp_code at_run, enum rp_code at_fetch,
                        const char *words)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *arguments[2], *outputs[2];
    struct rp_executable *exe;
    int64_t ns;

    make_arguments(arguments);
    assert_ok(start(misbehave, false, &exe, &err), &err);
    assert_ok(rp_engine_pjrt.upload(exe, arguments, &err), &err);
    assert_code(rp_engine_pjrt.run_timed(exe, 1, &ns, &err), at_run);
    if (at_run == RP_OK)
        assert_code(rp_engine_pjrt.fetch(exe, outputs, &err), at_fetch);
    assert_contains(err.text, words);
    rp_engine_pjrt.release(exe);
    rp_tensor_drop(arguments[0]);
    rp_tensor_drop(arguments[1]);
}

static void failures_of_runs(void **state)
{
    UNUSED_STATE(state);
    fails_later("fail-run", RP_NOMEM, RP_OK, "out of memory on the device");
    fails_later("fail-event", RP_IO, RP_OK, "the device was lost");
    fails_later("wide", RP_OK, RP_UNSUPPORTED, "output 0: the plugin expects 32 bytes, not 24");
}

static void no_plugin(void **state)
{
    struct rp_engine_program program = mlir_program();
    struct rp_engine_options options = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_executable *exe;
    char found[256];

    UNUSED_STATE(state);
    assert_code(rp_engine_pjrt.compile("/no/such.so", &program, &options, &exe, &err), RP_MISSING);
    assert_contains(err.text, "no plugin '/no/such.so'");
    assert_code(
        rp_engine_pjrt.compile(RP_DOUBLES "/cuda_double.so", &program, &options, &exe, &err),
        RP_MISSING);
    assert_contains(err.text, "no function GetPjrtApi");
    assert_code(rp_engine_pjrt.compile(__FILE__, &program, &options, &exe, &err), RP_MISSING);
    setenv("PJRT_DOUBLE", "print", 1);
    assert_ok(rp_engine_pjrt.probe(DOUBLE, found, sizeof found, &err), &err);
    assert_contains(found, "PJRT 0.81, with a profiler");
    program = (struct rp_engine_program){.name = "x.pb", .format = "graphdef"};
    assert_code(rp_engine_pjrt.compile(DOUBLE, &program, &options, &exe, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "'x.pb' (graphdef) is not a program for PJRT");
}

static void options_of_the_client(void **state)
{
    const char *const bad[] = {"fail=1"}, *const odd[] = {"name"};
    const char *const good[] = {"a=true", "b=1.5", "c=1,2,3", "d=text", "e=-7"};
    struct rp_engine_options options = {.plugin_options = bad, .nplugin_options = 1};
    struct rp_engine_program program = mlir_program();
    struct rp_err err = RP_ERR_INIT;
    struct rp_executable *exe;

    UNUSED_STATE(state);
    setenv("PJRT_DOUBLE", "", 1);
    assert_code(rp_engine_pjrt.compile(DOUBLE, &program, &options, &exe, &err), RP_MISSING);
    assert_contains(err.text, "an option said fail");
    options.plugin_options = odd;
    assert_code(rp_engine_pjrt.compile(DOUBLE, &program, &options, &exe, &err), RP_USAGE);
    options.plugin_options = good;
    options.nplugin_options = 5;
    assert_ok(rp_engine_pjrt.compile(DOUBLE, &program, &options, &exe, &err), &err);
    rp_engine_pjrt.release(exe);
}

/* ---- modules ---- */

static void put_shape(struct rp_proto_writer *w, uint32_t field, unsigned elem, int parts)
{
    size_t shape = rp_proto_begin(w, field);

    rp_proto_put_varint(w, 2, elem);
    for (int i = 0; i < parts; i++)
        put_shape(w, 4, RP_ELEM_F32, 0);
    rp_proto_end(w, shape);
}

/* A module of so many parameters, one of them a tuple of `parts`; output 0 may take the memory of
   parameter 1 (or of part 1). */
static struct rp_bytes put_module(struct rp_proto_writer *w, int parameters, int parts)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_bytes bytes;
    size_t shape, alias, entry, index;

    alias = rp_proto_begin(w, 8);
    entry = rp_proto_begin(w, 1);
    rp_proto_put_varint(w, 2, parts ? 0 : 1);
    if (parts) {
        index = rp_proto_begin(w, 3);
        rp_proto_add_varint(w, 1);
        rp_proto_end(w, index);
    }
    rp_proto_end(w, entry);
    rp_proto_end(w, alias);
    shape = rp_proto_begin(w, 4);
    for (int i = 0; i < parameters; i++)
        put_shape(w, 1, parts && i == 0 ? RP_ELEM_TUPLE : RP_ELEM_F32, i == 0 ? parts : 0);
    rp_proto_end(w, shape);
    assert_ok(rp_proto_written(w, &bytes, &err), &err);
    return bytes;
}

static void module_facts(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_pjrt_module m;
    struct rp_err err = RP_ERR_INIT;
    struct rp_bytes bytes;
    size_t shape;

    UNUSED_STATE(state);
    bytes = put_module(&w, 3, 0);
    assert_ok(rp_pjrt_read_hlo(bytes.at, bytes.n, &m, &err), &err);
    assert_int_equal(m.donated.n, 3);
    assert_memory_equal(m.donated.at, "\0\1\0", 3);
    assert_false(m.tupled || m.scheduled);
    rp_pjrt_module_release(&m);
    for (size_t n = 0; n < bytes.n; n++) { /* cut anywhere: an error or fewer facts, no crash */
        rp_pjrt_read_hlo(bytes.at, n, &m, NULL);
        rp_pjrt_module_release(&m);
    }
    rp_proto_rewind(&w);
    bytes = put_module(&w, 1, 4);
    assert_ok(rp_pjrt_read_hlo(bytes.at, bytes.n, &m, &err), &err);
    assert_true(m.tupled);
    assert_int_equal(m.donated.n, 4);
    assert_memory_equal(m.donated.at, "\0\1\0\0", 4);
    rp_pjrt_module_release(&m);
    rp_proto_rewind(&w);
    bytes = put_module(&w, 2, 4);
    assert_code(rp_pjrt_read_hlo(bytes.at, bytes.n, &m, &err), RP_UNSUPPORTED);
    rp_pjrt_module_release(&m);
    rp_proto_rewind(&w);
    shape = rp_proto_begin(&w, 4);
    put_shape(&w, 1, RP_ELEM_TOKEN, 0);
    rp_proto_end(&w, shape);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    assert_code(rp_pjrt_read_hlo(bytes.at, bytes.n, &m, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "PJRT takes arrays, or one tuple of arrays");
    rp_pjrt_module_release(&m);
    rp_proto_writer_release(&w);
}

static void mlir_facts(void **state)
{
    static const char none[] = "module { func.func public @main() -> tensor<f32> {} }";
    static const char cut[] = "module { func.func @main(%arg0: tensor<";
    static const char map[] = "@main(%a: tensor<2x!x.t<(i32) -> i32>>, %b: tensor<f32> "
                              "{x = \"a,)\\\",\", jax.buffer_donor = true}, %c: i1) -> ";
    struct rp_err err = RP_ERR_INIT;
    struct rp_pjrt_module m;

    UNUSED_STATE(state);
    assert_ok(rp_pjrt_read_mlir(none, sizeof none - 1, &m, &err), &err);
    assert_int_equal(m.donated.n, 0);
    rp_pjrt_module_release(&m);
    assert_ok(rp_pjrt_read_mlir(map, sizeof map - 1, &m, &err), &err);
    assert_int_equal(m.donated.n, 3);
    assert_memory_equal(m.donated.at, "\0\1\0", 3);
    rp_pjrt_module_release(&m);
    assert_code(rp_pjrt_read_mlir(cut, sizeof cut - 1, &m, &err), RP_FORMAT);
    rp_pjrt_module_release(&m);
    assert_code(rp_pjrt_read_mlir("module {}", 9, &m, &err), RP_FORMAT);
    rp_pjrt_module_release(&m);
}

static void compile_options(void **state)
{
    static const uint8_t plain[] = {0x1a, 4, 0x20, 1, 0x28, 1};
    static const uint8_t recorded[] = {0x10, 1,   0x1a, 10,  0x20, 2, 0x1a, 4,
                                       'd',  'b', 'u',  'g', 0x28, 3, 0x38, 9};
    static const uint8_t stripped[] = {0x10, 1, 0x1a, 4, 0x20, 2, 0x28, 3, 0x38, 9};
    struct rp_pjrt_source source = {.replicas = 1};
    struct rp_proto_writer w = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_bytes bytes;

    UNUSED_STATE(state);
    rp_pjrt_put_options(&source, &w);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    assert_int_equal(bytes.n, sizeof plain);
    assert_memory_equal(bytes.at, plain, sizeof plain);
    rp_proto_rewind(&w);
    assert_ok(rp_pjrt_strip_options(recorded, sizeof recorded, &w, &err), &err);
    assert_ok(rp_proto_written(&w, &bytes, &err), &err);
    assert_int_equal(bytes.n, sizeof stripped);
    assert_memory_equal(bytes.at, stripped, sizeof stripped);
    rp_proto_rewind(&w);
    assert_code(rp_pjrt_strip_options(recorded, 7, &w, &err), RP_FORMAT);
    rp_proto_writer_release(&w);
}

/* Four partitions on four devices; nine on a CPU client that is made again; none elsewhere. */
static void partitions(void **state)
{
    struct rp_engine_options options = {.partitions = 4};
    struct rp_engine_program program = mlir_program();
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *arguments[18], *outputs[18];
    struct rp_executable *exe;
    int64_t ns;

    UNUSED_STATE(state);
    setenv("PJRT_DOUBLE", "", 1);
    for (options.partitions = 4; options.partitions <= 9; options.partitions += 5) {
        size_t n = options.partitions * (size_t)2;

        assert_ok(rp_engine_pjrt.compile(DOUBLE, &program, &options, &exe, &err), &err);
        assert_int_equal(exe->partitions, options.partitions);
        for (size_t i = 0; i < n; i += 2)
            make_arguments(arguments + i);
        rp_tensor_set(arguments[n - 2], 0, 99);
        assert_ok(rp_engine_pjrt.upload(exe, arguments, &err), &err);
        assert_ok(rp_engine_pjrt.run_timed(exe, 1, &ns, &err), &err);
        assert_ok(rp_engine_pjrt.fetch(exe, outputs, &err), &err);
        assert_true(rp_tensor_number(outputs[n - 2], 0) == 99);
        assert_true(rp_tensor_number(outputs[0], 0) == 0.5);
        for (size_t i = 0; i < n; i++) {
            rp_tensor_drop(arguments[i]);
            rp_tensor_drop(outputs[i]);
        }
        rp_engine_pjrt.release(exe);
    }
    setenv("PJRT_DOUBLE", "few", 1);
    assert_code(rp_engine_pjrt.compile(DOUBLE, &program, &options, &exe, &err), RP_MISSING);
    assert_contains(err.text, "runs on 14 devices at a time; 'double' has 1 here");
}

/* How the compiled module splits arrays: a grid in the order 0, 2, 1, 3, one of a list of devices,
   and a tuple of results; and that what is not a message is an error. */
static void shards_of_a_module(void **state)
{
    static const uint8_t grid[] = {0x72, 12, 8, 3, 0x1a, 2, 2, 2, 0x22, 4, 0, 2, 1, 3};
    static const uint8_t iota[] = {0x72, 14, 8, 3, 0x1a, 2, 4, 1, 0x4a, 2, 2, 2, 0x52, 2, 1, 0};
    static const uint8_t result[] = {0x62, 6, 8, 2, 0x2a, 0, 0x2a, 0};
    struct rp_pjrt_shards s = {0};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_ok(rp_pjrt_read_shards(grid, sizeof grid, &s, &err), &err);
    assert_ok(rp_pjrt_read_shards(iota, sizeof iota, &s, &err), &err);
    assert_ok(rp_pjrt_read_shards(result, sizeof result, &s, &err), &err);
    assert_int_equal(s.in.n, 2);
    assert_int_equal(s.out.n, 2);
    assert_int_equal(s.in.at[0].type, RP_SHARDING_OTHER);
    assert_int_equal(s.in.at[0].tiles.n, 2);
    assert_int_equal(s.in.at[0].devices.n, 4);
    assert_int_equal(s.in.at[0].devices.at[1], 2);
    assert_int_equal(s.in.at[1].tiles.at[0], 4);
    assert_int_equal(s.in.at[1].dims.n, 2);
    assert_int_equal(s.in.at[1].perm.at[0], 1);
    assert_int_equal(s.out.at[1].type, RP_SHARDING_REPLICATED);
    assert_code(rp_pjrt_read_shards(grid, sizeof grid - 1, &s, &err), RP_FORMAT);
    rp_pjrt_shards_release(&s);
}

/* Whole arrays are cut for the devices, in the order of the sharding, and joined again. */
static void blocks_of_arrays(void **state)
{
    static const uint8_t in[] = {0x72, 11, 8, 3, 0x1a, 1, 2, 0x22, 2, 1, 0, 0x30, 0};
    static const uint8_t out[] = {0x62, 9, 8, 3, 0x1a, 1, 2, 0x22, 2, 1, 0};
    int64_t dims = 3;
    struct rp_slot slot = {.elem = RP_ELEM_F32, .rank = 1, .dims = &dims};
    struct rp_signature whole = {.out = &slot, .nout = 1};
    struct rp_pjrt_client c = {
        .ndevices = 2, .narguments = 1, .noutputs = 1, .partitions = 2, .results = &whole};
    struct rp_tensor *arguments[2], *outputs[2];
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_ok(rp_pjrt_read_shards(in, sizeof in, &c.shards, &err), &err);
    assert_ok(rp_pjrt_read_shards(out, sizeof out, &c.shards, &err), &err);
    for (size_t d = 0; d < 2; d++) {
        assert_ok(rp_tensor_new(RP_ELEM_F32, &dims, 1, &arguments[d], &err), &err);
        for (size_t i = 0; i < 3; i++)
            rp_tensor_set(arguments[d], i, 1 + (double)i);
    }
    assert_ok(rp_pjrt_split(&c, arguments, &err), &err);
    assert_int_equal(c.hosts[0]->n, 2);
    assert_true(rp_tensor_number(c.hosts[0], 0) == 3 && rp_tensor_number(c.hosts[0], 1) == 0);
    assert_true(rp_tensor_number(c.hosts[1], 0) == 1 && rp_tensor_number(c.hosts[1], 1) == 2);
    for (size_t d = 0; d < 2; d++)
        outputs[d] = rp_tensor_keep(c.hosts[d]);
    assert_ok(rp_pjrt_join(&c, outputs, &err), &err);
    for (size_t d = 0; d < 2; d++) {
        assert_int_equal(outputs[d]->n, 3);
        for (size_t i = 0; i < 3; i++)
            assert_true(rp_tensor_number(outputs[d], i) == 1 + (double)i);
        rp_tensor_drop(outputs[d]);
        rp_tensor_drop(arguments[d]);
    }
    rp_tensors_release(&c.blocks);
    rp_pjrt_shards_release(&c.shards);
}

int test_pjrt(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),
        cmocka_unit_test(sizes_and_versions),
        cmocka_unit_test(prints),
        cmocka_unit_test(failures),
        cmocka_unit_test(aborts),
        cmocka_unit_test(hangs),
        cmocka_unit_test(failures_of_runs),
        cmocka_unit_test(no_plugin),
        cmocka_unit_test(options_of_the_client),
        cmocka_unit_test(module_facts),
        cmocka_unit_test(mlir_facts),
        cmocka_unit_test(compile_options),
        cmocka_unit_test(partitions),
        cmocka_unit_test(shards_of_a_module),
        cmocka_unit_test(blocks_of_arrays),
    };

    return cmocka_run_group_tests_name("exec/pjrt", tests, NULL, NULL);
}
