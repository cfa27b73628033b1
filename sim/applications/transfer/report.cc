#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "sim/applications/transfer/transfer.h"

namespace foretrace::transfer {

namespace {

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", *share * 100) : "";
}

std::string row_of(const Judged& one, const std::string& more) {
  return fmt::format(
      "| {}{} | {} | {} | {:.1f} % | {:.1f} % | {:+.1f} % | {:.0f} % | {:.0f} % |{}\n", one.gpu,
      one.too_few ? " (never learned from)" : "", one.precision, one.rows, one.median * 100,
      one.p90 * 100, one.bias * 100, one.band * 100, one.in_band * 100, more);
}

std::string attention_markdown(const AttentionReport& report) {
  if (report.judged.empty()) return {};
  std::string text =
      "\nAttention from 10 us on, the same way\n\n"
      "| GPU left out | Attention | Rows | Median | 90th | Bias | Band | In the band | Its own "
      "half "
      "given: median |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Judged& one : report.judged) {
    text += row_of(one, " " + percent(one.own_median) + " |");
  }
  for (const auto& [what, rows] : report.refused) {
    text += fmt::format(
        "\nLeft out, since a library_kernel has no attention of such types: {} rows of {}\n", rows,
        what);
  }
  const cost::AttentionRatios& found = report.ratios;
  const auto band = [&](const char* family) { return report.bands.at(family); };
  text += fmt::format(
      "\nOf all GPUs together:\n\n    blind.attention: {{value: {:.2f}}}\n"
      "    blind.attention_memory: {{value: {:.2f}}}\n",
      std::max(band("prefill"), band("encoder")), band("decode"));
  const auto line = [&](const char* key, const std::string& value) {
    text += fmt::format("    attends.{}: {{value: {}}}\n", key, value);
  };
  line("start", fmt::format("{:.3g}us", found.start * 1e6));
  line("share", fmt::format("{:.3g}", found.share));
  line("vector", fmt::format("{:.3g}", found.vector));
  line("block", fmt::format("{:.0f}", found.block));
  line("tile", fmt::format("{:.3g}", found.tile));
  line("few", fmt::format("{:.3g}", found.few));
  line("memory", fmt::format("{:.3g}", found.memory));
  return text;
}

nlohmann::ordered_json rows_json(const std::vector<Judged>& judged) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Judged& one : judged) {
    rows.push_back({{"gpu", one.gpu},
                    {"precision", one.precision},
                    {"rows", one.rows},
                    {"median", one.median},
                    {"p90", one.p90},
                    {"bias", one.bias},
                    {"band", one.band},
                    {"in_band", one.in_band},
                    {"learned_from_elsewhere", !one.too_few}});
    if (one.own_median) rows.back()["own_half_given_median"] = *one.own_median;
  }
  return rows;
}

}  // namespace

std::string markdown(const Report& report) {
  std::string text =
      "Products from 10 us on, of GPUs that were left out whole: their datasheets' facts, and "
      "ratios "
      "of the other GPUs alone\n\n"
      "| GPU left out | Precision | Rows | Median | 90th | Bias | Band | In the band |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Judged& one : report.judged) {
    text += row_of(one, "");
  }
  if (!report.unknown.empty()) {
    text += fmt::format("\nLeft out, since models/machines/gpus has no facts of them: {}\n",
                        fmt::join(report.unknown, ", "));
  }
  if (report.warm > 0) {
    text += fmt::format(
        "\nLeft out, since memory could not bring their weights in the time: {} rows, whose "
        "weights were in "
        "the cache\n",
        report.warm);
  }
  const products::TileRatios& found = report.ratios;
  text += fmt::format(
      "\nOf all GPUs together (models/machines/kinds/common.yaml):\n\n"
      "    blind.products: {{value: {:.2f}}}\n",
      std::max(report.band_bf16, report.band_fp8));
  const auto line = [&](const char* key, const std::string& value) {
    text += fmt::format("    tiles.{}: {{value: {}}}\n", key, value);
  };
  line("share", fmt::format("{:.3g}", found.share));
  line("power", fmt::format("{:.3g}", found.power));
  line("memory", fmt::format("{:.3g}", found.memory));
  line("cache", fmt::format("{:.3g}", found.cache));
  line("kept", fmt::format("{:.3g}", found.tiles.kept));
  line("edge", fmt::format("{:.3g}", found.tiles.edge));
  line("smooth", fmt::format("{:.3g}", found.tiles.smooth));
  line("in_flight", fmt::format("{:.3g}", found.tiles.in_flight));
  line("norm", fmt::format("{:.3g}", found.tiles.norm));
  line("start", fmt::format("{:.3g}us", found.start * 1e6));
  line("wave", fmt::format("{:.3g}us", found.tiles.wave * 1e6));
  line("sum", fmt::format("{:.3g}us", found.sum * 1e6));
  return text + attention_markdown(report.attention);
}

std::string json(const Report& report) {
  using Json = nlohmann::ordered_json;
  const Json all{{"schema_version", 1},
                 {"kind", "transfer"},
                 {"judged", rows_json(report.judged)},
                 {"attention", rows_json(report.attention.judged)},
                 {"attention_refused", report.attention.refused},
                 {"left_out", report.unknown},
                 {"band", {{"bf16", report.band_bf16}, {"fp8", report.band_fp8}}}};
  return all.dump(2) + "\n";
}

}  // namespace foretrace::transfer
