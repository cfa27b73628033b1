#include "sim/applications/nccl_tests/op.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

constexpr std::array<NcclTestsOpInfo, 9> kOps{{
    {"all_reduce", "nccl_all_reduce", true, false, false},
    {"all_gather", "nccl_all_gather", false, false, true},
    {"reduce_scatter", "nccl_reduce_scatter", true, false, true},
    {"broadcast", "nccl_broadcast", false, true, false},
    {"reduce", "nccl_reduce", true, true, false},
    {"alltoall", "nccl_all_to_all", false, false, true},
    {"sendrecv", "", false, false, false},
    {"gather", "nccl_gather", false, true, true},
    {"scatter", "nccl_scatter", false, true, true},
}};

constexpr std::array<NcclTestsType, 10> kTypes{{
    {"float", "float32", {4}},
    {"half", "float16", {2}},
    {"bfloat16", "bfloat16", {2}},
    {"double", "float64", {8}},
    {"int8", "int8", {1}},
    {"uint8", "int8", {1}},
    {"int32", "int32", {4}},
    {"uint32", "int32", {4}},
    {"int64", "int64", {8}},
    {"uint64", "int64", {8}},
}};

constexpr std::array<std::string_view, 5> kRedOps{"sum", "prod", "min", "max", "avg"};

constexpr std::size_t kMostSizes = 10'000;

[[noreturn]] void unknown(std::string_view what, const std::string& text,
                          const std::vector<std::string>& known) {
  const std::string hint = suggest(text, known);
  throw UsageError{
      fmt::format("unknown {} '{}'{}{}", what, text, hint.empty() ? "" : "\n  hint: ", hint)};
}

/// "AllReduce_perf" and "all_reduce" alike.
std::string bare(std::string text) {
  if (text.ends_with("_perf")) text.resize(text.size() - 5);
  std::erase(text, '_');
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

}  // namespace

const NcclTestsOpInfo& info(NcclTestsOp op) { return kOps.at(static_cast<std::size_t>(op)); }

NcclTestsOp parse_nccl_tests_op(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    names.emplace_back(kOps.at(i).name);
    if (bare(text) == bare(names.back())) return static_cast<NcclTestsOp>(i);
  }
  unknown("operation", text, names);
}

const NcclTestsType& parse_nccl_tests_type(const std::string& text) {
  std::vector<std::string> names;
  for (const NcclTestsType& type : kTypes) {
    if (text == type.name || text == type.scenario) return type;
    names.emplace_back(type.name);
  }
  unknown("data type", text, names);
}

std::string parse_nccl_tests_redop(const std::string& text) {
  if (std::ranges::find(kRedOps, text) != kRedOps.end()) return text;
  unknown("reduction", text, {kRedOps.begin(), kRedOps.end()});
}

std::uint64_t parse_nccl_tests_size(const std::string& text, const std::string& flag) {
  double value{};
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  std::string unit{rest, end};
  for (const std::string_view ending : {"iB", "B"}) {
    if (unit.ends_with(ending)) unit.resize(unit.size() - ending.size());
  }
  std::ranges::transform(unit, unit.begin(),
                         [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; });
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  const double bytes = shift < 0 ? -1 : value * static_cast<double>(std::uint64_t{1} << shift);
  const bool is_whole = !unit.empty() || bytes == std::floor(bytes);
  if (code != std::errc{} || !is_whole || !(bytes >= 0 && bytes < 1e18)) {
    throw UsageError{
        fmt::format("{}: '{}' is not a size\n  hint: write 512, 64K, 1.5M or 4G (K, M "
                    "and G are powers of two)",
                    flag, text)};
  }
  return static_cast<std::uint64_t>(bytes);
}

NcclTestsSize nccl_tests_size(NcclTestsOp op, std::uint64_t requested, const NcclTestsType& type,
                              std::uint32_t ranks) {
  const std::uint64_t element = type.element.count;
  std::uint64_t count = requested / element;
  if (!info(op).is_total) return {count * element, count};
  const std::uint64_t whole = 16 / element;  // a part is a multiple of 16 bytes
  count = count / ranks / whole * whole;
  return {count * ranks * element, count};
}

std::vector<std::uint64_t> sizes_in(const NcclTestsRange& range) {
  if (range.min_bytes > range.max_bytes) {
    throw UsageError{fmt::format("-b {} is larger than -e {}", range.min_bytes, range.max_bytes)};
  }
  if (range.step_factor == 1) {
    throw UsageError{"-f 1 never gets to the next size\n  hint: -f 2 doubles; -i adds bytes"};
  }
  if (range.step_factor == 0 && range.step_bytes == 0) {
    throw UsageError{"-i 0 never gets to the next size"};
  }
  if (range.min_bytes == 0) throw UsageError{"-b 0: a size must be positive"};
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = range.min_bytes; size <= range.max_bytes;
       size = range.step_factor > 0 ? size * range.step_factor : size + range.step_bytes) {
    if (sizes.size() == kMostSizes) {
      throw UsageError{fmt::format("more than {} sizes from -b {} to -e {}\n  hint: -f 2 doubles",
                                   kMostSizes, range.min_bytes, range.max_bytes)};
    }
    sizes.push_back(size);
    // The next one would not fit into 64 bits.
    if (range.step_factor > 0 &&
        size > std::numeric_limits<std::uint64_t>::max() / range.step_factor) {
      break;
    }
  }
  return sizes;
}

double algorithm_gbps(std::uint64_t bytes, double time_us) {
  return static_cast<double>(bytes) * 1e-3 / time_us;
}

double bus_factor(NcclTestsOp op, std::uint32_t ranks) {
  const double n = ranks;
  if (op == NcclTestsOp::AllReduce) return 2 * (n - 1) / n;
  return info(op).is_total ? (n - 1) / n : 1;
}

}  // namespace foretrace
