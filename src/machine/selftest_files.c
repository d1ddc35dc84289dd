/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the files of `doctor --test`: a trace of two steps, the same eight kernels compressed in
 * two ways, samples, two programs whose result is [0, 24, 48, 72], and two scripts to record.
 */
#include "machine/doctor.h"

/* clang-format off */
static const char trace[] =
    "{\"traceEvents\":[\n"
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":7,\"tid\":7,\"ts\":1000,\"dur\":1000},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":7,\"tid\":7,\"ts\":1010,\"dur\":40},\n"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":7,\"tid\":7,\"ts\":1020,\"dur\":10,\"args\":{\"correlation\":11}},\n"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":20,\"ts\":1100,\"dur\":300.5,\"args\":{\"device\":0,\"stream\":20,\"correlation\":11}},\n"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAsync\",\"pid\":7,\"tid\":7,\"ts\":1060,\"dur\":10,\"args\":{\"correlation\":12}},\n"
    "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD\",\"pid\":0,\"tid\":20,\"ts\":1500,\"dur\":99.5,\"args\":{\"device\":0,\"stream\":20,\"correlation\":12,\"bytes\":4096}},\n"
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#2\",\"pid\":7,\"tid\":7,\"ts\":2000,\"dur\":1000},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":7,\"tid\":7,\"ts\":2010,\"dur\":40},\n"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":7,\"tid\":7,\"ts\":2020,\"dur\":10,\"args\":{\"correlation\":21}},\n"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":20,\"ts\":2100,\"dur\":300,\"args\":{\"device\":0,\"stream\":20,\"correlation\":21}}\n"
    "]}\n";

static const char samples[] = "main;step;gemm 30\nmain;step;load 10\n";

static const char queries[] = "-- name: total\nselect sum(dur_ns) total_ns from device_work\n";

static const char program[] =
    "HloModule doctor\n\n"
    "add {\n"
    "  x = f32[] parameter(0)\n"
    "  y = f32[] parameter(1)\n"
    "  ROOT sum = f32[] add(x, y)\n"
    "}\n\n"
    "ENTRY main {\n"
    "  a = f32[4,4] iota(), iota_dimension=0\n"
    "  b = f32[4,4] iota(), iota_dimension=1\n"
    "  c = f32[4,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  zero = f32[] constant(0)\n"
    "  ROOT out = f32[4] reduce(c, zero), dimensions={0}, to_apply=add\n"
    "}\n";

static const char graph[] =
    "node { name: \"a\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"value\" value {\n"
    "  tensor { dtype: DT_FLOAT tensor_shape { dim { size: 4 } } float_val: 0 float_val: 8 float_val: 16 float_val: 24 } } } }\n"
    "node { name: \"b\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"value\" value {\n"
    "  tensor { dtype: DT_FLOAT tensor_shape { } float_val: 3 } } } }\n"
    "node { name: \"c\" op: \"Mul\" input: \"a\" input: \"b\" attr { key: \"T\" value { type: DT_FLOAT } } }\n";

/* Scripts for sources that see PyTorch; the second one is a job of one process. */
static const char operators[] =
    "import torch\n"
    "torch.mm(torch.ones(512, 512), torch.ones(512, 512))\n";

static const char collective[] =
    "import os\n"
    "os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')\n"
    "import torch, torch.distributed as dist\n"
    "dist.init_process_group('gloo', init_method='file://' + os.path.abspath(__file__) + '.store', rank=0, world_size=1)\n"
    "dist.all_reduce(torch.ones(1024))\n"
    "dist.destroy_process_group()\n";

/* An array in NumPy's format: 118 bytes of header, then the numbers, little-endian. */
static const char result[] =
    "\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
    "                                                            \n"
    "\0\0\0\0" "\0\0\xc0\x41" "\0\0\x40\x42" "\0\0\x90\x42";

