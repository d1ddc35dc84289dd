/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of HLO modules, for textproto.h: names, numbers and types of their fields. What
 * explains a module only (profiles, recovery tables, buffer assignments) is left out, and so passed
 * over in text.
 */
#include "formats/hlo/schema.h"

/* clang-format off */
#define SCALAR(name, number, type) {name, number, RP_SCHEMA_##type, false, NULL, NULL}
#define LIST(name, number, type) {name, number, RP_SCHEMA_##type, true, NULL, NULL}
#define ENUM(name, number, words) {name, number, RP_SCHEMA_ENUM, false, NULL, words}
#define ENUMS(name, number, words) {name, number, RP_SCHEMA_ENUM, true, NULL, words}
#define ONE(name, number, of) {name, number, RP_SCHEMA_MESSAGE, false, &of, NULL}
#define MANY(name, number, of) {name, number, RP_SCHEMA_MESSAGE, true, &of, NULL}
#define END {NULL, 0, RP_SCHEMA_END, false, NULL, NULL}

static const struct rp_schema_word random_distribution_words[] = {
    {"RNG_INVALID", 0}, {"RNG_UNIFORM", 1}, {"RNG_NORMAL", 2}, {NULL, 0}};

static const struct rp_schema_word fft_type_words[] = {
    {"FFT", 0}, {"IFFT", 1}, {"RFFT", 2}, {"IRFFT", 3}, {NULL, 0}};

static const struct rp_schema_word custom_call_schedule_words[] = {
    {"SCHEDULE_NONE", 0}, {"SCHEDULE_LATEST", 1}, {"SCHEDULE_EARLIEST", 2}, {NULL, 0}};

static const struct rp_schema_word random_algorithm_words[] = {
    {"RNG_DEFAULT", 0}, {"RNG_THREE_FRY", 1}, {"RNG_PHILOX", 2}, {NULL, 0}};

static const struct rp_schema_word padding_type_words[] = {
    {"PADDING_INVALID", 0}, {"PADDING_VALID", 1}, {"PADDING_SAME", 2}, {NULL, 0}};

static const struct rp_schema_word custom_call_api_version_words[] = {
    {"API_VERSION_UNSPECIFIED", 0}, {"API_VERSION_ORIGINAL", 1},
    {"API_VERSION_STATUS_RETURNING", 2}, {"API_VERSION_STATUS_RETURNING_UNIFIED", 3},
    {"API_VERSION_TYPED_FFI", 4}, {NULL, 0}};

static const struct rp_schema_word tri_state_words[] = {
    {"TRI_STATE_UNSPECIFIED", 0}, {"TRI_STATE_TRUE", 1}, {"TRI_STATE_FALSE", 2}, {NULL, 0}};

static const struct rp_schema_word convolution_kind_words[] = {
    {"CONVOLUTION_KIND_UNSET", 0}, {"CONVOLUTION_KIND_FPROP", 1}, {"CONVOLUTION_KIND_DGRAD", 2},
    {"CONVOLUTION_KIND_WGRAD", 3}, {NULL, 0}};

static const struct rp_schema_word primitive_type_words[] = {
    {"PRIMITIVE_TYPE_INVALID", 0}, {"PRED", 1}, {"S1", 30}, {"S2", 26}, {"S4", 21}, {"S8", 2},
    {"S16", 3}, {"S32", 4}, {"S64", 5}, {"U1", 31}, {"U2", 27}, {"U4", 22}, {"U8", 6}, {"U16", 7},
    {"U32", 8}, {"U64", 9}, {"F16", 10}, {"F32", 11}, {"BF16", 16}, {"F64", 12}, {"F8E5M2", 19},
    {"F8E4M3", 28}, {"F8E4M3FN", 20}, {"F8E4M3B11FNUZ", 23}, {"F8E3M4", 29}, {"F8E5M2FNUZ", 24},
    {"F8E4M3FNUZ", 25}, {"F4E2M1FN", 32}, {"F8E8M0FNU", 33}, {"F6E3M2FN", 35}, {"F6E2M3FN", 36},
    {"C64", 15}, {"C128", 18}, {"TUPLE", 13}, {"OPAQUE_TYPE", 14}, {"TOKEN", 17}, {"BUFFER", 34},
    {NULL, 0}};

static const struct rp_schema_word dim_level_type_words[] = {
    {"DIM_DENSE", 0}, {"DIM_COMPRESSED", 1}, {"DIM_SINGLETON", 2}, {"DIM_LOOSE_COMPRESSED", 3},
    {NULL, 0}};

static const struct rp_schema_word profile_type_words[] = {
    {"INVALID", 0}, {"WINDOW", 1}, {"FLAG", 2}, {"INTEGER", 3}, {NULL, 0}};

static const struct rp_schema_word op_sharding_type_words[] = {
    {"REPLICATED", 0}, {"MAXIMAL", 1}, {"TUPLE", 2}, {"OTHER", 3}, {"MANUAL", 4}, {"UNKNOWN", 5},
    {"UNREDUCED", 6}, {NULL, 0}};

