#include "sim/applications/nccl_tests/log_lines.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace foretrace {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// The end of the run of such characters that begins at `from`.
std::size_t end_of_run(std::string_view text, std::size_t from, bool (*is_in)(char)) {
  while (from < text.size() && is_in(text[from])) ++from;
  return from;
}

bool is_part_of_a_date(std::string_view word) {
  static constexpr std::array<std::string_view, 21> kWords{
      "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr",
      "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "AM",  "PM"};
  return std::ranges::find(kWords, word) != kWords.end();
}

/// Where `line` goes on behind what is like `shape`.
std::optional<std::size_t> match(std::string_view shape, std::string_view line) {
  std::size_t s = 0, at = 0;
  while (s < shape.size()) {
    const auto kind = is_digit(shape[s])    ? is_digit
                      : is_letter(shape[s]) ? is_letter
                      : is_blank(shape[s])  ? is_blank
                                            : nullptr;
    if (kind == nullptr) {
      if (at >= line.size() || line[at] != shape[s]) return {};
      ++s, ++at;
      continue;
    }
    const std::size_t shape_end = end_of_run(shape, s, kind);
    const std::size_t end = end_of_run(line, at, kind);
    if (kind == is_digit && end == at) return {};
    if (kind == is_letter) {
      const std::string_view wanted = shape.substr(s, shape_end - s);
      const std::string_view there = line.substr(at, end - at);
      const bool dates = is_part_of_a_date(wanted) && is_part_of_a_date(there);
      if (wanted != there && !dates) return {};
    }
    s = shape_end;
    at = end;
  }
  return at;
}

/// Where a line that every run has begins, its '#' included.
std::optional<std::size_t> begin_of_known(std::string_view line) {
  std::size_t word = line.find("nThread ");
  if (word == std::string_view::npos || line.find("nGpus") == std::string_view::npos) {
    word = line.find("Using devices");
  }
  if (word == std::string_view::npos && line.find(" count ") != std::string_view::npos &&
      line.find(" type ") != std::string_view::npos) {
    word = line.find("size ");
  }
  if (word == std::string_view::npos) return {};
  std::size_t begin = word;
  while (begin > 0 && is_blank(line[begin - 1])) --begin;
  return begin > 0 && line[begin - 1] == '#' ? begin - 1 : begin;
}

}  // namespace

std::string without_colours(std::string_view text) {
  std::string plain{text};
  constexpr char kEscape = '\x1b';
  for (std::size_t at = plain.find(kEscape); at != std::string::npos;
       at = plain.find(kEscape, at)) {
    std::size_t end = at + 1;
    if (end < plain.size() && plain[end] == '[') {
      ++end;
      while (end < plain.size() && (is_digit(plain[end]) || plain[end] == ';')) ++end;
      if (end < plain.size() && is_letter(plain[end])) ++end;
    }
    std::fill(plain.begin() + static_cast<std::ptrdiff_t>(at),
              plain.begin() + static_cast<std::ptrdiff_t>(end), ' ');
  }
  return plain;
}

LinePrefixes::LinePrefixes(std::string_view text) {
  constexpr std::size_t kMost = 64;  // of one file
  while (!text.empty() && shapes_.size() < kMost) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto begin = begin_of_known(line);
    if (!begin || *begin == 0) continue;
    const std::string_view prefix = line.substr(0, *begin);
    const bool is_known = std::ranges::any_of(
        shapes_, [&](const std::string& shape) { return match(shape, prefix) == prefix.size(); });
    if (!is_known) shapes_.emplace_back(prefix);
  }
}

std::size_t LinePrefixes::end_in(std::string_view line) const {
  std::size_t longest = 0;
  for (const std::string& shape : shapes_) {
    longest = std::max(longest, match(shape, line).value_or(0));
  }
  return longest;
}

}  // namespace foretrace
