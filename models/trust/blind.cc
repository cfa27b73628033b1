#include "models/trust/blind.h"

#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "models/trust/trust.h"

namespace foretrace {
namespace {

struct Class {
  std::string_view prefix;  ///< of the parameters' keys; the first that fits decides
  std::optional<Param> spread;
};

constexpr std::array kClasses{
    Class{"host.malloc", Param::BlindAllocations},
    Class{"host.free", Param::BlindAllocations},
    Class{"host.pool", Param::BlindAllocations},
    Class{"host.host_", Param::BlindAllocations},
    Class{"host.fill", Param::BlindHostMemory},
    Class{"host.copy", Param::BlindHostMemory},
    Class{"host.core", std::nullopt},  // no blind round has operators on the CPU or files yet
    Class{"host.memory", std::nullopt},
    Class{"host.parallel", std::nullopt},
    Class{"storage.", std::nullopt},
    Class{"host.touch", Param::BlindHostMemory},
    Class{"host.", Param::BlindCalls},
    Class{"pytorch.eager.captured", Param::BlindCapturedHost},
    Class{"pytorch.eager.launch", Param::BlindCapturedHost},
    Class{"pytorch.", Param::BlindCalls},
    Class{"library.captured", Param::BlindCapturedKernels},
    Class{"nccl.host", Param::BlindCalls},
    Class{"gpu.host_func", Param::BlindHostFunctions},
    Class{"copy.pageable", Param::BlindHostMemory},
    Class{"copy.small_pageable", Param::BlindHostMemory},
    Class{"copy.fresh", Param::BlindHostMemory},
    Class{"copy.d2d", Param::BlindKernels},
    Class{"copy.", Param::BlindCopies},
    Class{"node.host_link", Param::BlindCopies},
    Class{"gpu.sm_count", std::nullopt},
    Class{"gpu.l2", Param::BlindKernels},
    Class{"gpu.hbm", Param::BlindKernels},
    Class{"gpu.", Param::BlindLatencies},
    Class{"kernel.base", Param::BlindLatencies},
    Class{"kernel.spin_overhead", Param::BlindLatencies},
    Class{"kernel.", Param::BlindKernels},
    Class{"products.", Param::BlindProducts},
    Class{"gemm.", Param::BlindProducts},
    Class{"tiles.", Param::BlindProducts},
    Class{"attends.memory", Param::BlindAttentionMemory},
    Class{"attends.", Param::BlindAttention},
    Class{"nccl.net", std::nullopt},
    Class{"nccl.tree", std::nullopt},
    Class{"nccl.", Param::BlindCollectives},
    Class{"nvlink.", Param::BlindCollectives},
};

/// Each class' spread for its share of a time, and of the rest.
double in_quadrature(const Machine& machine, const std::map<Param, double>& decided) {
  const double rest = machine.get(Param::BlindRest).value;
  double squares = rest * rest;
  for (const auto& [spread, share] : decided) {
    const double off = machine.has(spread) ? share * machine.get(spread).value : 0;
    squares += off * off;
  }
  return std::sqrt(squares);
}

/// What no round has shown: each such parameter by its own source, networks by their tables.
double beyond_rounds(const Machine& machine, std::span<const Share> shares, double guessed) {
  const double between = network_spread(machine, shares).value_or(0);
  const double guess = guessed * (band_of_a_guess().high - 1);
  double squares = between * between + guess * guess;
  for (const auto& [param, share] : shares) {
    if (is_shown_by_rounds(param) || (between > 0 && is_of_network(param))) continue;
    const double off = share * uncertainty_of(machine, param, {});
    squares += off * off;
  }
  return std::sqrt(squares);
}

/// Facts of a datasheet that ratios are taken of: what is not known of them is the ratio's.
bool is_fact(Param param) {
  const std::string_view key = info(param).key;
  return param == Param::GpuClock || param == Param::GpuPower ||
         (key.starts_with("gpu.") && key.ends_with("_flops"));
}

bool is_shown(const Machine& machine, Param spread) {
  return machine.has(spread) && machine.get(spread).trusted_as() == ParameterClass::Fit;
}

}  // namespace

std::optional<Param> blind_class(Param param) {
  const std::string_view key = info(param).key;
  for (const Class& one : kClasses) {
    if (key.starts_with(one.prefix)) return one.spread;
  }
  return std::nullopt;
}

std::optional<double> blind_spread(const Machine& machine, Param param) {
  if (is_of_network(param) && machine.has(Param::BlindNetwork)) {
    return machine.get(Param::BlindNetwork).value;
  }
  const std::optional<Param> spread = blind_class(param);
  if (!spread || !is_shown(machine, Param::BlindRest) || !is_shown(machine, *spread)) return {};
  return machine.get(*spread).value;
}

bool is_shown_by_rounds(Param param) {
  const bool is_exact =
      param == Param::SmCount || param == Param::NvlinkBandwidth || is_fact(param);
  return is_exact || (!is_of_network(param) && blind_class(param));
}

std::optional<double> blind_spread(const Machine& machine, std::span<const Share> shares,
                                   double guessed) {
  const auto known = [&](Param spread) { return is_shown(machine, spread); };
  if (!known(Param::BlindRest)) return std::nullopt;
  std::map<Param, double> decided;
  for (const auto& [param, share] : shares) {
    if (!is_shown_by_rounds(param) || is_fact(param)) continue;
    if (const auto spread = blind_class(param)) decided[*spread] += std::abs(share);
  }
  for (const auto& [spread, share] : decided) {
    if (!known(spread) && share >= kDecidingShare) return std::nullopt;
  }
  return std::hypot(in_quadrature(machine, decided), beyond_rounds(machine, shares, guessed));
}

double borrowed_spread(const Machine& machine, std::span<const Share> shares) {
  if (!machine.has(Param::BlindRest)) return 0;
  std::map<Param, double> decided;
  for (const auto& [param, share] : shares) {
    const auto spread = blind_class(param);
    if (!spread || machine.get(param).source != ParameterClass::Fit) continue;
    decided[*spread] += std::abs(share);
  }
  return decided.empty() ? 0 : in_quadrature(machine, decided);
}

bool is_of_network(Param param) {
  const std::string_view key = info(param).key;
  return key.starts_with("nccl.network") || key.starts_with("nccl.tree") ||
         key.starts_with("nccl.nvls_tree") || key.starts_with("network.");
}

std::optional<double> network_spread(const Machine& machine, std::span<const Share> shares) {
  if (!machine.has(Param::BlindNetwork)) return std::nullopt;
  double decided = 0;
  for (const auto& [param, share] : shares) {
    if (is_of_network(param)) decided += std::abs(share);
  }
  if (decided < kDecidingShare) return std::nullopt;
  return std::min(decided, 1.0) * machine.get(Param::BlindNetwork).value;
}

}  // namespace foretrace
