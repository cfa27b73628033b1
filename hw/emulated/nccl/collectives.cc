// NCCL's operations. Every other rank holds what this one holds: gathered copies are equal, sums
// are this rank's part.
#include <cstring>

#include "hw/emulated/exported.h"
#include "hw/emulated/handles.h"
#include "hw/emulated/nccl/comm.h"
#include "hw/emulated/record.h"
#include "hw/emulated/values.h"

using namespace foretrace::emulated;

namespace {

struct Call {
  const char* function;
  size_t count;
  int type;
  void* comm;
  void* stream;
  std::string more;  // keys of JSON
};

int say(const LibraryTime& time, const Call& c) {
  Place place = on(stream_of(c.stream));
  place.comm = static_cast<Comm*>(c.comm)->id;
  record(time,
         format(R"("k":"coll","f":"%s","n":%zu,"d":"%s"%s)", c.function, c.count,
                nccl_type_word(c.type), c.more.c_str()),
         place);
  return 0;
}

void put(void* to, const void* from, size_t count, int type) {
  const size_t bytes = count * nccl_type_bytes(type);
  if (bytes <= kCarried && to != from && to && from) std::memmove(to, from, bytes);
}

std::string reduction(int operation) {
  return format(R"(,"op3":"%s")", nccl_operation_word(operation));
}
std::string root_key(int root) { return format(R"(,"root":%d)", root); }
std::string peer_key(int peer) { return format(R"(,"peer":%d)", peer); }

}  // namespace

FORETRACE_EXPORTED int ncclGroupStart() {
  const LibraryTime time;
  record(time, R"("k":"group","end":false)");
  return 0;
}
FORETRACE_EXPORTED int ncclGroupEnd() {
  const LibraryTime time;
  record(time, R"("k":"group","end":true)");
  return 0;
}
FORETRACE_EXPORTED int ncclAllReduce(const void* from, void* to, size_t n, int type, int operation,
                                     void* comm, void* stream) {
  const LibraryTime time;
  put(to, from, n, type);
  return say(time, {"all_reduce", n, type, comm, stream, reduction(operation)});
}
FORETRACE_EXPORTED int ncclReduce(const void* from, void* to, size_t n, int type, int operation,
                                  int root, void* comm, void* stream) {
  const LibraryTime time;
  put(to, from, n, type);
  return say(time, {"reduce", n, type, comm, stream, reduction(operation) + root_key(root)});
}
FORETRACE_EXPORTED int ncclBroadcast(const void* from, void* to, size_t n, int type, int root,
                                     void* comm, void* stream) {
  const LibraryTime time;
  put(to, from, n, type);
  return say(time, {"broadcast", n, type, comm, stream, root_key(root)});
}
FORETRACE_EXPORTED int ncclBcast(void* buffer, size_t n, int type, int root, void* comm,
                                 void* stream) {
  return ncclBroadcast(buffer, buffer, n, type, root, comm, stream);
}
FORETRACE_EXPORTED int ncclAllGather(const void* from, void* to, size_t n, int type, void* comm,
                                     void* stream) {
  const LibraryTime time;
  const auto size = static_cast<size_t>(static_cast<Comm*>(comm)->size),
             part = n * nccl_type_bytes(type);
  if (part * size <= kCarried)
    for (size_t i = 0; i < size; ++i) put(static_cast<char*>(to) + i * part, from, n, type);
  return say(time, {"all_gather", n, type, comm, stream, ""});
}
FORETRACE_EXPORTED int ncclReduceScatter(const void* from, void* to, size_t n, int type,
                                         int operation, void* comm, void* stream) {
  const LibraryTime time;
  const size_t rank = static_cast<size_t>(static_cast<Comm*>(comm)->rank);
  put(to, static_cast<const char*>(from) + rank * n * nccl_type_bytes(type), n, type);
  return say(time, {"reduce_scatter", n, type, comm, stream, reduction(operation)});
}
FORETRACE_EXPORTED int ncclAlltoAll(const void* from, void* to, size_t n, int type, void* comm,
                                    void* stream) {
  const LibraryTime time;
  put(to, from, n * static_cast<size_t>(static_cast<Comm*>(comm)->size), type);
  return say(time, {"all_to_all", n, type, comm, stream, ""});
}
FORETRACE_EXPORTED int ncclSend(const void*, size_t n, int type, int peer, void* comm,
                                void* stream) {
  const LibraryTime time;
  return say(time, {"send", n, type, comm, stream, peer_key(peer)});
}
FORETRACE_EXPORTED int ncclRecv(void*, size_t n, int type, int peer, void* comm, void* stream) {
  const LibraryTime time;
  return say(time, {"recv", n, type, comm, stream, peer_key(peer)});
}
FORETRACE_EXPORTED int ncclRedOpCreatePreMulSum(int* operation, void*, int, int, void*) {
  constexpr int kFirstOfOurs = 5;
  *operation = kFirstOfOurs;
  return 0;
}
FORETRACE_EXPORTED int ncclRedOpDestroy(int, void*) { return 0; }
