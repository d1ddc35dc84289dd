/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each character is visited once: forms begin where a word begins, and what follows the word tells
 * which forms are possible. Each form is a function that returns how much of the text belongs to
 * it, and which part stays before and after the replacement.
 */
#include "trace/secrets.h"

#include "base/decides.h"
#include "base/decimal.h"
#include "io/escaped.h"
#include "io/json_pull.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHORTEST 3 /* the shortest word that is looked for in other texts */

#define LONG_HEX 32
RP_FACT(LONG_HEX, "digits", "an MD5 sum, the shortest key or checksum in use: 128 bits");
#define WORD_FROM 6
RP_FACT(WORD_FROM, "small letters in a row",
        "more are a word: one in 16 keys of 40 random characters has them");
#define COMMAND 200
RP_LIMIT(COMMAND, "bytes", "a command is named so shortly before its options, or is not found");
#define LONG_BASE64 40
RP_FACT(LONG_BASE64, "characters",
        "the secret keys of AWS, the shortest that have no sign of their own");

const struct rp_secret_row rp_secret_rows[RP_SECRETS] = {
#define SECRET_ROW(name, one, instead, doc) {one, instead, doc},
    RP_SECRET_ROWS(SECRET_ROW)
#undef SECRET_ROW
};

struct scan {
    const struct rp_secret_words *words;
    enum rp_secret_place place;
    bool version; /* set for a version of a program, because four numbers are then not an address */
    const char *text;
    size_t n;
};

struct finding {
    enum rp_secret kind;
    size_t from, end; /* range that is replaced; from may come after the current place */
};

/* ------------------------------------------------------------------ keys */

/* The key without its separators, in lower case: "AWS-Secret_Key" is "awssecretkey". */
static void normalize(const char *key, size_t n, char out[64])
{
    size_t i, used = 0;

    for (i = 0; i < n && used < 63; i++)
        if (isalnum((unsigned char)key[i]))
            out[used++] = (char)tolower((unsigned char)key[i]);
    out[used] = '\0';
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (*word == **list && !strcmp(word, *list))
            return true;
    return false;
}

/* Whether a key names something secret; word is normalized. */
static bool is_secret_key(const char *word)
{
    static const struct {
        char text[20];
        uint8_t n;
    } endings[] = {
#define ENDING(word) {word, sizeof word - 1}
        ENDING("password"),      ENDING("passwd"),
        ENDING("passphrase"),    ENDING("secret"),
        ENDING("token"),         ENDING("apikey"),
        ENDING("secretkey"),     ENDING("privatekey"),
        ENDING("cookie"),        ENDING("credentials"),
        ENDING("credential"),    ENDING("authorization"),
        ENDING("pwd"),           ENDING("passcode"),
        ENDING("sessionid"),     ENDING("sessid"),
        ENDING("accountkey"),    ENDING("sharedkey"),
        ENDING("authkey"),       ENDING("masterkey"),
        ENDING("signingkey"),    ENDING("encryptionkey"),
        ENDING("sshkey"),        ENDING("wandbkey"),
        ENDING("licensekey"),    ENDING("databaseurl"),
        ENDING("databaseuri"),   ENDING("connectionstring"),
        ENDING("redisurl"),      ENDING("mongouri"),
        ENDING("mongodburi"),    ENDING("sentrydsn"),
        ENDING("webhookurl"),    ENDING("servicekey"),
        ENDING("adminkey"),      ENDING("storagekey"),
        ENDING("accesskeyid"),   ENDING("amzsignature"),
        ENDING("googsignature"), ENDING("accesssignature"),
        ENDING("smtppass"),      ENDING("becomepass"),
        ENDING("dbpass"),        ENDING("rootpass"),
        ENDING("userpass"),      ENDING("adminpass"),
        ENDING("auth")
#undef ENDING
    };
    size_t n = strlen(word);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (n >= endings[i].n && word[n - 1] == endings[i].text[endings[i].n - 1] &&
            !memcmp(word + n - endings[i].n, endings[i].text, endings[i].n))
            return true;
    return strstr(word, "accesskey") || strstr(word, "apikey") || strstr(word, "secretkey");
}

/* Whether this is like "--wandb-key" or "SOME_KEY", a key that opens something, whereas "key" alone
   is just a word. */
static bool is_named_key(const struct scan *s, size_t i, size_t n, bool option)
{
    size_t upper = 0;

    if (n < 5 || strncasecmp(s->text + i + n - 3, "key", 3) != 0 ||
        !strchr("-_", s->text[i + n - 4]))
        return false;
    for (size_t k = 0; k < n; k++)
        upper += !islower((unsigned char)s->text[i + k]);
    return option || upper == n;
}

/* What the whole value of a key is; RP_SECRETS if it depends on the value. */
static enum rp_secret kind_of_key(const char *key, size_t n)
{
    static const char *const environment[] = {
        "env", "environ", "environment", "environmentvariables", "envvars", NULL};
    static const char *const host[] = {"host",       "hostname",    "nodename",
                                       "fqdn",       "nodelist",    "computername",
                                       "masteraddr", "machinename", NULL};
    static const char *const user[] = {"user",  "username", "logname", "login",
                                       "email", "author",   NULL};
    static const char *const output[] = {"stdout", "stderr",        "output",         "log",
                                         "logs",   "consoleoutput", "capturedoutput", NULL};
    static const char *const source[] = {"fileinfo", "sourcecode",
                                         NULL}; /* viztracer's file_info */
    static const char *const address[] = {"ip",         "ipaddress", "ipaddr", "mac",
                                          "macaddress", "address",   NULL};
    char word[64];

