/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CTF traces of other tracers, read with the libbabeltrace2 library: its ctf plugin reads the
 * folder, its muxer merges the streams by time, and our sink turns each event into names and fields
 * for other.c. The errors of the library are appended to ours. Some hundred nanoseconds an event.
 * All of this runs in a separate process (child.c), because damaged traces make the library abort
 * or never finish.
 */
#include "formats/ctf/ctf.h"
#include "formats/ctf/other.h"

#include "rp_config.h"

#if RP_HAVE_BABELTRACE
#include <babeltrace2/babeltrace.h>
#include <dlfcn.h>
#include <string.h>

/* The functions that are used: the library, and GLib below it, is loaded only where it is. */
#define FUNCTIONS(X)                                      \
    X(clock_class_get_frequency)                          \
    X(clock_class_get_offset)                             \
    X(clock_snapshot_get_ns_from_origin)                  \
    X(component_filter_borrow_input_port_by_index_const)  \
    X(component_filter_borrow_output_port_by_index_const) \
    X(component_sink_borrow_input_port_by_index_const)    \
    X(component_source_borrow_output_port_by_index_const) \
    X(component_source_get_output_port_count)             \
    X(current_thread_take_error)                          \
    X(error_borrow_cause_by_index)                        \
    X(error_cause_get_message)                            \
    X(error_get_cause_count)                              \
    X(error_release)                                      \
    X(event_borrow_class_const)                           \
    X(event_borrow_common_context_field_const)            \
    X(event_borrow_packet_const)                          \
    X(event_borrow_payload_field_const)                   \
    X(event_borrow_specific_context_field_const)          \
    X(event_class_borrow_stream_class_const)              \
    X(event_class_get_name)                               \
    X(field_bool_get_value)                               \
    X(field_borrow_class_const)                           \
    X(field_class_structure_borrow_member_by_index_const) \
    X(field_class_structure_get_member_count)             \
    X(field_class_structure_member_get_name)              \
    X(field_get_class_type)                               \
    X(field_integer_signed_get_value)                     \
    X(field_integer_unsigned_get_value)                   \
    X(field_real_double_precision_get_value)              \
    X(field_real_single_precision_get_value)              \
    X(field_string_get_value)                             \
    X(field_structure_borrow_member_field_by_index_const) \
    X(graph_add_filter_component)                         \
    X(graph_add_simple_sink_component)                    \
    X(graph_add_source_component)                         \
    X(graph_connect_ports)                                \
    X(graph_create)                                       \
    X(graph_put_ref)                                      \
    X(graph_run)                                          \
    X(message_discarded_events_get_count)                 \
    X(message_discarded_packets_get_count)                \
    X(message_event_borrow_default_clock_snapshot_const)  \
    X(message_event_borrow_event_const)                   \
    X(message_get_type)                                   \
    X(message_iterator_next)                              \
    X(message_put_ref)                                    \
    X(packet_borrow_context_field_const)                  \
    X(plugin_borrow_filter_component_class_by_name_const) \
    X(plugin_borrow_source_component_class_by_name_const) \
    X(plugin_find)                                        \
    X(plugin_put_ref)                                     \
    X(stream_class_borrow_default_clock_class_const)      \
    X(stream_class_supports_packets)                      \
    X(value_array_append_string_element)                  \
    X(value_map_create)                                   \
    X(value_map_insert_empty_array_entry)                 \
    X(value_put_ref)
struct library {
#define MEMBER(name) __typeof__(&bt_##name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

#define LOST_MAX (UINT64_C(1) << 48) /* of one gap: larger counts are invalid */

struct sink {
    const struct library *bt;
    struct rp_ctf_wire *wire;
    bt_message_iterator *iterator;
    int64_t offset_ns; /* of the clock, since 1970 */
    bool has_offset;
};

/* -------------------------------------------------------------------------- events */

static bool take_integer(const struct library *bt, const bt_field *field, bt_field_class_type type,
                         struct rp_ctf_field *out)
{
    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        out->i = (int64_t)bt->field_integer_unsigned_get_value(field);
        out->is_unsigned = true;
    } else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
        out->i = bt->field_integer_signed_get_value(field);
    } else if (type == BT_FIELD_CLASS_TYPE_BOOL) {
        out->i = bt->field_bool_get_value(field);
    } else {
        return false;
    }
    out->type = RP_ARG_I64;
    return true;
}

