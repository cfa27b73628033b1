// How exact the predictions are, as a page: programs that nobody tuned to first, then predictions
// of shipped scenarios, then what the model learned from.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "reports/accuracy/blind_round.h"
#include "reports/page/sections.h"

namespace foretrace {

/// A region of a shipped scenario that was measured.
struct ShippedRegion {
  std::string scenario;  ///< its file
  std::string region;
  bool is_fit = false;  ///< a parameter that decides it learned from it
  double predicted_us{}, measured_us{};
  ErrorSample sample;
};

struct AccuracyPage {
  std::string headline;  ///< the newest blind round in one sentence
  std::vector<Section> sections;
};

/// `from`: the directory of the page, which its links start from. The headline is of the last round
/// on `machine`; throws UsageError when there is none.
AccuracyPage accuracy_page(std::span<const BlindRound> rounds,
                           std::span<const ShippedRegion> shipped, const std::string& machine,
                           const std::filesystem::path& from);

/// The headline alone, as it stands in the README: with a link to the round's own table.
std::string blind_sentence(std::span<const BlindRound> rounds, const std::string& machine,
                           const std::filesystem::path& from);

std::string accuracy_markdown(const AccuracyPage& page);
/// One self-contained file; light and dark.
std::string accuracy_html(const AccuracyPage& page);

}  // namespace foretrace
