#include "models/kernels/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/captured/kernel_name.h"

namespace foretrace::kernels {
namespace {

constexpr std::array<const char*, 7> kColumns{"bytes", "flops",  "grid",    "block",
                                              "inner", "joined", "channels"};
/// Where each column's feature differs by less, it is the measured one.
constexpr double kSame = 1e-9;
/// Below it no clock tells a time; keeps a plain time above 0.
constexpr double kLeastSeconds = 1e-9;
/// Products of two of them are finite.
constexpr double kLargest = 1e30;
constexpr double kMostNeighbours = 4096;

double log2_of(double value) { return std::log2(std::max(1.0, value)); }

std::vector<std::string_view> split(std::string_view line, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = line.find(at);
    parts.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return parts;
    line.remove_prefix(end + 1);
  }
}

}  // namespace

KernelTable::KernelTable(const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  std::string_view rest = text;
  std::size_t number_of_line = 0;
  const auto refuse = [&](std::string_view what) {
    throw UsageError{fmt::format("{}:{}: error: {}", file.string(), number_of_line, what)};
  };
  const auto value = [&](std::string_view word) {
    double read = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), read);
    const bool is_whole = error == std::errc{} && end == word.data() + word.size();
    if (!is_whole || !std::isfinite(read) || read < 0)
      refuse(fmt::format("'{}' is no number", word));
    if (read > kLargest) refuse(fmt::format("'{}' is too large", word));
    return read;
  };
  std::vector<std::pair<std::string, std::pair<Asked, double>>> read;
  bool has_head = false;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    ++number_of_line;
    if (line.starts_with("#: ")) {
      const auto parts = split(line.substr(3), ' ');
      if (parts.size() != 2) refuse("'#: NAME NUMBER' is needed");
      numbers_[std::string{parts[0]}] = value(parts[1]);
    } else if (line.starts_with("#k ")) {
      const auto parts = split(line.substr(3), ' ');
      if (parts.size() != 5) refuse("'#k KERNEL BASE BYTES FLOPS THREADS' is needed");
      terms_[std::string{parts[0]}] = {value(parts[1]), value(parts[2]), value(parts[3]),
                                       value(parts[4])};
    } else if (!line.empty() && !line.starts_with('#') && !std::exchange(has_head, true)) {
      continue;  // the columns' names
    } else if (!line.empty() && !line.starts_with('#')) {
      const auto parts = split(line, ',');
      if (parts.size() != kColumns.size() + 2) refuse("nine columns are needed");
      const auto whole = [&](std::size_t i, double most = 0x1p53) {
        const double read_value = value(parts[i]);
        if (read_value > most) refuse(fmt::format("'{}' is too large a count", parts[i]));
        return static_cast<std::uint64_t>(read_value);
      };
      Asked asked{{std::string{parts[0]}, whole(3), static_cast<std::uint32_t>(whole(4, 1024)),
                   whole(5), whole(6), whole(7)},
                  value(parts[1]),
                  value(parts[2])};
      const double seconds = value(parts[8]) * 1e-6;
      if (seconds <= 0) refuse("a time is above 0");
      read.emplace_back(parts[0], std::pair{std::move(asked), seconds});
    }
  }
  for (const char* needed : {"hbm", "peak", "base_us", "memory", "compute", "nearest", "soft",
                             "joined_most", "thread_bytes"}) {
    if (!numbers_.contains(needed)) refuse(fmt::format("'#: {}' is missing", needed));
  }
  for (const char* divisor : {"hbm", "peak", "memory", "compute", "soft"}) {
    if (numbers_.at(divisor) < 1 / kLargest) refuse(fmt::format("'#: {}' is above 0", divisor));
  }
  if (const double n = numbers_.at("nearest"); n < 1 || n > kMostNeighbours || n != std::floor(n))
    refuse(fmt::format("'#: nearest' is a whole number from 1 to {}", kMostNeighbours));
  for (std::size_t i = 0; i < kFeatures; ++i) {
    const auto found = numbers_.find(fmt::format("weight_{}", kColumns[i]));
    weights_[i] = std::sqrt(found == numbers_.end() ? 1.0 : found->second);
  }
  for (const auto& one : read) {
    const auto& name = one.first;
    const auto& row = one.second;
    kernels_[name].push_back(rows_.size());
    families_[std::string{captured::family_of(name)}].push_back(rows_.size());
    const auto factor_of = [&](const Terms& terms) {
      return std::log(row.second / plain_seconds(row.first, terms, memory_rate(), peak()));
    };
    rows_.push_back({features(row.first), factor_of(terms_of(name)), factor_of(shared_terms())});
  }
}

