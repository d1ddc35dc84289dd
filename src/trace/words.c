/* SPDX-License-Identifier: Apache-2.0 */
/* Tables by enum value; a value beyond a table is "other". */
#include "trace/words.h"

#include "trace/trace.h"

static const char *const kinds[] = {
    [RP_KIND_OTHER] = "other",
    [RP_KIND_CPU_OP] = "cpu_op",
    [RP_KIND_ANNOTATION] = "annotation",
    [RP_KIND_GPU_ANNOTATION] = "gpu_annotation",
    [RP_KIND_RUNTIME] = "runtime",
    [RP_KIND_KERNEL] = "kernel",
    [RP_KIND_MEMCPY] = "memcpy",
    [RP_KIND_MEMSET] = "memset",
    [RP_KIND_SYNC] = "sync",
    [RP_KIND_PYTHON] = "python",
    [RP_KIND_OVERHEAD] = "overhead",
    [RP_KIND_COMM_OP] = "comm_op",
    [RP_KIND_TRANSFER] = "transfer",
    [RP_KIND_INSTANT] = "instant",
    [RP_KIND_COUNTER] = "counter",
    [RP_KIND_METADATA] = "metadata",
    [RP_KIND_WAIT] = "wait",
};
_Static_assert(sizeof kinds / sizeof kinds[0] == RP_KIND_COUNT, "a word for each kind");

static const char *const track_kinds[] = {[RP_TRACK_THREAD] = "thread",
                                          [RP_TRACK_STREAM] = "stream",
                                          [RP_TRACK_COUNTER] = "counter",
                                          [RP_TRACK_ASYNC] = "async"};

static const char *const link_sources[] = {[RP_LINK_CORRELATION] = "correlation",
                                           [RP_LINK_FLOW] = "flow",
                                           [RP_LINK_EXTERNAL] = "external",
                                           [RP_LINK_ASYNC_ID] = "async_id"};

static const char *const step_sources[] = {
    [RP_STEP_PROFILER] = "profiler",     [RP_STEP_RUN_ID] = "run_id",
    [RP_STEP_ANNOTATION] = "annotation", [RP_STEP_REPETITION] = "repetition",
    [RP_STEP_SESSION] = "session",       [RP_STEP_MARKS] = "marks",
    [RP_STEP_OPTIMIZER] = "optimizer",   [RP_STEP_EXECUTABLE] = "executable",
    [RP_STEP_LOADER] = "loader",         [RP_STEP_FORWARD] = "forward",
    [RP_STEP_BACKWARD] = "backward",     [RP_STEP_COMPILED] = "compiled",
    [RP_STEP_REPLAY] = "graph"};

static const char *const step_phases[RP_STEP_PHASES] = {
    [RP_PHASE_PREFILL] = "prefill", [RP_PHASE_DECODE] = "decode", [RP_PHASE_MIXED] = "mixed"};

static const char *const arg_types[] = {
    [RP_ARG_I64] = "int", [RP_ARG_F64] = "real", [RP_ARG_STR] = "text", [RP_ARG_RAW] = "json"};

static const char *const weight_units[RP_WEIGHT_UNITS] = {
    [RP_WEIGHT_NS] = "ns", [RP_WEIGHT_COUNT] = "count", [RP_WEIGHT_BYTES] = "bytes"};

static const char *const frame_kinds[RP_FRAME_KINDS] = {
    [RP_FRAME_PYTHON] = "python", [RP_FRAME_NATIVE] = "native", [RP_FRAME_KERNEL] = "kernel"};

#define WORDS(name, type, table)                                                    \
    const char *rp_word_##name(type i)                                              \
    {                                                                               \
        return i < sizeof table / sizeof table[0] && table[i] ? table[i] : "other"; \
    }
WORDS(kind, uint8_t, kinds)
WORDS(track_kind, uint8_t, track_kinds)
WORDS(link_source, uint8_t, link_sources)
WORDS(step_source, uint32_t, step_sources)
WORDS(arg_type, uint8_t, arg_types)
WORDS(weight_unit, uint32_t, weight_units)
WORDS(frame_kind, uint32_t, frame_kinds)

const char *rp_word_step_phase(uint8_t phase)
{
    return phase < RP_STEP_PHASES ? step_phases[phase] : NULL;
}
