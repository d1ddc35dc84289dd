/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads snapshots of PyTorch's caching allocator (torch.cuda.memory._dump_snapshot), which are a
 * pickle or the same as JSON:
 *
 *     segments       what the allocator holds when the snapshot is taken: [{device, address,
 *                    total_size, allocated_size, blocks: [{size, state, frames} ...]} ...]
 *     device_traces  per device the last entries of its log: [{action, addr, size, stream, time_us,
 *                    frames: [{name, filename, line} ...]} ...]
 *     external_annotations  [{stage: START or END, name, device, time_us} ...]
 *
 * Allocations and requests to free become instants "[memory]" with the arguments that PyTorch's
 * profiler gives them, so that all questions treat both alike; other actions become instants of
 * their own name. The bytes are the size of the block that was given (blocks.h), so that the totals
 * agree with torch.cuda.memory_allocated. They start from the blocks that were live when the log
 * begins, which follow from those at its end. Annotations become spans around the entries. Segments
 * and blocks become instants "[segment]" and "[block]" at the end.
 *
 * Older versions: a list of segments alone, blocks with a `history` instead of frames, entries
 * without time. Linear in the values, except for sorting blocks by address; frames that several
 * entries share are read once.
 */
#include "base/hash.h"
#include "formats/formats.h"
#include "formats/pickle/pickle.h"
#include "formats/torch_memory/blocks.h"
#include "formats/torch_memory/json_values.h"
#include "trace/build/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES  32768 /* longest text of one call stack */
#define MOST_DEVICES 4096
#define TIME_MAX_US  (INT64_MAX / 4000)

enum {
    KEY_ADDR,
    KEY_BYTES,
    KEY_ALLOCATED,
    KEY_RESERVED,
    KEY_DEVICE_ID,
    KEY_DEVICE_TYPE,
    KEY_STREAM,
    KEY_STACK,
    KEY_ACTIVE,
    KEY_REQUESTED,
    KEY_STATE,
    KEY_SEGMENT,
    KEY_FREE,
    KEYS
};

static const char *const key_names[KEYS] = {
    "Addr",        "Bytes",   "Total Allocated", "Total Reserved", "Device Id",
    "Device Type", "stream",  "Call stack",      "Active",         "Requested",
    "State",       "Segment", "Device Free"};

struct device_state {
    int64_t allocated_end, reserved_end; /* totals when the snapshot was taken */
    int64_t allocated, reserved;         /* running */
    struct rp_blocks blocks;             /* running */
    struct rp_map open; /* from an address to 1 (allocated by the log so far) or 0 (freed), while
                           the log is rewound */
    rp_track track;
    bool used;
};

struct snapshot_reader {
    struct rp_pickle values;
    struct rp_builder *b;
    struct device_state *devices;
    size_t ndevices;
    rp_str keys[KEYS];
    uint16_t instant, span;
    struct rp_map stacks; /* from a list of frames to its string */
    rp_str empty_stack;
    char *text;    /* STACK_BYTES */
    size_t nbytes; /* of the input */
    int64_t first_us, last_us;
    bool timed, clamped;
    bool expandable; /* some segments grow, so the sizes of blocks are not known */
    struct rp_err *err;
};

static int64_t get_int(const struct snapshot_reader *r, rp_pickle_id dict, const char *key)
{
    return rp_pickle_get_int(&r->values, dict, key, 0);
}

static enum rp_code list_items(struct snapshot_reader *r, rp_pickle_id list,
                               const rp_pickle_id **items, size_t *n)
{
    return rp_pickle_items(&r->values, list, r->nbytes, items, n, r->err);
}

/* ------------------------------------------------------------------ call stacks */

static bool frame_is_python(struct rp_pickle_text file)
{
    return file.n > 3 && !memcmp(file.at + file.n - 3, ".py", 3);
}

/* Writes a frame as the profiler does: "name" for C++, "file.py(12): name" for Python. */
static int print_frame(const struct snapshot_reader *r, rp_pickle_id frame, char *to, size_t cap)
{
    struct rp_pickle_text name = rp_pickle_get_text(&r->values, frame, "name");
    struct rp_pickle_text file = rp_pickle_get_text(&r->values, frame, "filename");
    int nname = (int)(name.n < 1000 ? name.n : 1000), nfile = (int)(file.n < 1000 ? file.n : 1000);

    if (frame_is_python(file) || (file.n > 0 && file.at[0] == '<'))
        return snprintf(to, cap, "%.*s(%lld): %.*s", nfile, file.at,
                        (long long)get_int(r, frame, "line"), nname, name.at);
    return snprintf(to, cap, "%.*s", nname, name.at);
}

