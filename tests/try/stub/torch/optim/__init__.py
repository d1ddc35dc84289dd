# SPDX-License-Identifier: Apache-2.0
from .optimizer import SGD, Adagrad, Adam, AdamW  # noqa: F401
