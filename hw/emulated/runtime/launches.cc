// Kernels of the program's own binary: registered when it starts, launched by the address of their
// stub.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/launch.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"

using namespace foretrace::emulated;

namespace {

struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void*, const char*> names;
};

// Made by the first registration, which is before any constructor of ours may have run.
Kernels& kernels() {
  static auto* const the = new Kernels;
  return *the;
}

const char* name_of(const void* stub) {
  const std::lock_guard lock(kernels().mutex);
  const auto found = kernels().names.find(stub);
  return found == kernels().names.end() ? "unregistered kernel" : found->second;
}

struct Configuration {
  Dim3 grid, block;
  size_t shared;
  void* stream;
};
thread_local std::vector<Configuration> configurations;

constexpr int kAssumedRegisters = 32;  // of a thread; the binary would say it

// Blocks of so many threads that a multiprocessor holds, by threads and registers.
int resident_blocks(int threads, size_t shared) {
  const Device& d = device();
  if (threads <= 0) return 1;
  int64_t most = std::min(d["threads_per_sm"] / threads, d["blocks_per_sm"]);
  most = std::min(most, d["registers_per_sm"] / (int64_t{kAssumedRegisters} * threads));
  if (shared > 0)
    most =
        std::min(most, d["shared_per_sm"] / (static_cast<int64_t>(shared) + d["shared_reserved"]));
  return static_cast<int>(std::max<int64_t>(most, 0));
}

}  // namespace

FORETRACE_EXPORTED void** __cudaRegisterFatBinary(void*) {
  static void* binary[1];
  return binary;
}
FORETRACE_EXPORTED void __cudaRegisterFatBinaryEnd(void**) {}
FORETRACE_EXPORTED void __cudaUnregisterFatBinary(void**) {}
FORETRACE_EXPORTED void __cudaRegisterFunction(void**, const char* stub, char*, const char* name,
                                               int, void*, void*, void*, void*, int*) {
  const std::lock_guard lock(kernels().mutex);
  kernels().names[stub] = name;
}
FORETRACE_EXPORTED void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int,
                                          int) {}
FORETRACE_EXPORTED void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t,
                                                 int, int) {}
FORETRACE_EXPORTED char __cudaInitModule(void**) { return 0; }
FORETRACE_EXPORTED unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared,
                                                        void* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
FORETRACE_EXPORTED int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared,
                                                  void* stream) {
  const Configuration c = configurations.back();
  configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  std::memcpy(stream, &c.stream, sizeof c.stream);
  return kSuccess;
}

FORETRACE_EXPORTED int cudaLaunchKernel(const void* stub, Dim3 grid, Dim3 block, void** arguments,
                                        size_t shared, void* stream) {
  return launch({name_of(stub), grid, block, shared, stream, arguments});
}
FORETRACE_EXPORTED int cudaLaunchCooperativeKernel(const void* stub, Dim3 grid, Dim3 block,
                                                   void** arguments, size_t shared, void* stream) {
  return launch({name_of(stub), grid, block, shared, stream, arguments, true});
}
FORETRACE_EXPORTED int cudaLaunchKernelExC(const LaunchConfig* config, const void* stub,
                                           void** arguments) {
  Launch l{name_of(stub), config->grid, config->block, config->shared, config->stream, arguments};
  read_attributes(l, config->attributes, config->count);
  return launch(l);
}
// CUDA 13's stubs: a kernel's handle is its stub's address here.
FORETRACE_EXPORTED int __cudaLaunchKernel(void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                          size_t shared, void* stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
FORETRACE_EXPORTED int __cudaGetKernel(void** kernel, const void* stub) {
  *kernel = const_cast<void*>(stub);
  return kSuccess;
}
FORETRACE_EXPORTED int cudaGetKernel(void** kernel, const void* stub) {
  return __cudaGetKernel(kernel, stub);
}
FORETRACE_EXPORTED int cudaGetFuncBySymbol(void** function, const void* stub) {
  return __cudaGetKernel(function, stub);
}
FORETRACE_EXPORTED int cudaGetSymbolAddress(void** address, const void*) {
  *address = nullptr;
  return unsupported("cudaGetSymbolAddress");
}

FORETRACE_EXPORTED int cudaFuncGetAttributes(FuncAttributes* attributes, const void*) {
  constexpr int kMostThreads = 1024, kTen = 10;
  const LibraryTime time;
  record(time, R"("k":"call","f":"cudaFuncGetAttributes")");
  const int capability =
      static_cast<int>(device()["major"]) * kTen + static_cast<int>(device()["minor"]);
  *attributes = {};
  attributes->max_threads = kMostThreads;
  attributes->registers = kAssumedRegisters;
  attributes->binary = attributes->ptx = capability;
  attributes->max_dynamic_shared = static_cast<int>(device()["shared_per_block"]);
  return kSuccess;
}
FORETRACE_EXPORTED int cudaFuncSetAttribute(const void*, int, int) {
  const LibraryTime time;
  record(time, R"("k":"call","f":"cudaFuncSetAttribute")");
  return kSuccess;
}
FORETRACE_EXPORTED int cudaFuncSetCacheConfig(const void*, int) { return kSuccess; }
FORETRACE_EXPORTED int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void*, int threads, size_t shared, unsigned) {
  const LibraryTime time;
  record(time, R"("k":"call","f":"cudaOccupancyMaxActiveBlocksPerMultiprocessor")");
  *blocks = resident_blocks(threads, shared);
  return kSuccess;
}
FORETRACE_EXPORTED int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub,
                                                                     int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, shared, 0);
}
FORETRACE_EXPORTED int cudaOccupancyMaxActiveClusters(int* clusters, const void*,
                                                      const LaunchConfig* config) {
  Launch l{};
  read_attributes(l, config->attributes, config->count);
  const unsigned size =
      std::max(1u, l.cluster.x * std::max(1u, l.cluster.y) * std::max(1u, l.cluster.z));
  const int per_sm = resident_blocks(
      static_cast<int>(config->block.x * config->block.y * config->block.z), config->shared);
  *clusters = static_cast<int>(device()["sms"] * per_sm / size);
  return kSuccess;
}
