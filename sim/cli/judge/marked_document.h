// --write and --check of a command whose text stands in a document, between the comments of
// reports/page/marked_text.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace foretrace {

struct MarkedDocument {
  std::filesystem::path write, check;  ///< at most one of them is given
  bool is_given() const { return !write.empty() || !check.empty(); }
};

/// What stands in the document.
struct MarkedText {
  std::string_view name;  ///< of the markers
  std::string_view what;  ///< "the table by rule", for the line that says that it is stale
  std::string command;    ///< "foretrace table scenarios --by rule": renews it with --write
  /// The text, with links relative to the folder that it is given.
  std::function<std::string(const std::filesystem::path& folder)> text;
};

/// Adds --write FILE and --check FILE. `what` is "the table", for their help.
void add_marked_document(CLI::App& command, MarkedDocument& document, std::string_view what);

/// --write: renews the text; --check: kBadAnswer, and a line that says how to renew it, when it is
/// stale. Throws UsageError when the document has no such markers or cannot be read or written.
int write_or_check(const MarkedDocument& document, const MarkedText& text);

}  // namespace foretrace
