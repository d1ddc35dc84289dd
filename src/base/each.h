/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Releases several variables in one way, up to eight:

       RP_EACH(rp_vec_release, &r->nodes, &r->edges, &r->stack); */
#define RP_EACH(release, ...)                                                            \
    RP_EACH_OF_(__VA_ARGS__, RP_EACH_8_, RP_EACH_7_, RP_EACH_6_, RP_EACH_5_, RP_EACH_4_, \
                RP_EACH_3_, RP_EACH_2_, RP_EACH_1_, 0)                                   \
    (release, __VA_ARGS__)
#define RP_EACH_OF_(a, b, c, d, e, f, g, h, which, ...) which
#define RP_EACH_1_(f, a)                                f(a)
#define RP_EACH_2_(f, a, ...)                           f(a), RP_EACH_1_(f, __VA_ARGS__)
#define RP_EACH_3_(f, a, ...)                           f(a), RP_EACH_2_(f, __VA_ARGS__)
#define RP_EACH_4_(f, a, ...)                           f(a), RP_EACH_3_(f, __VA_ARGS__)
#define RP_EACH_5_(f, a, ...)                           f(a), RP_EACH_4_(f, __VA_ARGS__)
#define RP_EACH_6_(f, a, ...)                           f(a), RP_EACH_5_(f, __VA_ARGS__)
#define RP_EACH_7_(f, a, ...)                           f(a), RP_EACH_6_(f, __VA_ARGS__)
#define RP_EACH_8_(f, a, ...)                           f(a), RP_EACH_7_(f, __VA_ARGS__)
