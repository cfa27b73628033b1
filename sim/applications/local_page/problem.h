// What is wrong with a question, for the page: beside which input, and where in the config.json.
#pragma once

#include <string>
#include <string_view>

namespace foretrace::local_page {

struct Problem {
  std::string field;  ///< "machine", "config", ...; empty: the question as a whole
  std::string message, hint;
  int line = 0, column = 0;  ///< of the config.json, or of the body; 0: unknown
};

/// Of the first error that a command printed. `config` is the text of its config.json, if any.
Problem problem_of(std::string_view printed, std::string_view config);

/// {"error": {...}}
std::string json_of(const Problem& problem);

/// 1-based, of the byte at `offset`.
void set_place(Problem& problem, std::string_view text, std::size_t offset);

}  // namespace foretrace::local_page
