/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/escape.h"

struct written {
    char text[4096];
    size_t n;
};

static void put(void *to, const char *bytes, size_t n)
{
    struct written *w = to;

    assert_true(w->n + n < sizeof w->text);
    memcpy(w->text + w->n, bytes, n);
    w->n += n;
}

static void check(enum rp_language language, const char *text, size_t n, const char *want)
{
    struct written w = {.n = 0};

    rp_escape(language, text, n, put, &w);
    w.text[w.n] = '\0';
    if (strcmp(w.text, want) != 0)
        fail_msg("language %d, '%s': '%s', not '%s'", (int)language, text, w.text, want);
}

#define BAD "\xef\xbf\xbd"

/* One text in all languages: quotes, a comment's end, control characters, a line separator, a
   direction mark, and bytes that are not UTF-8. */
static void each_language(void **state)
{
    static const char text[] =
        "=a'\"\\`$(b)&<i> é\t\r\n\x1b\x7f\xff\xe2\x80\xa8\xe2\x80\xae\xe2\x80";
    static const struct {
        enum rp_language language;
        const char *want;
    } cases[] = {
        {RP_IN_LINE, "=a'\"\\`$(b)&<i> é   " BAD BAD BAD BAD BAD BAD BAD},
        {RP_IN_WORD, "=a'\"\\`$(b)&<i>_é___" BAD BAD BAD BAD BAD BAD BAD},
        {RP_IN_NAME, "_a______b___i_____________"},
        {RP_IN_HLO, "_a______b___i_____________"},
        {RP_IN_SHELL, "'=a'\\''\"\\`$(b)&<i> é   " BAD BAD BAD BAD BAD BAD BAD "'"},
        {RP_IN_PYTHON, "\"=a'\\\"\\\\`$(b)&<i> é\\x09\\x0d\\x0a\\x1b\\x7f\\udcff\\u2028\\u202e"
                       "\\udce2\\udc80\""},
        {RP_IN_JSON, "\"=a'\\\"\\\\`$(b)&<i> é\\t\\r\\n\\u001b\\u007f\\ufffd\\u2028\\u202e"
                     "\\ufffd\\ufffd\""},
        {RP_IN_SCRIPT, "\"=a\\u0027\\\"\\\\`$(b)\\u0026\\u003ci\\u003e é\\t\\r\\n\\u001b\\u007f"
                       "\\ufffd\\u2028\\u202e\\ufffd\\ufffd\""},
        {RP_IN_DOT, "=a'\\\"\\\\`$(b)&amp;<i> é   " BAD BAD BAD BAD BAD BAD BAD},
        {RP_IN_MARKUP, "=a&#39;&quot;\\`$(b)&amp;&lt;i&gt; é   " BAD BAD BAD BAD BAD BAD BAD},
        {RP_IN_CSV, "\"'=a'\"\"\\`$(b)&<i> é\t\r\n" BAD BAD BAD BAD BAD BAD BAD "\""},
        {RP_IN_PROTO, "\"=a'\\\"\\\\`$(b)&<i> \\303\\251\\011\\015\\n\\033\\177\\377"
                      "\\342\\200\\250\\342\\200\\256\\342\\200\""},
        {RP_IN_MLIR, "\"=a'\\22\\5C`$(b)&<i> \\C3\\A9\\09\\0D\\0A\\1B\\7F\\FF"
                     "\\E2\\80\\A8\\E2\\80\\AE\\E2\\80\""},
        {RP_IN_METRICS, "=a'\\\"\\\\`$(b)&<i> é  \\n" BAD BAD BAD BAD BAD BAD BAD},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].language, text, sizeof text - 1, cases[i].want);
    check(RP_IN_JSON, "a\0b", 3, "\"a\\u0000b\"");
    check(RP_IN_PROTO, "a\0b", 3, "\"a\\000b\"");
    check(RP_IN_MLIR, "a\0b", 3, "\"a\\00b\"");
}

