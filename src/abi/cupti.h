/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of CUPTI that is used: constants, record layouts and function types of a library that is
 * loaded at run time. Records grow at their end from version to version (the offsets below are the
 * same in 12.x and 13.x), so use cuptiActivityGetNextRecord and never the size of these structs.
 */
#include <stddef.h>
#include <stdint.h>

enum rp_cupti_result {
    RP_CUPTI_SUCCESS = 0,
    RP_CUPTI_MAX_LIMIT_REACHED = 12, /* the buffer contains no further record */
    RP_CUPTI_MULTIPLE_SUBSCRIBERS = 39
};

enum rp_cupti_kind {
    RP_CUPTI_MEMCPY = 1,
    RP_CUPTI_MEMSET = 2,
    RP_CUPTI_KERNEL = 3,
    RP_CUPTI_DRIVER = 4,
    RP_CUPTI_RUNTIME = 5,
    RP_CUPTI_DEVICE = 8,
    RP_CUPTI_CONCURRENT_KERNEL = 10,
    RP_CUPTI_OVERHEAD = 17,
    RP_CUPTI_MEMCPY2 = 22, /* between devices */
    RP_CUPTI_EXTERNAL_CORRELATION = 39,
    RP_CUPTI_GRAPH_TRACE = 51
};

enum rp_cupti_attribute {
    RP_CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT = 2,
    RP_CUPTI_ATTR_ZEROED_OUT_BUFFER = 5,
    RP_CUPTI_ATTR_PER_THREAD_BUFFER = 9
};

enum rp_cupti_domain {
    RP_CUPTI_DOMAIN_DRIVER = 1,
    RP_CUPTI_DOMAIN_RUNTIME = 2,
    RP_CUPTI_DOMAIN_STATE = 6
};

enum { RP_CUPTI_STATE_FATAL_ERROR = 1, RP_CUPTI_THREAD_ID_SYSTEM = 1, RP_CUPTI_FLUSH_FORCED = 1 };
enum { RP_CUPTI_OBJECT_PROCESS = 1, RP_CUPTI_OBJECT_THREAD = 2 };

struct rp_cupti_kernel_record {
    uint32_t kind;
    uint8_t cache[2];
    uint16_t registers;
    uint32_t partitioned[2];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t shared_static, shared_dynamic;
    uint32_t local_per_thread, local_total, correlation;
    int64_t grid_id;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, shared_config[3];
    uint32_t shared_executed;
    uint64_t graph_node;
    uint32_t shared_limit, graph;
};

struct rp_cupti_memcpy_record {
    uint32_t kind;
    uint8_t copy_kind, from_kind, to_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, pad;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
};

struct rp_cupti_memcpy2_record {
    uint32_t kind;
    uint8_t copy_kind, from_kind, to_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, from_device, from_context, to_device, to_context, correlation;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
};

struct rp_cupti_memset_record {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory_kind;
    uint32_t pad;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
};

struct rp_cupti_api_record {
    uint32_t kind, id;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
};

#pragma pack(push, 1)
struct rp_cupti_overhead_record {
    uint32_t kind, overhead, object;
    uint32_t process, thread, unused; /* of the object, if it is a thread */
    uint64_t start, end;
};
#pragma pack(pop)

struct rp_cupti_external_record {
    uint32_t kind, external_kind;
    uint64_t external;
    uint32_t correlation;
};

struct rp_cupti_graph_record {
    uint32_t kind, correlation;
    uint64_t start, end;
    uint32_t device, graph, context, stream;
};

struct rp_cupti_device_record {
    uint32_t kind, flags;
    uint64_t bandwidth_kb, memory_bytes;
    uint32_t constant_bytes, cache_bytes, warp_threads, clock_khz, copy_engines, multiprocessors;
    uint8_t other[64];
    uint32_t id;
    uint8_t more[20];
    const char *name;
};

