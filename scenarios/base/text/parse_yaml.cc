#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <new>
#include <utility>

#include "scenarios/base/text/is_text.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/yaml_reader.h"
#include "scenarios/base/text/yaml_tree.h"

namespace foretrace {
namespace {

/// libyaml's parser over a text, event by event.
class Events {
 public:
  explicit Events(std::string_view text) : text_{text} {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc{};
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    const char* begin = text.empty() ? "" : text.data();  // which it wants even of nothing
    const auto* bytes = reinterpret_cast<const unsigned char*>(begin);  // NOLINT: its type
    yaml_parser_set_input_string(&parser_, bytes, text.size());
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  /// Null where the text is no YAML: add_error() says why.
  const yaml_event_t* next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) != 0) return &event_;
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc{};
    return nullptr;
  }

  void add_error(Problems& problems) const;

 private:
  std::string_view text_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

void Events::add_error(Problems& problems) const {
  if (parser_.error == YAML_READER_ERROR) {
    return add_at_offset(text_, parser_.problem_offset, problems,
                         fmt::format("not a text file: {}", parser_.problem));
  }
  yaml_mark_t mark = parser_.problem_mark;
  std::string message = fmt::format("not valid YAML: {}", parser_.problem);
  if (parser_.context != nullptr) {
    const bool is_at_end =
        static_cast<std::ptrdiff_t>(mark.line) >= std::ranges::count(text_, '\n') &&
        line_of(text_, static_cast<int>(mark.line) + 1).size() <= mark.column;
    message += fmt::format(" {}", parser_.context);
    if (is_at_end) {  // points where it began
      mark = parser_.context_mark;
    } else if (parser_.context_mark.line != mark.line) {
      message += fmt::format(" that begins in line {}", parser_.context_mark.line + 1);
    }
  }
  YamlNode place = node_at(mark, YamlNode::Kind::Null);
  for (; place.line > 1 && line_of(text_, place.line).empty(); --place.line) {
    place.column = static_cast<int>(line_of(text_, place.line - 1).size()) + 1;
  }
  problems.error(place, std::move(message));
}

}  // namespace

YamlNode parse_yaml(std::string_view text, Problems& problems) {
  if (text.size() > kLargestText) {
    problems.add(0, 0, Severity::Error,
                 fmt::format("larger than {} MiB: not a scenario", kLargestText >> 20));
    return {};
  }
  if (constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
      text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (!is_text(text, problems)) return {};
  Events events{text};
  TreeBuilder first{problems}, second{problems};
  int documents = 0;
  while (const yaml_event_t* event = events.next()) {
    if (event->type == YAML_DOCUMENT_START_EVENT) ++documents;
    if (event->type == YAML_STREAM_END_EVENT ||
        (event->type == YAML_DOCUMENT_END_EVENT && documents == 2)) {
      if (documents > 1) {
        problems.error(second.take_root(),
                       "a scenario is one YAML document, and this starts another");
      }
      return first.take_root();
    }
    TreeBuilder& tree = documents > 1 ? second : first;
    tree.take(*event);
    if (tree.is_too_deep()) {
      problems.error(node_at(event->start_mark, YamlNode::Kind::Null),
                     fmt::format("nested more than {} levels deep", TreeBuilder::kDeepestNesting));
      return {};
    }
  }
  events.add_error(problems);
  return {};
}

}  // namespace foretrace