static const struct rp_schema_word op_sharding_shard_group_type_words[] = {
    {"AS", 0}, {"LIKE", 1}, {NULL, 0}};

static const struct rp_schema_word named_sharding_proto_reduction_op_proto_words[] = {
    {"SUM", 0}, {"MAX", 1}, {"MIN", 2}, {NULL, 0}};

static const struct rp_schema_word precision_config_precision_words[] = {
    {"DEFAULT", 0}, {"HIGH", 1}, {"HIGHEST", 2}, {NULL, 0}};

static const struct rp_schema_word precision_config_algorithm_words[] = {
    {"ALG_UNSET", 0}, {"ALG_DOT_ANY_F8_ANY_F8_F32", 1},
    {"ALG_DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM", 2}, {"ALG_DOT_F16_F16_F16", 3},
    {"ALG_DOT_F16_F16_F32", 4}, {"ALG_DOT_BF16_BF16_BF16", 5}, {"ALG_DOT_BF16_BF16_F32", 6},
    {"ALG_DOT_BF16_BF16_F32_X3", 7}, {"ALG_DOT_BF16_BF16_F32_X6", 8}, {"ALG_DOT_TF32_TF32_F32", 9},
    {"ALG_DOT_TF32_TF32_F32_X3", 10}, {"ALG_DOT_F32_F32_F32", 11}, {"ALG_DOT_F64_F64_F64", 12},
    {"ALG_DOT_BF16_BF16_F32_X9", 13}, {NULL, 0}};

static const struct rp_schema_word triangular_solve_options_transpose_words[] = {
    {"TRANSPOSE_INVALID", 0}, {"NO_TRANSPOSE", 1}, {"TRANSPOSE", 2}, {"ADJOINT", 3}, {NULL, 0}};

static const struct rp_schema_word result_accuracy_mode_words[] = {
    {"DEFAULT", 0}, {"HIGHEST", 1}, {NULL, 0}};

static const struct rp_schema_word kind_words[] = {
    {"UNDEFINED_ALIAS", 0}, {"MAY_ALIAS", 1}, {"MUST_ALIAS", 2}, {NULL, 0}};

static const struct rp_schema_field text_map_entry_fields[] = {
    SCALAR("key", 1, TEXT), SCALAR("value", 2, TEXT), END};
static const struct rp_schema text_map_entry = {"MapEntry", text_map_entry_fields};

static const struct rp_schema hlo_module_proto;
static const struct rp_schema hlo_computation_proto;
static const struct rp_schema hlo_instruction_proto;
static const struct rp_schema shape_proto;
static const struct rp_schema layout_proto;
static const struct rp_schema tile_proto;
static const struct rp_schema split_config_proto;
static const struct rp_schema op_metadata;
static const struct rp_schema payload;
static const struct rp_schema literal_proto;
static const struct rp_schema window;
static const struct rp_schema window_dimension;
static const struct rp_schema convolution_dimension_numbers;
static const struct rp_schema hlo_instruction_proto_slice_dimensions;
static const struct rp_schema padding_config;
static const struct rp_schema padding_config_padding_config_dimension;
static const struct rp_schema dot_dimension_numbers;
static const struct rp_schema ragged_dot_dimension_numbers;
static const struct rp_schema gather_dimension_numbers;
static const struct rp_schema op_sharding;
static const struct rp_schema named_sharding_proto;
static const struct rp_schema mesh_proto;
static const struct rp_schema mesh_proto_mesh_axis;
static const struct rp_schema mesh_proto_iota_transform;
static const struct rp_schema named_sharding_proto_dimension_sharding;
static const struct rp_schema axis_ref_proto;
static const struct rp_schema axis_ref_proto_sub_axis;
static const struct rp_schema replica_group;
static const struct rp_schema scatter_dimension_numbers;
static const struct rp_schema precision_config;
static const struct rp_schema source_target;
static const struct rp_schema triangular_solve_options;
static const struct rp_schema cholesky_options;
static const struct rp_schema parameter_replication;
static const struct rp_schema output_operand_aliasing;
static const struct rp_schema frontend_attributes;
static const struct rp_schema statistics_viz;
static const struct rp_schema statistic;
static const struct rp_schema collective_device_list_proto;
static const struct rp_schema iota_replica_group_list_proto;
static const struct rp_schema mesh_axes_replica_group_list_proto;
static const struct rp_schema result_accuracy;
static const struct rp_schema result_accuracy_tolerance;
static const struct rp_schema sparsity_config;
static const struct rp_schema sparsity_config_tensor_sparsity_config;
static const struct rp_schema program_shape_proto;
static const struct rp_schema hlo_schedule_proto;
static const struct rp_schema hlo_input_output_alias_proto;
static const struct rp_schema hlo_input_output_alias_proto_alias_entry_proto;
static const struct rp_schema hlo_buffer_donor_proto;
static const struct rp_schema hlo_buffer_donor_proto_buffer_donor_entry_proto;
static const struct rp_schema cross_program_prefetch;
static const struct rp_schema device_assignment_proto;
static const struct rp_schema device_assignment_proto_computation_device;
static const struct rp_schema stack_frame_index_proto;
static const struct rp_schema stack_frame_index_proto_file_location;
static const struct rp_schema stack_frame_index_proto_stack_frame;
static const struct rp_schema hlo_schedule_proto_instruction_sequence;

