"""The few CUDA calls that PyTorch does not offer, through the runtime that it has loaded, and two kernels of our own."""

import ctypes

import torch

_SOURCE = r"""
__device__ unsigned long long timer_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
// Each block keeps an SM for itself: it asks for all of its shared memory.
extern "C" __global__ void foretrace_spin(long long duration_ns, double cycles_per_ns) {
  if (threadIdx.x != 0) return;
  const long long cycles = (long long)((double)duration_ns * cycles_per_ns);
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}
extern "C" __global__ void foretrace_clocks(long long* result) {
  const unsigned long long first = timer_ns();
  const long long first_cycle = clock64();
  unsigned long long last = first;
  while (last - first < 2000000) last = timer_ns();
  result[0] = clock64() - first_cycle;
  result[1] = (long long)(last - first);
}
extern "C" __global__ void foretrace_fault(int* nowhere) { *nowhere = 1; }
"""
NON_BLOCKING = 1  # cudaStreamNonBlocking
PER_THREAD = 2    # cudaStreamPerThread
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class CudaError(RuntimeError):
    pass


class Runtime:
    """libcudart by ctypes: streams of every kind, host functions."""

    def __init__(self):
        major = torch.version.cuda.split(".")[0]
        self.cudart = ctypes.CDLL(f"libcudart.so.{major}")
        self.cudart.cudaGetErrorString.restype = ctypes.c_char_p
        self.kept = []  # what C still calls or points to

    def check(self, code):
        if code != 0:
            raise CudaError(self.cudart.cudaGetErrorString(code).decode())

    def stream(self, device, blocking, priority):
        handle = ctypes.c_void_p()
        with torch.cuda.device(device):
            flags = 0 if blocking else NON_BLOCKING
            self.check(self.cudart.cudaStreamCreateWithPriority(ctypes.byref(handle), flags, priority))
        return torch.cuda.ExternalStream(handle.value, device)

    def launch_sleep(self, stream, nanoseconds):
        """libc's usleep as the function: Python's lock stays with the program's threads."""
        sleep = ctypes.CDLL(None).usleep
        self.check(self.cudart.cudaLaunchHostFunc(ctypes.c_void_p(stream.cuda_stream), sleep,
                                                   ctypes.c_void_p(nanoseconds // 1000)))

    def launch_host_function(self, stream, function):
        """`function()` is called on a thread of the driver when the stream reaches it."""
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        call = kind(lambda _: function())
        self.kept.append(call)
        self.check(self.cudart.cudaLaunchHostFunc(ctypes.c_void_p(stream.cuda_stream), call, None))


class Kernels:
    """Spin and fault on one device: compiled by NVRTC, launched by the driver's own call, which costs a few microseconds."""

    def __init__(self, device):
        self.driver = ctypes.CDLL("libcuda.so.1")
        with torch.cuda.device(device):
            compile_kernel = torch.cuda._compile_kernel  # noqa: SLF001: there is no public way without a compiler
            self.functions = {name: compile_kernel(_SOURCE, f"foretrace_{name}") for name in ("spin", "fault", "clocks")}
            properties = torch.cuda.get_device_properties(device)
            self.sms = properties.multi_processor_count
            self.shared = getattr(properties, "shared_memory_per_block_optin", 227 * 1024)
            self._check(self.driver.cuFuncSetAttribute(self.functions["spin"].func, MAX_DYNAMIC_SHARED, self.shared))
            clocks = torch.zeros(2, dtype=torch.int64, device=device)
            self._launch(self._prepare("clocks", 1, 1, 0, [ctypes.c_void_p(clocks.data_ptr())]))
            cycles, nanoseconds = clocks.tolist()
            self.cycles_per_ns = cycles / nanoseconds

    def _check(self, code):
        if code != 0:
            text = ctypes.c_char_p()
            self.driver.cuGetErrorString(code, ctypes.byref(text))
            raise CudaError((text.value or b"unknown error").decode())

    def _prepare(self, name, blocks, threads, shared, arguments):
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in arguments))
        return (self.functions[name].func, blocks, 1, 1, threads, 1, 1, shared), pointers, arguments

    def _launch(self, prepared):
        shape, pointers, _ = prepared
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self._check(self.driver.cuLaunchKernel(*shape, stream, pointers, None))

    def blocks_on(self, blocks, of):
        """So many of a GPU with `of` SMs; here as large a part; 0: as many."""
        return max(1, blocks * self.sms // of) if of else blocks

    def spin(self, nanoseconds, blocks):
        """A function that launches it on the current stream."""
        arguments = [ctypes.c_longlong(nanoseconds), ctypes.c_double(self.cycles_per_ns)]
        prepared = self._prepare("spin", blocks, 32, self.shared, arguments)
        return lambda: self._launch(prepared) if blocks else None

    def fault(self):
        """As spin(): a store to an address that is not mapped."""
        prepared = self._prepare("fault", 1, 1, 0, [ctypes.c_void_p(0)])
        return lambda: self._launch(prepared)
