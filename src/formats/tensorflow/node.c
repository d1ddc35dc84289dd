/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a node are a map: a list of entries, which is searched in its order. */
#include "formats/tensorflow/node.h"

#include <string.h>

struct rp_bytes rp_tf_node_attr(struct rp_bytes node, const char *key)
{
    struct rp_proto_cursor c = rp_proto_cursor(node.at, node.n, 0, 1);
    size_t n = strlen(key);
    struct rp_proto_item it;

    while (rp_proto_next_bytes(&c, RP_TF_NODE_ATTR, &it)) {
        struct rp_bytes name = rp_proto_find(it.bytes, RP_TF_ATTR_ENTRY_KEY);

        if (name.n == n && !memcmp(name.at, key, n))
            return rp_proto_find(it.bytes, RP_TF_ATTR_ENTRY_VALUE);
    }
    return (struct rp_bytes){(const uint8_t *)"", 0};
}

size_t rp_tf_begin_node(struct rp_proto_writer *w, const char *name, const char *op)
{
    size_t node = rp_proto_begin(w, RP_TF_GRAPH_NODE);

    rp_proto_put_text(w, RP_TF_NODE_NAME, name);
    rp_proto_put_text(w, RP_TF_NODE_OP, op);
    return node;
}

struct rp_tf_open_attr rp_tf_begin_attr(struct rp_proto_writer *w, const char *key)
{
    struct rp_tf_open_attr attr;

    attr.entry = rp_proto_begin(w, RP_TF_NODE_ATTR);
    rp_proto_put_text(w, RP_TF_ATTR_ENTRY_KEY, key);
    attr.value = rp_proto_begin(w, RP_TF_ATTR_ENTRY_VALUE);
    return attr;
}

void rp_tf_end_attr(struct rp_proto_writer *w, struct rp_tf_open_attr attr)
{
    rp_proto_end(w, attr.value);
    rp_proto_end(w, attr.entry);
}

void rp_tf_put_attr_bytes(struct rp_proto_writer *w, const char *key, uint32_t field,
                          const void *bytes, size_t n)
{
    struct rp_tf_open_attr attr = rp_tf_begin_attr(w, key);

    rp_proto_put_bytes(w, field, bytes, n);
    rp_tf_end_attr(w, attr);
}

void rp_tf_put_attr_type(struct rp_proto_writer *w, const char *key, uint64_t type)
{
    struct rp_tf_open_attr attr = rp_tf_begin_attr(w, key);

    rp_proto_put_varint(w, RP_TF_ATTR_TYPE, type);
    rp_tf_end_attr(w, attr);
}
