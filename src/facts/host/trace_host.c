/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/host/trace_host.h"
#include "base/text.h"

#include "base/hash.h"
#include "trace/meta.h"
#include "trace/unfold.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the text of one of the keys; metadata texts include their quotes. */
static bool meta_text(const struct rp_trace *t, const char *const *keys, const char **at,
                      size_t *len)
{
    for (uint32_t i = 0; i < t->nmeta; i++)
        for (size_t k = 0; keys[k]; k++) {
            const char *value = rp_trace_str(t, t->meta[i].value);
            size_t n = rp_trace_str_len(t, t->meta[i].value);

            if (strcmp(rp_trace_str(t, t->meta[i].key), keys[k]) != 0 || n <= 2 ||
                value[0] != '"' || value[n - 1] != '"')
                continue;
            *at = value + 1;
            *len = n - 2;
            return true;
        }
    return false;
}

static bool meta_host(const struct rp_trace *t, const char **at, size_t *len)
{
    static const char *const keys[] = {"hostname", "host_name", "hostName", NULL};

    return meta_text(t, keys, at, len);
}

uint64_t rp_trace_boot(const struct rp_trace *t)
{
    static const char *const keys[] = {"boot_id", NULL};
    const char *at;
    const char *moved = rp_trace_meta(t, RP_SET_BACK_KEY);
    size_t len;

    if (moved)
        return rp_hash_join(rp_hash_bytes(moved, strlen(moved)), (uint64_t)t->rank) | 1;
    return meta_text(t, keys, &at, &len) ? rp_hash_bytes(at, len) | 1 : 0;
}

/* The begin of the digits before `end`; NULL if there are none. */
static const char *digits_before(const char *from, const char *end)
{
    const char *at = end;

    while (at > from && isdigit((unsigned char)at[-1]))
        at--;
    return at < end ? at : NULL;
}

bool rp_torch_file_parse(const char *path, struct rp_torch_file *out)
{
    const char *name = rp_text_file(path);
    const char *end = strstr(name, ".pt.trace.json"), *time, *process;

    time = end ? digits_before(name, end) : NULL;
    if (!time || time <= name + 1 || time[-1] != '.')
        return false;
    process = digits_before(name, time - 1);
    *out = (struct rp_torch_file){.host = name, .worker_len = (size_t)(time - 1 - path)};
    if (process && process > name + 1 && process[-1] == '_') {
        out->host_len = (size_t)(process - 1 - name);
        out->process = strtoll(process, NULL, 10);
    }
    return true;
}

static bool has_process(const struct rp_trace *t, int64_t id)
{
    for (uint32_t i = 0; i < t->nprocesses; i++)
        if (!t->processes[i].text && t->processes[i].native_id == id)
            return true;
    return false;
}

/* "node7_4711.1623143089861.pt.trace.json.gz" -> "node7". */
static bool file_host(const struct rp_trace *t, const char *path, const char **at, size_t *len)
{
    struct rp_torch_file file;

    if (!rp_torch_file_parse(path, &file) || !file.host_len || !has_process(t, file.process))
        return false;
    *at = file.host;
    *len = file.host_len;
    return true;
}

enum rp_code rp_trace_host(const struct rp_trace *t, const char *path, struct rp_arena *arena,
                           const char **out, struct rp_err *err)
{
    const char *at;
    size_t len;

    *out = NULL;
    if (!meta_host(t, &at, &len) && !(path && file_host(t, path, &at, &len)))
        return RP_OK;
    *out = rp_arena_copy(arena, at, len);
    return rp_err_need(*out, err, "merging ranks");
}

const char *rp_trace_frameworks(const struct rp_trace *t, struct rp_arena *arena)
{
    static const char prefix[] = "framework.";
    char text[512], one[128];
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < t->nmeta; i++) {
        const char *key = rp_trace_str(t, t->meta[i].key);
        const char *version = rp_trace_str(t, t->meta[i].value);

        if (strncmp(key, prefix, sizeof prefix - 1) != 0)
            continue;
        version += version[0] == '"';
        snprintf(one, sizeof one, "%s %.*s", key + sizeof prefix - 1, (int)strcspn(version, "+\""),
                 version);
        /* each process of the rank gives its own name */
        if (!strstr(text, one) && n + strlen(one) + 3 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "", one);
    }
    return n ? rp_arena_copy(arena, text, n) : NULL;
}
