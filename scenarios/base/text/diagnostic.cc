#include "scenarios/base/text/diagnostic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include "scenarios/base/text/synonyms.h"
#include "scenarios/base/text/words.h"

namespace foretrace {
namespace {

constexpr std::size_t kShownColumns = 100;
constexpr std::size_t kContextColumns = 40;  // kept on the left of the caret in a line that is cut
constexpr std::size_t kShownDiagnostics = 100;
constexpr std::size_t kFewChoices = 12;

bool is_continuation_byte(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

/// Terminal columns of UTF-8 text, one per code point.
std::size_t display_width(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_continuation_byte));
}

/// One column wide each: tabs would move the caret, control characters the terminal.
std::string printable(std::string_view text) {
  std::string shown{text};
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return shown;
}

struct Excerpt {
  std::string text;
  std::size_t caret;  // display columns before the caret
};

Excerpt excerpt_around(std::string_view line, std::size_t column) {
  const std::size_t at = std::min(column - 1, line.size());
  std::size_t begin = at > kShownColumns - 10 ? at - kContextColumns : 0;
  while (begin > 0 && begin < line.size() && is_continuation_byte(line[begin])) --begin;
  std::size_t end = std::min(line.size(), begin + kShownColumns);
  while (end < line.size() && is_continuation_byte(line[end])) ++end;
  const std::string_view head = begin > 0 ? "..." : "";
  const std::string_view tail = end < line.size() ? "..." : "";
  return {fmt::format("{}{}{}", head, printable(line.substr(begin, end - begin)), tail),
          head.size() + display_width(line.substr(begin, at - begin))};
}

}  // namespace

std::string_view line_of(std::string_view text, int line) {
  for (int current = 1; current < line; ++current) {
    const auto newline = text.find('\n');
    if (newline == std::string_view::npos) return {};
    text.remove_prefix(newline + 1);
  }
  const auto found = text.substr(0, text.find('\n'));
  return found.ends_with('\r') ? found.substr(0, found.size() - 1) : found;
}

namespace {

std::string_view word_of(Severity severity) {
  if (severity == Severity::Error) return "error";
  return severity == Severity::Note ? "note" : "warning";
}

}  // namespace

std::string render(const Diagnostic& diagnostic, std::string_view source_line) {
  const SourceSpot& at = diagnostic.at;
  std::string text;  // nothing of what is about no file
  if (at.line > 0) {
    text = fmt::format("{}:{}:{}: ", at.file, at.line, at.column);
  } else if (!at.file.empty()) {
    text = fmt::format("{}: ", at.file);
  }
  text += fmt::format("{}: {}\n", word_of(diagnostic.severity), diagnostic.message);
  if (!source_line.empty() && at.line > 0 && at.column > 0) {
    const auto excerpt = excerpt_around(source_line, static_cast<std::size_t>(at.column));
    text += fmt::format("  {}\n  {:>{}}\n", excerpt.text, "^", excerpt.caret + 1);
  }
  if (!diagnostic.hint.empty()) text += fmt::format("  hint: {}\n", diagnostic.hint);
  if (!diagnostic.more.empty()) text += fmt::format("  {}\n", diagnostic.more);
  for (const SourceSpot& from : diagnostic.included_from) {
    text += fmt::format("  included from {}:{}:{}\n", from.file, from.line, from.column);
  }
  return text;
}

Diagnostics grouped(Diagnostics diagnostics) {
  constexpr std::size_t kNamedLines = 10;
  std::ranges::stable_sort(diagnostics, {}, [](const Diagnostic& d) {
    return std::pair{outermost(d).line, outermost(d).column};
  });
  struct Group {
    std::size_t first;
    std::size_t others = 0;
    std::vector<int> lines{};
  };
  std::map<std::pair<std::string_view, std::string>, Group> groups;
  Diagnostics kept;
  for (Diagnostic& one : diagnostics) {
    if (!one.group.empty()) {
      const auto [group, is_first] =
          groups.emplace(std::pair{one.group, one.at.file}, Group{kept.size()});
      if (!is_first) {
        ++group->second.others;
        auto& lines = group->second.lines;
        if (lines.empty() || lines.back() != one.at.line) lines.push_back(one.at.line);
        continue;
      }
    }
    kept.push_back(std::move(one));
  }
  for (const auto& [what, group] : groups) {
    if (group.others == 0) continue;
    const auto& lines = group.lines;
    kept[group.first].more =
        fmt::format("and {} more like it, in line{} {}{} (foretrace check --all prints each)",
                    group.others, lines.size() == 1 ? "" : "s",
                    fmt::join(std::span{lines}.first(std::min(lines.size(), kNamedLines)), ", "),
                    lines.size() > kNamedLines ? ", ..." : "");
  }
  return kept;
}

