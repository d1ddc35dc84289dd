# SPDX-License-Identifier: Apache-2.0
BEFORE, AFTER = [], []
register_optimizer_step_pre_hook = BEFORE.append
register_optimizer_step_post_hook = AFTER.append


class Optimizer:
    def __init__(self, parameters, lr=0.1, fused=None, foreach=None):
        self.param_groups = [{"params": list(parameters), "lr": lr, "fused": fused, "foreach": foreach}]

    def step(self):
        for hook in BEFORE:
            hook(self, (), {})
        for p in self.param_groups[0]["params"]:
            p.values = [v * (1 - self.param_groups[0]["lr"]) for v in p.values]
        for hook in AFTER:
            hook(self, (), {})


class Adam(Optimizer):
    def __init__(self, parameters, lr=0.1, fused=None, foreach=None):
        super().__init__(parameters, lr, fused, foreach)


class AdamW(Adam):
    def __init__(self, parameters, lr=0.1, fused=None, foreach=None):
        super().__init__(parameters, lr, fused, foreach)


class SGD(Adam):
    def __init__(self, parameters, lr=0.1, fused=None, foreach=None):
        super().__init__(parameters, lr, fused, foreach)


class Adagrad(Adam):
    def __init__(self, parameters, lr=0.1, fused=None, foreach=None):
        super().__init__(parameters, lr, fused, foreach)
