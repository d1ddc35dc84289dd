/* SPDX-License-Identifier: Apache-2.0 */
/* Names of addresses: the files that a profile names, and maps of code that a process made. */
#include "unit.h"

#include "base/scope.h"
#include "formats/sampled/symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A file of 64 bits: two segments of 0x100 bytes, mapped at 0x401000 and 0x601000, a note with the
 * build id between them in the list, and functions at both ends of the first segment.
 */
enum { ID = 20, NSYMS = 6, FIRST = 0x1000, SECOND = 0x1100, LENGTH = 0x100 };

struct image {
    Elf64_Ehdr head;
    Elf64_Phdr segments[4];
    uint32_t other[3]; /* a note of another kind, with a name of 4 bytes and 3 of body */
    char other_name[4], other_body[4];
    uint32_t note[3];
    char gnu[4];
    uint8_t id[ID];
    Elf64_Shdr sections[2];
    Elf64_Sym symbols[NSYMS];
    char names[64];
    uint8_t code[SECOND + LENGTH];
};

static void make_image(struct image *m)
{
    static const struct {
        const char *name;
        uint64_t address, size;
        unsigned type;
    } list[NSYMS] = {
        {"tail", 0x4010f0, 0x10, STT_FUNC}, {"head", 0x401000, 0x20, STT_FUNC},
        {"bare", 0x401080, 0, STT_FUNC},    {"data", 0x401040, 0x20, STT_OBJECT},
        {"late", 0x601000, 8, STT_FUNC},    {"away", 0x701000, 8, STT_FUNC},
    };
    size_t names = 1;

    memset(m, 0, sizeof *m);
    memcpy(m->head.e_ident, ELFMAG, SELFMAG);
    m->head.e_ident[EI_CLASS] = ELFCLASS64;
    m->head.e_phoff = offsetof(struct image, segments);
    m->head.e_phentsize = sizeof(Elf64_Phdr);
    m->head.e_phnum = 4;
    m->head.e_shoff = offsetof(struct image, sections);
    m->head.e_shentsize = sizeof(Elf64_Shdr);
    m->head.e_shnum = 2;
    m->segments[0] =
        (Elf64_Phdr){.p_type = PT_LOAD, .p_offset = FIRST, .p_filesz = LENGTH, .p_vaddr = 0x401000};
    m->segments[1] =
        (Elf64_Phdr){.p_type = PT_NOTE,
                     .p_offset = offsetof(struct image, other),
                     .p_filesz = offsetof(struct image, sections) - offsetof(struct image, other)};
    m->segments[2] = (Elf64_Phdr){
        .p_type = PT_LOAD, .p_offset = SECOND, .p_filesz = LENGTH, .p_vaddr = 0x601000};
    m->segments[3] = m->segments[1]; /* the first note that has an id counts */
    memcpy(m->other, (uint32_t[]){4, 3, NT_GNU_BUILD_ID}, sizeof m->other);
    memcpy(m->other_name, "Own", 4);
    memcpy(m->note, (uint32_t[]){4, ID, NT_GNU_BUILD_ID}, sizeof m->note);
    memcpy(m->gnu, "GNU", 4);
    for (int i = 0; i < ID; i++)
        m->id[i] = (uint8_t)(i + 1);
    m->sections[0] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                  .sh_link = 1,
                                  .sh_offset = offsetof(struct image, symbols),
                                  .sh_size = sizeof m->symbols};
    m->sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
                                  .sh_offset = offsetof(struct image, names),
                                  .sh_size = sizeof m->names};
    for (int i = 0; i < NSYMS; i++) {
        m->symbols[i] = (Elf64_Sym){.st_name = (uint32_t)names,
                                    .st_info = ELF64_ST_INFO(STB_GLOBAL, list[i].type),
                                    .st_shndx = 1,
                                    .st_value = list[i].address,
                                    .st_size = list[i].size};
        memcpy(m->names + names, list[i].name, 5);
        names += 5;
    }
}

struct place {
    char path[64];
    uint64_t inode;
};

static struct place write_image(const void *at, size_t n)
{
    struct place p = {.path = "/tmp/reprise-symbols-XXXXXX"};
    int fd = mkstemp(p.path);
    struct stat st;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, at, n), n);
    assert_int_equal(fstat(fd, &st), 0);
    p.inode = st.st_ino;
    close(fd);
    return p;
}

static uint32_t open_table(struct rp_symbols *s, const struct rp_symbols_file *file)
{
    struct rp_err err = RP_ERR_INIT;
    uint32_t table = 12345;

    assert_ok(rp_symbols_open(s, file, &table, &err), &err);
    return table;
}

