/* SPDX-License-Identifier: Apache-2.0 */
/* Variants as processes: starts them, and runs their first steps and turns (session.h). */
#include "try/session.h"

#include "base/clock.h"
#include "base/text.h"
#include "try/place.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define SECOND      INT64_C(1000000000)
#define PROBE_STEPS 20

/* ------------------------------------------------------------------ the session */

enum rp_code rp_try_session_open(struct rp_try_session *s, struct rp_err *err)
{
    if (!getcwd(s->cwd, sizeof s->cwd))
        return rp_err_set_os(err, errno, "cannot find the current folder");
    if (!s->allow_writes)
        rp_try_place_folders(&s->folders, s->words, s->nwords, s->cwd);
    RP_TRY(rp_try_place_make(s->scratch, sizeof s->scratch, &s->folders, err));
    if (s->allow_writes)
        return RP_OK;
    if (!rp_try_place_covers(&s->folders, s->cwd))
        return rp_err_set(err, RP_USAGE,
                          "the folder '%s' cannot be protected from what the program writes: start "
                          "it in another one, or give '--allow-writes'",
                          s->cwd);
    if (!rp_try_overlay_works(s->scratch))
        return rp_err_set(err, RP_MISSING,
                          "this machine does not allow user namespaces with overlays, so the "
                          "program's files cannot be protected from its variants: copy the folder, "
                          "and give '--allow-writes'");
    return RP_OK;
}

static void drop(struct rp_try_variant **v)
{
    if (*v)
        rp_try_stop(*v);
    free(*v);
    *v = NULL;
}

void rp_try_session_close(struct rp_try_session *s)
{
    for (size_t i = 0; i < s->nvariants; i++) {
        rp_try_stop(&s->variants[i]);
        drop(&s->variants[i].twin);
    }
    for (size_t i = 0; i < sizeof s->rounded / sizeof s->rounded[0]; i++)
        drop(&s->rounded[i]);
    if (*s->scratch)
        rp_try_place_remove(s->scratch);
}

bool rp_try_session_goes_on(struct rp_try_session *s, const char *what)
{
    char text[256];

    snprintf(text, sizeof text, "%s%s", s->doing, what);
    if (s->progress && s->progress(s->progress_user, text, 0, 0))
        s->cancelled = true;
    return !s->cancelled && rp_clock_ns() < s->deadline_ns;
}

/* ------------------------------------------------------------------ failures */

void rp_try_stop(struct rp_try_variant *v)
{
    rp_try_child_end(v->child);
    v->child = NULL;
}

void rp_try_fail(struct rp_try_variant *v, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(v->why, sizeof v->why, fmt, args);
    va_end(args);
    v->state = RP_TRY_FAILED;
    rp_try_stop(v);
}

bool rp_try_was_cut(const struct rp_try_variant *v)
{
    return v->state == RP_TRY_FAILED &&
           (strstr(v->why, "came to its end") || strstr(v->why, "the time was over") ||
            !strcmp(v->why, "interrupted"));
}

static bool is_out_of_memory(const char *text)
{
    return strstr(text, "out of memory") || strstr(text, "OutOfMemory") ||
           strstr(text, "MemoryError") || strstr(text, "RESOURCE_EXHAUSTED") ||
           strstr(text, "allocate memory");
}

/* Gives a hint if it wanted to write to a place outside its own folders. */
static const char *hint_of(const char *text)
{
    return strstr(text, "ermission denied") || strstr(text, "cannot be opened") ||
                   strstr(text, "readonly database") || strstr(text, "unable to open database")
               ? " ('--allow-write PATH' lets it write there)"
               : "";
}

static void fail_with(struct rp_try_variant *v, const char *text)
{
    char words[RP_TRY_WHY / 2];

    snprintf(words, sizeof words, "%s", text);
    rp_try_fail(v, "%s%s%s", is_out_of_memory(words) ? "out of memory: " : "", words,
                hint_of(words));
}

