"""Random initial values of large tensors on the CPU are not drawn while a program is set up: they take minutes and memory, and nothing depends on them."""

LARGE = 1 << 20  # elements
METHODS = ("normal_", "uniform_", "log_normal_", "exponential_", "cauchy_", "geometric_", "erfinv_")


class InitialValues:
    """install() replaces the methods; while still_setting_up() is true they leave large CPU tensors as they are, untouched pages of memory. `left` counts those."""

    def __init__(self, still_setting_up):
        self.still_setting_up, self.left, self.own = still_setting_up, 0, {}

    def install(self):
        import torch
        for name in METHODS:
            self.own[name] = getattr(torch.Tensor, name)
            setattr(torch.Tensor, name, self._wrapped(self.own[name]))

    def remove(self):
        import torch
        for name, method in self.own.items():
            setattr(torch.Tensor, name, method)
        self.own = {}

    def _wrapped(self, method):
        def drawn(tensor, *args, **kwargs):
            if tensor.device.type == "cpu" and tensor.numel() >= LARGE and self.still_setting_up():
                self.left += 1
                return tensor
            return method(tensor, *args, **kwargs)
        return drawn
