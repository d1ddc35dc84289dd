/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups the files of a dump folder into modules: every file name is parsed (name.c); where it is
 * ambiguous where the module's name ends, another file of the same id decides; snapshots with the
 * next id belong to the module before it. Then files are sorted by folder, id, name and place in
 * the compilation, and equal keys form a module. Cost: n log n comparisons of names.
 */
#include "formats/dump/folder.h"

#include "base/order.h"
#include "base/scope.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct rp_dump_name name;
    const char *root; /* slice of the path */
    size_t root_n;
    size_t source;
};

static int compare_slices(const char *a, size_t an, const char *b, size_t bn)
{
    int order = memcmp(a, b, an < bn ? an : bn);

    return order ? order : (an > bn) - (an < bn);
}

RP_ORDER(by_id, struct entry, compare_slices(a->root, a->root_n, b->root, b->root_n),
         RP_UP(name.id))

RP_ORDER(by_module, struct entry, by_id(a, b),
         compare_slices(a->name.module, a->name.module_n, b->name.module, b->name.module_n))

RP_ORDER(by_stage, struct rp_dump_name, RP_UP(point), RP_UP(number),
         compare_slices(a->stage, a->stage_n, b->stage, b->stage_n))

RP_ORDER(by_place, struct entry, by_module(a, b), by_stage(&a->name, &b->name), RP_UP(name.role),
         RP_DOWN(name.proto), RP_UP(source))

/* ---- reading the names ---- */

static size_t read_names(const char *const *names, size_t n, struct entry *entries)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct entry *entry = &entries[kept];

        if (!rp_dump_name_read(names[i], &entry->name))
            continue;
        entry->source = i;

        /* The folder of a path; of "module_7.f/module.mlir" the one above. */
        const char *path = names[i];
        const char *file = path, *folder = path, *fx = strstr(path, RP_DUMP_FX);
        entry->root = path;
        entry->root_n = fx ? (size_t)(fx - path) : 0;
        if (!fx) {
            for (const char *s = path; *s; s++)
                if (*s == '/' || *s == '!') {
                    folder = file;
                    file = s + 1;
                }
            if (entry->name.module >= folder && entry->name.module < file)
                file = folder;
            entry->root_n = file > path ? (size_t)(file - path - 1) : 0;
        }
        kept++;
    }
    return kept;
}

/* ---- missing and guessed names ---- */

/* "module_0007.metadata.textproto" names no module: it belongs to the one of its id, where there is
   exactly one. Nameless entries sort before all others of their id. */
static void resolve_nameless(struct entry *entry, const struct entry *sure, size_t n)
{
    /* The index of the first entry of an id, in a list without duplicates. */
    size_t i;
    RP_LOWER_BOUND(i, n, by_id(&sure[i], entry) < 0);

    if (i < n && !sure[i].name.module_n)
        i++;
    if (i >= n || by_id(&sure[i], entry) != 0 || (i + 1 < n && by_id(&sure[i + 1], entry) == 0))
        return;
    entry->name.module = sure[i].name.module;
    entry->name.module_n = sure[i].name.module_n;
}

static enum rp_code resolve_names(struct entry *entries, size_t n, struct rp_err *err)
{
    struct entry *sure = malloc((n ? n : 1) * sizeof *sure);
    size_t nsure = 0, kept = 0;

