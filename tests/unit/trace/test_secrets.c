/* SPDX-License-Identifier: Apache-2.0 */
/* Texts without their secrets: JSON, what only looks like JSON, and what must stay as it is. */
#include "unit.h"

#include "trace/secrets.h"

static void assert_clean(const char *key, const char *text, const char *want, bool json)
{
    struct rp_secret_words words = {.arena = RP_ARENA_INIT};
    int64_t counts[RP_SECRETS] = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_emit to;

    assert_ok(rp_secrets_learn(&words, key, text, strlen(text), json, &err), &err);
    assert_ok(rp_emit_open_memory(&to, &err), &err);
    if (json)
        rp_secrets_clean_json(&words, key, text, strlen(text), &to, counts);
    else
        rp_secrets_clean(&words, RP_SECRET_IN_VALUE, key, text, strlen(text), &to, counts);
    rp_emit_char(&to, '\0');
    assert_string_equal(to.buffer, want);
    rp_emit_abandon(&to);
    rp_secret_words_release(&words);
}

/* What is too short to be a token of a service stays. */
static void test_services(void **state)
{
    static const char *const prefixes[] = {"ATBB",    "KGAT_",   "bkua_",   "csk-",  "esecret_",
                                           "sha256~", "sm_pat_", "sm_aat_", "tvly-", "vcp_"};
    static const uint8_t least[] = {28, 30, 36, 40, 20, 40, 16, 16, 24, 24};
    char text[120];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof least; i++) {
        int n = snprintf(text, sizeof text, "run %s", prefixes[i]);

        for (size_t k = 0; k < least[i]; k++)
            text[n++] = "g7hx2kq9"[k % 8];
        text[n] = '\0';
        assert_clean("note", text, "run <token>", false);
        text[n - 1] = '\0';
        assert_clean("note", text, text, false);
    }
}

static void test_json(void **state)
{
    UNUSED_STATE(state);
    assert_clean("", "{\"a\": 1.5e3, \"b\": [true, null, NaN, -2], \"c\": \"x\"}",
                 "{\"a\": 1.5e3, \"b\": [true, null, NaN, -2], \"c\": \"x\"}", true);
    assert_clean("", "{\"password\": \"x\", \"token\": 5, \"env\": {\"A\": \"b\"}}",
                 "{\"password\": \"<token>\", \"token\": 5, \"env\": \"<environment>\"}", true);
    /* keys are texts, too; the user whose home a key names is known afterwards */
    assert_clean("", "{\"/home/ann/run.py\": 3, \"by\": \"ann\"}",
                 "{\"<path>/run.py\": 3, \"by\": \"<user>\"}", true);
}

/* A value of JSON is expected, and something else comes. */
static void test_no_json(void **state)
{
    UNUSED_STATE(state);
    assert_clean("note", "rank 3 is at 10.20.30.40:29500", "rank 3 is at <address>", true);
    assert_clean("note", "Authorization: Bearer c2VjcmV0YmVhcmVy", "Authorization: <token>", true);
    assert_clean("note", "00:1b:2c:3d:4e:5f", "<address>", true);
    assert_clean("hostname", "gpu7", "<host>", true);
    assert_clean("count", "17", "17", true);
    assert_clean("note", "", "", true);
}

/* Texts that begin like JSON: lines of logs, values as Python prints them. */
static void test_like_json(void **state)
{
    UNUSED_STATE(state);
    assert_clean("line", "[rank0]: connect to 10.1.2.3:29500", "[rank0]: connect to <address>",
                 false);
    assert_clean("line", "[10.1.2.3, 10.1.2.4]", "[<address>, <address>]", false);
    assert_clean("line", "[1, 2, 3]", "[1, 2, 3]", false);
    assert_clean("line", "{'auth_token': 'abc', 'n': 3}", "{'auth_token': '<token>', 'n': 3}",
                 false);
    assert_clean("line", "{'env': {'A': 'b', 'C': [1]}, 'n': 3}", "{'env': <environment>, 'n': 3}",
                 false);
    assert_clean("line", "{\"a\": \"cut in its mid", "{\"a\": \"cut in its mid", false);
}

