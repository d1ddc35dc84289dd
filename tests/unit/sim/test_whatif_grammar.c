/* SPDX-License-Identifier: Apache-2.0 */
/* How texts are taken apart into what-ifs: names with '+', '=', ',', ':' and quotes. */
#include "unit.h"

#include "sim/whatif/whatifs.h"

#include <string.h>

struct expected {
    const char *name, *subject, *value, *second; /* NULL: absent */
};

static void assert_text(const char *whole, const char *what, const char *got, const char *wanted)
{
    if (!got != !wanted || (got && strcmp(got, wanted) != 0))
        fail_msg("'%s': %s is '%s', not '%s'", whole, what, got ? got : "(absent)",
                 wanted ? wanted : "(absent)");
}

static void texts_are_taken_apart(void **state)
{
    static const struct {
        const char *text;
        struct expected calls[3];
    } cases[] = {
        {"fuse", {{"fuse", NULL, NULL, NULL}}},
        {"scale:comm=0.5", {{"scale", "comm", "0.5", NULL}}},
        {"cuda-graphs+bucket=25MB",
         {{"cuda-graphs", NULL, NULL, NULL}, {"bucket", NULL, "25MB", NULL}}},
        {"scale:host=2+scale:gpu=3+fuse",
         {{"scale", "host", "2", NULL}, {"scale", "gpu", "3", NULL}, {"fuse", NULL, NULL, NULL}}},
        /* '+' in a name */
        {"scale:a+b=2", {{"scale", "a+b", "2", NULL}}},
        {"scale:a+b=2+fuse", {{"scale", "a+b", "2", NULL}, {"fuse", NULL, NULL, NULL}}},
        {"fuse=a+b", {{"fuse", NULL, "a+b", NULL}}},
        {"fuse=a++b+", {{"fuse", NULL, "a++b+", NULL}}},
        {"recompute=operator++fuse=x",
         {{"recompute", NULL, "operator+", NULL}, {"fuse", NULL, "x", NULL}}},
        {"swap=a+b,c+d", {{"swap", NULL, "a+b", "c+d"}}},
        /* the beginning of a name is not a what-if: not 'fuse', not 'ranks' */
        {"scale:a+fused=2", {{"scale", "a+fused", "2", NULL}}},
        {"recompute=x+ranks_kernel", {{"recompute", NULL, "x+ranks_kernel", NULL}}},
        /* where a what-if follows, quotes keep the text together */
        {"scale:a+fuse=2", {{"scale", "a", NULL, NULL}, {"fuse", NULL, "2", NULL}}},
        {"scale:\"a+fuse\"=2", {{"scale", "a+fuse", "2", NULL}}},
        {"scale:\"a+fuse=2\"=2+fuse",
         {{"scale", "a+fuse=2", "2", NULL}, {"fuse", NULL, NULL, NULL}}},
        {"fuse=\"a+fuse\"+fuse", {{"fuse", NULL, "a+fuse", NULL}, {"fuse", NULL, NULL, NULL}}},
        /* '=' in a name */
        {"scale:f<n=4>=2", {{"scale", "f<n=4>", "2", NULL}}},
        {"scale:f<n=4>=2+fuse=a=b", {{"scale", "f<n=4>", "2", NULL}, {"fuse", NULL, "a=b", NULL}}},
        {"recompute=a=b", {{"recompute", NULL, "a=b", NULL}}},
        {"scale:a=\"2\"", {{"scale", "a", "2", NULL}}},
        /* ',' in a name */
        {"scale:f<int, 4>=2", {{"scale", "f<int, 4>", "2", NULL}}},
        {"fuse=f<int, 4>", {{"fuse", NULL, "f<int, 4>", NULL}}},
        {"swap=a,b", {{"swap", NULL, "a", "b"}}},
        {"swap=a,f<int, 4>", {{"swap", NULL, "a", "f<int, 4>"}}},
        {"swap=\"f<int, 4>\",a", {{"swap", NULL, "f<int, 4>", "a"}}},
        {"swap=\"f<int, 4>\",\"g<int+fuse>\"+fuse",
         {{"swap", NULL, "f<int, 4>", "g<int+fuse>"}, {"fuse", NULL, NULL, NULL}}},
        /* ':' and quotes in a name */
        {"scale:aten::mm=2", {{"scale", "aten::mm", "2", NULL}}},
        {"recompute=aten::gelu", {{"recompute", NULL, "aten::gelu", NULL}}},
        {"straggler=remove:1", {{"straggler", NULL, "remove:1", NULL}}},
        {"scale:operator\"\"_x=2", {{"scale", "operator\"\"_x", "2", NULL}}},
        {"scale:\"\"\"a\"\"\"=2", {{"scale", "\"a\"", "2", NULL}}},
        {"scale:\"\"=2", {{"scale", "", "2", NULL}}},
        {"fuse=", {{"fuse", NULL, "", NULL}}},
    };
    size_t i, k;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = cases[i].text;
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_err err = RP_ERR_INIT;
        struct rp_whatif_list list;

        assert_ok(rp_whatif_parse(text, &arena, &list, &err), &err);
        for (k = 0; k < list.n; k++) {
            const struct rp_whatif_args *args = &list.calls[k].args;
            const struct expected *e = &cases[i].calls[k];

            assert_text(text, "the name", list.calls[k].row->name, k < 3 ? e->name : NULL);
            assert_text(text, "the subject", args->subject, e->subject);
            assert_text(text, "the value", args->value, e->value);
            assert_text(text, "the second value", args->second, e->second);
            assert_ptr_equal(args->list, &list);
        }
        assert_true(k == 3 || !cases[i].calls[k].name);
        rp_arena_release(&arena);
    }
}

