/* SPDX-License-Identifier: Apache-2.0 */
/* Moving, reducing, multiplying, sorting and control flow, on both built-in engines. By hand. */
#include "exec_fixture.h"

#define MODULE  "HloModule m\nENTRY e {\n"
#define OF_ROWS "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
#define ADD \
    "HloModule m\nadd {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] add(x, y)\n}\n"

static const struct exec_case moves[] = {
    {"transpose, reverse, slice with steps",
     MODULE
     " a = s32[2,3] constant({{1,2,3},{4,5,6}})\n t = s32[3,2] transpose(a), dimensions={1,0}\n"
     " r = s32[2,3] reverse(a), dimensions={1}\n s = s32[1,2] slice(a), slice={[1:2], [0:3:2]}\n"
     " ROOT o = (s32[3,2], s32[2,3], s32[1,2]) tuple(t, r, s)\n}\n",
     14,
     {1, 4, 2, 5, 3, 6, 3, 2, 1, 6, 5, 4, 4, 6}},
    {"pad: negative edge and between",
     MODULE " a = s32[3] constant({1,2,3})\n z = s32[] constant(9)\n"
            " ROOT p = s32[8] pad(a, z), padding=-1_4_1\n}\n",
     8,
     {9, 2, 9, 3, 9, 9, 9, 9}},
    {"concatenate, iota, reshape",
     MODULE " a = s32[1,2] constant({{7,8}})\n i = s32[2,2] iota(), iota_dimension=0\n"
            " c = s32[3,2] concatenate(a, i), dimensions={0}\n ROOT r = s32[6] reshape(c)\n}\n",
     6,
     {7, 8, 0, 0, 1, 1}},
    {"dynamic slices are clamped",
     MODULE
     " a = s32[4] constant({1,2,3,4})\n i = s32[] constant(9)\n u = s32[2] constant({70,80})\n"
     " s = s32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}\n"
     " d = s32[4] dynamic-update-slice(a, u, i)\n ROOT o = (s32[2], s32[4]) tuple(s, d)\n}\n",
     6,
     {3, 4, 1, 2, 70, 80}},
    {"bitcast goes by the layout",
     MODULE " a = s32[2,3]{0,1} constant({{1,2,3},{4,5,6}})\n ROOT b = s32[6]{0} bitcast(a)\n}\n",
     6,
     {1, 4, 2, 5, 3, 6}},
    {"gather is clamped, by rows",
     MODULE " a = s32[3,2] constant({{1,2},{3,4},{5,6}})\n i = s32[2,1] constant({{7},{-3}})\n"
            " ROOT g = s32[2,2] gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, "
            "start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}\n}\n",
     4,
     {5, 6, 1, 2}},
    {"gather with batching dimensions",
     MODULE " a = s32[2,3] constant({{1,2,3},{4,5,6}})\n i = s32[2,1] constant({{2},{0}})\n"
            " ROOT g = s32[2,1] gather(a, i), offset_dims={}, collapsed_slice_dims={1}, "
            "start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
            "index_vector_dim=2, slice_sizes={1,1}\n}\n",
     2,
     {3, 4}},
    {"scatter adds in order and leaves out what lies outside",
     ADD "ENTRY e {\n a = f32[3] constant({1,2,3})\n i = s32[4,1] constant({{1},{1},{5},{-1}})\n"
         " u = f32[4] constant({10,20,30,40})\n"
         " ROOT s = f32[3] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0}, "
         "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n}\n",
     3,
     {1, 32, 3}},
};