static const struct rp_schema_field sequence_entry_fields[] = {
    SCALAR("key", 1, INT), ONE("value", 2, hlo_schedule_proto_instruction_sequence), END};
static const struct rp_schema sequence_entry = {"SequencesEntry", sequence_entry_fields};

static const struct rp_schema_field hlo_module_proto_fields[] = {
    SCALAR("name", 1, TEXT), SCALAR("entry_computation_name", 2, TEXT),
    SCALAR("entry_computation_id", 6, INT), MANY("computations", 3, hlo_computation_proto),
    ONE("host_program_shape", 4, program_shape_proto), SCALAR("id", 5, INT),
    SCALAR("pjrt_id", 23, INT), ONE("schedule", 7, hlo_schedule_proto),
    ONE("input_output_alias", 8, hlo_input_output_alias_proto), LIST("payloads", 22, TEXT),
    ONE("buffer_donor", 18, hlo_buffer_donor_proto),
    MANY("cross_program_prefetches", 10, cross_program_prefetch), SCALAR("is_dynamic", 11, BOOL),
    ONE("spmd_output_sharding", 12, op_sharding),
    MANY("spmd_parameters_shardings", 14, op_sharding),
    SCALAR("use_auto_spmd_partitioning", 16, BOOL),
    ONE("device_assignment", 15, device_assignment_proto),
    ONE("stack_frame_index", 17, stack_frame_index_proto),
    ONE("frontend_attributes", 19, frontend_attributes), SCALAR("device_type", 21, TEXT), END};
static const struct rp_schema hlo_module_proto = {"HloModuleProto", hlo_module_proto_fields};

static const struct rp_schema_field hlo_computation_proto_fields[] = {
    SCALAR("name", 1, TEXT), MANY("instructions", 2, hlo_instruction_proto),
    ONE("program_shape", 4, program_shape_proto), SCALAR("id", 5, INT), SCALAR("root_id", 6, INT),
    SCALAR("is_fusion_computation", 7, BOOL), SCALAR("execution_thread", 8, TEXT), END};
static const struct rp_schema hlo_computation_proto = {"HloComputationProto", hlo_computation_proto_fields};

static const struct rp_schema_field hlo_instruction_proto_fields[] = {
    SCALAR("name", 1, TEXT), SCALAR("opcode", 2, TEXT), ONE("shape", 3, shape_proto),
    ONE("metadata", 7, op_metadata), ONE("literal", 8, literal_proto),
    SCALAR("parameter_number", 9, INT), SCALAR("fusion_kind", 11, TEXT),
    SCALAR("tuple_index", 13, INT), LIST("dimensions", 14, INT), ONE("window", 15, window),
    ONE("convolution_dimension_numbers", 16, convolution_dimension_numbers),
    SCALAR("feature_group_count", 50, INT), SCALAR("batch_group_count", 58, INT),
    MANY("slice_dimensions", 17, hlo_instruction_proto_slice_dimensions),
    SCALAR("exponent_bits", 18, INT), SCALAR("mantissa_bits", 19, INT),
    LIST("dynamic_slice_sizes", 20, INT), ONE("padding_config", 21, padding_config),
    SCALAR("outfeed_config", 22, TEXT), ENUM("distribution", 23, random_distribution_words),
    SCALAR("epsilon", 24, FLOAT), SCALAR("feature_index", 25, INT), SCALAR("channel_id", 26, INT),
    SCALAR("infeed_config", 27, TEXT), SCALAR("custom_call_target", 28, TEXT),
    ONE("outfeed_shape", 29, shape_proto), ONE("dot_dimension_numbers", 30, dot_dimension_numbers),
    ONE("ragged_dot_dimension_numbers", 90, ragged_dot_dimension_numbers),
    ENUM("fft_type", 31, fft_type_words), LIST("fft_length", 32, INT),
    SCALAR("comparison_direction", 63, TEXT),
    ONE("gather_dimension_numbers", 33, gather_dimension_numbers),
    LIST("gather_slice_sizes", 34, INT), SCALAR("id", 35, INT), LIST("operand_ids", 36, INT),
    LIST("control_predecessor_ids", 37, INT), LIST("called_computation_ids", 38, INT),
    ONE("sharding", 40, op_sharding), SCALAR("backend_config", 43, TEXT),
    ONE("backend_config_payload", 99, payload), MANY("replica_groups", 49, replica_group),
    SCALAR("all_reduce_id", 45, INT), SCALAR("use_global_device_ids", 71, BOOL),
    SCALAR("is_host_transfer", 47, BOOL), SCALAR("is_stable", 60, BOOL),
    ONE("scatter_dimension_numbers", 48, scatter_dimension_numbers),
    ONE("precision_config", 51, precision_config), MANY("source_target_pairs", 52, source_target),
    ONE("domain_entry_sharding", 54, op_sharding), ONE("domain_exit_sharding", 55, op_sharding),
    SCALAR("constrain_layout", 56, BOOL), MANY("operand_shapes_with_layout", 57, shape_proto),
    ONE("triangular_solve_options", 59, triangular_solve_options),
    ONE("cholesky_options", 62, cholesky_options),
    ONE("parameter_replication", 61, parameter_replication),
    SCALAR("custom_call_has_side_effect", 65, BOOL),
    MANY("output_operand_aliasing", 74, output_operand_aliasing),
    ENUM("custom_call_schedule", 76, custom_call_schedule_words), SCALAR("delta", 66, INT),
    SCALAR("indices_are_sorted", 67, BOOL), ONE("frontend_attributes", 68, frontend_attributes),
    SCALAR("unique_indices", 69, BOOL), ENUM("rng_algorithm", 70, random_algorithm_words),
    SCALAR("comparison_type", 72, TEXT), SCALAR("is_cross_program_prefetch", 73, BOOL),
    SCALAR("cross_program_prefetch_index", 80, INT), ENUM("padding_type", 75, padding_type_words),
    ENUM("custom_call_api_version", 77, custom_call_api_version_words),
    SCALAR("async_execution_thread", 79, TEXT), SCALAR("k", 81, INT), SCALAR("largest", 85, BOOL),
    ONE("statistics_viz", 82, statistics_viz),
    ONE("collective_device_list", 87, collective_device_list_proto),
    ONE("iota_collective_device_list", 92, iota_replica_group_list_proto),
    ONE("mesh_axes_replica_group_list", 93, mesh_axes_replica_group_list_proto),
    SCALAR("is_composite", 89, BOOL), ONE("result_accuracy", 91, result_accuracy),
    SCALAR("is_reverse", 94, BOOL), SCALAR("num_carries", 95, INT),
    ENUM("is_associative", 96, tri_state_words), ENUM("conv_kind", 97, convolution_kind_words),
    ONE("sparsity_config", 98, sparsity_config), SCALAR("has_dynamic_root", 100, BOOL),
    SCALAR("comparison_order", 102, TEXT), END};
