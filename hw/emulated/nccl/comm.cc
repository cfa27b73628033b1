#include "hw/emulated/nccl/comm.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/memory.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"

namespace foretrace::emulated {

size_t nccl_type_bytes(int type) {
  constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};  // ncclInt8 to ncclFloat8e5m2
  return type >= 0 && type < 12 ? kBytes[type] : 1;
}
const char* nccl_type_word(int type) {
  constexpr const char* kWords[] = {"i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                    "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
  return type >= 0 && type < 12 ? kWords[type] : "unknown";
}
const char* nccl_operation_word(int operation) {
  constexpr const char* kWords[] = {"sum", "prod", "max", "min", "avg"};  // ncclRedOp_t
  return operation >= 0 && operation < 5 ? kWords[operation] : "premulsum";
}

}  // namespace foretrace::emulated

using namespace foretrace::emulated;

namespace {

constexpr size_t kIdBytes = 128;
struct UniqueId {
  unsigned char bytes[kIdBytes];
};

std::atomic<uint32_t> comms{0};

// The first bytes of a communicator's unique id: the recorder knows from them which process group
// it is.
std::string hex(const UniqueId& id) {
  constexpr int kShown = 8;
  std::string text;
  for (int i = 0; i < kShown; ++i) text += format("%02x", id.bytes[i]);
  return text;
}

int make(const LibraryTime& time, void** out, int size, int rank, const std::string& more) {
  auto* const comm = new Comm{comms++, size, rank, current_device()};
  *out = comm;
  record(time,
         format(R"("k":"comm","i":%u,"size":%d,"rank":%d%s)", comm->id, size, rank, more.c_str()),
         {.comm = comm->id});
  record(time, format(R"("k":"comm_init","c":%u,"how":"%s")", comm->id,
                      more.find("parent") == std::string::npos ? "init" : "split"));
  return 0;
}

}  // namespace

FORETRACE_EXPORTED int ncclGetVersion(int* version) {
  constexpr int kDefault = 22809;  // 2.28.9, which PyTorch 2.11 brings
  const char* const text = std::getenv("FORETRACE_NCCL");
  *version = text ? std::atoi(text) : kDefault;
  return 0;
}
FORETRACE_EXPORTED int ncclGetUniqueId(UniqueId* id) {
  static std::atomic<uint32_t> next{1};
  std::memset(id, 0, sizeof *id);
  const uint32_t number = next++;
  std::memcpy(id->bytes, &number, sizeof number);
  id->bytes[kIdBytes - 1] = 1;  // never all zero
  return 0;
}
FORETRACE_EXPORTED int ncclCommInitRank(void** comm, int size, UniqueId id, int rank) {
  const LibraryTime time;
  return make(time, comm, size, rank, format(R"(,"id":"%s")", hex(id).c_str()));
}
FORETRACE_EXPORTED int ncclCommInitRankConfig(void** comm, int size, UniqueId id, int rank, void*) {
  return ncclCommInitRank(comm, size, id, rank);
}
FORETRACE_EXPORTED int ncclCommInitRankScalable(void** comm, int size, int rank, int, UniqueId* ids,
                                                void*) {
  return ncclCommInitRank(comm, size, ids[0], rank);
}
FORETRACE_EXPORTED int ncclCommInitAll(void** list, int n, const int*) {
  const LibraryTime time;
  for (int i = 0; i < n; ++i) make(time, list + i, n, i, "");
  return 0;
}
// How many share our color only the others know: the recorder tells us before (foretrace_split),
// else all.
namespace {
thread_local int split_size = 0, split_rank = 0;
}
FORETRACE_EXPORTED void foretrace_split(int size, int rank) {
  split_size = size;
  split_rank = rank;
}
FORETRACE_EXPORTED int ncclCommSplit(void* parent, int color, int, void** out, void*) {
  const LibraryTime time;
  const auto& from = *static_cast<Comm*>(parent);
  if (color < 0) {  // NCCL_SPLIT_NOCOLOR
    *out = nullptr;
    return 0;
  }
  const int size = split_size > 0 ? split_size : from.size;
  return make(time, out, size, split_size > 0 ? split_rank : from.rank,
              format(R"(,"parent":%u)", from.id));
}
FORETRACE_EXPORTED int ncclCommShrink(void*, int*, int, void**, void*, int) {
  constexpr int kInvalidUsage = 5;
  unsupported("ncclCommShrink");
  return kInvalidUsage;
}
FORETRACE_EXPORTED int ncclCommCount(void* comm, int* n) {
  *n = static_cast<Comm*>(comm)->size;
  return 0;
}
FORETRACE_EXPORTED int ncclCommUserRank(void* comm, int* rank) {
  *rank = static_cast<Comm*>(comm)->rank;
  return 0;
}
FORETRACE_EXPORTED int ncclCommCuDevice(void* comm, int* index) {
  *index = static_cast<Comm*>(comm)->device;
  return 0;
}
FORETRACE_EXPORTED int ncclCommDestroy(void*) { return 0; }
FORETRACE_EXPORTED int ncclCommFinalize(void*) { return 0; }
FORETRACE_EXPORTED int ncclCommAbort(void*) { return 0; }
FORETRACE_EXPORTED int ncclCommGetAsyncError(void*, int* error) {
  *error = 0;
  return 0;
}
FORETRACE_EXPORTED int ncclCommRegister(void*, void*, size_t, void** handle) {
  *handle = nullptr;
  return 0;
}
FORETRACE_EXPORTED int ncclCommDeregister(void*, void*) { return 0; }
FORETRACE_EXPORTED int ncclMemAlloc(void** address, size_t bytes) {
  const LibraryTime time;
  *address = allocate(current_device(), bytes);
  record(time, format(R"("k":"malloc","n":%zu,"how":"ncclMemAlloc"%s)", bytes,
                      *address ? "" : R"(,"ok":false)"));
  return *address ? 0 : 1;
}
FORETRACE_EXPORTED int ncclMemFree(void* address) {
  release(address);
  return 0;
}
FORETRACE_EXPORTED const char* ncclGetErrorString(int error) {
  return error == 0 ? "no error" : "error of foretrace's emulated NCCL";
}
FORETRACE_EXPORTED const char* ncclGetLastError(void*) { return ""; }
