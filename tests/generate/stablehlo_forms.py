#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small JAX programs in the forms of StableHLO, for tests/data/stablehlo/forms: needs jax.

    stablehlo_forms.py FOLDER     NAME.mlir, NAME.generic.mlir, NAME.native.mlirbc, NAME.vhlo.mlirbc

The forms in tests/golden/graph/forms have one hash for each program. Portable artifacts that have another one are left out there.
"""
import io
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

f32 = jnp.float32
A = jnp.ones((4, 8), f32)
V = jnp.ones((8,), f32)
I = jnp.arange(8, dtype=jnp.int32)
C = jnp.ones((4, 4), jnp.complex64)
PROGRAMS = {
    "elem": (lambda x:jnp.tanh(x)*jnp.exp(-x)+jnp.log1p(jnp.abs(x)),A),
    "bdot": (lambda x:jnp.einsum('bij,bjk->bik',x,jnp.swapaxes(x,1,2)),jnp.ones((2,3,4))),
    "conv": (lambda x,k:lax.conv_general_dilated(x,k,(2,1),'SAME',rhs_dilation=(1,2),dimension_numbers=('NHWC','HWIO','NHWC')),jnp.ones((1,8,8,3)),jnp.ones((3,3,3,4))),
    "convt": (lambda x,k:lax.conv_transpose(x,k,(2,2),'VALID'),jnp.ones((1,4,4,3)),jnp.ones((3,3,3,2))),
    "pool": (lambda x:lax.reduce_window(x,-jnp.inf,lax.max,(1,2,2,1),(1,2,2,1),'SAME'),jnp.ones((1,5,5,2))),
    "poolgrad": (jax.grad(lambda x:lax.reduce_window(x,-jnp.inf,lax.max,(1,2,2,1),(1,2,2,1),'VALID').sum()),jnp.ones((1,4,4,2))),
    "sort": (lambda x:lax.sort((x,jnp.arange(8)),num_keys=1),V),
    "topk": (lambda x:lax.top_k(x,3),V),
    "gather": (lambda x,i:x[i]+jnp.take(x,i,axis=0,mode='clip'),A,jnp.array([0,1])),
    "scatter": (lambda x,i:x.at[i].add(1.).at[i].set(2.).at[i].max(3.),A,jnp.array([0,1])),
    "dyn": (lambda x,i:lax.dynamic_update_slice(x,lax.dynamic_slice(x,(i,0),(2,8)),(0,i)),A,jnp.int32(1)),
    "while": (lambda x,y:lax.while_loop(lambda s:s[0]<5,lambda s:(s[0]+1,s[1]*y+x.sum()),(0,x)),A,A),
    "nested": (lambda x:lax.fori_loop(0,3,lambda i,a:lax.fori_loop(0,2,lambda j,b:b+i*j*x.sum(),a),x),A),
    "cond": (lambda p,x,y:lax.cond(p,lambda a:a+y,lambda a:a*y,x),True,A,A),
    "switch": (lambda i,x:lax.switch(i,[lambda a:a,lambda a:a+1,lambda a:a*x],x),1,A),
    "reduce": (lambda x:(x.sum(0),x.max(1),x.argmax(1),jnp.prod(x),x.any()),A),
    "fft": (lambda x:(jnp.fft.fft(x),jnp.fft.rfft(x),jnp.fft.irfft(jnp.fft.rfft(x))),A),
    "complex": (lambda x:jnp.real(x@x)+jnp.imag(jnp.conj(x)),C),
    "solve": (lambda x:lax.linalg.triangular_solve(x,x,left_side=True,lower=True,transpose_a=True),jnp.ones((4,4))),
    "rbg": (lambda k:lax.rng_bit_generator(k,(4,)),jnp.zeros(4,jnp.uint32)),
    "types": (lambda x:[x.astype(t) for t in (jnp.bfloat16,jnp.float16,jnp.int8,jnp.uint8,jnp.int16,jnp.bool_,jnp.float8_e4m3fn,jnp.float8_e5m2)],A),
    "consts": (lambda x:x+np.arange(8,dtype=np.float32)+np.array([True,False]*4)+np.float32(np.inf)+np.full(8,3,np.float32)+np.arange(8,dtype=np.int8),V),
    "bools": (lambda x:jnp.where(np.arange(32).reshape(4,8)%3==0,x,np.ones((4,8),np.float32)),A),
    "pad": (lambda x:lax.pad(x,0.,((1,2,1),(-1,0,0))),A),
    "slice": (lambda x:(x[::2,1:7:3],jnp.flip(x,1),x.T,x.reshape(2,16),lax.expand_dims(x,(0,)),jnp.concatenate([x,x],1),jnp.broadcast_to(x[:,:1],(4,8))),A),
    "cmp": (lambda x,y:(x<y,x==y,lax.lt(x,y),jnp.sign(x),jnp.clip(x,0,1),lax.select(x<y,x,y)),A,A),
    "calls": (lambda x:jax.jit(jnp.sin)(x)+jax.jit(lambda a:a*a)(x)+jax.nn.softmax(x)+jax.nn.gelu(x)+jax.nn.relu(x),A),
    "redprec": (lambda x:lax.reduce_precision(x,5,3),A),
    "barrier": (lambda x:lax.optimization_barrier((x,x*2)),A),
    "variadic": (lambda x:lax.reduce((x,jnp.arange(32).reshape(4,8)),(jnp.float32(0),0),lambda a,b:(jnp.maximum(a[0],b[0]),a[1]+b[1]),(1,)),A),
    "iota": (lambda x:lax.broadcasted_iota(jnp.int32,(4,8),1)+lax.iota(jnp.int32,8),A),
    "callback": (lambda x:jax.pure_callback(lambda a:np.asarray(a),jax.ShapeDtypeStruct((4,8),f32),x),A),
    "lu": (lambda x:jax.scipy.linalg.lu(x),jnp.ones((4,4))),
}


def write(folder, name, function, arguments):
    module = jax.jit(function).lower(*arguments).compiler_ir("stablehlo").operation
    for end, generic in (("mlir", False), ("generic.mlir", True)):
        with open(f"{folder}/{name}.{end}", "w") as f:
            f.write(module.get_asm(enable_debug_info=True, print_generic_op_form=generic))
    native = io.BytesIO()
    module.write_bytecode(native)
    with open(f"{folder}/{name}.native.mlirbc", "wb") as f:
        f.write(native.getvalue())
    with open(f"{folder}/{name}.vhlo.mlirbc", "wb") as f:
        f.write(jax.export.export(jax.jit(function))(*arguments).mlir_module_serialized)


for name, (function, *arguments) in PROGRAMS.items():
    try:
        write(sys.argv[1], name, function, arguments)
    except (ValueError, NotImplementedError) as error:  # jax.export has no callbacks into Python
        print(f"{name}: {error}", file=sys.stderr)
