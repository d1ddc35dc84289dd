/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine tf runs a GraphDef on the real TensorFlow, through the C interface of its library. The
 * graph's feeds are the arguments and its fetches the outputs; a BladeDISC capture comes here as a
 * graph with one call of its function. Only the session's run is timed. It works in a child process
 * as PJRT plugins do (exec/worker/worker.h): the library prints when it is loaded.
 */
#include "exec/worker/engine.h"
#include "base/clock.h"
#include "exec/engine/engine.h"
#include "exec/tf/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tf_exe {
    struct rp_worker_exe exe;

    /* state for the worker */
    struct rp_tf tf;
    void *status, *graph, *session;
    struct rp_tf_port *feeds, *fetches;
    const void **assigns; /* operations that set variables; nvariables of them */
    void **inputs, **outputs;
    size_t nfeeds, nfetches, nvariables; /* the last ones of the feeds are those of variables */
};

/* ---- in the process that has the library ---- */

/* "name:2", or "name" for its first output. */
static enum rp_code find_port(struct tf_exe *x, const char *name, struct rp_tf_port *out,
                              struct rp_err *err)
{
    const char *colon = strrchr(name, ':');
    char *plain = strndup(name, colon ? (size_t)(colon - name) : strlen(name));

    RP_TRY(rp_err_need(plain, err, "finding a tensor"));
    out->operation = x->tf.graph_find(x->graph, plain);
    out->index = colon ? atoi(colon + 1) : 0;
    free(plain);
    if (!out->operation)
        return rp_err_set(err, RP_FORMAT, "the graph has no operation for the tensor '%s'", name);
    if (out->index < 0 || out->index >= x->tf.operation_outputs(out->operation))
        return rp_err_set(err, RP_FORMAT, "the operation of '%s' has %d outputs", name,
                          x->tf.operation_outputs(out->operation));
    return RP_OK;
}

/* Finds what sets the variables whose values come with the arguments. */
static enum rp_code find_assigns(struct tf_exe *x, struct rp_err *err)
{
    const struct rp_engine_program *p = x->exe.program;

    x->nvariables = p->nvariables;
    x->assigns = calloc(x->nvariables + 1, sizeof *x->assigns);
    RP_TRY(rp_err_need(x->assigns, err, "preparing a graph"));
    for (size_t i = 0; i < x->nvariables; i++) {
        const char *feed = p->feeds[x->nfeeds - x->nvariables + i];
        char name[512];

        snprintf(name, sizeof name, "%.*s/assign", (int)strcspn(feed, ":"), feed);
        x->assigns[i] = x->tf.graph_find(x->graph, name);
        if (!x->assigns[i])
            return rp_err_set(err, RP_FORMAT, "the graph has no operation '%s'", name);
    }
    return RP_OK;
}

/* The graph of a SavedModel comes with its session, whose variables are restored from files. */
static enum rp_code start_session(struct tf_exe *x, struct rp_err *err)
{
    static const char *const tags[] = {"serve"};
    const char *folder = x->exe.program->saved_folder;
    void *options = x->tf.options_new();

    if (folder)
        x->session = x->tf.session_load(options, NULL, folder, tags, 1, x->graph, NULL, x->status);
    else
        x->session = x->tf.session_new(x->graph, options, x->status);
    x->tf.options_free(options);
    return rp_tf_check(&x->tf, x->status, RP_MISSING, err);
}

static enum rp_code tf_open(void *self, struct rp_worker_facts *facts, struct rp_err *err)
{
    struct tf_exe *x = self;
    int64_t begin = rp_clock_ns();

    setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0); /* does not override the user's own choice */
    RP_TRY(rp_tf_load(x->exe.path, &x->tf, err));
    x->status = x->tf.status_new();
    int64_t loaded = rp_clock_ns();
    x->graph = x->tf.graph_new();
    if (!x->exe.program->saved_folder) {
        struct rp_tf_buffer graph = {x->exe.program->module, x->exe.program->nmodule, NULL};
        void *options = x->tf.import_new();

        x->tf.graph_import(x->graph, &graph, options, x->status);
        x->tf.import_free(options);
        RP_TRY(rp_tf_check(&x->tf, x->status, RP_FORMAT, err));
    }
    RP_TRY(start_session(x, err));

    const struct rp_engine_program *p = x->exe.program;
    x->nfeeds = p->nfeeds;
    x->nfetches = p->nfetches;
    x->feeds = calloc(x->nfeeds + 1, sizeof *x->feeds);
    x->fetches = calloc(x->nfetches + 1, sizeof *x->fetches);
    x->inputs = calloc(x->nfeeds + 1, sizeof *x->inputs);
    x->outputs = calloc(x->nfetches + 1, sizeof *x->outputs);
    RP_TRY(
        rp_err_need(x->feeds && x->fetches && x->inputs && x->outputs, err, "preparing a graph"));
    for (size_t i = 0; i < x->nfeeds; i++)
        RP_TRY(find_port(x, p->feeds[i], &x->feeds[i], err));
    for (size_t i = 0; i < x->nfetches; i++)
        RP_TRY(find_port(x, p->fetches[i], &x->fetches[i], err));
    RP_TRY(find_assigns(x, err));

    facts->load_ns = loaded - begin;
    facts->compile_ns = rp_clock_ns() - loaded;
    facts->narguments = x->nfeeds;
    facts->noutputs = x->nfetches;
    facts->devices = 1;
    facts->can_profile = true;
    snprintf(facts->platform, sizeof facts->platform, "tensorflow");
    snprintf(facts->version, sizeof facts->version, "%s", x->tf.version());
    snprintf(facts->device, sizeof facts->device, "TensorFlow %.80s", x->tf.version());
    return RP_OK;
}

