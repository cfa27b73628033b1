// How far a predicted time of nccl-tests may be off.
#include <algorithm>
#include <cmath>

#include "sim/nccl_tests_predict.h"

namespace foretrace {
namespace {

constexpr double kNotFitted = 0.3;  ///< of a parameter that is assumed or from a datasheet
constexpr double kLeast = 0.03;
constexpr double kMost = 0.5;

}  // namespace

double nccl_time_spread(const Machine& machine, const NcclTestsPlan&, const NcclTestsRow&) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (!machine.has(param) || !info(param).key.starts_with("nccl.") ||
        info(param).unit == ParamUnit::Count) {
      continue;
    }
    const ParamValue& value = machine.get(param);
    const double spread = value.source == ParameterClass::Fit ? value.spread : kNotFitted;
    sum += std::min(spread, kMost) * std::min(spread, kMost);
    ++count;
  }
  return count == 0 ? kMost : std::clamp(std::sqrt(sum / count), kLeast, kMost);
}

}  // namespace foretrace
