/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The binary interface of PJRT plugins, the compilers and devices behind JAX. A plugin exports
 * GetPjrtApi(), which returns a table of functions; each takes one struct of 8-byte words and
 * returns an error or NULL.
 *
 *   table:      [ size | extensions | version: size, extensions, major:32 minor:32 | fn 0 | ... ]
 *   arguments:  [ size | extensions | word 2 | word 3 | ... ]    words are pointers, sizes, int32
 *   extension:  [ size | type:32    | next   | payload ...  ]
 *
 * The interface only grows: functions and words are appended, never moved, and major stays 0. A
 * plugin rejects structs that are shorter than its own and accepts longer ones, so the caller's are
 * zeroed and longer than any known (RP_PJRT_WORDS). A few plugins require the exact size and report
 * it: "Unexpected PJRT_Client_Create_Args size: expected 88, got 512".
 */
#include <stddef.h>
#include <stdint.h>

#define RP_PJRT_WORDS 64 /* words of an argument struct; the longest known has 25 */

typedef const uint64_t *rp_pjrt_entry_fn(void);
typedef void *rp_pjrt_fn(uint64_t *args);

/* Words of the table. */
enum {
    RP_PJRT_API_SIZE,
    RP_PJRT_API_EXTENSIONS,
    RP_PJRT_API_VERSION = 4, /* major in the low half, minor in the high one */
    RP_PJRT_API_FUNCTIONS = 5
};

/* Numbers of the functions that are used; plugins have had them since API 0.40 or earlier. */
enum rp_pjrt_function {
    RP_PJRT_ERROR_DESTROY = 0,
    RP_PJRT_ERROR_MESSAGE = 1,
    RP_PJRT_ERROR_GET_CODE = 2,
    RP_PJRT_PLUGIN_INITIALIZE = 3,
    RP_PJRT_EVENT_DESTROY = 5,
    RP_PJRT_EVENT_AWAIT = 8,
    RP_PJRT_EVENT_ON_READY = 9,
    RP_PJRT_CLIENT_CREATE = 10,
    RP_PJRT_CLIENT_DESTROY = 11,
    RP_PJRT_CLIENT_PLATFORM_NAME = 12,
    RP_PJRT_CLIENT_PLATFORM_VERSION = 14,
    RP_PJRT_CLIENT_ADDRESSABLE_DEVICES = 16,
    RP_PJRT_CLIENT_COMPILE = 20,
    RP_PJRT_BUFFER_FROM_HOST = 22,
    RP_PJRT_DESCRIPTION_KIND = 26,
    RP_PJRT_DEVICE_DESCRIPTION = 29,
    RP_PJRT_DEVICE_MEMORY_STATS = 34,
    RP_PJRT_EXECUTABLE_DESTROY = 40,
    RP_PJRT_EXECUTABLE_NAME = 41,
    RP_PJRT_EXECUTABLE_NUM_OUTPUTS = 44,
    RP_PJRT_EXECUTABLE_OPTIMIZED = 48,
    RP_PJRT_LOADED_DESTROY = 50,
    RP_PJRT_LOADED_EXECUTABLE = 51,
    RP_PJRT_LOADED_DEVICES = 52,
    RP_PJRT_EXECUTE = 55,
    RP_PJRT_BUFFER_DESTROY = 58,
    RP_PJRT_BUFFER_ELEMENT_TYPE = 59,
    RP_PJRT_BUFFER_DIMENSIONS = 60,
    RP_PJRT_BUFFER_TO_HOST = 70,
    RP_PJRT_BUFFER_READY = 72,
    RP_PJRT_FUNCTIONS_NEEDED = RP_PJRT_BUFFER_READY + 1
};

/* Words of the arguments; "out" is set by the plugin. */
enum {
    RP_PJRT_ARG = 2,    /* the first argument of every function: error, event, client, buffer ... */
    RP_PJRT_RESULT = 3, /* set by functions that query one property of their argument */
    RP_PJRT_RESULT_SIZE = 4,

    RP_PJRT_CREATE_OPTIONS = 2,
    RP_PJRT_CREATE_NOPTIONS = 3,
    RP_PJRT_CREATE_CLIENT = 8, /* out */

    RP_PJRT_COMPILE_PROGRAM = 3,
    RP_PJRT_COMPILE_OPTIONS = 4,
    RP_PJRT_COMPILE_OPTIONS_SIZE = 5,
    RP_PJRT_COMPILE_EXECUTABLE = 6, /* out */

    RP_PJRT_PROGRAM_CODE = 2,
    RP_PJRT_PROGRAM_CODE_SIZE = 3,
    RP_PJRT_PROGRAM_FORMAT = 4, /* "mlir": text or bytecode; "hlo": an HloModuleProto */
    RP_PJRT_PROGRAM_FORMAT_SIZE = 5,

    RP_PJRT_FROM_HOST_DATA = 3,
    RP_PJRT_FROM_HOST_TYPE = 4,
    RP_PJRT_FROM_HOST_DIMS = 5,
    RP_PJRT_FROM_HOST_NDIMS = 6,
    RP_PJRT_FROM_HOST_SEMANTICS =
        9, /* 1: the data must stay until the event tells that it was read */
    RP_PJRT_FROM_HOST_DEVICE = 10,
    RP_PJRT_FROM_HOST_DONE = 13,   /* out: event */
    RP_PJRT_FROM_HOST_BUFFER = 14, /* out */

    RP_PJRT_EXECUTE_OPTIONS = 3,
    RP_PJRT_EXECUTE_ARGUMENTS = 4, /* a list of buffers per device */
    RP_PJRT_EXECUTE_NDEVICES = 5,
    RP_PJRT_EXECUTE_NARGUMENTS = 6,
    RP_PJRT_EXECUTE_OUTPUTS = 7, /* lists of the caller, which are filled */
    RP_PJRT_EXECUTE_EVENTS =
        8, /* a list of the caller, which is filled: the execution is complete on its device */

