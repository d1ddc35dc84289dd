/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees on the base of a fit: trained by XGBoost, which is loaded when it is needed, with
 * constraints that keep them monotone in all sizes; kept as plain nodes and evaluated here, so that
 * predictions do not need it. One thread and a fixed seed: the same rows give the same trees.
 */
#include "abi/xgboost.h"
#include "base/decides.h"
#include "cost/learn/learned.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TREES 120
RP_DECISION(TREES, "trees",
            "chosen with their parameters below by model test: errors in docs/cli/model.md",
            "cost/trees_add_to_a_slope");
/* Part of the base's slope that the trees start from: they can add to a slope, but not reduce it.
 */
#define SLOPE 0.6
RP_DECISION(SLOPE, "of the slope of the curves",
            "chosen with the parameters of trees by model test", "cost/trees_add_to_a_slope");
#define MOST_DEPTH 64
RP_LIMIT(MOST_DEPTH, "levels", "a tree that is deeper is refused: max_depth asks for 5");

static const char *const parameters[][2] = {{"objective", "reg:squarederror"},
                                            {"eta", "0.12"},
                                            {"max_depth", "5"},
                                            {"min_child_weight", "2"},
                                            {"subsample", "0.8"},
                                            {"colsample_bytree", "0.8"},
                                            {"base_score", "0"},
                                            {"seed", "1"},
                                            {"nthread", "1"},
                                            {"verbosity", "0"}};

struct xgb {
    void *library;
    xgb_last_error_fn *last_error;
    xgb_matrix_create_fn *matrix_create;
    xgb_matrix_set_fn *matrix_set;
    xgb_matrix_free_fn *matrix_free;
    xgb_booster_create_fn *booster_create;
    xgb_booster_param_fn *booster_param;
    xgb_booster_update_fn *booster_update;
    xgb_booster_dump_fn *booster_dump;
    xgb_booster_free_fn *booster_free;
};

double rp_fit_trees_at(const struct rp_fit *fit, const struct rp_features *x)
{
    const struct rp_learned_node *nodes = fit->nodes.at;
    double sum = 0;
    size_t i;

    for (i = 0; i < fit->trees.n; i++) {
        uint32_t at = fit->trees.at[i];

        while (nodes[at].feature < RP_FEATURES_MAX)
            at = x->x[nodes[at].feature] < nodes[at].at ? at + 1 : nodes[at].right;
        sum += (double)nodes[at].at;
    }
    return sum;
}

/* ------------------------------------------------------------------ the library */

static enum rp_code xgb_load(struct xgb *x, struct rp_err *err)
{
    static const char *const names[] = {"libxgboost.so.0", "libxgboost.so", "libxgboost.so.1"};
    const char *own = getenv("REPRISE_XGBOOST");
    size_t i;

    *x = (struct xgb){0};
    if (own && *own)
        x->library = dlopen(own, RTLD_NOW | RTLD_LOCAL);
    for (i = 0; !x->library && i < sizeof names / sizeof names[0]; i++)
        x->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!x->library)
        return rp_err_set(err, RP_MISSING,
                          "trees need XGBoost: install libxgboost0, set REPRISE_XGBOOST to its "
                          "libxgboost.so, or use '--method builtin'");
#define LOAD(member, name) *(void **)&x->member = dlsym(x->library, name)
    LOAD(last_error, "XGBGetLastError");
    LOAD(matrix_create, "XGDMatrixCreateFromMat");
    LOAD(matrix_set, "XGDMatrixSetFloatInfo");
    LOAD(matrix_free, "XGDMatrixFree");
    LOAD(booster_create, "XGBoosterCreate");
    LOAD(booster_param, "XGBoosterSetParam");
    LOAD(booster_update, "XGBoosterUpdateOneIter");
    LOAD(booster_dump, "XGBoosterDumpModel");
    LOAD(booster_free, "XGBoosterFree");
#undef LOAD
    if (!x->last_error || !x->matrix_create || !x->matrix_set || !x->matrix_free ||
        !x->booster_create || !x->booster_param || !x->booster_update || !x->booster_dump ||
        !x->booster_free) {
        dlclose(x->library);
        return rp_err_set(err, RP_MISSING, "the XGBoost library lacks functions of version 1");
    }
    return RP_OK;
}

/* It stays loaded: its threads may outlive a dlclose. */
enum rp_code rp_trees_available(struct rp_err *err)
{
    struct xgb x;

    return xgb_load(&x, err);
}

static enum rp_code xgb_check(const struct xgb *x, int result, struct rp_err *err)
{
    return result == 0 ? RP_OK : rp_err_set(err, RP_MISSING, "XGBoost: %s", x->last_error());
}

/* ------------------------------------------------------------------ trees as text */

struct dumped_node {
    int feature, yes, no;
    float at;
};

/* "3:[f2<0.5] yes=7,no=8,missing=7" or "4:leaf=0.25", a line each. */
static enum rp_code parse_dump(const char *text, struct dumped_node *nodes, int cap,
                               struct rp_err *err)
{
    int id, used, i;

    for (i = 0; i < cap; i++)
        nodes[i].yes = -2;
    while (*text) {
        struct dumped_node node = {.feature = -1, .yes = -1, .no = -1};

        text += strspn(text, "\t\n ");
        if (!*text)
            break;
        if (sscanf(text, "%d:[f%d<%f] yes=%d,no=%d%n", &id, &node.feature, &node.at, &node.yes,
                   &node.no, &used) != 5 &&
            sscanf(text, "%d:leaf=%f%n", &id, &node.at, &used) != 2)
            return rp_err_set(err, RP_MISSING, "XGBoost wrote a tree that is not understood");
        if (id < 0 || id >= cap)
            return rp_err_set(err, RP_MISSING, "XGBoost wrote a tree that is too large");
        nodes[id] = node;
        text += used;
        text += strcspn(text, "\n");
    }
    return RP_OK;
}

