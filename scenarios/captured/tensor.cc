#include <map>
#include <string>
#include <string_view>

#include "scenarios/captured/record.h"
#include "scenarios/captured/record_limits.h"

namespace foretrace::captured {
namespace {

/// At most kMostElements: more is in no memory.
std::int64_t times(std::int64_t elements, std::int64_t size) {
  if (size == 0) return 0;
  return elements > kMostElements / size ? kMostElements : elements * size;
}

const std::map<std::string, std::int64_t, std::less<>>& known_types() {
  static const std::map<std::string, std::int64_t, std::less<>> kSizes{
      {"bf16", 2}, {"f16", 2}, {"i16", 2}, {"u16", 2},    {"f32", 4},   {"i32", 4},
      {"u32", 4},  {"f64", 8}, {"i64", 8}, {"u64", 8},    {"c64", 8},   {"c128", 16},
      {"bool", 1}, {"i8", 1},  {"u8", 1},  {"f8e4m3", 1}, {"f8e5m2", 1}};
  return kSizes;
}

}  // namespace

std::int64_t Tensor::elements() const {
  std::int64_t all = 1;
  for (const std::int64_t size : shape) all = times(all, size);
  return all;
}

std::int64_t Tensor::different_elements() const {
  std::int64_t all = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i < strides.size() && strides[i] == 0) continue;
    all = times(all, shape[i]);
  }
  return all;
}

bool is_known_type(std::string_view type) { return known_types().contains(type); }

std::int64_t bytes_of_type(const std::string& type) {
  constexpr std::int64_t kOfUnknown = 4;
  const auto found = known_types().find(type);
  return found == known_types().end() ? kOfUnknown : found->second;
}

}  // namespace foretrace::captured
