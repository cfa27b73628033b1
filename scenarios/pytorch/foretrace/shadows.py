"""Values that decide what a program does next: integers and truth values are computed on the CPU beside the program, in a run before the one that is recorded.

Kernels do not run on the emulated GPU, but programs read masks, counts and positions of them. Under `Shadows` each small tensor of the GPU whose inputs are known has a twin on
the CPU, and its bytes are put where the kernel would have put them; so the host reads what it would read. The reads are kept, and given again, in order, in the run that is
recorded, which has no such mode: a mode makes PyTorch do some things otherwise. What only the data know (which experts a router chooses, a drawn token) is drawn evenly."""

import ctypes

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

MOST = 1 << 22  # elements of an integer tensor that has a twin
MOST_FLOATS = 64
FACTORIES = {"aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty", "aten::new_empty_strided", "aten::resize_"}
DRAWN = {"aten::topk", "aten::sort", "aten::argsort", "aten::multinomial", "aten::argmax", "aten::randint", "aten::randperm"}
DECIDED_BY_ONE = {"and": False, "bitwise_and": False, "logical_and": False, "or": True, "bitwise_or": True, "logical_or": True}  # whatever the other is
SIZED_BY_DATA = {"aten::bincount", "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::repeat_interleave"}


class Shadows(TorchDispatchMode):
    def __init__(self, library):
        super().__init__()
        self.loaded = library
        self.guessed = {}  # what was drawn or halved, and how often

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(issubclass(t, FakeTensor) for t in types):
            return func(*args, **kwargs)  # DTensor asks for shapes
        if any(t is not torch.Tensor and not issubclass(t, torch.nn.Parameter) for t in types):
            return NotImplemented  # a DTensor and the like comes again with its local tensors
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        name = func._schema.name
        tensors = [a for a in tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
        known = all(self._twin(t) is not None for t in tensors)
        by_mask = name == "aten::index" and any(isinstance(a, torch.Tensor) and a.dtype in (torch.bool, torch.uint8) for a in args[1])
        if (name in SIZED_BY_DATA or by_mask) and tensors and tensors[0].is_cuda:
            return self._sized_by_data(func, name, args, kwargs, known)
        to_host = known and tensors and any(t.is_cuda for t in tensors)
        self.loaded.foretrace_trust(1 if to_host else 0)
        try:
            out = func(*args, **kwargs)
        finally:
            self.loaded.foretrace_trust(0)
        self._follow(func, name, args, kwargs, out, tensors, known)
        return out

    def _twin(self, tensor):
        if not tensor.is_cuda:
            return tensor if type(tensor) in (torch.Tensor, torch.nn.Parameter) else None
        if not hasattr(tensor, "_foretrace_twin"):  # no operation made it: what was copied there
            tensor._foretrace_twin = self._read(tensor) if self._small(tensor) else None
        return tensor._foretrace_twin

    @staticmethod
    def _small(tensor):
        return tensor.numel() <= (MOST_FLOATS if tensor.is_floating_point() or tensor.is_complex() else MOST)

    @staticmethod
    def _read(tensor):
        with no_dispatch():
            span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
            twin = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
            if span:
                ctypes.memmove(twin.data_ptr(), tensor.data_ptr(), span * tensor.element_size())
            return twin

    def _on_cpu(self, func, args, kwargs):
        twin = lambda x: self._twin(x) if isinstance(x, torch.Tensor) else torch.device("cpu") if isinstance(x, torch.device) else x  # noqa: E731
        with no_dispatch():
            kwargs = {k: False if k == "pin_memory" else tree_map(twin, v) for k, v in kwargs.items()}
            return func(*tree_map(twin, args), **kwargs)

    def _follow(self, func, name, args, kwargs, out, tensors, known):
        outs = [o for o in tree_leaves(out) if isinstance(o, torch.Tensor) and o.is_cuda]
        if name in FACTORIES:
            for o in outs:
                o._foretrace_twin = None
        if not outs or name in FACTORIES:
            return
        if name in DRAWN and not (known and tensors):
            self._draw(name, args, outs)
            return
        if known and all(self._small(o) for o in outs):
            try:
                self._give(out, self._on_cpu(func, args, kwargs))
                return
            except (RuntimeError, NotImplementedError, TypeError):
                self._note(f"{name} is not computed on the CPU")
        decided = DECIDED_BY_ONE.get(name.removeprefix("aten::").strip("_"))
        for o in outs:
            o._foretrace_twin = None
            if decided is not None and self._small(o) and any(self._is_all(t, decided) for t in tensors):
                with no_dispatch():
                    value = torch.full(o.shape, decided)
                self._give(o, value)

    def _is_all(self, tensor, value):
        """Whether it is known that every element of a tensor of truth values is `value`."""
        if tensor.dtype != torch.bool or self._twin(tensor) is None:
            return False
        with no_dispatch():
            return bool((self._twin(tensor) == value).all())

    def _give(self, out, value):
        for o, v in zip(tree_leaves(out), tree_leaves(value)):
            if isinstance(o, torch.Tensor) and isinstance(v, torch.Tensor) and o.is_cuda and o.shape == v.shape:
                o._foretrace_twin = v
                self._write(o, v)

    @staticmethod
    def _write(o, v):
        """The emulated memory is this process's: the value is put where a kernel would."""
        span = 1 + sum((n - 1) * s for n, s in zip(o.shape, o.stride()))
        if v.numel() == 0 or span != o.numel() or span > MOST:
            return
        with no_dispatch():
            flat = torch.empty_strided(o.shape, o.stride(), dtype=o.dtype)
            flat.copy_(v)
            ctypes.memmove(o.data_ptr(), flat.data_ptr(), span * o.element_size())

    def _sized_by_data(self, func, name, args, kwargs, known):
        mask = args[0] if name != "aten::index" else next(a for a in args[1] if isinstance(a, torch.Tensor) and a.dtype in (torch.bool, torch.uint8))
        twin = self._twin(mask)
        value = None
        if known:
            value = self._on_cpu(func, args, kwargs)
        with no_dispatch():
            first = next((v for v in tree_leaves(value) if isinstance(v, torch.Tensor)), None)
            # bincount reads the smallest and the largest number; the others read how many there are.
            n = (first.shape[0] if first is not None else max(kwargs.get("minlength", args[2] if len(args) > 2 else 0), 1)) - 1 if name == "aten::bincount" else int((twin != 0).sum()) if twin is not None and name not in ("aten::_unique2", "aten::unique_dim", "aten::repeat_interleave") else \
                first.shape[0] if first is not None else mask.numel() // 2
        if twin is None:
            self._note(f"{name} of {list(mask.shape)}: " + ("the least length" if name == "aten::bincount" else "half of the elements"))
        self.loaded.foretrace_poke(n, 2 if name == "aten::bincount" else 1)
        try:
            out = func(*args, **kwargs)
        finally:
            self.loaded.foretrace_poke(0, 0)
        if value is not None:
            self._give(out, value)
        return out

    def _draw(self, name, args, outs):
        """Integers that only the data know, evenly spread."""
        for o in outs:
            if o.is_floating_point() or o.dtype == torch.bool or o.numel() > MOST:
                o._foretrace_twin = None
                continue
            with no_dispatch():
                generator = torch.Generator().manual_seed(o.numel())
                if name == "aten::topk":
                    value = torch.rand(args[0].shape, generator=generator).topk(args[1], args[2] if len(args) > 2 else -1)[1]
                elif name in ("aten::sort", "aten::argsort", "aten::randperm"):
                    value = torch.arange(o.shape[-1]).expand(o.shape).contiguous() if o.dim() else torch.zeros(())
                elif name == "aten::randint":
                    bounds = [a for a in args if isinstance(a, int)]
                    value = torch.randint(max(bounds[-1] if bounds else 2, 1), o.shape, generator=generator)
                else:
                    value = torch.zeros(o.shape, dtype=o.dtype)
                value = value.to(o.dtype)
            if name not in ("aten::randint", "aten::randperm"):
                self._note(f"{name} of {list(args[0].shape)}: drawn evenly" if isinstance(args[0], torch.Tensor) else f"{name}: drawn evenly")
            self._give(o, value)

    def _note(self, what):
        self.guessed[what] = self.guessed.get(what, 0) + 1