/* Writes the frames as one text, the innermost first, separated by ';'. */
static enum rp_code stack_text(struct snapshot_reader *r, rp_pickle_id frames, rp_str *out)
{
    const rp_pickle_id *items;
    size_t n, used = 0;

    *out = r->empty_stack;
    if (!rp_pickle_is_list(&r->values, frames))
        return RP_OK;
    uint32_t known = rp_map_get(&r->stacks, frames);
    if (known != RP_MAP_NONE) {
        *out = known;
        return RP_OK;
    }
    RP_TRY(list_items(r, frames, &items, &n));
    for (size_t i = 0; i < n && used + 2100 < STACK_BYTES; i++) {
        if (used)
            r->text[used++] = ';';
        used += (size_t)print_frame(r, items[i], r->text + used, STACK_BYTES - used);
    }
    RP_TRY(rp_builder_intern(r->b, r->text, used, out, r->err));
    return rp_map_put(&r->stacks, frames, *out, r->err);
}

/* ------------------------------------------------------------------ events */

static struct rp_arg int_arg(const struct snapshot_reader *r, int key, int64_t i)
{
    return (struct rp_arg){.key = r->keys[key], .type = RP_ARG_I64, .v.i = i};
}

static enum rp_code add_instant(struct snapshot_reader *r, size_t device, int64_t us,
                                const char *name, size_t len, const struct rp_arg *args,
                                uint32_t nargs)
{
    struct rp_raw raw = {.ts_ns = (us - r->first_us) * 1000,
                         .dur_ns = RP_OPEN_NS,
                         .track = r->devices[device].track,
                         .origin = r->instant,
                         .args = args,
                         .nargs = nargs};

    RP_TRY(rp_builder_intern(r->b, name, len < 200 ? len : 200, &raw.name, r->err));
    RP_TRY(rp_builder_shape(r->b, args, nargs, &raw.shape, r->err));
    return rp_builder_add(r->b, &raw, r->err);
}

/* By how much an action changes the allocated bytes. */
static int64_t allocated_by(struct rp_pickle_text action, int64_t size)
{
    if (rp_pickle_text_is(action, "alloc"))
        return size;
    return rp_pickle_text_is(action, "free_requested") || rp_pickle_text_is(action, "free") ? -size
                                                                                            : 0;
}

static int64_t reserved_by(struct rp_pickle_text action, int64_t size)
{
    if (rp_pickle_text_is(action, "segment_alloc") || rp_pickle_text_is(action, "segment_map"))
        return size;
    return rp_pickle_text_is(action, "segment_free") || rp_pickle_text_is(action, "segment_unmap")
               ? -size
               : 0;
}

static int64_t add_clamped(struct snapshot_reader *r, int64_t total, int64_t change)
{
    int64_t sum;

    if (__builtin_add_overflow(total, change, &sum) || sum < 0) {
        r->clamped = true;
        return 0;
    }
    return sum;
}

static int64_t entry_size(const struct snapshot_reader *r, rp_pickle_id entry)
{
    int64_t size = get_int(r, entry, "size");

    return size < 0 || size > INT64_MAX / 4 ? 0 : size;
}

/* The time of an entry, or its number if it has none. */
static int64_t entry_us(const struct snapshot_reader *r, rp_pickle_id entry, size_t i)
{
    int64_t us = rp_pickle_get_int(&r->values, entry, "time_us", -1);

    if (!r->timed)
        return (int64_t)i;
    return us < r->first_us || us > r->last_us ? r->first_us : us;
}

