/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds functions in an ELF file of 64 bits, and in the maps that programs write about code that
 * they generated. Everything is read in place, and nothing is allocated. Offsets are checked; bytes
 * need no alignment.
 */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct rp_elf_file {
    const uint8_t *at;
    size_t n;
};

struct rp_elf_table { /* of symbols */
    const uint8_t *at;
    size_t n;
    const char *names; /* ends with a NUL */
    size_t names_size;
};

static inline bool rp_elf_has(struct rp_elf_file f, uint64_t at, uint64_t n)
{
    return at <= f.n && n <= f.n - at;
}

static inline bool rp_elf_header(struct rp_elf_file f, Elf64_Ehdr *out)
{
    if (f.n < sizeof *out)
        return false;
    memcpy(out, f.at, sizeof *out);
    return !memcmp(out->e_ident, ELFMAG, SELFMAG) && out->e_ident[EI_CLASS] == ELFCLASS64;
}

/* type: SHT_SYMTAB or SHT_DYNSYM */
static inline bool rp_elf_table_find(struct rp_elf_file f, unsigned type, struct rp_elf_table *out)
{
    Elf64_Ehdr head;
    Elf64_Shdr s, names;

    if (!rp_elf_header(f, &head) || head.e_shentsize != sizeof s ||
        !rp_elf_has(f, head.e_shoff, (uint64_t)head.e_shnum * sizeof s))
        return false;
    for (unsigned i = 0; i < head.e_shnum; i++) {
        memcpy(&s, f.at + head.e_shoff + i * sizeof s, sizeof s);
        if (s.sh_type != type || s.sh_link >= head.e_shnum ||
            !rp_elf_has(f, s.sh_offset, s.sh_size))
            continue;
        memcpy(&names, f.at + head.e_shoff + s.sh_link * sizeof s, sizeof names);
        if (!rp_elf_has(f, names.sh_offset, names.sh_size) || !names.sh_size)
            return false;
        *out = (struct rp_elf_table){f.at + s.sh_offset, s.sh_size / sizeof(Elf64_Sym),
                                     (const char *)f.at + names.sh_offset, names.sh_size};
        return out->names[names.sh_size - 1] == '\0';
    }
    return false;
}

/* Finds the table of all functions or, if the file was stripped, of those that the linker needs. */
static inline bool rp_elf_functions(struct rp_elf_file f, struct rp_elf_table *out)
{
    return rp_elf_table_find(f, SHT_SYMTAB, out) || rp_elf_table_find(f, SHT_DYNSYM, out);
}

/* Reads a symbol that is defined in the file and has a name; false if it is not one. */
static inline bool rp_elf_symbol(const struct rp_elf_table *t, size_t i, Elf64_Sym *out)
{
    memcpy(out, t->at + i * sizeof *out, sizeof *out);
    return out->st_shndx != SHN_UNDEF && out->st_name < t->names_size;
}

static inline bool rp_elf_is_function(const Elf64_Sym *s)
{
    unsigned type = ELF64_ST_TYPE(s->st_info);

    return (type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_value;
}

/* Reads the next line of a map: "START SIZE name", both numbers in hexadecimal. Returns false at
   the end. */
struct rp_perf_map_line {
    uint64_t start, size;
    const char *name;
    size_t n;
};
static inline bool rp_perf_map_next(const char **at, const char *end, struct rp_perf_map_line *out)
{
    while (*at < end) {
        const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
        char number[40], *rest;
        size_t n = (size_t)((stop ? stop : end) - line);

        if (!stop) /* the line is still being written */
            return false;
        *at = stop + 1;
        memcpy(number, line, n < sizeof number - 1 ? n : sizeof number - 1);
        number[n < sizeof number - 1 ? n : sizeof number - 1] = '\0';
        out->start = strtoull(number, &rest, 16);
        if (*rest != ' ')
            continue;
        out->size = strtoull(rest + 1, &rest, 16);
        if (*rest != ' ' || !out->size)
            continue;
        out->name = line + (rest + 1 - number);
        out->n = (size_t)(stop - out->name);
        return true;
    }
    return false;
}
