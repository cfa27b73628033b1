// Where the values of a machine file come from: each source once, with an id that parameters name.
//
// A source says which measurements its values were learned from: scenarios, numbers of GPUs and
// sizes. By that, and by nothing else, a region is called a fit or a prediction (docs: README.md
// beside the machine files).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

class Problems;
struct YamlNode;

/// Both ends belong to it. Bytes of an operation over all ranks, as nccl-tests counts.
struct ByteRange {
  std::uint64_t least{}, most{};
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// One set of measurements that values were learned from.
struct LearnedFrom {
  std::string scenario;  ///< its name, or a pattern: "nccl_*"
  std::string other;     ///< instead of it, what is no scenario of ours: a published table
  std::vector<std::uint32_t> ranks;  ///< numbers of GPUs; empty: whatever there was
  std::optional<ByteRange> sizes;    ///< none: whatever there was
  bool every_other = false;          ///< of a sweep's sizes the first, the third and so on only
  std::string data;                  ///< the measurement, below the repository's root; may be empty
  friend bool operator==(const LearnedFrom&, const LearnedFrom&) = default;
};

struct Source {
  std::string id;
  ParameterClass kind = ParameterClass::Assumed;
  std::string text;  ///< for people: a datasheet's name, "3 process launches on one machine"
  std::vector<LearnedFrom> learned_from;
  std::string command;  ///< that finds the values again; a fit has one
  /// Another machine's, by the ratio of facts (scaling.h): how far such values are off was judged
  /// on GPUs that were left out, and the parameter's spread says it.
  bool is_carried = false;
  friend bool operator==(const Source&, const Source&) = default;
};

/// A region, as far as it matters to whether somebody learned from it.
struct RegionFacts {
  std::string scenario;  ///< the scenario's name
  std::uint32_t ranks = 1;
  std::uint64_t bytes = 0;  ///< of its NCCL operation; 0 when it has none
  std::uint64_t pass = 0;   ///< of the file's loops: neighbouring sizes have neighbouring numbers
};

/// Whether `source` learned from this very region. A size that is not known counts as learned from.
bool learned_from(const Source& source, const RegionFacts& region);

/// "fit", "datasheet", "published", "assumed".
std::string_view class_name(ParameterClass kind);

/// The same, or "carried over".
std::string_view class_word(const Source& source);

/// The map below `sources:` of a machine file; what is wrong with it goes to `problems`.
std::vector<std::shared_ptr<const Source>> read_sources(const YamlNode& node, Problems& problems);

/// "48B", "2GiB": the largest binary unit that divides it.
std::string bytes_text(std::uint64_t bytes);

}  // namespace foretrace