/* A number or a text; false for structures, arrays and variants. */
static bool take_field(const struct library *bt, const bt_field *field, const char *name,
                       struct rp_ctf_field *out)
{
    bt_field_class_type type = bt->field_get_class_type(field);

    *out = (struct rp_ctf_field){.name = name};
    if (take_integer(bt, field, type, out))
        return true;
    if (type == BT_FIELD_CLASS_TYPE_STRING) {
        out->type = RP_ARG_STR;
        out->text = bt->field_string_get_value(field);
    } else if (type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL) {
        out->type = RP_ARG_F64;
        out->f = (double)bt->field_real_single_precision_get_value(field);
    } else if (type == BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL) {
        out->type = RP_ARG_F64;
        out->f = bt->field_real_double_precision_get_value(field);
    } else {
        return false;
    }
    return true;
}

static void take_members(const struct library *bt, const bt_field *structure,
                         struct rp_ctf_other_row *e)
{
    const bt_field_class *class = bt->field_borrow_class_const(structure);
    uint64_t n = bt->field_class_structure_get_member_count(class);

    for (uint64_t i = 0; i < n && e->nfields < RP_CTF_FIELDS_MAX; i++) {
        const bt_field_class_structure_member *member =
            bt->field_class_structure_borrow_member_by_index_const(class, i);

        if (take_field(bt, bt->field_structure_borrow_member_field_by_index_const(structure, i),
                       bt->field_class_structure_member_get_name(member), &e->fields[e->nfields]))
            e->nfields++;
    }
}

/* Process, thread and CPU, from the contexts of the event and of the packet. */
static void take_place(const struct library *bt, const bt_field *structure,
                       struct rp_ctf_other_row *e)
{
    struct rp_ctf_other_row own = {.nfields = 0};

    if (!structure || bt->field_get_class_type(structure) != BT_FIELD_CLASS_TYPE_STRUCTURE)
        return;
    take_members(bt, structure, &own);
    for (uint32_t i = 0; i < own.nfields; i++) {
        const struct rp_ctf_field *f = &own.fields[i];

        if (f->type == RP_ARG_STR && !strcmp(f->name, "procname"))
            e->thread = f->text;
        if (f->type != RP_ARG_I64)
            continue;
        if (!strcmp(f->name, "vtid") || (!strcmp(f->name, "tid") && e->tid < 0))
            e->tid = f->i;
        else if (!strcmp(f->name, "vpid") || (!strcmp(f->name, "pid") && e->pid < 0))
            e->pid = f->i;
        else if (!strcmp(f->name, "cpu_id"))
            e->cpu = f->i;
    }
}

static bool take_time(struct sink *s, const bt_message *message, int64_t *ns)
{
    const struct library *bt = s->bt;
    const bt_stream_class *stream = bt->event_class_borrow_stream_class_const(
        bt->event_borrow_class_const(bt->message_event_borrow_event_const(message)));
    const bt_clock_class *clock = bt->stream_class_borrow_default_clock_class_const(stream);
    int64_t offset_s, since;
    uint64_t offset_cycles;

    *ns = RP_NO_TS;
    if (!clock || bt->clock_snapshot_get_ns_from_origin(
                      bt->message_event_borrow_default_clock_snapshot_const(message), &since) !=
                      BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK)
        return false;
    if (!s->has_offset) {
        bt->clock_class_get_offset(clock, &offset_s, &offset_cycles);
        s->offset_ns =
            offset_s * 1000000000 +
            (int64_t)((double)offset_cycles * 1e9 / (double)bt->clock_class_get_frequency(clock));
        if (bt->clock_class_get_frequency(clock) == 1000000000)
            s->offset_ns = offset_s * 1000000000 + (int64_t)offset_cycles;
        s->has_offset = true;
        rp_ctf_wire_clock(s->wire, s->offset_ns);
    }
    *ns = since - s->offset_ns;
    return true;
}

