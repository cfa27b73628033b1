// nccl-tests' text output. A run begins with "# nThread ..."; its rows are the lines that begin
// with a number below the heading "# size count type ...".
#include "sim/nccl_tests/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>
#include <type_traits>
#include <utility>

#include "scenarios/text/errors.h"
#include "scenarios/text/print.h"
#include "scenarios/text/text_file.h"

namespace foretrace {
namespace {

struct Token {
  std::string_view text;
  int column;  ///< 1-based
};

std::vector<Token> tokens_of(std::string_view line, std::size_t from = 0) {
  std::vector<Token> tokens;
  while (true) {
    const auto begin = line.find_first_not_of(" \t\r", from);
    if (begin == std::string_view::npos) return tokens;
    const auto end = std::min(line.find_first_of(" \t\r", begin), line.size());
    tokens.push_back({line.substr(begin, end - begin), static_cast<int>(begin) + 1});
    from = end;
  }
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) return std::nullopt;  // "nan" and "inf" are read, too
  }
  return value;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// The number behind `key` in "nThread 1 nGpus 1 ... warmup iters: 5 iters: 20".
std::optional<std::uint32_t> value_of(std::string_view line, std::string_view key) {
  for (auto at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    if (at > 0 && line[at - 1] != ' ') continue;
    const auto tokens = tokens_of(line, at + key.size());
    if (!tokens.empty()) return number<std::uint32_t>(tokens.front().text);
  }
  return std::nullopt;
}

class LogReader {
 public:
  LogReader(const std::string& file, const NcclTestsAssumed& assumed)
      : file_{file}, assumed_{assumed}, plan_{assumed.plan}, op_{assumed.op} {}

  Checked<std::vector<NcclTestsSample>> read(std::string_view text) {
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      ++line_;
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (samples_.empty() && problems_.empty()) {
      line_ = 0;
      error(0, "no line of an nccl-tests table in it");
    }
    if (!problems_.empty()) return tl::unexpected{std::move(problems_)};
    if (in_table_ && !ended_) {
      print_error("note: {}: its last run has no end; the {} line(s) before are taken\n", file_,
                  samples_.size());
    }
    return std::move(samples_);
  }

 private:
  void error(int column, std::string message, std::string hint = {}) {
    Diagnostic& problem = problems_.emplace_back();
    problem.at = {file_, line_, column};
    problem.message = std::move(message);
    problem.hint = std::move(hint);
  }

  void read_line(std::string_view line) {
    const std::size_t from = after_tag(line);
    const auto tokens = tokens_of(line, from);
    if (tokens.empty()) return;
    if (tokens.front().text.starts_with('#')) {
      read_comment(line.substr(from), tokens);
    } else if (in_table_ && is_digits(tokens.front().text)) {
      read_row(line, tokens);
    } else {
      note_program(line);  // the command line, as job scripts echo it
    }
  }

  /// mpirun --tag-output puts "[1,0]<stdout>:" before each line.
  static std::size_t after_tag(std::string_view line) {
    const auto end = line.find("<stdout>:");
    return line.starts_with('[') && end != std::string_view::npos ? end + 9 : 0;
  }

  void note_program(std::string_view line) {
    const auto end = line.find("_perf");
    if (end == std::string_view::npos) return;
    const auto begin = line.find_last_of(" \t/:", end);
    const auto first = begin == std::string_view::npos ? 0 : begin + 1;
    try {
      op_ = parse_nccl_tests_op(std::string{line.substr(first, end - first)});
    } catch (const UsageError&) {  // some other program
      return;
    }
    if (!assumed_.op || *assumed_.op == *op_ || std::exchange(said_op_, true)) return;
    print_error("note: {}:{}: it says {}, so --op-name {} is not used\n", file_, line_,
                info(*op_).name, info(*assumed_.op).name);
  }

