/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of `dump run` (<reprise/dump.h>). While programs write into it, files are only
 * removed, which no writer notices. Equal files become hard links when nothing is written any more,
 * because a program that writes to one name would change the other.
 */
#include "dump/store.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/vec.h"
#include "io/mapped.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <reprise/dump.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MOST 16

struct dump_file {
    const char *path; /* in the store's arena */
    uint64_t size, inode, device, hash;
    int64_t time_ns;
    bool around_pass; /* "….0012.fusion.after_x.before_y.txt", which is removed first */
    bool counted;     /* its bytes count; it is the first of several links */
};

struct rp_dump_store {
    char folder[PATH_MAX];
    uint64_t max_bytes;
    struct rp_dump_stored state;
    struct rp_arena arena; /* paths found by the last scan */
    RP_VEC(struct dump_file) files;
};

enum rp_code rp_dump_store_new(const char *folder, uint64_t max_bytes, struct rp_dump_store **out,
                               struct rp_err *err)
{
    struct rp_dump_store *store = calloc(1, sizeof *store);

    *out = NULL;
    RP_TRY(rp_err_need(store, err, "watching dumps"));
    rp_arena_init(&store->arena);
    store->max_bytes = max_bytes;
    if (!realpath(folder, store->folder)) {
        free(store);
        return rp_err_set(err, RP_IO, "cannot use folder '%s': %s", folder, strerror(errno));
    }
    *out = store;
    return RP_OK;
}

void rp_dump_store_free(struct rp_dump_store *store)
{
    if (!store)
        return;
    rp_vec_release(&store->files);
    rp_arena_release(&store->arena);
    free(store);
}

void rp_dump_store_state(const struct rp_dump_store *store, struct rp_dump_stored *out)
{
    size_t size = out->struct_size;

    memcpy(out, &store->state, size < sizeof *out ? size : sizeof *out);
    out->struct_size = size;
}

/* ---- looking ---- */

static enum rp_code add_file(struct rp_dump_store *store, const char *path, const struct stat *st,
                             struct rp_err *err)
{
    const char *after = strstr(path, ".after_");
    struct dump_file file = {.path = rp_arena_text(&store->arena, path),
                             .size = (uint64_t)st->st_size,
                             .inode = (uint64_t)st->st_ino,
                             .device = (uint64_t)st->st_dev,
                             .time_ns =
                                 (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
                             .around_pass = after && strstr(after, ".before_")};

    return rp_vec_push(&store->files, file, err);
}

/* Hidden files are ours. Names that are too long, and files that vanish meanwhile, are skipped. */
static enum rp_code walk(struct rp_dump_store *store, const char *folder, int depth, bool tidy,
                         struct rp_err *err)
{
    DIR *dir = depth < DEPTH_MOST ? opendir(folder) : NULL;
    enum rp_code code = RP_OK;
    struct dirent *entry;
    char path[PATH_MAX];
    struct stat st;

    while (dir && code == RP_OK && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            lstat(path, &st))
            continue;
        if (S_ISREG(st.st_mode)) {
            code = add_file(store, path, &st, err);
        } else if (S_ISDIR(st.st_mode)) {
            code = walk(store, path, depth + 1, tidy, err);
            if (tidy)
                rmdir(path); /* succeeds only if it is empty */
        }
    }
    if (dir)
        closedir(dir);
    return code;
}

RP_ORDER(by_inode, struct dump_file, RP_UP(device), RP_UP(inode))

static enum rp_code list_files(struct rp_dump_store *store, bool tidy, struct rp_err *err)
{
    store->files.n = 0;
    rp_arena_release(&store->arena);
    RP_TRY(walk(store, store->folder, 0, tidy, err));
    RP_TRY(rp_arena_check(&store->arena, "listing dumps", err));
    struct dump_file *f = store->files.at;
    rp_sort(f, store->files.n, sizeof *f, by_inode);
    store->state.files = store->files.n;
    store->state.bytes = 0;
    for (size_t i = 0; i < store->files.n; i++) {
        f[i].counted = !i || f[i].inode != f[i - 1].inode || f[i].device != f[i - 1].device;
        if (f[i].counted)
            store->state.bytes += f[i].size;
    }
    return RP_OK;
}

/* ---- the limit ---- */

RP_ORDER(by_worth, struct dump_file, RP_DOWN(around_pass), RP_UP(time_ns), strcmp(a->path, b->path))

