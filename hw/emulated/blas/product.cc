#include "hw/emulated/blas/product.h"

#include <algorithm>
#include <cstring>

#include "hw/emulated/handles.h"
#include "hw/emulated/memory.h"
#include "hw/emulated/record.h"

namespace foretrace::emulated {
namespace {

// The largest power of two, up to 256, that divides an address: cuBLAS chooses kernels by it.
unsigned alignment(const void* pointer) {
  constexpr uintptr_t kMost = 256;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return static_cast<unsigned>(address == 0 ? kMost : std::min(address & (~address + 1), kMost));
}

}  // namespace

bool nonzero(const void* scalar, const std::string& type) {
  if (!scalar || on_device(scalar)) return false;
  const size_t bytes = type == "f16"                    ? 2
                       : type == "f64" || type == "c64" ? 8
                       : type == "c128"                 ? 16
                                                        : 4;
  const char* const p = static_cast<const char*>(scalar);
  return std::any_of(p, p + bytes, [](char c) { return c != 0; });
}

void record_product(const Product& p, void* stream) {
  const LibraryTime time;
  std::string json = format(
      R"("k":"gemm","f":"%s","m":%lld,"n":%lld,"kk":%lld,"batch":%lld,"ta":%s,"tb":%s,"a":"%s","b":"%s","c":"%s","d":"%s","compute":"%s")",
      p.function, static_cast<long long>(p.m), static_cast<long long>(p.n),
      static_cast<long long>(p.k), static_cast<long long>(p.batch),
      p.transpose_a ? "true" : "false", p.transpose_b ? "true" : "false", p.a.c_str(), p.b.c_str(),
      p.c.c_str(), p.d.c_str(), p.compute.c_str());
  json += format(
      R"(,"scale":"%s","epi":"%s","beta":%d,"ld":[%lld,%lld,%lld],"ws":%zu,"al":[%u,%u,%u,%u])",
      p.scale.c_str(), p.epilogue.c_str(), p.accumulates ? 1 : 0, static_cast<long long>(p.lda),
      static_cast<long long>(p.ldb), static_cast<long long>(p.ldd), p.workspace, alignment(p.pa),
      alignment(p.pb), alignment(p.pc), alignment(p.pd));
  record(time, json + p.more, on(stream_of(stream)));
}

}  // namespace foretrace::emulated
