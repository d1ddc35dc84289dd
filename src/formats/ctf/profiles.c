/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles that frameworks wrote themselves during a recording (.tensorflow_<pid>_<n>.xplane.pb,
 * see capture/frameworks): operators that the recorder cannot see. Each is read by its own reader
 * and appended, with its times converted to the recording's clock: both give the time since 1970 of
 * their zero. Those of one process are windows of it: their threads are the same.
 */
#include "formats/ctf/ctf.h"

#include "base/order.h"
#include "formats/formats.h"
#include "trace/build/build.h"

#include <dirent.h>
#include <stdio.h>

#define PROFILES_MAX 100000
#define PID_STEP     INT64_C(1000000000)

struct profile_name {
    char text[256];
};

RP_ORDER(by_name, struct profile_name, strcmp(a->text, b->text))

static int64_t profile_time(const void *user, uint32_t process, int64_t ns)
{
    const int64_t *shift_ns = user;
    int64_t t;

    (void)process;
    return __builtin_add_overflow(ns, *shift_ns, &t) ? ns : t;
}

/* The first of the names, which are in order, that differs from that of `i` in its number only. */
static size_t first_window(const struct profile_name *names, size_t i)
{
    const char *number = strrchr(names[i].text, '_');
    size_t same = number ? (size_t)(number - names[i].text) + 1 : sizeof names->text, first = i;

    while (first && !strncmp(names[first - 1].text, names[i].text, same))
        first--;
    return first;
}

static enum rp_code append_profile(struct rp_ctf_reader *r, const char *path, uint32_t index,
                                   uint32_t window_of, struct rp_err *err)
{
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_append how = {
        .index = index, .window_of = window_of, .pid_step = PID_STEP, .time = profile_time};
    struct rp_err why = RP_ERR_INIT;
    struct rp_input *in = NULL;
    int64_t shift_ns = 0;
    enum rp_code code = rp_input_open(path, r->t.options->limits, &in, &why);

    if (code == RP_OK)
        code = rp_format_read(in, r->t.options, &import, &why);
    if (code == RP_NOMEM || code == RP_CANCELLED)
        return rp_err_set(err, code, "%s", why.text);
    if (code != RP_OK)
        return rp_builder_warn(r->t.builder, err, "a profile of a framework is left out: %s",
                               why.text);
    if (!import.trace || !import.trace->has_base ||
        __builtin_sub_overflow(import.trace->base_ns, r->times.base_ns, &shift_ns)) {
        code =
            rp_builder_warn(r->t.builder, err,
                            "a profile of a framework is left out: '%.200s' does not say when it "
                            "began",
                            path);
    } else {
        how.user = &shift_ns;
        code = rp_builder_append(r->t.builder, import.trace, &how, err);
    }
    rp_import_release(&import);
    return code;
}

enum rp_code rp_ctf_profiles_append(struct rp_ctf_reader *r, const char *folder, struct rp_err *err)
{
    RP_VEC(struct profile_name) names = {0};
    DIR *dir = folder ? opendir(folder) : NULL;
    enum rp_code code = RP_OK;

    for (const struct dirent *e; dir && code == RP_OK && (e = readdir(dir));) {
        size_t n = strlen(e->d_name);
        struct profile_name name;

        if (e->d_name[0] != '.' || n < 12 || strcmp(e->d_name + n - 10, ".xplane.pb") != 0 ||
            n >= sizeof name.text || names.n >= PROFILES_MAX)
            continue;
        memcpy(name.text, e->d_name, n + 1);
        code = rp_vec_push(&names, name, err);
    }
    if (dir)
        closedir(dir);
    rp_sort(names.at, names.n, sizeof *names.at, by_name);
    for (size_t i = 0; i < names.n && code == RP_OK; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", folder, names.at[i].text);
        code =
            append_profile(r, path, (uint32_t)i + 1, (uint32_t)first_window(names.at, i) + 1, err);
    }
    rp_vec_release(&names);
    return code;
}
