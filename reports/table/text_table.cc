#include "reports/table/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

std::string escape_bars(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;  // names from files
  }
  return escaped;
}

/// Code points, not bytes: what a terminal shows of the Latin and Greek that names hold.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t to, TextTable::Align align) {
  const std::string blanks(to - width(text), ' ');
  return align == TextTable::Align::Left ? text + blanks : blanks + text;
}

void append_csv(std::string& out, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i != 0) out += ',';
    out += csv_cell(cells[i]);
  }
  out += '\n';
}

/// "-12.5", "+1.6 %", "-4.000 us": a sign, a number, and a unit at most.
bool is_signed_quantity(std::string_view text) {
  text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || text.starts_with('-')) return false;
  return std::all_of(end, text.data() + text.size(), [](char c) {
    return c == ' ' || c == '%' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

/// Whether a spreadsheet would compute the cell, and run what it says: a name of someone else's.
bool begins_as_formula(std::string_view text) {
  if (text.size() < 2) return text == "=" || text == "@";  // a lone dash says that there is none
  if (text[0] == '+' || text[0] == '-') return !is_signed_quantity(text);
  return text[0] == '=' || text[0] == '@' || text[0] == '\t' || text[0] == '\r';
}

}  // namespace

std::string format_signed_percent(double fraction) {
  const double percent = fraction * 100;
  if (std::abs(percent) < 0.05) return "+0.0 %";  // never "-0.0 %"
  return fmt::format("{:+.{}f} %", percent, std::abs(percent) >= 999.95 ? 0 : 1);
}

std::string format_percent(double fraction) {
  const std::string text = format_signed_percent(fraction);
  return text.starts_with('+') ? text.substr(1) : text;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value == std::floor(value) ? 0 : 1, units[unit]);
}

std::string divided_name(const std::string& name, std::uint64_t per) {
  return per == 1 ? name : fmt::format("{} / {}", name, per);
}

std::string format_count(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string csv_cell(const std::string& text) {
  const bool is_formula = begins_as_formula(text);
  if (!is_formula && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = is_formula ? "\"'" : "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

void TextTable::column(std::string heading, Align align) {
  headings_.push_back(std::move(heading));
  aligns_.push_back(align);
}

void TextTable::row(std::vector<std::string> cells) {
  FORETRACE_CHECK(cells.size() == headings_.size(), "a row has one cell per column");
  rows_.push_back(std::move(cells));
}

std::string TextTable::markdown() const {
  std::vector<std::vector<std::string>> lines{headings_};
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<std::size_t> widths(headings_.size(), 2);
  for (auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i] = escape_bars(line[i]);
      widths[i] = std::max(widths[i], width(line[i]));
    }
  }
  std::string out;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      out += "| " + padded(lines[l][i], widths[i], aligns_[i]) + ' ';
    }
    out += "|\n";
    if (l != 0) continue;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      out += '|' + std::string(widths[i] + 1, '-') + (aligns_[i] == Align::Right ? ':' : '-');
    }
    out += "|\n";
  }
  return out;
}

std::string TextTable::document() const {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += fmt::format(" {} |", escape_bars(cell));
    text += '\n';
    return text;
  };
  std::string out = line(headings_);
  out += '|';
  for (const Align align : aligns_) out += align == Align::Right ? " ---: |" : " --- |";
  out += '\n';
  for (const auto& row : rows_) out += line(row);
  return out;
}

std::string TextTable::csv() const {
  std::string out;
  append_csv(out, headings_);
  for (const auto& row : rows_) append_csv(out, row);
  return out;
}

}  // namespace foretrace
