/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks `simulate` what it expects of the changes. The program is recorded once by `reprise record`
 * with the hook in it, which ends it after some steps; then `reprise simulate` is asked about each
 * change, with the step time that was measured without the recorder. Both are this program, in
 * processes of their own.
 */
#include "base/text.h"
#include "io/input.h"
#include "io/json_pull.h"
#include "try/session.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORDED_STEPS 12
#define SECOND         INT64_C(1000000000)

/* Finds this program if it is `reprise`, and not another program that uses the library. */
static bool find_self(char *out, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", out, cap - 1);

    out[n > 0 ? n : 0] = '\0';
    return rp_text_begins(rp_text_file(out), "reprise");
}

/* Records a program (NULL for the user's) behind the hook, into a folder in the scratch folder. */
static bool record(struct rp_try_session *s, const char *self, const struct rp_try_program *program,
                   const char *folder)
{
    const char *before[] = {self, "record", "-q", "-o", folder, "--", NULL};
    struct rp_try_mode mode = {.before = before};
    struct rp_try_variant *v = calloc(1, sizeof *v);
    size_t steps = s->steps;
    bool good = false;
    char line[RP_TRY_LINE];

    if (!v)
        return false;
    snprintf(v->name, sizeof v->name, "recording");
    v->program = program;
    s->steps = RECORDED_STEPS;
    rp_try_start(s, v, &mode);
    if (rp_try_begin(s, v)) {
        rp_try_child_freeze(v->child, false);
        rp_try_child_tell(v->child, "exit\n");
        rp_try_await(s, v, "nothing", 60 * SECOND, line, sizeof line); /* until it has ended */
        good = true;
    }
    s->steps = steps;
    rp_try_stop(v);
    free(v);
    return good;
}

