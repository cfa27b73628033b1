#pragma once
// The emulated GPUs' memory: addresses of this process without pages behind them, but where bytes
// are copied.
#include <cstddef>
#include <cstdint>
#include <optional>

namespace foretrace::emulated {

// Bytes from which on the driver gives out whole pages, and their size.
constexpr size_t kPage = size_t{2} << 20;

struct Allocation {
  uintptr_t address = 0;
  size_t bytes = 0;  // as accounted: rounded
  int device = 0;
  uint32_t id = 0;  // in order of allocation
};

// nullptr where the device has no room left for `bytes`, or no addresses are left. `id` of the
// allocation, if asked for.
void* allocate(int device, size_t bytes, uint32_t* id = nullptr);
// What lay at this address; nothing if nothing did.
std::optional<Allocation> release(const void* address);
// The allocation that contains the address.
std::optional<Allocation> allocation_of(const void* address);
bool on_device(const void* address);
size_t used_bytes(int device);
size_t total_bytes();  // of a device, as cudaMemGetInfo says it

// Addresses and bytes apart, as the driver's cuMem functions have them.
void* reserve_addresses(size_t bytes);
bool take_bytes(int device, size_t bytes);
void give_bytes(int device, size_t bytes);

// Pinned memory of the host.
void* allocate_host(size_t bytes);
size_t release_host(void* address);  // its bytes
void register_host(void* address, size_t bytes);
void unregister_host(void* address);
bool pinned(const void* address);

}  // namespace foretrace::emulated
