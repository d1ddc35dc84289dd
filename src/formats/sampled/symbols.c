/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are mapped and their functions sorted by address, once. A symbol has an address of memory,
 * a profile the offset in the file: the segments of the file translate between them. A file that
 * the profile names may be anything by now, even a device that never ends, so only regular files
 * are opened, without waiting.
 */
#include "formats/sampled/symbols.h"

#include "abi/elf_symbols.h"
#include "base/order.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS 64

struct symbol {
    uint64_t from, size;
    const char *name; /* name, in the file of the table */
    size_t n;
};

struct segment {
    uint64_t offset, size, address;
};

struct rp_symbols_table {
    char *path;
    struct rp_symbols_file id;
    struct rp_elf_file file, extra; /* extra: has the symbols that were removed from the first */
    struct segment segments[SEGMENTS];
    size_t nsegments;
    RP_VEC(struct symbol) symbols;
    bool is_here;
};

RP_ORDER(by_address, struct symbol, RP_UP(from), RP_UP(name))

/* ------------------------------------------------------------------ files */

static struct rp_elf_file map_file(const char *path, uint64_t *inode)
{
    struct rp_elf_file out = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return out;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED)
            out = (struct rp_elf_file){p, (size_t)st.st_size};
        *inode = (uint64_t)st.st_ino;
    }
    close(fd);
    return out;
}

static void unmap_file(struct rp_elf_file *f)
{
    if (f->at)
        munmap((void *)(uintptr_t)f->at, f->n);
    *f = (struct rp_elf_file){0};
}

/* Searches the notes of a segment for name "GNU", type 3. */
static size_t id_in_notes(const uint8_t *at, uint64_t n, uint8_t out[RP_BUILD_ID])
{
    while (n >= 12) {
        uint32_t head[3];

        memcpy(head, at, sizeof head);
        uint64_t name = ((uint64_t)head[0] + 3) & ~UINT64_C(3);
        uint64_t body = ((uint64_t)head[1] + 3) & ~UINT64_C(3);
        if (name + body > n - 12)
            return 0;
        if (head[0] == 4 && head[2] == NT_GNU_BUILD_ID && !memcmp(at + 12, "GNU", 4) &&
            head[1] <= RP_BUILD_ID) {
            memcpy(out, at + 12 + name, head[1]);
            return head[1];
        }
        at += 12 + name + body;
        n -= 12 + name + body;
    }
    return 0;
}

static size_t read_segments(struct rp_symbols_table *t, uint8_t id[RP_BUILD_ID])
{
    Elf64_Ehdr head;
    size_t nid = 0;

    if (!rp_elf_header(t->file, &head) || head.e_phentsize != sizeof(Elf64_Phdr) ||
        !rp_elf_has(t->file, head.e_phoff, (uint64_t)head.e_phnum * sizeof(Elf64_Phdr)))
        return 0;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr p;

        memcpy(&p, t->file.at + head.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_LOAD && t->nsegments < SEGMENTS)
            t->segments[t->nsegments++] = (struct segment){p.p_offset, p.p_filesz, p.p_vaddr};
        if (p.p_type == PT_NOTE && !nid && rp_elf_has(t->file, p.p_offset, p.p_filesz))
            nid = id_in_notes(t->file.at + p.p_offset, p.p_filesz, id);
    }
    return nid;
}

static bool open_same(struct rp_symbols_table *t, const char *path)
{
    uint8_t id[RP_BUILD_ID];
    uint64_t inode = 0;

    t->nsegments = 0;
    t->file = map_file(path, &inode);
    size_t nid = read_segments(t, id);
    t->is_here = t->nsegments &&
                 (t->id.nbuild_id ? nid == t->id.nbuild_id && !memcmp(id, t->id.build_id, nid)
                                  : t->id.inode && inode == t->id.inode);
    if (t->is_here) {
        memcpy(t->id.build_id, id, nid);
        t->id.nbuild_id = nid;
    }
    if (!t->is_here)
        unmap_file(&t->file);
    return t->is_here;
}