    normalize(key, n, word);
    if (is_one_of(word, environment))
        return RP_SECRET_ENVIRONMENT;
    if (is_one_of(word, host))
        return RP_SECRET_HOST;
    if (is_one_of(word, user))
        return RP_SECRET_USER;
    if (is_one_of(word, output))
        return RP_SECRET_OUTPUT;
    if (is_one_of(word, source))
        return RP_SECRET_SOURCE;
    if (is_one_of(word, address))
        return RP_SECRET_ADDRESS;
    return is_secret_key(word) ? RP_SECRET_TOKEN : RP_SECRETS;
}

static bool is_version_key(const char *key)
{
    char word[64];

    normalize(key, strlen(key), word);
    return strstr(word, "version") != NULL;
}

/* ------------------------------------------------------------------ forms */

static char at_of(const struct scan *s, size_t i)
{
    return i < s->n ? s->text[i] : '\0';
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* What follows is one of a set of characters. */
static size_t span_of(const struct scan *s, size_t from, const char *also)
{
    size_t i = from;

    while (i < s->n &&
           (isalnum((unsigned char)s->text[i]) || (s->text[i] && strchr(also, s->text[i]))))
        i++;
    return i - from;
}

static bool starts(const struct scan *s, size_t i, const char *prefix)
{
    size_t n = strlen(prefix);

    return i <= s->n && s->n - i >= n && !memcmp(s->text + i, prefix, n);
}

/* Tokens of services begin with characteristic letters, according to their documents and the public
   rules of gitleaks and trufflehog. Sorted by bytes. */
static const struct {
    char prefix[16];
    uint8_t least; /* least number of characters that follow */
} tokens[] = {
    /* clang-format off */
    {"A3-", 30}, {"A3T", 16}, {"ABIA", 16}, {"ABSK", 40}, {"ACCA", 16}, {"AGE-SECRET-KEY-", 16}, {"AIza", 24},
    {"AKIA", 12}, {"AQVN", 30}, {"ASIA", 12}, {"ATATT3", 24}, {"ATBB", 28}, {"ATCTT3", 24}, {"CLOJARS_", 40},
    {"EAAA", 40}, {"EAAC", 40}, {"FLWSECK", 12}, {"GOCSPX-", 16}, {"GR1348941", 16}, {"HRKU-", 20}, {"KGAT_", 30}, {"LTAI", 12},
    {"NRAK-", 20}, {"NRII-", 20}, {"NRJS-", 16}, {"PMAK-", 20}, {"SG.", 20}, {"api_org_", 16},
    {"atlasv1.", 30}, {"bkua_", 36}, {"cio-", 24}, {"co_api_", 16}, {"csk-", 40}, {"dapi", 30}, {"dckr_oat_", 16},
    {"dckr_pat_", 16}, {"doo_v1_", 24}, {"dop_v1_", 24}, {"dor_v1_", 24}, {"dp.pt.", 24},
    {"dp.st.", 24}, {"dt0c01.", 24}, {"duffel_live_", 24}, {"duffel_test_", 24}, {"esecret_", 20}, {"eyJ", 24},
    {"figd_", 24}, {"fio-u-", 24}, {"fw_", 20}, {"gho_", 16}, {"ghp_", 16}, {"ghr_", 16},
    {"ghs_", 16}, {"ghu_", 16}, {"github_pat_", 16}, {"glagent-", 16}, {"glc_", 24},
    {"glcbt-", 16}, {"gldt-", 12}, {"glft-", 16}, {"glimt-", 16}, {"gloas-", 16}, {"glpat-", 12},
    {"glptt-", 16}, {"glrt-", 12}, {"glsa_", 24}, {"glsoat-", 16}, {"gsk_", 20}, {"hf_", 16},
    {"hvb.", 24}, {"hvr.", 24}, {"hvs.", 20}, {"ico-", 32}, {"lin_api_", 20}, {"lsv2_pt_", 20},
    {"lsv2_sk_", 20}, {"nfp_", 24}, {"npm_", 24}, {"ntn_", 24}, {"nvapi-", 16}, {"ops_eyJ", 30},
    {"oy2", 40}, {"p8e-", 24}, {"patkey-", 16}, {"phc_", 30}, {"phx_", 30}, {"pk_live_", 12},
    {"pk_test_", 16}, {"pnu_", 30}, {"pplx-", 24}, {"prefect_", 24}, {"pscale_oauth_", 24}, {"pscale_pw_", 24},
    {"pscale_tkn_", 24}, {"pul-", 32}, {"pypi-", 16}, {"r8_", 24}, {"rdme_", 32}, {"rk_live_", 12},
    {"rk_test_", 16}, {"rubygems_", 24}, {"sbp_", 24}, {"secret_", 32}, {"sgp_", 24}, {"sha256~", 40},
    {"shippo_live_", 24}, {"shippo_test_", 24}, {"shpat_", 20}, {"shpca_", 20}, {"shppa_", 20},
    {"shpss_", 20}, {"sk-", 16}, {"sk_live_", 12}, {"sk_test_", 16}, {"sl.", 120}, {"sm_aat_", 16}, {"sm_pat_", 16}, {"sm_sat_", 16}, {"sntrys_", 24},
    {"sntryu_", 24}, {"sq0atp-", 16}, {"sq0csp-", 24}, {"sqa_", 24}, {"sqp_", 24}, {"squ_", 24},
    {"tfp_", 24}, {"tk-us-", 24}, {"tskey-", 16}, {"tvly-", 24}, {"vca_", 24}, {"vck_", 24}, {"vcp_", 24}, {"vercel_", 20}, {"waka_", 24},
    {"wandb_v1_", 16}, {"whsec_", 24}, {"xai-", 24}, {"xapp-", 12}, {"xkeysib-", 24}, {"xoxa-", 8},
    {"xoxb-", 8}, {"xoxe-", 12}, {"xoxe.", 12}, {"xoxp-", 8}, {"xoxr-", 8}, {"xoxs-", 8},
    {"ya29.", 16}
    /* clang-format on */
};

/* Tokens that no first letters tell: of Azure (abc8Q~...) and of Telegram's bots (12345678:AA...).
 */
static bool find_shaped_token(const struct scan *s, size_t i, struct finding *f)
{
    static const struct {
        const char *sign;
        size_t from, to; /* where it may begin */
        size_t least;
    } rows[] = {{"Q~", 4, 4, 31}, {":AA", 8, 10, 32}};
    size_t n = span_of(s, i, "");

    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        size_t len = strlen(rows[k].sign), at = i + n - (rows[k].sign[0] == 'Q');

        if (n < 5 || at - i < rows[k].from || at - i > rows[k].to || !starts(s, at, rows[k].sign) ||
            !isdigit((unsigned char)s->text[at - 1]))
            continue;
        *f = (struct finding){RP_SECRET_TOKEN, i, at + len + span_of(s, at + len, "_-.~")};
        return f->end - at - len >= rows[k].least;
    }
    return false;
}