static void read_event(struct sink *s, const bt_message *message)
{
    const struct library *bt = s->bt;
    const bt_event *event = bt->message_event_borrow_event_const(message);
    const char *name = bt->event_class_get_name(bt->event_borrow_class_const(event));
    const bt_field *payload = bt->event_borrow_payload_field_const(event);
    struct rp_ctf_other_row e = {
        .name = name && *name ? name : "event", .pid = -1, .tid = -1, .cpu = -1};
    const bt_stream_class *stream =
        bt->event_class_borrow_stream_class_const(bt->event_borrow_class_const(event));

    if (!take_time(s, message, &e.ns)) {
        rp_ctf_wire_lost(s->wire, 0, 0, 1);
        return;
    }
    if (bt->stream_class_supports_packets(stream))
        take_place(bt, bt->packet_borrow_context_field_const(bt->event_borrow_packet_const(event)),
                   &e);
    take_place(bt, bt->event_borrow_common_context_field_const(event), &e);
    take_place(bt, bt->event_borrow_specific_context_field_const(event), &e);
    if (payload && bt->field_get_class_type(payload) == BT_FIELD_CLASS_TYPE_STRUCTURE)
        take_members(bt, payload, &e);
    rp_ctf_wire_event(s->wire, &e);
}

static void read_message(struct sink *s, const bt_message *message)
{
    const struct library *bt = s->bt;
    uint64_t lost = 1; /* if the number is not known */

    switch (bt->message_get_type(message)) {
    case BT_MESSAGE_TYPE_EVENT:
        read_event(s, message);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
        if (bt->message_discarded_events_get_count(message, &lost) ==
            BT_PROPERTY_AVAILABILITY_AVAILABLE)
            rp_ctf_wire_lost(s->wire, lost < LOST_MAX ? lost : LOST_MAX, 0, 0);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
        (void)bt->message_discarded_packets_get_count(message, &lost);
        rp_ctf_wire_lost(s->wire, 0, lost < LOST_MAX ? lost : LOST_MAX, 0);
        break;
    default:
        break;
    }
}

/* -------------------------------------------------------------------------- the graph */

static bt_graph_simple_sink_component_initialize_func_status on_begin(bt_message_iterator *iterator,
                                                                      void *user)
{
    struct sink *s = user;

    s->iterator = iterator;
    return BT_GRAPH_SIMPLE_SINK_COMPONENT_INITIALIZE_FUNC_STATUS_OK;
}

static bt_graph_simple_sink_component_consume_func_status on_messages(bt_message_iterator *iterator,
                                                                      void *user)
{
    struct sink *s = user;
    const struct library *bt = s->bt;
    bt_message_array_const messages;
    uint64_t n = 0;
    bt_message_iterator_next_status status = bt->message_iterator_next(iterator, &messages, &n);

    if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END)
        return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END;
    if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK)
        return (bt_graph_simple_sink_component_consume_func_status)status;
    for (uint64_t i = 0; i < n; i++) {
        read_message(s, messages[i]);
        bt->message_put_ref(messages[i]);
    }
    return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK;
}

/* Appends the innermost cause that the library reports. */
static enum rp_code tell_error(const struct library *bt, struct rp_err *err, const char *what)
{
    const bt_error *error = bt->current_thread_take_error();
    const char *text = "no reason given";

    if (error && bt->error_get_cause_count(error))
        text = bt->error_cause_get_message(bt->error_borrow_cause_by_index(error, 0));
    rp_err_set(err, RP_FORMAT, "%s: %.600s (libbabeltrace2)", what, text);
    if (error)
        bt->error_release(error);
    return RP_FORMAT;
}

struct graph {
    const bt_plugin *ctf, *utils;
    bt_graph *graph;
    bt_value *params;
};

static const bt_plugin *find_plugin(const struct library *bt, const char *name)
{
    const bt_plugin *plugin = NULL;

    if (bt->plugin_find(name, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, &plugin) !=
        BT_PLUGIN_FIND_STATUS_OK)
        return NULL;
    return plugin;
}

