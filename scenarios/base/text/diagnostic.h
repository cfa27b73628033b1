// What is wrong with a user's file, and how it is shown.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace foretrace {

struct SourceSpot {
  std::string file;
  int line{};    ///< 1-based; 0 when the whole file is meant
  int column{};  ///< 1-based
};

enum class Severity {
  Error,
  Warning,
  Note,  ///< how far a search went: only `foretrace check` shows it
  Hang   ///< it never ends, whatever the times are: shown as a warning where it runs all the same
};

/// One thing wrong with a user's file, worded for the user.
struct Diagnostic {
  SourceSpot at;
  std::string message;
  std::string hint;  ///< May be empty: "did you mean 'stream'?"
  Severity severity = Severity::Error;
  std::vector<SourceSpot> included_from{};  ///< of an included file: who includes it, and so on
  std::string line_text{};                  ///< of an included file: the line that `at` names
  std::string_view group{};  ///< of warnings that are said again and again: what they share
  std::string more{};        ///< "and 3 more like it, in lines 8, 9, 12"
};

using Diagnostics = std::vector<Diagnostic>;

/// Checking never stops at the first mistake: a failed read returns them all.
template <class T>
using Checked = tl::expected<T, Diagnostics>;

/// In gcc's form, so that editors and CI annotate the file without a plug-in: file:line:column,
/// the source line, a caret, the hint. `source_line` may be empty (no caret then); a long one is
/// cut around the caret.
std::string render(const Diagnostic& diagnostic, std::string_view source_line);

/// All of them, in the order of the file, each with its line taken from `source_text`, or from
/// where it was included.
std::string render(const Diagnostics& diagnostics, std::string_view source_text);

/// Of the warnings of one group and file the first alone, which counts the others and names their
/// lines.
Diagnostics grouped(Diagnostics diagnostics);

/// Where in the scenario's own file it is: at the include, for what stands in another.
inline const SourceSpot& outermost(const Diagnostic& diagnostic) {
  return diagnostic.included_from.empty() ? diagnostic.at : diagnostic.included_from.back();
}

/// The line's text, of a text with lines from 1 on; empty where there is none.
std::string_view line_of(std::string_view text, int line);

/// Letters to put in, take out or change that make `b` of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// "did you mean 'stream'?" when one of `known` is another name of what `given` is (synonyms.h), or
/// close to it; otherwise the choices, if few.
std::string suggest(std::string_view given, const std::vector<std::string>& known);

}  // namespace foretrace
