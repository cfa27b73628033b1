#include "reports/page/uses_section.h"

#include <fmt/format.h>

#include "reports/compare/words.h"
#include "reports/table/text_table.h"
#include "reports/uses/critical_path.h"
#include "reports/uses/uses.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostGpus = 16;  // of a side

MustacheData cells_of(const std::vector<std::string>& texts) {
  MustacheData cells{MustacheData::type::list};
  for (const std::string& text : texts) {
    MustacheData cell;
    cell.set("text", text);
    cells << cell;
  }
  return cells;
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  if (part == 0 || whole <= 0) return "-";
  return format_percent(static_cast<double>(part) / static_cast<double>(whole));
}

void add_gpus(const Side& side, MustacheData& rows) {
  const auto gpus = explain::gpu_times(*side.timeline);
  for (std::size_t i = 0; i < std::min(gpus.size(), kMostGpus); ++i) {
    std::vector<std::string> texts;
    for (const std::int64_t ns : gpus[i].by_use) texts.push_back(share_text(ns, gpus[i].ns));
    MustacheData row;
    row.set("name",
            fmt::format("{}: process {}, device {}", side.name, gpus[i].process, gpus[i].device));
    row.set("cells", cells_of(texts));
    rows << row;
  }
}

std::string path_words(const Side& side) {
  const explain::CriticalPath path = explain::critical_path(*side.timeline);
  if (path.ns == 0) return {};
  std::string words = fmt::format("Critical path, {}: ", side.name);
  for (std::size_t i = 0; i < path.by_class.size(); ++i) {
    if (path.by_class[i] == 0) continue;
    words += fmt::format("{} {}, ", name_of(static_cast<SpanClass>(i)),
                         share_text(path.by_class[i], path.ns));
  }
  return words + fmt::format("waiting {}. ", share_text(path.nothing_ns, path.ns));
}

}  // namespace

MustacheData uses_section(const ReportRun& run) {
  MustacheData rows{MustacheData::type::list};
  std::string words;
  for (const Side& side : run.sides) {
    if (side.timeline->spans.empty()) continue;
    add_gpus(side, rows);
    words += path_words(side);
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < explain::kUses; ++i) {
    names.emplace_back(explain::name_of(static_cast<explain::Use>(i)));
  }
  MustacheData causes{MustacheData::type::list};
  for (const ReportCause& cause : run.causes) {
    MustacheData row;
    row.set("cause", cause.name);
    row.set("change", cause.change);
    row.set("time", format_time(cause.seconds * 1e9));
    row.set("gain", format_percent(cause.gain));
    causes << row;
  }
  MustacheData section;
  section.set("has_uses", !rows.is_empty_list());
  section.set("columns", cells_of(names));
  section.set("gpus", rows);
  section.set("path", words);
  section.set("headline", run.causes_headline);
  section.set("has_causes", !run.causes.empty());
  section.set("causes", causes);
  return section;
}

void set_families(MustacheData& data, const Comparison& c) {
  constexpr std::size_t kMost = 60;
  data.set("has_families", !c.families.empty());
  if (c.families.empty()) return;
  MustacheData rows{MustacheData::type::list};
  for (const FamilyRow& one : shown_families(c, kMost)) {
    MustacheData row;
    row.set("family", one.family);
    row.set("n_first", format_count(one.first));
    row.set("n_second", format_count(one.second));
    row.set("joined", format_count(one.joined));
    row.set("first", format_time(one.first_ns));
    row.set("second", format_time(one.second_ns));
    row.set("error", format_or_dash(one.error, format_signed_percent));
    rows << row;
  }
  MustacheData alone{MustacheData::type::list};
  for (const std::string& words : alone_words(c)) {
    MustacheData row;
    row.set("words", words);
    alone << row;
  }
  data.set("families", rows);
  data.set("busy", busy_words(c));
  data.set("alone", alone);
}

}  // namespace foretrace
