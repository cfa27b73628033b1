#include "hw/calibrate/record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "reports/timeline/write_file.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"

namespace foretrace::hw {

CalibrationRecord::CalibrationRecord(std::filesystem::path runs)
    : file_{std::move(runs) / "calibration.json"} {
  if (!std::filesystem::exists(file_)) return;
  const auto document = nlohmann::json::parse(read_text_file(file_), nullptr, false);
  if (!document.is_object() || !document.contains("steps")) {
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
  std::filesystem::create_directories(file_.parent_path());
  using ErrorHandler = nlohmann::json::error_handler_t;
  write_file(file_, document.dump(1, ' ', false, ErrorHandler::replace) + "\n", Over::Anything);
}

}  // namespace foretrace::hw