static bool find_service_token(const struct scan *s, size_t i, struct finding *f)
{
    size_t low = 0, high = sizeof tokens / sizeof *tokens;

    while (low < high) { /* finds the first with this beginning */
        size_t mid = (low + high) / 2;

        if ((unsigned char)tokens[mid].prefix[0] < (unsigned char)s->text[i])
            low = mid + 1;
        else
            high = mid;
    }
    for (size_t k = low; k < sizeof tokens / sizeof *tokens && tokens[k].prefix[0] == s->text[i];
         k++) {
        if (!starts(s, i, tokens[k].prefix))
            continue;
        size_t len = strlen(tokens[k].prefix);
        size_t more = span_of(s, i + len, "_-.");
        if (more < tokens[k].least)
            continue;
        *f = (struct finding){RP_SECRET_TOKEN, i, i + len + more};
        return true;
    }
    return find_shaped_token(s, i, f);
}

static bool find_key_block(const struct scan *s, size_t i, struct finding *f)
{
    if (s->text[i] != '-' || !starts(s, i, "-----BEGIN "))
        return false;
    const char *key = memmem(s->text + i, s->n - i, "PRIVATE KEY", 11);
    if (!key)
        return false;
    const char *end = memmem(key, (size_t)(s->text + s->n - key), "-----END ", 9);
    end = end ? memmem(end + 9, (size_t)(s->text + s->n - end - 9), "-----", 5) : NULL;
    *f = (struct finding){RP_SECRET_TOKEN, i, end ? (size_t)(end - s->text) + 5 : s->n};
    return true;
}

static bool find_authorization(const struct scan *s, size_t i, struct finding *f)
{
    static const char *const schemes[] = {"Bearer ", "bearer ", "Basic "};

    for (size_t k = 0; k < sizeof schemes / sizeof *schemes; k++) {
        size_t len = strlen(schemes[k]), more;

        if (!starts(s, i, schemes[k]))
            continue;
        more = span_of(s, i + len, "_-.+/=~");
        if (more < 8)
            continue;
        *f = (struct finding){RP_SECRET_TOKEN, i + len, i + len + more};
        return true;
    }
    return false;
}

/* The end of a value that begins at i: the quote, or the next separator. */
static size_t value_end(const struct scan *s, size_t i, char quote)
{
    for (; i < s->n; i++)
        if (quote ? s->text[i] == quote
                  : isspace((unsigned char)s->text[i]) ||
                        (s->text[i] && strchr(",;&\"'|)]}", s->text[i])))
            break;
    return i;
}

/* The position after the string that begins at i. */
static size_t string_end(const char *json, size_t n, size_t i)
{
    for (i++; i < n && json[i] != '"'; i++)
        i += json[i] == '\\';
    return i < n ? i + 1 : n;
}

/* The end of the value that begins at i. */
static size_t json_end(const char *json, size_t n, size_t i)
{
    size_t depth = 0;

    for (; i < n; i++) {
        if (json[i] == '"') {
            i = string_end(json, n, i) - 1;
        } else if (json[i] == '{' || json[i] == '[') {
            depth++;
        } else if (json[i] == '}' || json[i] == ']') {
            if (!depth)
                return i;
            depth--;
        }
        if (!depth && (i + 1 == n || strchr(",}] \t\n\r", json[i + 1])))
            return i + 1;
    }
    return n;
}

/* The end of a secret that begins at i; a comma belongs to it unless another key follows. */
static size_t secret_end(const struct scan *s, size_t i, char quote)
{
    size_t end = value_end(s, i, quote);

    while (!quote && at_of(s, end) == ',' && end + 1 < s->n &&
           !isspace((unsigned char)s->text[end + 1])) {
        size_t next = value_end(s, end + 1, 0);

        if (next == end + 1 || memchr(s->text + end, '=', next - end) ||
            memchr(s->text + end, ':', next - end))
            break;
        end = next;
    }
    return end;
}

/* Whether a word is written shortly before i: the name of the command of an option. */
static bool is_after(const struct scan *s, size_t i, const char *word)
{
    size_t from = i > COMMAND ? i - COMMAND : 0;

    return memmem(s->text + from, i - from, word, strlen(word)) != NULL;
}

/* Finds what options of one letter take: "-p PASSWORD" of clients of databases and registries (of
   MySQL's also "-pPASSWORD"), "-u USER:PASSWORD" of curl, "-a PASSWORD" of Redis. Numbers are
   ports, paths are folders. */
