// Communicators and process groups by expression: `split: {color: process / 2}`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "scenarios/read/reader.h"

namespace foretrace {
namespace {

/// An expression of `process`, which means something here, too.
Expr read_of_process(Reader& reader, const YamlNode& node, std::int64_t low) {
  std::vector<std::uint32_t> processes(reader.program.processes);
  std::iota(processes.begin(), processes.end(), 0U);
  const VariableDomain domain = std::exchange(reader.domain, {std::move(processes), {}});
  const bool in_operations = std::exchange(reader.in_operations, true);
  Expr expr = read_expr(reader, node, kNumber, low, std::int64_t{1} << 31);
  reader.domain = domain;
  reader.in_operations = in_operations;
  return expr;
}

struct Place {
  std::int64_t color, key;
  std::uint32_t process;
  auto operator<=>(const Place&) const = default;
};

/// Says what is wrong with the parts.
void check_parts(Reader& reader, const YamlNode& node, const std::vector<Place>& places) {
  std::map<std::int64_t, std::size_t> sizes;
  for (const Place& place : places) ++sizes[place.color];
  std::int64_t next = 0;
  for (const auto& [color, size] : sizes) {
    if (color != next++) {
      reader.problems.error(
          node, fmt::format("no process has the color {}, and one has {}", next - 1, color),
          "colors are 0, 1, ... without a gap; -1 is none");
      return;
    }
    if (size != sizes.begin()->second) {
      reader.problems.error(
          node, fmt::format("color 0 has {} processes, and color {} has {}", sizes.begin()->second,
                            color, size),
          "the parts of a split are alike in size; others are communicators of their own");
      return;
    }
  }
}

}  // namespace

Split read_split(Reader& reader, const YamlNode& node) {
  MapReader map{node, "a split", reader.problems};
  const std::size_t errors = reader.problems.error_count();
  Split split;
  Expr key;
  if (const YamlNode* color = map.required("color")) {
    split.color = read_of_process(reader, *color, -1);
  }
  if (const YamlNode* order = map.optional("key")) {
    key = read_of_process(reader, *order, -(std::int64_t{1} << 31));
  }
  map.finish();
  std::vector<Place> places;
  for (std::uint32_t process = 0; process < reader.program.processes; ++process) {
    const std::array<std::int64_t, 1> variables{process};
    const std::int64_t color = split.color.eval(variables);
    if (color >= 0) places.push_back({color, key.eval(variables), process});
  }
  std::ranges::sort(places);
  if (places.empty()) reader.problems.error(node, "no process is in any part of this");
  check_parts(reader, node, places);
  const bool is_right = reader.problems.error_count() == errors;
  for (const Place& place : places) {
    const auto part = is_right ? static_cast<std::size_t>(place.color) : 0;
    if (split.parts.size() <= part) split.parts.resize(part + 1);
    split.parts[part].push_back(place.process);
  }
  if (split.parts.empty()) split.parts.resize(1);
  return split;
}

Expr device_index(const Reader& reader, const CommRef& comm) {
  if (!reader.splits.contains(comm.first.value)) return comm.index;
  const std::uint32_t devices = reader.program.devices;
  if (devices == 1) return Expr{0};
  return combine(Expr::Op::Mod, comm.index, Expr{devices}).value_or(Expr{0});
}

}  // namespace foretrace
