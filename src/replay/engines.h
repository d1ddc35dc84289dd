/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_REPLAY_ENGINES_H
#define RP_REPLAY_ENGINES_H
#include "replay/record.h"
#include "result/result.h"
#include "result/settings.h"

/* `replay engines`: what can run programs here, every library that was found, how to get the rest.
   With --install a package is fetched first. */
enum rp_code rp_replay_list_engines(const struct rp_settings *settings, struct rp_result *result,
                                    struct rp_err *err);

#endif
