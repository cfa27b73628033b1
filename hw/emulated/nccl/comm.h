#pragma once
// An NCCL communicator of the emulated world: this process plays one rank, the others say what it
// says.
#include <cstddef>
#include <cstdint>

namespace foretrace::emulated {

struct Comm {
  uint32_t id;
  int size, rank, device;
};

size_t nccl_type_bytes(int type);
const char* nccl_type_word(int type);
const char* nccl_operation_word(int operation);

}  // namespace foretrace::emulated
