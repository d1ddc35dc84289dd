/* SPDX-License-Identifier: Apache-2.0 */
/* Computes sizes of recorded inputs, and the time of a fused chain. */
#include "base/decides.h"
#include "explain/fusions/fusions.h"
#include "sim/model/fusing.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 8
RP_LIMIT(MOST_DEPTH, "lists in lists", "what is deeper has no tensors");

/* Bytes of an element, by PyTorch's names of types; 0: not a tensor. */
static double width_of(const char *type, size_t len)
{
    static const struct {
        const char *name;
        double bytes;
    } types[] = {{"float", 4},
                 {"double", 8},
                 {"c10::Half", 2},
                 {"c10::BFloat16", 2},
                 {"int", 4},
                 {"long int", 8},
                 {"long", 8},
                 {"bool", 1},
                 {"unsigned char", 1},
                 {"signed char", 1},
                 {"short", 2},
                 {"c10::Float8_e4m3fn", 1},
                 {"c10::Float8_e5m2", 1},
                 {"c10::complex<float>", 8}};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == len && !strncmp(type, types[i].name, len))
            return types[i].bytes;
    return 4;
}

/* The i-th text of a list of texts. */
static const char *nth_type(const char *types, size_t nth, size_t *len)
{
    const char *p = types, *end;

    for (; (p = strchr(p, '"')) != NULL; p = end + 1) {
        end = strchr(p + 1, '"');
        if (!end)
            return NULL;
        if (nth-- == 0) {
            *len = (size_t)(end - p - 1);
            return p + 1;
        }
    }
    return NULL;
}

static void add_tensor(struct rp_fusion_tensors *t, double elements, const char *types,
                       size_t input)
{
    size_t len = 0;
    const char *type = types ? nth_type(types, input, &len) : NULL;
    double width = type ? width_of(type, len) : 4;

    if (t->bytes == 0) {
        t->width = width;
        t->first = elements * width;
    }
    t->bytes += elements * width;
    if (elements > t->elements)
        t->elements = elements;
}

/* Inputs are the lists inside the outer list; a list of tensors is a list of such lists. */
struct rp_fusion_tensors rp_fusion_tensors_read(const char *dims, const char *types)
{
    struct rp_fusion_tensors t = {0};
    double elements = 0;
    size_t depth = 0, input = 0;
    const char *p = dims;

    while (*p) {
        if (*p == '[') {
            if (++depth > MOST_DEPTH)
                return (struct rp_fusion_tensors){0};
            elements = 0;
        } else if (*p == ']') {
            if (elements > 0)
                add_tensor(&t, elements, types, input);
            elements = 0;
            depth -= depth > 0;
        } else if (*p == ',' && depth == 1) {
            input++;
        } else if (isdigit((unsigned char)*p)) {
            char *end;
            double n = strtod(p, &end);

            elements = elements > 0 ? elements * n : n;
            p = end;
            continue;
        }
        p++;
    }
    return t;
}

int64_t rp_fused_ns(int64_t longest_ns, double bytes, double bytes_per_ns)
{
    double least = (double)longest_ns * rp_sim_fused_factor(longest_ns);
    double moving = bytes > 0 && bytes_per_ns > 0 ? bytes / bytes_per_ns : 0;

    return (int64_t)(moving > least ? moving : least);
}
