/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_MODULE_H
#define RP_REPLAY_MODULE_H
/* The program of a replay in the wire form that an engine takes (engines.h, wants_module). */
#include "io/proto_write.h"
#include "replay/session.h"

/* The protobuf that the program was read from, or that its text stands for: the module with what
   was recorded around it. False where it is none. */
bool rp_replay_wire(const struct rp_session *s, struct rp_bytes *out);

/* *out is the session's program with its module filled in; what had to be made is in `made`, which
   the caller releases when the engine is done with it. */
enum rp_code rp_replay_module(const struct rp_session *s, const struct rp_engine *engine,
                              struct rp_proto_writer *made, struct rp_engine_program *out,
                              struct rp_err *err);

#endif
