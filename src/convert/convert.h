/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes traces for the questions of this room. */
#include "dataset/load_program.h"
#include "dataset/question.h"
#include "io/output.h"
#include "trace/secrets.h"
#include "trace/trace.h"

/* The formats of traces, for option tables. */
#define RP_TRACE_FORMATS   "rpt|json|perfetto|csv|sqlite|arrow|chakra|folded|speedscope|firefox|pprof"
#define RP_PROGRAM_FORMATS "hlo-text|hlo-proto|stablehlo|graphdef|pbtxt"
#define RP_ARROW_OPTION                                                                         \
    {                                                                                           \
        "table", 0, RP_OPT_CHOICE, "events|kernels|launches|operators|steps|collectives|ranks", \
            NULL, "the table that 'arrow' writes (default: events)", 0                          \
    }

struct rp_written {
    const char *input, *output, *format;
    int64_t events, output_bytes; /* absent if written to standard output */
};
extern const struct rp_type rp_written_type;

struct rp_written_list {
    size_t nwritten;
    struct rp_written *written;
};

struct rp_scrub;

/* Makes the folder for the outputs of n inputs, unless it already exists (made tells which). */
enum rp_code rp_convert_folder(const char *path, size_t n, bool *made, struct rp_err *err);

/* Writes all inputs as the settings `output` and `to` tell; the list is in the arena of the result.
   scrub first removes secrets, or is NULL. */
enum rp_code rp_convert_write(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              const struct rp_settings *settings, struct rp_scrub *scrub,
                              struct rp_result *result, struct rp_written_list *out,
                              struct rp_err *err);

/* Makes a copy of a trace, or of a rank of it, without secrets (scrub.c). May be called from any
   thread. */
enum rp_code rp_scrub_make(struct rp_scrub *scrub, const struct rp_loaded *loaded,
                           const struct rp_trace *t, struct rp_trace **out, struct rp_err *err);

/* Removes the secrets of a program, which may be changed until its job returns (scrub_program.c).
 */
enum rp_code rp_scrub_program(struct rp_scrub *scrub, const struct rp_loaded_program *loaded,
                              const struct rp_dataset *dataset, struct rp_err *err);
