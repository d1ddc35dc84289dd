/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Events of other tracers: babeltrace.c reads them in a child process, child.c transfers them,
 * other.c adds them to the trace.
 */
#include "base/vec.h"
#include "formats/trace_proto.h"

#define RP_CTF_FIELDS_MAX 64 /* of an event; further ones are dropped */

struct rp_ctf_field { /* texts are borrowed while the event is read */
    const char *name;
    uint8_t type;     /* enum rp_arg_type: I64, F64 or STR */
    bool is_unsigned; /* of I64: the bits are an unsigned number */
    int64_t i;
    double f;
    const char *text;
};

struct rp_ctf_other_row {
    const char *name;      /* "provider:event" */
    int64_t ns;            /* of the trace's clock */
    int64_t pid, tid, cpu; /* -1: not recorded */
    const char *thread;    /* its name, or NULL */
    struct rp_ctf_field fields[RP_CTF_FIELDS_MAX];
    uint32_t nfields;
};

struct rp_ctf_call { /* an entry without an exit so far */
    rp_track track;
    rp_str base, name;
    uint16_t origin, open_origin, shape;
    int64_t ns, link;
    bool has_link;
    uint32_t nargs;
    struct rp_arg args[RP_CTF_FIELDS_MAX];
};

struct rp_ctf_other {
    struct rp_proto_trace t;
    RP_VEC(struct rp_ctf_call *) calls;
    RP_VEC(uint8_t) named; /* by track: whether its name is set */
    uint64_t named_devices;
};

enum rp_code rp_ctf_other_event(struct rp_ctf_other *o, const struct rp_ctf_other_row *e,
                                struct rp_err *err);
enum rp_code rp_ctf_other_end(struct rp_ctf_other *o, struct rp_err *err); /* what is still open */
void rp_ctf_other_release(struct rp_ctf_other *o);

/* ---- in the process that runs libbabeltrace2: to the one that waits ---- */
struct rp_ctf_wire;
void rp_ctf_wire_event(struct rp_ctf_wire *w, const struct rp_ctf_other_row *e);
void rp_ctf_wire_lost(struct rp_ctf_wire *w, uint64_t events, uint64_t packets, uint64_t undated);
void rp_ctf_wire_clock(struct rp_ctf_wire *w, int64_t offset_ns); /* since 1970 */
/* Reads the trace in that folder and sends it. */
enum rp_code rp_ctf_babeltrace_run(const char *folder, struct rp_ctf_wire *w, struct rp_err *err);
