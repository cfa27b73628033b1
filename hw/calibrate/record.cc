#include "hw/calibrate/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/timeline/write_file.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/values/json_depth.h"

namespace foretrace::hw {

namespace {

using Json = nlohmann::json;

bool is_step(const Json& step) {
  if (!step.is_object()) return false;
  const auto is_text = [&](const char* key) {
    return !step.contains(key) || step[key].is_string();
  };
  return is_text("state") && is_text("reason") &&
         (!step.contains("seconds") || step["seconds"].is_number());
}

bool is_record(const Json& document) {
  return document.is_object() && document.contains("steps") && document["steps"].is_object() &&
         std::ranges::all_of(document["steps"], is_step);
}

constexpr const char* kCalibrating = ".calibrating";  // while a start writes

}  // namespace

CalibrationRecord::CalibrationRecord(std::filesystem::path runs)
    : file_{std::move(runs) / "calibration.json"} {
  make_directory(file_.parent_path());
  own_.emplace(file_.parent_path(), kCalibrating);
  if (!std::filesystem::exists(file_)) return;
  const std::string text = read_text_file(file_);
  refuse_deep_json(text, file_.string());
  const Json document = Json::parse(text, nullptr, false);
  if (!is_record(document)) {
    throw UsageError{
        fmt::format("{}: not what foretrace-hw calibrate writes\n  hint: remove it, "
                    "or choose another directory",
                    file_.string())};
  }
  for (const auto& [where, step] : document.at("steps").items()) {
    steps_[where] = {step.value("state", ""), step.value("reason", ""), step.value("seconds", 0.0)};
  }
}

StepRecord CalibrationRecord::of(const std::string& where) const {
  const auto found = steps_.find(where);
  return found == steps_.end() ? StepRecord{} : found->second;
}

void CalibrationRecord::set(const std::string& where, StepRecord record) {
  steps_[where] = std::move(record);
  nlohmann::json steps = nlohmann::json::object();
  for (const auto& [name, step] : steps_) {
    steps[name] = {{"state", step.state}, {"seconds", step.seconds}};
    if (!step.reason.empty()) steps[name]["reason"] = step.reason;
  }
  const nlohmann::json document = {{"schema_version", 1}, {"steps", steps}};
  using ErrorHandler = nlohmann::json::error_handler_t;
  write_file(file_, document.dump(1, ' ', false, ErrorHandler::replace) + "\n", Over::Anything);
}

}  // namespace foretrace::hw
