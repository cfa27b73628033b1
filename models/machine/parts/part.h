// A part that machines are composed of: models/machines/{gpus,links,hosts,networks}/NAME.yaml, ten
// to twenty facts, each with its source (facts.def).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/machine/parameter_reader.h"
#include "models/machine/source.h"
#include "scenarios/base/text/diagnostic.h"

namespace foretrace {

enum class PartFolder : std::uint8_t { Gpus, Links, Hosts, Networks };

/// "gpus"; "GPU".
std::string_view folder_name(PartFolder folder);
std::string_view part_word(PartFolder folder);

struct Fact {
  double value{};    ///< SI base units; a clock in Hz, power in W
  bool is_none{};    ///< the hardware has no such thing
  std::string text;  ///< as the file says it
  std::shared_ptr<const Source> source;
};

struct Part {
  PartFolder folder{};
  std::string name, summary;
  std::map<std::string, std::string, std::less<>> words;
  std::map<std::string, Fact, std::less<>> facts;
  std::vector<ParameterEntry> parameters;  ///< of a host that was measured: foretrace-hw host

  std::string word(std::string_view key) const;
  /// None where the file leaves it out, or says that there is no such thing.
  std::optional<double> value(std::string_view key) const;
  bool lacks(std::string_view key) const;
};

/// Reads a part's file; all mistakes at once.
Checked<Part> read_part(std::string_view text, const std::string& file, PartFolder folder);

/// Whether a host's file may say it: what its cores, memory and driver take, and no GPU's.
bool is_of_hosts(Param param);

/// The parts that there are.
std::vector<std::string> part_names(PartFolder folder);
/// The part's own name, of this one in any case or of another that it has (also:).
std::optional<std::string> find_part(PartFolder folder, const std::string& name);
/// A part by its name, in any case, or by a path that ends in .yaml. Throws UsageError, with a
/// suggestion.
Part load_part(PartFolder folder, const std::string& name_or_path);
/// The GPU that nvidia-smi calls so, or that has this other name; none where no part does.
std::optional<Part> part_of_gpu(const std::string& gpu_name);

/// A fact as the file's words, or in plain units.
std::string fact_text(const Fact& fact);
/// What a fact is, of facts.def.
std::string_view fact_meaning(PartFolder folder, std::string_view key);

}  // namespace foretrace
