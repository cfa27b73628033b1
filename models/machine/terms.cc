#include "models/machine/terms.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

constexpr std::array<TermInfo, kTermCount> kTerms{{
#define TERM(name, id, stage, explains, evidence, parameters, gain) \
  TermInfo{id, TermStage::stage, explains, evidence, parameters, gain},
#include "models/terms.def"
#undef TERM
}};

}  // namespace

const TermInfo& info(Term term) { return kTerms.at(static_cast<std::size_t>(term)); }

std::string_view stage_name(TermStage stage) {
  switch (stage) {
    case TermStage::Adds:
      return "adds";
    case TermStage::Overlaps:
      return "overlaps";
    case TermStage::Waits:
      return "waits";
    case TermStage::Scales:
      break;
  }
  return "scales";
}

std::optional<Term> term_named(std::string_view id) {
  for (std::size_t i = 0; i < kTermCount; ++i) {
    if (kTerms.at(i).id == id) return static_cast<Term>(i);
  }
  return std::nullopt;
}

TermSet terms_of(const std::string& text) {
  constexpr std::string_view kWord = "term=";
  if (!text.starts_with(kWord)) {
    throw UsageError{fmt::format(
        "--without: '{}' is nothing that a prediction can be without\n  hint: term=NAME; "
        "foretrace list terms",
        text)};
  }
  TermSet set;
  std::string_view left = std::string_view{text}.substr(kWord.size());
  while (true) {
    const std::string_view id = left.substr(0, left.find(','));
    const auto term = term_named(id);
    if (!term) {
      std::vector<std::string> known;
      for (const TermInfo& one : kTerms) known.emplace_back(one.id);
      const std::string hint = suggest(std::string{id}, known);
      throw UsageError{fmt::format("--without: unknown term '{}'\n  hint: {}", id,
                                   hint.empty() ? "foretrace list terms" : hint)};
    }
    set.set(static_cast<std::size_t>(*term));
    if (id.size() == left.size()) return set;
    left.remove_prefix(id.size() + 1);
  }
}

}  // namespace foretrace
