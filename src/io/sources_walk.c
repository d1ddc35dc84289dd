/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists folders recursively. Symbolic links are followed because runs are often collected that way;
 * a folder that is its own ancestor (a loop) is skipped, and a file that is also reached without a
 * link is listed under that name only ("latest.json" beside "rank0.json" is not a second rank).
 */
#include "io/sources_walk.h"

#include "base/order.h"

#include "io/sources.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A folder and its ancestors. */
struct level {
    const struct level *up;
    const char *path;
    dev_t device;
    ino_t inode;
    uint32_t depth;
    bool by_link;
};

struct child {
    const char *name;
    bool stands_for_folder;
};

struct child_list { /* as RP_VEC */
    struct child *at;
    size_t n, cap;
};

enum rp_file_kind rp_file_kind(const char *path)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        return RP_FILE_STREAM;
    if (stat(path, &st) != 0)
        return RP_FILE_MISSING;
    return S_ISDIR(st.st_mode)   ? RP_FILE_FOLDER
           : S_ISREG(st.st_mode) ? RP_FILE_REGULAR
                                 : RP_FILE_STREAM;
}

RP_ORDER(by_name, struct child, rp_natural_compare(a->name, b->name))

static bool is_loop(const struct level *level, const struct stat *st)
{
    for (; level; level = level->up)
        if (level->device == st->st_dev && level->inode == st->st_ino)
            return true;
    return false;
}

static enum rp_code walk_level(struct rp_walk *w, const struct rp_limits *limits,
                               const struct level *level, struct rp_err *err);

static enum rp_code note_hole(struct rp_walk *w, const char *path, int error, struct rp_err *err)
{
    return rp_vec_push(&w->holes, ((struct rp_walk_hole){path, error}), err);
}

static enum rp_code list_folder(struct rp_walk *w, const struct rp_limits *limits,
                                const struct level *level, const struct child *child,
                                struct rp_err *err)
{
    size_t n = strlen(level->path);
    const char *slash = n > 0 && level->path[n - 1] == '/' ? "" : "/";
    char *path = rp_arena_printf(&w->arena, "%s%s%s", level->path, slash, child->name);
    struct stat st, own;

    RP_TRY(rp_err_need(path, err, "listing a folder"));
    if (lstat(path, &own) != 0)
        return RP_OK; /* deleted meanwhile */
    if (stat(path, &st) != 0)
        return note_hole(w, path, errno, err);
    bool by_link = level->by_link || S_ISLNK(own.st_mode);
    if (S_ISREG(st.st_mode)) {
        struct rp_walk_file file = {path, st.st_dev, st.st_ino, by_link, child->stands_for_folder};

        return rp_vec_push(&w->files, file, err);
    }
    if (!S_ISDIR(st.st_mode) || is_loop(level, &st))
        return RP_OK;
    struct level below = {level, path, st.st_dev, st.st_ino, level->depth + 1, by_link};
    return walk_level(w, limits, &below, err);
}

/* Lists the names in one folder, sorted, without hidden ones (such as "._" files). It is an error
   if the folder that the user named cannot be read. */
static enum rp_code read_names(struct rp_walk *w, const struct rp_limits *limits,
                               const struct level *level, struct child_list *list,
                               struct rp_err *err)
{
    const char *path = level->path;
    enum rp_code code = RP_OK;
    struct dirent *entry;
    DIR *dir = opendir(path);

    if (!dir && level->up)
        return note_hole(w, path, errno, err);
    if (!dir)
        return rp_err_set_os(err, errno, "cannot read the folder '%s'", path);
    while (code == RP_OK && (entry = readdir(dir))) {
        struct child child = {0};

        if (entry->d_name[0] == '.')
            continue;
        child.name = rp_arena_strdup(&w->arena, entry->d_name);
        if (!child.name)
            code = rp_err_nomem(err, "listing a folder");
        else if (++w->seen > limits->members)
            code = rp_err_set(err, RP_LIMIT,
                              "the folder '%s' holds more than %llu files (limit members): name "
                              "those to read",
                              path, (unsigned long long)limits->members);
        else
            code = rp_vec_push(list, child, err);
    }
    closedir(dir);
    rp_sort(list->at, list->n, sizeof *list->at, by_name);
    return code;
}

bool rp_describes_ctf(const uint8_t *head, size_t n)
{
    static const uint8_t packet[4] = {0x57, 0x1d, 0xd1,
                                      0x75}; /* CTF text in packets, little-endian */
    static const uint8_t other[4] = {0x75, 0xd1, 0x1d, 0x57}; /* ... big endian */

    return (n >= 10 && !memcmp(head, "/* CTF 1.8", 10)) ||
           (n >= 4 && (!memcmp(head, packet, 4) || !memcmp(head, other, 4)));
}

