#include "models/machine/frontend.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using enum Param;
constexpr std::array<std::pair<Param, Param>, 14> kPytorch{{
    {HostLaunchKernel, PytorchLaunchKernel},
    {HostLaunchGemm, PytorchLaunchGemm},
    {HostMemcpyAsync, PytorchMemcpyAsync},
    {HostMemcpyDevice, PytorchMemcpyDevice},
    {HostMemset, PytorchMemset},
    {HostEventRecord, PytorchEventRecord},
    {HostEventRecordUntimed, PytorchEventRecord},
    {HostStreamWaitEvent, PytorchStreamWaitEvent},
    {HostQuery, PytorchQuery},
    {HostSynchronize, PytorchSynchronize},
    {HostDeviceSynchronize, PytorchDeviceSynchronize},
    {NcclHostCollective, PytorchCollective},
    {NcclHostPerOp, PytorchPerOperation},
    {NcclHostGrouped, PytorchPerOperation},
}};

}  // namespace

Frontend parse_frontend(const std::string& text) {
  if (text == "cuda") return Frontend::Cuda;
  if (text == "pytorch") return Frontend::PyTorch;
  throw UsageError{fmt::format("--frontend: '{}' is not cuda or pytorch", text)};
}

Machine through_frontend(Machine machine, Frontend frontend) {
  if (frontend == Frontend::Cuda) return machine;
  for (const auto& [call, measured] : kPytorch) machine.replace_call(call, machine.get(measured));
  return machine;
}

}  // namespace foretrace
