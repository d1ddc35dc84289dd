# SPDX-License-Identifier: Apache-2.0
from .distributed import DistributedDataParallel  # noqa: F401
