/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the files that are mapped for execution, from /proc/<pid>/maps; the unwind tables of each,
 * from its headers in memory; its functions, from the symbol table of the file (that of the linker
 * where it was stripped), sorted when the first one is wanted.
 */
#include "abi/elf_symbols.h"
#include "capture/sample/sample.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULES   2048
#define TEXTS     (1u << 16) /* slots for texts by address */
#define FUNCTIONS (1u << 22) /* of one file */
#define PHEADERS  32
#define LINE      4608
#define DIGIT     11 /* bits */

unsigned rp_sample_generation = 1;
bool rp_sample_modules_stale;
static struct rp_sample_module *modules; /* by address */
static size_t nmodules;

/* -------------------------------------------------------------------------- the list */

/* Reads bias and unwind tables from the headers that are mapped at `start`. */
static bool read_headers(struct rp_sample_module *m, uint64_t start)
{
    Elf64_Phdr at[PHEADERS];
    Elf64_Ehdr head;

    if (rp_sample_read(start, &head, sizeof head) != sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof *at)
        return false;
    size_t n = head.e_phnum < PHEADERS ? head.e_phnum : PHEADERS;
    if (rp_sample_read(start + head.e_phoff, at, n * sizeof *at) != n * sizeof *at)
        return false;
    m->bias = m->headers = start;
    for (size_t i = 0; i < n; i++)
        if (at[i].p_type == PT_LOAD) { /* the first one has the headers */
            m->bias = start - (at[i].p_vaddr & ~(at[i].p_align ? at[i].p_align - 1 : 0));
            break;
        }
    for (size_t i = 0; i < n; i++)
        if (at[i].p_type == PT_GNU_EH_FRAME)
            m->table = m->bias + at[i].p_vaddr;
    for (size_t i = 0; i < n; i++)
        if (at[i].p_type == PT_LOAD && m->table - m->bias - at[i].p_vaddr < at[i].p_filesz) {
            m->tables_from = m->bias + at[i].p_vaddr;
            m->tables_to = m->tables_from + at[i].p_filesz;
            m->tables_at = at[i].p_offset;
        }
    return true;
}

struct mapping {
    uint64_t from, to, offset;
    bool runs;
    const char *path;
};

static bool parse_mapping(char *line, struct mapping *out)
{
    char *at = line;

    out->from = strtoull(at, &at, 16);
    if (*at++ != '-')
        return false;
    out->to = strtoull(at, &at, 16);
    char *rights = at + 1;
    if (strlen(rights) < 5)
        return false;
    out->runs = rights[2] == 'x';
    out->offset = strtoull(rights + 5, &at, 16);
    out->path = strchr(at, '/');
    if (!out->path)
        out->path = strstr(at, "[vdso]");
    return out->path != NULL;
}

static bool changed;

/* What is already known about a module is kept, because its file stays mapped. */
static void add_module(struct rp_sample_module *fresh, size_t *n, const struct mapping *m,
                       uint64_t headers)
{
    struct rp_sample_module *known = rp_sample_module_find(m->from), *to = &fresh[*n];

    if (*n == MODULES)
        return;
    if (known && known->from == m->from && known->to == m->to && !strcmp(known->path, m->path)) {
        *to = *known;
    } else {
        changed = true;
        *to = (struct rp_sample_module){
            .from = m->from, .to = m->to, .bias = headers, .path = rp_sample_intern(m->path)};
        if (!to->path || !read_headers(to, headers))
            return;
    }
    ++*n;
}

void rp_sample_modules_read(void)
{
    static struct rp_sample_module *spare;
    struct rp_sample_module *fresh = spare ? spare : rp_sample_pages(MODULES * sizeof *modules);
    char name[64], path[LINE] = "", line[LINE];
    uint64_t headers = 0;
    struct mapping m;
    size_t n = 0, have = 0;
    ssize_t got = 1;
    char *end;

    snprintf(name, sizeof name, "/proc/%d/maps", (int)rp_sample_pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !fresh) {
        if (fd >= 0)
            close(fd);
        return;
    }
    changed = false;
    while (got > 0 && (got = read(fd, line + have, sizeof line - 1 - have)) > 0) {
        char *at = line;

        have += (size_t)got;
        line[have] = '\0';
        while ((end = strchr(at, '\n'))) {
            *end = '\0';
            if (parse_mapping(at, &m)) {
                if (m.offset == 0 && strcmp(path, m.path) != 0) {
                    headers = m.from;
                    snprintf(path, sizeof path, "%s", m.path);
                }
                if (m.runs && !strcmp(path, m.path))
                    add_module(fresh, &n, &m, headers);
            }
            at = end + 1;
        }
        have -= (size_t)(at - line);
        memmove(line, at, have);
    }
    close(fd);
    rp_sample_generation += changed || n != nmodules;
    spare = modules;
    modules = fresh;
    nmodules = n;
}

