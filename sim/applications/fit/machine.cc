#include "sim/applications/fit/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "models/what_if/what_if.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/values/json_depth.h"
#include "sim/applications/fit/solver.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

void reported(Machine& machine, Param param, double value,
              const char* how = "as the machine reports it") {
  if (!(value > 0 && value < 0x1p60)) return;  // nor what is not a number
  machine.set(param, {value, 0, ParameterClass::Datasheet, how, ""});
}

/// "528231220 kB" in bytes; 0 for another text.
double host_memory(const std::string& text) {
  double kilobytes = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), kilobytes).ptr;
  return std::string_view{end} == " kB" ? kilobytes * 1024 : 0;
}

constexpr std::size_t kMostGpus = 256;

/// How far machines of one kind of GPU are from each other, by what decides a time; the first
/// prefix that fits. GPUs differ by 1 to 5 % in what a GPU alone decides, hosts by a quarter, in
/// memory by half, threads that meet by a factor (blind rounds 17 to 27: six H100s, seven H200s and
/// their hosts). A calibration of three starts on one host does not know its few regions better:
/// what two pairs of H100s said of kernels whose data is cached (0.44 of the shipped rate) was 60 %
/// off in their programs.
constexpr double kSameGpu = 0.05;
struct KindSpread {
  std::string_view prefix;
  double spread;
};
constexpr std::array kKindSpreads{
    KindSpread{"products.", kSameGpu}, KindSpread{"library.", kSameGpu},
    KindSpread{"gemm.", kSameGpu},     KindSpread{"tiles.", kSameGpu},
    KindSpread{"kernel.", kSameGpu},   KindSpread{"gpu.host_", 0.25},
    KindSpread{"gpu.", 0.1},           KindSpread{"copy.pageable", 0.25},
    KindSpread{"copy.d2d", kSameGpu},  KindSpread{"copy.", 0.1},
    KindSpread{"nvlink.", kSameGpu},   KindSpread{"nccl.host", 0.25},
    KindSpread{"nccl.", 0.1},          KindSpread{"host.malloc", 0.5},
    KindSpread{"host.free", 0.5},      KindSpread{"host.pool", 0.5},
    KindSpread{"host.host_", 0.5},     KindSpread{"host.barrier", 1},
    KindSpread{"host.signal", 1},      KindSpread{"", 0.25}};

double kind_spread(Param param) {
  const std::string_view key = info(param).key;
  return std::ranges::find_if(kKindSpreads,
                              [&](const KindSpread& one) { return key.starts_with(one.prefix); })
      ->spread;
}

bool is_of_the_gpu(Param param) { return kind_spread(param) == kSameGpu; }

/// How many of the GPU's parameters the machine's own file gives.
std::size_t own_parameters(const Machine& machine) {
  std::size_t own = 0;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (!is_of_the_gpu(param) || !machine.has(param)) continue;
    const auto& origin = machine.get(param).origin;
    own += origin && !origin->id.starts_with("as_");
  }
  return own;
}

/// The shipped machine of the same GPU, if there is one: with as many of them in a node, since the
/// hosts of machines of one GPU are unlike those of eight, else the one that knows most of the GPU.
std::optional<Machine> shipped_with(const std::string& gpu, std::size_t count) {
  const auto is_nearer = [&](const Machine& one, const Machine& other) {
    const bool alike = one.gpus_per_node == count;
    if (alike != (other.gpus_per_node == count)) return alike;
    return own_parameters(one) > own_parameters(other);
  };
  std::optional<Machine> found;
  for (const std::string& name : machine_names()) {
    Machine machine = load_machine(name);
    if (machine.gpu_name != gpu) continue;
    if (!found || is_nearer(machine, *found)) found = std::move(machine);
  }
  return found;
}

/// Of what kernels write level 2 keeps 33 of 62.9 MB on an H200, 30.7 of 52.4 MB on an H100
/// (hw/laboratory/causes/chains.yaml, level_2.yaml).
constexpr double kKeptOfLevel2 = 0.55;