static bool connect_components(const struct library *bt, struct graph *g,
                               const bt_component_source *source, const bt_component_filter *muxer,
                               const bt_component_sink *sink)
{
    uint64_t n = bt->component_source_get_output_port_count(source);

    for (uint64_t i = 0; i < n; i++) {
        if (bt->graph_connect_ports(
                g->graph, bt->component_source_borrow_output_port_by_index_const(source, i),
                bt->component_filter_borrow_input_port_by_index_const(muxer, i),
                NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK)
            return false;
    }
    return bt->graph_connect_ports(g->graph,
                                   bt->component_filter_borrow_output_port_by_index_const(muxer, 0),
                                   bt->component_sink_borrow_input_port_by_index_const(sink, 0),
                                   NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK;
}

static enum rp_code build_graph(struct graph *g, const char *folder, struct sink *s,
                                struct rp_err *err)
{
    const struct library *bt = s->bt;
    const bt_component_source *source = NULL;
    const bt_component_filter *muxer = NULL;
    const bt_component_sink *sink = NULL;
    bt_value *inputs = NULL;

    g->ctf = find_plugin(bt, "ctf");
    g->utils = find_plugin(bt, "utils");
    if (!g->ctf || !g->utils)
        return tell_error(bt, err, "the plugins of babeltrace2 are not installed");
    g->graph = bt->graph_create(0);
    g->params = bt->value_map_create();
    if (!g->graph || !g->params ||
        bt->value_map_insert_empty_array_entry(g->params, "inputs", &inputs) ||
        bt->value_array_append_string_element(inputs, folder))
        return tell_error(bt, err, "cannot begin");
    if (bt->graph_add_source_component(
            g->graph, bt->plugin_borrow_source_component_class_by_name_const(g->ctf, "fs"), "in",
            g->params, BT_LOGGING_LEVEL_NONE, &source))
        return tell_error(bt, err, "is not a readable CTF trace");
    if (bt->graph_add_filter_component(
            g->graph, bt->plugin_borrow_filter_component_class_by_name_const(g->utils, "muxer"),
            "muxer", NULL, BT_LOGGING_LEVEL_NONE, &muxer) ||
        bt->graph_add_simple_sink_component(g->graph, "out", on_begin, on_messages, NULL, s,
                                            &sink) ||
        !connect_components(bt, g, source, muxer, sink))
        return tell_error(bt, err, "cannot merge its streams");
    return RP_OK;
}

/* All of its functions; it stays loaded. */
static enum rp_code load_library(struct library *bt, struct rp_err *err)
{
    void *handle = dlopen("libbabeltrace2.so.0", RTLD_NOW | RTLD_LOCAL);
    void *function;

#define LOAD(name)                                                                                \
    function = handle ? dlsym(handle, "bt_" #name) : NULL;                                        \
    if (!function)                                                                                \
        return rp_err_set(err, RP_UNSUPPORTED,                                                    \
                          "is a CTF trace of another tracer, and libbabeltrace2 cannot be used: " \
                          "%s",                                                                   \
                          dlerror());                                                             \
    memcpy(&bt->name, &function, sizeof function);
    FUNCTIONS(LOAD)
#undef LOAD
    return RP_OK;
}

enum rp_code rp_ctf_babeltrace_run(const char *folder, struct rp_ctf_wire *w, struct rp_err *err)
{
    struct library library;
    const struct library *bt = &library;
    struct sink s = {.bt = bt, .wire = w};
    struct graph g = {0};
    bt_graph_run_status status = BT_GRAPH_RUN_STATUS_AGAIN;

    RP_TRY(load_library(&library, err));
    enum rp_code code = build_graph(&g, folder, &s, err);
    while (code == RP_OK && status == BT_GRAPH_RUN_STATUS_AGAIN)
        status = bt->graph_run(g.graph);
    if (code == RP_OK && status != BT_GRAPH_RUN_STATUS_OK)
        code = tell_error(bt, err, "is damaged");
    bt->value_put_ref(g.params);
    bt->graph_put_ref(g.graph);
    bt->plugin_put_ref(g.ctf);
    bt->plugin_put_ref(g.utils);
    return code;
}

#endif