static const struct exec_case reductions[] = {
    {"sums over rows, columns and all",
     ADD "ENTRY e {\n a = f32[2,3] constant({{1,2,3},{4,5,6}})\n z = f32[] constant(0.5)\n"
         " r = f32[2] reduce(a, z), dimensions={1}, to_apply=add\n"
         " c = f32[3] reduce(a, z), dimensions={0}, to_apply=add\n"
         " w = f32[] reduce(a, z), dimensions={0,1}, to_apply=add\n"
         " ROOT o = (f32[2], f32[3], f32[]) tuple(r, c, w)\n}\n",
     6,
     {6.5, 15.5, 5.5, 7.5, 9.5, 21.5}},
    {"dimensions that are not neighbours",
     ADD
     "ENTRY e {\n a = f32[2,2,2] constant({{{1,2},{3,4}},{{5,6},{7,8}}})\n z = f32[] constant(0)\n"
     " ROOT r = f32[2] reduce(a, z), dimensions={0,2}, to_apply=add\n}\n",
     2,
     {14, 22}},
    {"two at once: the largest and its place",
     "HloModule m\nf {\n a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n"
     " j = s32[] parameter(3)\n g = pred[] compare(b, a), direction=GT\n"
     " v = f32[] select(g, b, a)\n k = s32[] select(g, j, i)\n"
     " ROOT t = (f32[], s32[]) tuple(v, k)\n}\nENTRY e {\n a = f32[4] constant({3,9,2,9})\n"
     " i = s32[4] iota(), iota_dimension=0\n m = f32[] constant(-inf)\n z = s32[] constant(0)\n"
     " ROOT r = (f32[], s32[]) reduce(a, i, m, z), dimensions={0}, to_apply=f\n}\n",
     2,
     {9, 1}},
    {"bf16 sums are rounded at each step",
     "HloModule m\nadd {\n x = bf16[] parameter(0)\n y = bf16[] parameter(1)\n"
     " ROOT r = bf16[] add(x, y)\n}\nENTRY e {\n a = bf16[4] constant({256,1,1,1})\n"
     " z = bf16[] constant(0)\n ROOT r = bf16[] reduce(a, z), dimensions={0}, to_apply=add\n}\n",
     1,
     {256}},
    {"bf16 sums go by windows of 32",
     "HloModule m\nadd {\n x = bf16[] parameter(0)\n y = bf16[] parameter(1)\n"
     " ROOT r = bf16[] add(x, y)\n}\nENTRY e {\n o = bf16[] constant(1)\n"
     " a = bf16[512] broadcast(o), dimensions={}\n z = bf16[] constant(0)\n"
     " ROOT r = bf16[] reduce(a, z), dimensions={0}, to_apply=add\n}\n",
     1,
     {512}},
    {"a function of f32 that rounds to bf16",
     "HloModule m\nadd {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
     " s = f32[] add(x, y)\n b = bf16[] convert(s)\n ROOT r = f32[] convert(b)\n}\nENTRY e {\n"
     " a = f32[3] constant({256,1,1})\n z = f32[] constant(0)\n"
     " ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=add\n}\n",
     1,
     {256}},
    {"bf16 that becomes f32 at once is not rounded",
     "HloModule m\nENTRY e {\n a = bf16[1] constant({256})\n b = bf16[1] constant({1})\n"
     " s = bf16[1] add(a, b)\n w = f32[1] convert(s)\n v = f32[1] convert(a)\n"
     " k = bf16[1] subtract(s, a)\n l = f32[1] convert(k)\n"
     " ROOT c = f32[3] concatenate(w, v, l), dimensions={0}\n}\n",
     3,
     {257, 256, 0}},
    {"order=TOTAL is the total order",
     "HloModule m\nENTRY e {\n a = f32[3] constant({nan,-0,1})\n b = f32[3] constant({1,0,nan})\n"
     " t = pred[3] compare(a, b), direction=LT, order=TOTAL\n"
     " p = pred[3] compare(a, b), direction=LT\n c = pred[6] concatenate(t, p), dimensions={0}\n"
     " ROOT r = s32[6] convert(c)\n}\n",
     6,
     {0, 1, 1, 0, 0, 0}},
    {"nibbles: shifts, leading zeros, casts",
     "HloModule m\nENTRY e {\n a = u4[2] constant({11,1})\n o = u4[2] constant({1,1})\n"
     " s = u4[2] shift-right-arithmetic(a, o)\n z = u4[2] count-leading-zeros(a)\n"
     " b = s8[2] constant({-3,18})\n n = s4[2,2] bitcast-convert(b)\n f = s4[4] reshape(n)\n"
     " k = s8[2] bitcast-convert(n)\n i = s32[2] convert(s)\n j = s32[2] convert(z)\n"
     " m = s32[4] convert(f)\n l = s32[2] convert(k)\n"
     " ROOT c = s32[10] concatenate(i, j, m, l), dimensions={0}\n}\n",
     10,
     {13, 0, 0, 3, -3, -1, 2, 1, -3, 18}},
    {"reduce-window skips what lies outside",
     "HloModule m\nf {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
     " ROOT r = f32[] maximum(x, y)\n}\nENTRY e {\n a = f32[4] constant({-5,-1,-3,-2})\n"
     " z = f32[] constant(-inf)\n"
     " ROOT w = f32[2] reduce-window(a, z), window={size=3 stride=2 pad=1_0}, to_apply=f\n}\n",
     2,
     {-1, -1}},
    {"select-and-scatter takes the first of equals",
     "HloModule m\nge {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
     " ROOT r = pred[] compare(x, y), direction=GE\n}\nadd {\n x = f32[] parameter(0)\n"
     " y = f32[] parameter(1)\n ROOT r = f32[] add(x, y)\n}\nENTRY e {\n"
     " a = f32[4] constant({1,1,5,2})\n s = f32[2] constant({10,20})\n z = f32[] constant(0)\n"
     " ROOT w = f32[4] select-and-scatter(a, s, z), window={size=2 stride=2}, select=ge, "
     "scatter=add\n}\n",
     4,
     {10, 0, 20, 0}},
    {"windows that overlap, with padding on both sides",
     "HloModule m\n"
     "f {\n"
     " x = f32[] parameter(0)\n"
     " y = f32[] parameter(1)\n"
     " ROOT r = f32[] add(x, y)\n"
     "}\n"
     "ENTRY e {\n"
     " a = f32[4,5] constant({{3,1,4,1,5},{9,2,6,5,3},{5,8,9,7,9},{3,2,3,8,4}})\n"
     " z = f32[] constant(0)\n"
     " ROOT w = f32[2,6] reduce-window(a, z), window={size=2x3 stride=2x1 pad=1_0x1_2}, to_apply=f\n"
     "}\n",
     12,
     {4, 8, 6, 10, 6, 5, 24, 39, 37, 39, 24, 12}},
    {"windows with gaps",
     "HloModule m\n"
     "f {\n"
     " x = f32[] parameter(0)\n"
     " y = f32[] parameter(1)\n"
     " ROOT r = f32[] maximum(x, y)\n"
     "}\n"
     "ENTRY e {\n"
     " a = f32[4,5] constant({{3,1,4,1,5},{9,2,6,5,3},{5,8,9,7,9},{3,2,3,8,4}})\n"
     " z = f32[] constant(-100)\n"
     " ROOT w = f32[3,2] reduce-window(a, z), window={size=2x2 stride=1x2 pad=0_1x0_1 rhs_dilate=2x2}, to_apply=f\n"
     "}\n",
     6,
     {9, 9, 9, 6, 9, 9}},
    {"select-and-scatter where windows overlap",
     "HloModule m\n"
     "g {\n"
     " x = f32[] parameter(0)\n"
     " y = f32[] parameter(1)\n"
     " ROOT r = pred[] compare(x, y), direction=GE\n"
     "}\n"
     "f {\n"
     " x = f32[] parameter(0)\n"
     " y = f32[] parameter(1)\n"
     " ROOT r = f32[] add(x, y)\n"
     "}\n"
     "ENTRY e {\n"
     " a = f32[4,5] constant({{3,1,4,1,5},{9,2,6,5,3},{5,8,9,7,9},{3,2,3,8,4}})\n"
     " s = f32[3,3] constant({{1,2,3},{4,5,6},{7,8,9}})\n"
     " z = f32[] constant(0)\n"
     " ROOT w = f32[4,5] select-and-scatter(a, s, z), window={size=3x3 stride=1x2 pad=0_1x1_1}, select=g, scatter=f\n"
     "}\n",
     20,
     {0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 7, 15, 0, 18, 0, 0, 0, 0, 0}},
    {"select-and-scatter whose comparison is the other way round",
     "HloModule m\n"
     "g {\n"
     " x = f32[] parameter(0)\n"
     " y = f32[] parameter(1)\n"
     " ROOT r = pred[] compare(y, x), direction=LE\n"
     "}\n"
     "f {\n"
     " x = f32[] parameter(0)\n"
     " y = f32[] parameter(1)\n"
     " ROOT r = f32[] add(x, y)\n"
     "}\n"
     "ENTRY e {\n"
     " a = f32[4,5] constant({{3,1,4,1,5},{9,2,6,5,3},{5,8,9,7,9},{3,2,3,8,4}})\n"
     " s = f32[3,3] constant({{1,2,3},{4,5,6},{7,8,9}})\n"
     " z = f32[] constant(0)\n"
     " ROOT w = f32[4,5] select-and-scatter(a, s, z), window={size=3x3 stride=1x2 pad=0_1x1_1}, select=g, scatter=f\n"
     "}\n",
     20,
     {0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 7, 15, 0, 18, 0, 0, 0, 0, 0}},
};