KernelTable::Features KernelTable::features(const Asked& asked) const {
  const CapturedShape& shape = asked.shape;
  const double joined = std::min(static_cast<double>(shape.joined), number("joined_most"));
  const Features values{asked.bytes,
                        asked.flops,
                        static_cast<double>(shape.grid),
                        static_cast<double>(shape.block),
                        static_cast<double>(shape.inner),
                        joined,
                        static_cast<double>(shape.channels)};
  Features made{};
  for (std::size_t i = 0; i < kFeatures; ++i) made[i] = weights_[i] * log2_of(values[i]);
  return made;
}

Terms KernelTable::shared_terms() const {
  return {1, 1 / number("memory"), 1 / number("compute"), 0};
}

Terms KernelTable::terms_of(const std::string& name) const {
  const auto found = terms_.find(name);
  return found == terms_.end() ? shared_terms() : found->second;
}

double KernelTable::plain_seconds(const Asked& asked, const Terms& terms, double memory_rate,
                                  double peak) const {
  const double threads = static_cast<double>(asked.shape.grid) * asked.shape.block;
  const double moved = terms.bytes * asked.bytes + terms.threads * threads * number("thread_bytes");
  return std::max(kLeastSeconds, terms.base * number("base_us") * 1e-6 + moved / memory_rate +
                                     terms.flops * asked.flops / peak);
}

double KernelTable::seconds(const Asked& asked, const Estimate& estimate, double memory_rate,
                            double peak) const {
  return estimate.factor * plain_seconds(asked, estimate.terms, memory_rate, peak);
}

/// The mean of the nearest ones' logarithms, those nearer counting more.
Estimate KernelTable::nearest(const std::vector<std::size_t>& rows, const Asked& asked,
                              Basis basis) const {
  const Features here = features(asked);
  const bool is_family = basis == Basis::Family;
  std::vector<std::pair<double, double>> by_distance;
  by_distance.reserve(rows.size());
  for (const std::size_t row : rows) {
    double distance = 0;
    for (std::size_t i = 0; i < kFeatures; ++i) {
      const double apart = here[i] - rows_[row].at[i];
      distance += apart * apart;
    }
    by_distance.emplace_back(distance,
                             is_family ? rows_[row].log_of_every_kernel : rows_[row].log_factor);
  }
  const auto count =
      std::min<std::size_t>(by_distance.size(), static_cast<std::size_t>(number("nearest")));
  std::ranges::partial_sort(by_distance, by_distance.begin() + static_cast<std::ptrdiff_t>(count));
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double softened = by_distance[i].first + number("soft");
    const double weight = 1 / (softened * softened);
    sum += weight * by_distance[i].second;
    weights += weight;
  }
  const bool is_there = basis == Basis::Kernel && by_distance.front().first < kSame;
  return {std::exp(sum / weights), is_there ? Basis::Measured : basis,
          is_family ? shared_terms() : terms_of(asked.shape.name)};
}

Estimate KernelTable::estimate(const Asked& asked) const {
  if (const auto found = kernels_.find(asked.shape.name); found != kernels_.end()) {
    return nearest(found->second, asked, Basis::Kernel);
  }
  const auto family = families_.find(captured::family_of(asked.shape.name));
  if (family != families_.end()) return nearest(family->second, asked, Basis::Family);
  return {1, Basis::Plain, shared_terms()};
}

const KernelTable& shipped_kernels() {
  static const KernelTable table{data_directory() / "models/kernels/h100-torch-2.11.csv"};
  return table;
}

}  // namespace foretrace::kernels
