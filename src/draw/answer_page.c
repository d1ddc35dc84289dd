/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the answer of any question as a page: its record by its description, and its picture. */
#include "draw/web.h"
#include "io/escaped.h"
#include "result/result.h"

void rp_web_put_texts(struct rp_out *to, const char *key, const char *const *texts, size_t n)
{
    rp_out_printf(to, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        rp_out_text(to, i ? "," : "");
        rp_out_escaped(to, RP_IN_SCRIPT, texts[i]);
    }
    rp_out_text(to, "],\n");
}

static void put_data(struct rp_out *to, void *user)
{
    const struct rp_web_answer *a = user;
    const struct rp_trust *trust = &a->result->trust;

    rp_out_text(to, "{\"name\":");
    rp_out_escaped(to, RP_IN_SCRIPT, a->name);
    rp_out_text(to, ",\"svg\":");
    if (a->svg)
        rp_out_escaped_bytes(to, RP_IN_SCRIPT, a->svg, a->nsvg);
    else
        rp_out_text(to, "null");
    rp_out_text(to, ",\n");
    rp_web_put_texts(to, "incomplete", trust->incomplete, trust->nincomplete);
    rp_web_put_texts(to, "worth_knowing", trust->notes, trust->nnotes);
    rp_web_put_texts(to, "left_out", &a->left_out, a->left_out != NULL);
    rp_out_text(to, "\"answer\":");
    rp_web_record(to, a->result->type, a->result->root, NULL);
    rp_out_text(to, "}\n");
}

static void put_title(struct rp_out *to, void *user)
{
    const struct rp_web_answer *a = user;

    rp_out_escaped(to, RP_IN_MARKUP, a->name);
}

enum rp_code rp_web_write_answer(const struct rp_web_answer *answer, const char *path,
                                 struct rp_err *err)
{
    struct rp_web_answer a = *answer;
    struct rp_web_page page = {rp_web_answer_html, rp_web_report_css, rp_web_answer_js,
                               put_data,           put_title,         &a};
    struct rp_out *picture = NULL, *to;
    enum rp_code code = RP_OK;

    if (a.draw) {
        RP_TRY(rp_out_open_memory(&picture, err));
        a.draw(a.user, picture);
        code = rp_out_flush(picture, err);
        a.svg = code == RP_OK ? rp_out_borrow_memory(picture, &a.nsvg) : NULL;
    }
    if (code == RP_OK)
        code = rp_out_open(path, &to, err);
    if (code == RP_OK) {
        code = rp_out_end(to, rp_web_put_page(to, &page, err), err);
    }
    if (picture)
        rp_out_abandon(picture);
    return code;
}
