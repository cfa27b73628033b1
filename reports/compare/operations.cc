#include <algorithm>
#include <tuple>

#include "reports/compare/compare.h"
#include "reports/spans/span_join.h"
#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

double duration_ns(const Span& span) { return static_cast<double>(span.end_ns - span.begin_ns); }

/// Each execution's device parts as one span, which lasts as long as any of them ran; only the
/// nodes of a graph stay apart. `pieces` gets how many parts each has, by span.
std::vector<Span> merged(const Timeline& timeline, std::vector<std::uint32_t>& pieces) {
  const auto mergeable = [&](const Span& span) {
    return span.part != 0 && timeline.ops[span.op].kind != "graph_launch";
  };
  std::vector<Span> spans;
  std::vector<Span> parts;
  for (const Span& span : timeline.spans) (mergeable(span) ? parts : spans).push_back(span);
  pieces.assign(spans.size(), 1);
  const auto key = [&](const Span& span) {
    const Lane& lane = timeline.lanes[span.lane];
    return std::tuple{span.op, span.instance, lane.process, lane.device};
  };
  std::ranges::sort(parts, [&](const Span& a, const Span& b) {
    return std::tuple{key(a), a.begin_ns} < std::tuple{key(b), b.begin_ns};
  });
  std::int64_t until_ns = 0;  // of what the last span has counted
  for (const Span& part : parts) {
    if (spans.size() > timeline.spans.size() - parts.size() && key(spans.back()) == key(part)) {
      spans.back().end_ns +=
          std::max<std::int64_t>(0, part.end_ns - std::max(until_ns, part.begin_ns));
      until_ns = std::max(until_ns, part.end_ns);
      ++pieces.back();
      continue;
    }
    spans.push_back(part);
    spans.back().part = 1;
    pieces.push_back(1);
    until_ns = part.end_ns;
  }
  return spans;
}

std::optional<double> median_or_none(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return median(values);
}

/// The pairs of one (op, part), gathered.
struct Gathered {
  std::vector<double> first, second;  // durations of pairs
  std::vector<double> first_alone, second_alone;
  std::vector<double> begin_offsets;
  std::uint32_t first_pieces = 0, second_pieces = 0;
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
  row.first_pieces = g.first_pieces;
  row.second_pieces = g.second_pieces;
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
  std::vector<std::uint32_t> first_pieces, second_pieces;
  const std::vector<Span> first_spans = merged(first, first_pieces);
  const std::vector<Span> second_spans = merged(second, second_pieces);
  const auto pairs = join_spans({first.lanes, first_spans}, {second.lanes, second_spans});
  const auto base = first_begin_ns(first) - first_begin_ns(second);
  const auto span_of = [&](const SpanPair& pair) -> const Span& {
    return pair.first != kNoSpan ? first_spans[pair.first] : second_spans[pair.second];
  };
  std::vector<OperationRow> rows;
  for (auto begin = pairs.begin(); begin != pairs.end();) {
    const Span& sample = span_of(*begin);
    Gathered gathered;
    auto at = begin;
    for (; at != pairs.end(); ++at) {
      const Span& span = span_of(*at);
      if (span.op != sample.op || span.part != sample.part) break;
      if (at->first != kNoSpan) {
        gathered.first_pieces = std::max(gathered.first_pieces, first_pieces[at->first]);
      }
      if (at->second != kNoSpan) {
        gathered.second_pieces = std::max(gathered.second_pieces, second_pieces[at->second]);
      }
      if (at->second == kNoSpan) {
        gathered.first_alone.push_back(duration_ns(span));
      } else if (at->first == kNoSpan) {
        gathered.second_alone.push_back(duration_ns(span));
      } else {
        const Span& other = second_spans[at->second];
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
