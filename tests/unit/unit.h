/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_UNIT_H
#define RP_TESTS_UNIT_H
/* cmocka with the headers it wants before it, and the few words every test file uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <reprise/error.h>

#define UNUSED_STATE(state) ((void)(state))

/* Long tests of one thread, in which the thread sanitizer would see nothing. */
#ifdef __SANITIZE_THREAD__
#define SKIP_WITHOUT_THREADS() skip()
#else
#define SKIP_WITHOUT_THREADS() ((void)0)
#endif

/* A call that must succeed; on failure the error's text is shown. */
#define assert_ok(expr, err)                                                      \
    do {                                                                          \
        enum rp_code unit_code_ = (expr);                                         \
        if (unit_code_ != RP_OK)                                                  \
            fail_msg("%s: %s: %s", #expr, rp_code_name(unit_code_), (err)->text); \
    } while (0)

#define assert_code(expr, want) assert_string_equal(rp_code_name(expr), rp_code_name(want))

#define assert_contains(text, part)                                 \
    do {                                                            \
        if (!strstr((text), (part)))                                \
            fail_msg("'%s' does not contain '%s'", (text), (part)); \
    } while (0)

#endif
