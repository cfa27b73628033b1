// The page's own files, compiled in: page/*.
#pragma once

#include <string_view>

namespace foretrace::assets {

extern const std::string_view serve_css;
extern const std::string_view serve_html;
extern const std::string_view serve_js;
extern const std::string_view serve_chart_js;

}  // namespace foretrace::assets
