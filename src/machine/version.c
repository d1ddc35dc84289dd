/* SPDX-License-Identifier: Apache-2.0 */
/* `version` prints the version and the optional libraries of this build. */
#include "dataset/question.h"
#include "machine/features.h"

#include "rp_config.h"

#include <stdbool.h>

struct feature_row {
    const char *name, *version, *purpose, *hint;
    bool present;
};

struct version_root {
    const char *version, *machine, *compiler, *build;
    size_t nfeatures;
    struct feature_row *features;
};

static const struct rp_field feature_fields[] = {
    RP_FIELD(struct feature_row, name, STR, NONE, "library", "the optional library", 0),
    RP_FIELD(struct feature_row, present, BOOL, NONE, "in", "whether it is compiled in", 0),
    RP_FIELD(struct feature_row, version, STR, NONE, "version", "version of the library in use", 0),
    RP_FIELD(struct feature_row, purpose, STR, NONE, "for", "what it is used for", 0),
    RP_FIELD(struct feature_row, hint, STR, NONE, "how to get it",
             "what to install where it is missing", 0),
    RP_FIELD_END};
static const struct rp_type feature_type = {"feature", sizeof(struct feature_row), feature_fields,
                                            NULL};

static const struct rp_field version_fields[] = {
    RP_FIELD(struct version_root, version, STR, NONE, "reprise", "the version of reprise", 0),
    RP_FIELD(struct version_root, machine, STR, NONE, "machine", "architecture it was built for",
             0),
    RP_FIELD(struct version_root, compiler, STR, NONE, "compiler", "compiler it was built with", 0),
    RP_FIELD(struct version_root, build, STR, NONE, "build", "the build type", 0),
    RP_FIELD_LIST(struct version_root, features, &feature_type, "libraries",
                  "optional libraries of this build", 0),
    RP_FIELD_END};
static const struct rp_type version_type = {"version", sizeof(struct version_root), version_fields,
                                            "features"};

static enum rp_code version_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                const struct rp_settings *settings, struct rp_result *result,
                                struct rp_err *err)
{
    struct version_root *root = result->root;
    size_t n;

    (void)ctx;
    (void)dataset;
    (void)settings;
    const struct rp_feature *feature = rp_feature_list(&n);
    root->version = RP_VERSION;
    root->machine = RP_MACHINE;
    root->compiler = RP_COMPILER;
    root->build =
        RP_SANITIZERS[0] ? RP_BUILD_TYPE " with sanitizers " RP_SANITIZERS : RP_BUILD_TYPE;
    root->features = RP_ARENA_NEW(&result->arena, struct feature_row, n);
    RP_TRY(rp_err_need(root->features, err, "listing features"));
    root->nfeatures = n;
    for (size_t i = 0; i < n; i++, feature++) {
        struct feature_row *row = &root->features[i];

        row->name = feature->name;
        row->present = feature->present;
        row->version = feature->present ? feature->version() : NULL;
        row->purpose = feature->purpose;
        if (!feature->present)
            row->hint = rp_arena_textf(&result->arena, "install %s, build again", feature->package);
    }
    return rp_arena_check(&result->arena, "listing features", err);
}

static const struct rp_option version_options[] = {RP_OPTION_END};

const struct rp_question_row rp_ask_version = {
    .question = {.name = "version",
                 .group = "other",
                 .summary = "the version, and the optional libraries of this build",
                 .details =
                     "Optional libraries are detected when reprise is built. A feature whose "
                     "library is missing reports that when it is used.",
                 .examples =
                     "reprise version\tlibraries that are compiled in, and those that are missing\n"
                     "reprise version --json\tthe same, for scripts\n",
                 .accepts = RP_ACCEPTS_NOTHING,
                 .options = version_options,
                 .type = &version_type},
    .run = version_run};
