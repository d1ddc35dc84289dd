/* SPDX-License-Identifier: Apache-2.0 */
/* The list of words for the direction of a copy; letters are compared without case. */
#include "base/copies.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *word;
    enum rp_copy_way way;
} words[] = {
    {"HtoD", RP_COPY_TO_DEVICE}, /* CUPTI, Kineto */
    {"DtoH", RP_COPY_TO_HOST},         {"DtoD", RP_COPY_INSIDE},
    {"PtoP", RP_COPY_BETWEEN},         {"H2D", RP_COPY_TO_DEVICE}, /* XLA */
    {"D2H", RP_COPY_TO_HOST},          {"D2D", RP_COPY_INSIDE},
    {"P2P", RP_COPY_BETWEEN},          {"HostToDevice", RP_COPY_TO_DEVICE}, /* ROCm */
    {"DeviceToHost", RP_COPY_TO_HOST}, {"DeviceToDevice", RP_COPY_INSIDE},
};

enum rp_copy_way rp_copy_way(const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(name, words[i].word))
            return words[i].way;
    return RP_COPY_UNKNOWN;
}