static enum rp_code add_node(struct rp_fit *fit, const struct dumped_node *nodes, int cap, int id,
                             int depth, struct rp_err *err)
{
    struct rp_learned_node node = {.feature = RP_FEATURES_MAX};
    size_t at = fit->nodes.n;

    if (id < 0 || id >= cap || depth > MOST_DEPTH || nodes[id].yes == -2)
        return rp_err_set(err, RP_MISSING, "XGBoost wrote a tree that is not understood");
    node.at = nodes[id].at;
    RP_TRY(rp_vec_push(&fit->nodes, node, err));
    if (nodes[id].feature < 0)
        return RP_OK;
    RP_TRY(add_node(fit, nodes, cap, nodes[id].yes, depth + 1, err));
    fit->nodes.at[at].feature = (uint8_t)nodes[id].feature;
    fit->nodes.at[at].right = (uint32_t)fit->nodes.n;
    return add_node(fit, nodes, cap, nodes[id].no, depth + 1, err);
}

static enum rp_code keep_trees(const struct xgb *x, void *booster, struct rp_fit *fit,
                               struct rp_err *err)
{
    enum { CAP = 4096 };
    struct dumped_node *nodes = malloc(CAP * sizeof *nodes);
    const char **texts = NULL;
    uint64_t n = 0, i;
    enum rp_code code = nodes ? xgb_check(x, x->booster_dump(booster, "", 0, &n, &texts), err)
                              : rp_err_nomem(err, "training trees");

    for (i = 0; code == RP_OK && i < n; i++) {
        code = parse_dump(texts[i], nodes, CAP, err);
        if (code == RP_OK)
            code = rp_vec_push(&fit->trees, (uint32_t)fit->nodes.n, err);
        if (code == RP_OK)
            code = add_node(fit, nodes, CAP, 0, 0, err);
    }
    free(nodes);
    return code;
}

/* ------------------------------------------------------------------ training */

static enum rp_code set_parameters(const struct xgb *x, void *booster, const struct rp_features *f,
                                   struct rp_err *err)
{
    char constraints[4 * RP_FEATURES_MAX] = "(";
    size_t i;

    for (i = 0; i < f->n; i++)
        strcat(constraints, i < f->nsizes ? i ? ",1" : "1" : ",0");
    strcat(constraints, ")");
    for (i = 0; i < sizeof parameters / sizeof parameters[0]; i++)
        RP_TRY(xgb_check(x, x->booster_param(booster, parameters[i][0], parameters[i][1]), err));
    return xgb_check(x, x->booster_param(booster, "monotone_constraints", constraints), err);
}

static enum rp_code train_booster(const struct xgb *x, void *matrix, const struct rp_features *f,
                                  struct rp_fit *fit, struct rp_err *err)
{
    void *booster = NULL;
    enum rp_code code = xgb_check(x, x->booster_create(&matrix, 1, &booster), err);
    int i;

    RP_TRY(code);
    code = set_parameters(x, booster, f, err);
    for (i = 0; code == RP_OK && i < TREES; i++)
        code = xgb_check(x, x->booster_update(booster, i, matrix), err);
    if (code == RP_OK)
        code = keep_trees(x, booster, fit, err);
    x->booster_free(booster);
    return code;
}

/* The curves with smaller slopes; on average they are right. */
static void set_slopes(struct rp_fit *fit, const struct rp_fit_rows *rows)
{
    size_t i, k;

    for (k = 0; k < fit->curves.n; k++) {
        struct rp_curve *c = &fit->curves.at[k];
        double sum = 0, n = 0;

        c->slope *= SLOPE;
        for (i = 0; i < c->pieces.n; i++)
            c->pieces.at[i].gain *= (float)SLOPE;
        for (i = 0; i < rows->n; i++)
            if (rp_fit_curve(fit, rows->x[i], rows->type[i]) == c) {
                sum += rows->y[i] - rp_curve_at(c, rows->x[i], rp_curve_base(c, rows->x[i]));
                n++;
            }
        c->bias += n > 0 ? sum / n : 0;
    }
}

enum rp_code rp_fit_trees_to(struct rp_fit *fit, const struct rp_fit_rows *rows, struct rp_err *err)
{
    size_t columns = rows->x[0]->n, i;
    float *data = calloc(rows->n * columns + 1, sizeof *data);
    float *labels = calloc(rows->n + 1, sizeof *labels);
    void *matrix = NULL;
    struct xgb x;
    enum rp_code code = data && labels ? xgb_load(&x, err) : rp_err_nomem(err, "training trees");

    if (code == RP_OK)
        code = rp_fit_curves_to(fit, rows, true, err);
    if (code == RP_OK) {
        set_slopes(fit, rows);
        for (i = 0; i < rows->n; i++) {
            const struct rp_curve *c = rp_fit_curve(fit, rows->x[i], rows->type[i]);
            double base = rp_curve_base(c, rows->x[i]);

            memcpy(data + i * columns, rows->x[i]->x, columns * sizeof *data);
            labels[i] = (float)(rows->y[i] - rp_curve_at(c, rows->x[i], base));
        }
        code = xgb_check(&x, x.matrix_create(data, rows->n, columns, NAN, &matrix), err);
        if (code == RP_OK)
            code = xgb_check(&x, x.matrix_set(matrix, "label", labels, rows->n), err);
        if (code == RP_OK)
            code = train_booster(&x, matrix, rows->x[0], fit, err);
        if (matrix)
            x.matrix_free(matrix);
    }
    free(data);
    free(labels);
    return code;
}
