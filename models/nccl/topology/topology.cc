#include "models/nccl/topology/topology.h"

namespace foretrace::nccl {

float nvlink_gbps(std::uint32_t capability) {
  if (capability >= 100) return 40.1F;
  if (capability >= 90) return 20.6F;
  if (capability == 86) return 12.F;
  if (capability >= 80) return 20.F;
  if (capability >= 70) return 20.F;
  return capability >= 60 ? 18.F : 20.F;
}

}  // namespace foretrace::nccl
