/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the CompileOptionsProto that tells PJRT how to compile a program: how many replicas and
 * partitions on which devices, whether XLA's passes over the module are to run, how arguments come.
 * Empty options make XLA end the process instead of returning an error, so the options made here
 * are never empty.
 */
#include "exec/pjrt/client.h"

#include "abi/proto/hlo.h"
#include "io/proto.h"
#include "io/proto_write.h"

#include <string.h>
#include <strings.h>

/* Fields of CompileOptionsProto and ExecutableBuildOptionsProto. */
enum { COMPILE_TUPLED = 2, COMPILE_BUILD = 3, COMPILE_OVERRIDES = 7 };
enum { OVERRIDE_KEY = 1, OVERRIDE_VALUE = 2, VALUE_TEXT = 1, VALUE_BOOL = 2 };
enum {
    BUILD_DEBUG_OPTIONS = 3,
    BUILD_REPLICAS = 4,
    BUILD_PARTITIONS = 5,
    BUILD_SPMD = 6,
    BUILD_ASSIGNMENT = 9,
    BUILD_BACKEND_ONLY = 11,
    BUILD_SHARDY = 19
};

void rp_pjrt_put_options(const struct rp_pjrt_source *source, struct rp_proto_writer *to)
{
    unsigned replicas = source->replicas ? source->replicas : 1;
    unsigned partitions = source->partitions ? source->partitions : 1;

    if (source->tupled)
        rp_proto_put_varint(to, COMPILE_TUPLED, 1);
    size_t build = rp_proto_begin(to, COMPILE_BUILD);
    rp_proto_put_varint(to, BUILD_REPLICAS, replicas);
    rp_proto_put_varint(to, BUILD_PARTITIONS, partitions);
    if (partitions > 1 && !source->optimized)
        rp_proto_put_varint(to, BUILD_SPMD, 1);
    if (replicas > 1 || partitions > 1) {
        /* The order of devices: partition p of replica r is device r * partitions + p. */
        size_t assignment = rp_proto_begin(to, BUILD_ASSIGNMENT);

        rp_proto_put_varint(to, RP_HLO_DEVICE_ASSIGNMENT_REPLICA_COUNT, replicas);
        rp_proto_put_varint(to, RP_HLO_DEVICE_ASSIGNMENT_COMPUTATION_COUNT, partitions);
        for (unsigned p = 0; p < partitions; p++) {
            size_t devices = rp_proto_begin(to, RP_HLO_DEVICE_ASSIGNMENT_COMPUTATION_DEVICES);
            size_t ids = rp_proto_begin(to, RP_HLO_COMPUTATION_DEVICE_REPLICA_DEVICE_IDS);
            for (unsigned r = 0; r < replicas; r++)
                rp_proto_add_varint(to, (uint64_t)r * partitions + p);
            rp_proto_end(to, ids);
            rp_proto_end(to, devices);
        }
        rp_proto_end(to, assignment);
    }
    if (source->optimized)
        rp_proto_put_varint(to, BUILD_BACKEND_ONLY, 1);
    if (source->shardy)
        rp_proto_put_varint(to, BUILD_SHARDY, 1);
    rp_proto_end(to, build);
}

/* Puts the value as a text, which XLA converts to the type of the flag, except for booleans, which
   it does not. */
enum rp_code rp_pjrt_put_flag(const char *text, struct rp_proto_writer *to, struct rp_err *err)
{
    const char *name = strncmp(text, "--", 2) == 0 ? text + 2 : text, *equals = strchr(name, '=');

    if (!equals || equals == name)
        return rp_err_set(err, RP_USAGE,
                          "an XLA flag is NAME=VALUE, such as xla_dump_to=/tmp/x, not '%s'", text);
    size_t entry = rp_proto_begin(to, COMPILE_OVERRIDES);
    rp_proto_put_bytes(to, OVERRIDE_KEY, name, (size_t)(equals - name));
    size_t value = rp_proto_begin(to, OVERRIDE_VALUE);
    if (!strcasecmp(equals + 1, "true") || !strcasecmp(equals + 1, "false"))
        rp_proto_put_varint(to, VALUE_BOOL, !strcasecmp(equals + 1, "true"));
    else
        rp_proto_put_text(to, VALUE_TEXT, equals + 1);
    rp_proto_end(to, value);
    rp_proto_end(to, entry);
    return RP_OK;
}

/* Copies the fields of a message except one; if `inner` is not 0, that field is a message in which
   the field is left out instead. */
static enum rp_code copy_without(struct rp_proto_cursor c, uint32_t inner, uint32_t without,
                                 struct rp_proto_writer *to, struct rp_err *err)
{
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        if (inner && item.number == inner && item.wire == RP_WIRE_BYTES) {
            size_t begun = rp_proto_begin(to, inner);
            RP_TRY(copy_without(rp_proto_enter(&c, &item), 0, without, to, err));
            rp_proto_end(to, begun);
        } else if (inner || item.number != without) {
            rp_proto_add_bytes(to, item.begin, (size_t)(c.at - item.begin));
        }
    }
    return rp_proto_finish(&c, err);
}

enum rp_code rp_pjrt_strip_options(const void *bytes, size_t n, struct rp_proto_writer *to,
                                   struct rp_err *err)
{
    enum rp_code code =
        copy_without(rp_proto_cursor(bytes, n, 0, 4), COMPILE_BUILD, BUILD_DEBUG_OPTIONS, to, err);

    return code == RP_OK ? code : rp_err_prefix(err, code, "the compile options");
}
