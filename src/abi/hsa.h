/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of AMD's HSA runtime (ROCr) that a tools library uses. The runtime loads the libraries
 * in HSA_TOOLS_LIB and calls OnLoad with its tables of functions, which a tool may replace. The
 * header of these tables is C++; here a table is its version and an array, and functions are
 * numbered.
 *
 * `minor` is the size of a table in bytes: a function exists if its place is inside it. `major`
 * changes when places do. Numbers of the AMD table are those of major 1; from major 2 on, two
 * functions follow hsa_amd_memory_async_copy, and the later ones move by two. Handles are structs
 * of one uint64_t, which is passed like a number.
 */
#include <stdint.h>

struct rp_hsa_version {
    uint32_t major, minor, step, reserved;
};

struct rp_hsa_table {
    struct rp_hsa_version version;
    void *functions[];
};

struct rp_hsa_tables {
    struct rp_hsa_version version;
    struct rp_hsa_table *core, *amd; /* more follow */
};

#define RP_HSA_TABLES_MAJOR_MAX 3
#define RP_HSA_CORE_MAJOR_MAX   2
#define RP_HSA_AMD_MAJOR_MAX    2
#define RP_HSA_AMD_1_BYTES \
    400 /* the size in ROCm 5.2; larger tables of major 1 have other places */

enum rp_hsa_core {
    RP_HSA_shut_down = 1,
    RP_HSA_system_get_info = 2,
    RP_HSA_iterate_agents = 5,
    RP_HSA_agent_get_info = 6,
    RP_HSA_queue_create = 7,
    RP_HSA_queue_destroy = 9,
    RP_HSA_memory_allocate = 33,
    RP_HSA_memory_free = 34,
    RP_HSA_memory_copy = 35,
    RP_HSA_signal_create = 37,
    RP_HSA_signal_destroy = 38,
    RP_HSA_signal_load_scacquire = 40,
    RP_HSA_signal_store_relaxed = 41,
    RP_HSA_signal_store_screlease = 42,
    RP_HSA_signal_wait_relaxed = 43,
    RP_HSA_signal_wait_scacquire = 44,
    RP_HSA_signal_subtract_screlease = 67,
    RP_HSA_executable_freeze = 86,
    RP_HSA_executable_symbol_get_info = 93,
    RP_HSA_executable_iterate_symbols = 94,
    RP_HSA_executable_load_agent_code_object = 120 /* the last one that is used */
};

enum rp_hsa_amd {
    RP_HSA_amd_profiling_set_profiler_enabled = 2,
    RP_HSA_amd_profiling_async_copy_enable = 3,
    RP_HSA_amd_profiling_get_dispatch_time = 4,
    RP_HSA_amd_profiling_get_async_copy_time = 5,
    RP_HSA_amd_signal_async_handler = 7,
    RP_HSA_amd_memory_pool_get_info = 11,
    RP_HSA_amd_agent_iterate_memory_pools = 12,
    RP_HSA_amd_memory_pool_allocate = 13,
    RP_HSA_amd_memory_pool_free = 14,
    RP_HSA_amd_memory_async_copy = 15, /* the last one with the same place in all versions */
    RP_HSA_amd_memory_lock = 20,
    RP_HSA_amd_memory_unlock = 21,
    RP_HSA_amd_memory_fill = 22,
    RP_HSA_amd_queue_intercept_create = 35,
    RP_HSA_amd_queue_intercept_register = 36,
    RP_HSA_amd_memory_async_copy_rect = 38
};

#define RP_HSA_AMD_2_ASYNC_COPY_ON_ENGINE 16 /* from major 2 on */

enum {
    RP_HSA_SYSTEM_TIMESTAMP = 2,
    RP_HSA_SYSTEM_FREQUENCY = 3,
    RP_HSA_AGENT_NAME = 0, /* 64 bytes */
    RP_HSA_AGENT_DEVICE = 17,
    RP_HSA_AGENT_COMPUTE_UNITS = 0xa002,
    RP_HSA_AGENT_CLOCK_MHZ = 0xa003,
    RP_HSA_AGENT_BDF = 0xa006,     /* bus, device and function */
    RP_HSA_AGENT_PRODUCT = 0xa009, /* 64 bytes */
    RP_HSA_AGENT_DOMAIN = 0xa00f,
    RP_HSA_DEVICE_GPU = 1,
    RP_HSA_POOL_SEGMENT = 0,
    RP_HSA_POOL_SIZE = 2,
    RP_HSA_SEGMENT_GLOBAL = 0,
    RP_HSA_SYMBOL_TYPE = 0,
    RP_HSA_SYMBOL_NAME_LENGTH = 1,
    RP_HSA_SYMBOL_NAME = 2,
    RP_HSA_SYMBOL_KERNEL_OBJECT = 22,
    RP_HSA_SYMBOL_IS_KERNEL = 1,
    RP_HSA_CONDITION_LT = 2,
    RP_HSA_PACKET_KERNEL = 2, /* low byte of a packet's header */
    RP_HSA_SIGNAL_USER = 1,
    RP_HSA_ERROR = 0x1000
};

struct rp_hsa_packet { /* a kernel dispatch; every packet has 64 bytes */
    uint16_t header, setup, workgroup[3], reserved0;
    uint32_t grid[3]; /* in work-items */
    uint32_t private_bytes, group_bytes;
    uint64_t kernel_object, arguments, reserved1, signal;
};

struct rp_hsa_signal { /* the memory to which the handle of a signal points; more follows */
    int64_t kind, value;
    uint64_t mailbox;
    uint32_t event, reserved;
    uint64_t start, end; /* ticks of the device */
};

struct rp_hsa_times {
    uint64_t start, end; /* ticks of the system's clock */
};

typedef void rp_hsa_writer(const void *packets, uint64_t count);
typedef void rp_hsa_interceptor(const void *packets, uint64_t count, uint64_t index, void *data,
                                rp_hsa_writer *write);
