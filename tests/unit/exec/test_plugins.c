/* SPDX-License-Identifier: Apache-2.0 */
/* Where plugins are found, which one is taken, and the marks for GPU profilers. */
#include "unit.h"

#include "exec/pjrt/device_marks.h"
#include "exec/plugin/plugin.h"
#include "exec/worker/worker.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DOUBLE RP_DOUBLES "/pjrt_double.so"

/* A folder like a virtual environment, with the double as two plugins and a library that is none.
 */
struct places {
    char root[64], data[96];
    const char *path, *home, *python_path, *virtual_env, *conda;
};

static void make_place(const char *root, const char *folder, const char *file, const char *target)
{
    char path[256], *slash;

    snprintf(path, sizeof path, "%s/%s", root, folder);
    for (slash = path + strlen(root); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, file);
    assert_int_equal(symlink(target, path), 0);
}

static int set_up(void **state)
{
    struct places *p = calloc(1, sizeof *p);

    strcpy(p->root, "/tmp/reprise-plugins-XXXXXX");
    if (!mkdtemp(p->root))
        return -1;
    snprintf(p->data, sizeof p->data, "%s/own", p->root);
    setenv("HOME", p->root, 1);
    setenv("REPRISE_ENGINES", p->data, 1);
    setenv("VIRTUAL_ENV", p->root, 1);
    unsetenv("PYTHONPATH");
    unsetenv("CONDA_PREFIX");
    unsetenv("PJRT_NAMES_AND_LIBRARY_PATHS");
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct places *p = *state;
    char command[128];

    snprintf(command, sizeof command, "rm -rf '%s'", p->root);
    if (system(command) != 0)
        return -1;
    free(p);
    return 0;
}

static const struct rp_plugin *named(const struct rp_plugins *plugins, const char *name)
{
    for (size_t i = 0; i < plugins->list.n; i++)
        if (!strcmp(plugins->list.at[i].name, name))
            return &plugins->list.at[i];
    return NULL;
}

static void finds(void **state)
{
    const struct places *p = *state;
    struct rp_err err = RP_ERR_INIT;
    struct rp_plugins plugins;
    const struct rp_plugin *plugin;
    char copy[256], list[600], *path;

    make_place(p->root, "lib/python3.12/site-packages/xla_plugins/xla_cpu_pjrt", "x.so", DOUBLE);
    make_place(p->root, "lib/python3.12/site-packages/jax_plugins/none", "y.so",
               RP_DOUBLES "/cuda_double.so");
    assert_ok(rp_plugins_find(&plugins, &err), &err);
    plugin = named(&plugins, "xla_cpu_pjrt");
    assert_non_null(plugin);
    assert_contains(plugin->found, "lib/python3.12/site-packages");
    assert_null(named(&plugins, "none")); /* it has no GetPjrtApi */
    rp_plugins_release(&plugins);

    /* of the same file the first place counts, and our own folder comes first */
    make_place(p->root, "own/jax_plugins/mine", "z.so", DOUBLE);
    assert_ok(rp_plugins_find(&plugins, &err), &err);
    assert_non_null(named(&plugins, "mine"));
    assert_null(named(&plugins, "xla_cpu_pjrt"));
    rp_plugins_release(&plugins);

    assert_ok(rp_plugin_resolve(RP_PLUGIN_PJRT, "mine", &path, &err), &err);
    assert_contains(path, "own/jax_plugins/mine/z.so");
    free(path);
    assert_code(rp_plugin_resolve(RP_PLUGIN_PJRT, "nobody", &path, &err), RP_MISSING);
    assert_contains(err.text, "no PJRT plugin of that name");
    assert_code(rp_plugin_resolve(RP_PLUGIN_TF, "nobody", &path, &err), RP_MISSING);

    /* SciPy's LAPACK, by its symbol */
    make_place(p->root, "lib/python3.12/site-packages/scipy.libs", "libscipy_openblas-1.so",
               DOUBLE);
    make_place(p->root, "lib/python3.12/site-packages/scipy.libs", "libscipy_openblas-2.so",
               RP_DOUBLES "/cudart_double.so");
    assert_ok(rp_plugin_resolve(RP_PLUGIN_LAPACK, NULL, &path, &err), &err);
    assert_contains(path, "scipy.libs/libscipy_openblas-2.so");
    free(path);

    /* what the user named in the environment is taken without being asked for */
    snprintf(copy, sizeof copy, "%s/copy.so", p->root);
    assert_int_equal(symlink(RP_DOUBLES "/nvtx_double.so", copy), 0);
    snprintf(list, sizeof list, "odd,gone:/no/such.so,special:%s", copy);
    setenv("PJRT_NAMES_AND_LIBRARY_PATHS", list, 1);
    assert_ok(rp_plugin_resolve(RP_PLUGIN_PJRT, NULL, &path, &err), &err);
    assert_string_equal(path, copy);
    free(path);
    assert_ok(rp_plugin_resolve(RP_PLUGIN_PJRT, "special", &path, &err), &err);
    assert_string_equal(path, copy);
    free(path);
}

