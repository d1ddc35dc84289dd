/* SPDX-License-Identifier: Apache-2.0 */
/* A table of parts of names, compared without case; callers ask once for each string. */
#include "facts/host/signs.h"
#include "trace/device_calls.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *part;
    uint16_t sign;
} signs[] = {
    {"dataload", RP_SIGN_DATA},
    {"data_load", RP_SIGN_DATA},
    {"iteratorgetnext", RP_SIGN_DATA},
    {"tf.data ", RP_SIGN_DATA}, /* finish/input.c */
    {"synchronize", RP_SIGN_BLOCKS},
    {"gloo:", RP_SIGN_RANKS},
    {"cudamalloc", RP_SIGN_ALLOCATES},
    {"cudafree", RP_SIGN_ALLOCATES},
    {"hipmalloc", RP_SIGN_ALLOCATES},
    {"hipfree", RP_SIGN_ALLOCATES},
    {"cudahostalloc", RP_SIGN_ALLOCATES},
    {"profilerstep", RP_SIGN_STEP},
    {"pytorch profiler", RP_SIGN_STEP}, /* a span around the whole recording */
    {"block_until_ready", RP_SIGN_BLOCKS},
    {"try_to_block", RP_SIGN_BLOCKS},
    {"buffersequencingevent", RP_SIGN_BLOCKS}, /* in it JAX waits for the device */
    {"block_until_ready", RP_SIGN_HANDS_OVER}, /* JAX launches in its own threads */
    {"try_to_block", RP_SIGN_HANDS_OVER},
    {"gc.collect", RP_SIGN_GARBAGE},
    {"gc_collect", RP_SIGN_GARBAGE},
    {"cuinit", RP_SIGN_STARTS_UP},
    {"hipinit", RP_SIGN_STARTS_UP},
    {"primaryctx", RP_SIGN_STARTS_UP},
    {"ctxcreate", RP_SIGN_STARTS_UP},
    {"streamcreate", RP_SIGN_STARTS_UP},
    {"moduleload", RP_SIGN_STARTS_UP},
    {"libraryload", RP_SIGN_STARTS_UP},
    {"modulegetfunction", RP_SIGN_STARTS_UP}, /* code is loaded when it is first needed */
    {"librarygetkernel", RP_SIGN_STARTS_UP},
    {"cublascreate", RP_SIGN_STARTS_UP},
    {"cudnncreate", RP_SIGN_STARTS_UP},
    {"warmup", RP_SIGN_WARMS_UP},
    {"warm_up", RP_SIGN_WARMS_UP},
    {"warm-up", RP_SIGN_WARMS_UP},
    {"method run_backward", RP_SIGN_HANDS_OVER}, /* threads of the engine launch */
    {"method collect", RP_SIGN_GARBAGE},         /* <built-in method collect of module object> */
};

/* Functions of MPI in their exact spelling; the first row that fits counts. */
static const struct {
    enum rp_named how;
    const char *text;
    uint16_t sign;
} ranks[] = {{RP_NAMED_IS, "MPI_Init", 0}, /* the other ranks are not there yet */
             {RP_NAMED_IS, "MPI_Init_thread", 0},
             {RP_NAMED_BEGINS, "MPI_", RP_SIGN_RANKS}};

/* A name is searched for many words, so it is converted to small letters, which is several times as
   fast. NULL if it is longer than the buffer. */
enum { SMALL_BYTES = 4096 };

static const char *in_small_letters(const char *name, char small[SMALL_BYTES])
{
    size_t n = strnlen(name, SMALL_BYTES);

    if (n == SMALL_BYTES)
        return NULL;
    for (size_t i = 0; i <= n; i++)
        small[i] = (char)(name[i] + (name[i] >= 'A' && name[i] <= 'Z' ? 'a' - 'A' : 0));
    return small;
}

uint16_t rp_host_signs(const char *name)
{
    char buffer[SMALL_BYTES];
    const char *small = in_small_letters(name, buffer);
    uint16_t found = 0;

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (small ? strstr(small, signs[i].part) : strcasestr(name, signs[i].part))
            found |= signs[i].sign;
    if (rp_device_call_does(name) & RP_DOES_BLOCK)
        found |= RP_SIGN_BLOCKS;
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        if (rp_is_named(name, ranks[i].how, ranks[i].text))
            return found | ranks[i].sign;
    return found;
}

bool rp_host_has_word(const char *text, const char *word)
{
    const char *at = text;

    while ((at = strcasestr(at, word)) != NULL) {
        if (at == text || !isalpha((unsigned char)at[-1]))
            return true;
        at++;
    }
    return false;
}

bool rp_host_prepares_input(const char *text)
{
    char buffer[SMALL_BYTES];
    const char *small = text ? in_small_letters(text, buffer) : NULL;
    static const char *const words[] = {"transforms", "image_",    "images",     "decode_jpeg",
                                        "tokeniz",    "collate",   "augment",    "preprocess",
                                        "dataload",   "dataset",   "load_batch", "load_data",
                                        "next_batch", "get_batch", "read_"};

    for (size_t i = 0; text && i < sizeof words / sizeof words[0]; i++)
        if ((!small || strstr(small, words[i])) && rp_host_has_word(text, words[i]))
            return true;
    return false;
}
