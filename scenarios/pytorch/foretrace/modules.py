"""The module whose forward runs, written into a profile: hooks of all modules, while one step is profiled."""

import sys

PREFIX = "foretrace.module:"


def compiled():
    """True if torch.compile has compiled something: hooks would make it compile anew, and otherwise."""
    dynamo = sys.modules.get("torch._dynamo")
    return bool(dynamo and dynamo.utils.counters["frames"].get("ok"))


class ModulePaths:
    """with ModulePaths(): each module's forward is an annotation `foretrace.module:PATH` of the profile; none in a program that is compiled."""

    def __init__(self):
        self.names, self.open, self.handles = {}, [], []

    def __enter__(self):
        if compiled():
            return self
        from torch.nn.modules import module
        self.handles = [module.register_module_forward_pre_hook(self._before), module.register_module_forward_hook(self._after, always_call=True)]
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()

    def _path(self, module):
        """Of a module below one that was called before: as named_modules says it; of another: its class."""
        if id(module) not in self.names:
            root = type(module).__name__
            for path, part in module.named_modules():
                self.names.setdefault(id(part), path or root)
            self.kept = getattr(self, "kept", []) + [module]  # an id stays one module's
        return self.names[id(module)]

    def _before(self, module, _inputs):
        import torch
        annotation = torch.profiler.record_function(PREFIX + self._path(module))
        annotation.__enter__()
        self.open.append((id(module), annotation))

    def _after(self, module, _inputs, _output):
        while self.open:
            who, annotation = self.open.pop()
            annotation.__exit__(None, None, None)
            if who == id(module):
                return