static bool find_short_option(const struct scan *s, size_t i, struct finding *f)
{
    char letter = s->text[i], quote = 0;
    size_t at = i + 1, digits;

    if (i < 2 || s->text[i - 1] != '-' || !isspace((unsigned char)s->text[i - 2]) ||
        !(letter == 'p' || letter == 'u' || (letter == 'a' && is_after(s, i, "redis-cli")) ||
          (letter == 'w' && is_after(s, i, "ldap"))) ||
        (at_of(s, at) != ' ' &&
         !(letter == 'p' && (is_after(s, i, "mysql") || is_after(s, i, "7z"))) &&
         !(letter == 'u' && is_after(s, i, "curl"))))
        return false;
    while (at_of(s, at) == ' ')
        at++;
    if (at_of(s, at) == '"' || at_of(s, at) == '\'')
        quote = s->text[at++];
    *f = (struct finding){RP_SECRET_TOKEN, at, value_end(s, at, quote)};
    for (digits = f->from;
         digits < f->end && (isdigit((unsigned char)s->text[digits]) || s->text[digits] == ':');
         digits++)
        ;
    if (f->from >= f->end || digits == f->end || strchr("-<", s->text[f->from]) ||
        memchr(s->text + f->from, '/', f->end - f->from) ||
        (i >= 7 && !memcmp(s->text + i - 7, "mkdir -", 7)))
        return false;
    return letter != 'u' || memchr(s->text + f->from, ':', f->end - f->from) != NULL;
}

/* A key of which only the last of two words was read: "api key: x", "?sig=x"; or that is one as an
   option: "--pass x". */
static bool is_key_here(const struct scan *s, size_t i, size_t n, bool option)
{
    static const char *const before[] = {"api ", "secret ", "access ", "private "};

    if (n == 4 && option)
        return starts(s, i, "pass");
    if (n != 3 || !i)
        return false;
    for (size_t k = 0; k < sizeof before / sizeof *before; k++)
        if (i >= strlen(before[k]) && !strncasecmp(s->text + i, "key", 3) &&
            !strncasecmp(s->text + i - strlen(before[k]), before[k], strlen(before[k])))
            return true;
    return starts(s, i, "sig") && strchr("?&", s->text[i - 1]);
}

/* Headers whose value has several words: to the end of the line. */
static bool is_header(const struct scan *s, size_t i, size_t n)
{
    return (n >= 6 && !strncasecmp(s->text + i + n - 6, "cookie", 6)) ||
           (n >= 13 && !strncasecmp(s->text + i + n - 13, "authorization", 13));
}

/* Where the value of a key that ends at `at` begins, after one '=' or ':'; 0 if there is none. */
static size_t value_of(const struct scan *s, size_t at, bool option, bool *spaced)
{
    size_t from = at;

    while (at_of(s, at) == ' ' && at - from < 4)
        at++;
    *spaced = option && at > from && at_of(s, at) != '=';
    if (*spaced)
        return at;
    return at_of(s, at) == '=' || (at_of(s, at) == ':' && at - from < 2) ? at + 1 : 0;
}

/* Finds "password=x", "token = 'x y'", "\"apiKey\": \"x\"", "--secret x", "HOSTNAME=x". */
static bool find_assignment(const struct scan *s, size_t i, struct finding *f)
{
    size_t n = span_of(s, i, "_-"), at = i + n, value;
    bool option = i > 0 && s->text[i - 1] == '-', spaced = false, quoted = false;
    char quote = 0;

    if (!n || n > 60 || isdigit((unsigned char)s->text[i]))
        return false;
    if (option && find_short_option(s, i, f))
        return true;
    quoted = at_of(s, at) == '"' || at_of(s, at) == '\'';
    at += quoted;
    at += quoted && at_of(s, at) == ']'; /* environ["TOKEN"] = "x" */
    value = value_of(s, at, option, &spaced);
    if (!value)
        return false;
    enum rp_secret kind = kind_of_key(s->text + i, n);
    if (kind == RP_SECRETS && (is_named_key(s, i, n, option) || is_key_here(s, i, n, option)))
        kind = RP_SECRET_TOKEN;
    if (kind != RP_SECRET_TOKEN && kind != RP_SECRET_HOST && kind != RP_SECRET_USER &&
        (kind == RP_SECRETS || !quoted))
        return false;
    if (kind != RP_SECRET_TOKEN && !spaced && at_of(s, at) == ' ')
        return false;
    /* "/host:CPU" is a device, and "user: defined" in a name is not a user */
    if (kind != RP_SECRET_TOKEN && !spaced && at_of(s, at) == ':' &&
        (s->place == RP_SECRET_IN_NAME || !strchr(" \"'", at_of(s, at + 1))))
        return false;
    for (at = value; at_of(s, at) == ' ' || at_of(s, at) == '='; at++)
        ;
    if (at_of(s, at) == '"' || at_of(s, at) == '\'')
        quote = s->text[at++];
    *f = (struct finding){
        kind, at, kind == RP_SECRET_TOKEN ? secret_end(s, at, quote) : value_end(s, at, quote)};
    if (!quote && (at_of(s, at) == '{' || at_of(s, at) == '['))
        f->end = json_end(s->text, s->n, at);
    else if (!quote && is_header(s, i, n))
        while (f->end < s->n && !strchr("\"'\n", s->text[f->end]))
            f->end++;
    if (f->from >= f->end || s->text[f->from] == '<' || (spaced && s->text[f->from] == '-'))
        return false;
    /* "token: 5" is a count, not a secret */
    for (n = f->from; n < f->end && isdigit((unsigned char)s->text[n]); n++)
        ;
    return n < f->end || (kind == RP_SECRET_TOKEN && s->place == RP_SECRET_IN_VALUE);
}

/* The end of an address, with its query: "https://host/x?a=1&sig=…;b,c". */
static size_t url_end(const struct scan *s, size_t i)
{
    bool query = false;

    for (; i < s->n && !isspace((unsigned char)s->text[i]) && !strchr("\"'|)]}<>", s->text[i]);
         i++) {
        query |= s->text[i] == '?';
        if (!query && strchr(",;&", s->text[i]))
            break;
    }
    return i;
}

