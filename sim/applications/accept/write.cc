#include "sim/applications/accept/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <kainjow/mustache.hpp>
#include <nlohmann/json.hpp>

#include "reports/table/text_table.h"
#include "scenarios/base/values/json_lexer.h"

namespace foretrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kMostNamed = 10;

std::string figure(const AcceptCheck& check, double value) {
  return fmt::format("{:.{}f} {}", value, value < 100 ? 2 : 1, check.unit);
}

/// The lowest score first.
std::vector<AcceptCheck> slow_checks(const AcceptPart& part) {
  std::vector<AcceptCheck> slow;
  std::ranges::copy_if(part.checks, std::back_inserter(slow), &AcceptCheck::is_slow);
  std::ranges::stable_sort(slow, {}, &AcceptCheck::score);
  return slow;
}

/// As a part of a line and of XML: what is no text is '?'.
std::string shown(std::string name) {
  const bool is_text = is_utf8(name);
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_text)) c = '?';
  }
  return name;
}

std::string verdict(const AcceptPart& part) {
  return !part.is_accepted() ? "SLOW" : part.is_too_fast() ? "ok, too fast" : "ok";
}

std::string slow_text(const AcceptPart& part) {
  const auto slow = slow_checks(part);
  std::string text = fmt::format("\n{}\n{}: {} of {} below the floor\n", shown(part.file),
                                 part.name, slow.size(), part.checks.size());
  for (std::size_t i = 0; i < std::min(slow.size(), kMostNamed); ++i) {
    text +=
        fmt::format("  {}: {}, expected {}, at {} {}\n", slow[i].name,
                    figure(slow[i], slow[i].measured), figure(slow[i], slow[i].expected),
                    slow[i].more_is_better() ? "least" : "most", figure(slow[i], slow[i].floor));
  }
  if (slow.size() > kMostNamed) text += fmt::format("  and {} more\n", slow.size() - kMostNamed);
  return text;
}

}  // namespace

std::string accept_text(const Acceptance& acceptance) {
  TextTable table;
  table.column("verdict", TextTable::Align::Left);
  table.column("what", TextTable::Align::Left);
  table.column("values", TextTable::Align::Right);
  table.column("slow", TextTable::Align::Right);
  table.column("of the floor", TextTable::Align::Right);
  table.column("file", TextTable::Align::Left);
  std::size_t rejected = 0;
  for (const AcceptPart& part : acceptance.parts) {
    rejected += part.is_accepted() ? 0 : 1;
    table.row({verdict(part), part.name, fmt::format("{}", part.checks.size()),
               fmt::format("{}", part.slow()), fmt::format("{:.2f}", part.median_score()),
               shown(part.file)});
  }
  std::string text = table.markdown();
  for (const AcceptPart& part : acceptance.parts) {
    if (!part.is_accepted()) text += slow_text(part);
  }
  if (std::ranges::any_of(acceptance.parts, &AcceptPart::is_too_fast)) {
    text +=
        fmt::format("\ntoo fast: most of it is beyond the band's fast end. Is {} the machine?\n",
                    acceptance.machine);
  }
  const auto worst = acceptance.worst_places();
  if (!worst.empty() && rejected > 0) text += "\nworst places:\n";
  for (std::size_t i = 0; rejected > 0 && i < std::min(worst.size(), kMostNamed); ++i) {
    text += fmt::format("  {}: slow in {} of {}, at worst {:.2f} of the floor\n",
                        shown(worst[i].name), worst[i].slow, worst[i].all, worst[i].worst);
  }
  text +=
      "\nof the floor: the median value over the slow end of the model's band; what is 1 or more "
      "is "
      "as such machines are\n";
  text += rejected == 0
              ? fmt::format("ACCEPTED: as fast as {} should be.\n", acceptance.machine)
              : fmt::format("NOT ACCEPTED: {} of {} parts are slower than {} should be.\n",
                            rejected, acceptance.parts.size(), acceptance.machine);
  return text;
}

