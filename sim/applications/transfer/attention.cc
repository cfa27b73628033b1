#include "models/cost/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "models/machine/parts/composition.h"
#include "scenarios/base/text/errors.h"
#include "sim/applications/transfer/search.h"

namespace foretrace::transfer {
namespace attention {
namespace {

using cost::AttentionFacts;
using cost::AttentionRatios;
using cost::AttentionWork;

struct Family {
  const char* name;  ///< in the table
  const char* said;
};
constexpr std::array kFamilies{Family{"attention_prefill", "prefill"},
                               Family{"attention_decode", "decode"},
                               Family{"attention_encoder", "encoder"}};

/// Found on all GPUs.
constexpr std::array kSearched{&AttentionRatios::start,  &AttentionRatios::share,
                               &AttentionRatios::vector, &AttentionRatios::block,
                               &AttentionRatios::tile,   &AttentionRatios::few,
                               &AttentionRatios::memory};

struct Row {
  AttentionWork work;
  double us = 0;
};
struct AttentionRows {
  std::string gpu, family, precision;
  AttentionFacts facts;
  std::vector<Row> rows;
};

const Family* family_of(const CsvLine& line) {
  const auto* const family = std::ranges::find_if(
      kFamilies, [&](const Family& one) { return line.text("family") == one.name; });
  return family == kFamilies.end() ? nullptr : &*family;
}

/// Pairs of a query and a key of one head: causal, of a cache, or all.
double pairs_of(const Family& family, double tokens, double window) {
  const std::string_view said = family.said;
  const double seen = window > 0 ? std::min(tokens, window) : tokens;
  if (said == "decode") return window > 0 ? std::min(tokens + 1, window) : tokens + 1;
  if (said == "encoder") return tokens * tokens;
  return seen * (seen + 1) / 2 + (tokens - seen) * seen;
}

AttentionWork work_of(const CsvLine& line, const Family& family) {
  constexpr double kHalf = 2;
  const double batch = line.number("batch"), heads = line.number("heads");
  const double width = line.number("head_dim"), tokens = line.number("seq");
  const double pairs = pairs_of(family, tokens, line.number("window"));
  const bool decodes = std::string_view{family.said} == "decode";
  // A cache may be of 8 bits; what is new comes as it was computed.
  const double kept = decodes && line.text("precision") == "bf16_kvfp8" ? 1 : kHalf;
  const double queries = decodes ? 1 : tokens, keys = decodes ? pairs : tokens;
  if (!(batch > 0 && heads > 0 && width > 0 && tokens > 0 && line.number("kv_heads") > 0)) {
    throw UsageError{fmt::format(
        "{}: attention has batch, heads, kv_heads, head_dim and seq above zero", line.where())};
  }
  return {.flops = 4 * batch * heads * pairs * width,
          .bytes =
              2 * batch * width * (kHalf * queries * heads + kept * keys * line.number("kv_heads")),
          .width = width};
}

AttentionFacts facts_of(const std::string& part) {
  const Machine machine = load_machine("1x" + part);
  Reading read{machine};
  return cost::read_attention_facts(read);
}

/// A time of the ratios is cycles of this clock.
double clock_of_times() {
  static const double kClock = facts_of("H200-SXM").clock;
  return kClock;
}

/// log(predicted / measured).
double error_of(const Row& row, const AttentionFacts& facts, AttentionRatios ratios) {
  ratios.start *= clock_of_times() / facts.clock;
  return std::log(attention_time(row.work, facts, ratios) * 1e6 / row.us);
}

/// Which rows of a GPU are looked at: all, every other, the others.
enum class Which { All, Even, Odd };

std::vector<double> errors_of(const AttentionRows& rows, const AttentionRatios& ratios,
                              Which which) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    if (which != Which::All && (i % 2 == 0) != (which == Which::Even)) continue;
    errors.push_back(error_of(rows.rows[i], rows.facts, ratios));
  }
  return errors;
}

AttentionRatios ratios_of(const std::vector<double>& values) {
  AttentionRatios ratios;
  for (std::size_t i = 0; i < values.size(); ++i) ratios.*kSearched.at(i) = values[i];
  return ratios;
}

AttentionRatios found(const std::vector<const AttentionRows*>& learned, Which which, int turns) {
  const Machine machine = where_searches_begin();
  Reading read{machine};
  const AttentionRatios first = cost::read_attention_ratios(read);
  std::vector<double> begin;
  for (const auto one : kSearched) begin.push_back(first.*one);
  return ratios_of(search(
      begin,
      [&](std::vector<double>& values) {
        double sum = 0;
        for (const AttentionRows* const rows : learned) {
          std::vector<double> errors = errors_of(*rows, ratios_of(values), which);
          sum += loss_of(errors);
        }
        return sum / static_cast<double>(learned.size());
      },
      turns));
}

/// Those of bfloat16 with enough rows: of all GPUs but one, or of one alone.
std::vector<const AttentionRows*> learned_from(const std::vector<AttentionRows>& all,
                                               const std::string& gpu, bool alone) {
  std::vector<const AttentionRows*> learned;
  for (const AttentionRows& rows : all) {
    const bool counts = rows.precision == "bf16" && rows.rows.size() >= kEnough;
    if (counts && (rows.gpu == gpu) == alone) learned.push_back(&rows);
  }
  return learned;
}

std::vector<AttentionRows> read_rows(const std::vector<CsvLine>& lines, AttentionReport& report) {
  std::vector<AttentionRows> all;
  std::map<std::string, std::optional<AttentionFacts>, std::less<>> facts;
  for (const CsvLine& line : lines) {
    const Family* const family = family_of(line);
    if (family == nullptr || line.number("time_us") < kLeastUs) continue;
    const std::string gpu{line.text("gpu")}, precision{line.text("precision")};
    if (!facts.contains(gpu)) {
      const auto part = find_part(PartFolder::Gpus, gpu);
      facts[gpu] = part ? std::optional{facts_of(*part)} : std::nullopt;
    }
    if (!facts[gpu]) continue;
    if (precision != "bf16" && precision != "bf16_kvfp8") {
      ++report.refused[fmt::format("{} {}", family->said, precision)];
      continue;
    }
    auto rows = std::ranges::find_if(all, [&](const AttentionRows& one) {
      return one.gpu == gpu && one.precision == precision && one.family == family->said;
    });
    if (rows == all.end()) {
      all.push_back({gpu, family->said, precision, *facts[gpu], {}});
      rows = all.end() - 1;
    }
    rows->rows.push_back({work_of(line, *family), line.number("time_us")});
  }
  return all;
}

}  // namespace
}  // namespace attention