/* "tcp://10.0.0.7:29500", "https://ann:pw@host/x", "s3://bucket/key". */
static bool find_url(const struct scan *s, size_t i, struct finding *f)
{
    size_t n = span_of(s, i, "+-.");

    if (!n || n > 20 || !isalpha((unsigned char)s->text[i]) || !starts(s, i + n, "://") ||
        i + n + 3 >= s->n || s->text[i + n + 3] == ' ')
        return false;
    *f = (struct finding){RP_SECRET_ADDRESS, i, url_end(s, i)};
    return true;
}

static size_t digits_of(const struct scan *s, size_t i, long most)
{
    size_t n = 0;
    long value = 0;

    while (n < 5 && isdigit((unsigned char)at_of(s, i + n)))
        value = value * 10 + (s->text[i + n++] - '0');
    return value <= most ? n : 0;
}

static bool find_ipv4(const struct scan *s, size_t i, struct finding *f)
{
    size_t at = i, k, n;

    for (k = 0; k < 4; k++, at += n) {
        if (k && at_of(s, at++) != '.')
            return false;
        n = digits_of(s, at, 255);
        if (!n || n > 3)
            return false;
    }
    if (s->version || is_word(at_of(s, at)) ||
        (at_of(s, at) == '.' && isalnum((unsigned char)at_of(s, at + 1))))
        return false;
    if (at_of(s, at) == ':' && digits_of(s, at + 1, 65535))
        at += 1 + digits_of(s, at + 1, 65535);
    *f = (struct finding){RP_SECRET_ADDRESS, i, at};
    return true;
}

/* IPv6, and MAC: groups of hexadecimal digits between colons. */
static bool find_colon_groups(const struct scan *s, size_t i, struct finding *f)
{
    size_t at = i, groups = 0, colons = 0, pairs = 0, gaps = 0, n;

    for (;;) {
        for (n = 0; n < 5 && isxdigit((unsigned char)at_of(s, at + n)); n++)
            ;
        groups += n > 0;
        pairs += n == 2;
        at += n;
        if (n > 4 || at_of(s, at) != ':')
            break;
        gaps += at_of(s, at + 1) == ':';
        colons++;
        at++;
    }
    if (n > 4 || !n || is_word(at_of(s, at)))
        return false;
    *f = (struct finding){RP_SECRET_ADDRESS, i, at};
    return (groups == 6 && pairs == 6 && colons == 5) || (groups == 8 && colons == 7) ||
           (gaps == 1 && groups >= 3 && groups <= 7 && colons >= 3);
}

static bool find_uuid(const struct scan *s, size_t i, struct finding *f)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    size_t at = i, k, n;

    for (k = 0; k < 5; k++, at += n) {
        if (k && at_of(s, at++) != '-')
            return false;
        for (n = 0; n < groups[k] && isxdigit((unsigned char)at_of(s, at + n)); n++)
            ;
        if (n != groups[k])
            return false;
    }
    *f = (struct finding){RP_SECRET_IDENTIFIER, i, at};
    return !is_word(at_of(s, at));
}

static bool is_base64(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("+/-_", c));
}

/* Finds keys and checksums in base64: long, with letters of both cases and digits mixed as in no
   word. */
static bool find_long_base64(const struct scan *s, size_t i, struct finding *f)
{
    size_t n, digits = 0, turns = 0, upper = 0, signs = 0, run = 0, longest = 0;
    int before = 0;

    if (s->n - i < LONG_BASE64 || starts(s, i, "_Z")) /* a name of C++ */
        return false;
    for (n = LONG_BASE64; n >= 8; n -= 8) /* most texts soon have a space or a colon */
        if (!is_base64(s->text[i + n - 1]))
            return false;
    for (n = 0; is_base64(at_of(s, i + n)); n++) {
        unsigned char c = (unsigned char)s->text[i + n];
        int now = isdigit(c) ? 1 : islower(c) ? 2 : isupper(c) ? 3 : 4;

        digits += now == 1;
        upper += now == 3;
        signs += c == '/' || c == '-' || c == '_';
        turns += now != before;
        run = now != 2 ? 0 : run + 1;
        longest = run > longest ? run : longest;
        before = now;
    }
    *f = (struct finding){RP_SECRET_IDENTIFIER, i, i + n};
    while (f->end < s->n && s->text[f->end] == '=' && f->end < i + n + 2)
        f->end++;
    return n >= LONG_BASE64 && digits && upper && longest && longest <= WORD_FROM &&
           signs * 16 <= n && turns * 5 >= n * 2 && !is_word(at_of(s, f->end));
}

/* Finds keys and checksums: long, with digits and letters. */
static bool find_long_hex(const struct scan *s, size_t i, struct finding *f)
{
    size_t n = starts(s, i, "SK") || starts(s, i, "AC") ? 2 : 0, digits = 0; /* Twilio's */

    for (; isxdigit((unsigned char)at_of(s, i + n)); n++)
        digits += isdigit((unsigned char)s->text[i + n]) != 0;
    *f = (struct finding){RP_SECRET_IDENTIFIER, i, i + n};
    if (n >= LONG_HEX && digits && digits < n && !is_word(at_of(s, i + n)))
        return true;
    return find_long_base64(s, i, f);
}

static bool find_mail(const struct scan *s, size_t i, struct finding *f)
{
    size_t n = span_of(s, i, "._%+-"), host, k;
    bool dot = false;

    if (!n || at_of(s, i + n) != '@')
        return false;
    host = span_of(s, i + n + 1, ".-");
    for (k = 0; k < host; k++)
        dot = dot || s->text[i + n + 1 + k] == '.';
    *f = (struct finding){RP_SECRET_USER, i, i + n + 1 + host};
    return host && (dot || s->place == RP_SECRET_IN_VALUE);
}

