#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "sim/applications/transfer/transfer.h"

namespace foretrace::transfer {

std::string markdown(const Report& report) {
  std::string text =
      "Products from 10 us on, of GPUs that were left out whole: their datasheets' facts, and "
      "ratios "
      "of the other GPUs alone\n\n"
      "| GPU left out | Precision | Rows | Median | 90th | Bias | Band | In the band |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Judged& one : report.judged) {
    text += fmt::format(
        "| {}{} | {} | {} | {:.1f} % | {:.1f} % | {:+.1f} % | {:.0f} % | {:.0f} % |\n", one.gpu,
        one.too_few ? " (never learned from)" : "", one.precision, one.rows, one.median * 100,
        one.p90 * 100, one.bias * 100, one.band * 100, one.in_band * 100);
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
  return text;
}

std::string json(const Report& report) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const Judged& one : report.judged) {
    rows.push_back({{"gpu", one.gpu},
                    {"precision", one.precision},
                    {"rows", one.rows},
                    {"median", one.median},
                    {"p90", one.p90},
                    {"bias", one.bias},
                    {"band", one.band},
                    {"in_band", one.in_band},
                    {"learned_from_elsewhere", !one.too_few}});
  }
  const Json all{{"schema_version", 1},
                 {"kind", "transfer"},
                 {"judged", rows},
                 {"left_out", report.unknown},
                 {"band", {{"bf16", report.band_bf16}, {"fp8", report.band_fp8}}}};
  return all.dump(2) + "\n";
}

}  // namespace foretrace::transfer
