/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `replay capture -- PROGRAM`: runs a JAX program with reprise-pjrt.so in front of its PJRT plugin,
 * so that programs, inputs and outputs of selected executions are kept. JAX finds plugins by
 *
 *     PJRT_NAMES_AND_LIBRARY_PATHS=name:path,...     JAX_PLATFORMS=name
 *
 * A plugin that the user named there keeps its name; otherwise the best one installed is used,
 * under the name "reprise".
 */
#include "cli/record.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *capture_setting(const struct cli_call *call, const char *name)
{
    return cli_setting(call->settings, call->nsettings, name);
}

/* Finds the best plugin that `replay engines` lists. */
static bool find_plugin(char *out, size_t cap, struct rp_err *err)
{
    static const struct rp_setting engines = {"action", "engines"};
    struct rp_ctx *ctx = NULL;
    struct rp_result *result = NULL;
    struct rp_rows rows;
    const char *name;
    bool present;

    *out = '\0';
    if (rp_ctx_new(NULL, &ctx, err) == RP_OK &&
        rp_ask(ctx, NULL, "replay", &engines, 1, &result, err) == RP_OK &&
        rp_result_rows(result, "engines", &rows))
        while (!*out && rp_rows_next(&rows))
            if (rp_row_text(&rows.row, "name", &name) && !strncmp(name, "pjrt:", 5) &&
                rp_row_bool(&rows.row, "present", &present) && present)
                snprintf(out, cap, "%s", name + 5);
    rp_result_free(result);
    rp_ctx_free(ctx);
    if (!*out && !err->text[0])
        snprintf(
            err->text, sizeof err->text,
            "no PJRT plugin was found: name one with --engine pjrt:FILE, or install one ('reprise "
            "replay engines --install' for the CPU, \"pip install 'jax[cuda13]'\" for NVIDIA GPUs)");
    return *out != '\0';
}

/* Replaces the first path in "name:path,..."; the old path goes to `plugin`. */
static bool take_users_plugin(const char *library, char *plugin, size_t cap)
{
    const char *list = getenv("PJRT_NAMES_AND_LIBRARY_PATHS"), *colon;
    char *all;

    if (!list || !(colon = strchr(list, ':')))
        return false;
    const char *end = colon + strcspn(colon, ",");
    if (snprintf(plugin, cap, "%.*s", (int)(end - colon - 1), colon + 1) >= (int)cap ||
        asprintf(&all, "%.*s:%s%s", (int)(colon - list), list, library, end) < 0)
        return false;
    setenv("PJRT_NAMES_AND_LIBRARY_PATHS", all, 1);
    free(all);
    return true;
}

static bool set_environment(const struct cli_call *call, const char *library, const char *folder,
                            struct rp_err *err)
{
    static const struct {
        const char *option, *key;
    } numbers[] = {
        {"first", "first"}, {"every", "every"}, {"slower", "slower"}, {"bytes", "bytes"}};
    const char *given = capture_setting(call, "engine"), *module = capture_setting(call, "module");
    char plugin[PATH_MAX], select[1024] = "", names[PATH_MAX + 128];
    size_t n = 0;
    bool named = false;

    if (given && !strncmp(given, "pjrt:", 5)) {
        snprintf(plugin, sizeof plugin, "%s", given + 5);
    } else if (take_users_plugin(library, plugin, sizeof plugin)) {
        named = true;
    } else if (!find_plugin(plugin, sizeof plugin, err)) {
        return false;
    }
    if (!named) {
        snprintf(names, sizeof names, "reprise:%s", library);
        setenv("PJRT_NAMES_AND_LIBRARY_PATHS", names, 1);
        setenv("JAX_PLATFORMS", "reprise", 1);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct rp_option *option = call->command->options;
        const char *text = capture_setting(call, numbers[i].option);

        while (strcmp(option->name, numbers[i].option) != 0)
            option++;
        n += (size_t)snprintf(select + n, sizeof select - n, "%s=%lld,", numbers[i].key,
                              (long long)rp_option_number(option, text ? text : option->fallback));
    }
    snprintf(select + n, sizeof select - n, "module=%.500s", module ? module : "*");
    setenv("REPRISE_PJRT_PLUGIN", plugin, 1);
    setenv("REPRISE_PJRT_FOLDER", folder, 1);
    setenv("REPRISE_PJRT_SELECT", select, 1);
    return true;
}

/* Counts captures in the lists of the folder, and those that were skipped. */
static void count_captures(const char *folder, size_t *made, size_t *skipped)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    *made = *skipped = 0;
    while (dir && (entry = readdir(dir)) != NULL) {
        size_t n = strlen(entry->d_name), room = 0;
        char path[PATH_MAX + 300], *line = NULL;

        if (n < 15 || strcmp(entry->d_name + n - 15, "-captures.jsonl") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *list = fopen(path, "r");
        while (list && getline(&line, &room, list) > 0)
            ++*(!strncmp(line, "{\"skipped\"", 10) ? skipped : made);
        free(line);
        if (list)
            fclose(list);
    }
    if (dir)
        closedir(dir);
}

int cli_capture(const struct cli_call *call)
{
    const char *save = capture_setting(call, "save") ? capture_setting(call, "save") : "captures";
    struct record r = {0};
    struct rp_err err = RP_ERR_INIT;
    char library[PATH_MAX + 64];
    size_t before, skipped_before, made, skipped;

    const char *engine = capture_setting(call, "engine");
    if (engine && strcmp(engine, "auto") != 0 && strncmp(engine, "pjrt:", 5) != 0) {
        snprintf(err.text, sizeof err.text,
                 "'replay capture' runs plugins: '--engine pjrt:FILE', not '%.500s'", engine);
        return cli_usage("replay", &err);
    }
    if (!call->nwords) {
        snprintf(err.text, sizeof err.text,
                 "'replay capture' needs a program: reprise replay capture -- PROGRAM");
        return cli_usage("replay", &err);
    }
    if ((mkdir(save, 0755) && errno != EEXIST) || !realpath(save, r.folder)) {
        snprintf(err.text, sizeof err.text, "cannot use folder '%.500s': %s", save,
                 strerror(errno));
        return cli_fail(RP_IO, &err);
    }
    if (!record_find_libraries(&r) ||
        snprintf(library, sizeof library, "%s/reprise-pjrt.so", r.libraries) < 0 ||
        access(library, R_OK)) {
        snprintf(err.text, sizeof err.text,
                 "the library reprise-pjrt.so is not installed: install the whole package, or set "
                 "REPRISE_CAPTURE_DIR to its folder");
        return cli_fail(RP_MISSING, &err);
    }
    if (!set_environment(call, library, r.folder, &err))
        return cli_fail(RP_MISSING, &err);
    count_captures(r.folder, &before, &skipped_before);
    int status = record_run(call->words, call->nwords);
    count_captures(r.folder, &made, &skipped);
    if (!cli_flag(call->common, call->ncommon, "quiet")) {
        fprintf(stderr, "reprise: %zu execution%s captured in '%s'", made - before,
                made - before == 1 ? "" : "s", save);
        if (skipped > skipped_before)
            fprintf(stderr, ", %zu skipped (its list says why)", skipped - skipped_before);
        fprintf(stderr,
                made > before ? "; 'reprise replay import %s --save FOLDER' packs them\n"
                              : "; was one selected, and does the program use JAX with a PJRT "
                                "plugin?\n",
                save);
    }
    return status;
}
