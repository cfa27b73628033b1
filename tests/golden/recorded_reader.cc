// Reads what recorded_text.cc writes.
#include <fmt/format.h>

#include <charconv>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "tests/golden/recorded.h"
#include "tests/golden/repeats.h"

namespace foretrace::test {
namespace {

/// Reads a line from its begin on.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : line_{line}, rest_{line} {}

  bool done() const { return rest_.empty(); }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail();
  }
  template <typename Number>
  Number number() {
    Number value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) fail();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  /// "7899.125": 7899125.
  std::int64_t picoseconds() {
    std::int64_t ps = number<std::int64_t>() * 1000;
    if (!take(".")) return ps;
    for (std::int64_t digit = 100; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9';
         digit /= 10) {
      ps += digit * (rest_[0] - '0');
      rest_.remove_prefix(1);
    }
    return ps;
  }
  /// Up to the last `mark`, which is taken, too.
  std::string up_to_last(std::string_view mark) {
    const auto place = rest_.rfind(mark);
    if (place == std::string_view::npos) fail();
    const std::string text{rest_.substr(0, place)};
    rest_.remove_prefix(place + mark.size());
    return text;
  }
  [[noreturn]] void fail() const {
    throw std::runtime_error{fmt::format("not a golden's line: {}", line_)};
  }

 private:
  std::string_view line_;
  std::string_view rest_;
};

class Reader {
 public:
  void line(const std::string& text) {
    Cursor cursor{text};
    if (!text.starts_with("    ")) end_repeat();
    if (cursor.take("lane ")) {
      if (has_spans_) end_lane();
      names_.push_back(text.substr(5));
    } else if (cursor.take("  x")) {
      times_and_period(cursor, repeat_);
    } else if (cursor.take("    ") || cursor.take("  ")) {
      add_line(cursor, repeat_);
    } else if (cursor.take("outcome ")) {
      recorded_.outcome = text.substr(8);
    } else if (cursor.take("band ")) {
      const std::string key = cursor.up_to_last(": ");
      std::vector<Recorded::Band> bands;
      do {
        const auto low = cursor.number<double>();
        cursor.expect(" to ");
        bands.emplace_back(low, cursor.number<double>());
      } while (cursor.take(", "));
      for (const std::string& one : processes_apart(key)) recorded_.bands[one] = bands;
    } else {
      const std::string key = cursor.up_to_last(": ");
      const auto ns = cursor.number<std::int64_t>();
      for (const std::string& one : processes_apart(key)) recorded_.region_ns[one] = ns;
    }
  }

  Recorded end() {
    end_repeat();
    end_lane();
    return std::move(recorded_);
  }

 private:
  static std::vector<std::string> processes_apart(const std::string& key) {
    if (!key.starts_with("region ")) return {key};
    const auto space = key.rfind(' ') + 1;
    std::vector<std::string> keys;
    std::istringstream numbers{key.substr(space)};
    for (std::string number; std::getline(numbers, number, ',');) {
      keys.push_back(key.substr(0, space) + number);
    }
    return keys;
  }

  static void times_and_period(Cursor& cursor, Repeat& repeat) {
    repeat.times = cursor.number<std::uint64_t>();
    if (repeat.times < 2) cursor.fail();
    cursor.expect(" +");
    repeat.period_ps = cursor.picoseconds();
  }

  /// Takes "MARK1..31" and `end` off the name: the first, and the stride; of "MARK5" 5 and 0.
  static void take_range(std::string& name, std::string_view mark, std::string_view end,
                         std::uint64_t times, std::uint64_t& first, std::uint64_t& stride) {
    const auto place = name.rfind(mark);
    if (place == std::string::npos || !name.ends_with(end)) return;
    const std::string range = name.substr(place + mark.size());
    if (range.find_first_not_of("0123456789.]") != std::string::npos) return;  // a label's words
    Cursor cursor{range};
    first = cursor.number<std::uint64_t>();
    if (cursor.take("..")) {
      if (times < 2) cursor.fail();
      stride = (cursor.number<std::uint64_t>() - first) / (times - 1);
    }
    name.resize(place);
  }

  /// Adds "015 gemm[1..31] part 2: 35294 43193 x31 +7899.2" to `repeat`, whose times a line in a
  /// block does not say.
  static void add_line(Cursor& cursor, Repeat& repeat) {
    Repeat::Line line;
    line.op = cursor.up_to_last(": ");
    line.begin_ps = cursor.picoseconds();
    cursor.expect(" ");
    line.end_ps = cursor.picoseconds();
    if (repeat.times == 1 && cursor.take(" x")) times_and_period(cursor, repeat);
    if (!cursor.done()) cursor.fail();

    take_range(line.op, " part ", "", repeat.times, line.part, line.part_stride);
    take_range(line.op, "[", "]", repeat.times, line.instance, line.instance_stride);
    repeat.body.push_back(std::move(line));
  }

  void end_repeat() {
    expand(repeat_, spans_);
    has_spans_ = has_spans_ || !repeat_.body.empty();
    repeat_ = {};
  }

  void end_lane() {
    for (const std::string& name : names_) recorded_.lanes[name] = spans_;
    names_.clear();
    spans_.clear();
    has_spans_ = false;
  }

  Recorded recorded_;
  std::vector<std::string> names_;  ///< of the lanes whose spans are being read
  Recorded::Spans spans_;
  Repeat repeat_;
  bool has_spans_ = false;
};

}  // namespace

Recorded from_text(const std::string& text) {
  Reader reader;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) reader.line(line);
  }
  return reader.end();
}

}  // namespace foretrace::test
