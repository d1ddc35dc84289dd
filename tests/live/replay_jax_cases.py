# SPDX-License-Identifier: Apache-2.0
"""More programs for replay_jax: rare attributes of every operation, edges of conversions, linear algebra, layers.

    add(case, normal, below)          every `case(name, function, *arguments)`
    partitioned()                     name: (function, mesh, specs, arguments) for four devices
"""
import ctypes, glob, os, sys

import jax, jax.numpy as jnp, jax.scipy as jsp, ml_dtypes, numpy as np
from jax import lax

rng = np.random.default_rng(7)
FLOATS = (np.float32, np.float64, jnp.bfloat16, jnp.float16)
F8 = [getattr(ml_dtypes, "float8_" + n) for n in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "e4m3", "e3m4")]
KEY = np.array([12, 34], np.uint32)


def name(d):
    return np.dtype(d).name


def of(shape, d, scale=1):
    """Normal numbers of any type, complex ones too."""
    a = rng.standard_normal(shape) * scale
    return (a + 1j * rng.standard_normal(shape) if np.issubdtype(d, np.complexfloating) else a).astype(d)


def conv(x, w, dims=("NHWC", "HWIO", "NHWC"), strides=None, padding="SAME", **more):
    return lax.conv_general_dilated(x, w, strides or (1,) * (x.ndim - 2), padding, dimension_numbers=dims, **more)


def dots(case, normal, below):
    case("dot_orders", lambda a, b: [lax.dot_general(a, b, (((1, 3), (2, 0)), ((2,), (1,)))), lax.dot_general(a, b, (((3, 1), (0, 2)), ((2,), (1,)))),
         lax.dot_general(a, b, (((3,), (0,)), ((), ()))), lax.dot_general(a, a, (((), ()), ((0, 2, 1, 3), (0, 2, 1, 3))))], normal(2, 3, 4, 5), normal(5, 4, 3, 6))
    for d in (np.float32, jnp.bfloat16, jnp.float16):
        case("dot_preferred_" + name(d), lambda a, b: [jnp.matmul(a, b, preferred_element_type=jnp.float32), (a @ b).astype(jnp.float32),
             jnp.matmul(a, b, precision=lax.Precision.HIGHEST)], normal(17, 33, dtype=d), normal(33, 9, dtype=d))
    case("dot_algorithms", lambda a, b: [lax.dot(a, b, precision=p) for p in ("BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "F32_F32_F32")],
         normal(17, 33), normal(33, 9))
    case("dot_s8_large", lambda a, b: [jnp.matmul(a, b, preferred_element_type=jnp.int32), jnp.matmul(a.astype(np.uint8), b.astype(np.uint8), preferred_element_type=jnp.int32)],
         of((70, 300), np.int8, 50), of((300, 130), np.int8, 50))
    case("dot_s8", lambda a, b: [jnp.matmul(a, b, preferred_element_type=jnp.int32), a @ b], of((8, 16), np.int8, 50), of((16, 8), np.int8, 50))
    case("dot_mixed", lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32), normal(8, 16, dtype=jnp.bfloat16), normal(16, 8))
    case("dot_empty", lambda a, b: [a @ b, a.sum(1), a.max(1, initial=-1.)], np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32))
    case("dot_pred", lambda a, b: a @ b, below(2, 4, 5).astype(bool), below(2, 5, 3).astype(bool))
    nibbles = below(16, 8, 8).astype(np.int8) - 8
    case("s4", lambda a, b: [a.astype(jnp.float32) @ b, a + a, a * a, a.T, jnp.where(a > 2, a, -a), lax.bitcast_convert_type(a.astype(jnp.int8), jnp.int4)],
         nibbles.astype(ml_dtypes.int4), normal(8, 3))
    case("u4", lambda a: [a // np.asarray(3, ml_dtypes.uint4), a >> np.asarray(1, ml_dtypes.uint4), ~a, lax.population_count(a), lax.clz(a)],
         below(16, 6, 7).astype(ml_dtypes.uint4))
    case("ragged", lambda a, b, g: [lax.ragged_dot(a, b, g), jax.grad(lambda a, b: lax.ragged_dot(a, b, g).sum(), (0, 1))(a, b)],
         normal(11, 4), normal(3, 4, 5), np.array([3, 6, 2], np.int32))


def convolutions(case, normal, below):
    case("conv_1d", lambda x, w: [conv(x, w, ("NWC", "WIO", "NWC")), conv(x, w, ("NWC", "WIO", "NWC"), (3,), ((2, 5),)), conv(x, w, ("NWC", "WIO", "NWC"), (1,), ((-2, -1),))],
         normal(2, 20, 3), normal(5, 3, 4))
    volume = ("NCDHW", "OIDHW", "NCDHW")
    case("conv_3d", lambda x, w: [conv(x, w, volume, (2, 1, 2)), jax.grad(lambda a, b: (conv(a, b, volume, (2, 1, 2)) ** 2).sum(), (0, 1))(x, w)],
         normal(2, 3, 5, 6, 4), normal(4, 3, 2, 3, 3))
    case("conv_cut", lambda x, w: conv(x, w, strides=(1, 2), padding=((-1, 3), (2, -2)), lhs_dilation=(2, 3), rhs_dilation=(2, 1)), normal(2, 6, 7, 3), normal(3, 2, 3, 4))
    case("conv_depthwise", lambda x, w: jax.grad(lambda a, b: (conv(a, b, strides=(2, 2), feature_group_count=6) ** 2).sum(), (0, 1))(x, w), normal(2, 7, 7, 6), normal(3, 3, 1, 12))
    case("conv_transposed", lambda x, w: [lax.conv_transpose(x, w, (2, 3), "SAME"), lax.conv_transpose(x, w, (2, 2), "VALID", rhs_dilation=(2, 1))], normal(2, 4, 5, 3), normal(3, 3, 3, 4))
    case("conv_s8", lambda x, w: conv(x, w, preferred_element_type=jnp.int32), of((2, 6, 6, 4), np.int8, 9), of((3, 3, 4, 8), np.int8, 9))
    case("conv_c64", conv, of((1, 5, 5, 2), np.complex64), of((3, 3, 2, 2), np.complex64))
    case("conv_point", lambda x, w: lax.conv_general_dilated(x, w, (), (), dimension_numbers=lax.ConvDimensionNumbers((0, 1), (1, 0), (0, 1))), normal(3, 4), normal(4, 5))


def places(case, normal, below):
    for mode in ("clip", "fill"):
        case("gather_" + mode, lambda x, i, mode=mode: [lax.gather(x, i, lax.GatherDimensionNumbers((1, 2), (0,), (0, 2)), (1, 3, 2), mode=mode, fill_value=-7.),
             jnp.take_along_axis(x, jnp.abs(i)[:, :1, None] % 3 * jnp.ones((1, 1, 4), jnp.int32), 0, mode=mode)], normal(6, 5, 4), below(14, 6, 2) - 4)
    case("gather_types", lambda x, i: [x[i.astype(t)] for t in (jnp.int64, jnp.uint32, jnp.int8, jnp.uint8)], normal(6, 3), below(6, 9))
    case("gather_wrap", lambda x, i: [x[i], x.at[i].get(mode="fill"), jnp.take(x, i, axis=1, mode="wrap"), jnp.take(x, i, axis=0, fill_value=np.nan)], normal(6, 5), below(20, 11) - 10)
    case("gather_batches", lambda x, i: [jax.vmap(jax.vmap(lambda a, b: a[b]))(x, i), jax.vmap(lambda a, b: lax.dynamic_slice(a, (b[0, 0], b[0, 1]), (2, 2)))(x, i)],
         normal(3, 6, 5), below(5, 3, 6, 5))
    for op in ("set", "add", "multiply", "min", "max"):
        case("scatter_" + op, lambda x, i, u, op=op: [getattr(x.at[i], op)(u, mode=m) for m in ("clip", "drop")], normal(6, 5), np.array([0, 9, 3, -2, 5, -20]), normal(6, 5))
    where = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    case("scatter_windows", lambda x, i, u: [lax.scatter_add(x, i, u, where, mode="drop"), lax.scatter(x, i, u, where, mode="clip"), lax.scatter_mul(x, i, u, where)],
         normal(7, 8), below(9, 5, 2) - 1, normal(5, 2, 3))
    case("segments", lambda u, i: [f(u, i, 9) for f in (jax.ops.segment_sum, jax.ops.segment_max, jax.ops.segment_prod)], normal(30, 3, dtype=jnp.bfloat16), below(7, 30))
    case("clamped_slices", lambda x, i, j: [lax.dynamic_slice(x, (i, j), (2, 3)), lax.dynamic_update_slice(x, x[:2, :3], (j, i)), jnp.roll(x, (i, j), (0, 1))],
         normal(5, 6), np.int32(-3), np.int32(77))


def windows(case, normal, below):
    case("window_dilated", lambda x: [lax.reduce_window(x, np.float32(0), lax.add, (3, 2), (2, 3), ((1, 2), (0, 3)), (2, 3), (2, 2)),
         lax.reduce_window(x, np.float32(1), lax.mul, (2, 2), (1, 1), "SAME"), lax.reduce_window(x, np.float32(.5), lambda a, b: a * .5 + b, (1, 3), (1, 1), "VALID")], normal(7, 9))
    case("window_pairs", lambda x, y: lax.reduce_window((x, y), (np.float32(-np.inf), np.int32(-1)), lambda a, b: (jnp.where(a[0] >= b[0], a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1])),
         (2, 2), (2, 2), "SAME"), normal(5, 7), np.arange(35, dtype=np.int32).reshape(5, 7))
    case("window_pred", lambda x: [lax.reduce_window(x > 3, False, lax.bitwise_or, (3,), (2,), "VALID"), lax.reduce_window(x > 3, True, lax.bitwise_and, (3,), (2,), "SAME")], below(9, 12))
    case("pool_min_grad", jax.grad(lambda a: (lax.reduce_window(a, np.float32(np.inf), lax.min, (1, 2, 3, 1), (1, 2, 1, 1), "VALID") ** 3).sum()), normal(2, 7, 6, 3))
    case("cumulative", lambda x: [f(x, a, reverse=r) for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp) for a in (0, 1) for r in (False, True)], normal(6, 37))
    case("scans", lambda x: [lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x * 2), axis=1), lax.associative_scan(jnp.maximum, x, reverse=True)], normal(13, 7))
    case("reduce_bf16", lambda x: [lax.reduce(x, np.array(0, x.dtype), lax.add, d) for d in ((0,), (1,), (0, 1))], normal(70, 90, dtype=jnp.bfloat16))
    case("reduce_pairs", lambda x: [lax.reduce((x, x * 2), (np.float32(0), np.float32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)), jnp.var(x, 0, ddof=1), jnp.ptp(x, 0)], normal(11, 19))


