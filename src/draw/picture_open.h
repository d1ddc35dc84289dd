/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Opens some groups of a picture: rows and columns around them are stretched. */
#include "draw/picture.h"

enum { RP_OPEN_PAD = 14, RP_OPEN_TITLE = 28 };

struct rp_stretch { /* where columns of the layout were and where they are, sorted by x */
    size_t n;
    float *from, *to;
};

struct rp_opened {        /* an open group; places are inside it */
    float *x, *y, *w, *h; /* of its children */
    float *row_y, *row_h;
    struct rp_stretch stretch;
    float left, inner; /* the width of the tracks to the left, and that of the boxes */
    float width, height;
};

/* Returns where a column of the layout is now. */
float rp_stretch_at(const struct rp_stretch *s, float x);

/* Opens groups from the root of the entry until there are `boxes`; stacks of layers stay closed.
   open has an entry per child, operations then groups, and is in the arena. */
enum rp_code rp_picture_choose(const struct rp_picture *picture, uint32_t root, uint32_t boxes,
                               struct rp_arena *arena, bool **open, struct rp_err *err);

/* Finds the places of all groups that are open, below the root; in the arena. */
enum rp_code rp_picture_open(const struct rp_picture *picture, uint32_t root, const bool *open,
                             struct rp_arena *arena, struct rp_opened **out, struct rp_err *err);