std::string accept_json(const Acceptance& acceptance) {
  OrderedJson parts = OrderedJson::array();
  for (const AcceptPart& part : acceptance.parts) {
    OrderedJson checks = OrderedJson::array();
    for (const AcceptCheck& check : part.checks) {
      checks.push_back({{"name", check.name},
                        {"unit", check.unit},
                        {"measured", check.measured},
                        {"expected", check.expected},
                        {"floor", check.floor},
                        {"slow", check.is_slow()}});
    }
    parts.push_back({{"file", part.file},
                     {"name", part.name},
                     {"accepted", part.is_accepted()},
                     {"hosts", part.hosts},
                     {"slow", part.slow()},
                     {"of_the_floor", part.median_score()},
                     {"checks", std::move(checks)}});
  }
  OrderedJson places = OrderedJson::array();
  for (const AcceptPlace& place : acceptance.worst_places()) {
    places.push_back(
        {{"name", place.name}, {"slow", place.slow}, {"of", place.all}, {"worst", place.worst}});
  }
  const OrderedJson document{
      {"schema_version", 1},           {"kind", "acceptance"},
      {"machine", acceptance.machine}, {"accepted", acceptance.is_accepted()},
      {"parts", std::move(parts)},     {"worst_places", std::move(places)},
      {"notes", acceptance.notes}};
  return document.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string accept_csv(const Acceptance& acceptance) {
  std::string text = "file,part,name,unit,measured,expected,floor,slow,part_accepted\n";
  for (const AcceptPart& part : acceptance.parts) {
    for (const AcceptCheck& check : part.checks) {
      text += fmt::format("{},{},{},{},{:.6g},{:.6g},{:.6g},{},{}\n", csv_cell(part.file),
                          csv_cell(part.name), csv_cell(check.name), check.unit, check.measured,
                          check.expected, check.floor, check.is_slow() ? 1 : 0,
                          part.is_accepted() ? 1 : 0);
    }
  }
  return text;
}

std::string accept_junit(const Acceptance& acceptance) {
  using kainjow::mustache::data;
  data suites{data::type::list};
  std::size_t tests = 0, failures = 0;
  for (const AcceptPart& part : acceptance.parts) {
    data cases{data::type::list};
    const std::size_t failed = part.is_accepted() ? 0 : part.slow();
    for (const AcceptCheck& check : part.checks) {
      data one;
      one.set("name", shown(check.name));
      one.set("part", shown(part.name));
      const std::string said =
          fmt::format("{}, expected {}, floor {}", figure(check, check.measured),
                      figure(check, check.expected), figure(check, check.floor));
      if (check.is_slow() && !part.is_accepted()) one.set("failure", said);
      one.set("said", said);
      cases.push_back(one);
    }
    data suite;
    suite.set("name", shown(part.file + ": " + part.name));
    suite.set("tests", fmt::format("{}", part.checks.size()));
    suite.set("failures", fmt::format("{}", failed));
    suite.set("cases", cases);
    suites.push_back(suite);
    tests += part.checks.size();
    failures += failed;
  }
  data page;
  page.set("machine", shown(acceptance.machine));
  page.set("tests", fmt::format("{}", tests));
  page.set("failures", fmt::format("{}", failures));
  page.set("suites", suites);
  kainjow::mustache::mustache text{R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="foretrace accept on {{machine}}" tests="{{tests}}" failures="{{failures}}">
{{#suites}}
  <testsuite name="{{name}}" tests="{{tests}}" failures="{{failures}}">
{{#cases}}
    <testcase classname="{{part}}" name="{{name}}">{{#failure}}<failure message="{{failure}}"/>{{/failure}}{{^failure}}<system-out>{{said}}</system-out>{{/failure}}</testcase>
{{/cases}}
  </testsuite>
{{/suites}}
</testsuites>
)"};
  return text.render(page);
}

}  // namespace foretrace