def orders(case, normal, below):
    case("sort_ties", lambda x: [jnp.argmax(x, 1), jnp.argsort(x, 1), jnp.argsort(x, 1, descending=True), lax.top_k(x, 4), jnp.unique(x, size=6, return_counts=True),
         jnp.searchsorted(jnp.sort(x[0]), x[1]), jnp.histogram(x, 4)[0]], below(5, 6, 12).astype(np.float32))
    case("sort_special", lambda x: [jnp.sort(x), jnp.argsort(x), lax.top_k(x, 5), jnp.nanargmax(x), lax.argmax(x, 0, jnp.uint8)],
         np.array([0., -0., np.nan, -np.nan, np.inf, -np.inf, 3, -3, 0., -0.], np.float32))
    for d in (jnp.bfloat16, np.int8, np.uint64, bool):
        case("sort_" + name(d), lambda x: [jnp.sort(x, 0), jnp.argsort(x, 1), lax.sort((x, jnp.arange(48).reshape(4, 12)), num_keys=1)], below(9, 4, 12).astype(d))
    case("sort_c64", lambda x: [jnp.sort(x), jnp.sort_complex(x)], (below(3, 20) + 1j * below(3, 20)).astype(np.complex64))
    case("approximate_top", lambda x: [lax.approx_max_k(x, 5), lax.approx_min_k(x, 3, reduction_dimension=0), lax.approx_max_k(x, 2, recall_target=.5)], normal(7, 40))


def conversions(case, normal, below):
    edge = np.array([0, -0., 6e-8, 6e-5, .5, 1.5, 2.5, .9999999, 127.5, 128, 255.5, 32767.6, 65504, 65519.9, 65520, 65536, 1e9, 2147483648, 4294967296, 9.3e18, 1.9e19, 3e38, np.inf,
                     448, 464, 465, 480, 57344, 61440, 61441, 240, 248, 30, 15.5, 2**-10, 2**-17, 3 * 2**-10], np.float32)
    edge = np.concatenate([edge, -edge, [np.nan], rng.standard_normal(50), 2. ** rng.uniform(-20, 18, 80)]).astype(np.float32)
    with np.errstate(over="ignore"):
        for d in FLOATS:
            case("to_int_" + name(d), lambda x: [x.astype(t) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, bool)], edge.astype(d))
            case("to_float_" + name(d), lambda x: [x.astype(t).astype(jnp.float32) for t in F8 + [jnp.float16, jnp.bfloat16]], edge.astype(d))
        case("reduce_precision", lambda x, y: [lax.reduce_precision(x, e, m) for e, m in ((5, 10), (8, 7), (4, 3), (5, 2), (8, 0), (3, 20))] + [lax.reduce_precision(y, 5, 4)],
             edge, edge.astype(jnp.bfloat16))
    for d in F8:
        case("all_" + name(d), lambda b, d=d: [lax.bitcast_convert_type(b, d).astype(t) for t in (jnp.float32, jnp.bfloat16, jnp.int8, bool)], np.arange(256, dtype=np.uint8))
        case("ops_" + name(d), lambda x, y: [x + y, x * y, x / y, -x, jnp.maximum(x, y), x < y, jnp.exp(x), jnp.sqrt(jnp.abs(x)), jnp.sort(x, 0), x @ y.T], of((8, 8), d), of((8, 8), d))
    case("from_int", lambda a, b: [v.astype(t) for v in (a, b) for t in (jnp.int8, jnp.uint32, jnp.float32, jnp.float16, jnp.bfloat16, jnp.float64, bool, jnp.int4, jnp.complex64)],
         rng.integers(-2**63, 2**63 - 1, 50), rng.integers(0, 2**64 - 1, 50, dtype=np.uint64))
    case("bits", lambda f, d, b: [lax.bitcast_convert_type(f, jnp.float16), lax.bitcast_convert_type(f.reshape(-1, 2), jnp.int64), lax.bitcast_convert_type(d, jnp.uint16),
         lax.bitcast_convert_type(b, jnp.uint4), lax.bitcast_convert_type(b.reshape(-1, 4), jnp.int32)], normal(4, 6), of((4, 6), np.float64), below(127, 4, 8).astype(np.int8))