static void remove_oldest(struct rp_dump_store *store)
{
    uint64_t aim = store->max_bytes - store->max_bytes / 10;
    char list[PATH_MAX + 16];

    qsort(store->files.at, store->files.n, sizeof *store->files.at, by_worth);
    snprintf(list, sizeof list, "%s/.removed", store->folder);
    FILE *names = fopen(list, "ae");
    for (size_t i = 0; i < store->files.n && store->state.bytes > aim; i++) {
        const struct dump_file *file = &store->files.at[i];

        if (!file->counted || unlink(file->path))
            continue;
        store->state.files--;
        store->state.bytes -= file->size;
        store->state.removed_files++;
        store->state.removed_bytes += file->size;
        if (names)
            fprintf(names, "%s\n", file->path + strlen(store->folder) + 1);
    }
    if (names)
        fclose(names);
}

enum rp_code rp_dump_store_look(struct rp_dump_store *store, struct rp_err *err)
{
    RP_TRY(list_files(store, false, err));
    if (store->max_bytes && store->state.bytes > store->max_bytes)
        remove_oldest(store);
    return RP_OK;
}

/* ---- equal files ---- */

/* Returns false if it cannot be read, or is no longer the file that was listed; a program that
   still runs may have written it again. */
static bool copy_file(const struct dump_file *file, struct rp_mapped *out)
{
    if (rp_mapped_copy(file->path, file->size, out, NULL) == RP_OK && out->n == file->size)
        return true;
    rp_mapped_close(out);
    return false;
}

static bool same_content(const struct dump_file *a, const struct dump_file *b)
{
    struct rp_mapped x = {0}, y = {0};
    bool same = copy_file(a, &x) && copy_file(b, &y) && !memcmp(x.at, y.at, a->size);

    rp_mapped_close(&x);
    rp_mapped_close(&y);
    return same;
}

/* Links by way of another name, so that the file is never missing. */
static bool link_instead(const struct dump_file *kept, const struct dump_file *file)
{
    char spare[PATH_MAX + 16];

    snprintf(spare, sizeof spare, "%s.reprise", file->path);
    if (link(kept->path, spare))
        return false;
    if (!rename(spare, file->path))
        return true;
    unlink(spare);
    return false;
}

RP_ORDER(by_size, struct dump_file, RP_UP(size), strcmp(a->path, b->path))
RP_ORDER(by_content, struct dump_file, RP_UP(hash), strcmp(a->path, b->path))

/* Shares equal files among those of one size. */
static void share_among(struct rp_dump_store *store, struct dump_file *f, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct rp_mapped all;

        f[i].hash = copy_file(&f[i], &all) ? rp_hash_bytes(all.at, all.n) : i;
        rp_mapped_close(&all);
    }
    qsort(f, n, sizeof *f, by_content);
    for (size_t i = 1; i < n; i++) {
        if (f[i].hash != f[kept].hash || f[i].device != f[kept].device)
            kept = i;
        else if (f[i].inode != f[kept].inode && same_content(&f[i], &f[kept]) &&
                 link_instead(&f[kept], &f[i])) {
            store->state.shared_files++;
            store->state.shared_bytes += f[i].size;
        }
    }
}

static enum rp_code compact_graphs(struct rp_dump_store *store, struct rp_err *err)
{
    for (size_t i = 0; i < store->files.n; i++) {
        const struct dump_file *file = &store->files.at[i];
        struct rp_mapped all = {0};
        enum rp_code code = RP_OK;
        uint64_t saved = 0;

        if (rp_dump_is_lazy(file->path) && file->size && copy_file(file, &all))
            code = rp_dump_compact_lazy(file->path, (const char *)all.at, all.n, &saved, err);
        rp_mapped_close(&all);
        RP_TRY(code);
        store->state.shared_files += saved > 0;
        store->state.shared_bytes += saved;
    }
    return RP_OK;
}

enum rp_code rp_dump_store_share(struct rp_dump_store *store, struct rp_err *err)
{
    size_t end;

    RP_TRY(list_files(store, true, err));
    RP_TRY(compact_graphs(store, err));
    RP_TRY(list_files(store, true, err));
    struct dump_file *f = store->files.at;
    size_t n = store->files.n;
    rp_sort(f, n, sizeof *f, by_size);
    for (size_t i = 0; i < n; i = end) {
        for (end = i + 1; end < n && f[end].size == f[i].size; end++)
            ;
        if (end > i + 1 && f[i].size)
            share_among(store, f + i, end - i);
    }
    return list_files(store, true, err);
}
