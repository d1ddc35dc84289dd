/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_DUMP_H
#define REPRISE_DUMP_H
/*
 * The folder that `reprise dump run` fills: its size is kept below a limit while programs write
 * into it, and equal files are stored once when they have ended. What to set so that programs write
 * there is an answer of the question "dump" (action=run).
 */
#include <reprise/error.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rp_dump_store;

struct rp_dump_stored {
    size_t struct_size;                    /* sizeof(struct rp_dump_stored): set before the call */
    uint64_t files, bytes;                 /* in the folder now; equal files count once in bytes */
    uint64_t shared_files, shared_bytes;   /* files that are links now, or have repeats no more */
    uint64_t removed_files, removed_bytes; /* because of the limit */
};

/* max_bytes 0: no limit. The folder must exist. */
RP_API enum rp_code rp_dump_store_new(const char *folder, uint64_t max_bytes,
                                      struct rp_dump_store **out, struct rp_err *err);

/* Looks at the folder. Where it is larger than the limit, removes dumps around passes, oldest
   first, then the oldest other files, until it is a tenth smaller; their names are appended to the
   file ".removed". Call it again and again while programs run. */
RP_API enum rp_code rp_dump_store_look(struct rp_dump_store *store, struct rp_err *err);

/* Once no program writes any more: makes equal files hard links of one another, keeps each graph of
   lazy/ltc.txt and lazy/xla.txt once (the file ".steps" beside them says which step had which), and
   removes empty folders. */
RP_API enum rp_code rp_dump_store_share(struct rp_dump_store *store, struct rp_err *err);

RP_API void rp_dump_store_state(const struct rp_dump_store *store, struct rp_dump_stored *out);
RP_API void rp_dump_store_free(struct rp_dump_store *store); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