  void read_comment(std::string_view line, const std::vector<Token>& tokens) {
    if (line.find("concluded") == std::string_view::npos) note_program(line);
    const bool has_second = tokens.size() > 1;
    const auto second = has_second ? tokens[1].text : std::string_view{};
    if (second == "nThread") begin_run(line);
    if (second == "Blocking") {
      plan_.blocking = line.find("excludes barrier") != std::string_view::npos ? 3
                       : line.find("no barrier") != std::string_view::npos     ? 2
                                                                               : 1;
    }
    if (second == "Rank") add_rank(tokens);
    if (second == "size" || tokens.front().text == "#size") begin_table();
    if (second == "Avg") {
      op_ = assumed_.op;  // the next run has a name of its own
      ended_ = true;
    }
  }

  void begin_run(std::string_view line) {
    plan_ = assumed_.plan;
    in_table_ = false;
    ended_ = false;
    said_bus_ = false;
    ranks_ = 0;
    nodes_.clear();
    plan_.threads = value_of(line, "nThread").value_or(1);
    plan_.gpus = value_of(line, "nGpus").value_or(1);
    plan_.warmup = value_of(line, "warmup iters:").value_or(plan_.warmup);
    // "warmup iters:" and "agg iters:" come around it.
    const auto warmup = line.find("warmup iters:");
    const auto rest = warmup == std::string_view::npos ? line : line.substr(warmup + 13);
    plan_.iterations = value_of(rest, "iters:").value_or(plan_.iterations);
    plan_.graph_launches = value_of(line, "graph:").value_or(0);
    plan_.blocking = 0;
    if (value_of(line, "agg iters:").value_or(1) > 1) {
      error(1, "operations aggregated with -m cannot be predicted");
    }
  }

  /// "#  Rank  0 Group  0 Pid 4711 on  node17 device  0 [0000:1b:00] NVIDIA H200"
  void add_rank(const std::vector<Token>& tokens) {
    const auto rank = tokens.size() > 2 ? number<std::uint32_t>(tokens[2].text) : std::nullopt;
    if (rank != ranks_) {
      error(tokens[0].column, fmt::format("the line of rank {} was expected", ranks_),
            "lines of the output are lost");
    }
    ++ranks_;
    const auto on = std::ranges::find(tokens, "on", &Token::text);
    if (on != tokens.end() && on + 1 != tokens.end()) nodes_.emplace((on + 1)->text);
  }

  void begin_table() {
    in_table_ = true;
    const std::uint32_t per_process = std::max(1u, plan_.gpus_per_process());
    if (ranks_ == 0) return;
    if (ranks_ % per_process != 0) {
      error(1, fmt::format("{} ranks are no processes with {} GPU(s) each", ranks_, per_process));
    }
    plan_.processes = std::max(1u, ranks_ / per_process);
    plan_.nodes = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(nodes_.size()));
    if (plan_.processes % plan_.nodes != 0) plan_.nodes = 1;
  }

  /// size count type [redop] [root] time algbw busbw wrong time algbw busbw wrong
  void read_row(std::string_view line, const std::vector<Token>& tokens) {
    const int end = static_cast<int>(line.size()) + 1;
    const auto bytes = number<std::uint64_t>(tokens[0].text);
    if (!bytes) return error(tokens[0].column, "this size is too large");
    if (tokens.size() < 2 || !is_digits(tokens[1].text)) {
      return error(tokens.size() < 2 ? end : tokens[1].column,
                   "the count of elements was expected");
    }
    if (tokens.size() < 3) return error(end, "the data type was expected");
    NcclTestsSample sample{plan_, *bytes, 0, file_};
    sample.plan.type = tokens[2].text;
    std::size_t next = 3;
    if (next < tokens.size() &&
        tokens[next].text.find_first_of("0123456789") == std::string::npos) {
      if (tokens[next].text != "none") sample.plan.redop = tokens[next].text;
      ++next;
    }
    // 4 columns of figures each, out of place and in place; a root makes the number odd.
    const std::size_t figures = tokens.size() - next;
    if (figures % 2 == 1) {
      const auto root = number<int>(tokens[next].text);
      if (!root) return error(tokens[next].column, "the root was expected");
      if (*root >= 0) sample.plan.root = static_cast<std::uint32_t>(*root);
      ++next;
    }
    if (figures < 8) {
      return error(end, fmt::format("the line ends after {} columns", tokens.size()),
                   "out of place and in place have time, algbw, busbw and errors each");
    }
    for (std::size_t i = next; i < next + 3; ++i) {
      if (number<double>(tokens[i].text)) continue;
      return error(tokens[i].column, fmt::format("'{}' is not a number", tokens[i].text));
    }
    sample.time_us = *number<double>(tokens[next].text);
    if (number<double>(tokens[next + 3].text).value_or(0) >= 1) {
      return error(tokens[next + 3].column, "the data was wrong, so the time means nothing");
    }
    take(std::move(sample), tokens, next);
  }

