#include "models/what_if/names.h"

#include <algorithm>
#include <array>

#include "models/nccl/topology/machine.h"

namespace foretrace {
namespace {

using enum Param;

constexpr std::array kNames{
    WhatIfName{"nvlink", "the links between the GPUs of a node", NvlinkBandwidth},
    WhatIfName{"nic", "every NIC of a node", NvlinkBandwidth},
    WhatIfName{"hbm", "device memory", HbmBandwidth},
    WhatIfName{"pcie", "copies between host and device", H2dBandwidth},
    WhatIfName{"host", "the host's speed: calls, PyTorch, host memory, pageable copies",
               HostLaunchKernel},
    WhatIfName{"gemm", "arithmetic: products, attention, and their peaks", ProductsHalfRate}};

bool starts(std::string_view key, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return key.starts_with(prefix); });
}

bool is_attention(std::string_view key) { return key.starts_with("library.attention"); }

bool is_of_memory(Param param) {
  if (param == ProductsMemory || param == D2dBandwidth || param == HbmBandwidth) return true;
  if (info(param).unit != ParamUnit::Rate) return false;
  const std::string_view key = info(param).key;
  if (key.ends_with("cached")) return false;  // the level-2 cache's
  return starts(key, {"kernel.", "library."}) && !is_attention(key);
}

bool is_of_pcie(const Machine& machine, Param param) {
  constexpr std::array kCopies{H2dBandwidth, D2hBandwidth, DuplexBandwidth, HostLinkBandwidth,
                               P2pStagedBandwidth};
  if (std::ranges::count(kCopies, param) != 0) return true;
  return param == NvlinkBandwidth && nccl::lacks_nvlink(machine);
}

/// Between a GPU and pageable memory it is the calling thread that moves the data.
bool is_of_pageable_copies(Param param) {
  constexpr std::array kCopies{
      PageableH2dBase,           PageableH2dBandwidth, PageableH2dCached,
      PageableH2dCore,           PageableD2hBase,      PageableD2hBandwidth,
      PageableD2hFirstBandwidth, FreshD2hBandwidth,    SmallPageableBandwidth};
  return std::ranges::count(kCopies, param) != 0;
}

/// Calls, and what the host moves in its own memory and between that and a GPU's. Not its loop:
/// that is a measure of hosts, and no program runs it.
bool is_of_host(Param param) {
  if (param == HostLoop) return false;
  const std::string_view key = info(param).key;
  return is_of_pageable_copies(param) ||
         (starts(key, {"host.", "pytorch.", "nccl.host_"}) && info(param).unit != ParamUnit::Ratio);
}

bool is_of_arithmetic(Param param) {
  const std::string_view key = info(param).key;
  if (info(param).unit == ParamUnit::FlopRate) return param != HostCoreFlops;
  return starts(key, {"products."}) && (key.ends_with(".operands") || key.ends_with(".results"));
}

bool stands_for(const Machine& machine, std::string_view name, Param param) {
  if (name == "nvlink") {
    return param == NvlinkBandwidth || (param == P2pStagedBandwidth && nccl::lacks_nvlink(machine));
  }
  if (name == "hbm") return is_of_memory(param);
  if (name == "pcie") return is_of_pcie(machine, param);
  if (name == "host") return is_of_host(param);
  return name == "gemm" && is_of_arithmetic(param);
}

}  // namespace

std::span<const WhatIfName> what_if_names() { return kNames; }

std::vector<Param> params_of(const Machine& machine, std::string_view name) {
  std::vector<Param> all;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (machine.has(param) && stands_for(machine, name, param)) all.push_back(param);
  }
  return all;
}

}  // namespace foretrace
