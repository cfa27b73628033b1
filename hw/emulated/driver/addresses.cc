// Virtual memory of the driver: addresses, and bytes behind them (expandable segments of PyTorch's
// allocator).
#include <cstdint>
#include <map>
#include <mutex>

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/memory.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"

using namespace foretrace::emulated;

namespace {
struct Piece {
  size_t bytes;
  int device;
};
struct Pieces {
  std::mutex mutex;
  std::map<uint64_t, Piece> by_handle;
  uint64_t next = 1;
};
Pieces& pieces() {
  static auto* const the = new Pieces;
  return *the;
}
}  // namespace

FORETRACE_EXPORTED int cuMemGetAllocationGranularity(size_t* bytes, const void*, int) {
  *bytes = kPage;
  return kSuccess;
}
FORETRACE_EXPORTED int cuMemAddressReserve(uintptr_t* address, size_t bytes, size_t, uintptr_t,
                                           unsigned long long) {
  *address = reinterpret_cast<uintptr_t>(reserve_addresses(bytes));
  return *address ? kSuccess : kOutOfMemory;
}
FORETRACE_EXPORTED int cuMemAddressFree(uintptr_t, size_t) { return kSuccess; }
FORETRACE_EXPORTED int cuMemCreate(uint64_t* handle, size_t bytes, const void*,
                                   unsigned long long) {
  const LibraryTime time;
  if (!take_bytes(current_device(), bytes)) {
    record(time, format(R"("k":"malloc","n":%zu,"ok":false)", bytes));
    return kOutOfMemory;
  }
  const std::lock_guard lock(pieces().mutex);
  *handle = pieces().next++;
  pieces().by_handle[*handle] = {bytes, current_device()};
  record(time, format(R"("k":"malloc","n":%zu,"how":"cuMemCreate")", bytes));
  return kSuccess;
}
FORETRACE_EXPORTED int cuMemRelease(uint64_t handle) {
  const LibraryTime time;
  const std::lock_guard lock(pieces().mutex);
  const auto found = pieces().by_handle.find(handle);
  if (found == pieces().by_handle.end()) return kInvalidValue;
  give_bytes(found->second.device, found->second.bytes);
  record(time, format(R"("k":"free","n":%zu,"how":"cuMemRelease")", found->second.bytes));
  pieces().by_handle.erase(found);
  return kSuccess;
}
FORETRACE_EXPORTED int cuMemMap(uintptr_t, size_t, size_t, uint64_t, unsigned long long) {
  return kSuccess;
}
FORETRACE_EXPORTED int cuMemUnmap(uintptr_t, size_t) { return kSuccess; }
FORETRACE_EXPORTED int cuMemSetAccess(uintptr_t, size_t, const void*, size_t) { return kSuccess; }
