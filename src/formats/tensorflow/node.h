/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions that look into nodes of TensorFlow graphs (NodeDef), and that write them. */
#include "abi/proto/tensorflow.h"
#include "io/proto.h"
#include "io/proto_write.h"

/* The AttrValue of an attribute; empty if the node does not have it. */
struct rp_bytes rp_tf_node_attr(struct rp_bytes node, const char *key);

/* A node of a GraphDef begins with its name and operation; inputs and attributes follow, then
   rp_proto_end. */
size_t rp_tf_begin_node(struct rp_proto_writer *w, const char *name, const char *op);

/* An attribute whose value is written between begin and end, by the fields of AttrValue. */
struct rp_tf_open_attr {
    size_t entry, value;
};
struct rp_tf_open_attr rp_tf_begin_attr(struct rp_proto_writer *w, const char *key);
void rp_tf_end_attr(struct rp_proto_writer *w, struct rp_tf_open_attr attr);

/* These write attributes of one field of AttrValue. */
void rp_tf_put_attr_bytes(struct rp_proto_writer *w, const char *key, uint32_t field,
                          const void *bytes, size_t n);
void rp_tf_put_attr_type(struct rp_proto_writer *w, const char *key, uint64_t type);
