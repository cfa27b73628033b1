// What the predictor knows about a machine: one value with unit, source, range and spread per
// parameter of the catalogue (parameters.def), read from models/machines/NAME.yaml.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/machine/node_facts.h"
#include "models/machine/source.h"
#include "models/machine/terms.h"
#include "reports/timeline/timeline.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/values/units.h"
#include "scenarios/fabric/fabric.h"
#include "scenarios/program/program.h"

namespace foretrace {

enum class Param : std::uint16_t {
#define PARAMETER(name, key, unit, text) name,
#include "models/machine/parameters.def"
#undef PARAMETER
  Count_
};
inline constexpr std::size_t kParamCount = static_cast<std::size_t>(Param::Count_);

/// NvlinkShare: a rate, given as its ratio to nvlink.bandwidth.
enum class ParamUnit : std::uint8_t { Count, Time, Size, Rate, FlopRate, Ratio, NvlinkShare };

struct ParamInfo {
  std::string_view key;  ///< "host.launch_kernel"
  ParamUnit unit;
  std::string_view text;
};
const ParamInfo& info(Param param);

/// "copy.h2d_bandwidth"; none for what is no parameter's key.
std::optional<Param> param_named(std::string_view key);

/// A parameter's value in SI base units (seconds, bytes, bytes/s, flop/s) and how far to trust it.
struct ParamValue {
  double value{};
  double spread{};  ///< relative, one sigma: 0.03 is 3 %
  ParameterClass source = ParameterClass::Assumed;
  std::string from;   ///< the source in words: "calibration, 6 starts" or a datasheet's name
  std::string range;  ///< where it was fitted: "4KiB..1GiB"; empty for everywhere
  std::shared_ptr<const Source> origin{};  ///< the source itself; none for a value set by code

  bool is_learned() const { return origin && !origin->learned_from.empty(); }
  /// The class that its uncertainty is of. A value that was learned from measurements is as good as
  /// a fit, whether or not a command here finds it again.
  ParameterClass trusted_as() const { return is_learned() ? ParameterClass::Fit : source; }
};

/// Where a machine lacks a parameter that a program needs. Exit code 2.
class Machine {
 public:
  std::string name;
  std::string summary;
  std::string based_on;  ///< the machine that all parameters not given here are taken from
  std::vector<std::string> parts;  ///< what it was composed of: "gpus/B200"; empty for a file
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 1;
  std::string gpu_name;
  std::string
      host;  ///< in words, where a file of its own says it; empty: the host it was fitted on
  std::optional<Fabric> fabric;  ///< none: each operation has the network between nodes to itself
  std::vector<MachineFault> faults;
  NodeFacts node;            ///< where it differs from what its kind of GPU is sold with
  std::string nccl_version;  ///< whose rules choose algorithm and protocol

  /// How much faster what-ifs made what a captured kernel scales with; 1: none did.
  double what_if_factor(ScalesWith what) const { return factors_[static_cast<std::size_t>(what)]; }
  void multiply_factor(ScalesWith what, double factor) {
    factors_[static_cast<std::size_t>(what)] *= factor;
  }

  /// Whether predictions take this term: all of them, unless it was left out.
  bool takes(Term term) const { return !without_.test(static_cast<std::size_t>(term)); }
  void leave_out(const TermSet& terms) { without_ |= terms; }
  const TermSet& without() const { return without_; }

  void set(Param param, ParamValue value) {
    times_[index(param)] = seconds_to_duration(value.value);
    values_[index(param)] = std::move(value);
  }
  void leave_out(Param param) {
    values_[index(param)].reset();
    times_[index(param)].reset();
  }
  bool has(Param param) const { return values_[index(param)].has_value(); }
  /// Throws UsageError naming the parameter and the machine when it is missing.
  const ParamValue& get(Param param) const;