/* Replaces the size that was asked for in *change by the size of the block. */
static enum rp_code size_block(struct snapshot_reader *r, struct device_state *d,
                               struct rp_pickle_text action, int64_t addr, int64_t size,
                               int64_t *change)
{
    if (r->expandable) {
        *change = *change / 512 * 512 + (*change % 512 > 0 ? 512 : *change % 512 < 0 ? -512 : 0);
    } else if (rp_pickle_text_is(action, "segment_alloc")) {
        RP_TRY(rp_blocks_add_segment(&d->blocks, addr, size, r->err));
    } else if (rp_pickle_text_is(action, "segment_free")) {
        rp_blocks_remove_segment(&d->blocks, addr);
    } else if (rp_pickle_text_is(action, "free_completed")) {
        rp_blocks_free(&d->blocks, addr);
    } else if (*change > 0) {
        RP_TRY(rp_blocks_allocate(&d->blocks, addr, size, change, r->err));
    } else if (*change < 0) {
        int64_t bytes = rp_blocks_size(&d->blocks, addr);

        *change = bytes > 0 ? -bytes : *change;
        if (rp_pickle_text_is(action, "free"))
            rp_blocks_free(&d->blocks, addr);
    }
    return RP_OK;
}

static enum rp_code add_entry(struct snapshot_reader *r, size_t device, rp_pickle_id entry,
                              int64_t us)
{
    struct rp_pickle_text action = rp_pickle_get_text(&r->values, entry, "action");
    struct device_state *d = &r->devices[device];
    int64_t size = entry_size(r, entry), change = allocated_by(action, size);
    struct rp_arg args[10];
    uint32_t n = 0;

    RP_TRY(size_block(r, d, action, get_int(r, entry, "addr"), size, &change));
    d->allocated = add_clamped(r, d->allocated, change);
    d->reserved = add_clamped(r, d->reserved, reserved_by(action, size));
    args[n++] = int_arg(r, KEY_ADDR, get_int(r, entry, "addr"));
    args[n++] = int_arg(r, KEY_BYTES, change ? change : size);
    args[n++] = int_arg(r, KEY_ALLOCATED, d->allocated);
    args[n++] = int_arg(r, KEY_RESERVED, d->reserved);
    args[n++] = int_arg(r, KEY_DEVICE_TYPE, 1);
    args[n++] = int_arg(r, KEY_DEVICE_ID, (int64_t)device);
    args[n++] = int_arg(r, KEY_STREAM, get_int(r, entry, "stream"));
    args[n++] = int_arg(r, KEY_REQUESTED, size);
    if (rp_pickle_text_is(action, "oom"))
        args[n++] = int_arg(r, KEY_FREE, get_int(r, entry, "device_free"));
    args[n] = (struct rp_arg){.key = r->keys[KEY_STACK], .type = RP_ARG_STR};
    RP_TRY(stack_text(r, rp_pickle_get(&r->values, entry, "frames"), &args[n++].v.s));
    if (change)
        return add_instant(r, device, us, "[memory]", 8, args, n);
    return add_instant(r, device, us, action.n ? action.at : "unknown", action.n ? action.n : 7,
                       args, n);
}

/* ------------------------------------------------------------------ devices and times */

static enum rp_code name_device(struct snapshot_reader *r, size_t device)
{
    struct device_state *d = &r->devices[device];
    uint32_t process;
    rp_str text;
    char name[40];
    int n = snprintf(name, sizeof name, "allocator of GPU %zu", device);

    if (d->used)
        return RP_OK;
    d->used = true;
    RP_TRY(rp_builder_process(r->b, (int64_t)device, 0, &process, r->err));
    RP_TRY(rp_builder_track(r->b, process, 0, 0, true, &d->track, r->err));
    RP_TRY(rp_builder_intern(r->b, name, (size_t)n, &text, r->err));
    return rp_builder_label(r->b, d->track, "process_name", "name", text, r->err);
}

static int64_t segment_device(const struct snapshot_reader *r, rp_pickle_id segment)
{
    int64_t device = get_int(r, segment, "device");

    return device < 0 || device >= MOST_DEVICES ? 0 : device;
}

/* Sums up the segments, and counts the devices. */
static enum rp_code sum_segments(struct snapshot_reader *r, rp_pickle_id segments)
{
    const rp_pickle_id *items;
    size_t n;

    RP_TRY(list_items(r, segments, &items, &n));
    for (size_t i = 0; i < n; i++) {
        size_t device = (size_t)segment_device(r, items[i]);
        struct device_state *d = &r->devices[device];

        r->ndevices = device + 1 > r->ndevices ? device + 1 : r->ndevices;
        d->reserved_end = add_clamped(r, d->reserved_end, get_int(r, items[i], "total_size"));
        d->allocated_end = add_clamped(r, d->allocated_end, get_int(r, items[i], "allocated_size"));
    }
    return RP_OK;
}