static const struct rp_schema hlo_instruction_proto = {"HloInstructionProto", hlo_instruction_proto_fields};

static const struct rp_schema_field shape_proto_fields[] = {
    ENUM("element_type", 2, primitive_type_words), LIST("dimensions", 3, INT),
    LIST("is_dynamic_dimension", 6, BOOL), MANY("tuple_shapes", 4, shape_proto),
    ONE("layout", 5, layout_proto), END};
static const struct rp_schema shape_proto = {"ShapeProto", shape_proto_fields};

static const struct rp_schema_field layout_proto_fields[] = {
    LIST("minor_to_major", 1, INT), ENUMS("dim_level_types", 9, dim_level_type_words),
    LIST("dim_unique", 13, BOOL), LIST("dim_ordered", 14, BOOL), MANY("tiles", 6, tile_proto),
    SCALAR("tail_padding_alignment_in_elements", 16, INT), SCALAR("element_size_in_bits", 7, INT),
    SCALAR("memory_space", 8, INT), ENUM("index_primitive_type", 11, primitive_type_words),
    ENUM("pointer_primitive_type", 12, primitive_type_words),
    ONE("physical_shape", 10, shape_proto), SCALAR("dynamic_shape_metadata_prefix_bytes", 15, INT),
    MANY("split_configs", 17, split_config_proto), END};
static const struct rp_schema layout_proto = {"LayoutProto", layout_proto_fields};

static const struct rp_schema_field tile_proto_fields[] = {
    LIST("dimensions", 1, INT), END};
static const struct rp_schema tile_proto = {"TileProto", tile_proto_fields};

static const struct rp_schema_field split_config_proto_fields[] = {
    SCALAR("dimension", 1, INT), LIST("split_indices", 2, INT), END};
static const struct rp_schema split_config_proto = {"SplitConfigProto", split_config_proto_fields};

static const struct rp_schema_field op_metadata_fields[] = {
    SCALAR("op_type", 1, TEXT), SCALAR("op_name", 2, TEXT), SCALAR("source_file", 3, TEXT),
    SCALAR("source_line", 4, INT), SCALAR("source_end_line", 17, INT),
    SCALAR("source_column", 18, INT), SCALAR("source_end_column", 19, INT),
    ENUMS("profile_type", 5, profile_type_words),
    SCALAR("size_of_generated_code_in_bytes", 8, INT),
    SCALAR("size_of_memory_working_set_in_bytes", 9, INT), SCALAR("deduplicated_name", 12, TEXT),
    SCALAR("stack_frame_id", 15, INT), SCALAR("scheduling_name", 16, TEXT),
    ONE("metadata_payload", 20, payload), END};
static const struct rp_schema op_metadata = {"OpMetadata", op_metadata_fields};

static const struct rp_schema_field payload_fields[] = {
    SCALAR("value", 1, TEXT), SCALAR("id", 2, INT), END};
static const struct rp_schema payload = {"Payload", payload_fields};

