/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Layered layout of a directed graph, with boxes in rows and edges downwards. It takes the time of
 * reading the graph a fixed number of times, whatever its shape, and does not minimise crossings
 * completely. The order in which the nodes are given decides which are left and above, so similar
 * graphs get similar pictures.
 */
#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_layout_edge {
    uint32_t from, to; /* indices of nodes; an edge to an earlier node goes up, on a track */
};

struct rp_layout_graph {
    uint32_t n;
    const float *w, *h;
    size_t nedges;
    const struct rp_layout_edge *edges;
};

/*
 *          | gap |            a row is as high as its highest box
 *   +---+  +-----+     |2     edges over a few rows bend in each of them; those that start at a
 *   | a |  |  b  |-----+      node share their bends. Longer ones run beside the rows: on track
 *   +---+  +-----+     |      0, 2, … to the right, on 1, 3, … to the left, one for each node.
 */
struct rp_layout {
    uint32_t *row;        /* of nodes */
    float *x;             /* of nodes: left side */
    uint32_t nrows;       /* rows[i]: top and height */
    float *row_y, *row_h; /* ... */
    float width, height;  /* the size of the boxes, without tracks */
    uint32_t *bend_begin; /* n + 1; bends of node v: bend_begin[v] … */
    float *bends;         /* x in each of the rows below it */
    uint32_t *track;      /* the tracks of edges; RP_NONE if an edge takes the bends of its node */
    uint32_t tracks_right, tracks_left; /* in use at each side */
};

enum { RP_LAYOUT_GAP_X = 18, RP_LAYOUT_GAP_Y = 34, RP_LAYOUT_TRACK = 9 };

/* Allocates in the arena. Nodes and edges have 32-bit numbers: at most RP_LAYOUT_MOST of each. */
#define RP_LAYOUT_MOST UINT32_C(0x10000000)
enum rp_code rp_layout_run(const struct rp_layout_graph *graph, struct rp_arena *arena,
                           struct rp_layout *out, struct rp_err *err);
