/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of what `replay` answers. */
#include "replay/record.h"

#include <math.h>

static const struct rp_field times_fields[] = {
    RP_FIELD(struct rp_replay_times, min, I64, NS, "fastest", "the shortest run", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p50, I64, NS, "median", "half of the runs took less",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p50_low, I64, NS, "  from", "of the median, 95 % confidence",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p50_high, I64, NS, "  to", "of the median, 95 % confidence",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p90, I64, NS, "90 %", "nine of ten runs took less",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, p99, I64, NS, "99 %", "99 of 100 runs took less", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, max, I64, NS, "slowest", "the longest run", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, mean, I64, NS, "mean", "of the runs", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, n, I64, COUNT, "runs", "how many runs were counted",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, warmups, I64, COUNT, "warm-up", "runs before those",
             RP_NULLABLE),
    {"blocks", NULL, RP_T_LIST, RP_UNIT_NONE, 0, offsetof(struct rp_replay_times, blocks),
     offsetof(struct rp_replay_times, nblocks), &rp_type_int, "low times of consecutive runs"},
    RP_FIELD(struct rp_replay_times, machine, I64, NS, NULL,
             "of a fixed piece of work between runs", RP_NULLABLE),
    RP_FIELD(struct rp_replay_times, waited_ratio, F64, RATIO, "waited",
             "for a processor, all threads, over the time of the runs", RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type times_type = {"run", sizeof(struct rp_replay_times), times_fields,
                                          NULL};

static const struct rp_field worst_fields[] = {
    RP_FIELD(struct rp_replay_worst, index, STR, NONE, "element", "its place", 0),
    RP_FIELD(struct rp_replay_worst, got, F64, NONE, "got", "what this engine gave", 0),
    RP_FIELD(struct rp_replay_worst, want, F64, NONE, "want", "what was expected", 0),
    RP_FIELD_END};
static const struct rp_type worst_type = {"worst", sizeof(struct rp_replay_worst), worst_fields,
                                          NULL};

static const struct rp_field output_fields[] = {
    RP_FIELD(struct rp_replay_output, index, I64, NONE, "output", "its number", 0),
    RP_FIELD(struct rp_replay_output, dtype, STR, NONE, "type", "of its elements", 0),
    {"shape", NULL, RP_T_LIST, RP_UNIT_NONE, 0, offsetof(struct rp_replay_output, shape),
     offsetof(struct rp_replay_output, nshape), &rp_type_int, "its dimensions"},
    RP_FIELD(struct rp_replay_output, shown, STR, NONE, "shape", "its dimensions", RP_SCREEN),
    RP_FIELD(struct rp_replay_output, ok, BOOL, NONE, "right", "within the tolerance", 0),
    RP_FIELD(struct rp_replay_output, max_abs, F64, NONE, "largest difference",
             "of an element from what was expected", 0),
    RP_FIELD(struct rp_replay_output, max_rel, F64, NONE, "relative",
             "the largest difference over the expected value", 0),
    RP_FIELD(struct rp_replay_output, wrong, I64, COUNT, "wrong", "elements over the tolerance",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay_output, elements, I64, COUNT, "of", "elements", 0),
    RP_FIELD(struct rp_replay_output, reason, STR, NONE, NULL, "why it could not be compared", 0),
    RP_FIELD_LIST(struct rp_replay_output, worst, &worst_type, NULL, "the worst elements", 0),
    RP_FIELD_END};
static const struct rp_type output_type = {"output", sizeof(struct rp_replay_output), output_fields,
                                           NULL};

static const struct rp_field op_fields[] = {
    RP_FIELD(struct rp_replay_op, name, STR, NONE, "instruction", "its name", RP_SHORTEN),
    RP_FIELD(struct rp_replay_op, opcode, STR, NONE, "opcode", "what it does", 0),
    RP_FIELD(struct rp_replay_op, calls, I64, COUNT, "calls", "how often it ran", 0),
    RP_FIELD(struct rp_replay_op, total_ns, I64, NS, "time",
             "sum over all runs, called computations included", 0),
    RP_FIELD(struct rp_replay_op, share, F64, RATIO, "of all", "of the time of all runs", 0),
    RP_FIELD_END};
static const struct rp_type op_type = {"instruction", sizeof(struct rp_replay_op), op_fields, NULL};

static const struct rp_field engine_fields[] = {
    RP_FIELD(struct rp_replay_engine, name, STR, NONE, "engine", "what --engine takes", 0),
    RP_FIELD(struct rp_replay_engine, present, BOOL, NONE, "here", "whether it can run", 0),
    RP_FIELD(struct rp_replay_engine, found, STR, NONE, "found", "what and where, or why not", 0),
    RP_FIELD(struct rp_replay_engine, summary, STR, NONE, "what it is", "in a line", RP_SHORTEN),
    RP_FIELD(struct rp_replay_engine, get, STR, NONE, "how to get it", "where it is missing",
             RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type engine_type = {"engine", sizeof(struct rp_replay_engine), engine_fields,
                                           NULL};

static const struct rp_field file_fields[] = {
    RP_FIELD(struct rp_replay_file, path, STR, NONE, "member", "of the tar", RP_SHORTEN),
    RP_FIELD(struct rp_replay_file, holds, STR, NONE, "holds", "the program, or which arrays", 0),
    RP_FIELD(struct rp_replay_file, type, STR, NONE, "type", "of the arrays", 0),
    RP_FIELD(struct rp_replay_file, bytes, I64, BYTES, "size", "its bytes", 0),
    RP_FIELD(struct rp_replay_file, sha256, STR, NONE, NULL, "SHA-256 by the manifest", 0),
    RP_FIELD(struct rp_replay_file, ok, BOOL, NONE, "whole", "its bytes have that checksum", 0),
    RP_FIELD_END};
static const struct rp_type file_type = {"file", sizeof(struct rp_replay_file), file_fields, NULL};

static const struct rp_field compared_fields[] = {
    RP_FIELD(struct rp_replay_compared, with, STR, NONE, "with", "the earlier answer", RP_SHORTEN),
    RP_FIELD(struct rp_replay_compared, engine, STR, NONE, "on", "the engine it was measured on",
             0),
    RP_FIELD(struct rp_replay_compared, p50_ns, I64, NS, "median then", "of its runs", 0),
    RP_FIELD(struct rp_replay_compared, n, I64, COUNT, "runs then", "that were counted", 0),
    RP_FIELD(struct rp_replay_compared, change_ratio, F64, RATIO, "change",
             "the runs' low times over those, less one", 0),
    RP_FIELD(struct rp_replay_compared, machine_ratio, F64, RATIO, "machine",
             "the time of a fixed piece of work over that then, less one", RP_NULLABLE),
    RP_FIELD(struct rp_replay_compared, noise_ratio, F64, RATIO, "noise",
             "a smaller change is none: by how the runs scatter and how busy the machine was", 0),
    RP_FIELD(struct rp_replay_compared, p_value, F64, NONE, "p",
             "how likely such a difference is by chance", 0),
    RP_FIELD(struct rp_replay_compared, verdict, STR, NONE, "verdict",
             "faster or slower where p is below 0.02 and the change above the noise", 0),
    RP_FIELD_END};
static const struct rp_type compared_type = {"compared", sizeof(struct rp_replay_compared),
                                             compared_fields, NULL};

static const struct rp_field fields[] = {
    RP_FIELD(struct rp_replay, program, STR, NONE, "program", "the file", RP_SHORTEN),
    RP_FIELD(struct rp_replay, format, STR, NONE, "format", "what was read", 0),
    RP_FIELD(struct rp_replay, bundle, STR, NONE, "bundle", "that was written", 0),
    RP_FIELD(struct rp_replay, packed_by, STR, NONE, "packed by", "version of this program", 0),
    RP_FIELD(struct rp_replay, flags, STR, NONE, "flags", "XLA_FLAGS where it was packed",
             RP_SHORTEN),
    RP_FIELD(struct rp_replay, rank, I64, NONE, "rank", "that it was captured on", RP_NULLABLE),
    RP_FIELD(struct rp_replay, engine, STR, NONE, "engine", "that ran it", 0),
    RP_FIELD(struct rp_replay, choice, STR, NONE, "because", "why this engine was taken", 0),
    RP_FIELD(struct rp_replay, inputs, STR, NONE, "inputs", "where they come from", RP_SHORTEN),
    RP_FIELD(struct rp_replay, partitions, I64, COUNT, "partitions", "that ran", RP_NULLABLE),
    RP_FIELD(struct rp_replay, compile_ns, I64, NS, "compile", "program to executable",
             RP_NULLABLE),
    RP_FIELD(struct rp_replay, upload_ns, I64, NS, "upload", "inputs to the engine", RP_NULLABLE),
    RP_FIELD(struct rp_replay, first_ns, I64, NS, "first run", "before anything is warm",
             RP_NULLABLE),
    RP_FIELD_RECORD(struct rp_replay, run_ns, &times_type, "runs", "times of the runs that count",
                    0),
    RP_FIELD(struct rp_replay, checked, STR, NONE, "checked against", "what the outputs should be",
             RP_SHORTEN),
    RP_FIELD(struct rp_replay, ok, BOOL, NONE, "right", "no output is wrong", 0),
    RP_FIELD_LIST(struct rp_replay, outputs, &output_type, "outputs", "what the program gave", 0),
    RP_FIELD_LIST(struct rp_replay, instructions, &op_type, "instructions",
                  "where the time goes, with --profile", 0),
    RP_FIELD_LIST(struct rp_replay, engines, &engine_type, "engines",
                  "with the word 'engines': what can run programs here", 0),
    RP_FIELD_LIST(struct rp_replay, compared, &compared_type, "compared",
                  "with --compare: an earlier answer", 0),
    RP_FIELD_LIST(struct rp_replay, files, &file_type, "files", "of a bundle", 0),
    RP_FIELD_LIST(struct rp_replay, warnings, &rp_type_string, "warnings", "what to know", RP_WARN),
    RP_FIELD_END};
const struct rp_type rp_replay_type = {"replay", sizeof(struct rp_replay), fields, "outputs"};

void rp_replay_no_times(struct rp_replay *root)
{
    struct rp_replay_times *t = &root->run_ns;

    t->waited_ratio = (double)NAN;

    root->partitions = root->compile_ns = root->upload_ns = root->first_ns = RP_ABSENT_I64;
    t->min = t->p50 = t->p90 = t->p99 = t->max = t->mean = t->p50_low = t->p50_high = t->machine =
        t->n = t->warmups = RP_ABSENT_I64;
    root->ok = true;
}