    RP_TRY(rp_err_need(sure, err, "reading a dump folder"));
    for (size_t i = 0; i < n; i++)
        if (entries[i].name.sure && entries[i].name.role != RP_DUMP_EXECUTION)
            sure[nsure++] = entries[i];
    qsort(sure, nsure, sizeof *sure, by_module);
    for (size_t i = 0; i < nsure; i++)
        if (!kept || by_module(&sure[kept - 1], &sure[i]) != 0)
            sure[kept++] = sure[i];
    nsure = kept;
    for (size_t i = 0; i < n; i++) {
        if (!entries[i].name.sure) {
            /* "jit_f.fusion.3.ptx" belongs to a module "jit_f.fusion" where there is one. */
            struct entry *entry = &entries[i];
            struct entry key = *entry;
            const char *text = entry->name.module;

            for (const char *dot = strchr(text, '.'); dot; dot = strchr(dot + 1, '.')) {
                key.name.module_n = (size_t)(dot - text);
                if (bsearch(&key, sure, nsure, sizeof *sure, by_module))
                    entry->name.module_n = key.name.module_n;
            }
        } else if (entries[i].name.role == RP_DUMP_EXECUTION) {
            /* On GPUs XLA increments the id before it writes a snapshot: 3977 for module 3976. */
            struct entry *entry = &entries[i];
            struct entry before = *entry;

            if (entry->name.id >= 1 && !bsearch(entry, sure, nsure, sizeof *sure, by_module)) {
                before.name.id--;
                if (bsearch(&before, sure, nsure, sizeof *sure, by_module))
                    entry->name.id--;
            }
        } else if (!entries[i].name.module_n)
            resolve_nameless(&entries[i], sure, nsure);
    }
    free(sure);
    return RP_OK;
}

/* ---- modules ---- */

static bool is_program(enum rp_dump_role role)
{
    return role == RP_DUMP_PROGRAM || role == RP_DUMP_EXECUTION;
}

static void add_stage(struct rp_dump_module *module, const struct rp_dump_file *file)
{
    struct rp_dump_stage *last = module->nstages ? &module->stages[module->nstages - 1] : NULL;

    if (last && last->point == file->point && last->number == file->number &&
        strcmp(last->name, file->stage) == 0) {
        last->nfiles++;
        return;
    }
    module->stages[module->nstages++] =
        (struct rp_dump_stage){file->stage, file->point, file->number, file->source, 1};
}

static enum rp_code fill_module(const struct entry *entries, size_t n, struct rp_arena *arena,
                                struct rp_dump_module *module, struct rp_err *err)
{
    const struct entry *first = &entries[0];

    module->id = first->name.id;
    module->root = rp_arena_copy(arena, first->root, first->root_n);
    module->name = rp_arena_copy(arena, first->name.module, first->name.module_n);
    module->files = RP_ARENA_NEW(arena, struct rp_dump_file, n);
    module->stages = RP_ARENA_NEW(arena, struct rp_dump_stage, n);
    RP_TRY(rp_err_need(module->root && module->name && module->files && module->stages, err,
                       "reading a dump folder"));
    for (size_t i = 0; i < n; i++) {
        const struct rp_dump_name *name = &entries[i].name;
        struct rp_dump_file *file = &module->files[module->nfiles++];

        *file = (struct rp_dump_file){.source = entries[i].source,
                                      .role = name->role,
                                      .point = name->point,
                                      .number = name->number,
                                      .proto = name->proto};
        file->stage = rp_arena_copy(arena, name->stage, name->stage_n);
        RP_TRY(rp_err_need(file->stage, err, "reading a dump folder"));
        if (is_program(name->role))
            add_stage(module, file);
    }
    return RP_OK;
}

enum rp_code rp_dump_index(const char *const *names, size_t n, struct rp_arena *arena,
                           struct rp_dump *out, struct rp_err *err)
{
    RP_FREED struct entry *entries = malloc((n ? n : 1) * sizeof *entries);

    *out = (struct rp_dump){0};
    RP_TRY(rp_err_need(entries, err, "reading a dump folder"));
    out->nfiles = read_names(names, n, entries);
    RP_TRY(resolve_names(entries, out->nfiles, err));
    qsort(entries, out->nfiles, sizeof *entries, by_place);

    /* Files of a module are next to each other now, and each module gets its range. */
    size_t count = 0, end;
    for (size_t i = 0; i < out->nfiles; i++)
        count += !i || by_module(&entries[i - 1], &entries[i]) != 0;
    out->modules = RP_ARENA_NEW(arena, struct rp_dump_module, count + 1);
    RP_TRY(rp_err_need(out->modules, err, "reading a dump folder"));
    for (size_t i = 0; i < out->nfiles; i = end) {
        for (end = i + 1; end < out->nfiles && by_module(&entries[i], &entries[end]) == 0;)
            end++;
        RP_TRY(fill_module(entries + i, end - i, arena, &out->modules[out->nmodules++], err));
    }
    return RP_OK;
}