static void check_bytes(struct rp_bytes got, const char *want)
{
    assert_int_equal(got.n, strlen(want));
    if (got.n)
        assert_memory_equal(got.at, want, got.n);
}

static void offsets_become_names(void **state)
{
    static const struct {
        uint64_t offset;
        const char *name;
    } known[] = {{FIRST - 1, ""},       {FIRST, "head"},        {FIRST + 0x1f, "head"},
                 {FIRST + 0x20, ""},    {FIRST + 0x40, ""}, /* data */
                 {FIRST + 0x7f, ""},    {FIRST + 0x80, "bare"}, {FIRST + 0x81, ""},
                 {FIRST + 0xef, ""},    {FIRST + 0xf0, "tail"}, {SECOND - 1, "tail"},
                 {SECOND, "late"},      {SECOND + 7, "late"},   {SECOND + 8, ""},
                 {SECOND + LENGTH, ""}, {UINT64_MAX, ""}};
    static struct image m;
    struct rp_symbols s = {0};

    UNUSED_STATE(state);
    make_image(&m);
    struct place p = write_image(&m, sizeof m);
    uint32_t table = open_table(&s, &(struct rp_symbols_file){.path = p.path, .inode = p.inode});
    assert_int_equal(table, 0);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        check_bytes(rp_symbols_at(&s, table, known[i].offset), known[i].name);
    unlink(p.path);
    rp_symbols_release(&s);
}

/* The build id decides where the profile has one, else the inode; without either nothing does. */
static void only_the_same_file_is_read(void **state)
{
    static struct image m;
    struct rp_symbols s = {0};

    UNUSED_STATE(state);
    make_image(&m);
    struct place p = write_image(&m, sizeof m);
    struct rp_symbols_file file = {.path = p.path, .nbuild_id = ID, .inode = p.inode + 1};
    memcpy(file.build_id, m.id, ID);
    assert_int_equal(open_table(&s, &file), 0);
    assert_int_equal(open_table(&s, &file), 0); /* once */
    file.build_id[ID - 1]++;
    assert_int_equal(open_table(&s, &file), RP_NONE);
    file.build_id[ID - 1]--;
    file.nbuild_id = ID - 1;
    file.inode++;
    assert_int_equal(open_table(&s, &file), RP_NONE);
    file = (struct rp_symbols_file){.path = p.path, .inode = p.inode + 7};
    assert_int_equal(open_table(&s, &file), RP_NONE);
    file.inode = 0;
    assert_int_equal(open_table(&s, &file), RP_NONE);
    file.inode = p.inode;
    assert_true(open_table(&s, &file) != RP_NONE);
    file.path = "/tmp";
    assert_int_equal(open_table(&s, &file), RP_NONE);
    unlink(p.path);
    rp_symbols_release(&s);
}

static uint32_t open_image(const struct image *m, size_t n, struct rp_symbols *s, bool by_id)
{
    struct place p = write_image(m, n);
    struct rp_symbols_file file = {.path = p.path, .inode = p.inode};

    if (by_id) {
        file.nbuild_id = ID;
        for (int i = 0; i < ID; i++)
            file.build_id[i] = (uint8_t)(i + 1);
    }
    uint32_t table = open_table(s, &file);
    unlink(p.path);
    return table;
}

/* Notes, headers and segments that do not fit into the file are passed over. */
static void damaged_files_have_no_names(void **state)
{
    static struct image m;
    struct rp_symbols s = {0};

    UNUSED_STATE(state);
    make_image(&m);
    assert_true(open_image(&m, sizeof m, &s, true) != RP_NONE);
    m.note[2]++; /* another type */
    assert_int_equal(open_image(&m, sizeof m, &s, true), RP_NONE);
    make_image(&m);
    m.note[1] = ID + 1; /* longer than any, and than the notes */
    assert_int_equal(open_image(&m, sizeof m, &s, true), RP_NONE);
    m.segments[1].p_filesz += 4;
    m.segments[3].p_filesz += 4;
    assert_int_equal(open_image(&m, sizeof m, &s, true), RP_NONE);
    make_image(&m);
    m.other[1] = 1 << 20;
    assert_int_equal(open_image(&m, sizeof m, &s, true), RP_NONE);
    make_image(&m);
    m.segments[1].p_offset = m.segments[3].p_offset = sizeof m;
    assert_int_equal(open_image(&m, sizeof m, &s, true), RP_NONE);
    assert_true(open_image(&m, sizeof m, &s, false) != RP_NONE);
    make_image(&m);
    m.segments[1].p_type = PT_NULL; /* then the other list of notes has it */
    assert_true(open_image(&m, sizeof m, &s, true) != RP_NONE);
    make_image(&m);
    m.head.e_phentsize++;
    assert_int_equal(open_image(&m, sizeof m, &s, false), RP_NONE);
    make_image(&m);
    m.head.e_phoff = sizeof m - 1;
    assert_int_equal(open_image(&m, sizeof m, &s, false), RP_NONE);
    make_image(&m);
    m.segments[0].p_type = m.segments[2].p_type = PT_NULL;
    assert_int_equal(open_image(&m, sizeof m, &s, false), RP_NONE);
    rp_symbols_release(&s);
}

