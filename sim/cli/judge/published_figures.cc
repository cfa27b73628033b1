#include "sim/cli/judge/published_figures.h"

#include <fmt/format.h>

#include <optional>

#include "scenarios/base/text/csv.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

/// A time with its unit, in ns; empty for anything else.
std::optional<double> time_ns(const std::string& text) {
  const auto parsed = parse_constant(text);
  if (!parsed || parsed->unit != kTime || parsed->constant <= 0) return std::nullopt;
  return parsed->constant.to_double() / 1e3;
}

}  // namespace

std::vector<PublishedFigure> read_figures(const std::filesystem::path& file) {
  std::vector<PublishedFigure> figures;
  for (const CsvLine& line : read_csv(file)) {
    const std::string published{line.text("published")};
    const auto ns = time_ns(published);
    if (!ns) {
      throw UsageError{fmt::format("{}: '{}' is no time with a unit\n  hint: as in 0.5062s",
                                   line.where(), published)};
    }
    figures.push_back({std::string{line.text("set")}, std::string{line.text("figure")},
                       std::string{line.text("scenario")}, std::string{line.text("region")}, *ns});
  }
  if (figures.empty()) throw UsageError{fmt::format("{}: there is no figure", file.string())};
  return figures;
}

}  // namespace foretrace
