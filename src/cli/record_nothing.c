/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out why a recording is empty. The system's loader loads the recorder because of environment
 * variables, so a program without a loader, or without these variables, is not recorded. The kind
 * of the program is read from its file.
 */
#include "cli/record.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool record_find_program(const char *name, char *to, size_t size)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return snprintf(to, size, "%s", name) < (int)size && !access(to, R_OK);
    while (path && *path) {
        size_t n = strcspn(path, ":");

        if (snprintf(to, size, "%.*s/%s", (int)n, path, name) < (int)size && !access(to, X_OK))
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

enum program_kind { PROGRAM_UNKNOWN, PROGRAM_STATIC, PROGRAM_GO, PROGRAM_OTHER_BITS };

/* Whether the program has a segment of that type. */
static bool has_part(int fd, const Elf64_Ehdr *head, uint32_t type)
{
    Elf64_Phdr part;

    for (int i = 0; i < head->e_phnum; i++) {
        off_t at = (off_t)(head->e_phoff + (uint64_t)i * head->e_phentsize);

        if (pread(fd, &part, sizeof part, at) == (ssize_t)sizeof part && part.p_type == type)
            return true;
    }
    return false;
}

/* Programs of Go have a mark at the begin of their data, and make system calls themselves. */
static bool is_go(int fd)
{
    static const char mark[] = "\xff Go buildinf:";
    enum { PIECE = 1 << 16, OVERLAP = 16 };
    char *bytes = malloc(PIECE);
    bool found = false;
    ssize_t n;

    for (off_t at = 0; bytes && !found && (n = pread(fd, bytes, PIECE, at)) > OVERLAP;
         at += PIECE - OVERLAP)
        found = memmem(bytes, (size_t)n, mark, sizeof mark - 1) != NULL;
    free(bytes);
    return found;
}

static enum program_kind kind_of(const char *path)
{
    enum program_kind kind = PROGRAM_UNKNOWN;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf64_Ehdr head;

    if (fd >= 0 && pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
        !memcmp(head.e_ident, ELFMAG, SELFMAG)) {
        if (head.e_ident[EI_CLASS] != ELFCLASS64)
            kind = PROGRAM_OTHER_BITS;
        else if (is_go(fd))
            kind = PROGRAM_GO;
        else if (!has_part(fd, &head, PT_INTERP))
            kind = PROGRAM_STATIC;
    }
    if (fd >= 0)
        close(fd);
    return kind;
}

/* Programs that start others without the environment variables, or elsewhere. */
static const struct {
    const char *name, *why;
} starters[] = {
    {"sudo", "clears the environment, by which the recorder is loaded: 'sudo reprise record -- …'"},
    {"su", "clears the environment, by which the recorder is loaded: record inside it"},
    {"ssh", "runs the program on another machine: 'ssh HOST reprise record -- …'"},
    {"docker", "runs the program in a container: 'docker run … reprise record -- …'"},
    {"podman", "runs the program in a container: 'podman run … reprise record -- …'"},
    {"apptainer", "runs the program in a container: 'apptainer exec … reprise record -- …'"},
    {"kubectl", "runs the program in a container: record inside it"},
    {"systemd-run", "lets systemd start the program: 'systemd-run … reprise record -- …'"},
};

/* What keeps the recorder out of what the command starts, or NULL. */
static const char *starter_of(const struct record *r)
{
    const char *slash = strrchr(r->program, '/'), *name = slash ? slash + 1 : r->program;

    if (!strcmp(name, "env"))
        for (size_t i = 1; i < r->nwords && (*r->words[i] == '-' || strchr(r->words[i], '=')); i++)
            if (!strcmp(r->words[i], "-i") || !strcmp(r->words[i], "-") ||
                !strcmp(r->words[i], "--ignore-environment"))
                return "clears the environment, by which the recorder is loaded: "
                       "'env -i … reprise record -- …'";
    for (size_t i = 0; i < sizeof starters / sizeof starters[0]; i++)
        if (!strcmp(name, starters[i].name))
            return starters[i].why;
    return NULL;
}

void record_tell_nothing(const struct record *r, const struct rp_recording *rec)
{
    char path[PATH_MAX];
    enum program_kind kind =
        record_find_program(r->program, path, sizeof path) ? kind_of(path) : PROGRAM_UNKNOWN;

    fprintf(stderr, "reprise: nothing recorded: ");
    if (kind == PROGRAM_GO)
        fprintf(stderr, "'%s' is a Go program, whose calls cannot be intercepted\n", r->program);
    else if (kind == PROGRAM_STATIC)
        fprintf(stderr,
                "'%s' is statically linked, so that the recorder cannot be loaded into it\n",
                r->program);
    else if (kind == PROGRAM_OTHER_BITS)
        fprintf(stderr, "'%s' is not a 64-bit program\n", r->program);
    else if (starter_of(r))
        fprintf(stderr, "'%s' %s\n", r->program, starter_of(r));
    else if (!rec->loaded)
        fprintf(stderr,
                "no process loaded the recorder: the environment was cleared (env -i, sudo, a "
                "container), or the program is setuid\n");
    else
        fprintf(
            stderr,
            "%llu process%s loaded the recorder, and did nothing that it records (sources: %s): "
            "'reprise sample -- …' takes the stacks of any program; not seen are programs that are "
            "statically linked or started with a cleared environment\n",
            (unsigned long long)rec->loaded, rec->loaded == 1 ? "" : "es", r->used);
}
