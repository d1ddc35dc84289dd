# SPDX-License-Identifier: Apache-2.0
class DistributedDataParallel:
    def __init__(self, module, bucket_cap_mb=25, gradient_as_bucket_view=False):
        self.module = module