def functions(case, normal, below):
    x = np.concatenate([[0, -0., 1, -1, np.inf, -np.inf, np.nan, .5, 2, 10, -10, 50, 88, -104, 1e-3, 1e10], rng.standard_normal(40) * 3])
    for d in FLOATS:
        case("pairs_" + name(d), lambda x, y: [lax.atan2(x, y), lax.pow(x, y), lax.rem(x, y), jnp.hypot(x, y), jnp.remainder(x, y), jnp.maximum(x, y), jnp.fmin(x, y), jnp.logaddexp(x, y),
             lax.integer_pow(x, 3), lax.integer_pow(x, -2), x >= y, lax.clamp(y, x, y + 1)], np.repeat(x[:16], 16).astype(d), np.tile(x[:16], 16).astype(d))
    for d in (np.float32, np.float64):
        case("special_" + name(d), lambda x, y: [lax.lgamma(x), lax.digamma(x), lax.erfc(x), lax.erf_inv(x / 10), lax.bessel_i0e(x), lax.bessel_i1e(x), lax.igamma(x, y), lax.igammac(x, y),
             jsp.special.betainc(x, y, x / (x + y)), lax.polygamma(jnp.ones_like(x), y), lax.zeta(x + 1.5, y), jsp.special.log_ndtr(x)], rng.uniform(.1, 9, 20).astype(d), rng.uniform(.1, 9, 20).astype(d))
    for d in (np.complex64, np.complex128):
        case("functions_" + name(d), lambda z: [f(z) for f in (jnp.expm1, jnp.log1p, lax.rsqrt, jnp.cos, jnp.tan, jnp.sinh, jnp.arcsin, jnp.arccos, jnp.arctan, jnp.arcsinh, jnp.arctanh,
             jnp.arccosh, jnp.angle, lax.logistic)] + [z ** 2.5, z.prod(), jnp.cumsum(z)], of(40, d))
        case("fft_" + name(d), lambda z: [jnp.fft.ifft(z, axis=0), jnp.fft.fftn(z.reshape(2, 3, 10)), jnp.fft.irfft(z, n=11), jnp.fft.irfftn(z.reshape(2, 3, 10)), jnp.fft.hfft(z)], of((6, 10), d))


def matrices(case, normal, below):
    for d in (np.float32, np.float64, np.complex64, np.complex128):
        a = of((2, 5, 5), d)
        s, tall = (a @ np.swapaxes(a, 1, 2).conj() + 5 * np.eye(5)).astype(d), a[:, :, :3].copy()
        case("triangles_" + name(d), lambda s, b: [lax.linalg.triangular_solve(s, b, left_side=l, lower=w, transpose_a=t, conjugate_a=c, unit_diagonal=u) for l in (0, 1) for w in (0, 1)
             for t in (0, 1) for c in (0, 1) for u in (0, 1)], s, a)
        case("lu_" + name(d), lambda a, b: [lax.linalg.lu(a), lax.linalg.lu(b), jnp.linalg.slogdet(a), jnp.linalg.inv(a), jnp.linalg.solve(a, b)], a, tall)
        case("qr_" + name(d), lambda a, t, w: [jnp.linalg.qr(a), jnp.linalg.qr(t), jnp.linalg.qr(w), jnp.linalg.qr(t, mode="complete")], a, tall, np.swapaxes(tall, 1, 2).copy())
        case("eigh_" + name(d), lambda s: [jnp.linalg.eigh(s), jnp.linalg.eigvalsh(s), jnp.linalg.eigh(s, UPLO="U")], (a + np.swapaxes(a, 1, 2).conj()).astype(d))
    case("linalg_grad", lambda s: [jax.grad(lambda s: jnp.linalg.cholesky(s).sum())(s), jax.grad(lambda s: jnp.linalg.eigvalsh(s + s.mT).sum() ** 2)(s),
         jax.grad(lambda s: jnp.abs(jnp.linalg.qr(s)[1]).sum())(s), jax.grad(lambda s: jnp.linalg.inv(s).sum())(s)], s.real)


def has_lapack():
    for library in [os.environ.get("REPRISE_LAPACK")] if os.environ.get("REPRISE_LAPACK") else ["libopenblas.so.0", "liblapack.so.3"]:
        try:
            return bool(ctypes.CDLL(library))
        except OSError:
            pass
    if not os.environ.get("REPRISE_LAPACK") and glob.glob(f"{sys.prefix}/lib/python3*/site-packages/scipy.libs/libscipy_openblas*.so"):
        os.environ["VIRTUAL_ENV"] = sys.prefix  # where replay finds the library that JAX calls
        return True
    print("replay_jax: no LAPACK: its programs are left out")
    return False


def spectra(case, normal, below):
    """What LAPACK runs. Signs and phases of vectors depend on the library, so factors are multiplied together again."""
    if not has_lapack():
        return
    H = lambda a: jnp.swapaxes(a, -1, -2).conj()

    def again(usv):
        return (usv[0] * usv[1][..., None, :]) @ usv[2]
    for d in (np.float32, np.float64, np.complex64, np.complex128):
        a, n = of((2, 5, 5), d), name(d)
        tall, wide, big = a[:, :, :3].copy(), a[0, :3].copy(), of((40, 40), d)
        case("svd_" + n, lambda t, w: [again(jnp.linalg.svd(t, full_matrices=False)), again(jnp.linalg.svd(w, full_matrices=False)), jnp.linalg.svd(t, compute_uv=False),
             jnp.abs(jnp.linalg.svd(w)[2] @ H(jnp.linalg.svd(w)[2])), jnp.linalg.pinv(t), jnp.linalg.norm(w, 2), jnp.linalg.matrix_rank(t)], tall, wide)
        case("svd_qr_" + n, lambda t: [lax.linalg.svd(t, full_matrices=False, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR),
             again(lax.linalg.svd(t, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.QR))], tall)
        case("eig_" + n, lambda a: [jnp.sort(jnp.abs(jnp.linalg.eigvals(a))), *(lambda w, v: (v * w[..., None, :] @ jnp.linalg.inv(v),))(*jnp.linalg.eig(a)),
             *(lambda w, l: (H(l) @ a - w[..., :, None] * H(l),))(*lax.linalg.eig(a, compute_right_eigenvectors=False))], a)
        case("schur_" + n, lambda a: (lambda t, z: [z @ t @ H(z), z @ H(z)])(*lax.linalg.schur(a)), a)
        case("hessenberg_" + n, lambda a: [*lax.linalg.hessenberg(a), *jax.vmap(lambda m: jsp.linalg.hessenberg(m, calc_q=True))(a)], a)
        case("diagonals_" + n, lambda s: [lax.linalg.tridiagonal(s, lower=w) for w in (True, False)], (a + np.swapaxes(a, 1, 2).conj()).astype(d))
        case("tridiagonal_" + n, lambda l, c, u, b: lax.linalg.tridiagonal_solve(l, c, u, b), of((2, 6), d), of((2, 6), d) + 5, of((2, 6), d), of((2, 6, 3), d))
        case("eigh_big_" + n, lambda s: (lambda v, w: [w, v * w @ H(v)])(*lax.linalg.eigh(s)), (big + big.conj().T).astype(d))
        case("qr_pivots_" + n, lambda a: jsp.linalg.qr(a, pivoting=True), tall[0])
        if hasattr(lax.linalg, "ormqr"):
            case("ormqr_" + n, lambda a, t, c: [lax.linalg.ormqr(a, t, c, left=l, transpose=u) for l in (True, False) for u in (True, False)], a, of((2, 5), d), a)
    case("lstsq", lambda a, b: [jnp.linalg.lstsq(a, b)[0], jnp.linalg.cond(a)], normal(7, 3), normal(7))
    case("svd_grad", lambda a: [jax.grad(lambda a: jnp.linalg.svd(a, compute_uv=False).sum())(a), jax.grad(lambda a: jnp.linalg.norm(a, "nuc"))(a)], normal(5, 4))


