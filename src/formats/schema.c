/* SPDX-License-Identifier: Apache-2.0 */
/* The tables behind schema.h, one expansion of each description. */
#include "formats/schema.h"

#include <stddef.h>

#define RP_SCHEMA_DEF "abi/proto/hlo.def"
#include "formats/schema_tables.def"

#define RP_SCHEMA_DEF "abi/proto/tensorflow.def"
#include "formats/schema_tables.def"

#define RP_SCHEMA_DEF "abi/proto/xla_dump.def"
#include "formats/schema_tables.def"

const struct rp_schema_field *rp_schema_field(const struct rp_schema *schema, uint32_t number)
{
    const struct rp_schema_field *field = schema->fields;

    while (field->type != RP_SCHEMA_END && field->number != number)
        field++;
    return field->type == RP_SCHEMA_END ? NULL : field;
}