    RP_PJRT_OPTIONS_LAUNCH = 6,
    RP_PJRT_OPTIONS_KEPT = 7, /* indices of arguments that must not be donated */
    RP_PJRT_OPTIONS_NKEPT = 8,

    RP_PJRT_ON_READY_CALLBACK = 3, /* void (error, user), called once by a thread of the plugin */
    RP_PJRT_ON_READY_USER = 4,

    RP_PJRT_TO_HOST_LAYOUT = 3,
    RP_PJRT_TO_HOST_DATA = 4,
    RP_PJRT_TO_HOST_SIZE = 5,  /* set if data is NULL */
    RP_PJRT_TO_HOST_EVENT = 6, /* out */

    RP_PJRT_LAYOUT_TILED = 2, /* a nested struct, which begins with its own size */
    RP_PJRT_LAYOUT_MINOR_TO_MAJOR = 4,
    RP_PJRT_LAYOUT_NMINOR_TO_MAJOR = 5,
    RP_PJRT_LAYOUT_TYPE = 9, /* 0: tiled */
    RP_PJRT_LAYOUT_WORDS = 10,
    RP_PJRT_LAYOUT_TILED_WORDS = 7,

    RP_PJRT_STATS_PEAK = 4, /* out: bytes */
    RP_PJRT_STATS_PEAK_KNOWN = 5
};

/* An option of a client; arrays of them have no padding. */
enum {
    RP_PJRT_OPTION_NAME = 2,
    RP_PJRT_OPTION_NAME_SIZE = 3,
    RP_PJRT_OPTION_TYPE = 4,
    RP_PJRT_OPTION_VALUE = 5,
    RP_PJRT_OPTION_VALUE_SIZE =
        6, /* number of elements of a list or bytes of a text; otherwise 1 */
    RP_PJRT_OPTION_WORDS = 7
};
enum rp_pjrt_option_type {
    RP_PJRT_OPTION_TEXT,
    RP_PJRT_OPTION_INT,
    RP_PJRT_OPTION_INTS,
    RP_PJRT_OPTION_FLOAT,
    RP_PJRT_OPTION_BOOL
};

/* Results of RP_PJRT_ERROR_GET_CODE: the codes of absl and gRPC. */
enum rp_pjrt_error_code {
    RP_PJRT_INVALID_ARGUMENT = 3,
    RP_PJRT_NOT_FOUND = 5,
    RP_PJRT_RESOURCE_EXHAUSTED = 8,
    RP_PJRT_FAILED_PRECONDITION = 9,
    RP_PJRT_UNIMPLEMENTED = 12
};

/* Words of an extension after size, type and next. */
enum { RP_PJRT_EXTENSION_TYPE = 1, RP_PJRT_EXTENSION_NEXT = 2, RP_PJRT_EXTENSION_PAYLOAD = 3 };
enum { RP_PJRT_EXTENSION_PROFILER = 1, RP_PJRT_EXTENSIONS_MAX = 256 };

/* The payload of the profiler extension is another function table like the one above. */
enum {
    RP_PJRT_PROFILER_ERROR_DESTROY = 2, /* words of the table */
    RP_PJRT_PROFILER_ERROR_MESSAGE = 3,
    RP_PJRT_PROFILER_CREATE = 5,
    RP_PJRT_PROFILER_DESTROY = 6,
    RP_PJRT_PROFILER_START = 7,
    RP_PJRT_PROFILER_STOP = 8,
    RP_PJRT_PROFILER_COLLECT = 9,
    RP_PJRT_PROFILER_TABLE = 10 /* minimum size in words */
};
/* Words of its functions' arguments, which have no word for extensions (except error functions). */
enum {
    RP_PJRT_PROFILER_ARG = 1, /* the profiler */
    RP_PJRT_PROFILER_OPTIONS = 1,
    RP_PJRT_PROFILER_OPTIONS_SIZE = 2,
    RP_PJRT_PROFILER_CREATED = 3, /* out */
    RP_PJRT_PROFILER_BUFFER = 2,  /* NULL to ask for the size */
    RP_PJRT_PROFILER_BUFFER_SIZE = 3
};

/* Element types of buffers; they are not numbered as in XLA's protos. X(element, number) */
#define RP_PJRT_TYPES(X) \
    X(PRED, 1)           \
    X(S8, 2)             \
    X(S16, 3)            \
    X(S32, 4)            \
    X(S64, 5)            \
    X(U8, 6)             \
    X(U16, 7)            \
    X(U32, 8)            \
    X(U64, 9)            \
    X(F16, 10)           \
    X(F32, 11)           \
    X(F64, 12)           \
    X(BF16, 13)          \
    X(C64, 14)           \
    X(C128, 15)          \
    X(F8E5M2, 16)        \
    X(F8E4M3FN, 17)      \
    X(F8E4M3B11FNUZ, 18) \
    X(F8E5M2FNUZ, 19)    \
    X(F8E4M3FNUZ, 20)    \
    X(S4, 21)            \
    X(U4, 22)            \
    X(TOKEN, 23)         \
    X(S2, 24)            \
    X(U2, 25)            \
    X(F8E4M3, 26)        \
    X(F8E3M4, 27)        \
    X(F8E8M0FNU, 28)     \
    X(F4E2M1FN, 29)      \
    X(S1, 30)            \
    X(U1, 31)            \
    X(F6E2M3FN, 32)      \
    X(F6E3M2FN, 33)
