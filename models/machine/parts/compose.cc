// A machine out of its parts. What was fitted for the GPU itself stands; what is of the GPU is
// carried over from a measured one by the ratio of their facts; the network's times from the
// machine that has it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/machine/link_rules.h"
#include "models/machine/parts/composition.h"
#include "models/machine/parts/gpu_facts.h"
#include "models/machine/parts/host_part.h"
#include "models/machine/parts/kinds.h"
#include "models/machine/parts/rules.h"
#include "models/nccl/topology/machine.h"
#include "models/trust/blind.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using enum Param;

/// Whether the file of `machine` gives it itself, and does not have it from its base.
bool is_own(const Machine& machine, Param param) {
  if (!machine.has(param)) return false;
  const ParamValue& value = machine.get(param);
  if (machine.based_on.empty() || !value.origin) return true;
  return !value.origin->id.starts_with("as_" + machine.based_on) &&
         !value.origin->id.starts_with("ratio_of_");
}

/// NCCL, links and the network: of the machine that has such links, not of the GPU's arithmetic.
bool is_of_links(Param param) {
  const std::string_view key = info(param).key;
  return key.starts_with("nccl.") || key.starts_with("network.") || key.starts_with("nvlink.") ||
         key.starts_with("blind.tables");
}

class Composer {
 public:
  Composer(const Parts& parts, const std::string& name)
      : parts_{parts},
        donor_{load_machine(parts.gpu.word("donor"))},
        base_{parts.gpu.word("like").empty() ? donor_ : load_machine(parts.gpu.word("like"))},
        donor_gpu_{gpu_of(donor_)},
        base_gpu_{gpu_of(base_)} {
    machine_.name = name;
    read_over(donor_, "kinds", "common");
  }

  Machine compose() {
    describe();
    for (std::size_t i = 0; i < kParamCount; ++i) take(static_cast<Param>(i));
    take_network();
    set_rates_of_links(base_, machine_);
    if (const auto link = link_file(base_, machine_)) read_over(machine_, "link_rules", *link);
    take_kind(parts_.gpu, machine_);
    if (base_gpu_.name != parts_.gpu.name || !is_own(base_, BlindProducts)) take_judged();
    if (const auto tables = tables_file(base_, machine_)) {
      read_over(machine_, "link_rules", *tables);
    }
    if (!has_kernels_of_donor()) leave_out_products();
    if (!has_attention_of_its_own()) leave_out("library.attention_forward");
    state_facts();
    take_measured_host();
    return std::move(machine_);
  }

 private:
  void describe() {
    const Composition& made = parts_.composition;
    machine_.based_on = base_.name;
    machine_.gpus_per_node = made.gpus;
    machine_.nodes = made.nodes.value_or(kAnyNodes);
    machine_.gpu_name = parts_.gpu.word("gpu");
    machine_.nccl_version = base_.nccl_version;
    machine_.node = node_facts();
    machine_.parts = {"gpus/" + parts_.gpu.name, "links/" + parts_.link.name,
                      "hosts/" + parts_.host.name, "networks/" + parts_.network.name};
    const std::string nodes = made.nodes ? fmt::format("{} nodes of ", *made.nodes) : "nodes of ";
    machine_.summary =
        fmt::format("{}{} x {}, {}; {} between nodes", nodes, made.gpus, parts_.gpu.name,
                    parts_.link.summary.empty() ? parts_.link.name : parts_.link.summary,
                    parts_.network.summary.empty() ? parts_.network.name : parts_.network.summary);
  }

  NodeFacts node_facts() const {
    NodeFacts facts = known_facts({{"link", parts_.link.word("link")},
                                   {"cpu", parts_.host.word("cpu")},
                                   {"nic_path", parts_.network.word("path")}});
    const auto count = [](std::optional<double> value) {
      return value ? std::optional{static_cast<std::uint32_t>(*value)} : std::nullopt;
    };
    if (parts_.composition.gpus == 1) facts.link.reset();  // there is nothing to join
    facts.sockets = count(parts_.host.value("sockets"));
    const auto slot = parts_.gpu.value("pcie"), offered = parts_.link.value("pcie");
    if (slot) facts.pcie = static_cast<std::uint32_t>(std::min(*slot, offered.value_or(*slot)));
    const double sharing = parts_.network.value("gpus_per_nic").value_or(1);
    const auto all = parts_.network.value("nics");
    facts.nics = static_cast<std::uint32_t>(
        std::clamp(all.value_or(parts_.composition.gpus / sharing), 1.0, double{kMostNodeCards}));
    facts.nic_bandwidth = parts_.network.value("nic_bandwidth");
    if (const auto capability = parts_.gpu.value("capability")) {
      facts.capability = static_cast<std::uint32_t>(std::lround(*capability * 10));
      facts.nvlinks = count(parts_.gpu.value("nvlinks")).value_or(0);
      facts.bridge_links = count(parts_.gpu.value("bridge_links")).value_or(0);
    }
    return facts;
  }

  void take(Param param) {
    const bool of_links = is_of_links(param);
    // A datasheet's level-2 cache is not what programs find of it: the donor's share was measured.
    const bool is_own_here =
        is_own(base_, param) &&
        (param != L2Size || base_.get(param).source != ParameterClass::Datasheet);
    const bool from_base = base_.has(param) && (of_links || fact_of(param).empty() || is_own_here);
    const Machine& from = from_base ? base_ : donor_;
    if (!from.has(param) || (of_links && !from_base)) return;
    const Part& gpu = from_base ? base_gpu_ : donor_gpu_;
    machine_.set(param, carried_over(from, gpu, param));
  }