/* Asks this program; the answer goes to a file. */
static bool ask(const char *answer, const char *const argv[10])
{
    char *words[10];
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        int out = open(answer, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(out, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
        memcpy(words, argv, sizeof words);
        execv(words[0], words);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool run_simulate(const char *self, const char *folder, const char *what_if, int64_t step_ns,
                         const char *answer)
{
    char step[32];

    snprintf(step, sizeof step, "%lld", (long long)step_ns);
    return ask(answer,
               (const char *const[10]){self, "simulate", folder, "--what-if", what_if, "--json",
                                       step_ns > 0 ? "--unprofiled-step" : NULL, step});
}

/* Reads one of "predictions"; an impossible change has none. `why` is set if it does not apply. */
static void read_prediction(struct rp_json *p, struct rp_try_variant *v)
{
    struct rp_json_token key, value;
    unsigned found = 0;
    bool no = false;

    if (rp_json_value(p, &value) != RP_JSON_OBJECT)
        return;
    while (rp_json_field(p, &key)) {
        double *to = rp_json_key_is(&key, "change_ratio")        ? &v->change
                     : rp_json_key_is(&key, "change_low_ratio")  ? &v->change_low
                     : rp_json_key_is(&key, "change_high_ratio") ? &v->change_high
                                                                 : NULL;

        if (rp_json_key_is(&key, "applies")) {
            no = rp_json_value(p, &value) == RP_JSON_STRING && rp_json_key_is(&value, "no");
        } else if (rp_json_key_is(&key, "because")) {
            if (rp_json_value(p, &value) == RP_JSON_STRING && no)
                snprintf(v->unfit, sizeof v->unfit, "%.*s", (int)value.len, value.text);
        } else if (!to) {
            rp_json_skip(p);
        } else if (rp_json_value(p, &value) == RP_JSON_NUMBER) {
            *to = strtod(value.text, NULL);
            found++;
        }
    }
    v->predicted = found == 3;
}

/* Opens an answer at the first element of one of its lists; NULL if it has none. */
static struct rp_json *open_list(const char *path, const char *list, struct rp_input **in)
{
    struct rp_json *p = NULL;
    struct rp_json_token token;

    if (rp_input_open(path, NULL, in, NULL) != RP_OK)
        return NULL;
    if (rp_json_open(*in, NULL, &p, NULL) == RP_OK && rp_json_value(p, &token) == RP_JSON_OBJECT)
        while (rp_json_field(p, &token)) {
            if (!rp_json_key_is(&token, list))
                rp_json_skip(p);
            else if (rp_json_value(p, &token) == RP_JSON_ARRAY)
                return p;
        }
    rp_json_close(p);
    rp_input_close(*in);
    return NULL;
}

void rp_try_read_answer(const char *path, struct rp_try_variant *v)
{
    struct rp_input *in = NULL;
    struct rp_json *p = open_list(path, "predictions", &in);

    if (!p)
        return;
    while (rp_json_element(p))
        read_prediction(p, v);
    rp_json_close(p);
    rp_input_close(in);
}

/* Reads one of the "rows" of `diff`: "aten::mm [512,1024]: 1.20 -> 0.60 ms"; NULL if nothing
   changed. */
static const char *read_change(struct rp_json *p, struct rp_arena *arena)
{
    const char *what = NULL, *shape = "", *change = "noise";
    double base = 0, now = 0;
    struct rp_json_token key, value;

    if (rp_json_value(p, &value) != RP_JSON_OBJECT)
        return NULL;
    while (rp_json_field(p, &key)) {
        const char **text = rp_json_key_is(&key, "what")     ? &what
                            : rp_json_key_is(&key, "shape")  ? &shape
                            : rp_json_key_is(&key, "change") ? &change
                                                             : NULL;
        double *number = rp_json_key_is(&key, "base_ns")  ? &base
                         : rp_json_key_is(&key, "new_ns") ? &now
                                                          : NULL;
        if (!text && !number) {
            rp_json_skip(p);
            continue;
        }
        switch (rp_json_value(p, &value)) {
        case RP_JSON_STRING:
            if (text)
                *text = rp_arena_textf(arena, "%.*s", (int)value.len, value.text);
            break;
        case RP_JSON_NUMBER:
            if (number)
                *number = strtod(value.text, NULL);
            break;
        default:
            break;
        }
    }
    if (!what || !strcmp(change, "noise") || !strcmp(change, "same") || !(base > 0 || now > 0))
        return NULL;
    return rp_arena_textf(arena, "%s%s%s: %.3g -> %.3g ms", what, *shape ? " " : "", shape,
                          base / 1e6, now / 1e6);
}

size_t rp_try_changed(struct rp_try_session *s, const struct rp_try_program *other,
                      struct rp_arena *arena, const char *out[RP_TRY_CHANGED])
{
    char self[PATH_MAX], answer[RP_TRY_PATH + 32], its[RP_TRY_PATH + 32];
    struct rp_input *in = NULL;
    struct rp_json *p;
    size_t n = 0;

    snprintf(answer, sizeof answer, "%s/answer", s->scratch);
    snprintf(its, sizeof its, "%s/recording%zu", s->scratch, s->started++);
    if (!find_self(self, sizeof self))
        return 0;
    if (!*s->recording) {
        snprintf(s->recording, sizeof s->recording, "%s/recording", s->scratch);
        if (!record(s, self, NULL, s->recording))
            return 0;
    }
    if (!record(s, self, other, its) ||
        !ask(answer, (const char *const[10]){self, "diff", "--json", its, s->recording}) ||
        !(p = open_list(answer, "rows", &in)))
        return 0;
    while (rp_json_element(p)) {
        const char *text = read_change(p, arena);

        if (text && n < RP_TRY_CHANGED)
            out[n++] = text;
    }
    rp_json_close(p);
    rp_input_close(in);
    return n;
}

void rp_try_what_if(const struct rp_try_variant *v, char *out, size_t cap)
{
    size_t n = 0;

    *out = '\0';
    for (size_t i = 0; i < v->nparts; i++) {
        if (!v->parts[i]->what_if || n >= cap) {
            *out = '\0';
            return;
        }
        n += (size_t)snprintf(out + n, cap - n, "%s%s", i ? "+" : "", v->parts[i]->what_if);
    }
}

bool rp_try_record(struct rp_try_session *s)
{
    char self[PATH_MAX];
    bool wanted = false;

    for (size_t i = 2; i < s->nvariants; i++)
        wanted |= s->variants[i].parts[0]->what_if != NULL;
    snprintf(s->recording, sizeof s->recording, "%s/recording", s->scratch);
    if (!wanted || !find_self(self, sizeof self) || !record(s, self, NULL, s->recording))
        s->recording[0] = '\0';
    return s->recording[0] != '\0';
}

void rp_try_predict(struct rp_try_session *s)
{
    char self[PATH_MAX], answer[RP_TRY_PATH + 32], what_if[RP_TRY_WHAT_IF];

    snprintf(answer, sizeof answer, "%s/answer", s->scratch);
    if (!s->recording[0] || !find_self(self, sizeof self))
        return;
    rp_try_session_goes_on(s, "predicting"); /* an interrupt counts, but not the end of the time */
    for (size_t i = 2; i < s->nvariants && !s->cancelled; i++) {
        struct rp_try_variant *v = &s->variants[i];

        rp_try_what_if(v, what_if, sizeof what_if);
        if (*what_if && !v->predicted &&
            run_simulate(self, s->recording, what_if, (int64_t)s->variants[0].usual_ns, answer))
            rp_try_read_answer(answer, v);
    }
}

void rp_try_look(struct rp_try_session *s)
{
    char self[PATH_MAX], answer[RP_TRY_PATH + 32], what_if[RP_TRY_WHAT_IF];

    snprintf(answer, sizeof answer, "%s/answer", s->scratch);
    if (!s->recording[0] || !find_self(self, sizeof self))
        return;
    for (size_t i = 2; i < s->nvariants && rp_try_session_goes_on(s, "predicting"); i++) {
        struct rp_try_variant *v = &s->variants[i];

        rp_try_what_if(v, what_if, sizeof what_if);
        if (*what_if && run_simulate(self, s->recording, what_if, 0, answer))
            rp_try_read_answer(answer, v);
        v->predicted = false; /* the time of its step without the recorder is not yet known */
    }
}
