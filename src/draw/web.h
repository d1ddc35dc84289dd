/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files of web/, which the build embeds in the program. Pages are written from them: one file
 * with style, script and data inside, which needs nothing from elsewhere.
 */
#include "io/embedded.h"
#include "io/output.h"

#include <reprise/result.h>

extern const struct rp_embedded rp_web_report_html[], rp_web_report_css[], rp_web_report_js[];
extern const struct rp_embedded rp_web_flame_html[], rp_web_flame_css[], rp_web_flame_js[];
extern const struct rp_embedded rp_web_graph_html[], rp_web_graph_css[], rp_web_graph_js[];
extern const struct rp_embedded rp_web_view_html[], rp_web_view_css[], rp_web_view_js[];
extern const struct rp_embedded rp_web_answer_html[], rp_web_answer_js[];

/* A page: its frame is text in which "<!--name-->" stands for a part. Parts are "css", "js",
   "data", "title" and the scripts that pages share ("common", "tables", "layers"). */
struct rp_web_page {
    const struct rp_embedded *frame, *css, *js;
    void (*put_data)(struct rp_out *to, void *user);
    void (*put_title)(struct rp_out *to, void *user); /* NULL if the frame has no title */
    void *user;
};
enum rp_code rp_web_put_page(struct rp_out *to, const struct rp_web_page *page, struct rp_err *err);

/*
 * A record by its description, for the script of a page. A record or a list of records carries its
 * fields, so that a page knows titles, units and meanings:
 *
 *     {"fields": [["total_ns", "total", "ns", "sum of its durations", flags], …], "row": […]}
 *     {"fields": […], "rows": [[…], …]}
 *
 * wanted tells which fields are written (NULL for all).
 */
void rp_web_record(struct rp_out *to, const struct rp_type *type, const void *record,
                   bool (*wanted)(const struct rp_field *field));

/* Writes "key":["…","…"] for a page's data. */
void rp_web_put_texts(struct rp_out *to, const char *key, const char *const *texts, size_t n);

/* Writes an answer as a page of its own: its sentences, its tables, and a picture that `draw`
   writes as an SVG document (may be NULL). */
struct rp_result;
struct rp_web_answer {
    const struct rp_result *result;
    const char *name;     /* "memory" */
    const char *left_out; /* a field that the picture shows better, or NULL */
    void (*draw)(void *user, struct rp_out *to);
    void *user;
    const char *svg; /* for answer_page.c */
    size_t nsvg;
};
enum rp_code rp_web_write_answer(const struct rp_web_answer *answer, const char *path,
                                 struct rp_err *err);

/* Writes the data of a page as base64 of gzip, which its script unpacks (common.unpacked); little
   data is written as it is. */
enum rp_code rp_web_put_packed(struct rp_out *to, const char *json, size_t n, struct rp_err *err);

/* Bytes as base64 in quotes: numbers are appended one by one, with 7 bits per byte, lowest
   first. */
struct rp_web_bytes {
    struct rp_out *to;
    unsigned held;
    int bits;
};
void rp_web_bytes_begin(struct rp_web_bytes *bytes, struct rp_out *to);
void rp_web_bytes_number(struct rp_web_bytes *bytes, uint64_t number);
void rp_web_bytes_end(struct rp_web_bytes *bytes);