  /// `from`'s value by the facts of both GPUs; its own where they are the same.
  ParamValue carried_over(const Machine& from, const Part& gpu, Param param) const {
    if (gpu.name == parts_.gpu.name) return from.get(param);
    return carried_from(from, param, carried_value(param, from.get(param).value, parts_.gpu, gpu));
  }

  /// cuBLAS' choices were learned for SMs of this kind, and for so many.
  bool has_kernels_of_donor() const {
    return parts_.gpu.value("sm_count") == donor_gpu_.value("sm_count") &&
           parts_.gpu.value("capability") == donor_gpu_.value("capability");
  }

  /// Of this GPU's own kernels, or of the same on the donor.
  bool has_attention_of_its_own() const {
    const bool is_same = base_gpu_.name == parts_.gpu.name;
    return has_kernels_of_donor() || (is_same && is_own(base_, LibraryAttentionForwardRate128));
  }

  void leave_out(std::string_view prefix) {
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      if (info(param).key.starts_with(prefix)) machine_.leave_out(param);
    }
  }

  /// How far times are off that rest on another GPU's values.
  void take_judged() {
    read_over(machine_, "kinds", "left_out");
    if (nccl::lacks_nvlink(machine_)) machine_.leave_out(BlindCollectives);
  }

  void leave_out_products() {
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const std::string_view key = info(static_cast<Param>(i)).key;
      const bool stays =
          key.starts_with("products.clock") || key.ends_with(".peak") || key.ends_with(".power");
      if (key.starts_with("products.") && !stays) machine_.leave_out(static_cast<Param>(i));
    }
  }

  void take_network() {
    const std::string ratios = parts_.network.word("ratios");
    if (ratios.empty() || ratios == base_.name) return;
    const Machine other = load_machine(ratios);
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      // Tables of this very GPU on that network; of another one they would say less.
      const bool is_judged = info(param).key.starts_with("blind.tables.network") &&
                             other.has(param) && other.gpu_name == machine_.gpu_name;
      if (!is_of_network(param) && param != BlindNetwork && !is_judged) continue;
      machine_.leave_out(param);
      if (other.has(param)) machine_.set(param, carried_from(other, param, other.get(param).value));
    }
  }

  void take_measured_host() {
    if (parts_.host.parameters.empty()) return;
    const TakenHost taken =
        take_host_part(machine_, parts_.host, [](Param, std::optional<double>, double) {});
    machine_.host = foretrace::describe(taken, parts_.host, "hosts/" + parts_.host.name);
  }

  /// What the parts say themselves.
  void state_facts() {
    const bool is_same = base_gpu_.name == parts_.gpu.name;
    const auto state = [&](const Part& part, const char* key, Param param, bool keep_own = true) {
      if (keep_own && is_same && is_own(base_, param)) return;
      const auto value = part.value(key);
      if (value) set_fact(machine_, param, *value, *part.facts.at(key).source);
    };
    state(parts_.gpu, "sm_count", SmCount);
    state(parts_.gpu, "memory", GpuMemory);
    state(parts_.gpu, "memory_bandwidth", HbmBandwidth);
    state(parts_.gpu, "copy_engines", CopyEngines);
    state(parts_.gpu, parts_.gpu.value("bf16") ? "bf16" : "fp16", GpuHalfFlops);
    state_arithmetic(parts_.gpu, donor_gpu_, machine_);
    state(parts_.host, "cores", HostCores, false);
    state(parts_.host, "memory", HostMemory, false);
    state(parts_.link, "bandwidth", NvlinkBandwidth, false);
    const bool has_nvlink = !nccl::lacks_nvlink(machine_);
    if (has_nvlink && !parts_.link.value("bandwidth")) {
      state(parts_.gpu, "nvlink_bandwidth", NvlinkBandwidth, false);
    }
    state(parts_.link, "multicast", NcclNvls, false);
    if (parts_.link.value("sharing") && machine_.node.pcie) state_sharing(state);
  }

  /// How GPUs share the host's paths, as links of the generation do that both ends have. Without a
  /// file of that generation: as the machine's own link does.
  template <class State>
  void state_sharing(const State& state) {
    const std::string slower = fmt::format("pcie{}", *machine_.node.pcie);
    const bool is_whole = parts_.link.value("pcie") == std::optional<double>{*machine_.node.pcie};
    const bool has_file = std::ranges::count(part_names(PartFolder::Links), slower) > 0;
    const Part link = is_whole || !has_file ? parts_.link : load_part(PartFolder::Links, slower);
    state(link, "ring_share", NcclHostPathRing, false);
    state(link, "pair_share", NcclHostPathPairs, false);
    state(link, "sharing", NcclHostPathSharing, false);
    if (!machine_.has(NcclHostPathRing)) return;
    read_over(machine_, "link_rules", is_box_of_tables(link) ? "pcie_tables" : "pcie_elsewhere");
  }

  /// Whether the tables that say how `link` is shared are of such GPUs, and nothing says that the
  /// host is another one.
  bool is_box_of_tables(const Part& link) const {
    const std::string list = "," + link.word("tables_of") + ",";
    return parts_.composition.host.empty() &&
           list.find("," + parts_.gpu.name + ",") != std::string::npos;
  }

  const Parts& parts_;
  Machine donor_, base_;
  Part donor_gpu_, base_gpu_;
  Machine machine_;
};

}  // namespace

Machine compose(const Parts& parts, const std::string& name) {
  return Composer{parts, name}.compose();
}

}  // namespace foretrace
