/* SPDX-License-Identifier: Apache-2.0 */
/* The description of the tables, which `reprise query .schema`, the manual, Arrow and Python show.
   A column is one line here; facts.c fills the arrays. */
#include "tables/tables.h"

#include "trace/words.h"

#include <strings.h>

#define AT(array_, type_, member_) .array = RP_ARRAY_##array_, .offset = offsetof(type_, member_)
/* The element of array_ whose number is in a member of another array's element. */
#define VIA(via_, type_, member_, array_) \
    .via = RP_ARRAY_##via_, .via_offset = offsetof(type_, member_), .array = RP_ARRAY_##array_
#define NULLS(value_)    .nullable = true, .null = (value_)
#define WORDS(word_, n_) .word = (word_), .nwords = (n_)

#define SINCE "its start, counted from the first event of its rank"

#define RANK_COLUMN                                                                         \
    {                                                                                       \
        "rank", "number of the rank", RP_CELL_I64, AT(RANK, struct rp_table_rank_row, rank) \
    }

static const char *word_class(uint8_t i)
{
    return rp_work_class_names[i];
}

static const char *word_phase(uint8_t i)
{
    return rp_phase_names[i];
}

static const char *word_collective(uint8_t i)
{
    return rp_coll_kind_names[i];
}

/* A column in the rows of one struct. */
#define COLUMN(array_, type_, member_, cell_, doc_, ...)               \
    {                                                                  \
#member_, doc_, cell_, AT(array_, type_, member_), __VA_ARGS__ \
    }