static void see_time(struct snapshot_reader *r, rp_pickle_id entry)
{
    int64_t us = rp_pickle_get_int(&r->values, entry, "time_us", -1);

    if (us < 0 || us > TIME_MAX_US)
        return;
    r->first_us = !r->timed || us < r->first_us ? us : r->first_us;
    r->last_us = !r->timed || us > r->last_us ? us : r->last_us;
    r->timed = true;
}

static enum rp_code rewind_device(struct snapshot_reader *r, size_t device, rp_pickle_id log)
{
    struct device_state *d = &r->devices[device];
    const rp_pickle_id *items;
    int64_t reserved = 0;
    size_t n;

    RP_TRY(list_items(r, log, &items, &n));
    if (n && device >= r->ndevices)
        r->ndevices = device + 1;
    for (size_t i = 0; i < n; i++) {
        /* Finds what the log of a device says about the time before it: segments and blocks that it
           frees without having allocated them. Blocks that it allocates are noted in `open`. */
        struct rp_pickle_text action = rp_pickle_get_text(&r->values, items[i], "action");
        int64_t size = entry_size(r, items[i]), addr = get_int(r, items[i], "addr");
        int64_t change = allocated_by(action, size), grows = reserved_by(action, size);
        uint64_t key =
            (uint64_t)addr << 1 | (grows != 0); /* distinguishes a segment from its first block */
        uint32_t was = rp_map_get(&d->open, key);
        see_time(r, items[i]);
        r->expandable = r->expandable || rp_pickle_text_is(action, "segment_map") ||
                        rp_pickle_text_is(action, "segment_unmap");
        if (__builtin_add_overflow(reserved, grows, &reserved))
            return rp_err_set(r->err, RP_FORMAT, "the sizes of a log add up to over 2^63 bytes");
        if (grows < 0 && was != 1)
            RP_TRY(rp_blocks_add_segment(&d->blocks, addr, size, r->err));
        if (!change && !grows)
            continue;
        RP_TRY(rp_map_put(&d->open, key, change > 0 || grows > 0, r->err));
    }
    d->reserved = d->reserved_end >= reserved ? d->reserved_end - reserved : 0;
    if (d->reserved_end < reserved)
        r->clamped = true;
    return RP_OK;
}

/* Segments and live blocks at the end that the log did not make were there when it began. */
static enum rp_code rewind_segment(struct snapshot_reader *r, rp_pickle_id segment)
{
    struct device_state *d = &r->devices[segment_device(r, segment)];
    int64_t address = get_int(r, segment, "address"), next = address;
    const rp_pickle_id *blocks;
    size_t n;

    r->expandable = r->expandable || rp_pickle_get_int(&r->values, segment, "is_expandable", 0);
    if (rp_map_get(&d->open, (uint64_t)address << 1 | 1) != 1)
        RP_TRY(
            rp_blocks_add_segment(&d->blocks, address, get_int(r, segment, "total_size"), r->err));
    RP_TRY(list_items(r, rp_pickle_get(&r->values, segment, "blocks"), &blocks, &n));
    for (size_t i = 0; i < n; i++) {
        struct rp_pickle_text state = rp_pickle_get_text(&r->values, blocks[i], "state");
        int64_t at = rp_pickle_get_int(&r->values, blocks[i], "address", next);
        int64_t size = entry_size(r, blocks[i]);
        uint32_t was = rp_map_get(&d->open, (uint64_t)at << 1);

        next = add_clamped(r, at, size);
        if (rp_pickle_text_is(state, "inactive") || was != RP_MAP_NONE)
            continue; /* the log has allocated or freed it, and so knows it */
        RP_TRY(rp_blocks_add(&d->blocks, at, size, false, r->err));
        d->allocated = add_clamped(r, d->allocated, size);
    }
    return RP_OK;
}

/* Adds blocks that the log frees before it allocates them: they were live when it began. */
static enum rp_code rewind_freed(struct snapshot_reader *r, size_t device, rp_pickle_id log)
{
    struct device_state *d = &r->devices[device];
    const rp_pickle_id *items;
    size_t n;

