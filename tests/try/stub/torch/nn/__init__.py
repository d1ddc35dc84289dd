# SPDX-License-Identifier: Apache-2.0
class Module:
    def parameters(self):
        return iter(self.__dict__.get("weights", ()))

    def modules(self):
        yield self

    def __call__(self, *args):
        return self.forward(*args)


class Conv2d(Module):
    pass


class Linear(Module):
    pass


class modules:
    class conv:
        class _ConvNd(Module):
            pass


from . import parallel  # noqa: E402,F401
