#include "scenarios/styles/style.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/packed_file.h"
#include "scenarios/base/values/json_depth.h"
#include "scenarios/styles/writer.h"

namespace foretrace::styles {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLargest = std::size_t{64} << 20;
constexpr double kLoopNs = 1e9;       // times are shares of the capture's reference loop
constexpr std::int64_t kBlock = 512;  // kMinBlockSize of PyTorch's caching allocator, bytes
constexpr std::string_view kEnding = ".json.gz";

std::filesystem::path directory() { return data_directory() / "scenarios/styles"; }

Json read(const std::filesystem::path& file) {
  const std::string text = read_packed_text_file(file, kLargest);
  refuse_deep_json(text, file.string());
  Json read = Json::parse(text, nullptr, false);
  if (!read.is_object()) {
    throw UsageError{fmt::format("{}: error: no style that capture's tools wrote", file.string())};
  }
  return read;
}

std::int64_t rounded(std::int64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

/// Sums of the allocator's blocks: the largest on the way, and at the end.
struct Sum {
  std::int64_t top = 0, now = 0;

  void add(std::int64_t bytes) { top = std::max(top, now += bytes); }
};

Sum sum_of(const Json& blocks, std::int64_t more, const Formulas& formulas) {
  Sum sum;
  for (const Json& one : repeated(blocks, more)) {
    if (one.size() > 2 && !formulas.filled(one.at(2)).get<bool>()) continue;
    sum.add(one.at(0).get<std::int64_t>() * formulas.number(one.at(1)));
  }
  return sum;
}

std::vector<std::string> names_in(const std::filesystem::path& where, bool directories) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator{where}) {
    std::string name = entry.path().filename().string();
    if (entry.is_directory() != directories) continue;
    if (!directories) {
      if (!name.ends_with(kEnding)) continue;
      name.resize(name.size() - kEnding.size());
      if (name == "lists") continue;
    }
    names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::vector<std::string> codes() { return names_in(directory(), true); }
std::vector<std::string> families(const std::string& code) {
  return names_in(directory() / code, false);
}

std::string own_code_note() {
  const Json measured = read(directory() / "other_code.json");
  return fmt::format(
      "calls: those of foretrace's own train.py. {} steps of other people's code took longer than "
      "they predict: {} % in "
      "the median, {} % for a tenth; 'code:' has other people's\n",
      measured.at("steps").get<int>(), measured.at("median").get<int>(),
      measured.at("ninetieth").get<int>());
}

Style::Style(const std::string& code, const std::string& family)
    : family_(read(directory() / code / (family + std::string{kEnding}))),
      lists_(read(directory() / code / ("lists" + std::string{kEnding}))),
      file_{fmt::format("scenarios/styles/{}/{}", code, family)} {}

std::string Style::beyond(const Asked& asked) const {
  std::vector<std::string> said;
  for (const auto& [symbol, range] : family_.at("from").items()) {
    const std::int64_t size = asked.sizes.at(symbol), low = range.at(0).get<std::int64_t>(),
                       high = range.at(1).get<std::int64_t>();
    if (size < low || size > high)
      said.push_back(fmt::format("{} of {} ({} to {})", symbol, size, low, high));
  }
  return fmt::format("{}", fmt::join(said, ", "));
}

std::string Style::learned_from() const {
  const Json& learned = family_.at("learned");
  return fmt::format("torch {} and transformers {}", learned.at("torch").get<std::string>(),
                     learned.at("packages").value("transformers", "?"));
}

std::string Style::record_text(const Asked& asked) const {
  const std::int64_t more = asked.layers - fewest_layers();
  const Formulas formulas{family_.at("formulas"), asked.sizes};
  std::vector<Shape> parameters;
  for (const Json& shape : repeated(family_.at("parameters"), more))
    parameters.push_back(formulas.filled(shape).get<Shape>());
  const Json& variant =
      family_.at("variants").at(asked.precision + (asked.recomputes ? "/recompute" : ""));
  const Json& learned = family_.at("learned");
  const Json header{
      {"foretrace_calls", 1},
      {"torch", learned.at("torch")},
      {"cuda", learned.at("cuda")},
      {"depth", "style"},
      {"rank", 0},
      {"world_size", 1},
      {"device", learned.at("device")},
      {"packages", learned.at("packages")},
      {"host", {{"torch_loop_ns", kLoopNs}, {"python_loop_ns", kLoopNs}}},
      {"assumptions",
       Json::array({fmt::format("calls as {} make them, learned from captures", learned_from())})}};
  RecordWriter writer{header.dump() + "\n", kLoopNs};
  writer.line({{"k", "begin"}, {"region", "step"}, {"instance", 0}, {"t", 0}});
  writer.part(repeated(variant.at("calls"), more), family_.at("names"), formulas, asked.layers, {});

  Sum memory = sum_of(variant.at("base"), more, formulas);
  const Sum passes = sum_of(variant.at("memory"), more, formulas);
  memory.top = std::max(memory.now, memory.now + passes.top);
  memory.now += passes.now;

  const auto tensors = static_cast<std::int64_t>(parameters.size());
  std::int64_t bytes = 0, chunks = 1;
  for (const Shape& shape : parameters) {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    constexpr std::int64_t kChunk = 65536;  // kChunkSize of PyTorch's ForeachFunctors.cuh
    chunks = std::max(chunks, (elements + kChunk - 1) / kChunk);
    bytes += rounded(elements * (asked.precision == "autocast" ? 4 : 2));
  }
  double rest = 0;
  const auto list_part = [&](const std::string& name) {
    const Json& part = lists_.at("parts").at(name + "/" + asked.precision);
    const Formulas counts{part.at("formulas"), {{"T", tensors}, {"C", chunks}}};
    writer.part(part.at("calls"), lists_.at("names"), counts, tensors, parameters);
    const std::array<std::int64_t, 4> features{bytes, kBlock * tensors, 4 * tensors * chunks,
                                               kBlock};
    const auto of = [&](const char* key) {
      std::int64_t all = 0;
      for (std::size_t i = 0; i < features.size(); ++i)
        all += features[i] * part.at(key).at(i).get<std::int64_t>();
      return all;
    };
    memory.top = std::max(memory.top, memory.now + of("peak"));
    memory.now += of("left");
    const Json& behind = part.at("rest");
    rest = behind.is_array() ? behind.at(0).get<double>() +
                                   behind.at(1).get<double>() * static_cast<double>(tensors)
                             : behind.get<double>();
  };
  if (asked.clips) list_part("clip");
  list_part(asked.optimizer);
  writer.pass(rest);
  writer.line({{"k", "end"},
               {"region", "step"},
               {"instance", 0},
               {"t", writer.at()},
               {"memory", {{"allocated", {0, memory.top, 0}}}},
               {"counts",
                {{"cudaGetDevice", std::llround(variant.at("asked").get<double>() *
                                                static_cast<double>(writer.asking()))}}}});
  return writer.take();
}

captured::Record Style::record(const Asked& asked) const {
  return captured::parse_record(record_text(asked), file_);
}

}  // namespace foretrace::styles