size_t rp_sample_modules(struct rp_sample_module **out)
{
    *out = modules;
    return nmodules;
}

struct rp_sample_module *rp_sample_module_find(uint64_t pc)
{
    size_t low = 0, high = nmodules;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (modules[mid].to <= pc)
            low = mid + 1;
        else
            high = mid;
    }
    return low < nmodules && modules[low].from <= pc ? &modules[low] : NULL;
}

/* -------------------------------------------------------------------------- symbols */

static bool map_file(struct rp_sample_module *m)
{
    char path[LINE + 32];
    struct stat st;

    if (m->opened)
        return m->file != NULL;
    m->opened = true;
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)rp_sample_pid, m->path);
    int fd = open(m->path[0] == '/' ? path : "", O_RDONLY | O_CLOEXEC);
    if (fd < 0 && m->path[0] == '/')
        fd = open(m->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (!fstat(fd, &st) && st.st_size > (off_t)sizeof(Elf64_Ehdr)) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            m->file = p;
            m->size = (size_t)st.st_size;
        }
    }
    close(fd);
    return m->file != NULL;
}

static struct rp_elf_file file_of(const struct rp_sample_module *m)
{
    return (struct rp_elf_file){m->file, m->size};
}

/* One pass of a radix sort, the lowest digit first, by some bits of the address. */
static void sort_digit(const struct rp_sample_symbol *from, struct rp_sample_symbol *to, size_t n,
                       unsigned shift)
{
    size_t at[1 << DIGIT] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++)
        at[from[i].address >> shift & ((1 << DIGIT) - 1)]++;
    for (size_t d = 0; d < 1 << DIGIT; d++) {
        size_t count = at[d];

        at[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[from[i].address >> shift & ((1 << DIGIT) - 1)]++] = from[i];
}

size_t rp_sample_symbols_sort(struct rp_sample_symbol *at, size_t n)
{
    struct rp_sample_symbol *from = at, *to = n ? rp_sample_pages(n * sizeof *at) : NULL;
    struct rp_sample_symbol *spare = to;
    uint64_t all = 0;

    if (!to)
        return 0;
    for (size_t i = 0; i < n; i++)
        all |= at[i].address;
    for (unsigned shift = 0; shift < 64 && all >> shift; shift += DIGIT) {
        struct rp_sample_symbol *swap = from;

        sort_digit(from, to, n, shift);
        from = to;
        to = swap;
    }
    if (from != at)
        memcpy(at, from, n * sizeof *at);
    munmap(spare, n * sizeof *at);
    return n;
}

const struct rp_sample_symbol *rp_sample_symbols_find(const struct rp_sample_symbol *at, size_t n,
                                                      uint64_t address)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (at[mid].address <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low && address - at[low - 1].address < (at[low - 1].size ? at[low - 1].size : 1)
               ? &at[low - 1]
               : NULL;
}

static bool function_at(const struct rp_elf_table *t, size_t i, Elf64_Sym *out)
{
    return rp_elf_symbol(t, i, out) && rp_elf_is_function(out);
}

static void read_symbols(struct rp_sample_module *m)
{
    struct rp_elf_table t;
    Elf64_Sym s;
    size_t n = 0;

    if (m->has_names)
        return;
    m->has_names = true;
    if (!map_file(m) || !rp_elf_functions(file_of(m), &t))
        return;
    for (size_t i = 0; i < t.n; i++)
        n += function_at(&t, i, &s);
    if (!n || n > FUNCTIONS || !(m->symbols = rp_sample_pages(n * sizeof *m->symbols)))
        return;
    for (size_t i = 0; i < t.n; i++)
        if (function_at(&t, i, &s))
            m->symbols[m->nsymbols++] =
                (struct rp_sample_symbol){s.st_value, (uint32_t)s.st_size, s.st_name};
    m->names = t.names;
    m->nsymbols = (uint32_t)rp_sample_symbols_sort(m->symbols, m->nsymbols);
}

