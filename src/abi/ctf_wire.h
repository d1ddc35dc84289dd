/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The layout of a recording: CTF 1.8, little endian, every field on a byte boundary. The writer
 * (src/capture/core) and the reader (src/formats/ctf) share this header and nothing else.
 * docs/formats/ctf.md explains it; the metadata for other readers is in
 * src/capture/core/metadata.c.
 *
 *   DIR/rank0.node7/metadata               text
 *   DIR/rank0.node7/s_<pid>_<tid>_<stream>_<sequence>
 *                                          packets: struct rp_ctf_packet, then events, each
 *   DIR/rank0.node7/.slots_<pid>_<image>_<n>
 *                                          the same packets of many small streams: one a slot
 *   DIR/.ledger_node7                      struct rp_ctf_ledger, of all processes of a host
 *
 * A file has one packet for each thread that used the stream, one after another.
 * A packet can be read alone: a text is defined (RP_CTF_STRING) in the packet that uses its number,
 * before its first use, and a later definition of the same number replaces it.
 */
#include <stdint.h>

#define RP_CTF_LAYOUT      1 /* env { reprise_layout } */
#define RP_CTF_MAGIC       UINT32_C(0xC1FC1FC1)
#define RP_CTF_TIME_BITS   56    /* the low bits of an event's time; the packet has all 64 */
#define RP_CTF_TEXT_MAX    16383 /* the longest text, without its NUL; longer ones are truncated */
#define RP_CTF_TEXTS_MAX   65536 /* numbers of texts are smaller than this */
#define RP_CTF_ARGS_MAX    32    /* arguments of one span */
#define RP_CTF_SPAN_DEVICE (-1)  /* the device of a span on a host thread */
#define RP_CTF_IN_FLIGHT   "in_flight" /* the category of spans of calls that have not ended */
#define RP_CTF_CHUNK_MAX   (1 << 20)   /* the bytes of the largest packet */

#define RP_CTF_SLOTS_NAME ".slots_"
#define RP_CTF_SLOT_BYTES 4096

#define RP_CTF_PACKET_HELPER 1u /* it was written by the recorder's own thread */

/* 96 bytes, at the start of each packet. content_size is stored last, after each event. */
struct rp_ctf_packet {
    uint32_t magic, stream_id;
    uint64_t instance;        /* the id of the stream, the same in all its packets */
    uint64_t timestamp_begin; /* ticks of the trace's clock */
    uint64_t timestamp_end;
    uint64_t content_bits, packet_bits;
    uint64_t sequence;  /* the number of the packet within its stream, from 0 */
    uint64_t discarded; /* events lost by the stream so far */
    uint64_t events;    /* in this packet */
    uint32_t pid, tid;
    uint32_t image; /* a random id of the process, because a pid may be reused, or stay the same in
                       an exec */
    uint32_t cost_ps; /* the cost of one event, measured at the start; 0 if unknown */
    uint32_t clocks;  /* RP_CTF_CLOCK events in this packet */
    uint32_t flags;   /* RP_CTF_PACKET_* */
};

/* The first 8 bytes of an event are time << 8 | id. */
enum rp_ctf_event {
    RP_CTF_STRING,      /* u32 number, text, NUL */
    RP_CTF_RANGE_BEGIN, /* u32 name */
    RP_CTF_RANGE_END,   /* nothing */
    RP_CTF_MARK,        /* u32 name */
    RP_CTF_COUNTER,     /* u32 name, f64 value */
    RP_CTF_ENTER,       /* struct rp_ctf_enter: a call or range on this thread begins */
    RP_CTF_LEAVE,       /* struct rp_ctf_leave: the innermost one of its lane ends */
    RP_CTF_ASYNC_BEGIN, /* struct rp_ctf_async */
    RP_CTF_ASYNC_END,   /* struct rp_ctf_async */
    RP_CTF_SPAN,        /* struct rp_ctf_span, then nargs times struct rp_ctf_arg */
    RP_CTF_THREAD_NAME, /* u32 tid, u32 name */
    RP_CTF_PROCESS,     /* struct rp_ctf_process: the first event of each process */
    RP_CTF_FORK,        /* u32 pid of the child */
    RP_CTF_EXEC,        /* u32 path */
    RP_CTF_LIBRARY,     /* u32 path: a library loaded by dlopen */
    RP_CTF_CLOCK,       /* struct rp_ctf_clock */
    RP_CTF_FACT,        /* u32 key, u32 value: a fact about the process */
    RP_CTF_RESUME,      /* no data: after a pause; open ranges may have ended during it */
    RP_CTF_PAUSE,       /* u64 ticks at which a pause began; recorded later, in any stream */
    RP_CTF_SAMPLE,      /* struct rp_ctf_sample, then nframes of u32 frame */
    RP_CTF_EVENT_COUNT
};

