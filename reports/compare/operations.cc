#include <algorithm>

#include "reports/compare/compare.h"
#include "reports/timeline/span_join.h"
#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

double duration_ns(const Span& span) { return static_cast<double>(span.end_ns - span.begin_ns); }

std::optional<double> median_or_none(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return median(values);
}

/// The pairs of one (op, part), gathered.
struct Gathered {
  std::vector<double> first, second;  // durations of pairs
  std::vector<double> first_alone, second_alone;
  std::vector<double> begin_offsets;
};

OperationRow make_row(const Span& sample, const Gathered& g, const std::vector<OpRow>& ops) {
  OperationRow row;
  row.op = sample.op;
  row.part = sample.part;
  row.kind = ops[sample.op].kind;
  row.label = ops[sample.op].label;
  row.line = ops[sample.op].line;
  row.size_bytes = ops[sample.op].size_bytes;
  row.matched = g.first.size();
  row.only_first = g.first_alone.size();
  row.only_second = g.second_alone.size();
  row.first_ns = median_or_none(g.first.empty() ? g.first_alone : g.first);
  row.second_ns = median_or_none(g.second.empty() ? g.second_alone : g.second);
  row.begin_offset_ns = median_or_none(g.begin_offsets);
  for (std::size_t i = 0; i < g.first.size(); ++i) {
    row.total_difference_ns += g.first[i] - g.second[i];
  }
  if (row.matched != 0 && *row.second_ns > 0)
    row.error = relative_difference(*row.first_ns, *row.second_ns);
  return row;
}

}  // namespace

std::vector<OperationRow> compare_operations(const Timeline& first, const Timeline& second) {
  const auto pairs = join_spans(first, second);
  const auto base = first_begin_ns(first) - first_begin_ns(second);
  const auto span_of = [&](const SpanPair& pair) -> const Span& {
    return pair.first != kNoSpan ? first.spans[pair.first] : second.spans[pair.second];
  };
  std::vector<OperationRow> rows;
  for (auto begin = pairs.begin(); begin != pairs.end();) {
    const Span& sample = span_of(*begin);
    Gathered gathered;
    auto at = begin;
    for (; at != pairs.end(); ++at) {
      const Span& span = span_of(*at);
      if (span.op != sample.op || span.part != sample.part) break;
      if (at->second == kNoSpan) {
        gathered.first_alone.push_back(duration_ns(span));
      } else if (at->first == kNoSpan) {
        gathered.second_alone.push_back(duration_ns(span));
      } else {
        const Span& other = second.spans[at->second];
        gathered.first.push_back(duration_ns(span));
        gathered.second.push_back(duration_ns(other));
        gathered.begin_offsets.push_back(
            static_cast<double>(span.begin_ns - other.begin_ns - base));
      }
    }
    rows.push_back(make_row(sample, gathered, first.ops));
    begin = at;
  }
  return rows;
}

}  // namespace foretrace
