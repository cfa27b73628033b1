#include "sim/cli/judge/marked_document.h"

#include <fmt/format.h>

#include "reports/page/marked_text.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace {

void add_marked_document(CLI::App& command, MarkedDocument& document, std::string_view what) {
  CLI::Option* write =
      command
          .add_option("--write", document.write,
                      fmt::format("Renew {} in a document, where its comments <!-- begin: NAME --> "
                                  "and <!-- end: NAME --> stand",
                                  what))
          ->option_text("FILE");
  command
      .add_option("--check", document.check,
                  fmt::format("Exit 1 when {} in the document is stale", what))
      ->option_text("FILE")
      ->excludes(write);
}

int write_or_check(const MarkedDocument& document, const MarkedText& text) {
  const bool checks = !document.check.empty();
  const std::filesystem::path& file = checks ? document.check : document.write;
  const std::string before = read_text_file(file);
  const std::string after =
      with_marked_text(before, text.name,
                       text.text(file.has_parent_path() ? file.parent_path() : "."), file.string());
  if (!checks) {
    write_file(file, after, Over::Anything);
    return kDone;
  }
  if (after == before) return kDone;
  print_error("{}: {} is stale\n  hint: renew it with '{} --write {}'\n", file.string(), text.what,
              text.command, file.string());
  return kBadAnswer;
}

}  // namespace foretrace