/* Formulas get a mark, numbers stay numbers, and only what needs quotes has them. */
static void cells(void **state)
{
    static const char *const cases[][2] = {
        {"", "\"\""},          {"relu", "relu"},    {"a,b", "\"a,b\""}, {"a\nb", "\"a\nb\""},
        {"-12", "-12"},        {"+0.5", "+0.5"},    {"-1e-9", "-1e-9"}, {"-1+1", "'-1+1"},
        {"-", "'-"},           {"=1+1", "'=1+1"},   {"@sum", "'@sum"},  {"+x", "'+x"},
        {"\tx", "'\tx"},       {"\rx", "\"'\rx\""}, {"a=b", "a=b"},     {"-1e", "'-1e"},
        {"a\"b", "\"a\"\"b\""}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(RP_IN_CSV, cases[i][0], strlen(cases[i][0]), cases[i][1]);
        assert_int_equal(rp_escape_needless(RP_IN_CSV, cases[i][0], strlen(cases[i][0])),
                         !strcmp(cases[i][0], cases[i][1]));
    }
    assert_true(rp_escape_needless(RP_IN_JSON, "aten::mm é", strlen("aten::mm é")));
    assert_false(rp_escape_needless(RP_IN_JSON, "a\"", 2));
    assert_false(rp_escape_needless(RP_IN_JSON, "a\x9b", 2));
}

static void file_names(void **state)
{
    static const char *const same[] = {"jit_step", "a.b-c_d+1", "é日本"};
    static const char *const unfit[] = {"",    ".",      "..",    "-rf",  ".hidden", "../../x",
                                        "a/b", "a\nb",   "a b",   "$(x)", "a\\b",    "\xff",
                                        "`x`", "\x1b[m", "a;b#c", "a%n",  "~root",   "*"};
    char long_text[5000], a[RP_FILE_NAME_MAX], b[RP_FILE_NAME_MAX];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        rp_file_name(a, same[i]);
        assert_string_equal(a, same[i]);
    }
    for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++) {
        rp_file_name(a, unfit[i]);
        assert_int_equal(strcspn(a, "/\\ \n\x1b\xff$`;#*%~()"), strlen(a));
        assert_true(a[0] != '.' && a[0] != '-' && strlen(a) > 9);
        for (size_t k = 0; k < i; k++) {
            rp_file_name(b, unfit[k]);
            assert_string_not_equal(a, b);
        }
    }
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    rp_file_name(a, long_text);
    long_text[4000] = 'y';
    rp_file_name(b, long_text);
    assert_true(strlen(a) < RP_FILE_NAME_MAX);
    assert_string_not_equal(a, b);
}

static void characters(void **state)
{
    static const uint32_t codes[] = {0x41,   0x7f,   0x80,    0x7ff,   0x800,
                                     0xfffd, 0xffff, 0x10000, 0x10ffff};
    static const char *const bad[] = {"\x80", "\xc0\x80",         "\xe0\x80\x80", "\xed\xa0\x80",
                                      "\xf5", "\xf4\x90\x80\x80", "\xe2\x82",     "\xff"};
    char bytes[8];
    uint32_t code;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        size_t n = rp_utf8_encode(bytes, codes[i]);

        assert_int_equal(rp_utf8_decode(bytes, bytes + n, &code), n);
        assert_int_equal(code, codes[i]);
        if (n > 1) {
            assert_int_equal(rp_utf8_decode(bytes, bytes + n - 1, &code), 1);
            assert_int_equal(code, RP_UTF8_BAD);
        }
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(rp_utf8_next(bad[i], &code), 1);
        assert_int_equal(code, RP_UTF8_BAD);
    }
}

int test_escape(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_language),
        cmocka_unit_test(cells),
        cmocka_unit_test(file_names),
        cmocka_unit_test(characters),
    };

    return cmocka_run_group_tests_name("escape", tests, NULL, NULL);
}
