/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of NVTX 3 that is used. A program's copy of NVTX loads the library named by
 * NVTX_INJECTION64_PATH and calls InitializeInjectionNvtx2 with a function that returns tables. The
 * table of a module has one pointer for each function, to the variable that the program calls
 * through.
 */
#include <stddef.h>
#include <stdint.h>

typedef void (*rp_nvtx_function)(void);
typedef const void *rp_nvtx_get_table(uint32_t id);

enum { RP_NVTX_TABLE_CALLBACKS = 1 };
enum rp_nvtx_module { RP_NVTX_CORE = 1, RP_NVTX_CORE2 = 5 };

enum rp_nvtx_core {
    RP_NVTX_MARK_EX = 1,
    RP_NVTX_MARK_A,
    RP_NVTX_MARK_W,
    RP_NVTX_START_EX,
    RP_NVTX_START_A,
    RP_NVTX_START_W,
    RP_NVTX_END,
    RP_NVTX_PUSH_EX,
    RP_NVTX_PUSH_A,
    RP_NVTX_PUSH_W,
    RP_NVTX_POP,
    RP_NVTX_NAME_THREAD_A = 14,
    RP_NVTX_NAME_THREAD_W
};

enum rp_nvtx_core2 {
    RP_NVTX_DOMAIN_MARK_EX = 1,
    RP_NVTX_DOMAIN_START_EX,
    RP_NVTX_DOMAIN_END,
    RP_NVTX_DOMAIN_PUSH_EX,
    RP_NVTX_DOMAIN_POP,
    RP_NVTX_REGISTER_STRING_A = 10,
    RP_NVTX_REGISTER_STRING_W,
    RP_NVTX_DOMAIN_CREATE_A,
    RP_NVTX_DOMAIN_CREATE_W
};

struct rp_nvtx_callbacks {
    size_t size;
    int (*module_table)(uint32_t module, rp_nvtx_function ***table, unsigned *size);
};

enum { RP_NVTX_MESSAGE_ASCII = 1, RP_NVTX_MESSAGE_WIDE = 2, RP_NVTX_MESSAGE_REGISTERED = 3 };

struct rp_nvtx_event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message; /* text, wide text or registered string */
};
_Static_assert(offsetof(struct rp_nvtx_event, message) == 40, "the message is elsewhere");

/* An extension (a separate header with its own table) calls InitializeInjectionNvtxExtension of the
   same library. The payload extension may end a range that was begun without it: NCCL does. */
enum { RP_NVTX_EXTENSION_PAYLOAD = 2 };
enum rp_nvtx_payload_function {
    RP_NVTX_PAYLOAD_MARK = 2,
    RP_NVTX_PAYLOAD_PUSH,
    RP_NVTX_PAYLOAD_POP,
    RP_NVTX_PAYLOAD_START,
    RP_NVTX_PAYLOAD_END
};

struct rp_nvtx_segment {
    size_t id, nslots;
    intptr_t *slots; /* pointers to functions; 0 if not known yet, 1 if there are none */
};

struct rp_nvtx_extension {
    uint16_t version, size, module, compatible;
    size_t nsegments;
    struct rp_nvtx_segment *segments;
    void *get_export;
    const void *info;
};

#define RP_NVTX_NO_LEVEL (-2) /* the result of push and pop without a tool */