def control(case, normal, below):
    case("nested_loops", lambda x, n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, lax.fori_loop(0, s[0] + 1, lambda i, a: lax.cond(i % 2 == 0, lambda b: b * 1.1, lambda b: b - .1, a),
         s[1])), (0, x)), normal(4, 3), np.int64(6))
    case("scan_back", lambda x, h: [lax.scan(lambda c, y: ((c[0] * .9 + y, c[1] + 1), (c[0], y * c[1])), (h, 0), x, reverse=True), lax.scan(lambda c, _: (c * 1.5, c), h, None, length=4)],
         normal(7, 5), normal(5))
    case("switch_out", lambda k, x: [lax.switch(k[i], [jnp.sin, jnp.cos, lambda a: a @ a.T @ a], x) for i in range(4)], np.array([0, 2, -5, 9], np.int32), normal(3, 3))
    case("loops_of_batches", lambda x: [lax.map(lambda r: lax.cond(r.sum() > 0, jnp.sin, jnp.cos, r), x), jax.vmap(lambda r: lax.while_loop(lambda v: v.sum() < 5, lambda v: v + jnp.abs(v) + .1, r))(x)],
         normal(5, 3))
    case("short_swaps", lambda x, y: [lax.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, s[2], s[1] * .5 + s[2], s[3]), (0, x, y, jnp.arange(3))), lax.fori_loop(0, 5, lambda i, s: (s[1], s[0]), (x, y)),
         lax.fori_loop(0, 5, lambda i, s: (s[1], s[0] + 1, s[0] * s[1]), (x[0], y[0], x[1]))], normal(4), normal(4))
    case("short_sums", lambda x: lax.scan(lambda h, t: (h * .5 + t + h.mean(1, keepdims=True) - h.max(0), (h.sum(0), jnp.argmax(h, 1), h.T[1])), jnp.ones((3, 4), x.dtype), x), normal(9, 3, 4))
    case("short_updates", lambda x, i: lax.scan(lambda s, t: ((s[0] + 1, s[1] * .9 + t[0], s[2].at[t[1]].add(t[0].sum()), lax.dynamic_update_index_in_dim(s[3], t[0] + s[3][t[1]], s[0], 0)),
         jnp.where(s[0] % 3 == 0, s[1], t[0])), (jnp.int32(0), jnp.zeros(4, x.dtype), jnp.zeros(7, x.dtype), x), (x, i)), normal(11, 4), below(7, 11))
    case("short_best_path", lambda e, t: lax.scan(lambda s, o: (lambda m: (m.max(0) + o, m.argmax(0)))(s[:, None] + t), e[0], e[1:]), normal(12, 5), normal(5, 5))
    case("short_complex", lambda a, x: [lax.scan(lambda h, t: (a * h + t, h.real), jnp.zeros(4, a.dtype), x), lax.scan(lambda h, t: (jnp.tanh(h + t.real.astype(h.dtype)), h.sum()), jnp.zeros(4, jnp.bfloat16), x)],
         np.exp(1j * normal(4)).astype(np.complex64), normal(20, 4).astype(np.complex64))
    case("empty", lambda x: [jnp.concatenate([x[:0], x]), x[:0].sum(0), x[:0] @ x.T, jnp.sort(x[:0]), lax.scan(lambda c, y: (c + y, y), x[0], x[:0])], normal(3, 4))
    case("draws", lambda k: [jax.random.randint(k, (11,), -5, 17), jax.random.categorical(k, jnp.zeros((4, 6))), jax.random.truncated_normal(k, -1, 1, (8,)), jax.random.gamma(k, 2.5, (6,)),
         jax.random.poisson(k, 4., (9,)), jax.random.choice(k, 10, (4,), replace=False)], KEY)


def norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) * g + b


def experts(x, gate, up, down):
    v, i = lax.top_k(jax.nn.softmax((x @ gate).astype(jnp.float32)), 2)
    share = (jax.nn.one_hot(i, 4, dtype=jnp.float32) * (v / v.sum(-1, keepdims=True))[..., None]).sum(1)
    return jnp.einsum("te,etd->td", share.astype(x.dtype), jnp.einsum("etf,efd->etd", jax.nn.silu(jnp.einsum("td,edf->etf", x, up)), down))


def flash(q, k, v):
    def body(i, c):
        o, m, l = c
        s = jnp.dot(q, lax.dynamic_slice_in_dim(k, i * 4, 4).T, preferred_element_type=jnp.float32)
        n = jnp.maximum(m, s.max(-1))
        p, a = jnp.exp(s - n[:, None]), jnp.exp(m - n)
        return o * a[:, None] + jnp.dot(p.astype(v.dtype), lax.dynamic_slice_in_dim(v, i * 4, 4), preferred_element_type=jnp.float32), n, l * a + p.sum(-1)
    o, _, l = lax.fori_loop(0, 4, body, (jnp.zeros((16, 8), jnp.float32), jnp.full(16, -jnp.inf, jnp.float32), jnp.zeros(16, jnp.float32)))
    return (o / l[:, None]).astype(q.dtype)


def lstm(x, w, u, b):
    def cell(state, x):
        i, f, g, o = jnp.split(x @ w + state[0] @ u + b, 4, -1)
        c = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    return lax.scan(cell, (jnp.zeros((3, 8), x.dtype),) * 2, x)[1].astype(jnp.float32).mean()