static enum rp_code assign_variables(struct tf_exe *x, struct rp_err *err)
{
    size_t first = x->nfeeds - x->nvariables;

    x->tf.session_run(x->session, NULL, x->feeds + first, x->inputs + first, (int)x->nvariables,
                      NULL, NULL, 0, x->assigns, (int)x->nvariables, NULL, x->status);
    return rp_tf_check(&x->tf, x->status, RP_IO, err);
}

static enum rp_code tf_upload(void *self, struct rp_tensor *const *arguments, struct rp_err *err)
{
    struct tf_exe *x = self;

    for (size_t i = 0; i < x->nfeeds; i++) {
        const struct rp_tensor *t = arguments[i];
        int type = rp_tf_type(t->elem), want = x->tf.operation_type(x->feeds[i]);
        char shape[512];

        rp_tensor_shape_text(t, shape, sizeof shape);
        if (!type || (want != type && want % 100 != type)) /* types of references are 100 higher */
            return rp_err_set(err, RP_FORMAT, "argument %zu, '%s', is %s; the graph expects %s", i,
                              x->exe.program ? x->exe.program->feeds[i] : "", shape,
                              rp_elem_name(rp_tf_elem(want % 100))
                                  ? rp_elem_name(rp_tf_elem(want % 100))
                                  : "another type");
        void *tensor = x->tf.tensor_new(type, t->dims, (int)t->rank, rp_tensor_bytes(t));
        RP_TRY(rp_err_need(tensor, err, "sending an argument"));
        if (rp_tensor_bytes(t))
            memcpy(x->tf.tensor_data(tensor), t->data, rp_tensor_bytes(t));
        if (x->inputs[i])
            x->tf.tensor_free(x->inputs[i]);
        x->inputs[i] = tensor;
    }
    return x->nvariables ? assign_variables(x, err) : RP_OK;
}

static void drop_outputs(struct tf_exe *x)
{
    for (size_t i = 0; x->outputs && i < x->nfetches; i++) {
        if (x->outputs[i])
            x->tf.tensor_free(x->outputs[i]);
        x->outputs[i] = NULL;
    }
}

static enum rp_code run_with(struct tf_exe *x, const struct rp_tf_buffer *options,
                             struct rp_tf_buffer *metadata, int64_t *ns, struct rp_err *err)
{
    drop_outputs(x);
    int64_t begin = rp_clock_ns();
    x->tf.session_run(x->session, options, x->feeds, x->inputs, (int)(x->nfeeds - x->nvariables),
                      x->fetches, x->outputs, (int)x->nfetches, NULL, 0, metadata, x->status);
    *ns = rp_clock_ns() - begin;
    return rp_tf_check(&x->tf, x->status, RP_IO, err);
}

static enum rp_code tf_run(void *self, int64_t *ns, struct rp_err *err)
{
    return run_with(self, NULL, NULL, ns, err);
}

static enum rp_code fetch_one(struct tf_exe *x, const void *tensor, struct rp_tensor **out,
                              struct rp_err *err)
{
    unsigned elem = rp_tf_elem(x->tf.tensor_type(tensor));
    int rank = x->tf.tensor_ndims(tensor);
    int64_t dims[RP_TENSOR_RANK];

    if (elem == RP_ELEM_INVALID || rank < 0 || rank > RP_TENSOR_RANK)
        return rp_err_set(err, RP_UNSUPPORTED, "unsupported: TensorFlow type %d with %d dimensions",
                          x->tf.tensor_type(tensor), rank);
    for (int i = 0; i < rank; i++)
        dims[i] = x->tf.tensor_dim(tensor, i);
    RP_TRY(rp_tensor_new(elem, dims, (size_t)rank, out, err));
    if (x->tf.tensor_bytes(tensor) != rp_tensor_bytes(*out))
        return rp_err_set(err, RP_UNSUPPORTED, "%zu bytes instead of %zu",
                          x->tf.tensor_bytes(tensor), rp_tensor_bytes(*out));
    if (rp_tensor_bytes(*out))
        memcpy((*out)->data, x->tf.tensor_data(tensor), rp_tensor_bytes(*out));
    return RP_OK;
}

