// Details of one run inside a page of many: inert until somebody opens them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace foretrace {

/// An element that holds `html` and shows nothing: a script of base64 of zlib's format, which
/// assets/details.js unpacks with the browser's DecompressionStream; in a build without zlib a
/// template. `id`: the element's, empty for none.
std::string packed_element(const std::string& html, const std::string& id = {});

/// `count` elements, made by `make(index, level)`, that together take at most `bytes` where their
/// highest levels do: level 0 says most, level `levels` - 1 least, and the largest gives way first.
std::vector<std::string> made_within(
    std::size_t bytes, std::size_t count, std::size_t levels,
    const std::function<std::string(std::size_t index, std::size_t level)>& make);

}  // namespace foretrace
