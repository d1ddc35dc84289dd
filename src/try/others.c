/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes other versions of the user's program. A revision of git is checked out into a clone that
 * shares the objects of the repository and lies beside it: the working tree, its index and its list
 * of worktrees stay as they are. Files that git ignores belong to no revision (data, built
 * extensions): they are linked, unless sources of extensions differ, which then have to be built.
 */
#include "base/text.h"
#include "try/against.h"
#include "try/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT 16384     /* for the output of a command */
#define LIST   (1 << 20) /* for the output of a command that lists files */

/* ------------------------------------------------------------------ commands */

static void command_exec(const char *folder, const char *const *argv, int out)
{
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char *words[16] = {NULL};

    memcpy(words, argv, sizeof *argv * 15);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    if (!chdir(folder))
        execvp(words[0], words);
    _exit(127);
}

/* Runs a command in a folder, with its output in `out`. Returns its exit status, or -1. */
static int run_in(const char *folder, const char *const argv[16], char *out, size_t cap)
{
    int fds[2], status = -1;
    size_t n = 0;
    ssize_t got;
    char rest[512];

    *out = '\0';
    if (pipe2(fds, O_CLOEXEC))
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        command_exec(folder, argv, fds[1]);
    close(fds[1]);
    while ((got = n + 1 < cap ? read(fds[0], out + n, cap - 1 - n)
                              : read(fds[0], rest, sizeof rest)) > 0)
        n += n + 1 < cap ? (size_t)got : 0;
    out[n] = '\0';
    close(fds[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    out[n && out[n - 1] == '\n' ? n - 1 : n] = '\0';
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define RUN(folder, out, ...) \
    run_in((folder), (const char *const[16]){__VA_ARGS__}, (out), sizeof(out))

static const char *last_line(const char *text)
{
    const char *line = strrchr(text, '\n');

    return line ? line + 1 : text;
}

/* ------------------------------------------------------------------ folders */

/* Finds the git folder that contains the current one, or the current one; returns whether it
   belongs to git. */
static bool find_top(const struct rp_try_session *s, char out[PATH_MAX])
{
    char text[PATH_MAX];
    bool git = RUN(s->cwd, text, "git", "rev-parse", "--show-toplevel") == 0 && *text == '/';

    memcpy(out, git ? text : s->cwd, PATH_MAX);
    return git;
}

/* Turns "TOP/data/x" into "OTHER/data/x" if the path is in the top folder. */
static const char *moved(const char *path, const char *top, const char *to, struct rp_arena *arena)
{
    size_t n = strlen(top);

    return strncmp(path, top, n) != 0 || (path[n] && path[n] != '/')
               ? path
               : rp_arena_textf(arena, "%s%s", to, path + n);
}

/* Does the same for a word of the command if there is such a file. An interpreter that only the
   user's tree has, as that of an environment, gets its full name. */
static const char *moved_word(const struct rp_try_session *s, size_t i, const char *top,
                              const char *to, const char *cwd, struct rp_arena *arena)
{
    const char *word = s->words[i], *there = moved(word, top, to, arena);
    const char *path = *there == '/' ? there : rp_arena_textf(arena, "%s/%s", cwd, there);

    if (!path || !access(path, F_OK) || access(word, F_OK))
        return there;
    return i || *word == '/' || !strchr(word, '/') ? word
                                                   : rp_arena_textf(arena, "%s/%s", s->cwd, word);
}

/* Moves the program of the user to another folder, so that paths in its words lead to the same
   places there. */
static void move_program(const struct rp_try_session *s, const char *top, const char *to,
                         struct rp_arena *arena, struct rp_try_program *out)
{
    out->words = RP_ARENA_NEW(arena, char *, s->nwords + 1);
    out->cwd = moved(s->cwd, top, to, arena);
    for (size_t i = 0; out->words && i < s->nwords; i++)
        out->words[out->nwords++] =
            rp_arena_strdup(arena, moved_word(s, i, top, to, out->cwd, arena));
    out->moved = rp_arena_textf(arena, "%s=%s", top, to);
}

void rp_try_other_protect(struct rp_try_session *s, const char *what)
{
    char top[PATH_MAX];

    find_top(s, top);
    rp_try_place_add(&s->folders, top);
    rp_try_place_add(&s->folders, what);
}

/* ------------------------------------------------------------------ what no revision has */

static bool is_built(const char *path)
{
    return rp_text_ends(path, ".so") || rp_text_ends(path, ".pyd");
}

/* Whether the path ends with one of these words. */
static bool is_source(const char *path)
{
    static const char *const endings[] = {".c", ".cc",  ".cpp", ".cu", ".cuh",
                                          ".h", ".hpp", ".pyx", ".rs", ".f90"};

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (rp_text_ends(path, endings[i]))
            return true;
    return false;
}

/* Whether it is a file that tools write, and would write through a link into the user's folder; not
   an environment of Python. */
static bool is_of_tools(const char *top, const char *path)
{
    const char *name = rp_text_file(path);
    char environment[2 * PATH_MAX];

    snprintf(environment, sizeof environment, "%s/%s/pyvenv.cfg", top, path);
    return strstr(name, "__pycache__") || rp_text_ends(name, ".pyc") ||
           rp_text_ends(name, ".egg-info") || (*name == '.' && access(environment, F_OK));
}

static void make_link(const char *top, const char *to, const char *name)
{
    char from[2 * PATH_MAX], path[2 * PATH_MAX];
    struct stat st;

    snprintf(from, sizeof from, "%s/%s", top, name);
    snprintf(path, sizeof path, "%s/%s", to, name);
    for (char *slash = strchr(path + strlen(to) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    if (lstat(path, &st))
        (void)!symlink(from, path);
}

/* Returns the lines that a command of git lists in a folder; NULL, with the reason in err, if they
   are too many. */
static char *list_of(const char *folder, const char *command, const char *word,
                     struct rp_arena *arena, struct rp_err *err)
{
    char *list = rp_arena_alloc(arena, LIST, 1);

    if (rp_err_need(list, err, "listing files") != RP_OK)
        return NULL;
    if (run_in(folder, (const char *const[16]){"sh", "-c", command, word}, list, LIST) != 0)
        *list = '\0'; /* it is not in git, or not yet */
    if (strlen(list) + 2 < LIST)
        return list;
    rp_err_set(err, RP_LIMIT, "'%s' in '%s' lists more than 1 MiB of names", command, folder);
    return NULL;
}

/* Links files that git ignores. Built extensions are linked only if their sources are the same:
   neither the commit nor the patch, one of which is NULL, may change them. */
static enum rp_code link_ignored(const char *top, const char *commit, const char *patch,
                                 const char *to, bool prepared, struct rp_arena *arena,
                                 struct rp_try_other *out, struct rp_err *err)
{
    char *save = NULL, *source = NULL;
    char *changed =
        list_of(top, patch ? "git apply --numstat \"$0\"" : "git diff --name-only \"$0\"",
                patch ? patch : commit, arena, err);
    char *list =
        changed ? list_of(top, "git ls-files -oi --directory --exclude-standard", NULL, arena, err)
                : NULL;

    if (!list)
        return err ? err->code : RP_LIMIT;
    for (char *name = strtok_r(changed, "\n", &save); name; name = strtok_r(NULL, "\n", &save))
        source = is_source(name) ? name : source;
    for (char *name = strtok_r(list, "\n", &save); name; name = strtok_r(NULL, "\n", &save)) {
        size_t n = strlen(name);

        name[n && name[n - 1] == '/' ? n - 1 : n] = '\0';
        bool built = is_built(name) || !strcmp(name, "build") || !strcmp(name, "dist");
        if (is_of_tools(top, name) || (built && prepared))
            continue;
        if (built && source)
            return rp_err_set(err, RP_UNSUPPORTED,
                              "'%s' was built from other sources than those of '%s' (%s differs): "
                              "'--prepare COMMAND' builds them there",
                              name, out->what, source);
        make_link(top, to, name);
        out->linked = out->linked ? rp_arena_textf(arena, "%s, %s", out->linked, name)
                                  : rp_arena_text(arena, name);
    }
    return RP_OK;
}

/* Clones submodules from those of the working tree; for a patch, copies them as they are. */
static enum rp_code add_modules(const char *top, const char *to, bool copy, struct rp_arena *arena,
                                struct rp_err *err)
{
    char text[OUTPUT], from[2 * PATH_MAX], path[2 * PATH_MAX], *save = NULL;
    char *list =
        list_of(copy ? top : to, "git ls-files -s | sed -n '/^160000 /p'", NULL, arena, err);

    if (!list)
        return err ? err->code : RP_LIMIT;
    for (char *line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char commit[72];
        const char *name = strchr(line, '\t');

        if (sscanf(line, "160000 %71s", commit) != 1 || !name)
            continue;
        snprintf(from, sizeof from, "%s/%s", top, name + 1);
        snprintf(path, sizeof path, "%s/%s", to, name + 1);
        rmdir(path);
        if (copy ? RUN(to, text, "cp", "-a", from, path) != 0
                 : RUN(to, text, "git", "clone", "-q", "--shared", "-n", from, path) != 0 ||
                       RUN(path, text, "git", "checkout", "-q", "--detach", commit) != 0)
            return rp_err_set(err, RP_UNSUPPORTED,
                              "the submodule '%s' has no commit %.12s here: %s", name + 1, commit,
                              last_line(text));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ kinds */

static enum rp_code make_revision(const char *top, const char *commit, const char *to,
                                  struct rp_arena *arena, struct rp_try_other *out,
                                  struct rp_err *err)
{
    char text[OUTPUT];
    size_t files = 0;

    if (RUN(top, text, "git", "clone", "-q", "--shared", "-n", ".", to) != 0 ||
        RUN(to, text, "git", "checkout", "-q", "--detach", commit) != 0)
        return rp_err_set(err, RP_UNSUPPORTED, "'%s' cannot be checked out: %s", out->what,
                          last_line(text));
    RP_TRY(add_modules(top, to, false, arena, err));
    if (RUN(top, text, "git", "status", "--porcelain", "-uno") == 0)
        for (const char *at = text; *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "")
            files++;
    if (files)
        out->changed = rp_arena_textf(arena, "%zu file%s changes that are not committed", files,
                                      files == 1 ? " has" : "s have");
    out->name = rp_arena_textf(arena, "%s (%.10s)", out->what, commit);
    return RP_OK;
}

/* Copies the working tree without files that git ignores, and applies the patch. */
static enum rp_code make_patched(const char *top, bool git, const char *patch, const char *to,
                                 struct rp_arena *arena, struct rp_try_other *out,
                                 struct rp_err *err)
{
    char text[OUTPUT];

    if (mkdir(to, 0755) ||
        RUN(top, text, "sh", "-c",
            git ? "git ls-files -z -co --exclude-standard | tar --null --no-recursion "
                  "--ignore-failed-read -cf - -T - | tar -xf - -C \"$0\""
                : "tar -cf - . | tar -xf - -C \"$0\"",
            to) != 0)
        return rp_err_set(err, RP_IO, "'%s' cannot be copied: %s", top, last_line(text));
    if (git)
        RP_TRY(add_modules(top, to, true, arena, err));
    if (RUN(to, text, "git", "apply", "--whitespace=nowarn", patch) != 0)
        return rp_err_set(err, RP_UNSUPPORTED, "the patch '%s' does not apply: %s", out->what,
                          last_line(text));
    return RP_OK;
}

/* Git knows why: it trusts no folder of another user, and a shallow clone has few revisions. */
static enum rp_code refuse_unknown(const struct rp_try_session *s, const char *what,
                                   struct rp_err *err)
{
    char text[OUTPUT];

    RUN(s->cwd, text, "git", "rev-parse", "--is-shallow-repository");
    text[strcspn(text, "\n")] = '\0';
    return rp_err_set(err, RP_USAGE,
                      "'%s' is not a folder, a patch file or a revision of git here%s%s", what,
                      strcmp(text, "false") != 0 ? ": " : "",
                      !strcmp(text, "true")    ? "'git fetch --unshallow' gets what is missing"
                      : !strcmp(text, "false") ? ""
                                               : text);
}

enum rp_code rp_try_other_make(struct rp_try_session *s, const char *what, const char *prepare,
                               struct rp_arena *arena, struct rp_try_other *out, struct rp_err *err)
{
    char top[PATH_MAX], path[PATH_MAX], commit[OUTPUT], text[OUTPUT], revision[512];
    const char *around = rp_arena_textf(arena, "%s/other%zu", s->scratch, s->started++);
    const char *to = rp_arena_textf(arena, "%s/program", around);
    struct stat st;
    bool git = find_top(s, top), exists = realpath(what, path) && !stat(path, &st);

    *out = (struct rp_try_other){.what = what, .name = what};
    if (mkdir(around, 0755))
        return rp_err_set_os(err, errno, "cannot make the folder '%s'", around);
    snprintf(revision, sizeof revision, "%s^{commit}", what);
    if (exists && S_ISDIR(st.st_mode)) {
        move_program(s, s->cwd, path, arena, &out->program);
    } else {
        if (exists)
            RP_TRY(make_patched(top, git, path, to, arena, out, err));
        else if (git && *what != '-' &&
                 RUN(top, commit, "git", "rev-parse", "-q", "--verify", revision) == 0)
            RP_TRY(make_revision(top, commit, to, arena, out, err));
        else
            return refuse_unknown(s, what, err);
        if (git)
            RP_TRY(link_ignored(top, commit, exists ? path : NULL, to, prepare, arena, out, err));
        move_program(s, top, to, arena, &out->program);
    }
    if (prepare && RUN(out->program.cwd, text, "sh", "-c", prepare) != 0)
        return rp_err_set(err, RP_UNSUPPORTED, "'--prepare' failed in '%s': %s", what,
                          last_line(text));
    if (!s->allow_writes) /* like yours: what it writes in one round is gone in the next */
        rp_try_place_add(&s->folders, around); /* with "../file", which is then beside it */
    return rp_arena_check(arena, "preparing programs", err);
}

void rp_try_other_command(const struct rp_try_session *s, const char *command,
                          struct rp_arena *arena, struct rp_try_other *out)
{
    char **words = RP_ARENA_NEW(arena, char *, 4);

    *out = (struct rp_try_other){.what = command, .name = command};
    if (!words)
        return;
    words[0] = rp_arena_strdup(arena, "sh");
    words[1] = rp_arena_strdup(arena, "-c");
    words[2] = rp_arena_strdup(arena, rp_arena_textf(arena, "exec %s", command));
    out->program = (struct rp_try_program){.words = words, .nwords = 3, .cwd = s->cwd};
}
