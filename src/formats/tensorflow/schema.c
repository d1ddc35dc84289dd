/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of TensorFlow graphs, for textproto.h: names, numbers and types of their fields. */
#include "formats/tensorflow/schema.h"

static const struct rp_schema_word data_types[] = {{"DT_INVALID", 0},
                                                   {"DT_FLOAT", 1},
                                                   {"DT_DOUBLE", 2},
                                                   {"DT_INT32", 3},
                                                   {"DT_UINT8", 4},
                                                   {"DT_INT16", 5},
                                                   {"DT_INT8", 6},
                                                   {"DT_STRING", 7},
                                                   {"DT_COMPLEX64", 8},
                                                   {"DT_INT64", 9},
                                                   {"DT_BOOL", 10},
                                                   {"DT_QINT8", 11},
                                                   {"DT_QUINT8", 12},
                                                   {"DT_QINT32", 13},
                                                   {"DT_BFLOAT16", 14},
                                                   {"DT_QINT16", 15},
                                                   {"DT_QUINT16", 16},
                                                   {"DT_UINT16", 17},
                                                   {"DT_COMPLEX128", 18},
                                                   {"DT_HALF", 19},
                                                   {"DT_RESOURCE", 20},
                                                   {"DT_VARIANT", 21},
                                                   {"DT_UINT32", 22},
                                                   {"DT_UINT64", 23},
                                                   {"DT_FLOAT8_E5M2", 24},
                                                   {"DT_FLOAT8_E4M3FN", 25},
                                                   {"DT_FLOAT8_E4M3FNUZ", 26},
                                                   {"DT_FLOAT8_E4M3B11FNUZ", 27},
                                                   {"DT_FLOAT8_E5M2FNUZ", 28},
                                                   {"DT_INT4", 29},
                                                   {"DT_UINT4", 30},
                                                   {"DT_INT2", 31},
                                                   {"DT_UINT2", 32},
                                                   {"DT_FLOAT_REF", 101},
                                                   {"DT_DOUBLE_REF", 102},
                                                   {"DT_INT32_REF", 103},
                                                   {"DT_UINT8_REF", 104},
                                                   {"DT_INT16_REF", 105},
                                                   {"DT_INT8_REF", 106},
                                                   {"DT_STRING_REF", 107},
                                                   {"DT_COMPLEX64_REF", 108},
                                                   {"DT_INT64_REF", 109},
                                                   {"DT_BOOL_REF", 110},
                                                   {"DT_QINT8_REF", 111},
                                                   {"DT_QUINT8_REF", 112},
                                                   {"DT_QINT32_REF", 113},
                                                   {"DT_BFLOAT16_REF", 114},
                                                   {"DT_QINT16_REF", 115},
                                                   {"DT_QUINT16_REF", 116},
                                                   {"DT_UINT16_REF", 117},
                                                   {"DT_COMPLEX128_REF", 118},
                                                   {"DT_HALF_REF", 119},
                                                   {"DT_RESOURCE_REF", 120},
                                                   {"DT_VARIANT_REF", 121},
                                                   {"DT_UINT32_REF", 122},
                                                   {"DT_UINT64_REF", 123},
                                                   {NULL, 0}};

static const struct rp_schema_word full_types[] = {{"TFT_UNSET", 0},
                                                   {"TFT_VAR", 1},
                                                   {"TFT_ANY", 2},
                                                   {"TFT_PRODUCT", 3},
                                                   {"TFT_NAMED", 4},
                                                   {"TFT_FOR_EACH", 20},
                                                   {"TFT_CALLABLE", 100},
                                                   {"TFT_BOOL", 200},
                                                   {"TFT_UINT8", 201},
                                                   {"TFT_UINT16", 202},
                                                   {"TFT_UINT32", 203},
                                                   {"TFT_UINT64", 204},
                                                   {"TFT_INT8", 205},
                                                   {"TFT_INT16", 206},
                                                   {"TFT_INT32", 207},
                                                   {"TFT_INT64", 208},
                                                   {"TFT_HALF", 209},
                                                   {"TFT_FLOAT", 210},
                                                   {"TFT_DOUBLE", 211},
                                                   {"TFT_COMPLEX64", 212},
                                                   {"TFT_COMPLEX128", 213},
                                                   {"TFT_STRING", 214},
                                                   {"TFT_BFLOAT16", 215},
                                                   {"TFT_TENSOR", 1000},
                                                   {"TFT_ARRAY", 1001},
                                                   {"TFT_OPTIONAL", 1002},
                                                   {"TFT_LITERAL", 1003},
                                                   {"TFT_ENCODED", 1004},
                                                   {"TFT_SHAPE_TENSOR", 1005},
                                                   {"TFT_DATASET", 10102},
                                                   {"TFT_RAGGED", 10103},
                                                   {"TFT_ITERATOR", 10104},
                                                   {"TFT_MUTEX_LOCK", 10202},
                                                   {"TFT_LEGACY_VARIANT", 10203},
                                                   {NULL, 0}};

