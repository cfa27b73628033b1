#include "sim/applications/accept/nvbandwidth.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "scenarios/base/text/words.h"
#include "scenarios/base/values/json_depth.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostColumns = 1024;  // GPUs that one run of nvbandwidth sees
constexpr std::size_t kMostMatrices = 1000;
constexpr std::size_t kDeepest = 16;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; words.size() <= kMostColumns + 1;) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

bool is_whole(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

/// "395.08"; of N/A nothing.
std::optional<std::optional<double>> cell(std::string_view word) {
  if (word == "N/A") return std::optional<double>{};
  double value = 0;
  const auto [rest, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code != std::errc{} || rest != word.data() + word.size()) return std::nullopt;
  if (!std::isfinite(value) || value < 0) return std::nullopt;
  return std::optional{value};
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_{file} {}

  Checked<Nvbandwidth> text(std::string_view text) {
    while (!text.empty() && problems_.size() < kMostProblems) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return result();
  }

  Checked<Nvbandwidth> json(std::string_view text) {
    if (json_depth(text) > kDeepest) {
      error(0, fmt::format("more than {} brackets in one another", kDeepest));
      return result();
    }
    try {
      const Json document = Json::parse(text);
      for (const Json& test : document.at("nvbandwidth").at("testcases")) read_test(test);
    } catch (const Json::parse_error& wrong) {
      const auto at = static_cast<long>(std::min(wrong.byte, text.size()));
      line_ = static_cast<int>(1 + std::count(text.begin(), text.begin() + at, '\n'));
      error(0, fmt::format("not JSON: {}", shortened(json_reason(wrong.what()), 200)));
    } catch (const Json::exception& wrong) {
      error(0, fmt::format("not what nvbandwidth -j writes: {}",
                           shortened(json_reason(wrong.what()), 200)));
    }
    return result();
  }

 private:
  static constexpr std::size_t kMostProblems = 20;

  void error(int column, std::string message, std::string hint = {}) {
    Diagnostic& problem = problems_.emplace_back();
    problem.at = {file_, line_, column};
    problem.message = std::move(message);
    problem.hint = std::move(hint);
  }

  Checked<Nvbandwidth> result() {
    end_table();
    if (problems_.empty() && found_.matrices.empty()) {
      line_ = 0;
      error(0, "no matrix of nvbandwidth in it",
            "nvbandwidth prints one below each 'Running TEST.'");
    }
    if (!problems_.empty()) return tl::unexpected{std::move(problems_)};
    return std::move(found_);
  }

  bool in_table() const { return expected_ > 0; }

  /// Behind its last row. Of GPUs by GPUs all rows must be there.
  void end_table() {
    const std::size_t columns = std::exchange(expected_, 0);
    if (columns == 0) return;
    const std::size_t rows = found_.matrices.back().gbps.size();
    if (rows > 0 && (rows == columns || !is_square_)) return;
    error(1, fmt::format("{} ends after {} of its rows", shortened(test_), rows),
          "a run that was stopped is no result");
  }

  void read_line(std::string_view line) {
    const auto words = words_of(line);
    if (words.empty()) {
      // Between heading and rows none is empty; behind the rows one is.
      return end_table();
    }
    if (words[0] == "Running" && words.size() == 2) {
      end_table();
      test_ = shortened(words[1].substr(0, words[1].find_last_not_of('.') + 1), 100);
      test_line_ = line_;
      heading_ = false;
      return;
    }
    if (words[0] == "Waived:" || words[0] == "ERROR:") {
      if (!test_.empty()) found_.not_run.push_back(test_);
      return;
    }
    read_gpu(line, words);
    if (test_.empty()) return;
    if (line.find("(GB/s)") != std::string_view::npos &&
        line.find("(row)") != std::string_view::npos) {
      heading_ = true;
      is_square_ = line.find("GPU(row)") != std::string_view::npos;
      return;
    }
    if (heading_ && std::ranges::all_of(words, is_whole)) return begin_table(words);
    if (in_table()) read_row(line, words);
  }

  /// "Device 0: NVIDIA H100 80GB HBM3 (00000000:19:00)"
  void read_gpu(std::string_view line, const std::vector<std::string_view>& words) {
    const auto colon = line.find(": ");
    if (!found_.gpu.empty() || words[0] != "Device" || colon == std::string_view::npos) return;
    const std::string_view rest = line.substr(colon + 2);
    found_.gpu = shortened(rest.substr(0, rest.rfind(" (")), 100);
  }

  void begin_table(const std::vector<std::string_view>& words) {
    heading_ = false;
    if (words.size() > kMostColumns || found_.matrices.size() >= kMostMatrices) {
      return error(1, fmt::format("more than {} columns or {} tests", kMostColumns, kMostMatrices));
    }
    expected_ = words.size();
    found_.matrices.push_back({test_, test_line_, {}});
  }

  void read_row(std::string_view line, const std::vector<std::string_view>& words) {
    const bool begins_with_digit = words[0][0] >= '0' && words[0][0] <= '9';
    if (!begins_with_digit) return end_table();  // "SUM ..."
    auto& rows = found_.matrices.back().gbps;
    if (rows.size() >= kMostColumns)
      return error(1, fmt::format("more than {} rows", kMostColumns));
    if (!is_whole(words[0]) || words.size() != expected_ + 1) {
      return error(1,
                   fmt::format("a row of {} columns has {} words, and this line {}", expected_,
                               expected_ + 1, words.size()),
                   "a line of the output is lost or was wrapped");
    }
    std::vector<std::optional<double>> row;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto value = cell(words[i]);
      if (!value) {
        const auto column = static_cast<int>(words[i].data() - line.data()) + 1;
        return error(column, fmt::format("'{}' is not a bandwidth", shortened(words[i])));
      }
      row.push_back(*value);
    }
    rows.push_back(std::move(row));
  }

  void read_test(const Json& test) {
    const std::string name = shortened(test.at("name").get<std::string>(), 100);
    const std::string description = test.value("bandwidth_description", std::string{"(GB/s)"});
    if (!test.contains("bandwidth_matrix") || test.value("status", std::string{}) == "Waived") {
      found_.not_run.push_back(name);
      return;
    }
    if (description.find("(GB/s)") == std::string::npos) return;
    if (found_.matrices.size() >= kMostMatrices) throw_too_many();
    NvbandwidthMatrix matrix{name, 0, {}};
    const Json& rows = test.at("bandwidth_matrix");
    const auto is_row = [&](const Json& row) {
      return row.is_array() && row.size() == rows.front().size();
    };
    const bool is_square = name.starts_with("device_to_device");
    if (!rows.is_array() || rows.empty() || !std::ranges::all_of(rows, is_row) ||
        (is_square && rows.size() != rows.front().size())) {
      return error(0, fmt::format("{}: 'bandwidth_matrix' is not rows of equal length", name),
                   "a run that was stopped is no result");
    }
    for (const Json& row : rows) {
      if (row.size() > kMostColumns || matrix.gbps.size() >= kMostColumns) throw_too_many();
      auto& values = matrix.gbps.emplace_back();
      for (const Json& one : row) {
        const std::string word = one.is_string() ? one.get<std::string>() : one.dump();
        const auto value = cell(word);
        if (!value) {
          error(0, fmt::format("{}: '{}' is not a bandwidth", name, shortened(word)));
          return;
        }
        values.push_back(*value);
      }
    }
    found_.matrices.push_back(std::move(matrix));
  }

  [[noreturn]] static void throw_too_many() {
    throw Json::other_error::create(
        500, fmt::format("more than {} columns, rows or {} tests", kMostColumns, kMostMatrices),
        nullptr);
  }

  const std::string& file_;
  int line_ = 0;
  std::string test_;
  int test_line_ = 0;
  bool heading_ = false, is_square_ = false;
  std::size_t expected_ = 0;
  Nvbandwidth found_;
  Diagnostics problems_;
};

}  // namespace

bool is_nvbandwidth(std::string_view text) {
  return text.find("\"nvbandwidth\"") != std::string_view::npos ||
         text.find("nvbandwidth Version") != std::string_view::npos ||
         text.find("(row)") != std::string_view::npos;
}

Checked<Nvbandwidth> read_nvbandwidth(std::string_view text, const std::string& file) {
  Reader reader{file};
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  return is_json ? reader.json(text) : reader.text(text);
}

}  // namespace foretrace