/* The kind of a span or call; src/trace/trace.h has the same kinds. */
enum rp_ctf_kind {
    RP_CTF_KIND_OTHER,
    RP_CTF_KIND_OPERATOR,
    RP_CTF_KIND_ANNOTATION,
    RP_CTF_KIND_GPU_ANNOTATION,
    RP_CTF_KIND_RUNTIME, /* a call of a device runtime */
    RP_CTF_KIND_DRIVER,  /* a call of a device driver */
    RP_CTF_KIND_KERNEL,
    RP_CTF_KIND_MEMCPY,
    RP_CTF_KIND_MEMSET,
    RP_CTF_KIND_SYNC,
    RP_CTF_KIND_OVERHEAD, /* the profiler itself */
    RP_CTF_KIND_COLLECTIVE,
    RP_CTF_KIND_TRANSFER,
    RP_CTF_KIND_PYTHON,
    RP_CTF_KIND_WAIT,    /* a call of the host in which the thread may block */
    RP_CTF_KIND_COUNTER, /* no span: its arguments are counted from its begin on */
    RP_CTF_KIND_COUNT
};

/* The clock of the two times of a span. */
enum rp_ctf_timebase {
    RP_CTF_TIME_TICKS,     /* the trace's clock, as for the times of events */
    RP_CTF_TIME_MONOTONIC, /* ns of CLOCK_MONOTONIC */
    RP_CTF_TIME_REALTIME   /* ns since 1970 */
};

/* The state of the sampled thread. */
enum rp_ctf_sample_state { RP_CTF_SAMPLE_RAN, RP_CTF_SAMPLE_WAITED };

/* A frame of a stack is a text: kind, name, file and line, with a tab between them:
   "python\tdecode\t/data/image.py\t88", "native\tmemcpy\t/lib/libc.so.6\t0". */
#define RP_CTF_SAMPLE_FRAMES 64 /* of one event, at most; the event after it has the inner ones */
#define RP_CTF_SAMPLE_MORE   1u /* the next event of the stream continues this stack */
#define RP_CTF_SAMPLE_CUT    2u /* the outermost frames are not known */

enum rp_ctf_arg_type { RP_CTF_ARG_INT, RP_CTF_ARG_TEXT, RP_CTF_ARG_REAL };

