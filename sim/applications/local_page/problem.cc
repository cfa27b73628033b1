#include "sim/applications/local_page/problem.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

namespace foretrace::local_page {
namespace {

constexpr std::string_view kError = "error: ", kHint = "hint: ", kConfig = "config.json: ";

/// What of a message belongs to which input.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kFields{{
    {kConfig, "config"},
    {"unknown model", "model"},
    {"--gpus", "gpus"},
    {"no layout of", "gpus"},
    {"--global-batch", "global_batch"},
    {"--sequence", "sequence"},
    {"--precision", "precision"},
    {"--with", "with"},
    {"--keep", "keep"},
    {"--cost", "cost_per_gpu_hour"},
    {"machine", "machine"},
}};

std::string_view line_at(std::string_view text, std::size_t begin) {
  return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
}

int number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  int number = 0;
  std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

/// Where the file says it, as the message has it: a line and a column, or a key in quotes.
void find_place(Problem& problem, std::string_view config) {
  problem.line = number_after(problem.message, "at line ");
  problem.column = number_after(problem.message, "column ");
  if (problem.line > 0) return;
  const std::size_t begin = problem.message.find('\'') + 1;
  const std::size_t end = problem.message.find('\'', begin);
  if (begin == 0 || end == std::string::npos) return;
  const std::size_t at = config.find('"' + problem.message.substr(begin, end - begin) + '"');
  if (at != std::string_view::npos) set_place(problem, config, at);
}

}  // namespace

void set_place(Problem& problem, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  problem.line = 1 + static_cast<int>(std::ranges::count(before, '\n'));
  const std::size_t line = before.rfind('\n');
  problem.column =
      static_cast<int>(line == std::string_view::npos ? before.size() + 1 : before.size() - line);
}

Problem problem_of(std::string_view printed, std::string_view config) {
  Problem problem;
  const std::size_t error = printed.find(kError);
  if (error == std::string_view::npos) {
    problem.message = printed.empty() ? "it ended without an answer" : line_at(printed, 0);
    return problem;
  }
  problem.message = line_at(printed, error + kError.size());
  const std::size_t next = std::min(printed.find(kError, error + 1), printed.size());
  const std::size_t hint = printed.substr(0, next).find(kHint, error);
  if (hint != std::string_view::npos) problem.hint = line_at(printed, hint + kHint.size());
  for (const auto& [mark, field] : kFields) {
    if (problem.message.find(mark) == std::string::npos) continue;
    problem.field = field;
    break;
  }
  if (problem.field == "config") {
    const std::size_t at = problem.message.find(kConfig);
    problem.message.erase(0, at + kConfig.size());
    find_place(problem, config);
  }
  return problem;
}

std::string json_of(const Problem& problem) {
  nlohmann::ordered_json error{{"field", problem.field}, {"message", problem.message}};
  if (!problem.hint.empty()) error["hint"] = problem.hint;
  if (problem.line > 0) {
    error["line"] = problem.line;
    error["column"] = problem.column;
  }
  return nlohmann::ordered_json{{"error", error}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace foretrace::local_page
