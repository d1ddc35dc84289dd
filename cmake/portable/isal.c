/* SPDX-License-Identifier: Apache-2.0 */
/* The three functions of ISA-L that are used, in a program that loads the library if there is one:
 * beside itself, else the system's. */
#include "io/inflate.h"

#include <dlfcn.h>
#include <isa-l.h>
#include <pthread.h>

static struct {
    void (*init)(struct inflate_state *state);
    int (*inflate)(struct inflate_state *state);
    uint32_t (*crc)(uint32_t crc, const uint8_t *bytes, uint64_t n);
} isal;

static void load(void)
{
    void *library = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return;
    *(void **)&isal.init = dlsym(library, "isal_inflate_init");
    *(void **)&isal.inflate = dlsym(library, "isal_inflate");
    *(void **)&isal.crc = dlsym(library, "crc32_gzip_refl");
}

bool rp_isal_found(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return isal.init && isal.inflate && isal.crc;
}

void isal_inflate_init(struct inflate_state *state)
{
    isal.init(state);
}

int isal_inflate(struct inflate_state *state)
{
    return isal.inflate(state);
}

uint32_t crc32_gzip_refl(uint32_t crc, const uint8_t *bytes, uint64_t n)
{
    return isal.crc(crc, bytes, n);
}