static bool describes_ctf(struct rp_walk *w, const char *folder, const char *name)
{
    uint8_t head[10];

    if (strcmp(name, "metadata") != 0)
        return false;
    /* not an array: folders are walked by recursion, and a compiler may give each level its room */
    const char *path = rp_arena_printf(&w->arena, "%s/metadata", folder);
    FILE *f = path ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    size_t n = fread(head, 1, sizeof head, f);
    fclose(f);
    return rp_describes_ctf(head, n);
}

bool rp_excerpt_of(const char *name, char *out, size_t cap)
{
    static const char excerpt[] = ".trace.json.gz", whole[] = ".xplane.pb";
    size_t n = strlen(name), k = sizeof excerpt - 1;

    if (n < k || strcmp(name + n - k, excerpt) != 0 || n - k + sizeof whole > cap)
        return false;
    snprintf(out, cap, "%.*s%s", (int)(n - k), name, whole);
    return true;
}

/* The list is sorted. */
static bool is_excerpt(const struct child_list *list, const char *name)
{
    char wanted[256];
    size_t i;

    if (!rp_excerpt_of(name, wanted, sizeof wanted))
        return false;
    RP_LOWER_BOUND(i, list->n, rp_natural_compare(list->at[i].name, wanted) < 0);
    return i < list->n && !strcmp(list->at[i].name, wanted);
}

static enum rp_code walk_level(struct rp_walk *w, const struct rp_limits *limits,
                               const struct level *level, struct rp_err *err)
{
    struct child_list list = {0};

    if (level->depth > limits->depth)
        return rp_err_set(err, RP_LIMIT,
                          "the folder '%.100s' is nested deeper than %u (limit depth)", level->path,
                          limits->depth);
    enum rp_code code = read_names(w, limits, level, &list, err);

    /* A CTF trace is a folder: its metadata represents all its files. */
    for (size_t i = 0; i < list.n; i++) {
        if (describes_ctf(w, level->path, list.at[i].name)) {
            list.at[0] = (struct child){list.at[i].name, true};
            list.n = 1;
        }
    }
    for (size_t i = 0; code == RP_OK && i < list.n; i++)
        if (!is_excerpt(&list, list.at[i].name))
            code = list_folder(w, limits, level, &list.at[i], err);
    rp_vec_release(&list);
    return code;
}

struct identity {
    dev_t device;
    ino_t inode;
    bool by_link;
    size_t index;
};

/* Groups equal files; those without a link first, then in the order of the list. */
RP_ORDER(by_identity, struct identity, RP_UP(device), RP_UP(inode), RP_UP(by_link), RP_UP(index))

enum rp_code rp_walk_folder(const char *path, const struct rp_limits *limits, struct rp_walk *walk,
                            struct rp_err *err)
{
    struct level top = {.path = path};
    struct stat st;

    if (stat(path, &st) != 0)
        return rp_err_set_os(err, errno, "cannot read the folder '%s'", path);
    top.device = st.st_dev;
    top.inode = st.st_ino;
    RP_TRY(walk_level(walk, limits, &top, err));

    /* Deduplicates files that are also reached by a symbolic link. Hard links are separate files.
     */
    size_t n = walk->files.n, kept = 0;
    struct identity *ids = n > 0 ? malloc(n * sizeof *ids) : NULL;
    if (n == 0)
        return RP_OK;
    RP_TRY(rp_err_need(ids, err, "listing a folder"));
    for (size_t i = 0; i < n; i++)
        ids[i] = (struct identity){walk->files.at[i].device, walk->files.at[i].inode,
                                   walk->files.at[i].by_link, i};
    qsort(ids, n, sizeof *ids, by_identity);
    for (size_t i = 1; i < n; i++)
        if (ids[i].by_link && ids[i].device == ids[i - 1].device &&
            ids[i].inode == ids[i - 1].inode)
            walk->files.at[ids[i].index].path = NULL;
    free(ids);
    for (size_t i = 0; i < n; i++)
        if (walk->files.at[i].path)
            walk->files.at[kept++] = walk->files.at[i];
    walk->files.n = kept;
    return RP_OK;
}

void rp_walk_release(struct rp_walk *walk)
{
    rp_vec_release(&walk->files);
    rp_vec_release(&walk->holes);
    rp_arena_release(&walk->arena);
}
