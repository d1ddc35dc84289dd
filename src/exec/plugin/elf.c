/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the dynamic symbols of a shared library from its section headers: the file is mapped, and
   only the tables are touched. Every offset is checked against the size of the file. */
#include "exec/plugin/plugin.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const unsigned char *at;
    size_t n;
};

/* n bytes at an offset, or NULL. */
static const void *image_slice(const struct image *image, uint64_t offset, uint64_t n)
{
    return offset <= image->n && n <= image->n - offset ? image->at + offset : NULL;
}

static bool image_section(const struct image *image, const Elf64_Ehdr *head, uint64_t i,
                          Elf64_Shdr *out)
{
    const void *at = i < head->e_shnum && head->e_shentsize >= sizeof *out
                         ? image_slice(image, head->e_shoff + i * head->e_shentsize, sizeof *out)
                         : NULL;

    if (at)
        memcpy(out, at, sizeof *out);
    return at != NULL;
}

static bool in_table(const struct image *image, const Elf64_Shdr *table, const Elf64_Shdr *names,
                     const char *symbol)
{
    const char *text = image_slice(image, names->sh_offset, names->sh_size);
    const unsigned char *row = image_slice(image, table->sh_offset, table->sh_size);
    size_t len = strlen(symbol) + 1;
    Elf64_Sym at;

    for (uint64_t i = 0; text && row && i + sizeof at <= table->sh_size; i += sizeof at) {
        memcpy(&at, row + i, sizeof at);
        if (at.st_shndx != SHN_UNDEF && at.st_name < names->sh_size &&
            len <= names->sh_size - at.st_name && !memcmp(text + at.st_name, symbol, len))
            return true;
    }
    return false;
}

static bool has_symbol(const struct image *image, const char *symbol)
{
    Elf64_Shdr table, names;
    Elf64_Ehdr head;

    if (image->n < sizeof head || memcmp(image->at, ELFMAG, SELFMAG) != 0 ||
        image->at[EI_CLASS] != ELFCLASS64)
        return false;
    memcpy(&head, image->at, sizeof head);
    for (uint64_t i = 0; image_section(image, &head, i, &table); i++)
        if (table.sh_type == SHT_DYNSYM && image_section(image, &head, table.sh_link, &names))
            return in_table(image, &table, &names, symbol);
    return false;
}

/* Mapping is safe because an installed library is replaced, not shortened, which would end every
   process that has loaded it. */
bool rp_elf_has_symbol(const char *path, const char *symbol)
{
    struct image image;
    struct stat st;
    bool has = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            image = (struct image){map, (size_t)st.st_size};
            has = has_symbol(&image, symbol);
            munmap(map, image.n);
        }
    }
    close(fd);
    return has;
}