  /// Bus over algorithm bandwidth tells operation and ranks once more.
  void check_bus_bandwidth(const NcclTestsPlan& plan, const std::vector<Token>& tokens,
                           std::size_t time) {
    const double algorithm = *number<double>(tokens[time + 1].text);
    const double bus = *number<double>(tokens[time + 2].text);
    const double expected = algorithm * bus_factor(plan.op, plan.ranks());
    constexpr double kRounding = 0.016;  // GB/s: two digits are printed of both
    if (plan.ranks() < 2 || std::abs(bus - expected) <= kRounding + 1e-3 * expected) return;
    if (std::exchange(said_bus_, true)) return;
    error(tokens[time + 2].column,
          fmt::format("{} of {} ranks would have a bus bandwidth of {:.2f} here",
                      info(plan.op).name, plan.ranks(), expected),
          "another operation, or lines of the output are lost");
  }

  void take(NcclTestsSample sample, const std::vector<Token>& tokens, std::size_t time) {
    if (!op_) {
      if (std::exchange(asked_for_op_, true)) return;  // once is enough
      return error(tokens[0].column, "the file does not tell which operation this is",
                   "--op-name all_reduce");
    }
    sample.plan.op = *op_;
    if (sample.time_us <= 0) return error(tokens[time].column, "a time must be positive");
    try {
      sample.plan.type = parse_nccl_tests_type(sample.plan.type).name;
    } catch (const UsageError& refused) {
      return error(tokens[2].column, refused.what());
    }
    check_bus_bandwidth(sample.plan, tokens, time);
    samples_.push_back(std::move(sample));
  }

  const std::string& file_;
  const NcclTestsAssumed& assumed_;
  int line_ = 0;
  NcclTestsPlan plan_;
  std::optional<NcclTestsOp> op_;
  bool in_table_ = false;
  bool asked_for_op_ = false;
  bool ended_ = false;  ///< the run's last line was read
  bool said_bus_ = false;
  bool said_op_ = false;
  std::uint32_t ranks_ = 0;
  std::set<std::string> nodes_;
  std::vector<NcclTestsSample> samples_;
  Diagnostics problems_;
};

}  // namespace

Checked<std::vector<NcclTestsSample>> read_nccl_tests_log(std::string_view text,
                                                          const std::string& file,
                                                          const NcclTestsAssumed& assumed) {
  return LogReader{file, assumed}.read(text);
}

std::vector<NcclTestsSample> read_nccl_tests(const std::vector<std::filesystem::path>& files,
                                             const NcclTestsAssumed& assumed) {
  std::vector<NcclTestsSample> all;
  for (const std::filesystem::path& file : files) {
    const std::string text = read_text_file(file);
    auto read = file.extension() == ".csv" ? read_nccl_tests_csv(text, file.string(), assumed)
                                           : read_nccl_tests_log(text, file.string(), assumed);
    if (!read) throw UsageError{render(read.error(), text)};
    all.insert(all.end(), read->begin(), read->end());
  }
  return all;
}

}  // namespace foretrace
