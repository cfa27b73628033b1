"""What a measurement asks of the GPU: clocks and power through NVML, memory through PyTorch's allocator.

NVML is called through ctypes, so that the driver program needs neither PyTorch nor a CUDA context.
Everything answers None where there is no GPU.
"""

import ctypes

SM_CLOCK = 1  # NVML_CLOCK_SM


class Nvml:
    def __init__(self):
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            if self.library.nvmlInit_v2() != 0:
                self.library = None
        except (OSError, AttributeError):
            self.library = None

    def _handle(self, index):
        handle = ctypes.c_void_p()
        found = self.library and self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0
        return handle if found else None

    def _number(self, function, index, *arguments):
        handle, value = self._handle(index), ctypes.c_uint()
        if handle is None or getattr(self.library, function)(handle, *arguments, ctypes.byref(value)) != 0:
            return None
        return value.value

    def count(self):
        value = ctypes.c_uint()
        found = self.library and self.library.nvmlDeviceGetCount_v2(ctypes.byref(value)) == 0
        return value.value if found else 0

    def name(self, index):
        handle, text = self._handle(index), ctypes.create_string_buffer(96)
        if handle is None or self.library.nvmlDeviceGetName(handle, text, ctypes.c_uint(96)) != 0:
            return None
        return text.value.decode()

    def driver(self):
        text = ctypes.create_string_buffer(96)
        found = self.library and self.library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(96)) == 0
        return text.value.decode() if found else None

    def sm_clock_mhz(self, index):
        return self._number("nvmlDeviceGetClockInfo", index, ctypes.c_int(SM_CLOCK))

    def power_w(self, index):
        milliwatts = self._number("nvmlDeviceGetPowerUsage", index)
        return None if milliwatts is None else milliwatts / 1000


class Memory:
    """The caching allocator's numbers, in bytes; zeros without CUDA."""

    KEYS = {"allocated_peak_bytes": "allocated_bytes.all.peak", "reserved_peak_bytes": "reserved_bytes.all.peak",
            "active_peak_bytes": "active_bytes.all.peak", "requested_peak_bytes": "requested_bytes.all.peak",
            "alloc_retries": "num_alloc_retries", "ooms": "num_ooms"}

    def __init__(self, torch, device):
        self.torch, self.device, self.on_gpu = torch, device, device.type == "cuda"

    def clear(self):
        """As in a fresh process: nothing cached, no cuBLAS workspace, peaks at zero."""
        if not self.on_gpu:
            return
        self.torch.cuda.synchronize()
        clear_workspaces = getattr(self.torch._C, "_cuda_clearCublasWorkspaces", None)
        if clear_workspaces:
            clear_workspaces()
        self.torch.cuda.empty_cache()
        self.torch.cuda.reset_peak_memory_stats()
        self.torch.cuda.reset_accumulated_memory_stats()

    def allocated(self):
        return self.torch.cuda.memory_allocated() if self.on_gpu else 0

    def peaks(self):
        if not self.on_gpu:
            return {}
        stats = self.torch.cuda.memory_stats()
        free, total = self.torch.cuda.mem_get_info()
        return {name: stats.get(key) for name, key in self.KEYS.items()} | {
            "device_used_bytes": total - free, "device_total_bytes": total}