/* The slash before the package of a Python library, whose names are public; else the last slash. */
static size_t package_of(const struct scan *s, size_t from, size_t last)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};

    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        const char *at = memmem(s->text + from, last + 1 - from, folders[k], strlen(folders[k]));

        if (at)
            return (size_t)(at - s->text) + strlen(folders[k]) - 1;
    }
    return last;
}

/* Finds the folder of an absolute path, up to its last slash. Names of devices ("/device:GPU:0",
   "/job:worker/task:0") and scopes ("jit(f)/add") are not paths. */
static bool find_path(const struct scan *s, size_t i, struct finding *f)
{
    bool windows = isalpha((unsigned char)s->text[i]) && at_of(s, i + 1) == ':' &&
                   (at_of(s, i + 2) == '\\' || (at_of(s, i + 2) == '/' && at_of(s, i + 3) != '/'));
    bool share = starts(s, i, "\\\\") && is_word(at_of(s, i + 2));
    char slash = windows ? at_of(s, i + 2) : share ? '\\' : '/';
    size_t from = i + (windows ? 2 : share ? 1 : s->text[i] == '~'), end, last, k;

    if (i && !windows && !share && !strchr(" \t\n\"'=:,([{;|", s->text[i - 1]))
        return false;
    if (at_of(s, from) != slash ||
        !(is_word(at_of(s, from + 1)) || strchr("._~@", at_of(s, from + 1))) || !at_of(s, from + 1))
        return false;
    end = value_end(s, from, 0);
    for (k = last = from; k < end && s->text[k] != ':' && s->text[k] != '('; k++)
        last = s->text[k] == slash ? k : last;
    for (k = from; k < end && k <= last; k++)
        if (s->text[k] == ':')
            return false;
    *f = (struct finding){RP_SECRET_PATH, i, package_of(s, from, last) + 1};
    return last > from;
}

static bool find_known(const struct scan *s, size_t i, struct finding *f)
{
    for (size_t k = 0; s->words && k < s->words->list.n; k++) {
        const struct rp_secret_word *w = &s->words->list.at[k];
        size_t n = strlen(w->text);

        if (s->text[i] == w->text[0] && starts(s, i, w->text) && !is_word(at_of(s, i + n))) {
            *f = (struct finding){w->kind, i, i + n};
            return true;
        }
    }
    return false;
}

/* "gpu7.rack2.example.com": at least three parts, the last of which is a domain of machines. */
static bool find_domain(const struct scan *s, size_t i, struct finding *f)
{
    static const char *const ends[] = {"com",  "net",   "org", "io",  "internal", "local", "lan",
                                       "corp", "cloud", "edu", "gov", "dev",      "ai",    NULL};
    size_t n = span_of(s, i, ".-"), k, parts = 1, last = 0;
    char end[16];

    while (n && s->text[i + n - 1] == '.')
        n--;
    for (k = 0; k < n; k++)
        if (s->text[i + k] == '.') {
            parts++;
            last = k + 1;
        }
    if (parts < 3 || n - last >= sizeof end || is_word(at_of(s, i + n)))
        return false;
    memcpy(end, s->text + i + last, n - last);
    end[n - last] = '\0';
    *f = (struct finding){RP_SECRET_HOST, i, i + n};
    return is_one_of(end, ends);
}

/* The forms, in the order in which they are looked for. */
#define FORMS(X)     \
    X(key_block)     \
    X(service_token) \
    X(authorization) \
    X(url)           \
    X(mail)          \
    X(assignment)    \
    X(uuid)          \
    X(colon_groups)  \
    X(ipv4)          \
    X(long_hex)      \
    X(path)          \
    X(known)         \
    X(domain)
enum form {
#define FORM_NUMBER(name) FORM_##name,
    FORMS(FORM_NUMBER)
#undef FORM_NUMBER
};
#define FORM(name) (1u << FORM_##name)

/* Forms that may begin with a character that does not belong to a word. */
static unsigned forms_with_sign(char c)
{
    switch (c) {
    case '-':
        return FORM(key_block) | FORM(mail) | FORM(assignment) | FORM(domain);
    case '.':
        return FORM(mail) | FORM(domain);
    case '%':
    case '+':
        return FORM(mail);
    case ':':
        return FORM(colon_groups);
    case '/':
    case '\\':
    case '~':
        return FORM(path);
    default:
        return 0;
    }
}

/* Forms that may begin with a word, by what follows the word. */
static unsigned forms_before(char next)
{
    switch (next) {
    case '-':
        return FORM(url) | FORM(mail) | FORM(assignment) | FORM(uuid) | FORM(domain);
    case '.':
        return FORM(url) | FORM(mail) | FORM(ipv4) | FORM(domain);
    case '+':
        return FORM(url) | FORM(mail);
    case '%':
    case '@':
        return FORM(mail);
    case ':':
        return FORM(url) | FORM(assignment) | FORM(colon_groups) | FORM(path);
    case ' ':
        return FORM(assignment) | FORM(authorization);
    case '=':
    case '"':
    case '\'':
        return FORM(assignment);
    default:
        return 0;
    }
}

/* *end: the end of the word, inside of which no form begins. */
static bool find_at(const struct scan *s, size_t i, struct finding *f, size_t *end)
{
#define FORM_FUNCTION(name) find_##name,
    static bool (*const forms[])(const struct scan *, size_t,
                                 struct finding *) = {FORMS(FORM_FUNCTION)};
#undef FORM_FUNCTION

    for (*end = i; *end < s->n && is_word(s->text[*end]); (*end)++)
        ;
    unsigned left = *end == i ? forms_with_sign(s->text[i])
                              : forms_before(at_of(s, *end)) | FORM(service_token) | FORM(long_hex);
    if (*end > i && i && is_word(s->text[i - 1]))
        return false;
    if (i && s->text[i - 1] == '-') /* an option of one letter may hold its value */
        left |= FORM(assignment);
    *end += *end == i;
    for (left |= FORM(known); left; left &= left - 1)
        if (forms[__builtin_ctz(left)](s, i, f) && f->from >= i && f->end > f->from &&
            f->end <= s->n)
            return true;
    return false;
}