static const struct exec_case products[] = {
    {"dot of rows and columns",
     MODULE " a = f32[2,3] constant({{1,2,3},{4,5,6}})\n b = f32[2,3] constant({{1,0,1},{0,1,0}})\n"
            " ROOT d = f32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}\n",
     4,
     {4, 2, 10, 5}},
    {"dot with a batch in the middle",
     MODULE " a = f32[2,2,1] constant({{{1},{2}},{{3},{4}}})\n b = f32[2,1] constant({{5},{6}})\n"
            " ROOT d = f32[2,2] dot(a, b), lhs_batch_dims={1}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n}\n",
     4,
     {5, 15, 12, 24}},
    {"dot of transposed arrays",
     MODULE
     " a = f32[2,3] constant({{1,2,3},{4,5,6}})\n t = f32[3,2] transpose(a), dimensions={1,0}\n"
     " d = f32[3,3] dot(t, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
     " e = f32[2,2] dot(t, t), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
     " ROOT o = (f32[3,3], f32[2,2], f32[3,2]) tuple(d, e, t)\n}\n",
     19,
     {17, 22, 27, 22, 29, 36, 27, 36, 45, 14, 32, 32, 77, 1, 4, 2, 5, 3, 6}},
    {"dot of transposed arrays with a batch",
     MODULE " x = f32[2,2,2] constant({{{1,2},{3,4}},{{5,6},{7,8}}})\n"
            " t = f32[2,2,2] transpose(x), dimensions={2,0,1}\n"
            " ROOT d = f32[2,2,2] dot(t, t), lhs_batch_dims={1}, lhs_contracting_dims={2}, "
            "rhs_batch_dims={1}, rhs_contracting_dims={0}\n}\n",
     8,
     {7, 15, 10, 22, 67, 91, 78, 106}},
    /* 1.01171875 is 1.015625 - 0.00390625 in bf16, 1.00048828125 is 1.0009765625 - 0.00048828125 in
       TF32 */
    {"dot as its algorithm says",
     MODULE
     " a = f32[1,2] constant({{1.01171875,1}})\n b = f32[2,1] constant({{1},{0.001953125}})\n"
     " c = f32[1,1] constant({{1.01171875}})\n d = f32[1,1] constant({{1.00048828125}})\n"
     " i = f32[1,2] constant({{inf,1}})\n"
     " bf16 = f32[1,1] dot(a, b), " OF_ROWS ", algorithm=dot_bf16_bf16_f32\n"
     " x3 = f32[1,1] dot(c, c), " OF_ROWS ", algorithm=dot_bf16_bf16_f32_x3\n"
     " x6 = f32[1,1] dot(c, c), " OF_ROWS ", algorithm=dot_bf16_bf16_f32_x6\n"
     " tf32 = f32[1,1] dot(d, d), " OF_ROWS ", algorithm=dot_tf32_tf32_f32\n"
     " t3 = f32[1,1] dot(d, d), " OF_ROWS ", algorithm=dot_tf32_tf32_f32_x3\n"
     " f32 = f32[1,1] dot(c, c), " OF_ROWS ", algorithm=dot_f32_f32_f32\n"
     " far = f32[1,1] dot(i, b), " OF_ROWS ", algorithm=dot_bf16_bf16_f32_x3\n"
     " ROOT o = (f32[1,1], f32[1,1], f32[1,1], f32[1,1], f32[1,1], f32[1,1], f32[1,1]) "
     "tuple(bf16, x3, x6, tf32, t3, f32, far)\n}\n",
     7,
     {1.017578125, 1.0235595703125, 1.0235748291015625, 1.0019540786743164, 1.0009765625,
      1.0235748291015625, INFINITY}},
    {"dot of bytes into words",
     MODULE " a = s8[2] constant({100,100})\n b = s8[2] constant({100,100})\n"
            " ROOT d = s32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n}\n",
     1,
     {20000}},
    {"convolution with stride, pad and dilation",
     MODULE
     " a = f32[1,4,1] constant({{{1},{2},{3},{4}}})\n k = f32[2,1,1] constant({{{10}},{{1}}})\n"
     " c = f32[1,2,1] convolution(a, k), window={size=2 stride=2}, dim_labels=b0f_0io->b0f\n"
     " d = f32[1,4,1] convolution(a, k), window={size=2 pad=1_1 rhs_dilate=2}, "
     "dim_labels=b0f_0io->b0f\n"
     " l = f32[1,6,1] convolution(a, k), window={size=2 lhs_dilate=2}, "
     "dim_labels=b0f_0io->b0f\n"
     " ROOT o = (f32[1,2,1], f32[1,4,1], f32[1,6,1]) tuple(c, d, l)\n}\n",
     12,
     {12, 34, 2, 13, 24, 30, 10, 2, 20, 3, 30, 4}},
    {"reversed window and feature groups",
     MODULE
     " a = f32[1,2,2] constant({{{1,2},{3,4}}})\n k = f32[2,1,2] constant({{{10,20}},{{1,2}}})\n"
     " ROOT c = f32[1,1,2] convolution(a, k), window={size=2 rhs_reversal=1}, "
     "dim_labels=b0f_0io->b0f, feature_group_count=2\n}\n",
     2,
     {31, 84}},
    {"cholesky and a triangular solve",
     MODULE " a = f32[2,2] constant({{4,2},{2,5}})\n c = f32[2,2] cholesky(a), lower=true\n"
            " b = f32[2,1] constant({{4},{6}})\n"
            " s = f32[2,1] triangular-solve(c, b), left_side=true, lower=true, "
            "unit_diagonal=false, transpose_a=NO_TRANSPOSE\n"
            " ROOT o = (f32[2,2], f32[2,1]) tuple(c, s)\n}\n",
     6,
     {2, 0, 1, 2, 2, 2}},
    {"fft of six",
     MODULE " a = c64[3] constant({(1, 0), (0, 0), (0, 0)})\n"
            " f = c64[3] fft(a), fft_type=FFT, fft_length={3}\n"
            " r = f32[4] constant({1,2,3,4})\n g = c64[3] fft(r), fft_type=RFFT, fft_length={4}\n"
            " ROOT o = (c64[3], c64[3]) tuple(f, g)\n}\n",
     12,
     {1, 0, 1, 0, 1, 0, 10, 0, -2, 2, -2, 0}},
};

