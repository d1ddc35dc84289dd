/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_TENSORFLOW_SCHEMA_H
#define RP_FORMATS_TENSORFLOW_SCHEMA_H
/* Messages of TensorFlow. */
#include "formats/textproto.h"

extern const struct rp_schema rp_schema_tf_graph;      /* GraphDef */
extern const struct rp_schema rp_schema_tf_attr_value; /* AttrValue */

#endif
