/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps rows of earlier calls for --resume: one file in the user's cache for each program and
 * folder in which it was started. Each line is a row, whose fields are separated by tabs.
 */
#include "base/sha256.h"
#include "io/output.h"
#include "try/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FIELDS 15

static bool store_path(const struct rp_try_session *s, char *out, size_t cap, bool make)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[PATH_MAX - 128], name[RP_SHA256_TEXT];
    struct rp_sha256 hash;

    if (cache && *cache)
        snprintf(folder, sizeof folder, "%s/reprise/try", cache);
    else if (home && *home)
        snprintf(folder, sizeof folder, "%s/.cache/reprise/try", home);
    else
        return false;
    for (char *slash = strchr(folder + 1, '/'); make && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0755);
        *slash = '/';
    }
    if (make)
        mkdir(folder, 0755);
    rp_sha256_begin(&hash);
    rp_sha256_add(&hash, s->cwd, strlen(s->cwd) + 1);
    for (size_t i = 0; i < s->nwords; i++)
        rp_sha256_add(&hash, s->words[i], strlen(s->words[i]) + 1);
    rp_sha256_text(&hash, name);
    return snprintf(out, cap, "%s/%.32s.tsv", folder, name) < (int)cap;
}

static bool is_worth_keeping(const struct rp_try_variant *v)
{
    return v->state == RP_TRY_MEASURED || v->state == RP_TRY_REFUSED ||
           v->state == RP_TRY_EARLIER ||
           (v->state == RP_TRY_FAILED && !strstr(v->why, "interrupted") && !strstr(v->why, "time"));
}

void rp_try_store_write(const struct rp_try_session *s)
{
    char path[PATH_MAX];
    struct rp_out *out;

    if (!store_path(s, path, sizeof path, true) || rp_out_open(path, &out, NULL) != RP_OK)
        return;
    for (size_t i = 2; i < s->nvariants; i++) {
        const struct rp_try_variant *v = &s->variants[i];
        bool failed = v->state == RP_TRY_FAILED || v->state == RP_TRY_REFUSED;

        if (is_worth_keeping(v))
            rp_out_printf(out,
                          "%s\t%d\t%d\t%.17g\t%.17g\t%.17g\t%.17g\t%lld\t%d\t%d\t%.17g\t%d\t%.17g\t"
                          "%.17g\t%.17g\t%s\n",
                          v->name, failed ? (int)v->state : RP_TRY_EARLIER, (int)v->verdict,
                          v->interval.median, v->interval.low, v->interval.high, v->usual_ns,
                          (long long)v->startup_ns, v->judged, v->exact + 2 * v->differs,
                          v->update_ratio, v->predicted, v->change, v->change_low, v->change_high,
                          v->why);
    }
    if (rp_out_close(out, NULL) != RP_OK)
        return;
}

static void fill(struct rp_try_variant *v, char *const *field)
{
    v->state = (enum rp_try_state)atoi(field[1]);
    v->verdict = (enum rp_try_verdict)atoi(field[2]);
    v->interval = (struct rp_try_interval){strtod(field[3], NULL), strtod(field[4], NULL),
                                           strtod(field[5], NULL)};
    v->usual_ns = strtod(field[6], NULL);
    v->startup_ns = strtoll(field[7], NULL, 10);
    v->judged = atoi(field[8]);
    v->exact = atoi(field[9]) & 1;
    v->differs = atoi(field[9]) & 2;
    v->update_ratio = strtod(field[10], NULL);
    v->update_steps = SIZE_MAX; /* not kept */
    v->predicted = atoi(field[11]);
    v->change = strtod(field[12], NULL);
    v->change_low = strtod(field[13], NULL);
    v->change_high = strtod(field[14], NULL);
    snprintf(v->why, sizeof v->why, "%s", field[15]);
}

void rp_try_store_read(struct rp_try_session *s)
{
    char path[PATH_MAX], line[4096], *field[FIELDS + 1];
    FILE *f = store_path(s, path, sizeof path, false) ? fopen(path, "re") : NULL;

    while (f && fgets(line, sizeof line, f)) {
        char *at = line;
        size_t n = 0;

        line[strcspn(line, "\n")] = '\0';
        while (n < FIELDS + 1 && (field[n] = strsep(&at, "\t")))
            n++;
        for (size_t i = 2; i < s->nvariants && n == FIELDS + 1; i++)
            if (!strcmp(s->variants[i].name, field[0]) && s->variants[i].state == RP_TRY_WAITING)
                fill(&s->variants[i], field);
    }
    if (f)
        fclose(f);
}