#pragma pack(push, 1)
struct rp_ctf_enter {
    uint8_t kind;  /* enum rp_ctf_kind */
    uint32_t lane; /* calls nest within a lane of the thread; 0 is the common one */
    uint32_t name, category;
    uint64_t link; /* correlation id; 0 if none */
};
struct rp_ctf_leave {
    uint32_t lane;
    int64_t result;
};
struct rp_ctf_async {
    uint32_t name, category;
    uint64_t id; /* the id of the pair, unique within the category and process */
};
struct rp_ctf_span { /* completed work, which any thread may report */
    uint8_t kind, timebase;
    uint64_t begin, end;
    uint32_t name, category;
    int32_t device; /* RP_CTF_SPAN_DEVICE if on a host thread */
    uint64_t track; /* the thread id, or the stream of the device */
    uint64_t link;  /* correlation id; 0 if none */
    uint8_t nargs;
};
struct rp_ctf_arg {
    uint32_t key;
    uint8_t type;  /* enum rp_ctf_arg_type */
    int64_t value; /* a number, the number of a text, or the bits of a double */
};
struct rp_ctf_sample { /* the stack of a thread, reported by the recorder's thread */
    uint32_t tid;
    uint64_t ticks;     /* when it was taken */
    uint64_t weight_ns; /* the time that it represents, from then on */
    uint32_t gil_tid;   /* the thread that held Python's global lock; 0 if none, or not known */
    uint8_t state;      /* enum rp_ctf_sample_state */
    uint8_t flags;      /* RP_CTF_SAMPLE_MORE, RP_CTF_SAMPLE_CUT */
    uint8_t nframes;    /* outermost first */
};
struct rp_ctf_process {
    uint32_t pid, parent;
    int32_t rank, world_size, local_rank; /* -1: not known */
    uint32_t host, program, command;      /* texts */
};
struct rp_ctf_clock { /* the three clocks, read together */
    uint64_t ticks;
    int64_t monotonic_ns, realtime_ns;
    uint32_t width; /* the ticks that the reading took, which bound its error */
};
#pragma pack(pop)

/* Why events are missing. */
enum rp_ctf_loss {
    RP_CTF_LOSS_DISK,        /* there was no space, or the quota was used up */
    RP_CTF_LOSS_LIMIT,       /* record --limit */
    RP_CTF_LOSS_FILE_SIZE,   /* RLIMIT_FSIZE */
    RP_CTF_LOSS_DENIED,      /* no permission */
    RP_CTF_LOSS_FILES,       /* no file descriptor was left */
    RP_CTF_LOSS_MEMORY,      /* no memory was left */
    RP_CTF_LOSS_SANDBOX,     /* the program made system calls impossible */
    RP_CTF_LOSS_SOURCE,      /* the library that reports them dropped them */
    RP_CTF_LOSS_OTHER,       /* any other failure */
    RP_CTF_LOSS_OVERWRITTEN, /* they are not lost, but were the oldest ones of a ring */
    RP_CTF_LOSS_COUNT
};

#define RP_CTF_CONTROL_NAME  ".control"  /* commands of `record start|stop|mark` */
#define RP_CTF_WARNINGS_NAME ".warnings" /* of processes that `record --pid` attached to */
/* Of the files in a folder with this mode: the owner's, and the group's where the folder is. */
#define RP_CTF_FILE_MODE(folder_mode) (0600 | ((folder_mode)&0060))
#define RP_CTF_LEDGER_NAME                                                \
    ".ledger_" /* followed by the host, as in the name of a rank's folder \
                */
#define RP_CTF_LEDGER_MAGIC UINT32_C(0x31474452)
#define RP_CTF_LEDGER_ROWS  1016

struct rp_ctf_ledger_row {
    uint64_t who; /* rp_ctf_ledger_who; 0 if the row is unused */
    uint64_t events;
};

/* 16 KiB; every number is changed by atomic additions. */
struct rp_ctf_ledger {
    uint32_t magic, reserved;
    uint64_t commands; /* commands of `record start` and `stop` that processes have followed */
    uint64_t marks;    /* marks of `record mark` that processes have recorded */
    uint64_t setup_ns; /* CPU time of opening streams and files, and of the recorder's threads */
    uint64_t cpu_ns;   /* CPU time of the programs, from each `record` when its program has ended */
    uint64_t recorded_ns,
        unrecorded_ns; /* time per step with detail and without, over all processes */
    uint64_t loaded;   /* processes that loaded the recorder */
    uint64_t unrecorded_least_ns, unrecorded_most_ns; /* the ends of its 95 % interval */
    uint64_t more[6];
    struct rp_ctf_ledger_row rows[RP_CTF_LEDGER_ROWS];
};

static inline uint64_t rp_ctf_ledger_who(int32_t rank, enum rp_ctf_loss why)
{
    return ((uint64_t)(uint32_t)(rank + 1) + 1) << 8 | (uint64_t)why;
}
