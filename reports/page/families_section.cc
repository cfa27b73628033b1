#include "reports/page/families_section.h"

#include "reports/compare/words.h"
#include "reports/table/text_table.h"

namespace foretrace {

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
