/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib is not built with the memory sanitizer, which therefore does not see what it writes. The
 * linker calls these functions (--wrap, cmake/compiler.cmake), which say so.
 */
#include <sanitizer/msan_interface.h>
#include <zlib.h>

#define ON_A_STREAM(X)                       \
    X(inflate, (z_streamp z, int n), (z, n)) \
    X(deflate, (z_streamp z, int n), (z, n))

#define WRAP(name, params, args)                                  \
    int __real_##name params;                                     \
    int __wrap_##name params;                                     \
    int __wrap_##name params                                      \
    {                                                             \
        Bytef *from = z->next_out;                                \
        __msan_check_mem_is_initialized(z->next_in, z->avail_in); \
        int result = __real_##name args;                          \
                                                                  \
        __msan_unpoison(z, sizeof *z);                            \
        __msan_unpoison(from, (size_t)(z->next_out - from));      \
        return result;                                            \
    }
ON_A_STREAM(WRAP)
