#include "reports/page/packed.h"

#include <algorithm>

#ifdef FORETRACE_HAS_ZLIB
#include <zlib.h>

#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>

#include "scenarios/base/text/errors.h"
#endif

namespace foretrace {

namespace {

std::string id_of(const std::string& id) { return id.empty() ? id : " id=\"" + id + "\""; }

}  // namespace

#ifdef FORETRACE_HAS_ZLIB

namespace {

std::string base64(const std::string& bytes) {
  namespace it = boost::archive::iterators;
  using SixBits = it::transform_width<std::string::const_iterator, 6, 8>;
  using Letters = it::base64_from_binary<SixBits>;
  std::string padded = bytes;
  const std::size_t missing = (3 - bytes.size() % 3) % 3;
  padded.append(missing, '\0');
  std::string text{Letters{padded.cbegin()}, Letters{padded.cend()}};
  text.replace(text.size() - missing, missing, missing, '=');
  return text;
}

}  // namespace

std::string packed_element(const std::string& html, const std::string& id) {
  uLongf size = compressBound(html.size());
  std::string packed(size, '\0');
  const int result =
      compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                reinterpret_cast<const Bytef*>(html.data()), html.size(), Z_BEST_COMPRESSION);
  FORETRACE_CHECK(result == Z_OK, "memory for a compressed page");
  packed.resize(size);
  return "<script type=\"application/vnd.foretrace.zlib\"" + id_of(id) + ">" + base64(packed) +
         "</script>";
}

#else

std::string packed_element(const std::string& html, const std::string& id) {
  return "<template" + id_of(id) + ">" + html + "</template>";
}

#endif

std::vector<std::string> made_within(
    std::size_t bytes, std::size_t count, std::size_t levels,
    const std::function<std::string(std::size_t index, std::size_t level)>& make) {
  struct Made {
    std::string text;
    std::size_t level = 0;
  };
  std::vector<Made> all(count);
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    all[i].text = make(i, 0);
    total += all[i].text.size();
  }
  while (total > bytes) {
    // Of those that can still give way, the largest; one that cannot counts as nothing.
    const auto largest = std::ranges::max_element(
        all, {}, [&](const Made& one) { return one.level + 1 < levels ? one.text.size() : 0; });
    if (largest == all.end() || largest->level + 1 >= levels) break;
    total -= largest->text.size();
    largest->text = make(static_cast<std::size_t>(largest - all.begin()), ++largest->level);
    total += largest->text.size();
  }
  std::vector<std::string> texts;
  for (Made& one : all) texts.push_back(std::move(one.text));
  return texts;
}

}  // namespace foretrace