#define RP_CUPTI_AT(type, field, offset) \
    _Static_assert(offsetof(struct type, field) == (offset), #field " is elsewhere")
RP_CUPTI_AT(rp_cupti_kernel_record, start, 16);
RP_CUPTI_AT(rp_cupti_kernel_record, correlation, 92);
RP_CUPTI_AT(rp_cupti_kernel_record, name, 104);
RP_CUPTI_AT(rp_cupti_kernel_record, graph_node, 144);
RP_CUPTI_AT(rp_cupti_kernel_record, graph, 156);
RP_CUPTI_AT(rp_cupti_memcpy_record, correlation, 44);
RP_CUPTI_AT(rp_cupti_memcpy_record, graph_node, 64);
RP_CUPTI_AT(rp_cupti_memcpy2_record, correlation, 60);
RP_CUPTI_AT(rp_cupti_memcpy2_record, graph_node, 72);
RP_CUPTI_AT(rp_cupti_memset_record, correlation, 44);
RP_CUPTI_AT(rp_cupti_memset_record, graph_node, 64);
RP_CUPTI_AT(rp_cupti_api_record, result, 36);
RP_CUPTI_AT(rp_cupti_overhead_record, start, 24);
RP_CUPTI_AT(rp_cupti_external_record, correlation, 16);
RP_CUPTI_AT(rp_cupti_graph_record, stream, 36);
RP_CUPTI_AT(rp_cupti_device_record, id, 112);
RP_CUPTI_AT(rp_cupti_device_record, name, 136);
#undef RP_CUPTI_AT

struct rp_cupti_subscriber_params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_name_size;
    uint8_t several, pad[7];
};
/* The size of the first version: up to old_name_size. */
#define RP_CUPTI_SUBSCRIBER_PARAMS_SIZE 32

typedef void rp_cupti_callback(void *user, int domain, uint32_t id, const void *data);
typedef void rp_cupti_request(uint8_t **buffer, size_t *size, size_t *records);
typedef void rp_cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                               size_t valid);

/* ROW(field, name without "cupti", arguments, 1 if required) */
#define RP_CUPTI_CALLS(ROW)                                                               \
    ROW(get_version, GetVersion, (uint32_t *), 1)                                         \
    ROW(result_string, GetResultString, (int, const char **), 0)                          \
    ROW(callback_name, GetCallbackName, (int, uint32_t, const char **), 1)                \
    ROW(subscribe, Subscribe, (void **, rp_cupti_callback *, void *), 1)                  \
    ROW(subscribe2, Subscribe_v2,                                                         \
        (void **, rp_cupti_callback *, void *, struct rp_cupti_subscriber_params *), 0)   \
    ROW(unsubscribe, Unsubscribe, (void *), 1)                                            \
    ROW(enable_callback, EnableCallback, (uint32_t, void *, int, uint32_t), 1)            \
    ROW(thread_ids, SetThreadIdType, (int), 0)                                            \
    ROW(set_attribute, ActivitySetAttribute, (int, size_t *, void *), 0)                  \
    ROW(timestamp, ActivityRegisterTimestampCallback, (uint64_t(*)(void)), 0)             \
    ROW(buffers, ActivityRegisterCallbacks, (rp_cupti_request *, rp_cupti_complete *), 1) \
    ROW(enable, ActivityEnable, (int), 1)                                                 \
    ROW(disable, ActivityDisable, (int), 1)                                               \
    ROW(enable_runtime, ActivityEnableRuntimeApi, (uint32_t, uint8_t), 0)                 \
    ROW(enable_driver, ActivityEnableDriverApi, (uint32_t, uint8_t), 0)                   \
    ROW(stream_id, GetStreamIdEx, (void *, void *, uint8_t, uint32_t *), 0)               \
    ROW(device_id, GetDeviceId, (void *, uint32_t *), 0)                                  \
    ROW(next_record, ActivityGetNextRecord, (uint8_t *, size_t, void **), 1)              \
    ROW(dropped, ActivityGetNumDroppedRecords, (void *, uint32_t, size_t *), 1)           \
    ROW(flush, ActivityFlushAll, (uint32_t), 1)                                           \
    ROW(finalize, Finalize, (void), 0)
