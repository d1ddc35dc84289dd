# SPDX-License-Identifier: Apache-2.0
"""A training loop on the stub of TensorFlow beside it, for tests/try/check: one function trains, another one does not. FAULT names
what goes wrong where the function is compiled: crash, other (another update)."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "stub"))
import tensorflow as tf  # noqa: E402

FAULT, STEP = os.environ.get("FAULT", ""), float(os.environ.get("STEP", "0.005"))
weights = tf.Variable([1.0, 2.0, 3.0, 4.0])


@tf.function
def look():
    return lambda: time.sleep(STEP / 10)


@tf.function
def train():
    (slope,) = tf.GradientTape().gradient(None, [weights])

    def run():
        if train._jit_compile and FAULT == "crash":
            os.kill(os.getpid(), 11)
        time.sleep(STEP * (0.2 if train._jit_compile else 1))
        broken = train._jit_compile and FAULT == "other"
        weights.values = [w - slope * (-w if broken else w) for w in weights.values]
    return run


for _ in range(100000):
    look()
    train()