static const struct rp_schema_field literal_proto_fields[] = {
    ONE("shape", 1, shape_proto), LIST("preds", 2, BOOL), SCALAR("s1s", 30, TEXT),
    SCALAR("s2s", 26, TEXT), SCALAR("s4s", 21, TEXT), SCALAR("s8s", 15, TEXT),
    SCALAR("u1s", 31, TEXT), SCALAR("u2s", 27, TEXT), SCALAR("u4s", 22, TEXT),
    SCALAR("u8s", 3, TEXT), LIST("s32s", 4, INT), LIST("s64s", 5, INT), LIST("u32s", 6, INT),
    LIST("u64s", 7, INT), LIST("f32s", 8, FLOAT), LIST("f64s", 9, DOUBLE), LIST("c64s", 12, FLOAT),
    LIST("c128s", 18, DOUBLE), MANY("tuple_literals", 10, literal_proto), SCALAR("f16s", 11, TEXT),
    SCALAR("bf16s", 13, TEXT), SCALAR("u16s", 16, TEXT), SCALAR("s16s", 17, TEXT),
    SCALAR("f4e2m1fns", 32, TEXT), SCALAR("f8e3m4s", 29, TEXT), SCALAR("f8e4m3b11fnuzs", 23, TEXT),
    SCALAR("f8e4m3fns", 20, TEXT), SCALAR("f8e4m3fnuzs", 25, TEXT), SCALAR("f8e4m3s", 28, TEXT),
    SCALAR("f8e5m2fnuzs", 24, TEXT), SCALAR("f8e5m2s", 19, TEXT), SCALAR("f8e8m0fnus", 33, TEXT),
    SCALAR("f6e3m2fns", 35, TEXT), SCALAR("f6e2m3fns", 36, TEXT), LIST("sparse_indices", 14, INT),
    LIST("dynamic_sizes", 34, INT), END};
static const struct rp_schema literal_proto = {"LiteralProto", literal_proto_fields};

static const struct rp_schema_field window_fields[] = {
    MANY("dimensions", 1, window_dimension), END};
static const struct rp_schema window = {"Window", window_fields};

static const struct rp_schema_field window_dimension_fields[] = {
    SCALAR("size", 1, INT), SCALAR("stride", 2, INT), SCALAR("padding_low", 3, INT),
    SCALAR("padding_high", 4, INT), SCALAR("window_dilation", 5, INT),
    SCALAR("base_dilation", 6, INT), SCALAR("window_reversal", 7, BOOL), END};
static const struct rp_schema window_dimension = {"WindowDimension", window_dimension_fields};

static const struct rp_schema_field convolution_dimension_numbers_fields[] = {
    SCALAR("input_batch_dimension", 7, INT), SCALAR("input_feature_dimension", 8, INT),
    LIST("input_spatial_dimensions", 11, INT), SCALAR("kernel_input_feature_dimension", 3, INT),
    SCALAR("kernel_output_feature_dimension", 4, INT), LIST("kernel_spatial_dimensions", 6, INT),
    SCALAR("output_batch_dimension", 9, INT), SCALAR("output_feature_dimension", 10, INT),
    LIST("output_spatial_dimensions", 12, INT), END};
static const struct rp_schema convolution_dimension_numbers = {"ConvolutionDimensionNumbers", convolution_dimension_numbers_fields};

static const struct rp_schema_field hlo_instruction_proto_slice_dimensions_fields[] = {
    SCALAR("start", 1, INT), SCALAR("limit", 2, INT), SCALAR("stride", 3, INT), END};
static const struct rp_schema hlo_instruction_proto_slice_dimensions = {"SliceDimensions", hlo_instruction_proto_slice_dimensions_fields};

static const struct rp_schema_field padding_config_fields[] = {
    MANY("dimensions", 1, padding_config_padding_config_dimension), END};
static const struct rp_schema padding_config = {"PaddingConfig", padding_config_fields};

static const struct rp_schema_field padding_config_padding_config_dimension_fields[] = {
    SCALAR("edge_padding_low", 1, INT), SCALAR("edge_padding_high", 2, INT),
    SCALAR("interior_padding", 3, INT), END};
static const struct rp_schema padding_config_padding_config_dimension = {"PaddingConfigDimension", padding_config_padding_config_dimension_fields};

static const struct rp_schema_field dot_dimension_numbers_fields[] = {
    LIST("lhs_contracting_dimensions", 1, INT), LIST("rhs_contracting_dimensions", 2, INT),
    LIST("lhs_batch_dimensions", 3, INT), LIST("rhs_batch_dimensions", 4, INT), END};
static const struct rp_schema dot_dimension_numbers = {"DotDimensionNumbers", dot_dimension_numbers_fields};

static const struct rp_schema_field ragged_dot_dimension_numbers_fields[] = {
    ONE("dot_dimension_numbers", 1, dot_dimension_numbers), LIST("lhs_ragged_dimensions", 2, INT),
    LIST("rhs_group_dimensions", 3, INT), END};
