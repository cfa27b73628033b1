#include "scenarios/styles/formula.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

namespace foretrace::styles {
namespace {

using Json = nlohmann::json;

Wide divided_up(Wide above, Wide below) { return (above + below - 1) / below; }

}  // namespace

Formulas::Formulas(Json table, Sizes sizes) : sizes_{std::move(sizes)} {
  for (const Json& formula : table) values_.push_back(value(formula));
}

Formulas::Fraction Formulas::product(const Json& powers) const {
  Fraction made;
  for (const auto& [symbol, power] : powers.items()) {
    const int times = power.get<int>();
    for (int i = 0; i < std::abs(times); ++i)
      (times > 0 ? made.above : made.below) *= sizes_.at(symbol);
  }
  return made;
}

Json Formulas::value(const Json& formula) const {
  if (formula.contains("multiple_of")) {
    const auto [above, below] = product(formula.at("by"));
    return formula.at(
        above % (below * formula.at("multiple_of").get<std::int64_t>()) == 0 ? "is" : "else");
  }
  if (formula.contains("steps")) {
    const auto [above, below] = product(formula.at("by"));
    for (const Json& step : formula.at("steps")) {
      if (step.at(0).is_null() || above <= below * step.at(0).get<std::int64_t>())
        return step.at(1);
    }
  }
  auto [above, below] = product(formula.at("p"));
  above *= formula.value("c", std::int64_t{1});
  if (formula.contains("and")) above += product(formula.at("and")).above * below;
  below *= formula.value("d", std::int64_t{1});
  auto made = static_cast<std::int64_t>(divided_up(above, below));
  made *= formula.value("times", std::int64_t{1});
  if (formula.value("power2", false))
    made = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(made)));
  if (formula.contains("most")) {
    const auto [by, of] = product(formula.value("most_by", Json::object()));
    made = std::min(made, static_cast<std::int64_t>(
                              divided_up(formula.at("most").get<std::int64_t>() * of, by)));
  }
  return made + formula.value("plus", std::int64_t{0});
}

Json Formulas::filled(const Json& json) const {
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    return text.starts_with('=') ? values_.at(std::stoul(text.substr(1))) : json;
  }
  if (!json.is_structured()) return json;
  Json made = json;
  for (Json& one : made) one = filled(one);
  return made;
}

}  // namespace foretrace::styles
