#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/nccl/explain/explain.h"
#include "models/nccl/explain/tuner.h"
#include "scenarios/base/text/print.h"

namespace foretrace::nccl {
namespace {

std::string lower(std::string_view word) {
  std::string text{word};
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// As the plug-in writes operations and algorithms (ext-tuner/example/README.md of NCCL's source).
std::string plugin_name(Function function) { return lower(name_of(function)); }
std::string plugin_name(Algorithm algorithm) {
  return algorithm == Algorithm::NvlsTree ? "nvls_tree" : lower(name_of(algorithm));
}

std::string op_name(CollectiveKind kind) {
  for (const auto& [name, known] : operations()) {
    if (known == kind) return name;
  }
  return std::string{name_of(function_of(kind))};
}

std::string settings_text(const TunedRange& range) {
  std::string text;
  for (const auto& [name, value] : range.settings) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

std::string gain_text(const Gain& gain) {
  return fmt::format("{:.2f} us instead of {:.2f} us: {:.3f} times as fast, {:.3f} .. {:.3f}",
                     gain.other_us, gain.own_us, gain.factor, gain.low, gain.high);
}

struct Row {
  TunedRange range;
  std::uint32_t last_channels = 1;
};

/// The gains; what differs in NCCL's number of channels alone is one row.
std::vector<Row> rows_of(const Tuned& tuned) {
  std::vector<Row> rows;
  const TunedRange* before = nullptr;
  for (const TunedRange& range : tuned.ranges) {
    if (!range.settings.empty()) {
      if (before && before->kind == range.kind && before->settings == range.settings) {
        Row& row = rows.back();
        row.range.last_bytes = range.last_bytes;
        row.last_channels = range.channels;
        if (range.gain.low < row.range.gain.low) row.range.gain = range.gain;
      } else {
        rows.push_back({range, range.channels});
      }
    }
    before = &range;
  }
  return rows;
}

std::string channels_text(const Row& row) {
  if (row.range.channels == row.last_channels) return std::to_string(row.last_channels);
  return fmt::format("{} .. {}", row.range.channels, row.last_channels);
}

std::string counts_text(const Tuned& tuned) {
  std::string text = fmt::format(
      "{} steps of size compared; left out: {} that are faster with a band that includes no gain",
      tuned.compared, tuned.unsure);
  if (tuned.without_times > 0) {
    text +=
        fmt::format(", {} whose own choice the machine file has no times for", tuned.without_times);
  }
  if (tuned.others_untimed > 0) {
    text += fmt::format(", {} other ways without times", tuned.others_untimed);
  }
  return text + "\n";
}

}  // namespace

std::string tuner_file(const Tuned& tuned, const std::string& machine) {
  const TunerQuestion& question = tuned.question;
  std::string text = fmt::format(
      "# For NCCL's example tuner plug-in (ext-tuner/example), by foretrace: {}, {} ranks, {} "
      "node{}.\n"
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,"
      "regBuff\n"
      "# Rows without a gain are what NCCL takes by itself: that plug-in asks for one channel "
      "where "
      "no row fits.\n"
      "# So do communicators of other ranks or nodes, and other sizes.\n# {}",
      machine, question.ranks, question.nodes, question.nodes == 1 ? "" : "s", counts_text(tuned));
  for (const TunedRange& range : tuned.ranges) {
    if (!range.settings.empty()) {
      text += fmt::format("# {}; alike: {}\n", gain_text(range.gain), settings_text(range));
    }
    text +=
        fmt::format("{},{},{},{},{},{},{},{},-1,-1\n", plugin_name(function_of(range.kind)),
                    range.first_bytes, range.last_bytes, plugin_name(range.algorithm),
                    lower(name_of(range.protocol)), range.channels, question.nodes, question.ranks);
  }
  return text;
}

std::string tuned_text(const Tuned& tuned, const std::string& machine) {
  const TunerQuestion& question = tuned.question;
  std::string text =
      fmt::format("{} ranks on {} node{} of {}, {} .. {}\n", question.ranks, question.nodes,
                  question.nodes == 1 ? "" : "s", machine, words::size_text(question.first_bytes),
                  words::size_text(question.last_bytes));
  const std::vector<Row> rows = rows_of(tuned);
  if (rows.empty()) {
    return text + "nothing is faster than NCCL's own choice by more than its band\n" +
           counts_text(tuned);
  }
  text +=
      "\n| operation      | from bytes |   to bytes | channels |   own us | other us |  gain |"
      "           band | settings |\n"
      "|:---------------|-----------:|-----------:|---------:|---------:|---------:|------:|"
      "---------------:|:---------|\n";
  for (const Row& row : rows) {
    const TunedRange& range = row.range;
    const Gain& gain = range.gain;
    text += fmt::format(
        "| {:<14} | {:>10} | {:>10} | {:>8} | {:>8.2f} | {:>8.2f} | {:>5.3f} | {:>5.3f} .. "
        "{:>5.3f} "
        "| {} |\n",
        op_name(range.kind), range.first_bytes, range.last_bytes, channels_text(row), gain.own_us,
        gain.other_us, gain.factor, gain.low, gain.high, settings_text(range));
  }
  text +=
      "\nGains are the least of a row. Settings hold for all operations of a process, the tuner "
      "file (--tuner) for these sizes alone.\nOn two H200s most predicted gains were "
      "gains, and smaller ones (hw/laboratory/tuner): measure before you rely on one.\n";
  return text + counts_text(tuned);
}

std::string tuned_json(const Tuned& tuned, const std::string& machine) {
  nlohmann::ordered_json json{{"machine", machine},
                              {"ranks", tuned.question.ranks},
                              {"nodes", tuned.question.nodes},
                              {"compared", tuned.compared},
                              {"left_out_unsure", tuned.unsure},
                              {"left_out_without_times", tuned.without_times},
                              {"other_ways_without_times", tuned.others_untimed}};
  auto& rows = json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows_of(tuned)) {
    const TunedRange& range = row.range;
    rows.push_back({{"op", op_name(range.kind)},
                    {"first_bytes", range.first_bytes},
                    {"last_bytes", range.last_bytes},
                    {"algorithm", name_of(range.algorithm)},
                    {"protocol", name_of(range.protocol)},
                    {"first_channels", range.channels},
                    {"last_channels", row.last_channels},
                    {"own_us", range.gain.own_us},
                    {"other_us", range.gain.other_us},
                    {"gain", range.gain.factor},
                    {"low", range.gain.low},
                    {"high", range.gain.high},
                    {"settings", range.settings}});
  }
  return json.dump(2) + "\n";
}

std::string tuned_csv(const Tuned& tuned) {
  std::string text =
      "op,ranks,nodes,first_bytes,last_bytes,algorithm,protocol,first_channels,last_channels,own_"
      "us,"
      "other_us,gain,low,high,settings\n";
  for (const Row& row : rows_of(tuned)) {
    const TunedRange& range = row.range;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.4f},{:.4f},{:.4f},{}\n",
                        op_name(range.kind), tuned.question.ranks, tuned.question.nodes,
                        range.first_bytes, range.last_bytes, name_of(range.algorithm),
                        name_of(range.protocol), range.channels, row.last_channels,
                        range.gain.own_us, range.gain.other_us, range.gain.factor, range.gain.low,
                        range.gain.high, settings_text(range));
  }
  return text;
}

}  // namespace foretrace::nccl