static const unsigned char trace_zstd[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0x4d, 0x03, 0x00, 0x32, 0x45, 0x12, 0x18, 0x80, 0xab, 0x0e,
    0xab, 0x0f, 0xc9, 0x7e, 0xee, 0x59, 0x22, 0x64, 0xaf, 0x30, 0x00, 0x4c, 0x76, 0x6c, 0x33, 0xf6,
    0xce, 0x1c, 0xcc, 0xca, 0x08, 0x51, 0x52, 0x10, 0x83, 0x10, 0x00, 0x4b, 0xa3, 0xb5, 0x8f, 0x8f,
    0xbb, 0x26, 0xb5, 0x97, 0xaa, 0xaf, 0x69, 0xef, 0x16, 0x78, 0x3d, 0x3b, 0xec, 0x5d, 0xdf, 0xf0,
    0x8b, 0xcc, 0x7c, 0xdf, 0xac, 0x5d, 0x7f, 0x7c, 0xaf, 0xc0, 0x4f, 0x64, 0x2f, 0xfb, 0x31, 0x64,
    0x70, 0x63, 0xb1, 0x3f, 0x03, 0x0b, 0x20, 0x80, 0x13, 0x19, 0x07, 0x9b, 0x04, 0x7a, 0x11, 0x65,
    0x81, 0x4a, 0x40, 0x2f, 0x50, 0x16, 0x87, 0x0a, 0x46, 0xce, 0x9a, 0x20, 0x86, 0x48, 0x9e, 0xc0,
    0x96, 0x01, 0xae, 0xb7, 0x42, 0x4a};

static const unsigned char trace_xz[] = {
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x02, 0x38, 0x00, 0x60, 0x5d, 0x00, 0x3d,
    0x88, 0x8a, 0x87, 0x63, 0x81, 0x75, 0xfb, 0x1b, 0x2b, 0x34, 0x11, 0x86, 0x8d, 0x23, 0x91, 0x58,
    0x55, 0x07, 0xb6, 0xab, 0x8c, 0x0c, 0x9a, 0xd1, 0x8c, 0x74, 0xca, 0xa8, 0x5e, 0x06, 0xba, 0x1f,
    0xa4, 0x8b, 0xfd, 0x5b, 0x87, 0x57, 0xdf, 0x3c, 0x1e, 0x7d, 0x4a, 0x38, 0xbb, 0x0e, 0xc9, 0x1d,
    0xd9, 0xaf, 0xb0, 0x04, 0x8e, 0xff, 0xdb, 0xed, 0x40, 0xba, 0xed, 0xc1, 0xf6, 0x12, 0xaa, 0x97,
    0x00, 0x77, 0xc3, 0x22, 0x23, 0xa5, 0xc2, 0x16, 0x7d, 0x7d, 0xa7, 0xbb, 0x61, 0x19, 0x74, 0x10,
    0xad, 0xaf, 0xe8, 0xe5, 0x7f, 0x5d, 0xd9, 0x03, 0x27, 0xc9, 0x27, 0x3e, 0xb2, 0x68, 0x00, 0x00,
    0xa9, 0x77, 0x15, 0x55, 0x00, 0x01, 0x78, 0xb9, 0x04, 0x00, 0x00, 0x00, 0x43, 0xa6, 0x91, 0xb6,
    0x3e, 0x30, 0x0d, 0x8b, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a};
/* clang-format on */

#define TEXT_FILE(name, text)       \
    {                               \
        name, text, sizeof text - 1 \
    }

const struct rp_selftest_file rp_selftest_files[] = {
    TEXT_FILE("trace.json", trace),
    TEXT_FILE("samples.folded", samples),
    TEXT_FILE("queries.sql", queries),
    TEXT_FILE("program.hlo.txt", program),
    TEXT_FILE("graph.pbtxt", graph),
    TEXT_FILE("operators.py", operators),
    TEXT_FILE("collective.py", collective),
    TEXT_FILE("result.npy", result),
    {"trace.json.zst", trace_zstd, sizeof trace_zstd},
    {"trace.json.xz", trace_xz, sizeof trace_xz},
    {NULL, NULL, 0}};
