// nccl-tests' text output. A run begins with "# nThread ..."; its rows are the lines that begin
// with a number below the heading "# size count type ...". The '#' may be lost, as pages and mails
// lose it, and anything that a launcher puts before every line may stand before all of them.
#include "sim/applications/nccl_tests/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>
#include <type_traits>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/nccl_tests/log_facts.h"
#include "sim/applications/nccl_tests/log_lines.h"

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

/// "nThread 1 nGpus 8 ...", "Rank 0 Pid ...": the lines of a run whose '#' was lost.
bool is_comment_without_hash(const std::vector<Token>& words) {
  const auto is = [&](std::size_t i, std::string_view word) {
    return i < words.size() && words[i].text == word;
  };
  const bool rank = is(0, "Rank") && words.size() > 2 && is_digits(words[1].text);
  return (is(0, "nThread") && is(2, "nGpus")) || (is(0, "Using") && is(1, "devices")) || rank ||
         (is(0, "size") && is(1, "count")) || (is(0, "Avg") && is(1, "bus")) ||
         (is(0, "Collective") && is(1, "test")) || is(0, "Blocking");
}

/// What the heading tells of a table's rows.
struct Columns {
  std::size_t of_a_side = 4;  ///< time, algbw, busbw, errors; with -I four more
  std::size_t behind = 0;     ///< -S: date and time
};

class LogReader {
 public:
  LogReader(const std::string& file, const NcclTestsAssumed& assumed)
      : file_{file}, assumed_{assumed}, plan_{assumed.plan}, op_{assumed.op}, facts_{file} {}