/* ------------------------------------------------------------------ cleaning */

static void put_instead(struct rp_emit *to, enum rp_secret kind, int64_t counts[RP_SECRETS])
{
    rp_emit_text(to, rp_secret_rows[kind].instead);
    counts[kind]++;
}

/* Whether the text was already cleaned. */
static bool is_clean(const char *text, size_t n, enum rp_secret kind)
{
    size_t len = strlen(rp_secret_rows[kind].instead);

    return !n || (n == len && !memcmp(text, rp_secret_rows[kind].instead, len));
}

static void clean_plain(const struct rp_secret_words *words, enum rp_secret_place place,
                        const char *key, const char *text, size_t n, struct rp_emit *to,
                        int64_t counts[RP_SECRETS])
{
    struct scan s = {words, place, is_version_key(key), text, n};
    enum rp_secret whole = kind_of_key(key, strlen(key));
    struct finding f;
    size_t i, end, done = 0;

    if (whole != RP_SECRETS) {
        if (is_clean(text, n, whole))
            rp_emit_bytes(to, text, n);
        else
            put_instead(to, whole, counts);
        return;
    }
    for (i = 0; i < n; i = end) {
        if (!find_at(&s, i, &f, &end))
            continue;
        rp_emit_bytes(to, text + done, f.from - done);
        put_instead(to, f.kind, counts);
        done = end = f.end;
    }
    rp_emit_bytes(to, text + done, n - done);
}

struct json_walk {
    const struct rp_secret_words *words;
    const char *json;
    size_t n, at;
    struct rp_emit *to;
    int64_t *counts;
    char key[64]; /* of the next value */
};

/* key: the key to which the string belongs; "" if it is a key itself. */
static void clean_string(struct json_walk *w, const char *key, size_t end)
{
    size_t n = end - w->at - 1 - (end - w->at > 1 && w->json[end - 1] == '"');
    char *text = malloc(n + 1);
    struct rp_emit clean;
    int64_t before = 0, after = 0;

    if (!text || rp_emit_open_memory(&clean, NULL) != RP_OK) {
        free(text);
        put_instead(w->to, RP_SECRET_OUTPUT, w->counts); /* better nothing than a secret */
        return;
    }
    n = rp_json_unescape(w->json + w->at + 1, n, text, NULL);
    for (int k = 0; k < RP_SECRETS; k++)
        before += w->counts[k];
    clean_plain(w->words, RP_SECRET_IN_VALUE, key, text, n, &clean, w->counts);
    for (int k = 0; k < RP_SECRETS; k++)
        after += w->counts[k];
    if (after == before)
        rp_emit_bytes(w->to, w->json + w->at, end - w->at);
    else
        rp_emit_escaped(w->to, RP_IN_JSON, clean.buffer, rp_emit_length(&clean));
    rp_emit_abandon(&clean);
    free(text);
}

/* Whether the string that ends here is a key. */
static bool is_key(const struct json_walk *w, size_t end)
{
    while (end < w->n && isspace((unsigned char)w->json[end]))
        end++;
    return end < w->n && w->json[end] == ':';
}

static void keep_key(struct json_walk *w, const char *key, size_t n)
{
    n = n < sizeof w->key ? n : sizeof w->key - 1;
    memcpy(w->key, key, n);
    w->key[n] = '\0';
}

/* A value whose key says what it is is replaced as a whole; numbers of such keys stay. */
static bool replace_value(struct json_walk *w)
{
    enum rp_secret kind = kind_of_key(w->key, strlen(w->key));

    if (kind == RP_SECRETS || !(w->json[w->at] == '{' || w->json[w->at] == '['))
        return false;
    size_t end = json_end(w->json, w->n, w->at);
    if (end - w->at > 2) {
        rp_emit_char(w->to, '"');
        put_instead(w->to, kind, w->counts);
        rp_emit_char(w->to, '"');
    } else {
        rp_emit_bytes(w->to, w->json + w->at, end - w->at);
    }
    w->at = end;
    return true;
}

/* The end of a number or word of JSON, or of what Python writes instead; 0 if it is neither, so
   that the text is not JSON. */
static size_t bare_end(const char *json, size_t n, size_t at)
{
    static const char *const words[] = {"true", "false",    "null",      "NaN",  "None",
                                        "True", "Infinity", "-Infinity", "False"};
    size_t len = 0, k;
    int64_t number;

    while (at + len < n && !strchr(",]} \t\r\n", json[at + len]))
        len++;
    if (!len)
        return 0;
    for (k = 0; k < sizeof words / sizeof *words; k++)
        if (len == strlen(words[k]) && !memcmp(json + at, words[k], len))
            return at + len;
    return rp_decimal_parse(json + at, len, 0, &number) & RP_DECIMAL_INVALID ? 0 : at + len;
}

void rp_secrets_clean_json(const struct rp_secret_words *words, const char *key, const char *json,
                           size_t n, struct rp_emit *to, int64_t counts[RP_SECRETS])
{
    struct json_walk w = {words, json, n, 0, to, counts, ""};

    keep_key(&w, key, strlen(key));
    while (w.at < n) {
        char c = json[w.at];
        size_t end = c == '"' ? string_end(json, n, w.at) : w.at + 1;

        if (c == '"' && is_key(&w, end)) {
            clean_string(&w, "", end);
            keep_key(&w, json + w.at + 1, end - w.at - 2);
        } else if (c == '"') {
            clean_string(&w, w.key, end);
        } else if (replace_value(&w)) {
            continue;
        } else if (c && strchr("{}[],: \t\r\n", c)) {
            rp_emit_char(to, c);
        } else {
            end = bare_end(json, n, w.at);
            if (!end) { /* the rest is not JSON */
                clean_plain(words, RP_SECRET_IN_VALUE, w.key, json + w.at, n - w.at, to, counts);
                return;
            }
            rp_emit_bytes(to, json + w.at, end - w.at);
        }
        w.at = end;
    }
}