static const char no_step[] = "it ended before a step was seen";

/* The program has ended without a message. */
static void fail_by_status(struct rp_try_variant *v)
{
    int status = v->child->status, exit = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    char words[RP_TRY_WHY / 2];

    rp_try_child_last_words(v->child, words, sizeof words);
    if (exit == 128 + SIGKILL)
        rp_try_fail(v, "killed by signal 9: the machine may have run out of memory");
    else if (exit > 128 && exit < 128 + 65)
        rp_try_fail(v, "it crashed: signal %d (%s)", exit - 128, strsignal(exit - 128));
    else if (exit)
        rp_try_fail(v, "it ended with status %d%s%s%s", exit, *words ? ": " : "", words,
                    hint_of(words));
    else
        rp_try_fail(v, "%s", no_step);
}

/* ------------------------------------------------------------------ starting */

struct environment {
    char **at;
    size_t n;
};

static void env_set(struct environment *e, const char *name, const char *value)
{
    size_t len = strlen(name), i = 0;
    char *text = NULL;

    while (i < e->n && (strncmp(e->at[i], name, len) != 0 || e->at[i][len] != '='))
        i++;
    if (asprintf(&text, "%s=%s", name, value) < 0)
        return;
    if (i < e->n)
        free(e->at[i]);
    e->at[i] = text;
    e->n += i == e->n;
    e->at[e->n] = NULL;
}

/* A list that the user has set keeps its entries. */
static void env_add(struct environment *e, const char *name, const char *value, char separator)
{
    const char *old = getenv(name);
    char *both = NULL;

    if (old && *old && asprintf(&both, "%s%c%s", value, separator, old) >= 0) {
        env_set(e, name, both);
        free(both);
    } else {
        env_set(e, name, value);
    }
}

static void env_release(struct environment *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->at[i]);
    free(e->at);
}

static bool env_copy(struct environment *e)
{
    size_t n = 0;

    while (environ[n])
        n++;
    *e = (struct environment){.at = calloc(n + 40, sizeof *e->at)};
    for (size_t i = 0; e->at && i < n; i++) {
        e->at[e->n] = strdup(environ[i]);
        e->n += e->at[e->n] != NULL;
    }
    return e->at != NULL;
}

/* Sets the variables of a change; entries of lists are added to the user's. */
static void env_change(struct environment *e, const struct rp_try_change *change, const char *value)
{
    char text[512];

    if (!change->variable)
        return;
    snprintf(text, sizeof text, "%s", change->setting);
    if (!strcmp(text, "%s"))
        snprintf(text, sizeof text, "%s", value);
    if (!strcmp(change->variable, "LD_PRELOAD"))
        env_add(e, change->variable, text, ':');
    else if (strstr(change->variable, "XLA_FLAGS"))
        env_add(e, change->variable, text, ' ');
    else if (!strcmp(change->variable, "PYTORCH_CUDA_ALLOC_CONF"))
        env_add(e, change->variable, text, ',');
    else
        env_set(e, change->variable, text);
}

/* Lists the changes for the hook: "fused,workers=4". */
static void list_changes(const struct rp_try_variant *v, char *out, size_t cap)
{
    size_t n = 0;

    *out = '\0';
    for (size_t i = 0; i < v->nparts && n < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%s%s%s", i ? "," : "", v->parts[i]->name,
                              *v->values[i] ? "=" : "", v->values[i]);
}

/* Lists steps after which updates are also compared: "1 2 5 10 20". Differences grow from step to
   step, in some programs so fast that rounding changes the last update beyond recognition. */
static void list_compared(size_t steps, char *out, size_t cap)
{
    static const size_t early[] = {1, 2, 5, 10};
    size_t n = 0;

    *out = '\0';
    for (size_t i = 0; i < sizeof early / sizeof early[0] && early[i] < steps; i++)
        n += (size_t)snprintf(out + n, cap - n, "%zu ", early[i]);
    snprintf(out + n, cap - n, "%zu", steps);
}

