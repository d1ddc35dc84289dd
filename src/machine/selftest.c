/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `doctor --test` finds out whether the installation works on this machine. Every test runs
 * commands of the program itself on files that are embedded in it, in a scratch folder, and
 * compares what they print. Commands are processes, so that a crash (of a third-party library, or
 * of code for another processor) is a row of the answer and not its end. The programs that the
 * sources of `record` record are in selftest_work.c.
 */
#include "dataset/question.h"
#include "machine/doctor.h"
#include "machine/features.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_S  120
#define MAX_WORDS  24
#define MAX_OUTPUT (1 << 20)

extern char **environ;

static const char passed[] = "ok", not_possible[] = "not possible", failed[] = "failed";

struct rp_selftest {
    struct rp_arena *arena;
    const char *program, *folder;
    const char *python; /* one that has the packages of a script, or NULL */
    char *work;         /* "RP_SELFTEST_WORK=source" for the commands, or NULL */
};

/* ------------------------------------------------------------------ running commands */

static const char *file_of(const struct rp_selftest *t, const char *name)
{
    return rp_arena_textf(t->arena, "%s/%s", t->folder, name);
}

/* Reads the begin of a file of the scratch folder; "" if it cannot be read. */
static const char *read_back(const struct rp_selftest *t, const char *name)
{
    char *text = rp_arena_alloc(t->arena, MAX_OUTPUT, 1);
    FILE *f = fopen(file_of(t, name), "re");
    size_t n = 0;

    if (f && text)
        n = fread(text, 1, MAX_OUTPUT - 1, f);
    if (f)
        fclose(f);
    if (!text)
        return "";
    text[n] = '\0';
    return text;
}

/* Waits for the process, and ends it if it takes too long. Returns its exit status, 128 + the
   number of the signal that ended it, or -1. */