def layers(case, normal, below):
    for d in (np.float32, jnp.bfloat16, jnp.float16):
        case("norm_" + name(d), jax.value_and_grad(lambda x, g, b: (norm(x, g, b) ** 2).astype(jnp.float32).mean(), (0, 1, 2)), of((4, 16), d), of(16, d), of(16, d))
        case("experts_" + name(d), lambda *a: [experts(*a), jax.grad(lambda w: experts(a[0], a[1], w, a[3]).astype(jnp.float32).sum())(a[2])], of((10, 8), d), of((8, 4), d), of((4, 8, 6), d), of((4, 6, 8), d))
        case("flash_" + name(d), flash, *(of((16, 8), d) for _ in range(3)))
        case("lstm_" + name(d), jax.value_and_grad(lstm, (1, 2, 3)), of((5, 3, 6), d), of((6, 32), d, .3), of((8, 32), d, .3), of(32, d))
        case("activations_" + name(d), lambda x: [f(x) for f in (jax.nn.relu6, jax.nn.gelu, jax.nn.silu, jax.nn.softplus, jax.nn.elu, jax.nn.mish, jax.nn.hard_swish, jax.nn.log_sigmoid, jax.nn.glu,
             jax.nn.log_softmax, jax.nn.standardize, jax.nn.logsumexp)], of((5, 16), d, 2))
        case("embedding_" + name(d), lambda e, i, w: jax.value_and_grad(lambda e, w: -jnp.take_along_axis(jax.nn.log_softmax((e[i].mean(1) @ w).astype(jnp.float32)), i[:, :1], 1).mean(), (0, 1))(e, w),
             of((11, 6), d), below(11, 5, 4), of((6, 11), d))
    case("mixed", lambda w, x, y: jax.value_and_grad(lambda w: ((jax.nn.relu(x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32) - y) ** 2).mean() * 128)(w), normal(8, 6), normal(10, 8), normal(10, 6))
    case("quantised", lambda a, w: lax.dot_general(jnp.round(a * 30).astype(jnp.int8), jnp.round(w * 30).astype(jnp.int8), (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32) * np.float32(1 / 900),
         normal(8, 32), normal(32, 16))
    case("resize", lambda x: [jax.image.resize(x, (2, 16, 16, 8), "nearest"), jax.image.resize(x, (2, 12, 12, 8), "bilinear")], normal(2, 8, 8, 8))


def rare(case, normal, below):
    """Kinds that models use seldom: several keys and results, small types, rules of gradients, loops of batches, edges of windows."""
    i4 = lambda *s: (below(16, *s).astype(np.int8) - 8).astype(ml_dtypes.int4)
    # linear algebra
    spd = lambda n, b=2: (lambda a: (a @ np.swapaxes(a, 1, 2) + n * np.eye(n, dtype=np.float32)).astype(np.float32))(normal(b, n, n))
    case("rare_expm", lambda a: [jsp.linalg.expm(a * .3), jsp.linalg.expm(a * 5), jnp.linalg.matrix_power(a, 5), jnp.linalg.matrix_power(a, -2)], normal(4, 4))
    case("rare_toeplitz", lambda c, r, x: [jsp.linalg.toeplitz(c, r) @ x, jsp.linalg.block_diag(c[:, None], r[None]), jnp.kron(c[:3, None], r[None, :2])], normal(6), normal(5), normal(5, 2))
    case("rare_cho_solve", lambda s, b: [jsp.linalg.cho_solve((jnp.linalg.cholesky(s), True), b), jax.jacrev(lambda s: jnp.linalg.slogdet(s)[1])(s), jax.hessian(lambda b: (b * jnp.linalg.solve(s, b)).sum())(b[..., :1])],
         spd(4), normal(2, 4, 3))
    case("rare_cholesky_update", lambda s, b: [lax.linalg.cholesky(s, symmetrize_input=False), jnp.linalg.cholesky(s.at[0, 0, 0].set(-1))], spd(5), normal(5))
    case("rare_triangular_bf16", lambda s, b: lax.linalg.triangular_solve(jnp.tril(s[0]).astype(jnp.float32), b.astype(jnp.float32), left_side=True, lower=True).astype(jnp.bfloat16), spd(5), normal(5, 2))
    case("rare_power_iteration", lambda a, v: lax.fori_loop(0, 20, lambda i, v: (a @ v) / jnp.linalg.norm(a @ v), v), spd(6)[0], normal(6))
    case("rare_cg", lambda a, b: jsp.sparse.linalg.cg(lambda x: a @ x, b, maxiter=7)[0], spd(6)[0], normal(6))
    # transforms
    case("rare_fft_loops", lambda x: [lax.map(lambda r: jnp.fft.ifft(jnp.fft.fft(r) * jnp.fft.fft(r[::-1])).real, x), jax.grad(lambda x: (jnp.abs(jnp.fft.rfft(x)) ** 2).sum())(x),
         jnp.fft.fftshift(jnp.fft.fft2(x)), jsp.signal.fftconvolve(x[0], x[1]), jnp.convolve(x[0], x[1][:4], "same")], normal(5, 21))
    case("rare_fft_odd", lambda x: [jnp.fft.irfft(jnp.fft.rfft(x, axis=0), n=7, axis=0), jnp.fft.rfft(x, n=3), jnp.fft.rfft(x, n=40), jnp.fft.ihfft(x), jnp.fft.irfftn(jnp.fft.rfftn(x, axes=(1, 0)), s=(9, 7), axes=(1, 0)),
         jnp.fft.fft(x[:, :1]), jnp.fft.rfft(x[:1, :1])], normal(7, 9))
    case("rare_dct_stft", lambda x: [jsp.fft.dct(x), jsp.fft.idct(x), jsp.signal.stft(x[0], nperseg=16)[2]], normal(2, 64))
    # control flow
    case("rare_while_batched", lambda x, n: jax.vmap(lambda x, n: lax.while_loop(lambda s: (s[0] < n) & (s[1].sum() < 50), lambda s: (s[0] + 1, s[1] * 1.2 + .1), (0, x)))(x, n), normal(6, 3), below(9, 6))
    case("rare_while_nested_batched", lambda x: jax.vmap(jax.vmap(lambda a: lax.while_loop(lambda a: a < 10, lambda a: a * a + 1.5, a)))(x), normal(3, 4))
    case("rare_cond_batched", lambda p, x: [jax.vmap(lambda p, x: lax.cond(p, lambda x: jnp.cumsum(x), lambda x: x[::-1], x))(p, x), jax.vmap(lambda p, x: lax.switch(p.astype(int) * 2, [jnp.sin, jnp.cos, jnp.exp], x))(p, x)],
         below(2, 5).astype(bool), normal(5, 4))
    case("rare_cond_grad", lambda x: [jax.grad(lambda x: lax.cond(x.sum() > 0, lambda x: (x ** 3).sum(), lambda x: jnp.exp(x).sum(), x))(x), jax.grad(lambda x: lax.scan(lambda c, t: (jnp.sin(c + t), c * t), x[0], x)[1].sum())(x),
         jax.jvp(lambda x: lax.fori_loop(0, 4, lambda i, x: x * jnp.cos(x) + i, x), (x,), (x * .5,))], normal(6, 3))
    case("rare_scan_unrolled", lambda x: [lax.scan(lambda c, t: (c * .7 + t, {"a": c, "b": (t, c.sum())}), jnp.zeros(3, x.dtype), x, unroll=3), lax.scan(lambda c, t: ((), t * 2), (), x)], normal(7, 3))
    case("rare_loop_empty", lambda x: [lax.fori_loop(5, 2, lambda i, x: x * 2, x), lax.while_loop(lambda x: False, lambda x: x + 1, x), lax.map(lambda r: r * 2, x, batch_size=2), lax.fori_loop(-3, 3, lambda i, x: x + i, x)], normal(5, 2))
    case("rare_remat", lambda x, w: jax.value_and_grad(lambda w: jax.checkpoint(lambda w: jnp.tanh(jax.checkpoint(lambda w: jnp.sin(x @ w))(w) @ w).sum())(w))(w), normal(4, 5), normal(5, 5))

    @jax.custom_vjp
    def clipped(x):
        return x * 3
    clipped.defvjp(lambda x: (x * 3, x), lambda x, g: (jnp.clip(g, -1, 1) * (x > 0),))

    @jax.custom_jvp
    def soft(x):
        return jnp.log1p(jnp.exp(x))
    soft.defjvp(lambda p, t: (soft(p[0]), t[0] * jax.nn.sigmoid(p[0]) * 2))
    case("rare_custom_rules", lambda x: [jax.value_and_grad(lambda x: (clipped(x) ** 2).sum())(x), jax.grad(lambda x: soft(x).sum())(x), jax.jacfwd(soft)(x), jax.hessian(lambda x: soft(x).prod())(x),
         lax.custom_root(lambda y: y ** 3 - x, jnp.ones_like(x), lambda f, y: lax.fori_loop(0, 20, lambda i, y: y - f(y) / (3 * y * y + 1e-3), y), lambda g, y: y / g(jnp.ones_like(y)))], np.abs(normal(5)) + .5)
    case("rare_stop_gradient", lambda x: [jax.grad(lambda x: (lax.stop_gradient(x) * x ** 2).sum())(x), jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), 0).sum())(x), lax.optimization_barrier((x, x + 1))], normal(6))
    case("rare_odeint", lambda y, t: __import__("jax.experimental.ode", fromlist=["odeint"]).odeint(lambda y, t: jnp.stack([y[1], -y[0] * .8]), y, t), np.array([1., .5], np.float32), np.linspace(0, 1, 4).astype(np.float32))
    # small types
    case("rare_i4_rows", lambda a, b: [jnp.sort(a, 1), a.sum(0, dtype=jnp.int32), jnp.where(a > b, a, b), a.T.reshape(-1)[3:40].astype(jnp.int8), lax.dynamic_slice(a, (1, 2), (3, 3)), jnp.concatenate([a, b], 0)[::2].astype(jnp.int32),
         lax.pad(a, np.asarray(-3, ml_dtypes.int4), ((1, 2, 1), (0, -1, 0))), a.at[1].set(b[2]), jnp.take(a, jnp.array([3, 0, 3]), axis=0), a == b], i4(5, 7), i4(5, 7))
    case("rare_i4_product", lambda a, b: [lax.dot_general(a.astype(jnp.int8), b.astype(jnp.int8), (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32),
         a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16)], i4(7, 12), i4(12, 5))
    if hasattr(ml_dtypes, "int2"):
        case("rare_i2", lambda a: [a.astype(jnp.int2).astype(jnp.int8), a.astype(jnp.uint2).astype(jnp.int8)], below(4, 9).astype(np.int8))
    if hasattr(jnp, "float4_e2m1fn"):
        edge = np.concatenate([np.linspace(-8, 8, 67), [0., -0., .25, .75, 1.25, 2.5, 5, np.inf, -np.inf]]).astype(np.float32)
        case("rare_f4", lambda x: [x.astype(jnp.float4_e2m1fn).astype(jnp.float32), lax.reduce_precision(x, 2, 1)], edge)
        case("rare_f8e8m0", lambda x: [jnp.abs(x).astype(jnp.float8_e8m0fnu).astype(jnp.float32)], np.concatenate([2. ** np.arange(-20, 20), [1.5, 3, 1.49, 6.1, 1e30, 1e-30]]).astype(np.float32))
    case("rare_f8_scaled", lambda a, b, s: [(lax.dot_general((a / s).astype(jnp.float8_e4m3fn), (b / s).astype(jnp.float8_e5m2), (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32) * s * s),
         jnp.max((a / s).astype(jnp.float8_e4m3fn), 1).astype(jnp.float32), jnp.argmax((a * 3).astype(jnp.float8_e5m2), 1), jnp.cumsum(a.astype(jnp.float8_e5m2), 1).astype(jnp.float32)], normal(6, 8), normal(8, 5), np.float32(.1))
    case("rare_block_scales", lambda a: (lambda q, s: [q.astype(jnp.int8), s, q.astype(jnp.float32) * s[..., None]])(*(lambda b: (lambda s: (jnp.round(b / s[..., None]).astype(jnp.int4), s))(jnp.abs(b).max(-1) / 7))(a.reshape(4, 4, 8))), normal(4, 32))
    case("rare_reduce_precision_loops", lambda x: [lax.scan(lambda c, t: (lax.reduce_precision(c * 1.01 + t, 8, 7), lax.reduce_precision(c, 4, 3)), x[0], x), lax.reduce_precision(x.astype(jnp.float16), 5, 2), lax.reduce_precision(x.astype(jnp.float64), 8, 23)], normal(9, 5))
    # orders
    case("rare_sort_keys", lambda a, b, x: [lax.sort((a, b, x, x * 2), num_keys=2, dimension=0), lax.sort((b, a, x), num_keys=3, is_stable=False), jnp.lexsort((a[0], b[0])), jax.vmap(jnp.argsort)(x)], below(3, 6, 8), below(2, 6, 8).astype(bool), normal(6, 8))
    case("rare_sort_grad", lambda x: [jax.grad(lambda x: (jnp.sort(x, 1) * jnp.arange(7.)).sum())(x), jax.grad(lambda x: lax.top_k(x, 3)[0].prod())(x), jnp.percentile(x, jnp.array([10., 50., 99.]), axis=1), jnp.quantile(x, .3, method="nearest")], normal(4, 7))
    case("rare_top_k_types", lambda a, b, c: [lax.top_k(a, 3), lax.top_k(b, 2), lax.top_k(c, 4), lax.top_k(a.T.T, a.shape[1])], below(5, 4, 9).astype(np.int8), normal(3, 6, dtype=jnp.bfloat16), below(9, 3, 2, 7).astype(np.uint32))
    case("rare_unique_sets", lambda x, y: [jnp.unique(x, size=9, return_index=True, return_inverse=True, return_counts=True), jnp.intersect1d(x, y, size=6), jnp.bincount(x, length=8), jnp.digitize(x, jnp.array([1, 3, 5])), jnp.isin(x, y)], below(7, 15), below(9, 8))
    # gathers, scatters, slices
    case("rare_gather_clip_modes", lambda x, i: [x.at[i].get(mode=m) for m in ("clip", "fill", "promise_in_bounds")] + [jnp.take_along_axis(x, i[:, None] % 5, 1), x.at[i, :, None].get(mode="fill", fill_value=3)] , normal(6, 5), below(6, 6))
    case("rare_scatter_twice", lambda x, u, i: [x.at[i].apply(jnp.sin), x.at[i, i].multiply(u[:, 0]), x.at[i].power(2), x.at[:, i].min(u.T[:6]), x.at[i].divide(u + 9), x.at[::2, 1::2].add(1), x.at[-1, i].set(u[:, 1])], normal(6, 6), normal(6, 6), np.array([0, 3, 1, 5, 4, 2]))
    case("rare_scatter_grad", lambda x, u, i: [jax.grad(lambda x: (x.at[i].set(u) ** 2).sum())(x), jax.grad(lambda u: (x.at[i].add(u) ** 2).sum())(u), jax.grad(lambda u: x.at[i].max(u).sum())(u), jax.grad(lambda x: (x[i] * u).sum())(x)], normal(6, 4), normal(9, 4), below(6, 9))
    case("rare_scatter_batched", lambda x, i, u: [jax.vmap(lambda x, i, u: x.at[i].add(u))(x, i, u), jax.vmap(lambda x, i, u: x.at[i].set(u, mode="drop"))(x, i[:, ::-1], u), jax.vmap(lambda x, i: lax.dynamic_update_slice(x, x[:1] * 2, (i[0], 0)))(x, i)], normal(3, 6, 4), np.array([[0, 4, 2]] * 3), normal(3, 3, 4))
    case("rare_dynamic_slices", lambda x, k: [lax.dynamic_index_in_dim(x, k, 1, False), lax.dynamic_slice_in_dim(x, k * 3, 2, 0), lax.dynamic_update_slice_in_dim(x, x[:, :2], k, 1), lax.scan(lambda c, j: (lax.dynamic_update_index_in_dim(c, c[j] * 2, 5 - j, 0), c[j, 0]), x, jnp.arange(6)),
         jax.vmap(lambda k: lax.dynamic_slice(x, (k, k), (3, 2)))(jnp.arange(-2, 6))], normal(6, 7), np.int8(3))
    case("rare_masks", lambda x: [jnp.nonzero(x > 0, size=9, fill_value=-1), jnp.compress(jnp.array([1, 0, 1, 1]), x, axis=0, size=4), jnp.extract(x > 0, x, size=7), jnp.argwhere(x > 1, size=3), jnp.select([x > 1, x > 0], [x, -x], 9), jnp.piecewise(x, [x < 0], [lambda v: v * 2, jnp.exp])], normal(4, 6))
    case("rare_diagonals", lambda x: [jnp.diag(x[0]), jnp.diagonal(x, 1), jnp.trace(x, -1), jnp.tril(x, -1), jnp.triu(x, 2), jnp.fill_diagonal(x, 7, inplace=False), jnp.vander(x[0], 4), jnp.rot90(x), jnp.flip(x, (0, 1)), jnp.roll(x, (2, -1), (0, 1))], normal(5, 7))
    # convolutions and windows
    case("rare_conv_negative", lambda x, w: [conv(x, w, padding=((-1, 0), (0, -2))), conv(x, w, padding=((3, 0), (0, 4)), rhs_dilation=(3, 2)), conv(x, w, strides=(3, 1), lhs_dilation=(2, 1), padding=((0, 0), (1, 0)))], normal(2, 8, 9, 3), normal(2, 3, 3, 4))
    case("rare_conv_reversed", lambda x, w: [lax.conv_transpose(x, w, (2, 2), "SAME", transpose_kernel=False), lax.conv_transpose(x, jnp.swapaxes(w, 2, 3), (3, 2), "VALID", transpose_kernel=True), jax.vmap(lambda w: conv(x, w))(jnp.stack([w, w * 2]))], normal(2, 5, 6, 3), normal(3, 3, 3, 4))
    case("rare_conv_groups_grad", lambda x, w: jax.grad(lambda x, w: (conv(x, w, strides=(2, 1), rhs_dilation=(1, 2), feature_group_count=3) ** 2).sum(), (0, 1))(x, w), normal(2, 7, 8, 6), normal(3, 2, 2, 9))
    case("rare_conv_4d", lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1, 1), "SAME", dimension_numbers=lax.conv_dimension_numbers(x.shape, w.shape, None)), normal(1, 2, 3, 4, 3, 3), normal(2, 2, 2, 2, 1, 2))
    case("rare_conv_patches", lambda x: lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "SAME"), normal(2, 2, 8, 8))
    case("rare_conv_bf16_f32", lambda x, w: [conv(x, w, preferred_element_type=jnp.float32), conv(x, w).astype(jnp.float32)], normal(2, 6, 6, 4, dtype=jnp.bfloat16), normal(3, 3, 4, 4, dtype=jnp.bfloat16))
    case("rare_pool_avg_grad", jax.grad(lambda x: (lax.reduce_window(x, np.float32(0), lax.add, (1, 3, 2, 1), (1, 2, 2, 1), "SAME") ** 2).sum()), normal(2, 7, 6, 3))
    case("rare_pool_max_dilated", lambda x: [lax.reduce_window(x, -np.float32(np.inf), lax.max, (3, 3), (2, 1), ((2, 0), (1, 1)), None, (2, 1)), jax.grad(lambda x: lax.reduce_window(x, -np.float32(np.inf), lax.max, (3, 2), (3, 2), "VALID").sum())(x)], normal(9, 8))
    case("rare_cumulative_types", lambda x, y, z: [lax.cumsum(x, 0), lax.cumprod(x, 1, reverse=True), lax.cummax(y, 0, reverse=True), lax.cummin(y, 1), lax.cumsum(z, 1), jnp.cumsum(x, dtype=jnp.float32), lax.cumlogsumexp(z.astype(jnp.float32), 1)], below(5, 4, 6), below(99, 4, 6).astype(np.uint8), normal(3, 300, dtype=jnp.float16))
    case("rare_scan_grad", lambda x: [jax.grad(lambda x: (jnp.cumprod(x, 1) * x).sum())(x), jax.grad(lambda x: lax.cummax(x, 0).sum())(x), jax.grad(lambda x: lax.cumlogsumexp(x, 1).sum())(x), lax.associative_scan(lambda a, b: a @ b, jnp.stack([x] * 5) * .5)], normal(4, 4))
    case("rare_reduce_any", lambda x, b: [lax.reduce(x, np.int32(-1), lax.bitwise_and, (0,)), lax.reduce(x, np.int32(0), lax.bitwise_xor, (0, 1)), lax.reduce(b, False, lax.bitwise_xor, (1,)), b.all(0), b.any(1), lax.reduce_and(x, (1,)), lax.argmin(x, 1, np.int32)],
         below(99, 5, 6), below(2, 5, 6).astype(bool))
    # random numbers
    case("rare_rng_shapes", lambda k: [lax.rng_bit_generator(k, s, dtype=d, algorithm=a) for a in (lax.RandomAlgorithm.RNG_THREE_FRY, lax.RandomAlgorithm.RNG_PHILOX) for s in ((), (1,), (3, 1, 5), (0,), (17,)) for d in (jnp.uint8, jnp.uint32, jnp.uint64)], np.array([1, 2, 3, 4], np.uint32))
    case("rare_rng_loops", lambda k: [lax.scan(lambda c, _: lax.rng_bit_generator(c, (3,)), k, None, length=4), lax.fori_loop(0, 3, lambda i, c: lax.rng_bit_generator(c, (2,), dtype=jnp.uint32)[0], k)], np.array([9, 2, 3, 4], np.uint32))
    case("rare_draws", lambda k: [jax.random.bernoulli(k, .3, (9,)), jax.random.laplace(k, (7,)), jax.random.gumbel(k, (3, 3)), jax.random.beta(k, 2., 3., (4,)), jax.random.dirichlet(k, jnp.ones(3), (2,)), jax.random.multivariate_normal(k, jnp.zeros(2), jnp.eye(2) * 2), jax.random.fold_in(k, 7), jax.random.split(k, 3),
         jax.random.t(k, 3., (4,)), jax.random.rademacher(k, (5,)), jax.random.ball(k, 3)], KEY)
    # the rest
    case("rare_einsums", lambda a, b, c: [jnp.einsum("ijk,kl,jl->il", a, b, c), jnp.einsum("ijk->kji", a), jnp.einsum("iik->i", a[:, :3]), jnp.tensordot(a, b, 1), jnp.inner(b, b), jnp.vdot(b, b), jnp.cross(b[:, :3], b[:, :3][::-1]), lax.batch_matmul(a, a.mT), jnp.einsum("abc,abd->cd", a, a, precision="highest")],
         normal(3, 4, 5), normal(5, 6), normal(4, 6))
    case("rare_bits", lambda x, y: [lax.shift_left(x, y), lax.shift_right_logical(x, y), lax.shift_right_arithmetic(x, y), lax.population_count(x), lax.clz(x), ~x, lax.integer_pow(x, 3), jnp.gcd(x, y), jnp.lcm(x % 97, y % 89), jnp.unpackbits(x.astype(jnp.uint8)), jnp.packbits(x > 5), jnp.floor_divide(x, y), jnp.divmod(x, y)],
         rng.integers(-2**31, 2**31 - 1, 16).astype(np.int32), np.array([0, 1, 31, 32, 33, -1, 100, 7] * 2, np.int32))
    case("rare_numbers", lambda x: [jnp.nextafter(x, x + 1), jnp.frexp(x), jnp.ldexp(x, 3), jnp.signbit(x), jnp.copysign(x, -x), jnp.modf(x), jnp.sinc(x), jnp.i0(x), jnp.heaviside(x, .5), jnp.trunc(x), jnp.rint(x * 2), jnp.float_power(jnp.abs(x), 1.7), jnp.cbrt(x), jnp.exp2(x), jnp.log2(jnp.abs(x)), jnp.nan_to_num(x / 0), jnp.unwrap(x * 4), jnp.interp(x, jnp.arange(-3., 3), jnp.arange(6.) ** 2)], normal(13))
    case("rare_special", lambda x: [jsp.special.entr(x), jsp.special.xlogy(x, x), jsp.special.i1(x), jsp.special.ndtri(x / 10), jsp.special.logsumexp(x), jsp.special.expit(x), jsp.special.gammaln(x), jsp.special.factorial(x), jsp.special.erfinv(x / 10), jsp.special.expn(2, x), jsp.special.exp1(x), jsp.special.spence(x), jsp.special.rel_entr(x, x[::-1]), jsp.special.multigammaln(x + 3, 2), jsp.special.hyp1f1(1., 2., x)],
         rng.uniform(.2, 6, 12).astype(np.float32))
    case("rare_complex_loops", lambda z: [lax.scan(lambda c, t: (c * t + 1j, jnp.abs(c)), z[0], z), jax.grad(lambda a: jnp.abs(jnp.fft.fft(a + 0j) @ z).sum())(z.real), jnp.linalg.solve(jnp.outer(z, z.conj()) + 3 * jnp.eye(6), z), lax.cumsum(z), jnp.sort(z), z.mean(), jnp.var(z), jnp.polyval(z[:3], z)], of(6, np.complex64))
    case("rare_statistics", lambda x: [jnp.cov(x), jnp.corrcoef(x), jnp.histogram(x, 5), jnp.histogram2d(x[0], x[1], 3)[0], jnp.average(x, 1, jnp.arange(9.)), jnp.nanmean(jnp.where(x > 1, jnp.nan, x), 0), jnp.nanmedian(jnp.where(x > 1, jnp.nan, x)), jsp.stats.norm.logpdf(x), jsp.stats.rankdata(x[0]), jnp.trapezoid(x), jnp.gradient(x, axis=1), jnp.diff(x, 2)], normal(4, 9))
    case("rare_images", lambda x: [jax.image.resize(x, (1, 9, 5, 2), m, antialias=a) for m in ("nearest", "linear", "cubic", "lanczos3") for a in (True, False)] + [jax.image.scale_and_translate(x, (1, 6, 6, 2), (1, 2), jnp.array([.8, 1.3]), jnp.array([.5, -1.]), "linear"), jsp.ndimage.map_coordinates(x[0, :, :, 0], [jnp.array([.5, 2.2]), jnp.array([1.1, 3.9])], 1, mode="wrap")], normal(1, 6, 7, 2))
    case("rare_attention_kinds", lambda q, k, v: [jax.nn.dot_product_attention(q, k, v, is_causal=True), jax.nn.dot_product_attention(q, k, v, local_window_size=(2, 1)), jax.grad(lambda q: jax.nn.dot_product_attention(q, k, v, query_seq_lengths=jnp.array([3, 6], jnp.int32), key_value_seq_lengths=jnp.array([5, 2], jnp.int32)).sum())(q)], normal(2, 6, 4, 8), normal(2, 6, 2, 8), normal(2, 6, 2, 8))
    case("rare_losses", lambda x, y: [jax.nn.one_hot(y, 7), jax.nn.sparse_plus(x), jax.nn.celu(x), jax.nn.selu(x), jax.nn.soft_sign(x), jax.nn.hard_tanh(x), jax.nn.squareplus(x), jax.nn.relu(x), jax.grad(lambda x: jax.nn.relu(x).sum())(x * 0), jax.grad(lambda x: -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean())(x)], normal(4, 7), below(7, 4))