    rp_map_release(&d->open);
    rp_map_init(&d->open);
    RP_TRY(list_items(r, log, &items, &n));
    for (size_t i = 0; i < n; i++) {
        struct rp_pickle_text action = rp_pickle_get_text(&r->values, items[i], "action");
        int64_t size = entry_size(r, items[i]), change = allocated_by(action, size);
        int64_t addr = get_int(r, items[i], "addr");

        if (!change)
            continue;
        if (change < 0 && rp_map_get(&d->open, (uint64_t)addr << 1) == RP_MAP_NONE)
            RP_TRY(rp_blocks_add(&d->blocks, addr, size, true, r->err));
        RP_TRY(rp_map_put(&d->open, (uint64_t)addr << 1, 1, r->err));
    }
    rp_map_release(&d->open);
    return RP_OK;
}

/* If segments grow, the log's own sizes are the only ones. */
static enum rp_code rewind_plainly(struct snapshot_reader *r, size_t device, rp_pickle_id log)
{
    struct device_state *d = &r->devices[device];
    const rp_pickle_id *items;
    int64_t net = 0;
    size_t n;

    RP_TRY(list_items(r, log, &items, &n));
    for (size_t i = 0; i < n; i++) {
        struct rp_pickle_text action = rp_pickle_get_text(&r->values, items[i], "action");
        int64_t change = allocated_by(action, entry_size(r, items[i]));

        RP_TRY(size_block(r, d, action, 0, 0, &change));
        if (__builtin_add_overflow(net, change, &net))
            return rp_err_set(r->err, RP_FORMAT, "the sizes of a log add up to over 2^63 bytes");
    }
    d->allocated = add_clamped(r, d->allocated_end, -net);
    return RP_OK;
}

/* ------------------------------------------------------------------ the state at the end */

static rp_pickle_id block_frames(const struct snapshot_reader *r, rp_pickle_id block)
{
    rp_pickle_id frames = rp_pickle_get(&r->values, block, "frames");

    if (frames != RP_NONE)
        return frames;
    rp_pickle_id history = rp_pickle_get(&r->values, block, "history");
    if (!rp_pickle_is_list(&r->values, history) || !rp_pickle_at(&r->values, history)->n)
        return RP_NONE;
    return rp_pickle_get(&r->values, rp_pickle_at(&r->values, history)->v.items[0], "frames");
}

static enum rp_code add_block(struct snapshot_reader *r, size_t device, rp_pickle_id block,
                              int64_t segment, int64_t *next)
{
    struct rp_pickle_text state = rp_pickle_get_text(&r->values, block, "state");
    struct rp_arg args[7];
    int64_t size = entry_size(r, block),
            at = rp_pickle_get_int(&r->values, block, "address", *next);

    args[0] = int_arg(r, KEY_ADDR, at);
    args[1] = int_arg(r, KEY_BYTES, size);
    args[2] =
        int_arg(r, KEY_REQUESTED, rp_pickle_get_int(&r->values, block, "requested_size", size));
    args[3] = int_arg(r, KEY_DEVICE_ID, (int64_t)device);
    args[4] = int_arg(r, KEY_SEGMENT, segment);
    args[5] = (struct rp_arg){.key = r->keys[KEY_STATE], .type = RP_ARG_STR};
    args[6] = (struct rp_arg){.key = r->keys[KEY_STACK], .type = RP_ARG_STR};
    *next = add_clamped(r, at, size);
    RP_TRY(rp_builder_intern(r->b, state.at, state.n < 100 ? state.n : 100, &args[5].v.s, r->err));
    RP_TRY(stack_text(r, block_frames(r, block), &args[6].v.s));
    return add_instant(r, device, r->last_us, "[block]", 7, args, 7);
}

static enum rp_code add_segment(struct snapshot_reader *r, rp_pickle_id segment)
{
    size_t n, device = (size_t)segment_device(r, segment);
    int64_t address = get_int(r, segment, "address"), next = address;
    const rp_pickle_id *blocks;
    struct rp_arg args[6];