static void packages(void **state)
{
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_code(rp_plugin_install("left-pad", &err), RP_USAGE);
    assert_contains(err.text, "xla-cpu-pjrt");
}

/* Files that are no libraries, or damaged ones, have no symbols. */
static void symbols(void **state)
{
    const struct places *p = *state;
    char path[128], bytes[4096];
    FILE *from, *to;
    size_t n;

    assert_true(rp_elf_has_symbol(DOUBLE, "GetPjrtApi"));
    assert_false(rp_elf_has_symbol(DOUBLE, "GetPjrt"));
    assert_false(rp_elf_has_symbol(DOUBLE, "malloc")); /* wanted, not given */
    assert_false(rp_elf_has_symbol(RP_DOUBLES "/cuda_double.so", "GetPjrtApi"));
    assert_false(rp_elf_has_symbol("/no/such", "x"));
    assert_false(rp_elf_has_symbol("/tmp", "x"));
    snprintf(path, sizeof path, "%s/cut.so", p->root);
    from = fopen(DOUBLE, "rb");
    assert_non_null(from);
    n = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    for (size_t cut = 0; cut < n; cut += 61) {
        to = fopen(path, "wb");
        assert_non_null(to);
        fwrite(bytes, 1, cut, to);
        fclose(to);
        assert_false(rp_elf_has_symbol(path, "GetPjrtApi"));
    }
}

static const char *calls_of(const char *file)
{
    void *library = dlopen(file, RTLD_NOW);
    union {
        void *symbol;
        const char *(*call)(void);
    } as;

    assert_non_null(library);
    as.symbol = dlsym(library, "double_calls");
    return as.call();
}

static void marks(void **state)
{
    struct rp_device_marks without = {0}, with = {0};
    const char *runtime, *ranges;

    UNUSED_STATE(state);
    rp_device_marks_begin(&without); /* no driver in this process: nothing is loaded */
    rp_device_marks_push(&without, "run");
    rp_device_marks_pop(&without);
    rp_device_marks_end(&without);
    assert_null(without.start);
    calls_of(RP_DOUBLES "/cuda_double.so");
    runtime = calls_of(RP_DOUBLES "/cudart_double.so");
    ranges = calls_of(RP_DOUBLES "/nvtx_double.so");
    rp_device_marks_push(&with, "before"); /* outside: nothing */
    rp_device_marks_begin(&with);
    rp_device_marks_push(&with, "run");
    rp_device_marks_pop(&with);
    rp_device_marks_end(&with);
    rp_device_marks_pop(&with);
    assert_string_equal(runtime, "start stop ");
    assert_string_equal(ranges, "push-all push pop pop ");
}

static void profilers(void **state)
{
    UNUSED_STATE(state);
    assert_false(rp_worker_is_profiled());
    setenv("NVTX_INJECTION64_PATH", "/x.so", 1);
    assert_true(rp_worker_is_profiled());
    unsetenv("NVTX_INJECTION64_PATH");
}

int test_plugins(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds, set_up, tear_down),
        cmocka_unit_test(packages),
        cmocka_unit_test_setup_teardown(symbols, set_up, tear_down),
        cmocka_unit_test(marks),
        cmocka_unit_test(profilers),
    };

    return cmocka_run_group_tests_name("exec/plugins", tests, NULL, NULL);
}
