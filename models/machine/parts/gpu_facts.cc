#include "models/machine/parts/gpu_facts.h"

#include <fmt/format.h>

#include <array>

#include "models/machine/parts/kinds.h"
#include "models/machine/parts/rules.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using enum Param;

struct ArithmeticFact {
  const char* key;
  Param param;
  double scale = 1;
};
constexpr std::array kArithmetic{
    ArithmeticFact{"clock", GpuClock, 1e-6}, ArithmeticFact{"power", GpuPower},
    ArithmeticFact{"tf32", GpuTf32Flops},    ArithmeticFact{"fp32", GpuF32Flops},
    ArithmeticFact{"fp64", GpuF64Flops},     ArithmeticFact{"fp8", GpuF8Flops},
    ArithmeticFact{"int8", GpuInt8Flops},    ArithmeticFact{"fp4", GpuF4Flops}};

Source carried_source(std::string id, std::string text) {
  return {.id = std::move(id),
          .text = std::move(text),
          .learned_from = {},
          .command = {},
          .is_carried = true};
}

}  // namespace

Part gpu_of(const Machine& machine) {
  if (const auto part = part_of_gpu(machine.gpu_name)) return *part;
  throw UsageError{
      fmt::format("machine {}: no file of models/machines/gpus is '{}'\n  hint: a donor's GPU "
                  "has its facts there",
                  machine.name, machine.gpu_name)};
}

void set_fact(Machine& machine, Param param, double value, const Source& source) {
  auto origin = std::make_shared<const Source>(source);
  ParamValue fact{.value = value, .source = source.kind, .from = source.text, .range = {}};
  fact.origin = std::move(origin);
  machine.set(param, std::move(fact));
}

void state_arithmetic(const Part& gpu, const Part& donor, Machine& machine,
                      const std::bitset<kParamCount>& own) {
  for (const auto& [key, param, scale] : kArithmetic) {
    if (own.test(static_cast<std::size_t>(param))) continue;
    machine.leave_out(param);
    const auto value = gpu.value(key), there = donor.value(key);
    if (value) {
      set_fact(machine, param, *value * scale, *gpu.facts.at(key).source);
    } else if (!gpu.lacks(key) && there) {
      set_fact(machine, param, *there * ratio_of(key, gpu, donor) * scale,
               carried_source(
                   fmt::format("facts_of_{}", donor.name),
                   fmt::format("carried over from {}: no datasheet of this GPU was found to say it",
                               donor.name)));
    }
  }
}

void take_gpu_facts(Machine& machine, const std::bitset<kParamCount>& own) {
  const auto gpu = part_of_gpu(machine.gpu_name);
  if (!gpu) return;
  const std::string from = gpu->word("donor");
  Machine donor = machine.name == from ? machine : load_machine(from);
  const Part donor_gpu = gpu_of(donor);
  state_arithmetic(*gpu, donor_gpu, machine, own);
  read_over(donor, "kinds", "common");
  read_over(donor, "kinds", "left_out");
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    const std::string_view key = info(param).key;
    const bool is_of_kind = key.starts_with("tiles.") || key.starts_with("attends.");
    const bool is_inherited = is_of_kind && machine.has(param) && fact_of(param).empty();
    const bool is_band = (param == BlindProducts && !machine.has(ProductsStart)) ||
                         param == BlindAttention || param == BlindAttentionMemory;
    if (!(is_of_kind || is_band) || own.test(i) || is_inherited) continue;
    const double value = donor.get(param).value;
    machine.set(param, carried_from(donor, param, carried_value(param, value, *gpu, donor_gpu)));
  }
}

ParamValue carried_from(const Machine& from, Param param, double value) {
  const std::string_view fact = fact_of(param);
  const bool is_moved = !fact.empty() && value != from.get(param).value;
  const ParamValue& there = from.get(param);
  Source source = carried_source(
      is_moved ? fmt::format("{}_by_{}", from.name, fact) : fmt::format("as_{}", from.name),
      is_moved ? fmt::format("carried over from {} by {}", from.name, fact)
               : fmt::format("carried over from {}", from.name));
  ParamValue carried{.value = value,
                     .spread = there.spread,
                     .source = source.kind,
                     .from = source.text,
                     .range = {}};
  carried.origin = std::make_shared<const Source>(std::move(source));
  return carried;
}

}  // namespace foretrace