#define END                                       \
    {                                             \
        NULL, 0, RP_SCHEMA_END, false, NULL, NULL \
    }
static const struct rp_schema tf_dim;
static const struct rp_schema tf_shape;
static const struct rp_schema tf_tensor;
static const struct rp_schema tf_list;
static const struct rp_schema tf_attr_entry;
static const struct rp_schema tf_name_attrs;
static const struct rp_schema tf_debug_info;
static const struct rp_schema tf_full_type;
static const struct rp_schema tf_node;
static const struct rp_schema tf_versions;
static const struct rp_schema tf_arg;
static const struct rp_schema tf_attr_def;
static const struct rp_schema tf_op_def;
static const struct rp_schema tf_string_entry;
static const struct rp_schema tf_id_entry;
static const struct rp_schema tf_arg_attrs;
static const struct rp_schema tf_arg_attr_entry;
static const struct rp_schema tf_function;
static const struct rp_schema tf_gradient;
static const struct rp_schema tf_library;

static const struct rp_schema_field tf_dim_fields[] = {
    {"size", 1, RP_SCHEMA_INT, false, NULL, NULL},
    {"name", 2, RP_SCHEMA_TEXT, false, NULL, NULL},
    END};
static const struct rp_schema tf_dim = {"dim", tf_dim_fields};

static const struct rp_schema_field tf_shape_fields[] = {
    {"dim", 2, RP_SCHEMA_MESSAGE, true, &tf_dim, NULL},
    {"unknown_rank", 3, RP_SCHEMA_BOOL, false, NULL, NULL},
    END};
static const struct rp_schema tf_shape = {"shape", tf_shape_fields};

static const struct rp_schema_field tf_tensor_fields[] = {
    {"dtype", 1, RP_SCHEMA_ENUM, false, NULL, data_types},
    {"tensor_shape", 2, RP_SCHEMA_MESSAGE, false, &tf_shape, NULL},
    {"version_number", 3, RP_SCHEMA_INT, false, NULL, NULL},
    {"tensor_content", 4, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"float_val", 5, RP_SCHEMA_FLOAT, true, NULL, NULL},
    {"double_val", 6, RP_SCHEMA_DOUBLE, true, NULL, NULL},
    {"int_val", 7, RP_SCHEMA_INT, true, NULL, NULL},
    {"string_val", 8, RP_SCHEMA_TEXT, true, NULL, NULL},
    {"scomplex_val", 9, RP_SCHEMA_FLOAT, true, NULL, NULL},
    {"int64_val", 10, RP_SCHEMA_INT, true, NULL, NULL},
    {"bool_val", 11, RP_SCHEMA_BOOL, true, NULL, NULL},
    {"dcomplex_val", 12, RP_SCHEMA_DOUBLE, true, NULL, NULL},
    {"half_val", 13, RP_SCHEMA_INT, true, NULL, NULL},
    {"uint32_val", 16, RP_SCHEMA_INT, true, NULL, NULL},
    {"uint64_val", 17, RP_SCHEMA_INT, true, NULL, NULL},
    {"float8_val", 18, RP_SCHEMA_TEXT, false, NULL, NULL},
    END};
static const struct rp_schema tf_tensor = {"tensor", tf_tensor_fields};

static const struct rp_schema_field tf_list_fields[] = {
    {"s", 2, RP_SCHEMA_TEXT, true, NULL, NULL},
    {"i", 3, RP_SCHEMA_INT, true, NULL, NULL},
    {"f", 4, RP_SCHEMA_FLOAT, true, NULL, NULL},
    {"b", 5, RP_SCHEMA_BOOL, true, NULL, NULL},
    {"type", 6, RP_SCHEMA_ENUM, true, NULL, data_types},
    {"shape", 7, RP_SCHEMA_MESSAGE, true, &tf_shape, NULL},
    {"tensor", 8, RP_SCHEMA_MESSAGE, true, &tf_tensor, NULL},
    {"func", 9, RP_SCHEMA_MESSAGE, true, &tf_name_attrs, NULL},
    END};
static const struct rp_schema tf_list = {"list", tf_list_fields};

