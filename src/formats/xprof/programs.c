/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each event_metadata of the plane /host:metadata is a program: it has the program's name, and one
 * of its statistics holds the bytes of the HloProto.
 */
#include "formats/xprof/programs.h"

#include "abi/proto/xspace.h"

#define DEPTH 8

static enum rp_code read_program(struct rp_bytes metadata, rp_xplane_program_fn *fn, void *user,
                                 struct rp_err *err)
{
    struct rp_bytes name = rp_proto_find(metadata, RP_XMETA_EVENT_NAME);

    for (size_t i = 0;; i++) {
        struct rp_bytes stat = rp_proto_find_nth(metadata, RP_XMETA_EVENT_STATS, i);
        if (!stat.at)
            return RP_OK;
        struct rp_bytes hlo = rp_proto_find(stat, RP_XSTAT_BYTES_VALUE);
        if (hlo.at && hlo.n)
            return fn(user, name, hlo, err);
    }
}

static enum rp_code read_plane(struct rp_bytes plane, rp_xplane_program_fn *fn, void *user,
                               struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(plane.at, plane.n, 0, DEPTH);
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_XPLANE_EVENT_METADATA, &it)) {
        struct rp_bytes value = rp_proto_find(it.bytes, RP_XENTRY_VALUE);

        if (value.at)
            RP_TRY(read_program(value, fn, user, err));
    }
    return RP_OK;
}

enum rp_code rp_xplane_each_program(struct rp_bytes space, rp_xplane_program_fn *fn, void *user,
                                    struct rp_err *err)
{
    static const char wanted[] = "/host:metadata";
    struct rp_proto_cursor c = rp_proto_cursor(space.at, space.n, 0, DEPTH);
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_XSPACE_PLANES, &it)) {
        struct rp_bytes name = rp_proto_find(it.bytes, RP_XPLANE_NAME);

        if (name.n == sizeof wanted - 1 && !memcmp(name.at, wanted, name.n))
            RP_TRY(read_plane(it.bytes, fn, user, err));
    }
    return RP_OK;
}
