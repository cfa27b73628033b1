#include "sim/environment_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "models/nccl/rules/settings.h"
#include "models/nccl/time/cost.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/words.h"

namespace foretrace {
namespace {

class RefusalFinder {
 public:
  RefusalFinder(const Program& program, const Machine& machine)
      : program_{program}, machine_{machine} {}

  Diagnostics find() {
    for_each_op(program_, [this](const HostThread&, const Op& op, Around) {
      if (const auto* call = std::get_if<NcclCollective>(&op.kind)) judge(op, *call);
    });
    return std::move(problems_);
  }

 private:
  void judge(const Op& op, const NcclCollective& call) {
    if (nccl::is_send_recv(call.kind)) return;
    constexpr Bytes kAny{1024};  // what is left does not depend on the size
    try {
      const nccl::Tuning tuning = tuning_of(program_.comms[call.comm.first.value].communicator);
      nccl::cheapest(tuning, {nccl::function_of(call.kind), kAny, call.type, call.op, 1});
    } catch (const UsageError& refused) {
      Diagnostic& problem = problems_.emplace_back();
      problem.at = {program_.file, op.line, op.column};
      const std::string text = refused.what();
      const std::size_t hint = text.find("\n  hint: ");
      problem.message = text.substr(0, hint);
      if (hint != std::string::npos) problem.hint = text.substr(hint + 9);
    }
  }

  nccl::Tuning tuning_of(std::uint32_t communicator) const {
    std::set<std::uint32_t> nodes;
    const auto& members = program_.communicators[communicator].members;
    for (const RankPlace& place : members) {
      nodes.insert(node_of_process(program_, place.process));
    }
    return nccl::tuning_for(machine_, static_cast<std::uint32_t>(members.size()),
                            static_cast<std::uint32_t>(nodes.size()), program_.environment);
  }

  const Program& program_;
  const Machine& machine_;
  Diagnostics problems_;
};

/// Empty when the prediction follows the variable.
std::string_view what_is_missing(const std::string& name, const std::string& value) {
  static const std::vector<std::string> kOfNccl = nccl::setting_names();
  constexpr std::array kOfCuda{"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING"};
  constexpr std::array kBuffers{"NCCL_BUFFSIZE", "NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE",
                                "NCCL_CHUNK_SIZE", "NCCL_NVLS_CHUNKSIZE"};
  if (std::ranges::count(kBuffers, name) != 0) {
    return "changes channels and chunks here; times are those measured with NCCL's own sizes";
  }
  const std::string setting = name + "=" + value;
  if (setting == "NCCL_P2P_DISABLE=1" || setting == "NCCL_P2P_LEVEL=LOC" ||
      setting == "NCCL_P2P_LEVEL=0") {
    return "sends everything through the host's memory: times are then NCCL's own prices, not "
           "measured ones";
  }
  if (std::ranges::count(kOfCuda, name) + std::ranges::count(kOfNccl, name) > 0) return {};
  return "is not modelled: the prediction is the same without it";
}

/// Whether NCCL_IB_HCA leaves out NICs of a node of `machine`: "mlx5" is all that begin so.
bool leaves_nics_out(std::string_view value, const Machine& machine) {
  if (value.starts_with('^')) return true;
  if (value.starts_with('=')) value.remove_prefix(1);
  const std::vector<std::string_view> named = split(value, ',');
  if (named.size() == 1 && value.find_first_of("0123456789:", 4) == std::string_view::npos) {
    return false;
  }
  return named.size() != machine.node.nics.value_or(machine.gpus_per_node);
}

/// Settings that make another network of the one that a machine file describes.
Diagnostics refused_networks(const Program& program, const Machine& machine) {
  Diagnostics problems;
  const auto refuse = [&](const char* name, const char* why, const char* hint) {
    const auto spot = program.environment_spots.find(name);
    const SourceSpot at =
        spot == program.environment_spots.end() ? SourceSpot{program.file, 0, 0} : spot->second;
    problems.push_back(
        {at, fmt::format("{}={} {}", name, program.environment.at(name), why),
         fmt::format("{}, in a machine file of its own, based_on: {}", hint, machine.name)});
  };
  for (const auto& [name, value] : program.environment) {
    const bool tcp = (name == "NCCL_IB_DISABLE" && value == "1") ||
                     (name == "NCCL_NET" && lower(value) == "socket");
    if (tcp) {
      refuse(name.c_str(), "makes NCCL use TCP between nodes, of which the machine has no times",
             "node: {nic_bandwidth: 3 GB/s} says what one NIC gets by TCP");
    }
    if (name == "NCCL_IB_HCA" && leaves_nics_out(value, machine)) {
      refuse("NCCL_IB_HCA", "takes some of a node's NICs", "node: {nics: 1} says how many");
    }
  }
  return problems;
}

}  // namespace

Diagnostics unmodelled_settings(const Program& program) {
  Diagnostics warnings;
  for (const auto& [name, value] : program.environment) {
    const std::string_view why = what_is_missing(name, value);
    if (why.empty()) continue;
    const auto at = program.environment_spots.find(name);
    Diagnostic& warning = warnings.emplace_back();
    warning.at =
        at == program.environment_spots.end() ? SourceSpot{program.file, 0, 0} : at->second;
    warning.message = fmt::format("{}={} {}", name, value, why);
    warning.severity = Severity::Warning;
  }
  return warnings;
}

Diagnostics refused_collectives(const Program& program, const Machine& machine) {
  if (nodes_of(program, machine) > 1) {
    if (Diagnostics networks = refused_networks(program, machine); !networks.empty()) {
      return networks;
    }
  }
  const bool can_refuse =
      program.environment.contains("NCCL_ALGO") || program.environment.contains("NCCL_PROTO");
  if (!can_refuse) return {};
  const auto spread = spread_over_nodes(program, machine);
  return RefusalFinder{spread ? *spread : program, machine}.find();
}

}  // namespace foretrace
