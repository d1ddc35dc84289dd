/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One program on one PJRT plugin, from loading the library to the outputs, in this process:
 *
 *     open -> compile -> upload -> run, run, run ... -> fetch -> close
 *
 * Each partition or replica runs on a device of its own; their lists of arrays follow each other.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "exec/data/signature.h"
#include "exec/data/tensor.h"
#include "exec/pjrt/api.h"

#define RP_PJRT_FAST_MIN_MAX "xla_cpu_enable_fast_min_max"

/* What to compile. Borrowed. */
struct rp_pjrt_source {
    const void *code;
    size_t ncode;
    const char *format;  /* "hlo": an HloModuleProto; or "mlir" */
    const void *options; /* CompileOptionsProto; NULL: made from what follows */
    size_t noptions;
    bool as_jax;                   /* set flags that JAX sets and the user did not */
    unsigned replicas, partitions; /* 0: 1 */
    bool optimized;                /* the module was scheduled, so only the backend is to run */
    bool shardy;                   /* partitioned by shardings of Shardy, not of GSPMD */
    bool tupled;                   /* the only parameter is a tuple of the arguments */
    size_t narguments;             /* of one device */
    const uint8_t *donated;        /* narguments flags, or NULL */
    const struct rp_signature *results; /* whole arrays, before they are split; or NULL */
};

/* How XLA splits the arrays of a program that it partitions; empty if it does not. */
struct rp_pjrt_shards {
    struct rp_arena arena;
    RP_VEC(struct rp_sharding) in, out; /* of arguments and outputs */
};

struct rp_pjrt_client {
    struct rp_pjrt pjrt;
    void *client;
    char platform[64], version[256], device[128];
    void **devices; /* devices of the client, or later of the executable; in the plugin's memory */
    size_t ndevices;

    void *loaded;
    size_t narguments, noutputs; /* of one device */
    const uint8_t *donated;      /* of the source */
    bool *consumed;              /* ndevices * narguments: whether the last run gave it away */
    void **arguments, **outputs; /* ndevices * each; NULL: none */
    void ***argument_lists;      /* pointers into arguments, for each device */
    void ***output_lists;
    void **events; /* ndevices */
    int64_t *kept; /* arguments that are not donated */
    size_t nkept;
    struct rp_tensor *const
        *hosts;          /* what was uploaded, because donated arguments are sent again */
    unsigned partitions; /* partitions of one replica; at least 1 */
    struct rp_pjrt_shards shards;
    struct rp_tensors blocks; /* ndevices * narguments blocks that were cut, or none */
    const struct rp_signature *results;
    uint32_t launch;
};

/* noptions texts "name=value" for the plugin: true, false, numbers, lists of integers, texts. */
enum rp_code rp_pjrt_open(const char *path, const char *const *options, size_t noptions,
                          unsigned devices, struct rp_pjrt_client *out, struct rp_err *err);
enum rp_code rp_pjrt_compile(struct rp_pjrt_client *c, const struct rp_pjrt_source *source,
                             struct rp_err *err);
/* The tensors must live until close. */
enum rp_code rp_pjrt_upload(struct rp_pjrt_client *c, struct rp_tensor *const *arguments,
                            struct rp_err *err);
/* Runs once. *ns: from the call until the device is done, without the preparation. */
enum rp_code rp_pjrt_run(struct rp_pjrt_client *c, int64_t *ns, struct rp_err *err);
/* Gives ndevices * noutputs arrays, which the caller drops; none on failure. */
enum rp_code rp_pjrt_fetch(struct rp_pjrt_client *c, struct rp_tensor **outputs,
                           struct rp_err *err);
void rp_pjrt_close(struct rp_pjrt_client *c);

/* ---- programs that XLA partitions: the caller has whole arrays, each device a block ---- */

enum rp_code rp_pjrt_find_shards(struct rp_pjrt_client *c, struct rp_err *err);
/* Reads a compiled HloModuleProto, and appends to the lists. */
enum rp_code rp_pjrt_read_shards(const void *module, size_t n, struct rp_pjrt_shards *out,
                                 struct rp_err *err);
void rp_pjrt_shards_release(struct rp_pjrt_shards *s);
/* Sets c->hosts: the blocks of the arguments, or the arguments themselves. */
enum rp_code rp_pjrt_split(struct rp_pjrt_client *c, struct rp_tensor *const *arguments,
                           struct rp_err *err);
/* Joins blocks of outputs to whole arrays, in place. */
enum rp_code rp_pjrt_join(struct rp_pjrt_client *c, struct rp_tensor **outputs, struct rp_err *err);

/* Makes the options of a compilation as CompileOptionsProto, which the writer holds. */
struct rp_proto_writer;
void rp_pjrt_put_options(const struct rp_pjrt_source *source, struct rp_proto_writer *to);

/* Copies a recorded CompileOptionsProto without its debug options (which may name folders to write
   to, or make the plugin print). */
enum rp_code rp_pjrt_strip_options(const void *bytes, size_t n, struct rp_proto_writer *to,
                                   struct rp_err *err);

/* Puts a flag of XLA, "xla_dump_to=/tmp/x" (also with "--" before it), after options that were put
   before. RP_USAGE if it has no value. */
enum rp_code rp_pjrt_put_flag(const char *text, struct rp_proto_writer *to, struct rp_err *err);

/* ---- the profiler extension ---- */

struct rp_pjrt_profile {
    const uint64_t *table;
    void *profiler;
};
bool rp_pjrt_can_profile(const struct rp_pjrt_client *c);
enum rp_code rp_pjrt_profile_start(struct rp_pjrt_client *c, struct rp_pjrt_profile *out,
                                   struct rp_err *err);
/* Stops the profiler, and gives the serialized XSpace, which the caller frees. */
enum rp_code rp_pjrt_profile_stop(struct rp_pjrt_profile *profile, uint8_t **bytes, size_t *n,
                                  struct rp_err *err);

/* ---- what has to be known of a module to compile and call it, from its own bytes ---- */

struct rp_pjrt_module {
    RP_VEC(uint8_t) donated; /* a flag for each argument; n is their number */
    bool tupled;             /* the only parameter is a tuple, whose parts are the arguments */
    bool scheduled;          /* it was already optimised */
    bool shardy;
};

/* Reads an HloModuleProto. RP_UNSUPPORTED if there are several parameters and a tuple among
   them. */
enum rp_code rp_pjrt_read_hlo(const uint8_t *bytes, size_t n, struct rp_pjrt_module *out,
                              struct rp_err *err);
/* Reads StableHLO (or any MLIR) text: the arguments of function main. */
enum rp_code rp_pjrt_read_mlir(const char *text, size_t n, struct rp_pjrt_module *out,
                               struct rp_err *err);
void rp_pjrt_module_release(struct rp_pjrt_module *module);