void rp_secrets_clean(const struct rp_secret_words *words, enum rp_secret_place place,
                      const char *key, const char *text, size_t n, struct rp_emit *to,
                      int64_t counts[RP_SECRETS])
{
    bool json = place == RP_SECRET_IN_VALUE && n > 1 && (*text == '{' || *text == '[') &&
                kind_of_key(key, strlen(key)) == RP_SECRETS;

    if (json)
        rp_secrets_clean_json(words, key, text, n, to, counts);
    else
        clean_plain(words, place, key, text, n, to, counts);
}

/* ------------------------------------------------------------------ hosts and users */

void rp_secret_words_release(struct rp_secret_words *words)
{
    rp_vec_release(&words->list);
    rp_arena_release(&words->arena);
}

/* Whether a word is not the name of anybody. */
static bool is_common(const char *word)
{
    static const char *const common[] = {
        "root",   "user",   "users", "localhost", "nobody", "admin",  "home",
        "python", "torch",  "main",  "null",      "none",   "true",   "false",
        "local",  "shared", "host",  "default",   "worker", "ubuntu", NULL};

    return is_one_of(word, common);
}

static enum rp_code learn_word(struct rp_secret_words *words, enum rp_secret kind, const char *text,
                               size_t n, struct rp_err *err)
{
    struct rp_secret_word word = {.kind = kind};
    size_t i;

    for (i = 0; i < n && (is_word(text[i]) || strchr(".-", text[i])); i++)
        ;
    if (i < n || n < SHORTEST || n > 255 || isdigit((unsigned char)text[0]))
        return RP_OK;
    word.text = rp_arena_copy(&words->arena, text, n);
    RP_TRY(rp_err_need(word.text, err, "looking for names of hosts and users"));
    for (i = 0; i < words->list.n; i++)
        if (!strcmp(words->list.at[i].text, word.text))
            return RP_OK;
    return is_common(word.text) ? RP_OK : rp_vec_push(&words->list, word, err);
}

/* Learns the user in whose folder a path is. */
static enum rp_code learn_paths(struct rp_secret_words *words, const char *text, size_t n,
                                struct rp_err *err)
{
    static const char *const homes[] = {"/home/", "/Users/", "\\Users\\", "/scratch/users/"};
    size_t k, len;

    for (k = 0; k < sizeof homes / sizeof *homes; k++) {
        const char *at = text, *end = text + n;

        while ((at = memmem(at, (size_t)(end - at), homes[k], strlen(homes[k])))) {
            at += strlen(homes[k]);
            for (len = 0; at + len < end && (is_word(at[len]) || strchr(".-", at[len])) && at[len];
                 len++)
                ;
            RP_TRY(learn_word(words, RP_SECRET_USER, at, len, err));
        }
    }
    return RP_OK;
}

static enum rp_code learn_text(struct rp_secret_words *words, const char *key, const char *text,
                               size_t n, struct rp_err *err)
{
    enum rp_secret kind = kind_of_key(key, strlen(key));
    struct scan s = {NULL, RP_SECRET_IN_VALUE, false, text, n};
    struct finding f;

    if (kind == RP_SECRET_HOST || kind == RP_SECRET_USER)
        RP_TRY(learn_word(words, kind, text, n, err));
    for (size_t i = 0; i < n; i++)
        if ((!i || !is_word(text[i - 1])) && find_assignment(&s, i, &f) &&
            (f.kind == RP_SECRET_HOST || f.kind == RP_SECRET_USER))
            RP_TRY(learn_word(words, f.kind, text + f.from, f.end - f.from, err));
    return learn_paths(words, text, n, err);
}

enum rp_code rp_secrets_learn(struct rp_secret_words *words, const char *key, const char *text,
                              size_t n, bool is_json, struct rp_err *err)
{
    struct json_walk w = {.json = text, .n = n};

    if (!is_json || (n && !strchr("{[\"", *text)))
        return learn_text(words, key, text, n, err);
    keep_key(&w, key, strlen(key));
    for (; w.at < n; w.at++) {
        size_t end = text[w.at] == '"' ? string_end(text, n, w.at) : 0;

        if (!end)
            continue;
        if (is_key(&w, end)) {
            keep_key(&w, text + w.at + 1, end - w.at - 2);
            RP_TRY(learn_paths(words, text + w.at + 1, end - w.at - 2, err));
        } else {
            RP_TRY(learn_text(words, w.key, text + w.at + 1,
                              end - w.at - 1 - (end - w.at > 1 && text[end - 1] == '"'), err));
        }
        w.at = end - 1;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ a whole trace */

enum rp_code rp_secrets_count(const struct rp_trace *t, int64_t counts[RP_SECRETS],
                              struct rp_err *err)
{
    struct rp_emit scratch;

    memset(counts, 0, RP_SECRETS * sizeof *counts);
    RP_TRY(rp_emit_open_memory(&scratch, err));
    for (uint32_t i = 0; i < t->nmeta; i++) {
        rp_emit_reset(&scratch);
        rp_secrets_clean_json(NULL, rp_trace_str(t, t->meta[i].key),
                              rp_trace_str(t, t->meta[i].value),
                              rp_trace_str_len(t, t->meta[i].value), &scratch, counts);
    }
    for (uint32_t i = 0; i < t->str.n; i++) {
        rp_emit_reset(&scratch);
        clean_plain(NULL, RP_SECRET_IN_NAME, "", rp_trace_str(t, i), rp_trace_str_len(t, i),
                    &scratch, counts);
    }
    return rp_emit_close(&scratch, err);
}