static const struct rp_schema ragged_dot_dimension_numbers = {"RaggedDotDimensionNumbers", ragged_dot_dimension_numbers_fields};

static const struct rp_schema_field gather_dimension_numbers_fields[] = {
    LIST("offset_dims", 1, INT), LIST("collapsed_slice_dims", 2, INT),
    LIST("start_index_map", 3, INT), SCALAR("index_vector_dim", 4, INT),
    LIST("operand_batching_dims", 5, INT), LIST("start_indices_batching_dims", 6, INT), END};
static const struct rp_schema gather_dimension_numbers = {"GatherDimensionNumbers", gather_dimension_numbers_fields};

static const struct rp_schema_field op_sharding_fields[] = {
    ENUM("type", 1, op_sharding_type_words), ONE("tile_shape", 2, shape_proto),
    LIST("tile_assignment_dimensions", 3, INT), LIST("tile_assignment_devices", 4, INT),
    MANY("tuple_shardings", 5, op_sharding), SCALAR("replicate_on_last_tile_dim", 6, BOOL),
    MANY("metadata", 7, op_metadata), ENUMS("last_tile_dims", 8, op_sharding_type_words),
    LIST("iota_reshape_dims", 9, INT), LIST("iota_transpose_perm", 10, INT),
    SCALAR("is_shard_group", 11, BOOL), SCALAR("shard_group_id", 12, INT),
    ENUM("shard_group_type", 13, op_sharding_shard_group_type_words),
    ONE("named_sharding", 14, named_sharding_proto), END};
static const struct rp_schema op_sharding = {"OpSharding", op_sharding_fields};

static const struct rp_schema_field named_sharding_proto_fields[] = {
    ONE("mesh", 2, mesh_proto), MANY("dim_shardings", 3, named_sharding_proto_dimension_sharding),
    MANY("replicated_axes", 4, axis_ref_proto), MANY("unreduced_axes", 5, axis_ref_proto),
    ENUM("reduction_op", 8, named_sharding_proto_reduction_op_proto_words),
    MANY("manual_axes", 7, axis_ref_proto), MANY("metadata", 6, op_metadata), END};
static const struct rp_schema named_sharding_proto = {"NamedShardingProto", named_sharding_proto_fields};

static const struct rp_schema_field mesh_proto_fields[] = {
    MANY("axes", 1, mesh_proto_mesh_axis), LIST("device_ids", 2, INT),
    ONE("iota_transform", 3, mesh_proto_iota_transform), END};
static const struct rp_schema mesh_proto = {"MeshProto", mesh_proto_fields};

static const struct rp_schema_field mesh_proto_mesh_axis_fields[] = {
    SCALAR("name", 1, TEXT), SCALAR("size", 2, INT), END};
static const struct rp_schema mesh_proto_mesh_axis = {"MeshAxis", mesh_proto_mesh_axis_fields};

static const struct rp_schema_field mesh_proto_iota_transform_fields[] = {
    LIST("reshape_dims", 1, INT), LIST("transpose_perm", 2, INT), END};
static const struct rp_schema mesh_proto_iota_transform = {"IotaTransform", mesh_proto_iota_transform_fields};

static const struct rp_schema_field named_sharding_proto_dimension_sharding_fields[] = {
    MANY("axes", 1, axis_ref_proto), SCALAR("is_closed", 2, BOOL), END};
static const struct rp_schema named_sharding_proto_dimension_sharding = {"DimensionSharding", named_sharding_proto_dimension_sharding_fields};

static const struct rp_schema_field axis_ref_proto_fields[] = {
    SCALAR("mesh_axis_index", 1, INT), ONE("sub_axis_info", 2, axis_ref_proto_sub_axis), END};
static const struct rp_schema axis_ref_proto = {"AxisRefProto", axis_ref_proto_fields};

static const struct rp_schema_field axis_ref_proto_sub_axis_fields[] = {
    SCALAR("pre_size", 1, INT), SCALAR("size", 2, INT), END};
static const struct rp_schema axis_ref_proto_sub_axis = {"SubAxis", axis_ref_proto_sub_axis_fields};

static const struct rp_schema_field replica_group_fields[] = {
    LIST("replica_ids", 1, INT), END};
static const struct rp_schema replica_group = {"ReplicaGroup", replica_group_fields};

static const struct rp_schema_field scatter_dimension_numbers_fields[] = {
    LIST("update_window_dims", 1, INT), LIST("inserted_window_dims", 2, INT),
    LIST("scatter_dims_to_operand_dims", 3, INT), SCALAR("index_vector_dim", 4, INT),
    LIST("input_batching_dims", 5, INT), LIST("scatter_indices_batching_dims", 6, INT), END};
static const struct rp_schema scatter_dimension_numbers = {"ScatterDimensionNumbers", scatter_dimension_numbers_fields};

static const struct rp_schema_field precision_config_fields[] = {
    ENUMS("operand_precision", 1, precision_config_precision_words),
    ENUM("algorithm", 2, precision_config_algorithm_words), END};
static const struct rp_schema precision_config = {"PrecisionConfig", precision_config_fields};