static void malformed_texts_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "a what-if is missing"},
        {"+fuse", "a what-if is missing"},
        {"fuse+", "a what-if is missing"},
        {"fuse++fuse", "a what-if is missing"},
        {"=2", "a what-if is missing"},
        {"fuze", "no what-if 'fuze': did you mean 'fuse'"},
        {"fuze=a+b+fuse", "no what-if 'fuze=a+b': did you mean 'fuse'"},
        {"fuse+fuze", "no what-if 'fuze': did you mean 'fuse'"},
        {"bucket=25MB+fuze", "no what-if 'fuze': did you mean 'fuse'"},
        {"scale:comm=2+no-synk", "no what-if 'no-synk': did you mean 'no-sync'"},
        {"scale:\"a=2", "closing '\"' is missing"},
        {"scale:a=\"2", "closing '\"' is missing"},
        {"swap=\"a,b", "closing '\"' is missing"},
        {"scale:\"a\"b=2", "'b=2' is not expected after the closing '\"'"},
        {"fuse=\"a\",b", "',b' is not expected after the closing '\"'"},
        {"no-sync=1", "takes no value"},
        {"fused-optimizer=1", "takes no value"},
        {"fuse:x", "':' is not expected here: use 'fuse[=<pattern>]'"},
    };
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_err err = RP_ERR_INIT;
        struct rp_whatif_list list;
        enum rp_code code = rp_whatif_parse(cases[i].text, &arena, &list, &err);

        if (code != RP_USAGE || !strstr(err.text, cases[i].says))
            fail_msg("'%s': %s: %s", cases[i].text, rp_code_name(code), err.text);
        rp_arena_release(&arena);
    }
}

/* Each row can be asked for by what its form says, and forms begin with the name. */
static void rows_are_consistent(void **state)
{
    size_t i, k;

    UNUSED_STATE(state);
    for (i = 0; rp_whatifs[i]; i++) {
        const struct rp_whatif *row = rp_whatifs[i];

        assert_true(!strncmp(row->form, row->name, strlen(row->name)));
        assert_int_equal(strchr(row->form, '=') != NULL, row->value != RP_WHATIF_NO_VALUE);
        assert_int_equal(strcspn(row->form, ":") < strcspn(row->form, "="), row->has_subject);
        assert_int_equal(strcspn(row->name, ":=+\","), strlen(row->name));
        assert_non_null(row->apply);
        assert_true(*row->summary && *row->assumes);
        for (k = 0; k < i; k++)
            assert_string_not_equal(row->name, rp_whatifs[k]->name);
    }
}

int test_whatif_grammar(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_taken_apart),
        cmocka_unit_test(malformed_texts_are_refused),
        cmocka_unit_test(rows_are_consistent),
    };

    return cmocka_run_group_tests_name("whatif_grammar", tests, NULL, NULL);
}
