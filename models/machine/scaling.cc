#include "models/machine/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "models/what_if/names.h"

namespace foretrace {
namespace {

struct Precision {
  std::string_view word;  ///< in the keys of its parameters
  Param peak;
};

/// The fact that a rate of products or attention is a share of.
Param peak_of(Param param) {
  constexpr std::array kPrecisions{Precision{".tf32", Param::ProductsTf32Peak},
                                   Precision{".float32", Param::ProductsF32Peak},
                                   Precision{".float64", Param::ProductsF64Peak}};
  for (const Precision& one : kPrecisions) {
    if (info(param).key.find(one.word) != std::string_view::npos) return one.peak;
  }
  return Param::ProductsHalfPeak;
}

bool belongs_to_host(Param param) { return info(param).key.starts_with("host."); }

void scale(const Machine& base, Param fact, Param param, Machine& machine) {
  if (fact == param || !base.has(fact) || !machine.has(fact) || !machine.has(param)) return;
  const double factor = machine.get(fact).value / base.get(fact).value;
  if (factor == 1) return;
  ParamValue value = machine.get(param);
  value.value *= factor;
  value.from = fmt::format("ratio carried over from {} by {}", base.name, info(fact).key);
  Source source{.id = fmt::format("ratio_of_{}", base.name),
                .text = value.from,
                .learned_from = {},
                .command = {}};
  value.source = source.kind;
  value.range.clear();
  value.origin = std::make_shared<const Source>(std::move(source));
  machine.set(param, std::move(value));
}

}  // namespace

const std::vector<std::string>& scaled_facts() {
  static const std::vector<std::string> kFacts{"arithmetic", "memory"};
  return kFacts;
}

void carry_over(const Machine& base, const std::vector<std::string>& facts,
                const std::bitset<kParamCount>& own, Machine& machine) {
  const auto is_asked = [&](const char* fact) {
    return std::ranges::find(facts, fact) != facts.end();
  };
  const auto each = [&](std::string_view name, auto&& fact_of) {
    for (const Param param : params_of(base, name)) {
      if (own.test(static_cast<std::size_t>(param)) || belongs_to_host(param)) continue;
      scale(base, fact_of(param), param, machine);
    }
  };
  if (is_asked("memory")) each("hbm", [](Param) { return Param::HbmBandwidth; });
  if (is_asked("arithmetic")) each("gemm", peak_of);
}

}  // namespace foretrace
