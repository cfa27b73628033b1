// CSV files of nccl-tests results: many machines and runs in one table.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "models/nccl/rules/types.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/words.h"
#include "sim/applications/nccl_tests/log.h"

namespace foretrace {
namespace {

/// A scenario has a line for each, and its text is at most 16 MiB.
constexpr std::size_t kMostRows = 50'000;

struct Cell {
  std::string text;
  int column;  ///< 1-based
};

/// As RFC 4180 says, but a cell ends with its line.
std::vector<Cell> cells_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<Cell> cells{{"", 1}};
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        cells.back().text += line[++i];
      } else {
        quoted = !quoted;
      }
    } else if (line[i] == ',' && !quoted) {
      cells.push_back({"", static_cast<int>(i) + 2});
    } else {
      cells.back().text += line[i];
    }
  }
  return cells;
}

class CsvReader {
 public:
  CsvReader(const std::string& file, const NcclTestsAssumed& assumed)
      : file_{file}, assumed_{assumed} {}

  Checked<std::vector<NcclTestsSample>> read(std::string_view text) {
    while (!text.empty() && is_readable_) {
      const auto end = std::min(text.find('\n'), text.size());
      ++line_;
      std::string_view line = text.substr(0, end);
      if (line_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // UTF-8's mark
      cells_ = cells_of(line);
      if (!is_comment(line)) {
        if (heading_.empty()) {
          read_heading();
        } else if (samples_.size() == kMostRows) {
          error(1, fmt::format("more than {} rows that count", kMostRows),
                "--where COLUMN=TEXT chooses some, and so do smaller files");
          is_readable_ = false;
        } else {
          read_row();
        }
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (samples_.empty() && problems_.empty()) {
      line_ = 0;
      error(0, "no row in it that counts");
    }
    if (!problems_.empty()) return tl::unexpected{std::move(problems_)};
    return std::move(samples_);
  }

 private:
  using Names = std::vector<std::string>;

  void error(int column, std::string message, std::string hint = {}) {
    Diagnostic& problem = problems_.emplace_back();
    problem.at = {file_, line_, column};
    problem.message = std::move(message);
    problem.hint = std::move(hint);
  }

  /// Or an empty line.
  static bool is_comment(std::string_view line) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    return begin == std::string_view::npos || line[begin] == '#';
  }

  void read_heading() {
    for (const Cell& cell : cells_) heading_.push_back(cell.text);
    std::set<std::string_view> names;
    for (const Cell& cell : cells_) {
      if (cell.text.empty() || names.insert(cell.text).second) continue;
      error(cell.column, fmt::format("a second column '{}'", shortened(cell.text)));
      is_readable_ = false;
    }
    for (const Names& needed : {Names{"op", "collective"}, Names{"size_bytes", "bytes"},
                                Names{"ranks", "gpus"}, Names{"time_us"}}) {
      if (std::ranges::any_of(needed, [&](const auto& name) { return has_column(name); })) continue;
      if (needed.front() == "op" && assumed_.op) continue;
      error(1, fmt::format("a column '{}' is needed", needed.back()),
            suggest(needed.back(), heading_));
      is_readable_ = false;
    }
    for (const auto& [name, text] : assumed_.where) {
      if (has_column(name)) continue;
      error(1, fmt::format("--where: there is no column '{}'", name), suggest(name, heading_));
      is_readable_ = false;
    }
  }

  bool has_column(const std::string& name) const {
    return std::ranges::find(heading_, name) != heading_.end();
  }
  /// The row's cell under the first of `names` that is a column; null when empty or not there.
  const Cell* cell(const Names& names) const {
    for (const std::string& name : names) {
      const auto at = std::ranges::find(heading_, name) - heading_.begin();
      const auto index = static_cast<std::size_t>(at);
      if (index < cells_.size() && index < heading_.size() && !cells_[index].text.empty()) {
        return &cells_[index];
      }
    }
    return nullptr;
  }

  template <class Number>
  Number number(const Cell& cell) {
    Number value{};
    const char* end = cell.text.data() + cell.text.size();
    const auto [rest, code] = std::from_chars(cell.text.data(), end, value);
    if (code == std::errc{} && rest == end && value > 0 &&
        value < std::numeric_limits<Number>::max())
      return value;
    error(cell.column, fmt::format("'{}' is not a positive number", cell.text));
    return Number{1};
  }
  template <class Number>
  Number number_or(const Names& names, Number otherwise) {
    const Cell* const at = cell(names);
    return at == nullptr ? otherwise : number<Number>(*at);
  }

  bool counts() const {
    return std::ranges::all_of(assumed_.where, [&](const auto& wanted) {
      const Cell* const at = cell({wanted.first});
      if (at == nullptr) return false;
      const auto is_number = [](const std::string& text) {
        return !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
      };
      if (is_number(at->text) && is_number(wanted.second)) return at->text == wanted.second;
      return at->text.find(wanted.second) != std::string::npos;
    });
  }

  void read_row() {
    if (cells_.size() != heading_.size()) {
      return error(cells_.back().column, fmt::format("{} cells where the heading has {}",
                                                     cells_.size(), heading_.size()));
    }
    if (!counts()) return;
    NcclTestsSample sample{assumed_.plan, 0, 0, file_, {}};
    if (const Cell* const gpu = cell({"gpu"})) sample.gpu = gpu->text;
    const Cell* const bytes = cell({"size_bytes", "bytes"});
    if (bytes == nullptr) return error(1, "the row has no size");
    sample.bytes = number<std::uint64_t>(*bytes);
    read_op(sample.plan);
    read_version(sample.plan);
    read_layout(sample.plan);
    read_type(sample.plan);
    sample.time_us = time(sample);
    samples_.push_back(std::move(sample));
  }

  void read_op(NcclTestsPlan& plan) {
    const Cell* const at = cell({"op", "collective"});
    if (at == nullptr && !assumed_.op) return error(1, "the row has no operation", "--op-name");
    try {
      plan.op = at == nullptr ? *assumed_.op : parse_nccl_tests_op(at->text);
    } catch (const UsageError& refused) {
      error(at->column, refused.what());
    }
  }

  /// What is no version, or one whose rules are not known, is taken for the machine's.
  void read_version(NcclTestsPlan& plan) {
    const Cell* const at = cell({"nccl", "nccl_version"});
    if (at == nullptr || !plan.nccl.empty()) return;
    try {
      plan.nccl = nccl::text_of(nccl::parse_version(at->text));
    } catch (const UsageError&) {
      if (std::exchange(has_noted_, true)) return;
      print_error("note: {}, line {}: the rules of NCCL '{}' are not known; the machine's choose\n",
                  file_, line_, at->text);
    }
  }

  void read_layout(NcclTestsPlan& plan) {
    const Cell* const count = cell({"ranks", "gpus"});
    if (count == nullptr) return error(1, "the row has no number of ranks");
    const auto ranks = number<std::uint32_t>(*count);
    plan.nodes = number_or<std::uint32_t>({"nodes"}, 1);
    const Cell* const launches = cell({"graph_launches"});
    const bool graph = launches != nullptr && launches->text != "0";
    plan.graph_launches = graph ? number<std::uint32_t>(*launches) : 0;
    const bool single = !note_words({"single process", "one process"}).empty();
    const std::string threads = flag_in_note("-t"), gpus = flag_in_note("-g");
    const auto told = [&](const Names& names, const std::string& in_note, std::uint32_t otherwise) {
      if (cell(names) != nullptr || in_note.empty()) return number_or(names, otherwise);
      return number<std::uint32_t>({in_note, cell({"note"})->column});
    };
    plan.threads = told({"threads", "nthreads"}, threads, assumed_.plan.threads);
    const bool is_told = assumed_.plan.gpus > 1 || plan.threads > 1;
    plan.gpus = told({"gpus_per_thread"}, gpus, single && !is_told ? ranks : assumed_.plan.gpus);
    if (const Cell* const each = cell({"gpus_per_process"})) {
      const auto of_process = number<std::uint32_t>(*each);
      if (of_process % plan.threads == 0) plan.gpus = of_process / plan.threads;
    }
    const std::uint32_t of_process = std::max(1u, plan.gpus_per_process());
    plan.processes = number_or<std::uint32_t>({"processes"}, std::max(1u, ranks / of_process));
    if (std::uint64_t{plan.processes} * of_process != ranks) {
      error(count->column, fmt::format("{} ranks are not {} process(es) with {} GPU(s) each", ranks,
                                       plan.processes, of_process));
    }
  }

  /// The first of `words` that stands in the note.
  std::string note_words(const Names& words) const {
    const Cell* const note = cell({"note"});
    for (const std::string& word : words) {
      if (note != nullptr && note->text.find(word) != std::string::npos) return word;
    }
    return {};
  }
  /// "4" of "nccl-tests -t 4 -d half", as notes quote the command.
  std::string flag_in_note(const std::string& flag) const {
    const Cell* const note = cell({"note"});
    if (note == nullptr) return {};
    const auto at = (" " + note->text).find(" " + flag + " ");
    if (at == std::string::npos) return {};
    const std::string rest = note->text.substr(at + flag.size() + 1);
    return rest.substr(0, rest.find_first_of(" ,;()"));
  }

  void read_type(NcclTestsPlan& plan) {
    const Cell* const type = cell({"type", "datatype"});
    const std::string in_note = flag_in_note("-d");
    const Cell* const redop = cell({"redop"});
    try {
      if (type != nullptr) {
        plan.type = parse_nccl_tests_type(type->text).name;
      } else if (!in_note.empty()) {
        plan.type = parse_nccl_tests_type(in_note).name;
      }
      if (redop != nullptr && redop->text != "none") {
        plan.redop = parse_nccl_tests_redop(redop->text);
      }
    } catch (const UsageError& refused) {
      error(type != nullptr ? type->column : 1, refused.what());
    }
  }

  double time(const NcclTestsSample& sample) {
    if (const Cell* const at = cell({"time_us"})) return number<double>(*at);
    if (const Cell* const at = cell({"algbw_gbps", "algbw_GBps"})) {
      return static_cast<double>(sample.bytes) * 1e-3 / number<double>(*at);
    }
    if (const Cell* const at = cell({"busbw_gbps", "busbw_GBps"})) {
      return static_cast<double>(sample.bytes) * 1e-3 *
             bus_factor(sample.plan.op, sample.plan.ranks()) / number<double>(*at);
    }
    error(1, "the row has neither a time nor a bandwidth");
    return 1;
  }

  const std::string& file_;
  const NcclTestsAssumed& assumed_;
  int line_ = 0;
  bool is_readable_ = true;
  std::vector<std::string> heading_;
  std::vector<Cell> cells_;
  std::vector<NcclTestsSample> samples_;
  Diagnostics problems_;
  bool has_noted_ = false;  ///< a release of NCCL that is not known
};

}  // namespace

Checked<std::vector<NcclTestsSample>> read_nccl_tests_csv(std::string_view text,
                                                          const std::string& file,
                                                          const NcclTestsAssumed& assumed) {
  return CsvReader{file, assumed}.read(text);
}

}  // namespace foretrace
