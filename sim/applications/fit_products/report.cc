#include "sim/applications/fit_products/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace foretrace::fit_products {
namespace {

constexpr std::size_t kFolds = 5;

/// The same for every row of a shape, whatever its type: neighbours are not told apart by it.
std::size_t fold_of(const products::Shape& shape) {
  const std::uint64_t mixed = static_cast<std::uint64_t>(shape.m) * 0x9e3779b97f4a7c15U +
                              static_cast<std::uint64_t>(shape.n) * 0xbf58476d1ce4e5b9U +
                              static_cast<std::uint64_t>(shape.k) * 0x94d049bb133111ebU;
  return (mixed >> 40U) % kFolds;
}

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

/// Of the errors of some rows, in words which.
struct ErrorLine {
  std::string of;
  Summary summary;
};

/// As the machine's files write a value of this unit.
std::string value_text(Param param, double value) {
  switch (info(param).unit) {
    case ParamUnit::Time:
      return fmt::format("{:.4g}us", value * 1e6);
    case ParamUnit::Rate:
      return fmt::format("{:.4g} GB/s", value * 1e-9);
    case ParamUnit::FlopRate:
      return fmt::format("{:.4g} TFLOP/s", value * 1e-12);
    default:
      return fmt::format("{:.4g}", value);
  }
}

}  // namespace

std::vector<Error> errors_of(const Machine& machine, const products::Heuristics& heuristics,
                             const std::vector<Row>& rows) {
  std::vector<Error> errors;
  Reading read{machine};
  for (const Row& row : rows) {
    errors.push_back({row, predict(read, heuristics, row, kBurstLoad) / row.burst - 1,
                      predict(read, heuristics, row, 1) / row.sustained - 1});
  }
  return errors;
}

std::vector<Error> cross_validated(const std::vector<Row>& rows,
                                   const std::function<Fit(const std::vector<Row>&)>& fit) {
  std::vector<Error> errors;
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<Row> others;
    std::vector<Row> mine;
    for (const Row& row : rows) (fold_of(row.shape) == fold ? mine : others).push_back(row);
    const Fit result = fit(others);
    const auto found = errors_of(result.machine, result.heuristics, mine);
    errors.insert(errors.end(), found.begin(), found.end());
  }
  return errors;
}

Summary summary(const std::vector<Error>& errors, const std::function<bool(const Row&)>& wanted) {
  std::vector<double> sizes;
  std::vector<double> signed_errors;
  std::size_t rows = 0;
  for (const Error& error : errors) {
    if (!wanted(error.row)) continue;
    ++rows;
    for (const double one : {error.burst, error.sustained}) {
      sizes.push_back(std::abs(one));
      signed_errors.push_back(one);
    }
  }
  if (rows == 0) return {};
  return {rows, percentile(sizes, 0.5), percentile(sizes, 0.9), percentile(signed_errors, 0.5)};
}

namespace {

std::vector<ErrorLine> error_lines(const std::vector<Error>& errors) {
  constexpr double kShort = 25e-6;
  constexpr double kLong = 200e-6;
  std::vector<ErrorLine> lines;
  const auto add = [&](const std::string& of, const std::function<bool(const Row&)>& wanted) {
    const Summary all = summary(errors, wanted);
    if (all.rows > 0) lines.push_back({of, all});
  };
  std::set<std::string> types;
  std::set<std::string> purposes;
  for (const Error& error : errors) {
    types.insert(error.row.type);
    purposes.insert(error.row.purpose);
  }
  for (const std::string& type : types) {
    const auto of_type = [&](const Row& row) { return row.type == type; };
    add(type + ", below 25 us",
        [&](const Row& row) { return of_type(row) && row.sustained < kShort; });
    add(type + ", 25 us and longer",
        [&](const Row& row) { return of_type(row) && row.sustained >= kShort; });
    add(type + ", 200 us and longer",
        [&](const Row& row) { return of_type(row) && row.sustained >= kLong; });
  }
  for (const std::string& purpose : purposes) {
    add("bfloat16 " + purpose + ", from 25 us", [&](const Row& row) {
      return row.type == "bfloat16" && row.purpose == purpose && row.sustained >= kShort;
    });
  }
  for (const bool zeros : {true, false}) {
    add(fmt::format("bfloat16 {}, from 25 us", zeros ? "zeros" : "random data"),
        [&](const Row& row) {
          return row.type == "bfloat16" && row.sustained >= kShort &&
                 (row.contents == products::Contents::Zeros) == zeros;
        });
  }
  add("bfloat16 odd, from 25 us", [&](const Row& row) {
    return row.type == "bfloat16" && row.sustained >= kShort &&
           family_of(row.shape) != products::Family::Half;
  });
  return lines;
}

}  // namespace

std::string errors_text(const std::vector<Error>& errors) {
  std::string text = fmt::format("{:32} {:>5} {:>9} {:>9} {:>9}\n", "burst and sustained together",
                                 "rows", "median", "90 %", "bias");
  for (const auto& [of, all] : error_lines(errors)) {
    text += fmt::format("{:32} {:5} {:7.1f} % {:7.1f} % {:+7.1f} %\n", of, all.rows,
                        all.median * 100, all.percentile_90 * 100, all.bias * 100);
  }
  return text;
}

nlohmann::ordered_json errors_json(const std::vector<Error>& errors) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& [of, all] : error_lines(errors)) {
    rows.push_back({{"of", of},
                    {"rows", all.rows},
                    {"median", all.median},
                    {"percentile_90", all.percentile_90},
                    {"bias", all.bias}});
  }
  return rows;
}

std::string parameters_text(const Fit& fit) {
  std::string text;
  for (const Param param : fit.fitted) {
    const ParamValue& value = fit.machine.get(param);
    text += fmt::format("  {}: {{value: {}, source: products, spread: {:.1f}%}}\n", info(param).key,
                        value_text(param, value.value), value.spread * 100);
  }
  return text;
}

nlohmann::ordered_json parameters_json(const Fit& fit) {
  auto rows = nlohmann::ordered_json::array();
  for (const Param param : fit.fitted) {
    const ParamValue& value = fit.machine.get(param);
    rows.push_back(
        {{"parameter", info(param).key}, {"value", value.value}, {"spread", value.spread}});
  }
  return rows;
}

}  // namespace foretrace::fit_products
