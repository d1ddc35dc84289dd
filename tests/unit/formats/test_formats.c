/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of formats and writers: complete rows with names of their own. */
#include "unit.h"

#include "formats/list.h"
#include "formats/write/list.h"

static void assert_text(const char *text)
{
    assert_non_null(text);
    assert_true(*text != '\0');
    assert_null(strchr(text, '\n'));
    assert_null(strchr(text, '|')); /* they are cells of a table in the README */
}

static void formats_are_complete(void **state)
{
    const struct rp_format *format;
    size_t n = 0;

    (void)state;
    for (; (format = rp_format_at(n)); n++) {
        assert_text(format->name);
        assert_text(format->summary);
        assert_text(format->files);
        assert_text(format->written_by);
        assert_true(format->sniff && format->read);
        for (size_t i = 0; i < n; i++)
            assert_string_not_equal(rp_format_at(i)->name, format->name);
    }
    assert_ptr_equal(rp_format_at(0), &rp_format_rpt);
    assert_null(rp_format_at(n + 1));
}

static void writers_are_complete(void **state)
{
    static const struct rp_writer *const writers[] = {
#define WRITER_ADDRESS(name) &rp_writer_##name,
        RP_WRITER_ROWS(WRITER_ADDRESS)
#undef WRITER_ADDRESS
    };

    (void)state;
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++) {
        const struct rp_writer *writer = writers[i], *found;
        struct rp_err err;
        char path[64];

        assert_text(writer->name);
        assert_text(writer->summary);
        assert_true(!writer->write != !writer->write_program);
        for (size_t k = 0; k < 3 && writer->endings[k]; k++) {
            snprintf(path, sizeof path, "folder/x%s", writer->endings[k]);
            assert_ok(rp_writer_for(NULL, path, &found, &err), &err);
            assert_ptr_equal(found, writer);
            assert_ok(rp_writer_for(writer->name, path, &found, &err), &err);
            assert_ptr_equal(found, writer);
        }
    }
}

int test_formats(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_complete),
        cmocka_unit_test(writers_are_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
