/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine pjrt runs a program on the real XLA, through a PJRT plugin that JAX, PyTorch/XLA or
 * the user installed. It runs in a child process unless a profiler needs it in this one
 * (exec/worker/worker.h). HLO is sent as an HloModuleProto, StableHLO as the text of the file.
 */
#include "exec/worker/engine.h"
#include "base/clock.h"
#include "exec/engine/engine.h"
#include "exec/pjrt/client.h"
#include "exec/pjrt/device_marks.h"
#include "io/proto_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pjrt_exe {
    struct rp_worker_exe exe;

    /* members for the worker; a child has its own */
    struct rp_pjrt_module module;
    struct rp_pjrt_source source;
    struct rp_arena arena; /* of the signature */
    struct rp_signature signature;
    struct rp_proto_writer compile_options;
    struct rp_pjrt_client client;
    struct rp_device_marks marks;
};

/* ---- where the plugin is ---- */

static enum rp_code pjrt_open(void *self, struct rp_worker_facts *facts, struct rp_err *err)
{
    struct pjrt_exe *x = self;
    const struct rp_engine_options *options = x->exe.options;
    struct rp_pjrt_client *c = &x->client;
    unsigned devices = (x->source.replicas ? x->source.replicas : 1) *
                       (x->source.partitions ? x->source.partitions : 1);
    int64_t begin = rp_clock_ns();

    RP_TRY(rp_pjrt_open(x->exe.path, options->plugin_options, options->nplugin_options, devices, c,
                        err));
    int64_t loaded = rp_clock_ns();
    RP_TRY(rp_pjrt_compile(c, &x->source, err));
    facts->load_ns = loaded - begin;
    facts->compile_ns = rp_clock_ns() - loaded;
    facts->narguments = c->narguments;
    facts->noutputs = c->noutputs;
    facts->devices = c->ndevices;
    facts->can_profile = rp_pjrt_can_profile(c);
    snprintf(facts->platform, sizeof facts->platform, "%s", c->platform);
    snprintf(facts->version, sizeof facts->version, "%s", c->version);
    snprintf(facts->device, sizeof facts->device, "%.120s (%.60s)", c->device, c->platform);
    return RP_OK;
}

static enum rp_code pjrt_upload(void *self, struct rp_tensor *const *arguments, struct rp_err *err)
{
    return rp_pjrt_upload(&((struct pjrt_exe *)self)->client, arguments, err);
}

static enum rp_code pjrt_run(void *self, int64_t *ns, struct rp_err *err)
{
    struct pjrt_exe *x = self;

    rp_device_marks_push(&x->marks, "reprise: run");
    enum rp_code code = rp_pjrt_run(&x->client, ns, err);
    rp_device_marks_pop(&x->marks);
    return code;
}

static enum rp_code pjrt_fetch(void *self, struct rp_tensor **outputs, struct rp_err *err)
{
    return rp_pjrt_fetch(&((struct pjrt_exe *)self)->client, outputs, err);
}

static void pjrt_mark(void *self, bool begin)
{
    struct pjrt_exe *x = self;

    if (begin)
        rp_device_marks_begin(&x->marks);
    else
        rp_device_marks_end(&x->marks);
}

static enum rp_code pjrt_profile(void *self, unsigned runs, uint8_t **xspace, size_t *n,
                                 struct rp_err *err)
{
    struct pjrt_exe *x = self;
    struct rp_pjrt_profile profile;
    enum rp_code code = RP_OK;
    int64_t ns;

    RP_TRY(rp_pjrt_profile_start(&x->client, &profile, err));
    for (unsigned i = 0; i < runs && code == RP_OK; i++)
        code = rp_pjrt_run(&x->client, &ns, err);
    enum rp_code stopped = rp_pjrt_profile_stop(&profile, xspace, n, code == RP_OK ? err : NULL);
    if (code != RP_OK) {
        free(*xspace);
        *xspace = NULL;
    }
    return code == RP_OK ? stopped : code;
}

static void pjrt_close(void *self)
{
    struct pjrt_exe *x = self;

    rp_pjrt_close(&x->client);
}

/* ---- before the worker starts ---- */

/* An integer of the module; 0 if it has none. */
static unsigned module_number(const struct rp_program *p, uint32_t key)
{
    int64_t value = p ? rp_program_int(p, key, 0) : 0;

    return value > 0 && value <= 4096 ? (unsigned)value : 0;
}

/* Takes the arguments of bytecode from the program that was read from it. */
static enum rp_code read_bytecode(const struct rp_program *p, struct rp_pjrt_module *out,
                                  struct rp_err *err)
{
    memset(out, 0, sizeof *out);
    out->shardy = memmem(p->source.at, p->source.n, "sdy", 3) != NULL;
    for (uint32_t i = 0; i < p->computations.at[p->entry].nparams; i++)
        RP_TRY(rp_vec_push(&out->donated, 0, err));
    return RP_OK;
}

