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
  std::string headline;  ///< the newest blind round in one sentence, with the GPUs that it had
  std::vector<Section> sections;
};

/// `from`: the directory of the page, which its links start from. The headline is of the last round
/// on `machine`; throws UsageError when there is none.
AccuracyPage accuracy_page(std::span<const BlindRound> rounds,
                           std::span<const ShippedRegion> shipped, const std::string& machine,
                           const std::filesystem::path& from);

/// The few lines of the README, in Markdown: a row for each number of GPUs, and for random programs
/// and those that others wrote. Each row is of the newest round that had some, on all the GPUs that
/// it was measured on.
std::string by_whose_programs(std::span<const BlindRound> rounds,
                              const std::filesystem::path& from);

/// `file` as a link in a document in the directory `from`.
std::filesystem::path link_to(const std::filesystem::path& file, const std::filesystem::path& from);

std::string accuracy_markdown(const AccuracyPage& page);
/// One self-contained file; light and dark.
std::string accuracy_html(const AccuracyPage& page);

}  // namespace foretrace