/* If torch.compile is among the changes, it writes a log, unless the user already has one
   written. */
static void env_log(struct environment *e, struct rp_try_variant *v, const char *folder)
{
    bool compiles = false;

    for (size_t i = 0; i < v->nparts; i++)
        compiles = compiles || !strcmp(v->parts[i]->name, "compile") ||
                   !strcmp(v->parts[i]->name, "reduce-overhead");
    v->log[0] = '\0';
    if (!compiles || getenv("TORCH_TRACE"))
        return;
    snprintf(v->log, sizeof v->log, "%s/torch_trace", folder);
    env_set(e, "TORCH_TRACE", v->log);
}

/* Loggers stay on this machine, and caches of compilers are new, so that compiling is measured. */
static void env_fill(struct environment *e, const struct rp_try_session *s,
                     const struct rp_try_variant *v, const struct rp_try_mode *mode,
                     const char *folder)
{
    static const char *const offline[][2] = {{"WANDB_MODE", "offline"},
                                             {"NEPTUNE_MODE", "offline"},
                                             {"CLEARML_OFFLINE_MODE", "1"},
                                             {"HF_HUB_DISABLE_TELEMETRY", "1"}};
    char text[PATH_MAX + 64];

    for (size_t i = 0; i < sizeof offline / sizeof offline[0]; i++)
        env_set(e, offline[i][0], offline[i][1]);
    snprintf(text, sizeof text, "%s/tmp", folder);
    if (!s->allow_writes && !mkdir(text, 0700))
        env_set(e, "TMPDIR", text);
    snprintf(text, sizeof text, "file:%s/mlruns", folder);
    env_set(e, "MLFLOW_TRACKING_URI", text);
    snprintf(text, sizeof text, "%s/inductor", folder);
    env_set(e, "TORCHINDUCTOR_CACHE_DIR", text);
    snprintf(text, sizeof text, "%s/triton", folder);
    env_set(e, "TRITON_CACHE_DIR", text);
    snprintf(text, sizeof text, "%s/hook", s->scratch);
    env_add(e, "PYTHONPATH", text, ':');
    snprintf(text, sizeof text, "%s/" RP_TRY_SOCKET, folder);
    env_set(e, "REPRISE_TRY", mode->alone ? "" : text);
    env_set(e, "REPRISE_TRY_TALLY", mode->alone && *rp_try_fact(&s->facts, "unit") ? folder : "");
    list_changes(v, text, sizeof text);
    env_set(e, "REPRISE_TRY_CHANGES", text);
    snprintf(text, sizeof text, "%zu", mode->probe);
    env_set(e, "REPRISE_TRY_PROBE", text);
    env_set(e, "REPRISE_TRY_UNIT", rp_try_fact(&s->facts, "unit"));
    env_set(e, "REPRISE_TRY_SAME_RANDOM", mode->same_random ? "1" : "");
    env_set(e, "REPRISE_TRY_ROUND", mode->round ? mode->round : "");
    list_compared(s->steps, text, sizeof text);
    env_set(e, "REPRISE_TRY_COMPARED", text);
    for (size_t i = 0; i < v->nparts; i++)
        env_change(e, v->parts[i], v->values[i]);
    if (v->program && v->program->moved)
        env_set(e, "REPRISE_TRY_MOVED", v->program->moved);
}

static char **join_words(const struct rp_try_program *program, const char *const *before)
{
    size_t n = 0, i;
    char **all;

    while (before && before[n])
        n++;
    all = calloc(n + program->nwords + 1, sizeof *all);
    for (i = 0; all && i < n; i++)
        memcpy(&all[i], &before[i], sizeof *all);
    for (i = 0; all && i < program->nwords; i++)
        all[n + i] = program->words[i];
    return all;
}

