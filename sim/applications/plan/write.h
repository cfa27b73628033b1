// A plan's answers as a table, CSV, JSON, a page: of one machine, or also of changed ones.
#pragma once

#include <string>
#include <vector>

#include "sim/applications/plan/search.h"

namespace foretrace::plan {

/// For people: a table, what would help each row, and what the figures are.
std::string text_of(const Question& question, const std::vector<Answer>& answers);
/// A line for each row; shares and efficiencies as fractions.
std::string csv_of(const Question& question, const std::vector<Answer>& answers);
std::string json_of(const Question& question, const std::vector<Answer>& answers);
/// One self-contained HTML file, with curves over the number of GPUs where there are several.
std::string page_of(const Question& question, const std::vector<Answer>& answers);

/// "llama3-70b on 512 GPUs: 12.3 s a step ..." of the best row of each number of GPUs.
std::string headline_of(const Question& question, const std::vector<Answer>& answers);
/// What the figures are counted by: the peak, the rule, what was searched and left out.
std::string meaning_of(const Question& question, const std::vector<Answer>& answers);

struct Column {
  std::string name;  ///< "tokens/s/GPU"
  bool is_number = true;
};
/// The table of text and page.
std::vector<Column> columns_of(const Question& question);
std::vector<std::string> cells_of(const Question& question, const Answer& answer, const Row& row,
                                  std::size_t number);
/// "the host: half ... saves 21 %"
std::string remedy_of(const Row& row);
/// "without communication: 19 % less time; without ..."
std::string waits_of(const Row& row);
/// "21 % of the GPUs' time rests on assumed parameters: ..." (record/rests_on.h), a line for each
/// note; empty where there is nothing to say.
std::vector<std::string> rests_of(const Answer& answer, const Row& row);

/// Rows are numbered from 1 over all answers.
template <class Visit>
void for_each_row(const std::vector<Answer>& answers, const Visit& visit) {
  std::size_t number = 0;
  for (const Answer& answer : answers) {
    for (const Row& row : answer.best) visit(answer, row, ++number);
  }
}

}  // namespace foretrace::plan
