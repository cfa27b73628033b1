// Which reader a file of results needs, by what is in it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/made_from.h"
#include "scenarios/base/text/text_file.h"
#include "sim/applications/nccl_tests/log.h"

namespace foretrace {
namespace {

enum class Form : std::uint8_t { Log, Csv, Json };

/// The first line that is neither empty nor a comment.
std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string_view::npos && line[begin] != '#') return line.substr(begin);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

bool has_cell(std::string_view line, std::string_view name) {
  for (auto at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const auto is_edge = [&](std::size_t i) {
      return i >= line.size() || line[i] == ',' || line[i] == '"' || line[i] == '\r';
    };
    if ((at == 0 || is_edge(at - 1)) && is_edge(at + name.size())) return true;
  }
  return false;
}

Form form_of(std::string_view text, const std::filesystem::path& file) {
  if (file.extension() == ".csv") return Form::Csv;
  const std::string_view first = first_line(text);
  if (first.starts_with('{')) return Form::Json;
  const bool sizes = has_cell(first, "bytes") || has_cell(first, "size_bytes");
  return sizes && (has_cell(first, "gpus") || has_cell(first, "ranks")) ? Form::Csv : Form::Log;
}

}  // namespace

std::vector<NcclTestsSample> read_nccl_tests(const std::vector<std::filesystem::path>& files,
                                             const NcclTestsAssumed& assumed) {
  std::vector<NcclTestsSample> all;
  bool has_csv = false;
  std::map<std::string, std::filesystem::path> known;  // by what is in them
  for (const std::filesystem::path& file : files) {
    const bool is_input = file == "-";
    const std::string text = is_input ? read_standard_input() : read_text_file(file);
    const std::string name = is_input ? "standard input" : file.string();
    const auto [same, is_new] = known.try_emplace(digest_of(text), name);
    if (!is_new) {
      throw UsageError{fmt::format("{} and {} are the same results\n  hint: each counts once",
                                   same->second.string(), name)};
    }
    const Form form = form_of(text, file);
    has_csv = has_csv || form == Form::Csv;
    auto read = form == Form::Csv    ? read_nccl_tests_csv(text, name, assumed)
                : form == Form::Json ? read_nccl_tests_json(text, name, assumed)
                                     : read_nccl_tests_log(text, name, assumed);
    if (!read) throw UsageError{render(read.error(), text)};
    all.insert(all.end(), read->begin(), read->end());
  }
  if (!assumed.where.empty() && !has_csv) {
    throw UsageError{"--where takes rows of .csv files, and none is given"};
  }
  return all;
}

}  // namespace foretrace
