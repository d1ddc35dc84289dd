/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the CTF reader; ctf.c has the overview. */
#define RP_CTF_SPILL (1 << 20)

#include "abi/ctf_wire.h"
#include "base/hash.h"
#include "base/vec.h"
#include "formats/trace_proto.h"
#include "io/mapped.h"

/* ---- times: ticks of the recording's counter to nanoseconds of CLOCK_MONOTONIC ---- */
struct rp_ctf_segment {
    uint64_t ticks;
    int64_t ns;
    uint64_t factor; /* ns a tick, times 2^40 */
};

struct rp_ctf_times {
    RP_VEC(struct rp_ctf_clock) read;
    RP_VEC(struct rp_ctf_segment) segments; /* by ticks; at least one after settle */
    uint64_t frequency;
    int64_t offset_ns; /* time since 1970 of tick 0, from the metadata */
    int64_t base_ns;   /* CLOCK_REALTIME - CLOCK_MONOTONIC */
    size_t last;       /* segment used last */
    uint64_t from, to; /* range of ticks that it applies to, without overflow */
};

/* From the calibrations that were read, or else from the metadata alone. */
enum rp_code rp_ctf_times_settle(struct rp_ctf_times *times, struct rp_err *err);
int64_t rp_ctf_times_find(struct rp_ctf_times *times, uint64_t ticks); /* in any segment */
void rp_ctf_times_release(struct rp_ctf_times *times);

#define RP_CTF_TIMES_SHIFT 40
__extension__ typedef unsigned __int128 rp_ctf_wide;

static inline int64_t rp_ctf_times_ns(struct rp_ctf_times *t, uint64_t ticks)
{
    const struct rp_ctf_segment *s = &t->segments.at[t->last];

    if (__builtin_expect(ticks < t->from || ticks >= t->to, 0))
        return rp_ctf_times_find(t, ticks);
    return s->ns + (int64_t)(((rp_ctf_wide)(ticks - s->ticks) * s->factor) >> RP_CTF_TIMES_SHIFT);
}

/* ---- packets ---- */
struct rp_ctf_file {
    char *path;
    struct rp_mapped bytes;
};

struct rp_ctf_bytes { /* one packet */
    const char *name; /* of its file */
    uint64_t offset;  /* ... in it */
    const uint8_t *at;
    size_t n, content; /* content: bytes of header and events */
    struct rp_ctf_packet head;
};

struct rp_ctf_open { /* an open range or call */
    uint32_t lane;
    uint32_t span; /* in pending */
};

struct rp_ctf_pending {
    uint64_t begin, end; /* ticks; end UINT64_MAX: open */
    uint64_t link;
    int64_t result;
    rp_str name, category;
    uint16_t origin;
    uint8_t kind; /* enum rp_ctf_kind */
};

struct rp_ctf_late { /* a span that was open at the end of its stream */
    struct rp_ctf_pending span;
    rp_track track;
    uint32_t image;
    uint64_t last; /* ticks of the last event of the stream */
};

struct rp_ctf_pause {
    uint32_t image;
    uint64_t begin, end; /* ticks; end 0: it lasted to the end, or is not known */
    rp_track track;      /* of the recorder's thread where possible */
    bool by_helper;
};

struct rp_ctf_bound { /* work of a device, or a wait for it */
    uint64_t link, stream;
    int64_t begin_ns, end_ns;
    int32_t device;
    uint32_t what;
};

struct rp_ctf_copy { /* a long one, by CUDA */
    struct rp_ctf_bound b;
    int64_t next_ns;       /* when the next work of its stream began; INT64_MAX: none did */
    uint32_t event, bound; /* its places among the events, and the bounds */
};