std::string render(const Diagnostics& diagnostics, std::string_view source_text) {
  std::vector<const Diagnostic*> sorted;
  for (const Diagnostic& diagnostic : diagnostics) sorted.push_back(&diagnostic);
  std::ranges::stable_sort(sorted, {}, [](const Diagnostic* d) {
    return std::pair{outermost(*d).line, outermost(*d).column};
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kShownDiagnostics); ++i) {
    const Diagnostic& one = *sorted[i];
    text += render(one, one.included_from.empty() ? line_of(source_text, one.at.line)
                                                  : std::string_view{one.line_text});
  }
  if (sorted.size() > kShownDiagnostics) {
    text += fmt::format("... and {} more\n", sorted.size() - kShownDiagnostics);
  }
  return text;
}

namespace {

/// Whether `given` is the beginning of `name`, or each of its words that of a word of `name`, in
/// their order: "h200" of "h200-nvswitch-8", "dev_sync" of "device_synchronize".
bool abbreviates(std::string_view given, std::string_view name) {
  std::size_t at = 0;
  bool begins_word = true;
  for (std::size_t i = 0; i < name.size() && at < given.size(); ++i) {
    const bool separates = name[i] == '_' || name[i] == '-' || name[i] == '.' || name[i] == '/';
    if (given[at] == name[i] && (begins_word || (at > 0 && given[at - 1] == name[i - 1]))) {
      ++at;
      begins_word = separates;
      continue;
    }
    if (separates && (given[at] == '_' || given[at] == '-')) ++at;
    begins_word = separates;
  }
  return at == given.size();
}

/// At most three of `known` that `given` may be short for.
std::vector<std::string> written_out(std::string_view given,
                                     const std::vector<std::string>& known) {
  constexpr std::size_t kShortest = 3;
  constexpr std::size_t kMost = 3;
  std::vector<std::string> found;
  if (given.size() < kShortest) return found;
  for (const std::string& name : known) {
    if (found.size() < kMost && abbreviates(given, name)) found.push_back(name);
  }
  return found;
}

}  // namespace

/// Levenshtein's distance, with a swap of neighbours counted as one edit.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] =
          std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

std::string suggest(std::string_view given, const std::vector<std::string>& known) {
  constexpr std::size_t kLongestName = 64;  // nobody mistypes a longer one; keeps this cheap
  if (given.size() <= kLongestName) {
    if (std::string meant = meant_by(given, known); !meant.empty()) return meant;
    std::string_view best;
    std::size_t best_distance = std::max<std::size_t>(1, given.size() / 3) + 1;
    for (const std::string& candidate : known) {
      if (candidate.size() > kLongestName) continue;
      const std::size_t more = candidate.size() > given.size() ? candidate.size() - given.size()
                                                               : given.size() - candidate.size();
      if (more >= best_distance) continue;  // each letter more is an edit
      const std::size_t distance = edit_distance(given, candidate);
      if (distance < best_distance) {
        best = candidate;
        best_distance = distance;
      }
    }
    if (!best.empty()) return fmt::format("did you mean '{}'?", best);
    if (const auto longer = written_out(given, known); !longer.empty()) {
      return fmt::format("did you mean '{}'?", fmt::join(longer, "' or '"));
    }
  }
  if (known.empty() || known.size() > kFewChoices) return {};
  std::string all;
  for (const std::string& one : known) all += (all.empty() ? "" : ", ") + shortened(one);
  return "known here: " + all;
}

}  // namespace foretrace
