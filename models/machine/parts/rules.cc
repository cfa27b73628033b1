#include "models/machine/parts/rules.h"

#include <algorithm>
#include <array>

namespace foretrace {
namespace {

struct Rule {
  std::string_view prefix, fact;
};

constexpr std::array kRules{
#define RULE(prefix, fact) Rule{prefix, fact},
#include "models/machine/parts/rules.def"
#undef RULE
};

std::optional<double> value_of(std::string_view fact, const Part& gpu) {
  if (fact == "cache") {
    const auto sms = gpu.value("sm_count"), clock = gpu.value("clock");
    return sms && clock ? std::optional{*sms * *clock} : std::nullopt;
  }
  if (const auto value = gpu.value(fact)) return value;
  if (fact == "bf16") return gpu.value("fp16");
  return {};
}

/// What the board may draw for each operation of its peak, over what `base`'s may; 1 where they are
/// not the same chip. What more watts than the measured GPU's are good for was not seen: the 900 of
/// a GH200 are its CPU's, too.
double watts_ratio(const Part& gpu, const Part& base) {
  const bool is_same_chip = gpu.value("sm_count") == base.value("sm_count") &&
                            gpu.value("capability") == base.value("capability");
  if (!is_same_chip) return 1;
  return std::min(1.0, ratio_of("power", gpu, base) / ratio_of("bf16", gpu, base));
}

}  // namespace

std::string_view fact_of(Param param) {
  const std::string_view key = info(param).key;
  const auto* const rule =
      std::ranges::find_if(kRules, [&](const Rule& one) { return key.starts_with(one.prefix); });
  return rule->fact == "-" ? std::string_view{} : rule->fact;
}

double ratio_of(std::string_view fact, const Part& gpu, const Part& base) {
  if (fact == "watts") return watts_ratio(gpu, base);
  const auto here = value_of(fact, gpu), there = value_of(fact, base);
  if (here && there && *there > 0) return *here / *there;
  // Types that a datasheet leaves out go with the one that all of them have.
  if (fact == "tf32" || fact == "fp32" || fact == "fp8" || fact == "int8")
    return ratio_of("bf16", gpu, base);
  if (fact == "clock" || fact == "cache") {
    return fact == "cache" && gpu.value("sm_count") && base.value("sm_count")
               ? *gpu.value("sm_count") / *base.value("sm_count")
               : 1;
  }
  return 1;
}

double carried_value(Param param, double value, const Part& gpu, const Part& base) {
  const std::string_view fact = fact_of(param);
  if (fact.empty()) return value;
  const double ratio = ratio_of(fact, gpu, base);
  switch (info(param).unit) {
    case ParamUnit::Rate:
    case ParamUnit::FlopRate:
      return value * ratio;
    case ParamUnit::Time:
      return value / ratio;
    case ParamUnit::Size:
      return fact == "l2_size" ? value * ratio : value;
    case ParamUnit::Ratio:
      return fact == "watts" ? value * ratio : value;
    default:
      return value;
  }
}

}  // namespace foretrace