static const struct rp_schema_field source_target_fields[] = {
    SCALAR("source", 1, INT), SCALAR("target", 2, INT), END};
static const struct rp_schema source_target = {"SourceTarget", source_target_fields};

static const struct rp_schema_field triangular_solve_options_fields[] = {
    SCALAR("left_side", 1, BOOL), SCALAR("lower", 2, BOOL), SCALAR("unit_diagonal", 3, BOOL),
    ENUM("transpose_a", 4, triangular_solve_options_transpose_words), END};
static const struct rp_schema triangular_solve_options = {"TriangularSolveOptions", triangular_solve_options_fields};

static const struct rp_schema_field cholesky_options_fields[] = {
    SCALAR("lower", 1, BOOL), END};
static const struct rp_schema cholesky_options = {"CholeskyOptions", cholesky_options_fields};

static const struct rp_schema_field parameter_replication_fields[] = {
    LIST("replicated_at_leaf_buffers", 1, BOOL), END};
static const struct rp_schema parameter_replication = {"ParameterReplication", parameter_replication_fields};

static const struct rp_schema_field output_operand_aliasing_fields[] = {
    LIST("output_shape_index", 1, INT), SCALAR("operand_index", 2, INT),
    LIST("operand_shape_index", 3, INT), END};
static const struct rp_schema output_operand_aliasing = {"OutputOperandAliasing", output_operand_aliasing_fields};

static const struct rp_schema_field frontend_attributes_fields[] = {
    MANY("map", 1, text_map_entry), END};
static const struct rp_schema frontend_attributes = {"FrontendAttributes", frontend_attributes_fields};

static const struct rp_schema_field statistics_viz_fields[] = {
    SCALAR("stat_index_to_visualize", 1, INT), MANY("statistics", 2, statistic), END};
static const struct rp_schema statistics_viz = {"StatisticsViz", statistics_viz_fields};

static const struct rp_schema_field statistic_fields[] = {
    SCALAR("stat_name", 1, TEXT), SCALAR("stat_val", 2, DOUBLE), END};
static const struct rp_schema statistic = {"Statistic", statistic_fields};

static const struct rp_schema_field collective_device_list_proto_fields[] = {
    MANY("replica_groups", 1, replica_group), END};
static const struct rp_schema collective_device_list_proto = {"CollectiveDeviceListProto", collective_device_list_proto_fields};

static const struct rp_schema_field iota_replica_group_list_proto_fields[] = {
    SCALAR("num_replica_groups", 1, INT), SCALAR("num_devices_per_group", 2, INT),
    LIST("iota_reshape_dims", 3, INT), LIST("iota_transpose_perm", 4, INT), END};
static const struct rp_schema iota_replica_group_list_proto = {"IotaReplicaGroupListProto", iota_replica_group_list_proto_fields};

static const struct rp_schema_field mesh_axes_replica_group_list_proto_fields[] = {
    ONE("mesh", 1, mesh_proto), MANY("axes", 2, axis_ref_proto), END};
static const struct rp_schema mesh_axes_replica_group_list_proto = {"MeshAxesReplicaGroupListProto", mesh_axes_replica_group_list_proto_fields};

static const struct rp_schema_field result_accuracy_fields[] = {
    ENUM("mode", 1, result_accuracy_mode_words), ONE("tolerance", 2, result_accuracy_tolerance),
    END};
static const struct rp_schema result_accuracy = {"ResultAccuracy", result_accuracy_fields};

static const struct rp_schema_field result_accuracy_tolerance_fields[] = {
    SCALAR("atol", 1, DOUBLE), SCALAR("rtol", 2, DOUBLE), SCALAR("ulps", 3, INT), END};
static const struct rp_schema result_accuracy_tolerance = {"Tolerance", result_accuracy_tolerance_fields};

static const struct rp_schema_field sparsity_config_fields[] = {
    ONE("lhs", 1, sparsity_config_tensor_sparsity_config),
    ONE("rhs", 2, sparsity_config_tensor_sparsity_config), END};
static const struct rp_schema sparsity_config = {"SparsityConfig", sparsity_config_fields};

static const struct rp_schema_field sparsity_config_tensor_sparsity_config_fields[] = {
    SCALAR("num_non_zero", 1, INT), SCALAR("block_size", 2, INT), SCALAR("dimension", 3, INT),
    SCALAR("stride", 4, INT), SCALAR("idx", 5, INT), END};
static const struct rp_schema sparsity_config_tensor_sparsity_config = {"TensorSparsityConfig", sparsity_config_tensor_sparsity_config_fields};

static const struct rp_schema_field program_shape_proto_fields[] = {
    MANY("parameters", 1, shape_proto), ONE("result", 2, shape_proto),
    LIST("parameter_names", 3, TEXT), END};
static const struct rp_schema program_shape_proto = {"ProgramShapeProto", program_shape_proto_fields};

static const struct rp_schema_field hlo_schedule_proto_fields[] = {
    MANY("sequences", 1, sequence_entry), END};
static const struct rp_schema hlo_schedule_proto = {"HloScheduleProto", hlo_schedule_proto_fields};

