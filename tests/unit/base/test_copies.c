/* SPDX-License-Identifier: Apache-2.0 */
/* Where copies go, by the names that recorders give them. */
#include "base/copies.h"
#include "base/named.h"
#include "unit.h"

static void names_tell_the_way(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(rp_copy_way("Memcpy HtoD (Pageable -> Device)"), RP_COPY_TO_DEVICE);
    assert_int_equal(rp_copy_way("Memcpy DtoH (Device -> Pinned)"), RP_COPY_TO_HOST);
    assert_int_equal(rp_copy_way("Memcpy DtoD (Device -> Device)"), RP_COPY_INSIDE);
    assert_int_equal(rp_copy_way("Memcpy PtoP (Device -> Device)"), RP_COPY_BETWEEN);
    assert_int_equal(rp_copy_way("MemcpyH2D"), RP_COPY_TO_DEVICE);
    assert_int_equal(rp_copy_way("MemcpyD2H"), RP_COPY_TO_HOST);
    assert_int_equal(rp_copy_way("MemcpyD2D"), RP_COPY_INSIDE);
    assert_int_equal(rp_copy_way("MemcpyP2P"), RP_COPY_BETWEEN);
    assert_int_equal(rp_copy_way("CopyHostToDevice"), RP_COPY_TO_DEVICE);
    assert_int_equal(rp_copy_way("CopyDeviceToHost"), RP_COPY_TO_HOST);
    assert_int_equal(rp_copy_way("CopyDeviceToDevice"), RP_COPY_INSIDE);
    assert_int_equal(rp_copy_way("memcpy dtoh"), RP_COPY_TO_HOST);
    assert_int_equal(rp_copy_way("Memcpy HtoH (Host -> Host)"), RP_COPY_UNKNOWN);
    assert_int_equal(rp_copy_way("Memcpy"), RP_COPY_UNKNOWN);
}

static void one_word_is_enough(void **state)
{
    static const char *const words[] = {"gemm", "conv", NULL};

    UNUSED_STATE(state);
    assert_true(rp_has_word("cutlass_GEMM", words));
    assert_true(rp_has_word("convolve", words));
    assert_false(rp_has_word("softmax", words));
    assert_false(rp_has_word("gemm", words + 2));
}

int test_copies(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_tell_the_way),
                                       cmocka_unit_test(one_word_is_enough)};

    return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}