AttentionReport judge_attention(const std::vector<CsvLine>& lines, int turns) {
  using namespace attention;
  AttentionReport report;
  const std::vector<AttentionRows> all = read_rows(lines, report);
  const auto everything = learned_from(all, "", false);
  if (everything.empty()) return report;
  report.ratios = found(everything, Which::All, turns);
  std::map<std::string, AttentionRatios> left_out, own;
  for (const AttentionRows& rows : all) {
    if (left_out.contains(rows.gpu)) continue;
    const auto others = learned_from(all, rows.gpu, false), its = learned_from(all, rows.gpu, true);
    const bool is_learned = !its.empty() && !others.empty();
    left_out[rows.gpu] = is_learned ? found(others, Which::All, turns) : report.ratios;
    if (is_learned) own[rows.gpu] = found(its, Which::Even, turns);
  }
  std::vector<Errors> errors;
  for (const AttentionRows& rows : all) {
    errors.push_back({rows.gpu, rows.family + " " + rows.precision,
                      errors_of(rows, left_out[rows.gpu], Which::All)});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string learned = all[i].family + " bf16";
    Judged judged = judged_of(errors[i], band_of(errors, learned, all[i].gpu));
    if (own.contains(all[i].gpu) && all[i].rows.size() >= kEnough) {
      const auto half = errors_of(all[i], own[all[i].gpu], Which::Odd);
      judged.own_median = judged_of({all[i].gpu, "", half}, 0).median;
    }
    report.judged.push_back(judged);
  }
  for (const Family& family : kFamilies) {
    report.bands[family.said] = band_of(errors, fmt::format("{} bf16", family.said));
  }
  return report;
}

}  // namespace foretrace::transfer
