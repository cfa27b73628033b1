// Figures that others published, each with the region of a scenario that stands for it
// (reports/published).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace foretrace {

struct PublishedFigure {
  std::string set, name, scenario, region;
  double published_ns = 0;
  double predicted_ns = 0;
  bool learned = false;  ///< a parameter that decides it learned from it
  double error() const { return predicted_ns / published_ns - 1; }
};

/// A table set,figure,scenario,region,published. Throws UsageError naming file and line, and when
/// there is no figure.
std::vector<PublishedFigure> read_figures(const std::filesystem::path& file);

}  // namespace foretrace
