/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of rocprof, version 1: events have no category, and processes say what they are. Their
 * numbers are texts in events and numbers in the names:
 *
 *     "CPU HIP API", "CPU HSA API"   calls          "GPU0", "GPU1", …   kernels
 *     "COPY"                         copies, of all devices, which are on the first one here
 */
#include "formats/chrome/chrome.h"

#include <ctype.h>

static bool is(const char *name, size_t len, const char *word)
{
    return len == strlen(word) && !memcmp(name, word, len);
}

void rp_chrome_note_rocprof(struct rp_chrome *r, const struct rp_chrome_ident *pid,
                            const char *name, size_t len)
{
    if (is(name, len, "CPU HIP API") || is(name, len, "CPU HSA API")) {
        r->facts.signs |= RP_CHROME_ROCPROF;
    } else if (is(name, len, "COPY")) {
        r->rocprof.copies = pid->number;
        r->rocprof.has_copies = true;
    } else if (len > 3 && !memcmp(name, "GPU", 3) && isdigit((unsigned char)name[3]) &&
               !r->rocprof.has_device) {
        r->rocprof.device = pid->number;
        r->rocprof.has_device = true;
    }
}

/* Gives a process whose number is a text the number in its name. */
static void make_number(const struct rp_chrome *r, struct rp_chrome_ident *id)
{
    size_t len;
    const char *s = id->text ? rp_builder_borrow_str(r->builder, id->text, &len) : NULL;

    if (s && rp_chrome_parse_int(s, len, &id->number))
        id->text = 0;
}

enum rp_code rp_chrome_place_rocprof(struct rp_chrome *r, struct rp_chrome_event *e, uint8_t *kind,
                                     struct rp_err *err)
{
    size_t len;
    const char *name = rp_builder_borrow_str(r->builder, e->name, &len);

    make_number(r, &e->pid);
    if (e->phase != 'X')
        return RP_OK;
    if (r->rocprof.has_copies && e->pid.number == r->rocprof.copies) {
        *kind = RP_KIND_MEMCPY;
        if (!r->rocprof.has_device)
            return RP_OK;
        e->pid.number = r->rocprof.device;
        e->tid = (struct rp_chrome_ident){.given = true};
        return rp_chrome_intern(r, "COPY", 4, &e->tid.text, err);
    }
    if (len > 3 && (!memcmp(name, "hip", 3) || !memcmp(name, "hsa", 3)))
        *kind = RP_KIND_RUNTIME;
    else if (r->rocprof.has_device && e->pid.number >= r->rocprof.device)
        *kind = RP_KIND_KERNEL; /* devices are numbered after all other processes */
    return RP_OK;
}
