/* SPDX-License-Identifier: Apache-2.0 */
/* Pages and drawings: complete, and safe with names that somebody chose with care. */
#include "draw/draw.h"
#include "formats/programs.h"
#include "io/output.h"
#include "unit.h"

#include <stdlib.h>

#define TEXT                                                                                  \
    "HloModule m\nf {\n ROOT x = f32[] constant(1)\n}\ng {\n ROOT y = f32[] constant(1)\n}\n" \
    "ENTRY e {\n a = f32[4] parameter(0), metadata={op_name=\"</script><b>\" "                \
    "source_file=\"/a/\\\"q.py\" source_line=7}\n"                                            \
    " ROOT r = f32[4] negate(a), frontend_attributes={k=\"<img src=x>\"}\n}\n"

static char *drawn(const struct rp_program *p, bool html, const bool *wanted)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *to;
    char *text;
    size_t n;

    assert_ok(rp_out_open_memory(&to, &err), &err);
    if (html)
        assert_ok(rp_draw_program_html(p, NULL, to, &err), &err);
    else
        assert_ok(rp_draw_program_dot(p, wanted, to), &err);
    text = strdup(rp_out_borrow_memory(to, &n));
    assert_non_null(text);
    assert_ok(rp_out_close(to, &err), &err);
    return text;
}

static struct rp_program *parse(void)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_hlo_text_parse(TEXT, strlen(TEXT), NULL, &p, &err), &err);
    return p;
}

static void pages_hold_everything(void **state)
{
    struct rp_program *p = parse();
    char *page = drawn(p, true, NULL);
    const char *script = strstr(page, "<script>");

    UNUSED_STATE(state);
    assert_non_null(script);
    assert_contains(page, "\"negate\"");
    assert_contains(page, "\\u003c/script\\u003e");
    assert_contains(page, "\\u003cimg src=x\\u003e");
    assert_null(strstr(strstr(script, "</script>") + 1, "</script>"));
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "http:"));
    assert_null(strstr(page, "https:"));
    assert_contains(page, "[\"f\",0,1,0,0,0,-1],\n[\"g\",1,1,1,0,1,-1]"); /* the same content */
    free(page);
    rp_program_free(p);
}

static void drawings_are_quoted(void **state)
{
    struct rp_program *p = parse();
    bool wanted[4] = {false, false, false, true};
    struct rp_err err = RP_ERR_INIT;
    char *text;

    UNUSED_STATE(state);
    assert_ok(rp_program_string(p, "a\"\\n", 4, &p->op_name.at[3], &err), &err);
    text = drawn(p, false, NULL);
    assert_contains(text, "n3 [label=\"a\\\"\\\\n\\nnegate\\nf32[4]\"]");
    assert_contains(text, "n2 -> n3;");
    free(text);
    text = drawn(p, false, wanted);
    assert_null(strstr(text, "n2"));
    assert_null(strstr(text, "cluster_0"));
    free(text);
    rp_program_free(p);
}

int test_program_page(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_hold_everything),
        cmocka_unit_test(drawings_are_quoted),
    };

    return cmocka_run_group_tests_name("program_page", tests, NULL, NULL);
}