static const struct exec_case flow[] = {
    {"sort is stable, by two operands",
     "HloModule m\nlt {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = s32[] parameter(2)\n"
     " d = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=LT\n}\nENTRY e {\n"
     " k = s32[4] constant({3,1,3,1})\n v = s32[4] constant({10,20,30,40})\n"
     " ROOT s = (s32[4], s32[4]) sort(k, v), dimensions={0}, is_stable=true, to_apply=lt\n}\n",
     8,
     {1, 1, 3, 3, 20, 40, 10, 30}},
    {"topk: of many, largest",
     "HloModule m\nENTRY e {\n i = s32[300] iota(), iota_dimension=0\n n = s32[] constant(37)\n"
     " d = s32[] constant(101)\n p = s32[300] broadcast(n), dimensions={}\n"
     " q = s32[300] broadcast(d), dimensions={}\n r = s32[300] multiply(i, p)\n"
     " s = s32[300] remainder(r, q)\n x = f32[300] convert(s)\n"
     " ROOT t = (f32[5], s32[5]) topk(x), k=5, largest=true\n}\n",
     10,
     {100, 100, 100, 99, 99, 30, 131, 232, 60, 161}},
    {"topk: of many, least",
     "HloModule m\nENTRY e {\n i = s32[300] iota(), iota_dimension=0\n n = s32[] constant(37)\n"
     " d = s32[] constant(101)\n p = s32[300] broadcast(n), dimensions={}\n"
     " q = s32[300] broadcast(d), dimensions={}\n r = s32[300] multiply(i, p)\n"
     " s = s32[300] remainder(r, q)\n x = s32[300] convert(s)\n"
     " ROOT t = (s32[5], s32[5]) topk(x), k=5, largest=false\n}\n",
     10,
     {0, 0, 0, 1, 1, 0, 101, 202, 71, 172}},
    {"topk: the first of equals first",
     MODULE " a = f32[4] constant({1,7,7,3})\n"
            " ROOT t = (f32[2], s32[2]) topk(a), k=2, largest=true\n}\n",
     4,
     {7, 7, 1, 2}},
    {"while and a call",
     "HloModule m\nbody {\n s = (s32[], f32[2]) parameter(0)\n"
     " i = s32[] get-tuple-element(s), index=0\n x = f32[2] get-tuple-element(s), index=1\n"
     " one = s32[] constant(1)\n j = s32[] add(i, one)\n y = f32[2] add(x, x)\n"
     " ROOT t = (s32[], f32[2]) tuple(j, y)\n}\ncond {\n s = (s32[], f32[2]) parameter(0)\n"
     " i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(5)\n"
     " ROOT l = pred[] compare(i, n), direction=LT\n}\nENTRY e {\n z = s32[] constant(0)\n"
     " a = f32[2] constant({1,3})\n t = (s32[], f32[2]) tuple(z, a)\n"
     " ROOT w = (s32[], f32[2]) while(t), condition=cond, body=body\n}\n",
     3,
     {5, 32, 96}},
    {"conditional by index: beyond the last is the last",
     "HloModule m\nf {\n x = f32[] parameter(0)\n ROOT r = f32[] negate(x)\n}\ng {\n"
     " x = f32[] parameter(0)\n ROOT r = f32[] add(x, x)\n}\nENTRY e {\n i = s32[] constant(7)\n"
     " a = f32[] constant(4)\n"
     " ROOT c = f32[] conditional(i, a, a), branch_computations={f, g}\n}\n",
     1,
     {8}},
    {"random bits: the known answer of ThreeFry 2x32, 20 rounds",
     MODULE " s = u64[2] constant({0, 0})\n"
            " ROOT r = (u64[2], u32[2]) rng-bit-generator(s), algorithm=rng_three_fry\n}\n",
     4,
     {0, 1, 1797259609, 2579123966}},
    {"batch-norm-inference",
     MODULE
     " x = f32[1,2] constant({{3, 10}})\n s = f32[2] constant({2, 1})\n"
     " o = f32[2] constant({1, 0})\n m = f32[2] constant({1, 4})\n v = f32[2] constant({4, 9})\n"
     " ROOT b = f32[1,2] batch-norm-inference(x, s, o, m, v), epsilon=0, feature_index=1\n}\n",
     2,
     {3, 2}},
    {"a product by its custom call",
     MODULE " a = f32[1,2] constant({{1,2}})\n b = f32[2,1] constant({{3},{4}})\n"
            " c = (f32[1,1], s8[0]) custom-call(a, b), custom_call_target=\"__cublas$gemm\", "
            "backend_config={\"gemm_backend_config\":{\"alpha_real\":2,\"beta\":0,"
            "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],"
            "\"rhs_contracting_dimensions\":[\"0\"],\"lhs_batch_dimensions\":[],"
            "\"rhs_batch_dimensions\":[]},\"epilogue\":\"DEFAULT\"}}\n"
            " ROOT g = f32[1,1] get-tuple-element(c), index=0\n}\n",
     1,
     {22}},
};