static int wait_for(pid_t pid)
{
    const struct timespec pause = {0, 2000000};
    time_t begin = time(NULL);
    int status;
    pid_t got;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        if (time(NULL) - begin > TIMEOUT_S)
            kill(pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
    if (got < 0)
        return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Returns the variables of this process and that of selftest_work.c. */
static char **variables(const struct rp_selftest *t)
{
    size_t n = 0;

    if (!t->work)
        return environ;
    while (environ[n])
        n++;
    char **all = RP_ARENA_NEW(t->arena, char *, n + 2);
    if (!all)
        return environ;
    memcpy(all, environ, n * sizeof all[0]);
    all[n] = t->work;
    return all;
}

static char *argument(const struct rp_selftest *t, char *word)
{
    if (*word == '@')
        return rp_arena_strdup(t->arena, file_of(t, word + 1));
    if (*word == '%')
        return rp_arena_strdup(t->arena, word[1] ? t->python : t->program);
    return word;
}

/* Runs the program with the words of a line; one that begins with '@' is a file of the scratch
   folder, '%' is the program and '%python' the interpreter, which may begin the line. The output is
   in the files "out" and "err". */
static int run(const struct rp_selftest *t, const char *line)
{
    char *argv[MAX_WORDS + 1] = {rp_arena_strdup(t->arena, t->program)};
    char *copy = rp_arena_strdup(t->arena, line), *rest = NULL;
    posix_spawn_file_actions_t actions;
    size_t n = *line != '%';
    pid_t pid;

    if (!copy)
        return -1;
    for (char *word = strtok_r(copy, " ", &rest); word && n < MAX_WORDS;
         word = strtok_r(NULL, " ", &rest), n++)
        argv[n] = argument(t, word);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, file_of(t, "out"),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, file_of(t, "err"),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int code = posix_spawn(&pid, argv[0], &actions, NULL, argv, variables(t));
    posix_spawn_file_actions_destroy(&actions);
    return code ? -1 : wait_for(pid);
}

/* ------------------------------------------------------------------ verdicts */

static bool good(struct rp_doctor_row *row, const char *finding)
{
    row->state = passed;
    row->finding = finding;
    return true;
}

static bool cannot(struct rp_doctor_row *row, const char *why)
{
    row->state = not_possible;
    row->finding = why;
    return false;
}

static bool wrong(struct rp_doctor_row *row, const char *finding)
{
    row->state = failed;
    row->finding = finding;
    return false;
}

/* Describes a failed command: how it ended, and the first line of its output. */
static bool bad(const struct rp_selftest *t, struct rp_doctor_row *row, const char *line,
                int status)
{
    const char *said = read_back(t, "err");
    const char *how = status > 128 ? rp_arena_textf(t->arena, "ended by signal %d", status - 128)
                      : status < 0 ? "could not be run"
                                   : rp_arena_textf(t->arena, "exit status %d", status);

    if (!strncmp(said, "reprise: ", 9))
        said += 9;
    return wrong(row, rp_arena_textf(t->arena, "'%.*s': %s%s%.*s", (int)strcspn(line, "@"), line,
                                     how, *said ? ": " : "", (int)strcspn(said, "\n"), said));
}

static bool expect_status(const struct rp_selftest *t, struct rp_doctor_row *row, const char *line)
{
    int status = run(t, line);

    return status == 0 || bad(t, row, line, status);
}

/* Runs a command that must succeed and print the text; otherwise the row says what failed. */
static bool expect(const struct rp_selftest *t, struct rp_doctor_row *row, const char *line,
                   const char *text)
{
    if (!expect_status(t, row, line))
        return false;
    if (strstr(read_back(t, "out"), text))
        return true;
    return wrong(row, rp_arena_textf(t->arena, "'%.*s': the answer is not the one that is known",
                                     (int)strcspn(line, "@"), line));
}

static bool has_library(struct rp_doctor_row *row, struct rp_arena *arena, const char *name)
{
    size_t n;
    const struct rp_feature *feature = rp_feature_list(&n);

    for (size_t i = 0; i < n; i++)
        if (!strcmp(feature[i].name, name) && !feature[i].present)
            return cannot(row, rp_arena_textf(arena, "built without %s", name));
    return true;
}

/* ------------------------------------------------------------------ the tests */

typedef void test_fn(const struct rp_selftest *t, const char *what, struct rp_doctor_row *row);

#define KERNELS "\ngemm,compute,2,600500,"

static void test_questions(const struct rp_selftest *t, const char *what, struct rp_doctor_row *row)
{
    (void)what;
    if (expect(t, row, "report --json @trace.json", "\"step_ns\": 1000000,") &&
        expect(t, row, "top --csv @trace.json", KERNELS))
        good(row, "the answers are the known ones");
}

/* A copy in the format of that ending must give the same list of kernels. */
static void test_copy(const struct rp_selftest *t, const char *ending, struct rp_doctor_row *row)
{
    const char *write = rp_arena_textf(t->arena, "convert @trace.json -o @copy%s", ending);

    if (!expect(t, row, "top --csv @trace.json", KERNELS))
        return;
    const char *before = read_back(t, "out");
    if (expect_status(t, row, write) &&
        expect(t, row, rp_arena_textf(t->arena, "top --csv @copy%s", ending), before))
        good(row, "written and read back");
}

static void test_packed(const struct rp_selftest *t, const char *ending, struct rp_doctor_row *row)
{
    const char *line = rp_arena_textf(t->arena, "top --csv @trace.json.%s", ending);

    if (has_library(row, t->arena, !strcmp(ending, "xz") ? "lzma" : "zstd") &&
        expect(t, row, line, "\nk,compute,8,16000,"))
        good(row, "the answer is the known one");
}

static void test_sql(const struct rp_selftest *t, const char *what, struct rp_doctor_row *row)
{
    (void)what;
    if (has_library(row, t->arena, "sqlite") &&
        expect(t, row, "query --csv @trace.json --file @queries.sql --name total", "\n700000\n"))
        good(row, "the answer is the known one");
}

static void test_sqlite(const struct rp_selftest *t, const char *what, struct rp_doctor_row *row)
{
    (void)what;
    if (!has_library(row, t->arena, "sqlite") ||
        !expect_status(t, row, "convert @trace.json -o @copy.sqlite"))
        return;
    if (!strncmp(read_back(t, "copy.sqlite"), "SQLite format 3", 15))
        good(row, "a database was written");
    else
        wrong(row, "what was written is not a database");
}

static void test_samples(const struct rp_selftest *t, const char *ending, struct rp_doctor_row *row)
{
    if (!expect(t, row, "top --csv --by function @samples.folded", "gemm"))
        return;
    const char *before = read_back(t, "out");
    if (expect_status(t, row,
                      rp_arena_textf(t->arena, "convert @samples.folded -o @stacks%s", ending)) &&
        expect(t, row, rp_arena_textf(t->arena, "top --csv --by function @stacks%s", ending),
               before))
        good(row, "written and read back");
}

static void test_program(const struct rp_selftest *t, const char *ending, struct rp_doctor_row *row)
{
    if (expect_status(t, row,
                      rp_arena_textf(t->arena, "convert @program.hlo.txt -o @copy%s", ending)) &&
        expect(t, row,
               rp_arena_textf(t->arena, "replay -q -e ref -n 1 --expect @result.npy @copy%s --json",
                              ending),
               "\"ok\": true"))
        good(row, "written and read back");
}

/* pjrt and tf run here if `replay engines` has found their library. */
static void test_engine(const struct rp_selftest *t, const char *engine, struct rp_doctor_row *row)
{
    const char *input = !strcmp(engine, "tf") ? "--fetch c:0 @graph.pbtxt" : "@program.hlo.txt";
    const char *line = rp_arena_textf(
        t->arena, "replay -q -e %s -n 1 --expect @result.npy --json %s", engine, input);
    const char *name = rp_arena_textf(t->arena, "\"name\": \"%s", engine);

    if (!expect(t, row, "replay engines --json", name))
        return;
    const char *at = strstr(read_back(t, "out"), name);
    const char *present = strstr(at, "\"present\": ");
    const char *found = strstr(at, "\"found\": \"");
    if (present && found && !strncmp(present + 11, "false", 5))
        cannot(row, rp_arena_textf(t->arena, "%.*s", (int)strcspn(found + 10, "\""), found + 10));
    else if (expect(t, row, line, "\"ok\": true"))
        good(row, "the result is the known one");
    else if ((at = strstr(read_back(t, "err"), "from the plugin: ")) != NULL)
        cannot(row, rp_arena_textf(t->arena, "the plugin: %.*s", (int)strcspn(at + 17, "\n"),
                                   at + 17)); /* the library is there, but its device is not */
}

/* Returns the last line of a program that failed. */
static const char *last_line(const struct rp_selftest *t)
{
    const char *said = read_back(t, "err");
    size_t end = strlen(said), begin;

    while (end && said[end - 1] == '\n')
        end--;
    for (begin = end; begin && said[begin - 1] != '\n'; begin--)
        ;
    return rp_arena_textf(t->arena, "%.*s", (int)(end - begin), said + begin);
}

/* Describes why the recorded program failed: it lacks something here, or fails without `record`,
   too, or the source is at fault. */
static bool not_recorded(const struct rp_selftest *t, const char *program, const char *line,
                         int status, struct rp_doctor_row *row)
{
    const char *why = strstr(read_back(t, "err"), RP_SELFTEST_MISSING);
    const char *said = why ? why + strlen(RP_SELFTEST_MISSING) : NULL;

    bad(t, row, line, status);
    if (why)
        return cannot(row, rp_arena_textf(t->arena, "%.*s", (int)strcspn(said, "\n"), said));
    if (run(t, program) == 0)
        return false;
    return cannot(
        row, rp_arena_textf(t->arena, "the program fails without 'record', too: %s", last_line(t)));
}

/* Records the program of a source into the folder "run-SOURCE". */
static bool record(struct rp_selftest *t, const struct rp_selftest_source *source,
                   struct rp_doctor_row *row)
{
    const char *program =
        source->script ? rp_arena_textf(t->arena, "%%python @%s", source->script) : "% doctor";
    const char *line = rp_arena_textf(t->arena, "record -q --with %s -o @run-%s -- %s",
                                      source->name, source->name, program);

    t->python = source->script ? rp_doctor_python(t->arena, source->package) : NULL;
    if (source->script && !t->python)
        return cannot(row,
                      rp_arena_textf(t->arena, "no python3 on the PATH has '%s'", source->package));
    t->work = rp_arena_printf(t->arena, RP_SELFTEST_WORK "=%s", source->name);
    int status = t->work ? run(t, line) : -1;
    bool ok = status == 0 || not_recorded(t, program, line, status, row);
    t->work = NULL;
    return ok;
}

static bool has_trace(const struct rp_selftest *t, const struct rp_selftest_source *source,
                      struct rp_doctor_row *row)
{
    const char *file = rp_arena_textf(t->arena, "run-%s.json", source->name);
    bool found;

    if (!source->trace) { /* samples have no events in JSON */
        if (!expect(t, row, rp_arena_textf(t->arena, "info --json @run-%s", source->name),
                    "\"samples\": "))
            return false;
        found = !strstr(read_back(t, "out"), "\"samples\": 0,");
    } else {
        if (!expect_status(t, row,
                           rp_arena_textf(t->arena, "convert @run-%s -o @%s", source->name, file)))
            return false;
        const char *said = read_back(t, file);
        found = strstr(said, source->trace) != NULL;
    }
    return found || wrong(row, "what the program did is not in the recording");
}

static void test_source(const struct rp_selftest *tests, const char *name,
                        struct rp_doctor_row *row)
{
    const struct rp_selftest_source *source = rp_selftest_source(name);
    struct rp_selftest t = *tests;

    rp_doctor_source(t.arena, name, row);
    row->advice = NULL;
    if (!strcmp(row->state, "absent")) {
        row->state = not_possible;
        return;
    }
    if (strpbrk(rp_arena_text(t.arena, rp_doctor_capture(t.arena, name)), " :"))
        cannot(row, "its path has a space or a colon, which LD_PRELOAD forbids");
    else if (record(&t, source, row) && has_trace(&t, source, row))
        good(row, "a program was recorded");
}

static const struct {
    const char *name, *purpose;
    test_fn *run;
    const char *what;
} tests[] = {{"questions", "traces", test_questions, NULL},
             {"copy .rpt", "traces", test_copy, ".rpt"},
             {"copy .json.gz", "traces", test_copy, ".json.gz"},
             {"copy .pftrace", "traces", test_copy, ".pftrace"},
             {"write .sqlite", "traces", test_sqlite, NULL},
             {"read .zst", "traces", test_packed, "zst"},
             {"read .xz", "traces", test_packed, "xz"},
             {"SQL", "query", test_sql, NULL},
             {"copy .pprof.gz", "samples", test_samples, ".pprof.gz"},
             {"copy .speedscope.json", "samples", test_samples, ".speedscope.json"},
             {"copy .hlo.pb", "programs", test_program, ".hlo.pb"},
             {"engine ref", "replay", test_engine, "ref"},
             {"engine fast", "replay", test_engine, "fast"},
             {"engine pjrt", "replay", test_engine, "pjrt"},
             {"engine tf", "replay", test_engine, "tf"},
             {"record host", "record", test_source, "host"},
             {"record blocking", "record", test_source, "blocking"},
             {"record malloc", "record", test_source, "malloc"},
             {"record sample", "record", test_source, "sample"},
             {"record frameworks", "record", test_source, "frameworks"},
             {"record nvtx", "record", test_source, "nvtx"},
             {"record mpi", "record", test_source, "mpi"},
             {"record gloo", "record", test_source, "gloo"},
             {"record cuda", "record", test_source, "cuda"},
             {"record nccl", "record", test_source, "nccl"},
             {"record hip", "record", test_source, "hip"},
             {"record opencl", "record", test_source, "opencl"},
             {"record sycl", "record", test_source, "sycl"}};

size_t rp_selftest_count(void)
{
    return sizeof tests / sizeof tests[0];
}

void rp_selftest_run(struct rp_selftest *t, size_t i, struct rp_doctor_row *row)
{
    row->check = tests[i].name;
    row->purpose = tests[i].purpose;
    tests[i].run(t, tests[i].what, row);
}

/* ------------------------------------------------------------------ the scratch folder */

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

void rp_selftest_close(struct rp_selftest *t)
{
    if (t)
        nftw(t->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static bool write_files(const struct rp_selftest *t)
{
    bool ok = true;

    for (const struct rp_selftest_file *file = rp_selftest_files; ok && file->name; file++) {
        FILE *f = fopen(file_of(t, file->name), "we");

        ok = f && fwrite(file->bytes, 1, file->len, f) == file->len;
        ok = f && fclose(f) == 0 && ok;
    }
    return ok;
}

enum rp_code rp_selftest_open(struct rp_arena *arena, struct rp_selftest **out, struct rp_err *err)
{
    const char *place = getenv("TMPDIR");
    struct rp_selftest *t = RP_ARENA_NEW(arena, struct rp_selftest, 1);
    char *folder =
        rp_arena_printf(arena, "%s/reprise-doctor-XXXXXX", place && *place ? place : "/tmp");

    *out = NULL;
    RP_TRY(rp_err_need(t && folder, err, "testing this machine"));
    t->arena = arena;
    t->program = rp_doctor_program(arena);
    if (!t->program)
        return rp_err_set(err, RP_MISSING,
                          "the tests run the program 'reprise', which is not beside the library: "
                          "add its folder to the PATH");
    if (!mkdtemp(folder))
        return rp_err_set(err, RP_IO, "cannot create '%s': %s; set TMPDIR to a writable folder",
                          folder, strerror(errno));
    t->folder = folder;
    if (!write_files(t)) {
        rp_selftest_close(t);
        return rp_err_set(err, RP_IO, "cannot write the files of the tests into '%s'", folder);
    }
    *out = t;
    return RP_OK;
}
