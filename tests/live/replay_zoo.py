#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The usual networks as SavedModels of TensorFlow: replayed on TensorFlow's own library, and lowered to HLO on the built-in
engines; outputs are compared with what TensorFlow gives in Python.

    replay_zoo [NAME...]          only the networks whose name contains one of these
    REPRISE, ENGINES              the program (build/reprise), engines ("tf ref fast")
    SIZE                          height and width of the images (32)
"""
import json, os, pathlib, subprocess, sys, tempfile, time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import keras, numpy as np
    import tensorflow as tf
except ImportError as why:
    print(f"replay_zoo: skipped: {why}")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPRISE = os.environ.get("REPRISE", ROOT / "build" / "reprise")
LIBRARY = pathlib.Path(tf.__file__).parent / "libtensorflow_cc.so.2"
ENGINES = os.environ.get("ENGINES", "tf ref fast").split()
SIZE = int(os.environ.get("SIZE", "32"))
layers, rng = keras.layers, np.random.default_rng(7)


def images(build):
    return lambda: (build(weights=None, include_top=True, classes=10, input_shape=(SIZE, SIZE, 3)), rng.standard_normal((2, SIZE, SIZE, 3)).astype(np.float32))


def bert(vocabulary=50, width=32, heads=4, depth=2, length=12):
    ids = layers.Input((length,), dtype="int32")
    h = layers.Embedding(vocabulary, width)(ids) + layers.Embedding(length, width)(keras.ops.arange(length))
    for _ in range(depth):
        a = layers.MultiHeadAttention(heads, width // heads)(h, h)
        h = layers.LayerNormalization(epsilon=1e-6)(h + a)
        f = layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(h))
        h = layers.LayerNormalization(epsilon=1e-6)(h + f)
    return keras.Model(ids, [h, layers.Dense(width, activation="tanh")(h[:, 0])]), rng.integers(0, vocabulary, (3, length)).astype(np.int32)


def recurrent(cell):
    def build():
        x = layers.Input((9, 6), batch_size=3)
        h = layers.Bidirectional(cell(8, return_sequences=True))(x)
        return keras.Model(x, layers.Dense(4)(cell(5)(h))), rng.standard_normal((3, 9, 6)).astype(np.float32)
    return build


apps = keras.applications
ZOO = {"resnet50": images(apps.ResNet50), "mobilenet": images(apps.MobileNet), "mobilenet_v2": images(apps.MobileNetV2), "mobilenet_v3": images(apps.MobileNetV3Small),
       "efficientnet_b0": images(apps.EfficientNetB0), "convnext_tiny": images(apps.ConvNeXtTiny), "densenet121": images(apps.DenseNet121), "bert": bert,
       "lstm": recurrent(layers.LSTM), "gru": recurrent(layers.GRU), "rnn": recurrent(layers.SimpleRNN)}
passed = failed = 0
for name, build in ZOO.items():
    if sys.argv[1:] and not any(w in name for w in sys.argv[1:]):
        continue
    with tempfile.TemporaryDirectory() as to:
        model, x = build()
        for w in model.weights:  # moving averages and biases that are not all 0 or 1
            if len(w.shape) == 1:
                w.assign(w + np.abs(rng.standard_normal(w.shape)).astype(np.float32) * 0.1)
        try:
            model.export(f"{to}/model", verbose=False, input_signature=[tf.TensorSpec(x.shape, x.dtype, name="x")])
        except TypeError:
            model.export(f"{to}/model", verbose=False)
        call = tf.saved_model.load(f"{to}/model").signatures["serving_default"]
        key = list(call.structured_input_signature[1])[0]
        np.savez(f"{to}/io.npz", **{key: x}, **{k: v.numpy() for k, v in call(tf.constant(x)).items()})
        for engine in ENGINES:
            begin = time.time()
            p = subprocess.run([REPRISE, "replay", f"{to}/model", "--inputs", f"{to}/io.npz", "--expect", f"{to}/io.npz", "-e", f"tf:{LIBRARY}" if engine == "tf" else engine,
                                "-n", "1", "--warmup", "0", "--json"], text=True, capture_output=True)
            doc = json.loads(p.stdout) if p.returncode in (0, 1) and p.stdout else {}
            ok = p.returncode == 0 and doc.get("ok") and doc.get("checked")
            passed, failed = passed + bool(ok), failed + (not ok)
            print(f"{'  ok' if ok else 'FAIL'} {name} on {engine}: {time.time() - begin:.1f} s {'' if ok else (p.stderr.strip() or str(doc.get('outputs')))[:400]}", flush=True)
print(f"replay_zoo: {passed} passed, {failed} failed")
sys.exit(failed > 0)
