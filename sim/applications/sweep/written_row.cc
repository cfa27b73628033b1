#include "sim/applications/sweep/written_row.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace foretrace::sweep {
namespace {

using Json = nlohmann::ordered_json;

bool has_string(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string();
}

bool has_number(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_number();
}

bool has_each_key_once(const Json& object) {
  std::set<std::string> keys;
  return std::ranges::all_of(object.items(),
                             [&](const auto& item) { return keys.insert(item.key()).second; });
}

bool is_decision(const Json& by) {
  return by.is_object() && has_string(by, "parameter") && has_number(by, "share") &&
         has_number(by, "spread");
}

bool is_region(const Json& region) {
  if (!region.is_object() || !has_each_key_once(region) || !has_string(region, "name"))
    return false;
  for (const char* key : {"us", "low_us", "high_us"}) {
    if (!has_number(region, key)) return false;
  }
  return region.contains("decided_by") && region["decided_by"].is_array() &&
         std::ranges::all_of(region["decided_by"], is_decision);
}

bool has_value(const Json& row, const Json& axis) {
  if (axis["kind"] == "machine") return true;
  const std::string kind = axis["kind"];
  if (!row.contains(kind) || !row[kind].is_object()) return false;
  return has_string(row[kind], axis["name"].get_ref<const std::string&>().c_str());
}

}  // namespace

bool is_written_row(const Json& row, const Json& axes) {
  if (!row.is_object() || !has_each_key_once(row) || !has_string(row, "machine")) return false;
  if (!std::ranges::all_of(axes, [&](const Json& axis) { return has_value(row, axis); })) {
    return false;
  }
  if (row.contains("error")) {
    const bool has_tries = row.contains(kTries);
    return row["error"].is_string() && !row.contains("regions") &&
           (!has_tries || (row[kTries].is_number_unsigned() && row[kTries] > 0));
  }
  return row.contains("regions") && row["regions"].is_array() && has_number(row, "total_us") &&
         std::ranges::all_of(row["regions"], is_region);
}

}  // namespace foretrace::sweep
