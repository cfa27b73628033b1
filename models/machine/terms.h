// The catalogue of terms (models/terms.def): each effect beyond the core, which may be left out of
// a prediction by name.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foretrace {

enum class Term : std::uint8_t {
#define TERM(name, id, stage, explains, evidence, parameters, gain) name,
#include "models/terms.def"
#undef TERM
  Count_
};
inline constexpr std::size_t kTermCount = static_cast<std::size_t>(Term::Count_);
using TermSet = std::bitset<kTermCount>;

/// What a term does to a time: it is added, it overlaps or waits for other work, or it is a factor.
enum class TermStage : std::uint8_t { Adds, Overlaps, Waits, Scales };

struct TermInfo {
  std::string_view id;  ///< "cold_operands"
  TermStage stage;
  std::string_view explains;
  std::string_view evidence;    ///< a page of models/evidence: "gemm.md"
  std::string_view parameters;  ///< keys of a machine, "a.b, c.d"; empty: none of its own
  std::string_view gain;        ///< on programs that it did not learn from
};
const TermInfo& info(Term term);
std::string_view stage_name(TermStage stage);

/// "cold_operands"; none for what is no term's id.
std::optional<Term> term_named(std::string_view id);

/// Of "term=ID" or "term=ID,ID". Throws UsageError with the nearest name.
TermSet terms_of(const std::string& text);

}  // namespace foretrace
