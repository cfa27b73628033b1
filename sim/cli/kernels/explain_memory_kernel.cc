// foretrace explain-kernel for kernels that go once through arrays.
#include "sim/cli/kernels/explain_memory_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "models/machine/value_text.h"
#include "scenarios/base/text/errors.h"
#include "sim/cli/kernels/kernel_terms.h"

namespace foretrace {
namespace {

enum class Kind : std::uint8_t { Elementwise, Reduction, Memset, Copy };

constexpr std::array<std::pair<std::string_view, Kind>, 4> kKinds{
    {{"elementwise", Kind::Elementwise},
     {"reduction", Kind::Reduction},
     {"memset", Kind::Memset},
     {"copy", Kind::Copy}}};

const Kind* kind_named(std::string_view name) {
  for (const auto& [word, kind] : kKinds) {
    if (word == name) return &kind;
  }
  return nullptr;
}

double bytes_of(const std::string& text) {
  const Parsed<double> size = parse_value(text, ParamUnit::Size);
  if (!size) throw UsageError{fmt::format("'{}': {}\n  hint: 4MiB", text, size.error().message)};
  constexpr double kMost = 1e15;  // far beyond any memory
  if (!(*size >= 1 && *size <= kMost)) {
    throw UsageError{fmt::format("'{}': an array has 1 B to 1 PB", text)};
  }
  return *size;
}

/// Again and again over the same arrays or, cold, over what was never there.
cost::KernelCost cost_of(Reading& read, const MemoryKernel& kernel, double bytes) {
  const Kind kind = *kind_named(kernel.name);
  const std::uint32_t arrays = kind == Kind::Elementwise ? kernel.arrays
                               : kind == Kind::Copy      ? 2
                                                         : 1;
  cost::Pass pass{.bytes = bytes, .distance = bytes * arrays};
  if (kernel.cold) pass.distance = std::numeric_limits<double>::infinity();
  if (kind == Kind::Reduction) {
    pass.reread = !kernel.cold;
    return cost::reduction_cost(read, pass);
  }
  if (kind == Kind::Memset) return cost::memset_cost(read, pass);
  if (kind == Kind::Copy) return cost::device_copy_cost(read, pass, pass);
  const std::vector<cost::Pass> passes(arrays, pass);
  return cost::elementwise_cost(read, passes);
}

}  // namespace

std::vector<std::string> memory_kernel_names() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kKinds) names.emplace_back(name);
  return names;
}

std::string explain_memory_kernel(const Machine& machine, const MemoryKernel& kernel, bool json) {
  const double bytes = bytes_of(kernel.size);
  const auto time = [&](Reading& read) { return cost_of(read, kernel, bytes); };
  Reading read{machine};
  const cost::KernelCost cost = time(read);
  const std::vector<TermShare> shares = term_shares(machine, time);
  const double moved = cost.hbm_bytes_per_second * to_seconds(cost.alone);
  const auto of =
      shares_of(machine, [&](Reading& nudged) { return to_seconds(time(nudged).alone); });
  if (json) {
    using Json = nlohmann::ordered_json;
    Json terms = Json::array(), parameters = Json::array();
    for (const TermShare& share : shares) {
      terms.push_back({{"term", info(share.term).id}, {"seconds", share.seconds}});
    }
    for (const Share& share : of) {
      parameters.push_back({{"parameter", info(share.param).key}, {"share", share.share}});
    }
    const Json all{{"schema_version", 1},      {"kind", "explain-kernel"},
                   {"machine", machine.name},  {"kernel", kernel.name},
                   {"bytes", bytes},           {"seconds", to_seconds(cost.alone)},
                   {"memory_bytes", moved},    {"sms", cost.sms},
                   {"parameters", parameters}, {"terms", terms}};
    return all.dump(2) + "\n";
  }
  std::string text =
      fmt::format("{} of {}{} on {}: {:.2f} us on {} SMs; {:.1f} MB of it from memory\n",
                  kernel.name, kernel.size, kernel.cold ? ", cold" : "", machine.name,
                  to_seconds(cost.alone) * 1e6, cost.sms, moved * 1e-6);
  text += "\nparameters that decide it\n";
  for (const Share& share : of) {
    text += fmt::format("  {:+6.2f} %  {}\n", share.share, info(share.param).key);
  }
  return text + "  (a parameter 1 % larger makes it so much longer)\n" + term_text(shares);
}

}  // namespace foretrace