Machine machine_from(const std::string& name, const Json& found) {
  const Json& gpus = found.at("gpus");
  if (!gpus.is_array() || gpus.empty() || gpus.size() > kMostGpus) {
    throw UsageError{"says nothing of the GPUs"};
  }
  const Json& gpu = gpus.front();
  const std::string kind = gpu.value("name", "");
  const std::optional<Machine> same = shipped_with(kind, gpus.size());
  const Machine first = same ? *same : load_machine(kFirstGuess);
  Machine machine = first;
  machine.name = name;
  machine.nodes = 1;
  machine.gpus_per_node = static_cast<std::uint32_t>(gpus.size());
  machine.gpu_name = kind;
  machine.summary = fmt::format("{} x {} in one node", machine.gpus_per_node, machine.gpu_name);
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (!machine.has(param)) continue;
    ParamValue value = inherited_value(first, param, same.has_value());
    value.spread = same ? kind_spread(param) : 0;
    machine.set(param, std::move(value));
  }
  reported(machine, Param::SmCount, gpu.value("sm_count", 0.0));
  reported(machine, Param::GpuMemory, gpu.value("memory_bytes", 0.0));
  // What level 2 keeps, which the shipped machine of the same GPU knows.
  if (!same) {
    reported(machine, Param::L2Size, kKeptOfLevel2 * gpu.value("l2_bytes", 0.0),
             "0.55 of what the machine reports: an H200's and an H100's keep as much");
  }
  reported(machine, Param::CopyEngines, gpu.value("copy_engines", 0.0));
  const Json host = found.value("host", Json::object());
  reported(machine, Param::HostMemory, host_memory(host.value("memory", "")));
  machine.nccl_version = found.value("software", Json::object()).value("nccl", "");
  const Json variables = found.value("variables", Json::object());
  if (variables.value("NCCL_NVLS_ENABLE", "") == "0") {
    machine.set(Param::NcclNvls,
                {0, 0, ParameterClass::Datasheet, "NCCL_NVLS_ENABLE=0 when it was measured", ""});
  }
  return machine;
}

}  // namespace

Machine new_machine(const std::string& name, const std::filesystem::path& environment) {
  if (environment.empty()) {
    throw UsageError{
        "--new: these measurements have no environments/KEY.json, so nothing is known of the "
        "machine\n"
        "  hint: start from a machine file with --machine; or, if an earlier version measured "
        "them, "
        "foretrace merge --convert RUNS"};
  }
  return new_machine(name, read_text_file(environment), environment.string());
}

Machine new_machine(const std::string& name, const std::string& text, const std::string& file) {
  refuse_deep_json(text, file);
  try {
    return machine_from(name, Json::parse(text));
  } catch (const Json::exception& error) {
    throw UsageError{
        fmt::format("{}: not what foretrace-hw writes: {}", file, json_reason(error.what()))};
  } catch (const UsageError& error) {
    throw UsageError{fmt::format("{}: {}", file, error.what())};
  }
}

void move_to_host(Machine& machine, double factor) {
  const std::string name = machine.name;
  std::map<const Source*, std::shared_ptr<const Source>> moved;
  for (const Changed& change : apply_what_ifs(machine, {fmt::format("host={:.4f}x", factor)})) {
    const Param param = *param_named(change.key);
    ParamValue value = machine.get(param);
    if (value.origin == nullptr) continue;
    auto& origin = moved[value.origin.get()];
    if (origin == nullptr) {
      Source source = *value.origin;
      source.id += "_for_its_host";
      source.text +=
          fmt::format("; for a host {:.2f} times as fast, by what a launch took", factor);
      origin = std::make_shared<const Source>(std::move(source));
    }
    value.origin = origin;
    value.from = origin->text;
    machine.set(param, std::move(value));
  }
  machine.name = name;
}

double prior_unit(const ParamValue& first_guess) {
  const bool inherited = first_guess.origin && first_guess.origin->id.starts_with("as_");
  const bool told = inherited && first_guess.spread > 0;
  return told ? std::min(1.0, first_guess.spread / kPriorSigma) : 1;
}

}  // namespace foretrace
