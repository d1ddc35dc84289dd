/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of a rank. "The device" of a rank in a report is its main device, the one that
 * computes longest: the union of several devices would hide that each of them waits, and their mean
 * would mix a device that computes with one that was only initialised. All of them have a row.
 */
#include "explain/report/report.h"

#include "result/part.h"
#include "result/print_units.h"

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_report_device_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(rank, I64, NONE, "rank", "whose device", 0),
    ROW(device, I64, NONE, "device", "its number; null: not recorded", RP_NULLABLE),
    ROW(name, STR, NONE, "name", "its model, or null", RP_WIDE | RP_SHORTEN),
    ROW(window_ns, I64, NS, "window", "first start to last end of its work", 0),
    ROW(busy_ns, I64, NS, "busy", "time in which its work runs", 0),
    ROW(compute_ns, I64, NS, "compute", "time in which kernels other than communication run", 0),
    ROW(comm_ns, I64, NS, "comm", "time in which communication kernels run", 0),
    ROW(exposed_comm_ns, I64, NS, NULL, "communication while no compute runs", 0),
    ROW(memory_ns, I64, NS, "copies", "time in which copies and memsets run", RP_WIDE),
    ROW(idle_ns, I64, NS, "idle", "time in which nothing runs", RP_LARGEST),
    ROW(idle_share, F64, RATIO, "share", "idle / window", 0),
    ROW(is_main, BOOL, NONE, NULL, "whether the rank's numbers are those of this device", 0),
    RP_FIELD_END};
const struct rp_type rp_report_device_row_type = {"device", sizeof(struct rp_report_device_row),
                                                  row_fields, NULL};

static const char *device_name(const struct rp_trace *t, int64_t number, struct rp_arena *arena)
{
    for (uint32_t i = 0; i < t->ndevices; i++)
        if (t->devices[i].id == number)
            return rp_arena_text(arena, rp_trace_str(t, t->devices[i].name));
    return NULL;
}

static enum rp_code break_down(const struct rp_work *work, uint16_t device,
                               struct rp_breakdown *out, struct rp_err *err)
{
    RP_SCOPED(rp_work_unions_release) struct rp_work_unions unions = {0};
    RP_SCOPED(rp_work_release) struct rp_work own = {0};

    RP_TRY(rp_work_of_device(work, device, &own, err));
    RP_TRY(rp_work_unite(&own, &unions, err));
    *out = rp_work_breakdown(&unions);
    return RP_OK;
}

enum rp_code rp_report_list_devices(struct rp_work *work, struct rp_arena *arena,
                                    struct rp_report_part *out, struct rp_err *err)
{
    uint16_t i, n = (uint16_t)work->devices.n, chosen;

    out->devices = RP_ARENA_NEW(arena, struct rp_report_device_row, n + 1);
    RP_TRY(rp_err_need(out->devices, err, "listing devices"));
    if (!n)
        return RP_OK;
    chosen = rp_work_main_device(work);
    for (i = 0; i < n; i++) {
        const struct rp_work_device *d = &work->devices.at[i];
        struct rp_breakdown b;

        RP_TRY(break_down(work, i, &b, err));
        out->devices[out->ndevices++] = (struct rp_report_device_row){
            .device = d->number < 0 ? RP_ABSENT_I64 : d->number,
            .name = device_name(work->trace, d->number, arena),
            .window_ns = b.window_ns,
            .busy_ns = b.busy_ns,
            .compute_ns = b.compute_ns,
            .comm_ns = b.comm_ns,
            .exposed_comm_ns = b.exposed_comm_ns,
            .memory_ns = b.memory_ns,
            .idle_ns = b.idle_ns,
            .idle_share = b.window_ns > 0 ? (double)b.idle_ns / (double)b.window_ns : 0,
            .is_main = i == chosen};
    }
    rp_work_keep_device(work, chosen);
    return rp_arena_check(arena, "listing devices", err);
}

/* "rank 0 uses 8 devices: its times are those of device 2, which computes longest, 41.2 ms; the
   others 40.9 ms to 41.0 ms" */
static const char *several_text(const struct rp_report_part *p, int32_t rank,
                                struct rp_arena *arena)
{
    int64_t least = INT64_MAX, most = 0;
    const struct rp_report_device_row *chosen = p->devices;

    for (size_t i = 0; i < p->ndevices; i++) {
        const struct rp_report_device_row *d = &p->devices[i];

        if (d->is_main)
            chosen = d;
        else
            least = d->compute_ns < least ? d->compute_ns : least;
        if (!d->is_main)
            most = d->compute_ns > most ? d->compute_ns : most;
    }
    const char *number = chosen->device == RP_ABSENT_I64
                             ? "one of them"
                             : rp_arena_textf(arena, "device %lld", (long long)chosen->device);
    return rp_arena_textf(arena,
                          "rank %d uses %zu devices: its times are those of %s, which "
                          "computes longest, %s; the other%s %s%s%s",
                          rank, p->ndevices, number, rp_units_time(arena, chosen->compute_ns),
                          p->ndevices > 2 ? "s" : "", rp_units_time(arena, least),
                          least == most ? "" : " to ",
                          least == most ? "" : rp_units_time(arena, most));
}

const char *rp_report_join_devices(const struct rp_ranks *ranks, struct rp_arena *arena,
                                   struct rp_report_root *out)
{
    const char *note = NULL;
    size_t r, i, n = 0;
    bool several = false;

    for (r = 0; r < ranks->n; r++)
        n += rp_report_part_of(ranks, r)->ndevices;
    out->devices = RP_ARENA_NEW(arena, struct rp_report_device_row, n + 1);
    for (r = 0; out->devices && r < ranks->n; r++) {
        const struct rp_report_part *p = rp_report_part_of(ranks, r);

        for (i = 0; i < p->ndevices; i++) {
            out->devices[out->ndevices] = p->devices[i];
            out->devices[out->ndevices++].rank = ranks->parts[r].number;
        }
        if (p->ndevices > 1 && !several)
            note = several_text(p, ranks->parts[r].number, arena);
        several = several || p->ndevices > 1;
    }
    out->device_rows = out->devices;
    out->ndevice_rows = several ? out->ndevices : 0;
    return note;
}
