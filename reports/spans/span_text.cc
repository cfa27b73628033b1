#include "reports/spans/span_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/spans/span_class.h"
#include "reports/spans/span_join.h"
#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"
#include "reports/timeline/timeline_keys.h"
#include "scenarios/program/program.h"

namespace foretrace {
namespace {

std::string facts_of(const OpRow& op, const SpanDetail& detail) {
  std::vector<std::string> facts;
  if (op.size_bytes != 0) facts.push_back(format_size(op.size_bytes));
  if (!op.variant.empty()) facts.push_back(op.variant);
  if (!detail.algorithm.empty()) facts.push_back(detail.algorithm);
  if (!detail.protocol.empty()) facts.push_back(detail.protocol);
  if (detail.channels != 0) facts.push_back(fmt::format("{} channels", detail.channels));
  if (!detail.kernel.empty()) facts.push_back(shortened(detail.kernel, 80));
  return fmt::format("{}", fmt::join(facts, ", "));
}

double shown_ns(const Span& span) { return static_cast<double>(span.end_ns - span.begin_ns); }

}  // namespace

std::vector<std::vector<std::uint32_t>> partners_of(const Timeline& first, const Timeline& second) {
  std::vector<std::vector<std::uint32_t>> partners{
      std::vector<std::uint32_t>(first.spans.size(), kNoSpan),
      std::vector<std::uint32_t>(second.spans.size(), kNoSpan)};
  for (const SpanPair& pair : join_spans(first, second)) {
    if (pair.first != kNoSpan) partners[0][pair.first] = pair.second;
    if (pair.second != kNoSpan) partners[1][pair.second] = pair.first;
  }
  return partners;
}

std::string describe_span(const Timeline& timeline, std::uint32_t index, std::int64_t begin_ns,
                          const std::string& side, const Span* partner,
                          const std::string& partner_side, bool is_first) {
  const Span& span = timeline.spans[index];
  const OpRow& op = timeline.ops[span.op];
  std::string text = fmt::format("{}, line {}", title_of(op), op.line);
  if (!op.loops.empty()) {
    text += fmt::format(" [{}]", fmt::join(loop_indices(span.instance, op.loops), ","));
  }
  text += fmt::format("\n{}: {}, begins at {}", side, format_time(shown_ns(span)),
                      format_time(static_cast<double>(begin_ns)));
  if (partner != nullptr) {
    text += fmt::format("\n{}: {}", partner_side, format_time(shown_ns(*partner)));
    const double first = shown_ns(is_first ? span : *partner);
    const double second = shown_ns(is_first ? *partner : span);
    if (second > 0) {
      text += fmt::format(", error {}", format_signed_percent(relative_difference(first, second)));
    }
  }
  const SpanDetail& detail = timeline.details[span.detail];
  if (const auto facts = facts_of(op, detail); !facts.empty()) text += "\n" + facts;
  if (detail.low_factor != detail.high_factor) {
    text += fmt::format("\nband {} .. {}", format_time(shown_ns(span) * detail.low_factor),
                        format_time(shown_ns(span) * detail.high_factor));
    if (detail.parameters != ParameterClass::Fit) {
      text += fmt::format(", {} parameters",
                          keys::kParameterClasses[static_cast<std::size_t>(detail.parameters)]);
    }
  }
  return text;
}

std::string shortened(const std::string& text, std::size_t letters) {
  if (text.size() <= letters) return text;
  std::size_t cut = letters - 1;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return text.substr(0, cut) + "\u2026";
}

}  // namespace foretrace
