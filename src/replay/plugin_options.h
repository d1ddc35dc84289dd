/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_PLUGIN_OPTIONS_H
#define RP_REPLAY_PLUGIN_OPTIONS_H
/* What the user says to a plugin, for the engine pjrt. */
#include "exec/engine/engine.h"
#include "io/proto_write.h"
#include "result/settings.h"

struct rp_arena;

/* How a plugin is to compile; `recorded` holds options until the run is over. */
enum rp_code rp_replay_plugin_options(struct rp_arena *arena, const struct rp_settings *settings,
                                      struct rp_engine_options *o, struct rp_proto_writer *recorded,
                                      struct rp_err *err);
/* RP_USAGE where there are such options and the engine is another one. */
enum rp_code rp_replay_check_plugin_options(const struct rp_settings *settings,
                                            const struct rp_engine *engine, struct rp_err *err);

#endif