static const struct rp_schema_field tf_attr_entry_fields[] = {
    {"key", 1, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"value", 2, RP_SCHEMA_MESSAGE, false, &rp_schema_tf_attr_value, NULL},
    END};
static const struct rp_schema tf_attr_entry = {"attr_entry", tf_attr_entry_fields};

static const struct rp_schema_field tf_name_attrs_fields[] = {
    {"name", 1, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"attr", 2, RP_SCHEMA_MESSAGE, true, &tf_attr_entry, NULL},
    END};
static const struct rp_schema tf_name_attrs = {"name_attrs", tf_name_attrs_fields};

static const struct rp_schema_field tf_attr_value_fields[] = {
    {"list", 1, RP_SCHEMA_MESSAGE, false, &tf_list, NULL},
    {"s", 2, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"i", 3, RP_SCHEMA_INT, false, NULL, NULL},
    {"f", 4, RP_SCHEMA_FLOAT, false, NULL, NULL},
    {"b", 5, RP_SCHEMA_BOOL, false, NULL, NULL},
    {"type", 6, RP_SCHEMA_ENUM, false, NULL, data_types},
    {"shape", 7, RP_SCHEMA_MESSAGE, false, &tf_shape, NULL},
    {"tensor", 8, RP_SCHEMA_MESSAGE, false, &tf_tensor, NULL},
    {"placeholder", 9, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"func", 10, RP_SCHEMA_MESSAGE, false, &tf_name_attrs, NULL},
    END};
const struct rp_schema rp_schema_tf_attr_value = {"attr_value", tf_attr_value_fields};

static const struct rp_schema_field tf_debug_info_fields[] = {
    {"original_node_names", 1, RP_SCHEMA_TEXT, true, NULL, NULL},
    {"original_func_names", 2, RP_SCHEMA_TEXT, true, NULL, NULL},
    END};
static const struct rp_schema tf_debug_info = {"debug_info", tf_debug_info_fields};

static const struct rp_schema_field tf_full_type_fields[] = {
    {"type_id", 1, RP_SCHEMA_ENUM, false, NULL, full_types},
    {"args", 2, RP_SCHEMA_MESSAGE, true, &tf_full_type, NULL},
    {"s", 3, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"i", 4, RP_SCHEMA_INT, false, NULL, NULL},
    END};
static const struct rp_schema tf_full_type = {"full_type", tf_full_type_fields};

static const struct rp_schema_field tf_node_fields[] = {
    {"name", 1, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"op", 2, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"input", 3, RP_SCHEMA_TEXT, true, NULL, NULL},
    {"device", 4, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"attr", 5, RP_SCHEMA_MESSAGE, true, &tf_attr_entry, NULL},
    {"experimental_debug_info", 6, RP_SCHEMA_MESSAGE, false, &tf_debug_info, NULL},
    {"experimental_type", 7, RP_SCHEMA_MESSAGE, false, &tf_full_type, NULL},
    END};
static const struct rp_schema tf_node = {"node", tf_node_fields};

static const struct rp_schema_field tf_versions_fields[] = {
    {"producer", 1, RP_SCHEMA_INT, false, NULL, NULL},
    {"min_consumer", 2, RP_SCHEMA_INT, false, NULL, NULL},
    {"bad_consumers", 3, RP_SCHEMA_INT, true, NULL, NULL},
    END};
static const struct rp_schema tf_versions = {"versions", tf_versions_fields};

static const struct rp_schema_field tf_arg_fields[] = {
    {"name", 1, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"description", 2, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"type", 3, RP_SCHEMA_ENUM, false, NULL, data_types},
    {"type_attr", 4, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"number_attr", 5, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"type_list_attr", 6, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"is_ref", 16, RP_SCHEMA_BOOL, false, NULL, NULL},
    {"experimental_full_type", 17, RP_SCHEMA_MESSAGE, false, &tf_full_type, NULL},
    END};
static const struct rp_schema tf_arg = {"arg", tf_arg_fields};

static const struct rp_schema_field tf_attr_def_fields[] = {
    {"name", 1, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"type", 2, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"default_value", 3, RP_SCHEMA_MESSAGE, false, &rp_schema_tf_attr_value, NULL},
    {"description", 4, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"has_minimum", 5, RP_SCHEMA_BOOL, false, NULL, NULL},
    {"minimum", 6, RP_SCHEMA_INT, false, NULL, NULL},
    {"allowed_values", 7, RP_SCHEMA_MESSAGE, false, &rp_schema_tf_attr_value, NULL},
    END};
static const struct rp_schema tf_attr_def = {"attr_def", tf_attr_def_fields};

