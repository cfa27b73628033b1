// The shape of timeline.json: rows of numbers (spans, flows) go straight into the timeline while
// nlohmann's SAX parser runs; everything else, which is small, becomes a document. Internal to the
// reader.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "reports/timeline/timeline.h"

namespace foretrace::timeline_json {

/// Why the content is not a timeline we can read; who opened the file adds its name.
class Unreadable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Spans and flows of `text` into `timeline`; the rest is returned. Throws Unreadable.
nlohmann::json parse(std::string_view text, Timeline& timeline);

/// Throws Unreadable unless it is ours.
void check_version(const nlohmann::json& document);

}  // namespace foretrace::timeline_json