    args[0] = int_arg(r, KEY_ADDR, address);
    args[1] = int_arg(r, KEY_BYTES, get_int(r, segment, "total_size"));
    args[2] = int_arg(r, KEY_ALLOCATED, get_int(r, segment, "allocated_size"));
    args[3] = int_arg(r, KEY_ACTIVE, get_int(r, segment, "active_size"));
    args[4] = int_arg(r, KEY_DEVICE_ID, (int64_t)device);
    args[5] = int_arg(r, KEY_STREAM, get_int(r, segment, "stream"));
    RP_TRY(name_device(r, device));
    RP_TRY(add_instant(r, device, r->last_us, "[segment]", 9, args, 6));
    RP_TRY(list_items(r, rp_pickle_get(&r->values, segment, "blocks"), &blocks, &n));
    for (size_t i = 0; i < n; i++)
        RP_TRY(add_block(r, device, blocks[i], address, &next));
    return RP_OK;
}

/* ------------------------------------------------------------------ annotations */

static enum rp_code add_annotations(struct snapshot_reader *r, rp_pickle_id list)
{
    struct rp_origin o = {.phase = 'B', .kind = RP_KIND_ANNOTATION, .has_category = 1};
    const rp_pickle_id *items;
    uint16_t origins[2];
    size_t n;