static const struct rp_schema_field tf_op_def_fields[] = {
    {"name", 1, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"input_arg", 2, RP_SCHEMA_MESSAGE, true, &tf_arg, NULL},
    {"output_arg", 3, RP_SCHEMA_MESSAGE, true, &tf_arg, NULL},
    {"attr", 4, RP_SCHEMA_MESSAGE, true, &tf_attr_def, NULL},
    {"summary", 5, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"description", 6, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"is_aggregate", 16, RP_SCHEMA_BOOL, false, NULL, NULL},
    {"is_stateful", 17, RP_SCHEMA_BOOL, false, NULL, NULL},
    {"is_commutative", 18, RP_SCHEMA_BOOL, false, NULL, NULL},
    {"allows_uninitialized_input", 19, RP_SCHEMA_BOOL, false, NULL, NULL},
    {"control_output", 20, RP_SCHEMA_TEXT, true, NULL, NULL},
    {"is_distributed_communication", 21, RP_SCHEMA_BOOL, false, NULL, NULL},
    END};
static const struct rp_schema tf_op_def = {"op_def", tf_op_def_fields};

static const struct rp_schema_field tf_string_entry_fields[] = {
    {"key", 1, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"value", 2, RP_SCHEMA_TEXT, false, NULL, NULL},
    END};
static const struct rp_schema tf_string_entry = {"string_entry", tf_string_entry_fields};

static const struct rp_schema_field tf_id_entry_fields[] = {
    {"key", 1, RP_SCHEMA_INT, false, NULL, NULL},
    {"value", 2, RP_SCHEMA_INT, false, NULL, NULL},
    END};
static const struct rp_schema tf_id_entry = {"id_entry", tf_id_entry_fields};

static const struct rp_schema_field tf_arg_attrs_fields[] = {
    {"attr", 1, RP_SCHEMA_MESSAGE, true, &tf_attr_entry, NULL}, END};
static const struct rp_schema tf_arg_attrs = {"arg_attrs", tf_arg_attrs_fields};

static const struct rp_schema_field tf_arg_attr_entry_fields[] = {
    {"key", 1, RP_SCHEMA_INT, false, NULL, NULL},
    {"value", 2, RP_SCHEMA_MESSAGE, false, &tf_arg_attrs, NULL},
    END};
static const struct rp_schema tf_arg_attr_entry = {"arg_attr_entry", tf_arg_attr_entry_fields};

static const struct rp_schema_field tf_function_fields[] = {
    {"signature", 1, RP_SCHEMA_MESSAGE, false, &tf_op_def, NULL},
    {"node_def", 3, RP_SCHEMA_MESSAGE, true, &tf_node, NULL},
    {"ret", 4, RP_SCHEMA_MESSAGE, true, &tf_string_entry, NULL},
    {"attr", 5, RP_SCHEMA_MESSAGE, true, &tf_attr_entry, NULL},
    {"control_ret", 6, RP_SCHEMA_MESSAGE, true, &tf_string_entry, NULL},
    {"arg_attr", 7, RP_SCHEMA_MESSAGE, true, &tf_arg_attr_entry, NULL},
    {"resource_arg_unique_id", 8, RP_SCHEMA_MESSAGE, true, &tf_id_entry, NULL},
    END};
static const struct rp_schema tf_function = {"function", tf_function_fields};

static const struct rp_schema_field tf_gradient_fields[] = {
    {"function_name", 1, RP_SCHEMA_TEXT, false, NULL, NULL},
    {"gradient_func", 2, RP_SCHEMA_TEXT, false, NULL, NULL},
    END};
static const struct rp_schema tf_gradient = {"gradient", tf_gradient_fields};

static const struct rp_schema_field tf_library_fields[] = {
    {"function", 1, RP_SCHEMA_MESSAGE, true, &tf_function, NULL},
    {"gradient", 2, RP_SCHEMA_MESSAGE, true, &tf_gradient, NULL},
    END};
static const struct rp_schema tf_library = {"library", tf_library_fields};

static const struct rp_schema_field tf_graph_fields[] = {
    {"node", 1, RP_SCHEMA_MESSAGE, true, &tf_node, NULL},
    {"library", 2, RP_SCHEMA_MESSAGE, false, &tf_library, NULL},
    {"version", 3, RP_SCHEMA_INT, false, NULL, NULL},
    {"versions", 4, RP_SCHEMA_MESSAGE, false, &tf_versions, NULL},
    END};
const struct rp_schema rp_schema_tf_graph = {"graph", tf_graph_fields};
