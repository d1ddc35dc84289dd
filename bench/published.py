#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks that others published, by XLA on the CPU and by `fast` in turns: each model of Hugging Face's transformers that has a version in Flax,
in its default configuration, if that has at most 250 million parameters, and the first network of each module of keras.applications. One
sequence of 128 tokens (BigBird, whose blocks are longer: 1,024; CLIP: 77), one image of the size that the configuration says, or a second (Whisper: 30 seconds) of sound; weights are random.

    published.py [--cpu] [NAME...]    only the networks whose name contains one of these
    needs                             pip install jax flax 'transformers<5' keras

in_turns.py says how they are timed. Prints a row for each: milliseconds of both and the ratio, then the geometric mean."""
import os
os.environ["KERAS_BACKEND"] = "jax"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import in_turns
import inspect, jax, numpy as np
import keras, transformers
from transformers.models.auto.modeling_flax_auto import FLAX_MODEL_MAPPING_NAMES

clip = jax.numpy.clip
jax.numpy.clip = lambda x, a_min=None, a_max=None: clip(x, a_min, a_max)  # names that JAX has no longer, and T5 uses
MOST = 250_000_000
rng = np.random.default_rng(1)


def arguments(call, config):
    """What a model is called with, by the names of its parameters."""
    text, image = getattr(config, "text_config", config), getattr(config, "vision_config", config)
    length = 1024 if config.model_type == "big_bird" else min(128, getattr(text, "max_position_embeddings", 128))
    side = getattr(image, "image_size", 224)
    ids = lambda: rng.integers(3, text.vocab_size, (1, length)).astype(np.int32)
    known = {"input_ids": ids, "decoder_input_ids": ids, "pixel_values": lambda: rng.standard_normal((1, 3, side, side)).astype(np.float32), "input_values": lambda: rng.standard_normal((1, 16000)).astype(np.float32),
             "input_features": lambda: rng.standard_normal((1, config.num_mel_bins, 3000)).astype(np.float32)}
    return {name: known[name]() for name in inspect.signature(call).parameters if name in known}


def weights(shapes):
    return jax.tree.map(lambda s: (rng.standard_normal(s.shape, dtype=np.float32) * 0.05 + (len(s.shape) == 1)).astype(s.dtype), shapes)


def of_transformers(kind, name):
    config = transformers.CONFIG_MAPPING[kind]()
    model = getattr(transformers, name)(config, _do_init=False)
    shapes = model.params_shape_tree
    count = sum(int(np.prod(s.shape)) for s in jax.tree.leaves(shapes))
    if count > MOST:
        raise ValueError(f"{count / 1e6:.0f} million parameters")
    inputs = arguments(model.__call__, config)
    return lambda params, inputs: jax.tree.leaves(model(**inputs, params=params).to_tuple()[:1]), weights(shapes), inputs


def of_keras(make):
    model = make(weights=None)
    x = rng.standard_normal([n or 224 for n in (1, *model.input_shape[1:])]).astype(np.float32)
    state = [v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables]
    return lambda t, n, x: model.stateless_call(t, n, x, training=False)[0], *state, x


def of_module(name, module):
    own = [f for _, f in inspect.getmembers(module, inspect.isfunction) if "weights" in inspect.signature(f).parameters]
    return own[0] if own else next(f for n, f in inspect.getmembers(keras.applications, inspect.isfunction) if n.lower().startswith(name.replace("_", "")))


programs = [(f"transformers {kind}", lambda kind=kind, name=name: of_transformers(kind, name[0] if isinstance(name, tuple) else name)) for kind, name in FLAX_MODEL_MAPPING_NAMES.items()]
programs += [(f"keras {name}", lambda name=name, module=module: of_keras(of_module(name, module))) for name, module in inspect.getmembers(keras.applications, inspect.ismodule) if name != "imagenet_utils"]
if __name__ == "__main__":
    in_turns.table(programs)