  Checked<std::vector<NcclTestsSample>> read(std::string_view text) {
    const LinePrefixes prefixes{text};
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      ++line_;
      const std::string_view line = text.substr(0, end);
      read_line(line, prefixes.end_in(line));
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

  void read_line(std::string_view line, std::size_t from) {
    std::vector<Token> words = tokens_of(line, from);
    if (words.empty()) return;
    const bool has_hash = words.front().text.starts_with('#');
    if (has_hash && words.front().text.size() > 1) {
      words.front().text.remove_prefix(1);  // "#size"
    } else if (has_hash) {
      words.erase(words.begin());
    }
    facts_.take_release(release_in(line.substr(from)), line_);
    if (has_hash || is_comment_without_hash(words)) {
      if (!words.empty()) read_comment(line.substr(from), words);
    } else if (is_digits(words.front().text) && (in_table_ || is_row(words))) {
      in_table_ = true;
      read_row(line, words);
    } else {
      note_program(line);  // the command line, as job scripts echo it
      facts_.note_settings(line, line_, assumed_.plan);
    }
  }

  /// Of a table that was cut out without its heading.
  static bool is_row(const std::vector<Token>& words) {
    constexpr std::size_t kLeast = 11;  // size, count, type and two sides
    if (words.size() < kLeast || !is_digits(words[1].text)) return false;
    try {
      parse_nccl_tests_type(std::string{words[2].text});
    } catch (const UsageError&) {
      return false;
    }
    return true;
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

  void read_comment(std::string_view line, const std::vector<Token>& words) {
    if (line.find("concluded") == std::string_view::npos) note_program(line);
    const std::string_view first = words.front().text;
    if (first == "nThread") begin_run(line);
    if (first == "Blocking") {
      plan_.blocking = line.find("excludes barrier") != std::string_view::npos ? 3
                       : line.find("no barrier") != std::string_view::npos     ? 2
                                                                               : 1;
    }
    if (first == "Rank") add_rank(line, words);
    if (first == "size") begin_table(words);
    if (first == "Avg") {
      op_ = assumed_.op;  // the next run has a name of its own
      ended_ = true;
    }
  }

  void begin_run(std::string_view line) {
    plan_ = assumed_.plan;
    in_table_ = false;
    ended_ = false;
    said_bus_ = false;
    ranks_ = missing_ = 0;
    nodes_.clear();
    groups_.clear();
    gpu_.clear();
    columns_ = {};
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

  /// "Rank  0 Group  0 Pid 4711 on  node17 device  0 [0000:1b:00] NVIDIA H200"; in shortened logs
  /// also "Rank  0 .. Rank  7 on node17". Ranks whose lines are missing are counted.
  void add_rank(std::string_view line, const std::vector<Token>& words) {
    auto last = words.begin();
    for (auto at = words.begin(); at != words.end(); ++at) {
      if (at->text == "Rank") last = at;
    }
    const auto rank = words.size() > 1 ? number<std::uint32_t>(words[1].text) : std::nullopt;
    const auto end = last + 1 != words.end() ? number<std::uint32_t>((last + 1)->text) : rank;
    if (!rank || !end || *rank < ranks_ || *end < *rank || *end >= kMostRanks) {
      return error(words.front().column, fmt::format("the line of rank {} was expected", ranks_),
                   rank == 0u ? "programs that ran side by side, each for itself: built without "
                                "MPI=1, nccl-tests knows no other process"
                              : "lines of the output are lost");
    }
    missing_ += *rank - ranks_;
    ranks_ = *end + 1;
    const auto on = std::ranges::find(words, "on", &Token::text);
    if (on != words.end() && on + 1 != words.end()) nodes_.emplace((on + 1)->text);
    const auto group = std::ranges::find(words, "Group", &Token::text);
    if (group != words.end() && group + 1 != words.end()) groups_.emplace((group + 1)->text);
    const auto bus = line.find(']', line.find(" device "));
    if (gpu_.empty() && bus != std::string_view::npos) {
      const auto name = tokens_of(line, bus + 1);
      if (!name.empty()) {
        const char* const name_end = name.back().text.data() + name.back().text.size();
        gpu_.assign(name.front().text.data(), name_end);
      }
    }
  }

  void begin_table(const std::vector<Token>& words) {
    in_table_ = true;
    read_columns(words);
    if (groups_.size() > 1) {
      error(words.front().column,
            fmt::format("{} groups of ranks run side by side (NCCL_TESTS_SPLIT), which cannot be "
                        "predicted",
                        groups_.size()));
    }
    const std::uint32_t per_process = std::max(1u, plan_.gpus_per_process());
    if (ranks_ == 0) return;
    if (ranks_ % per_process != 0) {
      error(1, fmt::format("{} ranks are no processes with {} GPU(s) each", ranks_, per_process));
    }
    if (missing_ > 0) {
      print_error("note: {}: the lines of {} ranks are missing; the last one makes them {}\n",
                  file_, missing_, ranks_);
    }
    plan_.processes = std::max(1u, ranks_ / per_process);
    plan_.nodes = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(nodes_.size()));
    if (plan_.processes % plan_.nodes != 0) {
      print_error("note: {}: {} processes on {} hosts, not as many on each: taken for one node\n",
                  file_, plan_.processes, plan_.nodes);
      plan_.nodes = 1;
    }
  }

  void read_columns(const std::vector<Token>& words) {
    columns_ = {};
    const auto is_time = [](const Token& word) {
      return word.text == "time" || word.text == "cputime";
    };
    const auto first = std::ranges::find_if(words, is_time);
    if (first == words.end()) return;
    if (first->text == "cputime") {
      error(first->column, "with -C 1 the table is of CPU time, which cannot be predicted");
    }
    const auto second = std::find_if(first + 1, words.end(), is_time);
    if (second != words.end()) {
      columns_.of_a_side = std::max<std::size_t>(4, static_cast<std::size_t>(second - first));
    }
    columns_.behind = words.back().text == "timestamp" ? 2 : 0;
  }

  /// size count type [redop] [root] time algbw busbw wrong time algbw busbw wrong
  void read_row(std::string_view line, std::vector<Token> tokens) {
    const int end = static_cast<int>(line.size()) + 1;
    const auto bytes = number<std::uint64_t>(tokens[0].text);
    if (!bytes) return error(tokens[0].column, "this size is too large");
    if (tokens.size() < 2 || !is_digits(tokens[1].text)) {
      return error(tokens.size() < 2 ? end : tokens[1].column,
                   "the count of elements was expected");
    }
    if (tokens.size() < 3) return error(end, "the data type was expected");
    NcclTestsSample sample{plan_, *bytes, 0, file_, gpu_, {nodes_.begin(), nodes_.end()}};
    sample.plan.type = tokens[2].text;
    std::size_t next = 3;
    if (next < tokens.size() &&
        tokens[next].text.find_first_of("0123456789") == std::string::npos) {
      if (tokens[next].text != "none") sample.plan.redop = tokens[next].text;
      ++next;
    }
    if (tokens.size() >= next + 2 * columns_.of_a_side + columns_.behind) {
      tokens.resize(tokens.size() - columns_.behind);
    }
    // As many figures out of place as in place; a root makes the number odd.
    const std::size_t figures = tokens.size() - next;
    if (figures % 2 == 1) {
      const auto root = number<int>(tokens[next].text);
      if (!root) return error(tokens[next].column, "the root was expected");
      if (*root >= 0) sample.plan.root = static_cast<std::uint32_t>(*root);
      ++next;
    }
    if (figures < 2 * columns_.of_a_side) {
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
    if (bandwidths_fit(plan, algorithm, bus)) return;
    if (std::exchange(said_bus_, true)) return;
    error(
        tokens[time + 2].column,
        fmt::format("{} of {} ranks would have a bus bandwidth of {:.2f} here", info(plan.op).name,
                    plan.ranks(), algorithm * bus_factor(plan.op, plan.ranks())),
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
    facts_.apply(sample.plan);
    samples_.push_back(std::move(sample));
  }

  static constexpr std::uint32_t kMostRanks = 1'000'000;

  const std::string& file_;
  const NcclTestsAssumed& assumed_;
  int line_ = 0;
  NcclTestsPlan plan_;
  std::optional<NcclTestsOp> op_;
  LogFacts facts_;
  Columns columns_;
  bool in_table_ = false;
  bool asked_for_op_ = false;
  bool ended_ = false;  ///< the run's last line was read
  bool said_bus_ = false;
  bool said_op_ = false;
  std::uint32_t ranks_ = 0;
  std::uint32_t missing_ = 0;  ///< of them, those without a line
  std::set<std::string> nodes_, groups_;
  std::string gpu_;
  std::vector<NcclTestsSample> samples_;
  Diagnostics problems_;
};

}  // namespace

Checked<std::vector<NcclTestsSample>> read_nccl_tests_log(std::string_view text,
                                                          const std::string& file,
                                                          const NcclTestsAssumed& assumed) {
  return LogReader{file, assumed}.read(without_colours(text));
}

}  // namespace foretrace
