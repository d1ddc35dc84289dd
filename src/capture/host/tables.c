/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables in which <reprise/record.h> keeps the recorder's functions, in every program and
 * library that uses it. They are filled when the program starts; where the recorder comes later, it
 * finds them by the section of the files that are loaded, and empties them when it leaves.
 */
#include "capture/host/host.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#define SECTION      "rp_record"
#define MOST_HEADERS 65536 /* of the sections of a file */

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
    return pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

/* The section of this name in a file; false: it has none. */
static bool find_section(int fd, ElfW(Shdr) * found)
{
    ElfW(Shdr) names;
    char name[sizeof SECTION];
    ElfW(Ehdr) head;

    if (!read_at(fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_shentsize != sizeof names ||
        !read_at(fd, &names, sizeof names, head.e_shoff + head.e_shstrndx * sizeof names))
        return false;
    for (size_t i = 0; i < head.e_shnum && i < MOST_HEADERS; i++)
        if (read_at(fd, found, sizeof *found, head.e_shoff + i * sizeof *found) &&
            read_at(fd, name, sizeof name, names.sh_offset + found->sh_name) &&
            !memcmp(name, SECTION, sizeof name))
            return true;
    return false;
}

/* Whether the program has mapped it, writable. */
static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Shdr) * section)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_LOAD && p->p_flags & PF_W && section->sh_addr >= p->p_vaddr &&
            section->sh_addr + section->sh_size <= p->p_vaddr + p->p_memsz)
            return true;
    }
    return false;
}

static int fill(struct dl_phdr_info *info, size_t size, void *user)
{
    const struct rp_host_functions *f = user;
    const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    ElfW(Shdr) section;

    (void)size;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (find_section(fd, &section) && is_loaded(info, &section)) {
        struct rp_host_functions *to =
            (struct rp_host_functions *)(uintptr_t)(info->dlpi_addr + section.sh_addr);

        for (size_t i = 0; i < section.sh_size / sizeof *to; i++)
            for (size_t k = 0; k < sizeof to->at / sizeof *to->at; k++)
                __atomic_store_n(&to[i].at[k], f->at[k], __ATOMIC_RELAXED);
    }
    close(fd);
    return 0;
}

void rp_host_tables(struct rp_host_functions f)
{
    dl_iterate_phdr(fill, &f);
}
