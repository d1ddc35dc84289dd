/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_ENGINE_DEVICE_ORDER_H
#define RP_SIM_ENGINE_DEVICE_ORDER_H
/* Tasks in the order in which their devices had them. */
#include "sim/engine/overlay.h"

/* Sorts tasks by (device, time), stably: at_ns by task, not negative; every task has a
   device. Linear in the tasks and the devices. */
enum rp_code rp_device_order(const struct rp_overlay *o, const int64_t *at_ns, uint32_t *tasks,
                             size_t n, struct rp_err *err);

#endif