void rp_try_start(struct rp_try_session *s, struct rp_try_variant *v,
                  const struct rp_try_mode *mode)
{
    const struct rp_try_program own = {s->words, s->nwords, s->cwd, NULL};
    const struct rp_try_program *program = v->program ? v->program : &own;
    char folder[RP_TRY_PATH + 32], **argv = join_words(program, mode->before);
    struct environment env = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_try_start start = {.scratch = folder,
                                 .cwd = program->cwd,
                                 .folders = s->allow_writes ? NULL : &s->folders,
                                 .writes = &s->writes};

    snprintf(folder, sizeof folder, "%s/%zu", s->scratch, s->started++);
    v->why[0] = v->how[0] = v->update[0] = '\0';
    v->ready = false;
    v->precision = 0;
    if (!argv || !env_copy(&env) || mkdir(folder, 0755)) {
        rp_try_fail(v, "it cannot be started: %s", strerror(errno));
    } else {
        env_fill(&env, s, v, mode, folder);
        env_log(&env, v, folder);
        start.argv = argv;
        start.envp = env.at;
        if (rp_try_child_start(&start, &v->child, &err) == RP_OK)
            v->state = RP_TRY_ALIVE;
        else
            rp_try_fail(v, "%s", err.text);
    }
    env_release(&env);
    free(argv);
}

/* ------------------------------------------------------------------ lines */

static const char *after_word(const char *line, const char *word)
{
    size_t n = strlen(word);

    return !strncmp(line, word, n) && (line[n] == ' ' || !line[n]) ? line + n + (line[n] == ' ')
                                                                   : NULL;
}

static void note_fact(struct rp_try_session *s, const char *text)
{
    char key[32];

    snprintf(key, sizeof key, "%.*s", (int)strcspn(text, " "), text);
    text += strcspn(text, " ");
    rp_try_facts_add(&s->facts, key, text + (*text == ' '));
}

static void note_proof(struct rp_try_variant *v, const char *text)
{
    size_t n = strlen(v->how);

    text += strcspn(text, " ");
    snprintf(v->how + n, sizeof v->how - n, "%s%s", n ? ", " : "", text + (*text == ' '));
}

/* Of several processes, the coarsest counts. */
static void note_precision(struct rp_try_variant *v, const char *text)
{
    int class = (int)strtol(text, NULL, 10);

    if (class <= v->precision)
        return;
    v->precision = class;
    text += strcspn(text, " ");
    snprintf(v->precision_name, sizeof v->precision_name, "%s", text + (*text == ' '));
}

/* Handles a line for which nobody waits. Returns false if the variant has failed. */
static bool take_note(struct rp_try_session *s, struct rp_try_variant *v, const char *line)
{
    const char *rest;

    if ((rest = after_word(line, "fact"))) {
        note_fact(s, rest);
    } else if (after_word(line, "hello") && v->child->twice) {
        rp_try_fail(v, "several of its processes take steps, and they do not say which is which: "
                       "the launcher has to set RANK and WORLD_SIZE");
        return false;
    } else if ((rest = after_word(line, "precision"))) {
        note_precision(v, rest);
    } else if ((rest = after_word(line, "applied"))) {
        note_proof(v, rest);
    } else if ((rest = after_word(line, "refused"))) {
        rest += strcspn(rest, " ");
        rp_try_fail(v, "not applied: %s", rest + (*rest == ' '));
        return false;
    } else if ((rest = after_word(line, "error"))) {
        fail_with(v, rest);
        return false;
    } else if (after_word(line, "ended")) {
        s->ended = true;
        rp_try_fail(v, "the program came to its end");
        return false;
    }
    return true;
}

static bool memory_is_short(void)
{
    int64_t left, total;

    rp_try_place_memory(&left, &total);
    return total > 0 && left > 0 && left < total / 33;
}