struct rp_ctf_reader {
    struct rp_proto_trace t; /* its input is the metadata */
    struct rp_ctf_times times;
    RP_VEC(struct rp_ctf_file) files;
    RP_VEC(struct rp_ctf_bytes) packets;
    struct rp_map lost_places; /* stream -> place in lost */
    RP_VEC(uint64_t) lost;
    struct { /* texts of the current packet */
        rp_str str;
        uint32_t epoch;
        uint32_t frame; /* of a stack, if has_frame */
        bool has_frame;
    } * texts;
    uint32_t epoch;
    struct { /* cache of origins */
        rp_str category;
        uint16_t origin;
        uint8_t kind, phase, used;
    } origins[256];
    /* of the current stream */
    RP_VEC(struct rp_ctf_pending) pending;
    RP_VEC(struct rp_ctf_open) open;
    uint32_t process;
    rp_track track;
    uint16_t range_origin; /* of complete ranges of the program */
    uint16_t result_shape;
    rp_str result_key, value_key;
    uint16_t value_shape;
    struct {
        uint32_t stack;   /* of the sample's frames so far, or RP_NONE */
        uint32_t lock_at; /* frames since one that waits for Python's lock, and 1; 0: none */
    } sample;
    uint64_t last; /* ticks of the last event */
    uint32_t image;
    uint64_t unbegun;
    bool has_counters; /* kernels have hardware counters */
    bool has_command;  /* a process was started with arguments */
    RP_VEC(struct rp_ctf_late) late;
    RP_VEC(struct rp_ctf_pause) pauses;
    size_t spill_at; /* number of pending spans at which ended ones are flushed */
    RP_VEC(struct rp_ctf_bound) bounds;
    RP_VEC(struct rp_ctf_copy) copies;
    bool has_cuda;
    uint32_t linked_pid;     /* the first process with correlations */
    uint64_t named;          /* device processes that have a name, a bit each */
    uint64_t device_ids;     /* devices that were added, a bit each */
    struct rp_device device; /* whose size was read last */
    uint64_t done_bytes, total_bytes;
    bool is_ring; /* the ledger says so */
};

/* ---- files ---- */
/* All packets of the folder, into r->packets; the memory they point to stays until close. */
enum rp_code rp_ctf_files_open(struct rp_ctf_reader *r, const char *folder, struct rp_err *err);
/* The same for a trace in a tar: from the other files of its folder. */
enum rp_code rp_ctf_files_beside(struct rp_ctf_reader *r, const struct rp_input *in,
                                 struct rp_err *err);
void rp_ctf_files_close(struct rp_ctf_reader *r);
/* Unpacks the metadata and the other files into a new folder; removes that folder. */
#define RP_CTF_UNPACKED_MAX 512
enum rp_code rp_ctf_files_unpack(struct rp_input *in, char folder[RP_CTF_UNPACKED_MAX],
                                 struct rp_err *err);
void rp_ctf_files_remove(const char *folder);
/* The packets in the content of one file. */
enum rp_code rp_ctf_files_split(struct rp_ctf_reader *r, const char *name, const uint8_t *at,
                                size_t n, struct rp_err *err);

/* Reads and checks the header of the packet at p->at. */
enum rp_code rp_ctf_packet_check(struct rp_ctf_bytes *p, bool salvage, uint64_t *cut,
                                 struct rp_err *err);

/* ---- events ---- */
/* The clock calibrations of a packet, into r->times. */
enum rp_code rp_ctf_packet_clocks(struct rp_ctf_reader *r, const struct rp_ctf_bytes *p,
                                  struct rp_err *err);
/* The events of a packet, into the builder. */
enum rp_code rp_ctf_packet_read(struct rp_ctf_reader *r, const struct rp_ctf_bytes *p,
                                struct rp_err *err);
/* Begin and end of a stream: nothing stays open. */
enum rp_code rp_ctf_stream_begin(struct rp_ctf_reader *r, const struct rp_ctf_bytes *p,
                                 struct rp_err *err);
enum rp_code rp_ctf_stream_end(struct rp_ctf_reader *r, struct rp_err *err);
enum rp_code rp_ctf_stream_gap(struct rp_ctf_reader *r,
                               struct rp_err *err); /* a packet is missing */

/* Ends the spans that were open when recording was paused for good, and reports pauses. */
enum rp_code rp_ctf_pauses_settle(struct rp_ctf_reader *r, struct rp_err *err);