def add(case, normal, below):
    for family in (dots, convolutions, places, windows, orders, conversions, functions, matrices, spectra, control, layers, rare):
        family(case, normal, below)


def partitioned():
    """Programs of four partitions; none where there are fewer devices."""
    from jax.sharding import Mesh, PartitionSpec as P
    if len(jax.devices()) < 4:
        return {}
    line, grid = Mesh(np.array(jax.devices()[:4]), ("x",)), Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))

    def shards(f, mesh, into, out):
        return jax.shard_map(f, mesh=mesh, in_specs=into, out_specs=out, check_vma=False)
    x, ring = P("x"), [(0, 1), (1, 2), (2, 3), (3, 0)]
    return {
        "sums": (shards(lambda a: [lax.psum(a, "x"), lax.pmax(a, "x"), lax.pmean(a, "x")], line, (x,), [P()] * 3), line, [x], [of((8, 3), np.float32)]),
        "moves": (shards(lambda a: [lax.all_gather(a, "x", axis=1, tiled=True), lax.ppermute(a, "x", [(0, 2), (3, 1)]), lax.all_to_all(a, "x", 1, 0, tiled=True)], line, (x,), [P(), x, x]),
                  line, [x], [of((8, 4), np.float32)]),
        "scatter": (shards(lambda a: lax.psum_scatter(a, "x", scatter_dimension=0, tiled=True), line, (P(),), x), line, [P()], [of((8, 4), np.float32)]),
        "grid": (shards(lambda a: [lax.psum(a, "a"), lax.all_gather(a, "b", axis=1, tiled=True), lax.axis_index(("a", "b")) + a], grid, (P("a", "b"),), [P(None, "b"), P("a"), P("a", "b")]),
                 grid, [P("a", "b")], [of((4, 6), np.float32)]),
        "ring": (shards(lambda a, b: lax.fori_loop(0, 4, lambda i, c: (c[0] + c[1] @ b, lax.ppermute(c[1], "x", ring)), (jnp.zeros((2, 5), a.dtype), a))[0], line, (x, P()), x),
                 line, [x, P()], [of((8, 3), np.float32), of((3, 5), np.float32)]),
        "hybrid": (jax.shard_map(lambda a, b: lax.psum(a, "a") @ b, mesh=grid, in_specs=(P("a"), P()), out_specs=P(), axis_names={"a"}, check_vma=False), grid,
                   [P("a", "b"), P(None, "b")], [of((4, 6), np.float32), of((6, 4), np.float32)]),
        "local": (shards(lambda a, b: [jnp.sort(a) + b, a.sum(0, keepdims=True)], line, (P(None, "x"), P()), [P(None, "x"), P(None, "x")]), line, [P(None, "x"), P()],
                  [of((3, 8), np.float32), np.float32(2)]),
        "split": (shards(lambda a: lax.all_to_all(a, "x", 0, 1, tiled=True), line, (P(None, "x"),), P("x")), line, [P(None, "x")], [of((8, 8), np.float32)]),
        "loop": (shards(lambda a: lax.scan(lambda c, y: (lax.pmean(c + y, "x"), lax.pmax(y, "x")), jnp.zeros(4, a.dtype), a), line, (P(None, "x"),), (P("x"), P(None, "x"))), line,
                 [P(None, "x")], [of((5, 16), np.float32)]),
        "turned": (shards(lambda a, b: lax.psum(a @ b, ("b", "a")), grid, (P("a", "b"), P("b", None)), P("a")), grid,
                   [P("a", "b"), P("b", None)], [of((4, 6), np.float32), of((6, 3), np.float32)]),
        "step": (lambda a, v, w: jax.value_and_grad(lambda w: ((jax.nn.gelu(a @ w[0]) @ w[1]) ** 2).mean())((v, w)), grid, [P("a", None), P(None, "b"), P("b", None)],
                 [of((8, 6), np.float32), of((6, 10), np.float32), of((10, 4), np.float32)]),
        "moved": (lambda a: [jnp.sort(a, 0), jnp.roll(a, 1, 0), jnp.cumsum(a, 0), a.T @ a], line, [x], [of((8, 6), np.float32)]),
    }