#define R(member, cell, doc, ...) \
    COLUMN(RANK, struct rp_table_rank_row, member, RP_CELL_##cell, doc, __VA_ARGS__)
static const struct rp_table_column rank_columns[] = {
    R(rank, I64, "number of the rank", .indexed = false),
    R(file, TEXT, "its file", .nullable = false),
    R(format, TEXT, "format of the file", .nullable = false),
    R(framework, TEXT, "framework that was recorded", NULLS(0)),
    R(framework_version, TEXT, "its version", NULLS(0)),
    R(host, TEXT, "name of the machine", NULLS(0)),
    R(world_size, I64, "ranks of the job", NULLS(0)),
    R(events, I64, "number of events", .unit = RP_UNIT_COUNT),
    R(steps, I64, "number of steps", .unit = RP_UNIT_COUNT),
    R(begin_ns, I64, "first start of an event", .unit = RP_UNIT_NS),
    R(end_ns, I64, "last end of an event", .unit = RP_UNIT_NS),
    R(base_ns, I64, "add it to a time of this rank for ns since 1970", .unit = RP_UNIT_NS,
      NULLS(RP_NO_TS)),
};

static const struct rp_table_column event_columns[] = {
    RANK_COLUMN,
    {"id", "number of the event in its rank", RP_CELL_U32, .array = RP_ARRAY_NUMBER,
     .indexed = true},
    {"ts_ns", "its start, as recorded", RP_CELL_I64, .unit = RP_UNIT_NS, .array = RP_ARRAY_TS,
     NULLS(RP_NO_TS)},
    {"dur_ns", "its duration; null: an instant, or a span without an end", RP_CELL_I64,
     .unit = RP_UNIT_NS, .array = RP_ARRAY_DUR, NULLS(RP_OPEN_NS)},
    {"end_ns", "its end, or its start where it has no duration", RP_CELL_END, .unit = RP_UNIT_NS,
     .array = RP_ARRAY_TS, NULLS(RP_NO_TS)},
    {"name", "its name", RP_CELL_NAME, .array = RP_ARRAY_NAME},
    {"kind", "what it is: kernel, memcpy, cpu_op, runtime, annotation, python, …", RP_CELL_WORD,
     .array = RP_ARRAY_KIND, WORDS(rp_word_kind, RP_KIND_COUNT)},
    {"category", "its category in the file", RP_CELL_NAME, .array = RP_ARRAY_CATEGORY, NULLS(0)},
    {"track", "number of its track: a thread, stream, counter or chain", RP_CELL_U32,
     .array = RP_ARRAY_TRACK_OF, .indexed = true},
    {"process", "id of its process", RP_CELL_TEXT, .via = RP_ARRAY_TRACK_OF,
     AT(TRACK, struct rp_track_row, process)},
    {"thread", "id of its thread or stream", RP_CELL_TEXT, .via = RP_ARRAY_TRACK_OF,
     AT(TRACK, struct rp_track_row, thread), NULLS(0)},
    {"track_kind", "thread, stream, counter or async", RP_CELL_WORD, .via = RP_ARRAY_TRACK_OF,
     AT(TRACK, struct rp_track_row, kind), WORDS(rp_word_track_kind, RP_TRACK_ASYNC + 1)},
    {"parent", "id of the innermost event around it on its thread", RP_CELL_U32,
     .array = RP_ARRAY_PARENT, NULLS(RP_NONE), .indexed = true},
    {"link", "the same number for a launch and the work that it started", RP_CELL_U32,
     .array = RP_ARRAY_LINK, NULLS(RP_NONE), .indexed = true},
    {"at_ns", SINCE, RP_CELL_SINCE, .unit = RP_UNIT_NS, .array = RP_ARRAY_TS, NULLS(RP_NO_TS)},
};

/* The columns of all device work, or of only its kernels; the arguments are the arrays with the
   rows. */
#define WORK_COLUMNS(items_, owners_, more_)                                                     \
    RANK_COLUMN,                                                                                 \
        {"event", "its id in events", RP_CELL_U32, AT(items_, struct rp_work_item, event),       \
         .indexed = true},                                                                       \
        {"ts_ns", "its start, as recorded", RP_CELL_I64, .unit = RP_UNIT_NS,                     \
         AT(items_, struct rp_work_item, begin_ns)},                                             \
        {"dur_ns",                                                                               \
         "its duration",                                                                         \
         RP_CELL_I64,                                                                            \
         .unit = RP_UNIT_NS,                                                                     \
         VIA(items_, struct rp_work_item, event, DUR),                                           \
         NULLS(RP_OPEN_NS)},                                                                     \
        {"end_ns", "its end", RP_CELL_I64, .unit = RP_UNIT_NS,                                   \
         AT(items_, struct rp_work_item, end_ns)},                                               \
        {"name", "its name", RP_CELL_NAME, VIA(items_, struct rp_work_item, event, NAME)},       \
        {"kind", "kernel, memcpy or memset", RP_CELL_WORD,                                       \
         VIA(items_, struct rp_work_item, event, KIND), WORDS(rp_word_kind, RP_KIND_COUNT)},     \
        {"class", "compute, comm or memory", RP_CELL_WORD, AT(items_, struct rp_work_item, cls), \
         WORDS(word_class, RP_WORK_CLASSES)},                                                    \
        {"device", "number of its device", RP_CELL_I64, AT(more_, struct rp_item_more, device),  \
         NULLS(-1)},                                                                             \
        {"stream",                                                                               \
         "its stream",                                                                           \
         RP_CELL_TEXT,                                                                           \
         .via = RP_ARRAY_##items_,                                                               \
         .via_offset = offsetof(struct rp_work_item, stream),                                    \
         AT(STREAM, struct rp_stream_row, label)},                                               \
        {"gap_ns",                                                                               \
         "from the end of the work before it on its stream to its start",                        \
         RP_CELL_I64,                                                                            \
         .unit = RP_UNIT_NS,                                                                     \
         AT(more_, struct rp_item_more, gap_ns),                                                 \
         NULLS(RP_ABSENT_I64)},                                                                  \
        {"step", "number of the step in which it was launched", RP_CELL_I64,                     \
         AT(more_, struct rp_item_more, step), NULLS(RP_ABSENT_I64)},                            \
        {"launch",       "id of the host call that started it",                                  \
         RP_CELL_U32,    AT(items_, struct rp_work_item, launch),                                \
         NULLS(RP_NONE), .indexed = true},                                                       \
        {"operator", "name of the operator around its launch", RP_CELL_NAME,                     \
         AT(more_, struct rp_item_more, op), NULLS(0)},                                          \
        {"operator_event", "id of that operator",                                                \
         RP_CELL_U32,      AT(owners_, struct rp_work_owner, op),                                \
         NULLS(RP_NONE),   .indexed = true},                                                     \
        {"module", "name of the module around its launch", RP_CELL_NAME,                         \
         AT(more_, struct rp_item_more, module), NULLS(0)},                                      \
        {"annotation",     "name of the innermost annotation around its launch",                 \
         RP_CELL_NAME,     VIA(owners_, struct rp_work_owner, annotation, NAME),                 \
         .nullable = true, .null = -1},                                                          \
        {"phase", "forward, backward, optimizer or other", RP_CELL_WORD,                         \
         AT(owners_, struct rp_work_owner, phase), WORDS(word_phase, RP_PHASES)},                \
        {"in_graph", "its launch started other work too, as that of a graph does", RP_CELL_BOOL, \
         AT(more_, struct rp_item_more, in_graph)},                                              \
    {                                                                                            \
        "at_ns", SINCE, RP_CELL_SINCE, .unit = RP_UNIT_NS,                                       \
                                       AT(items_, struct rp_work_item, begin_ns)                 \
    }
static const struct rp_table_column device_work_columns[] = {WORK_COLUMNS(ITEM, OWNER, ITEM_MORE)};
static const struct rp_table_column kernel_columns[] = {
    WORK_COLUMNS(KERNEL, KERNEL_OWNER, KERNEL_MORE)};

#define LAUNCH(member) AT(LAUNCH, struct rp_launch, member)
#define CALL(array)    VIA(LAUNCH, struct rp_launch, call, array)
static const struct rp_table_column launch_columns[] = {
    RANK_COLUMN,
    {"event", "id of the host call in events", RP_CELL_U32, LAUNCH(call), .indexed = true},
    {"ts_ns", "start of the call, as recorded", RP_CELL_I64, .unit = RP_UNIT_NS, CALL(TS)},
    {"dur_ns", "duration of the call", RP_CELL_I64, .unit = RP_UNIT_NS, LAUNCH(call_ns)},
    {"name", "name of the call", RP_CELL_NAME, CALL(NAME)},
    {"delay_ns", "from the end of the call to the start of its first work; 0: it began before",
     RP_CELL_I64, .unit = RP_UNIT_NS, LAUNCH(delay_ns)},
    {"device_ns", "duration of all work that it started, added", RP_CELL_I64, .unit = RP_UNIT_NS,
     LAUNCH(device_ns)},
    {"kernels", "how much work it started: more than 1 for a graph", RP_CELL_U32,
     .unit = RP_UNIT_COUNT, LAUNCH(items)},
    {"kernel_event", "id of the first", RP_CELL_U32, AT(LAUNCH_MORE, struct rp_launch_more, first),
     .indexed = true},
    {"kernel", "name of the first", RP_CELL_NAME,
     VIA(LAUNCH_MORE, struct rp_launch_more, first, NAME)},
    {"stream", "stream of the first", RP_CELL_TEXT, .via = RP_ARRAY_LAUNCH_MORE,
     .via_offset = offsetof(struct rp_launch_more, stream),
     AT(STREAM, struct rp_stream_row, label)},
    {"step", "number of the step in which it is", RP_CELL_I64,
     AT(LAUNCH_MORE, struct rp_launch_more, step), NULLS(RP_ABSENT_I64)},
    {"operator", "name of the operator around the call", RP_CELL_NAME,
     AT(LAUNCH_MORE, struct rp_launch_more, op), NULLS(0)},
    {"at_ns", SINCE, RP_CELL_SINCE, .unit = RP_UNIT_NS, CALL(TS)},
};

#define OP(member)  AT(OPERATOR, struct rp_operator_row, member)
#define SPAN(array) VIA(OPERATOR, struct rp_operator_row, event, array)
static const struct rp_table_column operator_columns[] = {
    RANK_COLUMN,
    {"event", "its id in events", RP_CELL_U32, OP(event), .indexed = true},
    {"ts_ns", "its start, as recorded", RP_CELL_I64, .unit = RP_UNIT_NS, SPAN(TS)},
    {"dur_ns", "its duration on the host", RP_CELL_I64, .unit = RP_UNIT_NS, SPAN(DUR),
     NULLS(RP_OPEN_NS)},
    {"end_ns", "its end", RP_CELL_END, .unit = RP_UNIT_NS, SPAN(TS)},
    {"name", "its name", RP_CELL_NAME, SPAN(NAME)},
    {"self_ns", "duration without the operators inside it", RP_CELL_I64, .unit = RP_UNIT_NS,
     OP(self_ns)},
    {"device_ns", "duration of the device work that it launched itself, added", RP_CELL_I64,
     .unit = RP_UNIT_NS, OP(device_ns)},
    {"kernels", "number of that work", RP_CELL_I64, .unit = RP_UNIT_COUNT, OP(kernels)},
    {"shapes", "shapes of its inputs, where they were recorded", RP_CELL_NAME, OP(shapes),
     NULLS(0)},
    {"types", "element types of its inputs, where they were recorded", RP_CELL_NAME, OP(types),
     NULLS(0)},
    {"parent", "id of the operator around it", RP_CELL_U32, OP(parent), NULLS(RP_NONE),
     .indexed = true},
    {"track", "number of its thread", RP_CELL_U32, SPAN(TRACK_OF)},
    {"step", "number of the step in which it starts", RP_CELL_I64, OP(step), NULLS(RP_ABSENT_I64)},
    {"at_ns", SINCE, RP_CELL_SINCE, .unit = RP_UNIT_NS, SPAN(TS)},
};

#define S(member, cell, doc, ...) \
    COLUMN(STEP, struct rp_step_row, member, RP_CELL_##cell, doc, __VA_ARGS__)
#define S_NS(member, doc) S(member, I64, doc, .unit = RP_UNIT_NS)
static const struct rp_table_column step_columns[] = {
    RANK_COLUMN,
    {"step", "its number", RP_CELL_I64, AT(STEP, struct rp_step_row, number)},
    S(name, TEXT, "its name", .nullable = false),
    S_NS(begin_ns, "its begin: its mark, or the end of earlier device work"),
    S_NS(end_ns, "its end: the begin of the next one, or that of its own work"),
    S_NS(dur_ns, "from begin to end"),
    S_NS(mark_ns, "begin of its mark on the host"),
    S_NS(mark_end_ns, "end of that mark"),
    S(source, TEXT, "by what it was found: profiler, annotation, repetition, …", .nullable = false),
    S(phase, TEXT, "of a server: prefill, decode or mixed", NULLS(0)),
    S(requests, I64, "of a server: requests in it", .unit = RP_UNIT_COUNT, NULLS(RP_NO_COUNT)),
    S(tokens, I64, "of a server: tokens in it", .unit = RP_UNIT_COUNT, NULLS(RP_NO_COUNT)),
    S_NS(busy_ns, "device work runs"),
    S_NS(compute_ns, "compute runs"),
    S_NS(comm_ns, "communication runs"),
    S_NS(exposed_comm_ns, "communication runs and no compute"),
    S_NS(memory_ns, "copies and memsets run"),
    S_NS(idle_ns, "nothing runs"),
    S(warm_up, BOOL, "one of the first, far longer than the others: is not judged",
      .nullable = false),
    {"at_ns", SINCE, RP_CELL_SINCE, .unit = RP_UNIT_NS, AT(STEP, struct rp_step_row, begin_ns)},
};

#define C(member)      AT(COLLECTIVE, struct rp_collective, member)
#define C_MORE(member) AT(COLLECTIVE_MORE, struct rp_collective_more, member)
static const struct rp_table_column collective_columns[] = {
    RANK_COLUMN,
    {"event", "its id in events", RP_CELL_U32, C(event), .indexed = true},
    {"ts_ns", "its start, as recorded", RP_CELL_I64, .unit = RP_UNIT_NS, C(begin_ns)},
    {"dur_ns", "its duration", RP_CELL_I64, .unit = RP_UNIT_NS, C_MORE(dur_ns)},
    {"end_ns", "its end", RP_CELL_I64, .unit = RP_UNIT_NS, C(end_ns)},
    {"name", "its name", RP_CELL_TEXT, C(name)},
    {"kind", "all_reduce, all_gather, …", RP_CELL_WORD, C(kind),
     WORDS(word_collective, RP_COLL_KINDS)},
    {"process_group", "its process group", RP_CELL_TEXT, C(group), NULLS(0)},
    {"group_size", "ranks of the group", RP_CELL_I64, .unit = RP_UNIT_COUNT, C(group_size),
     NULLS(0)},
    {"dtype", "element type", RP_CELL_TEXT, C(dtype), NULLS(0)},
    {"seq", "its number in the group", RP_CELL_I64, C(seq), NULLS(-1)},
    {"in_bytes", "what this rank sends", RP_CELL_I64, .unit = RP_UNIT_BYTES, C(in_bytes),
     NULLS(-1)},
    {"out_bytes", "what this rank receives", RP_CELL_I64, .unit = RP_UNIT_BYTES, C(out_bytes),
     NULLS(-1)},
    {"meeting", "the same number for all ranks that take part", RP_CELL_I64, C_MORE(meeting),
     NULLS(RP_ABSENT_I64), .indexed = true},
    {"wait_ns", "how long it waited for other ranks", RP_CELL_I64, .unit = RP_UNIT_NS,
     C_MORE(wait_ns), NULLS(RP_ABSENT_I64)},
    {"transfer_ns", "the rest of its duration", RP_CELL_I64, .unit = RP_UNIT_NS,
     C_MORE(transfer_ns), NULLS(RP_ABSENT_I64)},
    {"last_rank", "the rank that arrived last", RP_CELL_I64, C_MORE(last_rank),
     NULLS(RP_ABSENT_I64)},
    {"launch", "id of the host call that started it", RP_CELL_U32, C(launch), NULLS(RP_NONE)},
    {"step", "number of the step in which it was launched", RP_CELL_I64, C_MORE(step),
     NULLS(RP_ABSENT_I64)},
    {"at_ns", SINCE, RP_CELL_SINCE, .unit = RP_UNIT_NS, C(begin_ns)},
};

#define F(member, cell, doc, ...) \
    COLUMN(FINDING, struct rp_finding_row, member, RP_CELL_##cell, doc, __VA_ARGS__)
static const struct rp_table_column finding_columns[] = {
    F(id, TEXT, "its stable name", .nullable = false),
    F(title, TEXT, "what was found", .nullable = false),
    F(lost_ns, I64, "how much shorter the recording would be without it", .unit = RP_UNIT_NS),
    F(share, F64, "share of the span", .unit = RP_UNIT_RATIO),
    F(at_most, BOOL, "whether the cost is an upper bound, or overlaps with other findings",
      .nullable = false),
    F(evidence, TEXT, "its first evidence", NULLS(0)),
    F(hint, TEXT, "what to try", NULLS(0)),
};

#define NCOLUMNS(columns)       (sizeof(columns) / sizeof *(columns))
#define TABLE(columns_, start_) (columns_), NCOLUMNS(columns_), (start_)
const struct rp_table rp_tables_all[RP_TABLE_COUNT] = {
    {"ranks", "a rank of the run: one trace", TABLE(rank_columns, RP_TABLE_UNORDERED)},
    {"events", "a recorded event, of any kind", TABLE(event_columns, 2)},
    {"device_work", "a kernel, copy or memset", TABLE(device_work_columns, 2)},
    {"kernels", "device work that is a kernel", TABLE(kernel_columns, 2)},
    {"launches", "a host call that started device work", TABLE(launch_columns, RP_TABLE_UNORDERED)},
    {"operators", "a call of an operator of the framework, on the host",
     TABLE(operator_columns, RP_TABLE_UNORDERED)},
    {"steps", "a step, and where its device time went", TABLE(step_columns, 3)},
    {"collectives", "a collective of a rank, matched with those of the others",
     TABLE(collective_columns, 2)},
    {"findings", "a finding of 'reprise report', most costly first",
     TABLE(finding_columns, RP_TABLE_UNORDERED)},
};

const struct rp_table *rp_table_find(const char *name)
{
    for (size_t i = 0; i < RP_TABLE_COUNT; i++)
        if (!strcasecmp(rp_tables_all[i].name, name))
            return &rp_tables_all[i];
    return NULL;
}

const char *rp_table_type_name(const struct rp_table_column *c)
{
    if (rp_table_is_text(c))
        return "text";
    return c->cell == RP_CELL_F64 ? "real" : c->cell == RP_CELL_BOOL ? "bool" : "integer";
}

const char *rp_table_unit_name(const struct rp_table_column *c)
{
    switch (c->unit) {
    case RP_UNIT_NS:
        return "ns";
    case RP_UNIT_BYTES:
        return "bytes";
    case RP_UNIT_RATIO:
        return "share";
    case RP_UNIT_COUNT:
        return "count";
    default:
        return "";
    }
}