static enum rp_code tf_fetch(void *self, struct rp_tensor **outputs, struct rp_err *err)
{
    struct tf_exe *x = self;
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < x->nfetches; i++)
        outputs[i] = NULL;
    for (size_t i = 0; i < x->nfetches && code == RP_OK; i++) {
        code = x->outputs[i] ? fetch_one(x, x->outputs[i], &outputs[i], err)
                             : rp_err_set(err, RP_IO, "the program has not run yet");
        if (code != RP_OK)
            rp_err_prefix(err, code, "output %zu", i);
    }
    for (size_t i = 0; code != RP_OK && i < x->nfetches; i++) {
        rp_tensor_drop(outputs[i]);
        outputs[i] = NULL;
    }
    return code;
}

/* Gives the RunMetadata of the last run, because that format holds one step. */
static enum rp_code tf_profile(void *self, unsigned runs, uint8_t **bytes, size_t *n,
                               struct rp_err *err)
{
    static const uint8_t full_trace[] = {0x08, 0x03};
    struct rp_tf_buffer options = {full_trace, sizeof full_trace, NULL};
    struct tf_exe *x = self;
    enum rp_code code = RP_OK;
    int64_t ns;

    for (unsigned i = 1; i < runs && code == RP_OK; i++)
        code = run_with(x, &options, NULL, &ns, err);
    RP_TRY(code);
    struct rp_tf_buffer *metadata = x->tf.buffer_new();
    code = metadata ? run_with(x, &options, metadata, &ns, err)
                    : rp_err_nomem(err, "profiling a graph");
    if (code == RP_OK) {
        *bytes = malloc(metadata->n + 1);
        code = rp_err_need(*bytes, err, "profiling a graph");
    }
    if (code == RP_OK && metadata->n)
        memcpy(*bytes, metadata->data, metadata->n);
    *n = code == RP_OK ? metadata->n : 0;
    if (metadata)
        x->tf.buffer_free(metadata);
    return code;
}

static void tf_close(void *self)
{
    struct tf_exe *x = self;

    drop_outputs(x);
    for (size_t i = 0; x->inputs && i < x->nfeeds; i++)
        if (x->inputs[i])
            x->tf.tensor_free(x->inputs[i]);
    if (x->session) {
        x->tf.session_close(x->session, x->status);
        x->tf.session_free(x->session, x->status);
    }
    if (x->graph)
        x->tf.graph_free(x->graph);
    if (x->status)
        x->tf.status_free(x->status);
    free(x->feeds);
    free(x->assigns);
    free(x->fetches);
    free(x->inputs);
    free(x->outputs);
}

/* ---- before the worker starts ---- */

static enum rp_code tf_prepare(struct rp_worker_exe *exe, struct rp_err *err)
{
    if (!exe->program->module || !exe->program->nfetches)
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "not a graph for TensorFlow, which takes a GraphDef, a SavedModel or BladeDISC's "
            "pair, with the tensors to fetch");
    return RP_OK;
}

static enum rp_code tf_version(const char *path, char *text, size_t cap, struct rp_err *err)
{
    struct rp_tf tf;

    RP_TRY(rp_tf_load(path, &tf, err));
    snprintf(text, cap, "TensorFlow %s", tf.version());
    return RP_OK;
}

/* ---- the row ---- */

extern const struct rp_engine rp_engine_tf;

static const struct rp_worker_engine tf = {.engine = &rp_engine_tf,
                                           .kind = RP_PLUGIN_TF,
                                           .size = sizeof(struct tf_exe),
                                           .prepare = tf_prepare,
                                           .version = tf_version,
                                           .ops = {.what = "TensorFlow",
                                                   .open = tf_open,
                                                   .upload = tf_upload,
                                                   .run = tf_run,
                                                   .fetch = tf_fetch,
                                                   .profile = tf_profile,
                                                   .close = tf_close}};

static enum rp_code tf_probe(const char *where, char *found, size_t cap, struct rp_err *err)
{
    return rp_worker_engine_probe(&tf, where, found, cap, err);
}

static enum rp_code tf_compile(const char *where, const struct rp_engine_program *program,
                               const struct rp_engine_options *options, struct rp_executable **out,
                               struct rp_err *err)
{
    return rp_worker_engine_compile(&tf, where, program, options, out, err);
}

const struct rp_engine rp_engine_tf = {
    .name = "tf",
    .summary = "the real TensorFlow, for its graphs and BladeDISC captures",
    .get =
        "pip install tensorflow-cpu, or reprise replay engines --install --package tensorflow-cpu",
    .probe = tf_probe,
    .compile = tf_compile,
    RP_WORKER_ENGINE_MEMBERS};