static enum rp_code pjrt_prepare(struct rp_worker_exe *exe, struct rp_err *err)
{
    struct pjrt_exe *x = (struct pjrt_exe *)exe;
    const struct rp_engine_program *program = exe->program;
    struct rp_pjrt_source *source = &x->source;
    bool bytecode = program->program && program->format &&
                    !strcmp(program->format, "mlir-bytecode") && program->program->source.n;
    bool mlir = bytecode || (program->format && !strcmp(program->format, "stablehlo"));

    source->code = bytecode ? (const uint8_t *)program->program->source.at
                   : mlir   ? program->bytes
                            : program->module;
    source->ncode = bytecode ? program->program->source.n
                    : mlir   ? program->nbytes
                             : program->nmodule;
    source->format = mlir ? "mlir" : "hlo";
    if (!source->code)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "'%s' (%s) is not a program for PJRT, which takes HLO and StableHLO",
                          program->name, program->format ? program->format : "unknown");
    RP_TRY(bytecode ? read_bytecode(program->program, &x->module, err)
           : mlir   ? rp_pjrt_read_mlir(source->code, source->ncode, &x->module, err)
                    : rp_pjrt_read_hlo(source->code, source->ncode, &x->module, err));
    source->narguments = x->module.donated.n;
    source->donated = x->module.donated.at;
    source->tupled = x->module.tupled;
    source->optimized = x->module.scheduled;
    source->shardy = x->module.shardy;
    /* The text states the replicas; the other devices that run at the same time are partitions. */
    unsigned replicas = module_number(program->program, RP_ATTR_REPLICA_COUNT);
    source->replicas = replicas && exe->options->partitions % replicas == 0 ? replicas : 1;
    source->partitions = exe->options->partitions
                             ? exe->options->partitions / source->replicas
                             : module_number(program->program, RP_ATTR_NUM_PARTITIONS);
    if (program->program && source->partitions > 1) {
        RP_TRY(rp_signature_find(program->program, &x->arena, &x->signature, err));
        source->results = &x->signature;
    }
    /* Uses recorded options, or makes them; flags after them override. */
    const struct rp_engine_options *options = x->exe.options;
    struct rp_proto_writer *to = &x->compile_options;
    struct rp_bytes bytes;
    x->source.as_jax = !options->compile_options;
    if (options->compile_options)
        rp_proto_add_bytes(to, options->compile_options, options->ncompile_options);
    else
        rp_pjrt_put_options(&x->source, to);
    for (size_t i = 0; i < options->nxla_flags; i++) {
        x->source.as_jax &= !strstr(options->xla_flags[i], RP_PJRT_FAST_MIN_MAX);
        RP_TRY(rp_pjrt_put_flag(options->xla_flags[i], to, err));
    }
    RP_TRY(rp_proto_written(to, &bytes, err));
    x->source.options = bytes.at;
    x->source.noptions = bytes.n;
    return RP_OK;
}

static void pjrt_release(struct rp_worker_exe *exe)
{
    struct pjrt_exe *x = (struct pjrt_exe *)exe;

    rp_pjrt_module_release(&x->module);
    rp_arena_release(&x->arena);
    rp_proto_writer_release(&x->compile_options);
}

static enum rp_code pjrt_version(const char *path, char *text, size_t cap, struct rp_err *err)
{
    struct rp_pjrt pjrt;

    RP_TRY(rp_pjrt_load(path, &pjrt, err));
    snprintf(text, cap, "PJRT 0.%u%s", pjrt.minor,
             rp_pjrt_extension(&pjrt, RP_PJRT_EXTENSION_PROFILER) ? ", with a profiler" : "");
    return RP_OK;
}

/* ---- the row ---- */

extern const struct rp_engine rp_engine_pjrt;

static const struct rp_worker_engine pjrt = {.engine = &rp_engine_pjrt,
                                             .kind = RP_PLUGIN_PJRT,
                                             .size = sizeof(struct pjrt_exe),
                                             .prepare = pjrt_prepare,
                                             .release = pjrt_release,
                                             .version = pjrt_version,
                                             .ops = {.what = "the plugin",
                                                     .open = pjrt_open,
                                                     .upload = pjrt_upload,
                                                     .run = pjrt_run,
                                                     .fetch = pjrt_fetch,
                                                     .mark = pjrt_mark,
                                                     .profile = pjrt_profile,
                                                     .close = pjrt_close}};

static enum rp_code pjrt_probe(const char *where, char *found, size_t cap, struct rp_err *err)
{
    return rp_worker_engine_probe(&pjrt, where, found, cap, err);
}

static enum rp_code pjrt_compile(const char *where, const struct rp_engine_program *program,
                                 const struct rp_engine_options *options,
                                 struct rp_executable **out, struct rp_err *err)
{
    return rp_worker_engine_compile(&pjrt, where, program, options, out, err);
}

const struct rp_engine rp_engine_pjrt = {
    .name = "pjrt",
    .summary = "the real XLA, on the CPU or a GPU, through a PJRT plugin",
    .get = "reprise replay engines --install, or pip install xla-cpu-pjrt (CPU), "
           "pip install 'jax[cuda13]' (NVIDIA)",
    .probe = pjrt_probe,
    .compile = pjrt_compile,
    RP_WORKER_ENGINE_MEMBERS};
