#include "scenarios/serving/read_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::serving {
namespace {

constexpr std::int64_t kMostTokens = 10'000'000;
constexpr std::int64_t kMostRequests = 1'000'000;
constexpr std::int64_t kMostMade = std::int64_t{1} << 26;  // tokens, each with its time: 512 MiB
constexpr std::int64_t kMostDrawn = 2'000'000;             // of gaps
constexpr std::int64_t kMostNs = 1'000'000'000'000'000;    // 11 days

/// "12.5" times 10^places in whole numbers; empty where it is none, or has more places.
std::optional<std::int64_t> scaled(std::string_view text, int places) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  std::string part{text.substr(std::min(point + 1, text.size()))};
  if (part.size() > static_cast<std::size_t>(places) || (point < text.size() && part.empty())) {
    return std::nullopt;
  }
  part.resize(static_cast<std::size_t>(places), '0');
  const std::string digits = std::string{whole} + part;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = error == std::errc{} && end == digits.data() + digits.size() &&
                         !whole.empty() && whole.front() != '-';
  return is_number ? std::optional{value} : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  while (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

/// 1/rate of "4/s", "30/min", "0.5/h", in nanoseconds rounded down.
std::int64_t read_gap(Reader& reader, const YamlNode& node) {
  const std::string_view text = node.text;
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto thousandths = scaled(trimmed(text.substr(0, slash)), 3);
  const std::string_view unit = trimmed(text.substr(std::min(slash + 1, text.size())));
  const std::int64_t seconds = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  if (!thousandths || *thousandths < 1 || seconds == 0 || *thousandths > kMostNs) {
    reader.problems.error(node, fmt::format("'{}' is no rate", node.text),
                          "requests per s, min or h with up to three decimal places: 4/s, 30/min");
    return 1;
  }
  return seconds * 1'000'000'000'000 / *thousandths;
}

Law read_law(Reader& reader, const YamlNode* node) {
  Law law;
  if (node == nullptr) return law;
  MapReader map{*node, "a length", reader.problems};
  if (const YamlNode* mean = map.required("mean")) {
    law.mean = read_constant(reader, *mean, kNumber, 1, kMostTokens);
  }
  if (const YamlNode* spread = map.optional("spread")) {
    law.spread_ppm = read_share(reader, *spread, 0, 10'000'000);
  }
  map.finish();
  return law;
}

/// Three whole numbers of a line; empty where it is something else.
std::optional<Arrival> arrival_of(std::string_view line) {
  std::int64_t values[3] = {};
  for (int i = 0; i < 3; ++i) {
    const std::size_t comma = std::min(line.find(','), line.size());
    const auto value = scaled(trimmed(line.substr(0, comma)), 0);
    if (!value || (i < 2) != (comma < line.size())) return std::nullopt;
    values[i] = *value;
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  if (values[0] > kMostNs / 1000 || values[1] < 1 || values[2] < 1) return std::nullopt;
  if (std::max(values[1], values[2]) > kMostTokens) return std::nullopt;
  return Arrival{values[0] * 1000, values[1], values[2]};
}

/// Lines `arrival_us,prompt,output` behind a line that says so; what begins with # is a comment.
std::vector<Arrival> read_trace(Reader& reader, const YamlNode& node) {
  std::vector<Arrival> found;
  const auto path = std::filesystem::path{reader.problems.file()}.parent_path() / node.text;
  std::string text;
  try {
    text = read_text_file(path);
  } catch (const UsageError& error) {
    reader.problems.error(node, error.what());
    return found;
  }
  const auto refuse = [&](int line, std::string_view what) {
    reader.problems.error(node, fmt::format("{}:{}: {}", path.string(), line, what),
                          "the first line is arrival_us,prompt,output, others are whole numbers");
    return std::vector<Arrival>{};
  };
  bool has_header = false;
  int number = 0;
  std::int64_t made = 0;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as spreadsheets write it
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (!has_header) {
      if (line != "arrival_us,prompt,output") return refuse(number, "no header of a trace");
      has_header = true;
      continue;
    }
    const auto one = arrival_of(line);
    if (!one) return refuse(number, "no arrival with two lengths");
    if (!found.empty() && *one->at_ns < *found.back().at_ns) {
      return refuse(number, "arrivals go back in time");
    }
    if (static_cast<std::int64_t>(found.size()) == kMostRequests) {
      return refuse(number, fmt::format("more than {} requests", kMostRequests));
    }
    made += one->output;
    if (made > kMostMade) {
      return refuse(number, fmt::format("more than {} tokens of output", kMostMade));
    }
    found.push_back(*one);
  }
  if (found.empty()) return refuse(number, "no request");
  return found;
}

void read_lengths(Reader& reader, MapReader& map, Traffic& traffic) {
  traffic.prompt = read_law(reader, map.required("prompt"));
  traffic.output = read_law(reader, map.required("output"));
  if (const YamlNode* requests = map.required("requests")) {
    traffic.requests = read_constant(reader, *requests, kNumber, 1, kMostRequests);
  }
  if (const YamlNode* seed = map.optional("seed")) {
    traffic.seed =
        static_cast<std::uint64_t>(read_constant(reader, *seed, kNumber, 0, std::int64_t{1} << 53));
  }
}

/// In multiples of a half.
std::int64_t read_shape(Reader& reader, const YamlNode& node) {
  constexpr std::int64_t kMostShape = 1000;
  const auto tenths = scaled(trimmed(node.text), 1);
  if (tenths && *tenths >= 5 && *tenths % 5 == 0 && *tenths <= 10 * kMostShape) return *tenths / 5;
  reader.problems.error(node, fmt::format("'{}' is no shape", node.text),
                        "a multiple of 0.5 up to 1000; below 1 requests come in bursts");
  return 2;
}

}  // namespace

std::int64_t read_share(Reader& reader, const YamlNode& node, std::int64_t low, std::int64_t high) {
  std::string_view text = trimmed(node.text);
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.remove_suffix(1);
  const auto ppm = is_percent ? scaled(trimmed(text), 4) : std::nullopt;
  if (ppm && *ppm >= low && *ppm <= high) return *ppm;
  reader.problems.error(node,
                        fmt::format("'{}' is no percentage of {}% to {}%", node.text, low / 10'000,
                                    (high + 9'999) / 10'000),
                        "as 30%, with up to four decimal places");
  return low;
}

Traffic read_traffic(Reader& reader, const YamlNode& node) {
  MapReader map{node, "traffic", reader.problems};
  Traffic traffic;
  if (const YamlNode* kind = map.required("arrivals")) {
    traffic.arrivals = read_choice<Arrivals>(reader, *kind, "arrivals",
                                             {{"poisson", Arrivals::Poisson},
                                              {"gamma", Arrivals::Gamma},
                                              {"closed", Arrivals::Closed},
                                              {"trace", Arrivals::Trace}});
  }
  if (traffic.arrivals == Arrivals::Trace) {
    if (const YamlNode* file = map.required("file")) traffic.trace = read_trace(reader, *file);
    traffic.requests = static_cast<std::int64_t>(traffic.trace.size());
    map.finish();
    return traffic;
  }
  if (traffic.arrivals == Arrivals::Closed) {
    if (const YamlNode* many = map.required("concurrency")) {
      traffic.concurrency = read_constant(reader, *many, kNumber, 1, kMostRequests);
    }
  } else if (const YamlNode* rate = map.required("rate")) {
    traffic.mean_gap_ns = read_gap(reader, *rate);
  }
  if (traffic.arrivals == Arrivals::Gamma) {
    if (const YamlNode* shape = map.required("shape"))
      traffic.shape_halves = read_shape(reader, *shape);
  }
  read_lengths(reader, map, traffic);
  if (traffic.arrivals == Arrivals::Gamma &&
      traffic.shape_halves / 2 > std::max<std::int64_t>(1, kMostDrawn / traffic.requests)) {
    reader.problems.error(
        node,
        fmt::format("{} requests of shape {}: more than {} numbers would be drawn",
                    traffic.requests, traffic.shape_halves / 2, kMostDrawn),
        "a shape of 10 is nearly even already");
    traffic.requests = 1;
  }
  map.finish();
  if (traffic.output.mean > kMostMade / traffic.requests) {
    const YamlNode* const requests = map.optional("requests");
    reader.problems.error(
        requests != nullptr ? *requests : node,
        fmt::format("{} requests of {} tokens of output: more than {} tokens in all",
                    traffic.requests, traffic.output.mean, kMostMade),
        fmt::format("at most {} of them",
                    std::max<std::int64_t>(1, kMostMade / traffic.output.mean)));
    traffic.requests = 1;
  }
  if (traffic.mean_gap_ns > kMostNs / traffic.requests) {
    reader.problems.error(node, "these requests take longer than 11 days to arrive",
                          "a higher rate, or fewer requests");
    traffic.mean_gap_ns = 1;
  }
  return traffic;
}

}  // namespace foretrace::serving