/* ---- finding ---- */

/* A decimal number and nothing else, or -1. */
static int64_t whole_number(const char *text)
{
    char *end;

    if (!isdigit((unsigned char)*text))
        return -1;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return *end || errno ? -1 : value;
}

/* 3: exact; 1: substring; 0: no match. "7", "7.jit_f" and "module_7.jit_f" are exact names. */
static int module_fit(const struct rp_dump_module *module, const char *text)
{
    char *end;

    if (strncmp(text, "module_", 7) == 0)
        text += 7;
    int64_t id = whole_number(text);
    if (id >= 0 && id == module->id)
        return 3;
    if (strcmp(module->name, text) == 0)
        return 3;
    if (isdigit((unsigned char)*text) && strtoll(text, &end, 10) == module->id && *end == '.' &&
        strcmp(end + 1, module->name) == 0)
        return 3;
    return id < 0 && *text && strstr(module->name, text) ? 1 : 0;
}

static enum rp_code bad_module(const struct rp_dump *dump, const char *text, struct rp_err *err)
{
    char list[320] = "";
    size_t n = 0;

    for (size_t i = 0; i < dump->nmodules && i < 6 && n < sizeof list; i++) {
        char id[24] = "";

        if (dump->modules[i].id >= 0)
            snprintf(id, sizeof id, "%lld ", (long long)dump->modules[i].id);
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s%s", i ? ", " : "", id,
                              dump->modules[i].name);
    }
    return rp_err_set(err, RP_USAGE, "no module matches '%s'; available: %s", text, list);
}

enum rp_code rp_dump_find_modules(const struct rp_dump *dump, const char *text, bool *found,
                                  struct rp_err *err)
{
    int best = text ? 1 : 0;
    bool any = false;

    for (size_t i = 0; text && i < dump->nmodules; i++) {
        int fit = module_fit(&dump->modules[i], text);

        best = fit > best ? fit : best;
    }
    for (size_t i = 0; i < dump->nmodules; i++) {
        found[i] = !text || module_fit(&dump->modules[i], text) == best;
        any |= found[i];
    }
    return any ? RP_OK : bad_module(dump, text ? text : "", err);
}

/* Stage names for users. */
static const struct {
    const char *word;
    enum rp_dump_point point;
} words[] = {{"source", RP_DUMP_AT_SOURCE},
             {"before", RP_DUMP_AT_BEFORE},
             {"after", RP_DUMP_AT_AFTER},
             {"run", RP_DUMP_AT_RUN}};

static bool stage_is(const struct rp_dump_stage *stage, const char *text)
{
    int64_t number = whole_number(text);

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i].word) == 0)
            return stage->point == words[i].point;
    if (number >= 0)
        return stage->point == RP_DUMP_AT_PASS && stage->number == number;
    return strcmp(stage->name, text) == 0;
}

enum rp_code rp_dump_find_stage(const struct rp_dump_module *module, const char *text,
                                size_t *stage, struct rp_err *err)
{
    char list[320] = "";
    size_t n = 0;

    for (size_t i = 0; i < module->nstages; i++)
        if (stage_is(&module->stages[i], text)) {
            *stage = i;
            return RP_OK;
        }
    for (size_t i = 0; i < module->nstages && *text; i++)
        if (strstr(module->stages[i].name, text)) {
            *stage = i;
            return RP_OK;
        }
    for (size_t i = 0; i < module->nstages && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "",
                              module->stages[i].name);
    return rp_err_set(err, RP_USAGE, "module %lld '%s' has no stage '%s'; it has: %s",
                      (long long)module->id, module->name, text, *list ? list : "none");
}