static void shapes(void **state)
{
    UNUSED_STATE(state);
    EXEC_ALL(moves);
    EXEC_ALL(reductions);
    EXEC_ALL(products);
    EXEC_ALL(flow);
}

/* Two partitions: each brings its number plus one. */
static void partitions(void **state)
{
    static const char text[] =
        "HloModule m, num_partitions=2\nadd {\n x = u32[] parameter(0)\n y = u32[] parameter(1)\n"
        " ROOT r = u32[] add(x, y)\n}\nENTRY e {\n p = u32[] partition-id()\n o = u32[] constant(1)\n"
        " v = u32[] add(p, o)\n s = u32[] all-reduce(v), replica_groups={{0,1}}, to_apply=add\n"
        " w = u32[1] reshape(v)\n g = u32[2] all-gather(w), replica_groups=[1,2]<=[2], dimensions={0}\n"
        " c = u32[] collective-permute(v), source_target_pairs={{0,1}}\n"
        " ROOT t = (u32[], u32[2], u32[]) tuple(s, g, c)\n}\n";
    static const double want[] = {3, 1, 2, 0, 3, 1, 2, 1};
    struct rp_err err = RP_ERR_INIT;
    double got[64];
    size_t n;

    UNUSED_STATE(state);
    assert_ok(exec_run(text, &rp_engine_ref, 0, got, &n, &err), &err);
    assert_int_equal(n, 8);
    for (size_t i = 0; i < 8; i++)
        assert_true(got[i] == want[i]);
}