    RP_TRY(rp_builder_intern(r->b, "user_annotation", 15, &o.category, r->err));
    RP_TRY(rp_builder_origin(r->b, &o, &origins[0], r->err));
    o.phase = 'E';
    RP_TRY(rp_builder_origin(r->b, &o, &origins[1], r->err));
    RP_TRY(list_items(r, list, &items, &n));
    for (size_t i = 0; i < n; i++) {
        /* Begin and end events; finish joins them to spans. */
        struct rp_pickle_text stage = rp_pickle_get_text(&r->values, items[i], "stage");
        struct rp_pickle_text name = rp_pickle_get_text(&r->values, items[i], "name");
        int64_t device = segment_device(r, items[i]), us = entry_us(r, items[i], 0);
        struct rp_raw raw = {.ts_ns = (us - r->first_us) * 1000, .dur_ns = RP_OPEN_NS};
        bool begins = rp_pickle_text_is(stage, "START");
        if (!r->timed || (!begins && !rp_pickle_text_is(stage, "END")))
            continue;
        r->ndevices = (size_t)device + 1 > r->ndevices ? (size_t)device + 1 : r->ndevices;
        RP_TRY(name_device(r, (size_t)device));
        raw.track = r->devices[device].track;
        raw.origin = origins[begins ? 0 : 1];
        RP_TRY(rp_builder_intern(r->b, name.at, name.n < 1000 ? name.n : 1000, &raw.name, r->err));
        RP_TRY(rp_builder_add(r->b, &raw, r->err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the file */

static enum rp_code prepare_builder(struct snapshot_reader *r)
{
    struct rp_origin o = {
        .phase = 'i', .kind = RP_KIND_INSTANT, .flags = RP_ORIGIN_SCOPE_THREAD, .has_category = 1};
    struct rp_trace *t = rp_builder_borrow_trace(r->b);

    for (size_t i = 0; i < KEYS; i++)
        RP_TRY(rp_builder_intern(r->b, key_names[i], strlen(key_names[i]), &r->keys[i], r->err));
    RP_TRY(rp_builder_intern(r->b, "cpu_instant_event", 17, &o.category, r->err));
    RP_TRY(rp_builder_origin(r->b, &o, &r->instant, r->err));
    RP_TRY(rp_builder_intern(r->b, "", 0, &r->empty_stack, r->err));
    RP_TRY(rp_builder_intern(r->b, "pytorch", 7, &t->framework, r->err));
    t->rank = RP_NO_RANK;
    return rp_builder_intern(r->b, "torch-memory", 12, &t->format, r->err);
}

static enum rp_code add_logs(struct snapshot_reader *r, rp_pickle_id traces)
{
    const rp_pickle_id *logs, *entries;
    size_t n, ndevices;

    RP_TRY(list_items(r, traces, &logs, &ndevices));
    for (size_t device = 0; device < ndevices && device < MOST_DEVICES; device++) {
        RP_TRY(list_items(r, logs[device], &entries, &n));
        if (n)
            RP_TRY(name_device(r, device));
        for (size_t i = 0; i < n; i++)
            RP_TRY(add_entry(r, device, entries[i], entry_us(r, entries[i], i)));
    }
    return RP_OK;
}

static enum rp_code rewind_blocks(struct snapshot_reader *r, const rp_pickle_id *logs, size_t nlogs,
                                  rp_pickle_id segments)
{
    const rp_pickle_id *items;
    size_t n;

    RP_TRY(list_items(r, segments, &items, &n));
    for (size_t i = 0; i < n; i++)
        RP_TRY(rewind_segment(r, items[i]));
    for (size_t i = 0; i < nlogs; i++)
        RP_TRY(r->expandable ? rewind_plainly(r, i, logs[i]) : rewind_freed(r, i, logs[i]));
    for (size_t i = 0; i < r->ndevices && !r->expandable; i++) {
        /* The total at the beginning of the log. */
        struct device_state *d = &r->devices[i];
        rp_blocks_settle(&d->blocks);
        d->allocated = 0;
        for (const struct rp_ordered_entry *block = rp_ordered_from(&d->blocks.live, 0); block;
             block = rp_ordered_from(&d->blocks.live, block->key + 1))
            d->allocated = add_clamped(r, d->allocated, block->value);
    }
    return RP_OK;
}

static enum rp_code see_times(struct snapshot_reader *r, rp_pickle_id traces, rp_pickle_id notes,
                              rp_pickle_id segments)
{
    const rp_pickle_id *items;
    size_t n, most = 0;

    RP_TRY(list_items(r, traces, &items, &n));
    if (n > MOST_DEVICES)
        return rp_err_set(r->err, RP_LIMIT, "more than %d devices", MOST_DEVICES);
    for (size_t i = 0; i < n; i++) {
        RP_TRY(rewind_device(r, i, items[i]));
        if (rp_pickle_is_list(&r->values, items[i]) && rp_pickle_at(&r->values, items[i])->n > most)
            most = rp_pickle_at(&r->values, items[i])->n;
    }
    RP_TRY(rewind_blocks(r, items, n, segments));
    RP_TRY(list_items(r, notes, &items, &n));
    for (size_t i = 0; i < n; i++)
        see_time(r, items[i]);
    if (!r->timed)
        r->last_us = (int64_t)most;
    return RP_OK;
}

static enum rp_code build_trace(struct snapshot_reader *r)
{
    rp_pickle_id root = r->values.root, segments = rp_pickle_get(&r->values, root, "segments");
    rp_pickle_id traces = rp_pickle_get(&r->values, root, "device_traces");
    rp_pickle_id notes = rp_pickle_get(&r->values, root, "external_annotations");
    struct rp_trace *t = rp_builder_borrow_trace(r->b);
    const rp_pickle_id *items;
    size_t n, entries = 0;

    if (rp_pickle_is_list(&r->values, root))
        segments = root;
    RP_TRY(prepare_builder(r));
    RP_TRY(sum_segments(r, segments));
    RP_TRY(see_times(r, traces, notes, segments));
    RP_TRY(add_annotations(r, notes));
    RP_TRY(add_logs(r, traces));
    entries = rp_builder_count(r->b);
    RP_TRY(list_items(r, segments, &items, &n));
    for (size_t i = 0; i < n; i++)
        RP_TRY(add_segment(r, items[i]));
    t->base_ns = r->timed ? r->first_us * 1000 : 0;
    t->has_base = r->timed;
    if (entries && !r->timed)
        RP_TRY(rp_builder_warn(r->b, r->err,
                               "the entries have no times: they are shown one microsecond apart"));
    if (!entries)
        RP_TRY(rp_builder_warn(r->b, r->err,
                               "no history was recorded, only the state at the end: call "
                               "torch.cuda.memory._record_memory_history() before the work"));
    for (size_t i = 0; i < r->ndevices; i++) {
        const struct device_state *d = &r->devices[i];
        if (entries && d->used && (d->allocated != d->allocated_end || d->blocks.misfits))
            RP_TRY(rp_builder_warn(
                r->b, r->err,
                "GPU %zu: the log ends with %lld bytes allocated, the segments have %lld: sizes of "
                "blocks are not exact",
                i, (long long)d->allocated, (long long)d->allocated_end));
    }
    if (r->clamped)
        RP_TRY(rp_builder_warn(
            r->b, r->err, "the log does not fit the segments at its end: totals are not reliable"));
    return RP_OK;
}

static bool is_snapshot(const struct snapshot_reader *r)
{
    rp_pickle_id root = r->values.root;

    if (rp_pickle_get(&r->values, root, "segments") != RP_NONE)
        return true;
    return rp_pickle_is_list(&r->values, root) && rp_pickle_at(&r->values, root)->n &&
           rp_pickle_get(&r->values, rp_pickle_at(&r->values, root)->v.items[0], "total_size") !=
               RP_NONE;
}

static enum rp_code read_values(struct snapshot_reader *r, struct rp_input *in,
                                const struct rp_limits *limits, size_t *n)
{
    const uint8_t *bytes;

    RP_TRY(rp_input_slurp(in, &bytes, n, r->err));
    if (rp_input_truncated(in))
        return rp_err_set(r->err, RP_FORMAT, "the compressed data is cut short");
    if (*n && bytes[0] != 0x80 && rp_sniff_space(bytes, *n, 0) < *n &&
        memchr("{[", bytes[rp_sniff_space(bytes, *n, 0)], 2))
        RP_TRY(rp_json_values_read(&r->values, bytes, *n, limits, r->err));
    else
        RP_TRY(rp_pickle_read(&r->values, bytes, *n, limits, r->err));
    if (!is_snapshot(r))
        return rp_err_set(
            r->err, RP_FORMAT,
            "is a pickle, but not a memory snapshot of PyTorch: it has no 'segments'");
    r->nbytes = *n;
    return RP_OK;
}

static enum rp_code read_snapshot(struct rp_input *in, const struct rp_read_options *options,
                                  struct rp_import *to, struct rp_err *err)
{
    struct snapshot_reader r = {.err = err, .values = {.root = RP_NONE}};
    size_t n = 0;

    r.devices = calloc(MOST_DEVICES, sizeof *r.devices);
    r.text = malloc(STACK_BYTES);
    enum rp_code code = r.devices && r.text ? rp_builder_new(options->limits, &r.b, err)
                                            : rp_err_nomem(err, "reading a snapshot");
    if (code == RP_OK)
        code = read_values(&r, in, options->limits, &n);
    if (code == RP_OK)
        code = build_trace(&r);
    rp_pickle_release(&r.values);
    rp_map_release(&r.stacks);
    for (size_t i = 0; r.devices && i < MOST_DEVICES; i++) {
        rp_blocks_release(&r.devices[i].blocks);
        rp_map_release(&r.devices[i].open);
    }
    free(r.devices);
    free(r.text);
    to->content_bytes = n;
    if (code == RP_OK)
        return rp_builder_finish(r.b, &to->trace, err);
    rp_builder_free(r.b);
    return code;
}

static bool head_has(const uint8_t *head, size_t n, const char *word)
{
    return memmem(head, n, word, strlen(word)) != NULL;
}

static enum rp_sniff sniff_snapshot(const uint8_t *head, size_t n, const char *file)
{
    bool pickle = rp_pickle_begins(head, n);
    size_t first = rp_sniff_space(head, n, 0);

    (void)file;
    if (first < n && (head[first] == '{' || head[first] == '[')) {
        /* The head of every JSON file is searched here, so a plain search comes before that for the
           keys. */
        bool is = (head_has(head, n, "\"device_traces\"") &&
                   rp_sniff_json_key(head, n, 1, "device_traces") == 1) ||
                  (head_has(head, n, "\"segment_type\"") &&
                   (rp_sniff_json_key(head, n, 1, "segments") == 1 ||
                    rp_sniff_json_key(head, n, 2, "segment_type") == 1));
        return is ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
    }
    if (!pickle && (n < 3 || head[0] != '(' || (head[1] != 'd' && head[1] != 'l')))
        return RP_SNIFF_NO;
    if (head_has(head, n, "segments") || head_has(head, n, "segment_type"))
        return RP_SNIFF_CERTAIN;
    return pickle ? RP_SNIFF_LIKELY : RP_SNIFF_NO;
}

const struct rp_format rp_format_torch_memory = {
    .name = "torch-memory",
    .summary = "memory snapshot of PyTorch's caching allocator",
    .files = "*.pickle, *.pickle.gz, *.json",
    .written_by = "torch.cuda.memory._dump_snapshot",
    .kind = RP_FORMAT_KIND_TRACE,
    .memory_only = true,
    .sniff = sniff_snapshot,
    .read = read_snapshot,
};