uint64_t rp_sample_module_symbol(struct rp_sample_module *m, const char *name)
{
    static const unsigned types[] = {SHT_DYNSYM, SHT_SYMTAB};
    struct rp_elf_table t;
    Elf64_Sym s;

    for (size_t k = 0; map_file(m) && k < 2; k++) {
        if (!rp_elf_table_find(file_of(m), types[k], &t))
            continue;
        for (size_t i = 0; i < t.n; i++)
            if (rp_elf_symbol(&t, i, &s) && !strcmp(t.names + s.st_name, name))
                return m->bias + s.st_value;
    }
    return 0;
}

/* -------------------------------------------------------------------------- unwind tables */

/* Another file may have replaced it: size and build id at its beginning are compared. */
static bool is_same_file(const struct rp_sample_module *m)
{
    uint8_t head[1024];

    return m->size >= sizeof head && rp_sample_read(m->headers, head, sizeof head) == sizeof head &&
           !memcmp(head, m->file, sizeof head);
}

bool rp_sample_module_table(struct rp_sample_module *m, uint64_t at, void *to, size_t n)
{
    if (!m->tables_checked &&
        (!map_file(m) || !is_same_file(m) ||
         !rp_elf_has(file_of(m), m->tables_at, m->tables_to - m->tables_from)))
        m->tables_to = 0;
    m->tables_checked = true;
    if (at < m->tables_from || at >= m->tables_to || n > m->tables_to - at)
        return false;
    memcpy(to, m->file + m->tables_at + (at - m->tables_from), n);
    return true;
}

/* -------------------------------------------------------------------------- texts */

static const char *make_text(uint64_t pc, uint64_t start)
{
    struct rp_sample_module *m = rp_sample_module_find(pc);
    const struct rp_sample_symbol *s = NULL;
    const char *file = m ? strrchr(m->path, '/') : NULL;
    char text[1024];

    if (m) {
        read_symbols(m);
        s = rp_sample_symbols_find(m->symbols, m->nsymbols, pc - m->bias);
    }
    file = file ? file + 1 : m ? m->path : "";
    if (s)
        snprintf(text, sizeof text, "native\t%.600s\t%.380s\t0", m->names + s->name, m->path);
    else if (m)
        snprintf(text, sizeof text, "native\t%.200s+0x%llx\t%.380s\t0", file,
                 (unsigned long long)((start ? start : pc) - m->bias), m->path);
    else
        snprintf(text, sizeof text, "native\t[code at 0x%llx]\t\t0", (unsigned long long)pc);
    return rp_sample_intern(text);
}

const char *rp_sample_native_text(uint64_t pc, uint64_t start, int64_t now_ns)
{
    static struct {
        uint64_t pc;
        const char *text;
        unsigned generation;
    } * known;

    if (start)
        pc = start; /* one text a function */
    else if (!rp_sample_module_find(pc)) {
        /* The text for code that the program has generated: by its own map, or else one text for
           each page. Python's trampolines (-X perf) are left out, because they are next to the
           frames of Python that they call. */
        char name[608], text[640];
        if (!rp_sample_jit_find(pc, now_ns, name, sizeof name))
            return make_text(pc & ~UINT64_C(4095), 0);
        if (!strncmp(name, "py::", 4))
            return NULL;
        snprintf(text, sizeof text, "native\t%s\t[jit]\t0", name);
        return rp_sample_intern(text);
    }
    size_t i = (size_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 48) % TEXTS;
    if (!known && !(known = rp_sample_pages(TEXTS * sizeof *known)))
        return NULL;
    for (unsigned tries = 0; tries < 64; tries++, i = (i + 1) % TEXTS) {
        bool is_current = known[i].generation == rp_sample_generation;

        if (is_current && known[i].pc == pc && known[i].text)
            return known[i].text;
        if (!is_current || !known[i].text) {
            known[i].pc = pc;
            known[i].generation = rp_sample_generation;
            return known[i].text = make_text(pc, start);
        }
    }
    return make_text(pc, start); /* the table is full around this slot */
}