/* What cannot run is refused by its name, before anything runs. */
static void refusals(void **state)
{
    static const struct {
        const char *text, *part;
        enum rp_code code;
    } cases[] = {
        {MODULE " ROOT c = f32[2] custom-call(), custom_call_target=\"nobody$knows\"\n}\n",
         "nobody$knows", RP_UNSUPPORTED},
        {MODULE " a = f32[20] constant({...})\n ROOT n = f32[20] negate(a)\n}\n",
         "omits its values", RP_FORMAT},
        {MODULE " a = f32[2] constant({1,2})\n ROOT s = f32[1] slice(a), slice={[1:5]}\n}\n",
         "bounds", RP_FORMAT},
        {MODULE
         " a = f32[2] constant({1,2})\n b = f32[3] constant({1,2,3})\n"
         " ROOT d = f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n}\n",
         "differ", RP_FORMAT},
        {MODULE " a = f32[2,2] constant({{1,2},{3,4}})\n b = f32[4,2] "
                "constant({{1,2},{3,4},{5,6},{7,8}})\n m = u16[2,1] constant({{1},{2}})\n"
                " ROOT d = f32[2,2] dot(a, b, m), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0}, sparsity=L.1@2:4\n}\n",
         "sparse operands are not supported", RP_UNSUPPORTED},
        {MODULE " a = f32[2] constant({1,2})\n n = s32[] constant(1)\n"
                " d = f32[<=2] set-dimension-size(a, n), dimensions={0}\n"
                " ROOT o = f32[<=2,<=2] dot(d, d)\n}\n",
         "operands of dynamic size are not supported", RP_UNSUPPORTED},
        {MODULE " a = f32[2] constant({1,2})\n ROOT s = f32[2] and(a, a)\n}\n", "f32",
         RP_UNSUPPORTED},
        {MODULE " a = f32[1,3,1] constant({{{1},{2},{3}}})\n b = f32[1,1,1] constant({{{1}}})\n"
                " ROOT s = f32[1,3,1] convolution(a, b), window={size=1 lhs_dilate=0}, "
                "dim_labels=b0f_0io->b0f\n}\n",
         "dilation of 0", RP_FORMAT},
        {MODULE " a = f32[1,3,1] constant({{{1},{2},{3}}})\n b = f32[1,1,1] constant({{{1}}})\n"
                " ROOT s = f32[1,3,1] convolution(a, b), window={size=1 "
                "pad=9000000000000000000_0}, dim_labels=b0f_0io->b0f\n}\n",
         "too large", RP_FORMAT},
    };
    double got[64];
    size_t n;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_err err = RP_ERR_INIT;

        assert_code(exec_run(cases[i].text, &rp_engine_fast, 0, got, &n, &err), cases[i].code);
        assert_contains(err.text, cases[i].part);
    }
}

int test_ref_shape(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(partitions),
                                       cmocka_unit_test(refusals)};

    return cmocka_run_group_tests_name("ref_shape", tests, NULL, NULL);
}