  /// What a host call takes: get(), unless the program's calls go through something slower.
  Duration call_time(Param param) const {
    const auto& replaced = calls_[index(param)];
    return replaced ? *replaced : time(param);
  }
  /// Whether the program's calls of this kind go through something slower.
  bool is_replaced(Param param) const { return calls_[index(param)].has_value(); }
  void replace_call(Param param, const ParamValue& value) {
    calls_[index(param)] = seconds_to_duration(value.value);
  }

  Duration time(Param param) const {
    const auto& known = times_[index(param)];
    return known ? *known : seconds_to_duration(get(param).value);
  }
  /// Bytes/s or flop/s; a share of NVLink's bandwidth multiplied out.
  double rate(Param param) const {
    const double value = get(param).value;
    const bool share = info(param).unit == ParamUnit::NvlinkShare;
    return share ? value * get(Param::NvlinkBandwidth).value : value;
  }
  Bytes size(Param param) const { return {static_cast<std::uint64_t>(get(param).value)}; }
  std::uint32_t count(Param param) const { return static_cast<std::uint32_t>(get(param).value); }

 private:
  static std::size_t index(Param param) { return static_cast<std::size_t>(param); }
  // Not in the object: a reader of based_on's files has some machines on its stack.
  template <class T>
  using ByParam = std::vector<std::optional<T>>;
  ByParam<ParamValue> values_ = ByParam<ParamValue>(kParamCount);
  std::array<double, 4> factors_{1, 1, 1, 1};  ///< by ScalesWith
  TermSet without_;
  // Each call of a program asks for some of them.
  ByParam<Duration> times_ = ByParam<Duration>(kParamCount);
  ByParam<Duration> calls_ = ByParam<Duration>(kParamCount);
};

/// `base`'s value as an assumption of a machine that is based on it. Only where both have the same
/// kind of GPU does it still say what it was learned from.
ParamValue inherited_value(const Machine& base, Param param, bool same_gpu);

/// Reads a machine file; all mistakes at once. `warnings` gets what does not stop anybody.
Checked<Machine> read_machine(std::string_view text, const std::string& file,
                              Diagnostics* warnings = nullptr);

/// The file that read_machine reads back: parameters in the catalogue's order.
std::string machine_text(const Machine& machine);

/// The parameters of a file of rules (models/machines/FOLDER/NAME.yaml) over those of `machine`,
/// without those that the file takes away. Throws UsageError.
void read_over(Machine& machine, const std::string& folder, const std::string& name);

/// A name from `foretrace list machines`, what a machine is made of (8xB200+ib-ndr:64, see
/// parts/composition.h), or a path ending in .yaml. Warnings of a file go to stderr, once in a
/// process. Throws UsageError.
Machine load_machine(const std::string& name_or_path);

/// The directory of the shipped machine files, and their names.
std::filesystem::path machine_directory();
std::vector<std::string> machine_names();

/// How many of a machine's parameters are of each class: "66 fit, 12 assumed".
std::string class_counts(const Machine& machine);

/// So many nodes hold `gpus` GPUs when they are filled in order.
std::uint32_t nodes_for(std::uint64_t gpus, const Machine& machine);

/// The nodes that `program` runs on: those that it says or, where it says nothing, as many as it
/// fills, with as many processes on each.
std::uint32_t nodes_of(const Program& program, const Machine& machine);

/// The program on nodes_of(), where that is not what it says itself.
std::optional<Program> spread_over_nodes(const Program& program, const Machine& machine);

/// The machine's faults and the program's.
std::vector<MachineFault> faults_of(const Program& program, const Machine& machine);

/// Errors where the buffers of `program` cannot fit into the memory of a GPU or of a node, warnings
/// where they do unless all that it allocates itself is there at once.
Diagnostics check_memory(const Program& program, const Machine& machine);

/// Errors about GPUs that a node of `machine` lacks, and about faults of parts that it lacks.
Diagnostics check_parts(const Program& program, const Machine& machine);

/// The errors of both.
Diagnostics check_fits(const Program& program, const Machine& machine);

}  // namespace foretrace
