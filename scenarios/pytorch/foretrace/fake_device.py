"""A GPU without CUDA: its tensors are PyTorch's fake tensors, which have shapes and no values; they say that they are on "cuda:0" and are the CPU's for PyTorch's
own code, so that any build runs it (a build without CUDA has no streams or guards for a real "cuda")."""

import contextlib

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
LOW = {"linear", "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "conv1d", "conv2d", "conv3d", "einsum", "scaled_dot_product_attention", "bilinear"}
HIGH = {"softmax", "log_softmax", "layer_norm", "group_norm", "rms_norm", "nll_loss", "mse_loss", "l1_loss", "exp", "log", "pow", "__pow__", "rsqrt", "sum", "prod",
        "cumsum", "norm", "cosine_similarity", "kl_div", "binary_cross_entropy_with_logits", "smooth_l1_loss", "softplus", "square"}  # as CUDA's autocast has them
SDPA = torch.nn.functional.scaled_dot_product_attention


def is_gpu(value):
    """A device argument that means the GPU."""
    if isinstance(value, int) and not isinstance(value, bool):
        return True
    return str(value).startswith("cuda") if isinstance(value, (str, torch.device)) else False


class FakeGpu(TorchFunctionMode):
    """Sends what a program wants of "cuda" to fake tensors; `copied(bytes, direction)` hears of copies to and from it."""

    def __init__(self, copied):
        super().__init__()
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.copied = copied
        self.casts = {}
        self.inside = 0  # PyTorch's own code runs: tensors are the CPU's

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in ("to", "cuda", "cpu") and args and isinstance(args[0], torch.Tensor) and not isinstance(func, type(torch.ops.aten.add)):
            return self._moved(name, func, args, kwargs)
        if name in ("pin_memory", "record_stream", "is_pinned"):
            return False if name == "is_pinned" else args[0]
        if "device" in kwargs and is_gpu(kwargs["device"]):
            kwargs["device"] = CPU
            data = name in ("tensor", "as_tensor", "asarray")
            if data:
                return self.to_gpu(func(*args, **kwargs))
            with self.mode:
                return func(*args, **kwargs)
        if torch.is_autocast_enabled("cuda") and (name in LOW or name in HIGH):
            args, kwargs = self._autocast(name, args, kwargs)
        if func is SDPA and args and isinstance(args[0], FakeTensor):
            return self._attention(*args, **kwargs)
        return func(*args, **kwargs)

    def to_gpu(self, tensor):
        if isinstance(tensor, FakeTensor):
            return tensor
        self.copied(tensor.numel() * tensor.element_size(), "h2d", False)
        made = self.mode.from_tensor(tensor.detach(), static_shapes=True)
        if tensor.requires_grad and tensor.is_leaf:
            made.requires_grad_(True)
        return made

    def to_host(self, tensor):
        self.copied(tensor.numel() * tensor.element_size(), "d2h", False)
        return torch.zeros(tensor.shape, dtype=tensor.dtype)

    def _moved(self, name, func, args, kwargs):
        tensor, rest = args[0], list(args[1:])
        goal = GPU if name == "cuda" else CPU if name == "cpu" else kwargs.pop("device", None)
        if name == "to":
            for i, a in enumerate(rest):
                if isinstance(a, (str, torch.device)) or (isinstance(a, int) and not isinstance(a, bool)):
                    goal = a
                    rest.pop(i)
                    break
                if isinstance(a, torch.Tensor):
                    goal, rest[i] = (GPU if isinstance(a, FakeTensor) else CPU), a.dtype
                    break
        else:
            rest, kwargs = [], {}
        kwargs.pop("non_blocking", None)
        rest = [a for a in rest if a is not None and not isinstance(a, bool)]
        keep = {k: v for k, v in kwargs.items() if v is not None and k in ("dtype", "memory_format", "copy")}
        if goal is not None and is_gpu(goal) and not isinstance(tensor, FakeTensor):
            tensor = self.to_gpu(tensor)
        elif goal is not None and not is_gpu(goal) and isinstance(tensor, FakeTensor) and str(goal) != "meta":
            tensor = self.to_host(tensor)
        return torch.Tensor.to(tensor, *rest, **keep) if rest or keep else tensor

    def _autocast(self, name, args, kwargs):
        low = torch.get_autocast_dtype("cuda")

        def cast(value):
            if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                return type(value)(cast(v) for v in value)
            if not isinstance(value, FakeTensor) or not value.is_floating_point() or value.dtype == torch.float64:
                return value
            if name in HIGH:
                return value.to(torch.float32) if value.dtype == low else value
            if value.dtype == low:
                return value
            if value.is_leaf and value.requires_grad:  # weights are cast once
                if id(value) not in self.casts:
                    self.casts[id(value)] = value.to(low)
                return self.casts[id(value)]
            return value.to(low)
        return tuple(cast(a) for a in args), {k: cast(v) for k, v in kwargs.items()}

    def _attention(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        """As an H100 chooses: flash attention for half types without a mask, else the memory-efficient one."""
        if enable_gqa and k.shape[-3] != q.shape[-3]:
            k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
        half = q.dtype in (torch.bfloat16, torch.float16)
        aten = torch.ops.aten
        if half and attn_mask is None and q.shape[-1] <= 256:
            return aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, scale=scale)[0]
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:
                attn_mask = torch.where(attn_mask, torch.zeros((), dtype=q.dtype), torch.full((), float("-inf"), dtype=q.dtype))
            attn_mask = attn_mask.expand(*q.shape[:-1], k.shape[-2])
        needs = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
        return aten._scaled_dot_product_efficient_attention(q, k, v, attn_mask, needs, dropout_p, is_causal, scale=scale)[0]


@contextlib.contextmanager
def patched(gpu, device, on_sync):
    """`torch.cuda` answers for the fake GPU; fake tensors say that they are on it."""
    saved = []

    def put(owner, name, value):
        saved.append((owner, name, owner.__dict__.get(name, saved)))
        setattr(owner, name, value)

    made = FakeTensor.__new__

    def on_cpu(cls, mode, elem, _device, *args, **kwargs):
        return made(cls, mode, elem, CPU, *args, **kwargs)

    cuda = torch.cuda
    properties = type("Properties", (), {"name": device["name"], "multi_processor_count": device["sms"], "total_memory": device["memory"],
                                         "major": device["major"], "minor": device["minor"], "warp_size": 32, "max_threads_per_multi_processor": 2048})()
    put(FakeTensor, "__new__", staticmethod(on_cpu))
    put(FakeTensor, "device", property(lambda t: (torch.device("meta") if t.fake_mode.in_kernel_invocation else CPU if gpu.inside else GPU)))
    put(FakeTensor, "is_cuda", property(lambda t: not gpu.inside))
    put(fake_tensor, "init_gpu_context", lambda *_: None)
    for name, value in {
            "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "set_device": lambda *_: None, "init": lambda: None, "_lazy_init": lambda: None,
            "is_initialized": lambda: True, "synchronize": lambda *_: on_sync("device"), "get_device_properties": lambda *_: properties,
            "get_device_name": lambda *_: device["name"], "get_device_capability": lambda *_: (device["major"], device["minor"]), "empty_cache": lambda: None,
            "is_bf16_supported": lambda *_, **__: True, "manual_seed": lambda *_: None, "manual_seed_all": lambda *_: None, "max_memory_allocated": lambda *_: 0,
            "is_current_stream_capturing": lambda: False, "memory_allocated": lambda *_: 0, "reset_peak_memory_stats": lambda *_: None, "memory_reserved": lambda *_: 0, "mem_get_info": lambda *_: (device["memory"],) * 2,
            "Stream": _refused_class("torch.cuda.Stream"), "Event": _refused_class("torch.cuda.Event"), "CUDAGraph": _refused_class("torch.cuda.CUDAGraph")}.items():
        put(cuda, name, value)
    apply = torch.nn.Module._apply

    def applied(module, fn, recurse=True):
        """Parameters that are one stay one."""
        named = {}
        for path, parameter in module.named_parameters(remove_duplicate=False):
            named.setdefault(id(parameter), []).append(path)
        out = apply(module, fn, recurse)
        for first, *others in named.values():
            for path in others:
                owner, _, leaf = path.rpartition(".")
                module.get_submodule(owner)._parameters[leaf] = module.get_parameter(first)
        return out
    put(torch.nn.Module, "_apply", applied)
    call = torch.nn.Module._call_impl

    def called(module, *args, **kwargs):
        if torch._C._len_torch_function_stack() > 0:
            return call(module, *args, **kwargs)
        with gpu:  # recomputed in a backward pass, where no mode is
            return call(module, *args, **kwargs)
    put(torch.nn.Module, "_call_impl", called)
    put(torch.nn.Module, "cuda", lambda module, device=None: module._apply(gpu.to_gpu))
    put(torch, "clear_autocast_cache", gpu.casts.clear)  # at the end of the outermost autocast
    put(torch, "compile", _refused("torch.compile"))
    from torch.utils import _foreach_utils
    put(_foreach_utils, "_get_foreach_kernels_supported_devices", lambda: ["cuda"])
    put(_foreach_utils, "_get_fused_kernels_supported_devices", lambda: ["cuda", "cpu"])
    from torch.nn.utils import clip_grad
    put(clip_grad, "_has_foreach_support", lambda tensors, device: True)
    import torch.optim.optimizer as optimizer
    optimizer._foreach_supported_types.append(FakeTensor)
    for name in ("_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices"):
        if hasattr(optimizer, name):
            put(optimizer, name, getattr(_foreach_utils, name))
    swap = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)  # a module's parameters become fake ones
    try:
        yield
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(swap)
        optimizer._foreach_supported_types.remove(FakeTensor)
        for owner, name, value in reversed(saved):
            delattr(owner, name) if value is saved else setattr(owner, name, value)


def _refused(what):
    from .environment import CaptureError

    def refuse(*_, **__):
        raise CaptureError(f"{what} is not known to the fake GPU: PyTorch's CUDA build on Linux has the emulated one, which knows it")
    return refuse


def _refused_class(what):
    """A class, since programs name it in annotations."""
    return type(what.rsplit(".", 1)[1], (), {"__init__": _refused(what)})
