/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of RFC 1321, in one piece and byte by byte. */
#include "base/md5.h"
#include "unit.h"

static void texts_of_the_rfc(void **state)
{
    static const char *const rows[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[RP_MD5_TEXT];
        struct rp_md5 s;

        rp_md5_begin(&s);
        rp_md5_add(&s, rows[i][0], strlen(rows[i][0]));
        rp_md5_text(&s, out);
        assert_string_equal(out, rows[i][1]);
        rp_md5_begin(&s);
        for (const char *c = rows[i][0]; *c; c++)
            rp_md5_add(&s, c, 1);
        rp_md5_text(&s, out);
        assert_string_equal(out, rows[i][1]);
    }
}

int test_md5(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_of_the_rfc)};

    return cmocka_run_group_tests_name("md5", tests, NULL, NULL);
}