static const struct rp_schema_field hlo_input_output_alias_proto_fields[] = {
    MANY("entries", 1, hlo_input_output_alias_proto_alias_entry_proto), END};
static const struct rp_schema hlo_input_output_alias_proto = {"HloInputOutputAliasProto", hlo_input_output_alias_proto_fields};

static const struct rp_schema_field hlo_input_output_alias_proto_alias_entry_proto_fields[] = {
    LIST("output_shape_index", 1, INT), SCALAR("parameter_number", 2, INT),
    LIST("parameter_shape_index", 3, INT), ENUM("kind", 4, kind_words), END};
static const struct rp_schema hlo_input_output_alias_proto_alias_entry_proto = {"AliasEntryProto", hlo_input_output_alias_proto_alias_entry_proto_fields};

static const struct rp_schema_field hlo_buffer_donor_proto_fields[] = {
    MANY("entries", 1, hlo_buffer_donor_proto_buffer_donor_entry_proto), END};
static const struct rp_schema hlo_buffer_donor_proto = {"HloBufferDonorProto", hlo_buffer_donor_proto_fields};

static const struct rp_schema_field hlo_buffer_donor_proto_buffer_donor_entry_proto_fields[] = {
    SCALAR("parameter_number", 1, INT), LIST("parameter_shape_index", 2, INT), END};
static const struct rp_schema hlo_buffer_donor_proto_buffer_donor_entry_proto = {"BufferDonorEntryProto", hlo_buffer_donor_proto_buffer_donor_entry_proto_fields};

static const struct rp_schema_field cross_program_prefetch_fields[] = {
    SCALAR("parameter", 1, INT), LIST("index", 2, INT), SCALAR("offset", 3, INT), END};
static const struct rp_schema cross_program_prefetch = {"CrossProgramPrefetch", cross_program_prefetch_fields};

static const struct rp_schema_field device_assignment_proto_fields[] = {
    SCALAR("replica_count", 1, INT), SCALAR("computation_count", 2, INT),
    MANY("computation_devices", 3, device_assignment_proto_computation_device), END};
static const struct rp_schema device_assignment_proto = {"DeviceAssignmentProto", device_assignment_proto_fields};

static const struct rp_schema_field device_assignment_proto_computation_device_fields[] = {
    LIST("replica_device_ids", 1, INT), END};
static const struct rp_schema device_assignment_proto_computation_device = {"ComputationDevice", device_assignment_proto_computation_device_fields};

static const struct rp_schema_field stack_frame_index_proto_fields[] = {
    LIST("file_names", 1, TEXT), LIST("function_names", 2, TEXT),
    MANY("file_locations", 3, stack_frame_index_proto_file_location),
    MANY("stack_frames", 4, stack_frame_index_proto_stack_frame), END};
static const struct rp_schema stack_frame_index_proto = {"StackFrameIndexProto", stack_frame_index_proto_fields};

static const struct rp_schema_field stack_frame_index_proto_file_location_fields[] = {
    SCALAR("file_name_id", 1, INT), SCALAR("function_name_id", 2, INT), SCALAR("line", 3, INT),
    SCALAR("end_line", 5, INT), SCALAR("column", 4, INT), SCALAR("end_column", 6, INT), END};
static const struct rp_schema stack_frame_index_proto_file_location = {"FileLocation", stack_frame_index_proto_file_location_fields};

static const struct rp_schema_field stack_frame_index_proto_stack_frame_fields[] = {
    SCALAR("file_location_id", 1, INT), SCALAR("parent_frame_id", 2, INT), END};
static const struct rp_schema stack_frame_index_proto_stack_frame = {"StackFrame", stack_frame_index_proto_stack_frame_fields};

static const struct rp_schema_field hlo_schedule_proto_instruction_sequence_fields[] = {
    LIST("instruction_ids", 1, INT), END};
static const struct rp_schema hlo_schedule_proto_instruction_sequence = {"InstructionSequence", hlo_schedule_proto_instruction_sequence_fields};

/* HloProto, HloModuleProtoWithConfig and HloUnoptimizedSnapshot begin alike; only the last has
   values, which stand under names that the others do not use. */
static const struct rp_schema_field inputs_fields[] = {MANY("arguments", 1, literal_proto), END};
static const struct rp_schema inputs = {"HloInputs", inputs_fields};
static const struct rp_schema_field holder_fields[] = {
    ONE("hlo_module", 1, hlo_module_proto), MANY("partitions", 2, inputs), END};
static const struct rp_schema holder = {"HloProto", holder_fields};
static const struct rp_schema_field snapshot_fields[] = {
    ONE("hlo", 1, holder), MANY("arguments", 2, literal_proto), ONE("result", 3, literal_proto),
    END};
static const struct rp_schema snapshot = {"HloSnapshot", snapshot_fields};
/* clang-format on */

const struct rp_schema *const rp_schema_hlo_module = &hlo_module_proto;
const struct rp_schema *const rp_schema_hlo_proto = &holder;
const struct rp_schema *const rp_schema_hlo_snapshot = &snapshot;
