#include <algorithm>
#include <limits>
#include <utility>

#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/yaml_reader.h"

namespace foretrace {

void Problems::error(const YamlNode& at, std::string message, std::string hint,
                     std::size_t offset) {
  const int within = at.is_filled ? 0 : static_cast<int>(offset);
  add(at, within + (at.quoted && within > 0 ? 1 : 0), Severity::Error, std::move(message),
      std::move(hint));
}

void Problems::warning(const YamlNode& at, std::string message, std::string hint) {
  add(at, 0, Severity::Warning, std::move(message), std::move(hint));
}

void Problems::add(const YamlNode& at, int offset, Severity severity, std::string message,
                   std::string hint) {
  const std::size_t before = all_.size();
  add(at.line, at.column + offset, severity, std::move(message), std::move(hint));
  if (at.source == 0 || all_.size() == before) return;
  Diagnostic& added = all_.back();
  added.at.file = file_of(at);
  added.line_text = line_of(*sources_[at.source - 1U].text, at.line);
  for (std::uint16_t source = at.source; source != 0;) {
    added.included_from.push_back(sources_[source - 1U].included_at);
    source = sources_[source - 1U].included_by;
  }
}

std::uint16_t Problems::add_source(std::string file, std::shared_ptr<const std::string> text,
                                   const YamlNode& include) {
  if (sources_.size() == std::numeric_limits<std::uint16_t>::max()) return 0;
  sources_.push_back({std::move(file),
                      std::move(text),
                      {file_of(include), include.line, include.column},
                      include.source});
  return static_cast<std::uint16_t>(sources_.size());
}

const std::string& Problems::file_of(const YamlNode& node) const {
  return node.source == 0 ? file_ : sources_[node.source - 1U].file;
}

bool Problems::is_within(const YamlNode& node, const std::string& file) const {
  for (std::uint16_t source = node.source; source != 0;) {
    if (sources_[source - 1U].file == file) return true;
    source = sources_[source - 1U].included_by;
  }
  return file == file_;
}

int Problems::depth_of(const YamlNode& node) const {
  int depth = 0;
  for (std::uint16_t source = node.source; source != 0; ++depth) {
    source = sources_[source - 1U].included_by;
  }
  return depth;
}

void Problems::add(int line, int column, Severity severity, std::string message, std::string hint,
                   std::string_view group) {
  if (severity == Severity::Error) ++error_count_;
  if (is_full()) return;
  all_.push_back({{file_, line, column}, std::move(message), std::move(hint), severity});
  all_.back().group = group;
}

Diagnostics Problems::take() {
  std::ranges::stable_sort(all_, {}, [](const Diagnostic& d) {
    return std::pair{outermost(d).line, outermost(d).column};
  });
  // Text that is read once for each group of processes says the same again.
  const auto says_the_same = [](const Diagnostic& a, const Diagnostic& b) {
    return a.at.line > 0 && a.at.line == b.at.line && a.at.column == b.at.column &&
           a.at.file == b.at.file && a.message == b.message;
  };
  all_.erase(std::unique(all_.begin(), all_.end(), says_the_same), all_.end());
  return std::exchange(all_, {});
}

}  // namespace foretrace