/* perf keeps copies of files below the home folder, by build id. */
static void the_store_of_perf_is_searched(void **state)
{
    static const char *const folders[] = {"", "/.debug", "/.debug/.build-id",
                                          "/.debug/.build-id/01"};
    const char *home = getenv("HOME");
    RP_FREED char *was = home ? strdup(home) : NULL;
    char root[] = "/tmp/reprise-home-XXXXXX", folder[128], path[200], copy[256];
    struct rp_symbols_file file = {.path = "/nowhere/program", .nbuild_id = ID};
    static struct image m;
    struct rp_symbols s = {0};

    UNUSED_STATE(state);
    make_image(&m);
    memcpy(file.build_id, m.id, ID);
    assert_non_null(mkdtemp(root));
    for (int i = 1; i < 4; i++) {
        snprintf(folder, sizeof folder, "%s%s", root, folders[i]);
        assert_int_equal(mkdir(folder, 0700), 0);
    }
    snprintf(path, sizeof path, "%s/02030405060708090a0b0c0d0e0f1011121314", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    struct place p = write_image(&m, sizeof m);
    snprintf(copy, sizeof copy, "%s/elf", path);
    assert_int_equal(rename(p.path, copy), 0);
    setenv("HOME", root, 1);
    uint32_t table = open_table(&s, &file);
    assert_true(table != RP_NONE);
    check_bytes(rp_symbols_at(&s, table, FIRST), "head");
    file.build_id[1]++;
    assert_int_equal(open_table(&s, &file), RP_NONE);
    unlink(copy);
    rmdir(path);
    for (int i = 3; i >= 0; i--) {
        snprintf(folder, sizeof folder, "%s%s", root, folders[i]);
        rmdir(folder);
    }
    if (was)
        setenv("HOME", was, 1);
    else
        unsetenv("HOME");
    rp_symbols_release(&s);
}

static void code_that_was_made_has_names(void **state)
{
    static const char text[] = "1000 20 first function\n"
                               "0x2000 0 empty\n"
                               "nonsense\n"
                               "1020 8 second\n"
                               "3000 10 unfinished";
    struct rp_symbols s = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_bytes got;
    char path[64];
    FILE *f;

    UNUSED_STATE(state);
    snprintf(path, sizeof path, "/tmp/perf-%lld.map", 4000000000LL + getpid());
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, sizeof text - 1, f), sizeof text - 1);
    fclose(f);
    static const struct {
        uint64_t address;
        const char *name;
    } known[] = {{0xfff, ""},
                 {0x1000, "first function"},
                 {0x101f, "first function"},
                 {0x1020, "second"},
                 {0x1027, "second"},
                 {0x1028, ""},
                 {0x2000, ""},
                 {0x3000, ""}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_ok(rp_symbols_made(&s, 4000000000LL + getpid(), known[i].address, &got, &err), &err);
        check_bytes(got, known[i].name);
    }
    unlink(path);
    assert_ok(rp_symbols_made(&s, 4000000000LL + getpid(), 0x1000, &got, &err), &err);
    check_bytes(got, "first function"); /* it was read once */
    assert_ok(rp_symbols_made(&s, 0, 0x1000, &got, &err), &err);
    check_bytes(got, "");
    assert_ok(rp_symbols_made(&s, 4000000001LL + getpid(), 0x1000, &got, &err), &err);
    check_bytes(got, ""); /* of another process */
    rp_symbols_release(&s);
}

int test_symbols(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_become_names),
        cmocka_unit_test(only_the_same_file_is_read),
        cmocka_unit_test(damaged_files_have_no_names),
        cmocka_unit_test(the_store_of_perf_is_searched),
        cmocka_unit_test(code_that_was_made_has_names),
    };

    return cmocka_run_group_tests_name("symbols", tests, NULL, NULL);
}
