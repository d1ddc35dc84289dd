/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_DRAW_WEB_H
#define RP_DRAW_WEB_H
/*
 * The files of web/, which the build makes part of the program, and writing pages from them: one
 * file with style, script and data inside, which needs nothing from elsewhere.
 */
#include "io/output.h"

#include <reprise/result.h>

extern const char rp_web_report_html[], rp_web_report_css[], rp_web_report_js[];
extern const char rp_web_graph_html[], rp_web_graph_css[], rp_web_graph_js[];

/* Writes a frame: text in which "<!--name-->" stands for a part of the page. put is called for each
   of them with its name, which ends at n. */
void rp_web_frame(struct rp_out *to, const char *frame,
                  void (*put)(struct rp_out *to, const char *name, size_t n, void *user),
                  void *user);

/*
 * A record by its description, for the script of a page. A record or a list of records carries its
 * fields, so that a page knows titles, units and meanings:
 *
 *     {"fields": [["total_ns", "total", "ns", "sum of its durations", flags], …], "row": […]}
 *     {"fields": […], "rows": [[…], …]}
 *
 * wanted tells which fields there are (NULL: all).
 */
void rp_web_record(struct rp_out *to, const struct rp_type *type, const void *record,
                   bool (*wanted)(const struct rp_field *field));

/* Bytes as base64, within quotes: numbers of 7 bits a byte, lowest first, are appended one by one.
 */
struct rp_web_bytes {
    struct rp_out *to;
    unsigned held;
    int bits;
};
void rp_web_bytes_begin(struct rp_web_bytes *bytes, struct rp_out *to);
void rp_web_bytes_number(struct rp_web_bytes *bytes, uint64_t number);
void rp_web_bytes_end(struct rp_web_bytes *bytes);

#endif
