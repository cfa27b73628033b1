#include "hw/emulated/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>

#include "hw/emulated/device.h"

namespace foretrace::emulated {
namespace {

constexpr size_t kMostAddresses = size_t{8} << 40, kFewestAddresses = size_t{1} << 36;
constexpr size_t kSmall = 512;  // what small allocations are rounded to

struct Space {
  std::mutex mutex;
  uintptr_t begin = 0, end = 0;
  std::map<uintptr_t, size_t> free;  // ranges of addresses, merged
  std::map<uintptr_t, Allocation> blocks;
  std::map<int, size_t> used;
  std::map<uintptr_t, size_t> host;  // pinned
  uint32_t next_id = 0;

  Space() {
    for (size_t bytes = kMostAddresses; bytes >= kFewestAddresses; bytes /= 2) {
      void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (p == MAP_FAILED) continue;
      begin = (reinterpret_cast<uintptr_t>(p) + kPage - 1) / kPage * kPage;
      end = reinterpret_cast<uintptr_t>(p) + bytes;
      free[begin] = end - begin;
      return;
    }
    refuse("the system gives no addresses for the emulated GPUs' memory (ulimit -v?)");
  }

  // 0 if none fits. Blocks begin on pages, as the driver's do.
  uintptr_t take(size_t bytes) {
    bytes = (bytes + kPage - 1) / kPage * kPage;
    for (auto range = free.begin(); range != free.end(); ++range) {
      if (range->second < bytes) continue;
      const uintptr_t address = range->first;
      const size_t rest = range->second - bytes;
      free.erase(range);
      if (rest > 0) free[address + bytes] = rest;
      return address;
    }
    return 0;
  }

  void give(uintptr_t address, size_t bytes) {
    bytes = (bytes + kPage - 1) / kPage * kPage;
    madvise(reinterpret_cast<void*>(address), bytes, MADV_DONTNEED);  // zero again
    auto next = free.emplace(address, bytes).first;
    if (const auto after = std::next(next);
        after != free.end() && address + bytes == after->first) {
      next->second += after->second;
      free.erase(after);
    }
    if (next == free.begin()) return;
    const auto before = std::prev(next);
    if (before->first + before->second != next->first) return;
    before->second += next->second;
    free.erase(next);
  }
};

Space& space() {
  static auto* const the = new Space;
  return *the;
}

template <typename Map>
auto containing(Map& map, uintptr_t address) {
  auto after = map.upper_bound(address);
  return after == map.begin() ? map.end() : std::prev(after);
}

}  // namespace

size_t total_bytes() {
  static const size_t total = [] {
    const char* const limit = std::getenv("FORETRACE_MEMORY");
    return limit ? std::strtoull(limit, nullptr, 10) : static_cast<size_t>(device()["memory"]);
  }();
  return total;
}

void* allocate(int device, size_t bytes, uint32_t* id) {
  const size_t unit = bytes > kPage / 2 ? kPage : kSmall;
  bytes = (bytes + unit - 1) / unit * unit;
  const size_t total = total_bytes();
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  if (bytes > total || s.used[device] > total - bytes) return nullptr;
  const uintptr_t address = s.take(bytes);
  if (address == 0) return nullptr;
  s.blocks[address] = {address, bytes, device, s.next_id};
  if (id) *id = s.next_id;
  ++s.next_id;
  s.used[device] += bytes;
  return reinterpret_cast<void*>(address);
}

std::optional<Allocation> release(const void* address) {
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  const auto found = s.blocks.find(reinterpret_cast<uintptr_t>(address));
  if (found == s.blocks.end()) return std::nullopt;
  const Allocation block = found->second;
  s.used[block.device] -= block.bytes;
  s.blocks.erase(found);
  s.give(block.address, block.bytes);
  return block;
}

std::optional<Allocation> allocation_of(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  const auto found = containing(s.blocks, address);
  if (found == s.blocks.end() || address >= found->first + found->second.bytes) return std::nullopt;
  return found->second;
}

bool on_device(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return address >= space().begin && address < space().end;
}

size_t used_bytes(int device) {
  const std::lock_guard lock(space().mutex);
  return space().used[device];
}

void* reserve_addresses(size_t bytes) {
  const std::lock_guard lock(space().mutex);
  return reinterpret_cast<void*>(space().take(bytes));
}

bool take_bytes(int device, size_t bytes) {
  const size_t total = total_bytes();
  const std::lock_guard lock(space().mutex);
  size_t& used = space().used[device];
  if (bytes > total || used > total - bytes) return false;
  used += bytes;
  return true;
}

void give_bytes(int device, size_t bytes) {
  const std::lock_guard lock(space().mutex);
  space().used[device] -= bytes;
}

void* allocate_host(size_t bytes) {
  constexpr size_t kHostPage = 4096;
  bytes = (bytes + kHostPage - 1) / kHostPage * kHostPage;
  void* const address = std::aligned_alloc(kHostPage, bytes);
  if (address) register_host(address, bytes);
  return address;
}

size_t release_host(void* address) {
  size_t bytes = 0;
  {
    const std::lock_guard lock(space().mutex);
    const auto found = space().host.find(reinterpret_cast<uintptr_t>(address));
    if (found == space().host.end()) return 0;
    bytes = found->second;
    space().host.erase(found);
  }
  std::free(address);
  return bytes;
}

void register_host(void* address, size_t bytes) {
  const std::lock_guard lock(space().mutex);
  space().host[reinterpret_cast<uintptr_t>(address)] = bytes;
}

void unregister_host(void* address) {
  const std::lock_guard lock(space().mutex);
  space().host.erase(reinterpret_cast<uintptr_t>(address));
}

bool pinned(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const std::lock_guard lock(space().mutex);
  const auto found = containing(space().host, address);
  return found != space().host.end() && address < found->first + found->second;
}

}  // namespace foretrace::emulated