/* Whether to keep waiting while nothing arrives. */
static bool keep_waiting(struct rp_try_session *s, struct rp_try_variant *v, int64_t until_ns)
{
    if (!rp_try_session_goes_on(s, v->name)) {
        rp_try_fail(v, s->cancelled ? "interrupted" : "the time was over: give more with '--time'");
        return false;
    }
    if (memory_is_short()) {
        rp_try_fail(v, "out of memory: less than 3 %% of the machine's memory was left");
        return false;
    }
    if (rp_clock_ns() > until_ns) {
        rp_try_fail(v, "it hung: no step within %.0f s ('--patience')",
                    (double)s->patience_ns / 1e9);
        return false;
    }
    return true;
}

bool rp_try_await(struct rp_try_session *s, struct rp_try_variant *v, const char *word,
                  int64_t limit_ns, char *rest, size_t cap)
{
    int64_t until_ns = rp_clock_ns() + limit_ns, rank = 0, world = 1, seen = 0;
    char line[RP_TRY_LINE];

    while (v->state == RP_TRY_ALIVE) {
        int got = rp_try_child_line(v->child, 100, line, sizeof line, &rank);
        const char *found = got > 0 ? after_word(line, word) : NULL;

        if (got < 0)
            fail_by_status(v);
        else if (got == 0)
            keep_waiting(s, v, until_ns);
        else if (found) {
            world = v->child->world > 1 ? v->child->world : 1;
            if (rank == 0)
                snprintf(rest, cap, "%s", found);
            if (++seen >= world)
                return true;
        } else {
            take_note(s, v, line);
        }
    }
    return false;
}

/* ------------------------------------------------------------------ what a variant does */

enum rp_code rp_try_probe(struct rp_try_session *s, struct rp_err *err)
{
    struct rp_try_variant *v = calloc(1, sizeof *v);
    struct rp_try_mode mode = {.probe = PROBE_STEPS};
    enum rp_code code = RP_OK;
    char rest[RP_TRY_LINE] = "";

    RP_TRY(rp_err_need(v, err, "watching the program"));
    snprintf(v->name, sizeof v->name, "watching the program");
    rp_try_start(s, v, &mode);
    if (!rp_try_await(s, v, "ready", s->patience_ns, rest, sizeof rest))
        code = rp_err_set(err, s->cancelled ? RP_CANCELLED : RP_UNSUPPORTED,
                          "no step of the program was seen: %s", v->why);
    s->stepless = !strcmp(v->why, no_step);
    rp_try_clock_open(&s->clock, rp_try_fact(&s->facts, "device-uuid"));
    rp_try_stop(v);
    free(v);
    return code;
}

/* What the hook wrote at the end of a program whose steps are known: their number and update. */
static void note_tally(struct rp_try_variant *v)
{
    long long steps = 0;
    char path[2 * RP_TRY_PATH], precision[80] = "";

    snprintf(path, sizeof path, "%s/steps", v->child->scratch);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%lld %79[^\n]", &steps, precision) < 1)
        steps = 0;
    note_precision(v, precision);
    if (f)
        fclose(f);
    v->tally = steps;
    snprintf(v->update, sizeof v->update, "%s/update", v->child->scratch);
    if (access(v->update, F_OK))
        v->update[0] = '\0';
}

bool rp_try_run_alone(struct rp_try_session *s, struct rp_try_variant *v, struct rp_try_spent *out)
{
    const struct rp_try_mode mode = {.alone = true};
    char line[RP_TRY_LINE];
    int64_t rank;

    rp_try_start(s, v, &mode);
    while (v->state == RP_TRY_ALIVE &&
           rp_try_child_line(v->child, 20, line, sizeof line, &rank) >= 0)
        keep_waiting(s, v, INT64_MAX);
    if (v->state == RP_TRY_ALIVE && v->child->status)
        fail_by_status(v);
    else if (v->state == RP_TRY_ALIVE && !rp_try_child_spent(v->child, out))
        rp_try_fail(v, "it cannot be seen what it has spent");
    if (v->state == RP_TRY_ALIVE)
        note_tally(v);
    return v->state == RP_TRY_ALIVE;
}