/* One text of each kind, as logs, command lines and configurations have them. */
static void test_kinds(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"password = x1", "password = <token>"},
        {"token = 'a b'", "token = '<token>'"},
        {"password=a,b, n=3", "password=<token>, n=3"},
        {"password=a,n=3", "password=<token>,n=3"},
        {"see https://h.example.com/x?a=1&sig=q,w;e now", "see <address> now"},
        {"AccountName=n;AccountKey=Zm9v==;Suffix=x", "AccountName=n;AccountKey=<token>;Suffix=x"},
        {"MYSQL_PWD=x1", "MYSQL_PWD=<token>"},
        {"pwd=x1 auth=y2 session_id=z3", "pwd=<token> auth=<token> session_id=<token>"},
        {"DATABASE_URL=x1", "DATABASE_URL=<token>"},
        {"train --wandb-key x1 --n 3", "train --wandb-key <token> --n 3"},
        {"export SIGNING_KEY=x1", "export SIGNING_KEY=<token>"},
        {"mysql -p x1 db", "mysql -p <token> db"},
        {"curl -u a:b h", "curl -u <token> h"},
        {"curl -ua:b h", "curl -u<token> h"},
        {"mysql -px1 db", "mysql -p<token> db"},
        {"redis-cli -a x1", "redis-cli -a <token>"},
        {"ldapsearch -D cn=a -w x1", "ldapsearch -D cn=a -w <token>"},
        {"mysql -px1", "mysql -p<token>"},
        {"(mysql -px1) x", "(mysql -p<token>) x"},
        {"7z x -px1 a.7z", "7z x -p<token> a.7z"},
        {"smtp_pass: x1", "smtp_pass: <token>"},
        {"forward_pass: x1", "forward_pass: x1"},
        {"of SK0f87f17f8499ff30499a90ebb4108e36", "of <identifier>"},
        {"bot 6611412018:AAAgDAeoAb8KIsPgRGu7x8eDygkXphNIgfP x", "bot <token> x"},
        {"6611412018:ABC", "6611412018:ABC"},
        {"Zp08Q~Q162dNFzwjj1pFycgkzgWTs56mYZWuERE3", "<token>"},
        {"LTAIQKgsFcSqaDjhVf7puxp9", "<token>"},
        {"--pass x1 --n 3", "--pass <token> --n 3"},
        {"access-key=x1", "access-key=<token>"},
        {"api key: x1", "api key: <token>"},
        {"GET x?sig=x1&se=2", "GET x?sig=<token>&se=2"},
        {"X-Amz-Signature=x1&a=b", "X-Amz-Signature=<token>&a=b"},
        {"Authorization: token x1", "Authorization: <token>"},
        {"curl -H 'Cookie: a=b; c=d' h", "curl -H 'Cookie: <token>' h"},
        {"os.environ['API_KEY'] = 'x1'", "os.environ['API_KEY'] = '<token>'"},
        {"credentials: x1", "credentials: <token>"},
        {"glsa_0123456789abcdefABCDEF0123456789", "<token>"},
        {"xai-0123456789abcdefABCDEF0123456789", "<token>"},
        {"A3TX0123456789ABCDEF", "<token>"},
        {"key 0123456789abcdef0123456789abcdef", "key <identifier>"},
        {"key wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEK1", "key <identifier>"},
        {"key cw_0x689RpI-jtRR7oE8h4eQsKImvJapLeSbXpwF4e4=", "key <identifier>"},
        /* what is none */
        {"ssh -p 2222 host", "ssh -p 2222 host"},
        {"mkdir -p out", "mkdir -p out"},
        {"docker run -p 80:80 x", "docker run -p 80:80 x"},
        {"python -u train.py", "python -u train.py"},
        {"key=3 monkey=x1", "key=3 monkey=x1"},
        {"pass: forward", "pass: forward"},
        {"gcc -pthread x", "gcc -pthread x"},
        {"signature=serving_default", "signature=serving_default"},
        {"_ZN3c104cuda6KernIfLi4EiEvT0_PT_S2_S3_NS_8Tag7E",
         "_ZN3c104cuda6KernIfLi4EiEvT0_PT_S2_S3_NS_8Tag7E"},
        {"0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcde"},
        {"TransformerLM/Block0/MultiHeadAttention3/Dense1",
         "TransformerLM/Block0/MultiHeadAttention3/Dense1"},
        {"Layer0/Attn1/Norm2/Layer3/Attn4/Norm5/Mlp6",
         "Layer0/Attn1/Norm2/Layer3/Attn4/Norm5/Mlp6"},
        {"Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0",
         "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0"},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_clean("note", cases[i].text, cases[i].want, false);
}

int test_secrets(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),    cmocka_unit_test(test_services),
        cmocka_unit_test(test_no_json), cmocka_unit_test(test_like_json),
        cmocka_unit_test(test_kinds),
    };

    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