/* Makes the path "<before>ab/cdef…<after>" from a build id. */
static void id_path(const struct rp_symbols_table *t, const char *before, const char *after,
                    char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s", before);

    for (size_t i = 0; i < t->id.nbuild_id && n + 4 < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%02x%s", t->id.build_id[i], i ? "" : "/");
    if (n < size)
        snprintf(out + n, size - n, "%s", after);
}

/* ------------------------------------------------------------------ symbols */

static enum rp_code read_functions(struct rp_symbols_table *t, struct rp_err *err)
{
    struct rp_elf_table functions;
    char path[256];
    uint64_t inode;
    Elf64_Sym s;

    if (t->id.nbuild_id && !rp_elf_table_find(t->file, SHT_SYMTAB, &functions)) {
        id_path(t, "/usr/lib/debug/.build-id/", ".debug", path, sizeof path);
        t->extra = map_file(path, &inode);
    }
    if (!(t->extra.at && rp_elf_table_find(t->extra, SHT_SYMTAB, &functions)) &&
        !rp_elf_functions(t->file, &functions))
        return RP_OK;
    for (size_t i = 0; i < functions.n; i++)
        if (rp_elf_symbol(&functions, i, &s) && rp_elf_is_function(&s))
            RP_TRY(rp_vec_push(&t->symbols,
                               ((struct symbol){s.st_value, s.st_size, functions.names + s.st_name,
                                                strlen(functions.names + s.st_name)}),
                               err));
    return RP_OK;
}

static void sort_symbols(struct rp_symbols_table *t)
{
    rp_sort(t->symbols.at, t->symbols.n, sizeof *t->symbols.at, by_address);
}

static struct rp_bytes find_symbol(const struct rp_symbols_table *t, uint64_t address)
{
    size_t i;

    RP_LOWER_BOUND(i, t->symbols.n, t->symbols.at[i].from <= address);
    if (!i)
        return (struct rp_bytes){0};
    const struct symbol *s = &t->symbols.at[i - 1];
    return address - s->from < (s->size ? s->size : 1)
               ? (struct rp_bytes){(const uint8_t *)s->name, s->n}
               : (struct rp_bytes){0};
}

/* ------------------------------------------------------------------ tables */

static void table_free(struct rp_symbols_table *t)
{
    if (!t)
        return;
    unmap_file(&t->file);
    unmap_file(&t->extra);
    rp_vec_release(&t->symbols);
    free(t->path);
    free(t);
}

void rp_symbols_release(struct rp_symbols *s)
{
    for (size_t i = 0; i < s->tables.n; i++)
        table_free(s->tables.at[i]);
    table_free(s->map);
    rp_vec_release(&s->tables);
}

static bool is_file(const struct rp_symbols_table *t, const struct rp_symbols_file *f)
{
    return !strcmp(t->path, f->path) && t->id.inode == f->inode &&
           (!f->nbuild_id || !memcmp(t->id.build_id, f->build_id, RP_BUILD_ID));
}

enum rp_code rp_symbols_open(struct rp_symbols *s, const struct rp_symbols_file *file,
                             uint32_t *out, struct rp_err *err)
{
    struct rp_symbols_table *t = NULL;
    uint32_t i;

    for (i = 0; i < s->tables.n && !is_file(s->tables.at[i], file); i++)
        ;
    *out = RP_NONE;
    if (i == s->tables.n) {
        t = calloc(1, sizeof *t);
        if (!t || !(t->path = strdup(file->path)) || rp_vec_push(&s->tables, t, err) != RP_OK) {
            table_free(t);
            return rp_err_nomem(err, "naming addresses");
        }
        t->id = *file;

        /* The file where the profile has it, or in perf's own store. */
        const char *home = getenv("HOME");
        char path[4096], before[2048];
        if (!open_same(t, t->path) && t->id.nbuild_id && home) {
            snprintf(before, sizeof before, "%.2000s/.debug/.build-id/", home);
            id_path(t, before, "/elf", path, sizeof path);
            open_same(t, path);
        }
        if (t->is_here)
            RP_TRY(read_functions(t, err));
        sort_symbols(t);
    }
    if (s->tables.at[i]->is_here)
        *out = i;
    return RP_OK;
}

struct rp_bytes rp_symbols_at(const struct rp_symbols *s, uint32_t table, uint64_t offset)
{
    const struct rp_symbols_table *t = s->tables.at[table];

    for (size_t i = 0; i < t->nsegments; i++)
        if (offset >= t->segments[i].offset && offset - t->segments[i].offset < t->segments[i].size)
            return find_symbol(t, offset - t->segments[i].offset + t->segments[i].address);
    return (struct rp_bytes){0};
}

enum rp_code rp_symbols_made(struct rp_symbols *s, int64_t pid, uint64_t address,
                             struct rp_bytes *out, struct rp_err *err)
{
    char path[64];
    uint64_t inode;

    *out = (struct rp_bytes){0};
    if (pid <= 0)
        return RP_OK;
    if (s->map_pid != (uint64_t)pid) {
        table_free(s->map);
        s->map_pid = (uint64_t)pid;
        s->map = calloc(1, sizeof *s->map);
        RP_TRY(rp_err_need(s->map, err, "naming addresses"));
        snprintf(path, sizeof path, "/tmp/perf-%lld.map", (long long)pid);
        s->map->file = map_file(path, &inode);
        const char *at = (const char *)s->map->file.at, *end = at ? at + s->map->file.n : NULL;
        struct rp_perf_map_line line;
        while (at && rp_perf_map_next(&at, end, &line))
            RP_TRY(rp_vec_push(&s->map->symbols,
                               ((struct symbol){line.start, line.size, line.name, line.n}), err));
        sort_symbols(s->map);
    }
    *out = find_symbol(s->map, address);
    return RP_OK;
}