static void send_run(struct rp_try_variant *v, size_t warm, size_t n)
{
    char line[64];

    snprintf(line, sizeof line, "run %zu %zu\n", warm, n);
    rp_try_child_freeze(v->child, false);
    rp_try_child_tell(v->child, line);
}

bool rp_try_ready(struct rp_try_session *s, struct rp_try_variant *v)
{
    char rest[RP_TRY_LINE] = "";

    if (v->ready || v->state != RP_TRY_ALIVE)
        return v->ready && v->state == RP_TRY_ALIVE;
    v->ready = rp_try_await(s, v, "ready", s->patience_ns, rest, sizeof rest);
    v->early_ns = strtoll(rest, NULL, 10);
    return v->ready;
}

bool rp_try_take_update(struct rp_try_session *s, struct rp_try_variant *v, const char *name)
{
    char rest[RP_TRY_LINE] = "", line[PATH_MAX + 64];

    snprintf(v->update, sizeof v->update, "%s/%s", v->child->scratch, name);
    snprintf(line, sizeof line, "update %s\n", v->update);
    v->update_ns = -rp_clock_ns();
    rp_try_child_freeze(v->child, false);
    rp_try_child_tell(v->child, line);
    if (!rp_try_await(s, v, "updated", s->patience_ns, rest, sizeof rest))
        return false;
    v->update_ns += rp_clock_ns();
    rp_try_child_freeze(v->child, true);
    return true;
}

bool rp_try_begin(struct rp_try_session *s, struct rp_try_variant *v)
{
    char rest[RP_TRY_LINE] = "";
    long long ns = 0, compiled = 0, memory = 0;

    if (!rp_try_ready(s, v))
        return false;
    if (s->steps > 1) {
        send_run(v, 0, s->steps - 1);
        if (!rp_try_await(s, v, "ran", s->patience_ns, rest, sizeof rest))
            return false;
        sscanf(rest, "%*d %lld %lld %lld", &ns, &compiled, &memory);
    }
    v->early_step_ns = s->steps > 1 ? ns / (long long)(s->steps - 1) : v->early_ns;
    v->early_ns += ns;
    v->compiled = compiled;
    v->memory_bytes = memory;
    return rp_try_take_update(s, v, "update");
}

double rp_try_turn(struct rp_try_session *s, struct rp_try_variant *v, size_t n)
{
    long long ns = 0, compiled = 0, memory = 0;
    char rest[RP_TRY_LINE] = "";
    int64_t begun_ns = rp_clock_ns();

    send_run(v, 1, n);
    if (!rp_try_await(s, v, "warm", s->patience_ns, rest, sizeof rest))
        return NAN;
    v->spent_ns = -rp_try_child_processor_ns(v->child);
    v->timed_ns = -rp_clock_ns();
    rp_try_child_tell(v->child, "go\n");
    if (!rp_try_await(s, v, "ran", s->patience_ns, rest, sizeof rest))
        return NAN;
    v->timed_ns += rp_clock_ns();
    v->clock_ns = rp_clock_ns() - begun_ns;
    v->mhz = rp_try_clock_mhz(&s->clock);
    rp_try_child_freeze(v->child, true); /* at once: what goes on now is not timed */
    v->spent_ns += rp_try_child_processor_ns(v->child);
    sscanf(rest, "%*d %lld %lld %lld", &ns, &compiled, &memory);
    bool compiles = compiled != v->compiled;
    v->compiled = compiled;
    v->memory_bytes = memory > v->memory_bytes ? memory : v->memory_bytes;
    return compiles || ns <= 0 ? NAN : (double)ns / (double)n;
}
