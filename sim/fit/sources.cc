#include "sim/fit/sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace foretrace {
namespace {

struct Source {
  std::string_view prefix;  ///< of the key
  std::vector<std::string> files;
};

/// The first prefix that fits counts: longer ones stand before shorter ones.
const std::vector<Source>& sources() {
  static const std::vector<Source> all{
      {"node.", {}},
      {"nvlink.", {}},
      {"host.enable_peer_access", {}},
      {"gpu.hbm_bandwidth", {}},
      {"gpu.memory", {}},
      {"gpu.l2_size", {"calibration/kernels.yaml"}},
      {"host.malloc", {"calibration/memory.yaml"}},
      {"host.free", {"calibration/memory.yaml"}},
      {"host.host_", {"calibration/memory.yaml"}},
      {"host.graph", {"calibration/driver.yaml"}},
      {"host.capture", {"calibration/driver.yaml"}},
      {"host.launch_host_func", {"calibration/driver.yaml"}},
      {"host.contention", {"calibration/driver_lock.yaml"}},
      {"host.barrier", {"calibration/threads.yaml"}},
      {"host.signal", {"calibration/threads.yaml"}},
      {"host.fill_", {"calibration/copies.yaml"}},
      {"host.copy_", {"calibration/copies.yaml"}},
      {"host.touch_", {"calibration/copies.yaml"}},
      {"host.set_device", {"calibration/two_gpus.yaml"}},
      {"host.memcpy_peer", {"calibration/two_gpus.yaml"}},
      {"host.wake", {"calibration/latencies.yaml"}},
      {"host.first_", {"calibration/latencies.yaml", "calibration/kernels.yaml"}},
      {"host.", {"calibration/host_calls.yaml"}},
      {"gpu.host_func", {"calibration/driver.yaml"}},
      {"gpu.graph", {"calibration/driver.yaml"}},
      {"gpu.", {"calibration/latencies.yaml"}},
      {"copy.p2p", {"calibration/two_gpus.yaml"}},
      {"copy.launch_latency", {"calibration/latencies.yaml"}},
      {"copy.gap", {"calibration/latencies.yaml"}},
      {"copy.", {"calibration/copies.yaml"}},
      {"kernel.", {"calibration/kernels.yaml"}},
      {"gemm.", {"calibration/kernels.yaml"}},
      {"network.", {}},
      {"nccl.network.", {}},  // several nodes, trees and multicast: no calibration yet
      {"nccl.tree.", {}},
      {"nccl.nvls", {}},
      {"nccl.host_path", {}},
      {"nccl.memory_slowdown", {"calibration/nccl_beside_kernels.yaml"}},
      {"nccl.generic_kernel", {}},
      {"nccl.connect", {}},
      {"nccl.init", {}},
      {"nccl.host_per_device", {"nccl/one_thread_all_reduce.yaml"}},
      {"nccl.host_mixing", {"nccl/all_reduce.yaml"}},
      {"nccl.all_reduce.channel_bandwidth", {}},  // shows with fewer channels only
      {"nccl.all_gather.channel_bandwidth", {}},
      {"nccl.reduce_scatter.channel_bandwidth", {}},
      {"nccl.broadcast.channel_bandwidth", {}},
      {"nccl.reduce.channel_bandwidth", {}},
      {"nccl.send_recv.", {"nccl/sendrecv.yaml"}},
      {"nccl.all_reduce.", {"nccl/all_reduce.yaml"}},
      {"nccl.all_gather.", {"nccl/all_gather.yaml"}},
      {"nccl.reduce_scatter.", {"nccl/reduce_scatter.yaml"}},
      {"nccl.broadcast.", {"nccl/broadcast.yaml"}},
      {"nccl.reduce.", {"nccl/reduce.yaml"}},
      {"nccl.all_to_all.", {"nccl/all_to_all.yaml"}},
      {"nccl.gather.", {"nccl/gather.yaml"}},
      {"nccl.scatter.", {"nccl/scatter.yaml"}},
      {"nccl.", {"nccl/all_reduce.yaml", "nccl/sendrecv.yaml"}},
  };
  return all;
}

}  // namespace

std::string_view class_of(Param param) {
  const std::string_view key = info(param).key;
  return key.substr(0, key.find('.'));
}

std::vector<std::string> scenarios_for(Param param) {
  for (const Source& source : sources()) {
    if (info(param).key.starts_with(source.prefix)) return source.files;
  }
  return {};
}

std::string advice_for(Param param) {
  const auto files = scenarios_for(param);
  if (files.empty()) return "no calibration scenario determines it: give it by hand";
  std::string text = fmt::format("scenarios/{}", fmt::join(files, " or scenarios/"));
  const std::string_view key = info(param).key;
  if (key.find(".ll128.") != key.npos || key.find(".ll.") != key.npos ||
      key.find(".simple.") != key.npos) {
    text += " with ranks and sizes where NCCL uses this protocol";
  }
  return text;
}

}  // namespace foretrace
