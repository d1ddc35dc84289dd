/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/sha256.h"

static void hash_of(const char *text, size_t times, size_t piece, char out[RP_SHA256_TEXT])
{
    struct rp_sha256 s;
    size_t n = strlen(text);

    rp_sha256_begin(&s);
    for (size_t i = 0; i < times; i++)
        for (size_t at = 0; at < n; at += piece)
            rp_sha256_add(&s, text + at, n - at < piece ? n - at : piece);
    rp_sha256_text(&s, out);
}

/* The examples of FIPS 180-4 and of NIST's test vectors. */
static void vectors(void **state)
{
    static const char long_text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char text[RP_SHA256_TEXT];

    UNUSED_STATE(state);
    hash_of("", 1, 1, text);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_of("abc", 1, 3, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (size_t piece = 1; piece < 60; piece += 7) {
        hash_of(long_text, 1, piece, text);
        assert_string_equal(text,
                            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    }
    hash_of("aaaaaaaaaa", 100000, 10, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int test_sha256(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors)};

    return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