/* Everything after opening the files. Sorts r->packets. */
enum rp_code rp_ctf_read_packets(struct rp_ctf_reader *r, struct rp_err *err);
/* Frequency, rank ... from the metadata of a recording; RP_FORMAT if something is missing. */
enum rp_code rp_ctf_describe(struct rp_ctf_reader *r, struct rp_err *err);
enum rp_code rp_ctf_reader_init(struct rp_ctf_reader *r, struct rp_input *in,
                                const struct rp_read_options *options, struct rp_err *err);
void rp_ctf_reader_release(struct rp_ctf_reader *r);

/* Reports packets that are not there although the recorder numbered them, except where a ring
   overwrote them: files that were deleted or not copied. */
enum rp_code rp_ctf_check_numbers(struct rp_ctf_reader *r, struct rp_err *err);

/* Lost and overwritten events, from the ledger beside the folder, into health and warnings. */
enum rp_code rp_ctf_ledger_read(struct rp_ctf_reader *r, const char *folder, struct rp_err *err);

/* profiles.c: appends what frameworks recorded themselves, from files in the folder (NULL: none).
 */
enum rp_code rp_ctf_profiles_append(struct rp_ctf_reader *r, const char *folder,
                                    struct rp_err *err);

/* ---- samples ---- */
/* The frame that a text describes; RP_FORMAT: it does not. */
enum rp_code rp_ctf_sample_frame(struct rp_ctf_reader *r, rp_str text, uint32_t *out,
                                 struct rp_err *err);
/* The next frame of the stack has this text. */
void rp_ctf_sample_note(struct rp_ctf_reader *r, rp_str text);
/* Adds the sample with r->sample, unless the next event continues its stack. */
enum rp_code rp_ctf_sample_add(struct rp_ctf_reader *r, const struct rp_ctf_sample *e,
                               struct rp_err *err);

/* ---- details ---- */
enum rp_code rp_ctf_origin(struct rp_ctf_reader *r, char phase, uint8_t kind, rp_str category,
                           uint16_t *out, struct rp_err *err);
/* enum rp_kind of an enum rp_ctf_kind, and its default category. */
uint8_t rp_ctf_kind(uint8_t kind, const char **category);
enum rp_code rp_ctf_process_name(struct rp_ctf_reader *r, const struct rp_ctf_process *process,
                                 rp_str program, struct rp_err *err);
/* The track of a stream of a device; `named`: which devices have a name already. */
enum rp_code rp_ctf_device_track(struct rp_proto_trace *t, uint64_t *named, uint32_t pid,
                                 int64_t device, uint64_t stream, rp_track *out,
                                 struct rp_err *err);

/* The correlation of a process, made unique in the trace. */
uint64_t rp_ctf_device_link(struct rp_ctf_reader *r, uint32_t pid, uint64_t link);
/* Adds the fields of the span to its arguments: at most RP_CTF_DEVICE_ARGS. */
#define RP_CTF_DEVICE_ARGS 3
enum rp_code rp_ctf_device_args(struct rp_ctf_reader *r, const struct rp_ctf_span *e, uint64_t link,
                                struct rp_arg *args, uint32_t *n, struct rp_err *err);
/* Collects device work and waits; at the end, warns if a wait returned too early. */
/* A fact that names a device: "cuda.device.0.size", then "cuda.device.0"; "opencl.device.0". */
enum rp_code rp_ctf_device_note(struct rp_ctf_reader *r, rp_str key, rp_str value,
                                struct rp_err *err);
/* Called before the event is added to the builder. */
enum rp_code rp_ctf_device_keep(struct rp_ctf_reader *r, const struct rp_ctf_span *e,
                                const struct rp_raw *raw, struct rp_err *err);
enum rp_code rp_ctf_device_judge(struct rp_ctf_reader *r, struct rp_err *err);

/* Any other CTF trace, through libbabeltrace2; `folder`: that of the metadata. */
enum rp_code rp_ctf_read_other(struct rp_input *in, const char *folder,
                               const struct rp_read_options *options, struct rp_import *to,
                               struct rp_err *err);
