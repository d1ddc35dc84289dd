/* SPDX-License-Identifier: Apache-2.0 */
/* There are few models and they never leave the list, so a caller who has one may use it without a
   lock. */
#include "dataset/models.h"

#include "base/vec.h"
#include "cost/learn/learned.h"
#include "dataset/dataset.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct known_model {
    char *path;        /* NULL: built in */
    struct stat state; /* the state of the file when it was read */
    struct rp_learned model;
};

struct rp_models {
    pthread_mutex_t lock;
    RP_VEC(struct known_model *) list;
};

enum rp_code rp_models_new(struct rp_models **out, struct rp_err *err)
{
    *out = calloc(1, sizeof **out);
    RP_TRY(rp_err_need(*out, err, "making a context"));
    pthread_mutex_init(&(*out)->lock, NULL);
    return RP_OK;
}

static void known_model_free(struct known_model *known)
{
    rp_learned_release(&known->model);
    free(known->path);
    free(known);
}

void rp_models_free(struct rp_models *models)
{
    if (!models)
        return;
    for (size_t i = 0; i < models->list.n; i++)
        known_model_free(models->list.at[i]);
    rp_vec_release(&models->list);
    pthread_mutex_destroy(&models->lock);
    free(models);
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static const struct known_model *find_model(const struct rp_models *models, const char *path,
                                            const struct stat *state)
{
    for (size_t i = 0; i < models->list.n; i++) {
        const struct known_model *known = models->list.at[i];

        if (path ? known->path && !strcmp(known->path, path) && is_unchanged(&known->state, state)
                 : !known->path)
            return known;
    }
    return NULL;
}

static enum rp_code add_model(struct rp_models *models, const char *path, const struct stat *state,
                              struct rp_err *err)
{
    struct known_model *known = calloc(1, sizeof *known);
    enum rp_code code = rp_err_need(known, err, "reading a cost model");

    if (code == RP_OK && path && !(known->path = strdup(path)))
        code = rp_err_nomem(err, "reading a cost model");
    if (code == RP_OK)
        code = path ? rp_learned_read(&known->model, path, err)
                    : rp_learned_builtin(&known->model, err);
    if (code == RP_OK) {
        known->state = *state;
        code = rp_vec_push(&models->list, known, err);
    }
    if (code != RP_OK && known)
        known_model_free(known);
    return code;
}

enum rp_code rp_ctx_borrow_model(struct rp_ctx *ctx, const char *path,
                                 const struct rp_learned **out, struct rp_err *err)
{
    struct rp_models *models = ctx->models;
    struct stat state = {0};
    enum rp_code code = RP_OK;

    if (path)
        (void)!stat(path, &state); /* a failure is reported by the reader */
    pthread_mutex_lock(&models->lock);
    const struct known_model *known = find_model(models, path, &state);
    if (!known) {
        code = add_model(models, path, &state, err);
        known = code == RP_OK ? models->list.at[models->list.n - 1] : NULL;
    }
    pthread_mutex_unlock(&models->lock);
    *out = known ? &known->model : NULL;
    return code;
}
