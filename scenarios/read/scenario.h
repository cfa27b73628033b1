// Scenario text to Program: strict YAML, every mistake reported at once.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/captured/expand.h"
#include "scenarios/include/include.h"
#include "scenarios/program/program.h"
#include "scenarios/serving/description.h"
#include "scenarios/training_step/expand.h"

namespace foretrace {

/// Values given on the command line for the scenario's parameters: {"size", "16MiB"}.
using ParameterValues = std::map<std::string, std::string>;

/// A program that can run, and what looks wrong about it all the same (an event that nothing
/// records, a send without a receive).
struct ReadProgram {
  Program program;
  Diagnostics warnings;
};

/// Reads, expands and checks `text`. `file` is the name diagnostics show, and what includes are
/// relative to; `parts` are the texts that they find, kept there or, when it is not empty, taken
/// from there instead of the disk.
Checked<ReadProgram> read_scenario(std::string_view text, const std::string& file,
                                   const ParameterValues& parameters = {},
                                   IncludedTexts* parts = nullptr);

/// `text` with what it includes in the includes' places: a scenario that needs no other file.
/// Without an include it is `text` itself. Throws UsageError with the rendered diagnostics.
std::string self_contained(std::string_view text, const std::string& file,
                           IncludedTexts* parts = nullptr);

/// The same from disk. Throws UsageError with the rendered diagnostics when the file is missing,
/// not text, or wrong; prints the warnings to stderr.
Program load_scenario(const std::filesystem::path& file, const ParameterValues& parameters = {},
                      IncludedTexts* parts = nullptr);

/// The same for a run, whose program must end: that it never ends is printed as an error.
struct LoadedToRun {
  Program program;
  bool ends = true;
};
LoadedToRun load_to_run(const std::filesystem::path& file, const ParameterValues& parameters = {});

/// Makes errors of what says that a program never ends. Whether there is none.
bool ends_for_all_we_know(Diagnostics& warnings);

/// A file with `training_step:`: the program that it reads as, and what follows from it without a
/// machine.
struct ExpandedScenario {
  training::TrainingStep step;
  training::Expansion expansion;
  SourceSpot at;         ///< of `training_step`
  Diagnostics warnings;  ///< of the file

  /// The same file's expansion, were the step another one.
  training::Expansion expand(const training::TrainingStep& other, training::Ranks ranks) const {
    return training::expand(other, ranks, expansion.program, at);
  }
};

/// Its description alone, checked; empty for a file without one. Throws UsageError with the
/// rendered diagnostics.
std::optional<training::TrainingStep> read_training_step(std::string_view text,
                                                         const std::string& file);

/// Empty for a file without one. Throws UsageError with the rendered diagnostics.
std::optional<ExpandedScenario> read_training(std::string_view text, const std::string& file,
                                              const ParameterValues& parameters = {},
                                              training::Ranks ranks = training::Ranks::All);

/// A file with `serving:`: requests and an engine. Its program has the engine's iterations of
/// chosen sizes (../serving/grid.h), a region for each.
struct ServingScenario {
  serving::Serving serving;
  Program program;
  SourceSpot at;  ///< of `serving`
  Diagnostics warnings;
};

/// Empty for a file without one. Throws UsageError with the rendered diagnostics.
std::optional<ServingScenario> read_serving_scenario(std::string_view text, const std::string& file,
                                                     const ParameterValues& parameters = {});

/// A file with `captured_step:`: the program that its records read as.
struct ExpandedCapture {
  captured::Expansion expansion;
  SourceSpot at;  ///< of `captured_step`

  Diagnostics notes() const;  ///< the expansion's, as warnings
};

/// Empty for a file without one. Throws UsageError with the rendered diagnostics.
std::optional<ExpandedCapture> read_captured(std::string_view text, const std::string& file,
                                             const ParameterValues& parameters = {});

}  // namespace foretrace
