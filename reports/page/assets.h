// The report's template, styles and script, compiled in: assets/*.
#pragma once

#include <string_view>

namespace foretrace::assets {

extern const std::string_view colours_css;
extern const std::string_view colours_dark_css;
extern const std::string_view curves_css;
extern const std::string_view details_js;
extern const std::string_view lanes_css;
extern const std::string_view parts_css;
extern const std::string_view parts_js;
extern const std::string_view report_css;
extern const std::string_view report_js;
extern const std::string_view report_mustache;
extern const std::string_view sections_mustache;
extern const std::string_view run_mustache;

}  // namespace foretrace::assets
