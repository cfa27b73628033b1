// Generated text inside a document that people write: it stands between two comments,
// <!-- begin: NAME --> and <!-- end: NAME -->, each on a line of its own.
#pragma once

#include <string>
#include <string_view>

namespace foretrace {

/// `document` with `text` between the markers of `name`. Throws UsageError naming `file` when they
/// are not there.
std::string with_marked_text(std::string_view document, std::string_view name,
                             std::string_view text, const std::string& file);

}  // namespace foretrace
