#include "models/products/learned.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/words.h"

namespace foretrace::products {
namespace {

using Json = nlohmann::ordered_json;

/// A field of Speeds by its name: those that time a plan for the library's choice.
struct SpeedField {
  const char* name;
  double Speeds::*at;
};
constexpr SpeedField kSpeeds[] = {{"start", &Speeds::start},
                                  {"graph_start", &Speeds::graph_start},
                                  {"arithmetic", &Speeds::arithmetic},
                                  {"arithmetic_apart", &Speeds::arithmetic_apart},
                                  {"operands", &Speeds::operands},
                                  {"results", &Speeds::results},
                                  {"straddle", &Speeds::straddle},
                                  {"across", &Speeds::across},
                                  {"cache", &Speeds::cache},
                                  {"cache_size", &Speeds::cache_size},
                                  {"memory", &Speeds::memory},
                                  {"split_start", &Speeds::split_start},
                                  {"split_rate", &Speeds::split_rate},
                                  {"split_turn", &Speeds::split_turn},
                                  {"peak", &Speeds::peak},
                                  {"residents", &Speeds::residents}};

Network network_of(const Json& json) {
  Network network;
  network.inputs = json.at("inputs");
  network.first = json.at("first");
  network.second = json.at("second");
  network.unit = json.at("unit") == "tanh" ? Network::Unit::Tanh : Network::Unit::Rectified;
  network.least = json.value("least", std::vector<float>{});
  network.most = json.value("most", std::vector<float>{});
  network.centre = json.at("centre").get<std::vector<float>>();
  network.scale = json.at("scale").get<std::vector<float>>();
  network.weights = json.at("weights").get<std::vector<float>>();
  const auto is_held = [&](const std::vector<float>& bounds) {
    return bounds.empty() || bounds.size() == network.inputs;
  };
  if (network.centre.size() != network.inputs || network.scale.size() != network.inputs ||
      network.weights.size() != network.size() || !is_held(network.least) ||
      network.least.size() != network.most.size())
    throw UsageError{"a network's lists are not as long as its inputs and layers say"};
  return network;
}

Tile tile_of(const Json& row) {
  Tile tile{row.at(0), row.at(1), row.at(2), row.at(3)};
  if (row.size() > 4) {
    tile.resident = row.at(4);
    tile.slow = row.at(5);
    tile.padded = row.at(6);
  }
  return tile;
}

/// What `make` makes of the file; its errors with the file's name.
template <typename Make>
auto read_file(const std::filesystem::path& file, const Make& make) {
  try {
    return make(Json::parse(read_text_file(file)));
  } catch (const Json::exception& error) {
    throw UsageError{fmt::format("{}: error: {}", file.string(), json_reason(error.what()))};
  } catch (const UsageError& error) {
    throw UsageError{fmt::format("{}: error: {}", file.string(), error.what())};
  }
}

/// Three digits, as they were learned: more are noise.
double rounded(double value) {
  return value == 0 || !std::isfinite(value) ? value : std::stod(fmt::format("{:.3g}", value));
}

/// Words one behind the other, in lines of at most 100 characters.
std::string list_of(const std::vector<float>& values) {
  constexpr std::size_t kWidth = 98;
  std::string text, line;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::string word = Json(rounded(static_cast<double>(values[i]))).dump();
    if (i + 1 < values.size()) word += ",";
    if (!line.empty() && line.size() + word.size() + 1 > kWidth) {
      text += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return "[" + text + line + "]";
}

std::string text_of(const Network& network) {
  std::string text = fmt::format(
      "{{\"inputs\": {},\n\"first\": {},\n\"second\": {},\n\"unit\": \"{}\",\n", network.inputs,
      network.first, network.second, network.unit == Network::Unit::Tanh ? "tanh" : "rectified");
  if (!network.least.empty())
    text += fmt::format("\"least\": {},\n\"most\": {},\n", list_of(network.least),
                        list_of(network.most));
  return text + fmt::format("\"centre\": {},\n\"scale\": {},\n\"weights\": {}}}",
                            list_of(network.centre), list_of(network.scale),
                            list_of(network.weights));
}

std::string row_of(const Tile& tile) {
  Json row{tile.m, tile.n, tile.cooperative, std::round(tile.bias * 1e3) / 1e3};
  if (tile.resident > 0) {
    row.push_back(tile.resident);
    row.push_back(std::stod(fmt::format("{:.4g}", tile.slow)));
    row.push_back(tile.padded);
  }
  return row.dump();
}

}  // namespace

std::filesystem::path learned_directory() { return data_directory() / "models/products"; }

Heuristic read_heuristic(const std::filesystem::path& file) {
  return read_file(file, [](const Json& json) {
    Heuristic heuristic;
    for (const SpeedField& speed : kSpeeds)
      heuristic.speeds.*speed.at = json.at("speeds").at(speed.name);
    for (const Json& row : json.at("tiles")) heuristic.tiles.push_back(tile_of(row));
    heuristic.network = network_of(json.at("network"));
    return heuristic;
  });
}

Residual read_residual(const std::filesystem::path& file) {
  return read_file(file, [](const Json& json) {
    Residual residual{{}, json.at("most"), json.at("longest_s")};
    for (const Json& network : json.at("networks"))
      residual.networks.push_back(network_of(network));
    return residual;
  });
}

std::string text_of(const Heuristic& heuristic, const std::string& by) {
  Json speeds = Json::object();
  for (const SpeedField& speed : kSpeeds) speeds[speed.name] = heuristic.speeds.*speed.at;
  std::string text = fmt::format("{{\"written_by\": {},\n\"speeds\": {},\n\"tiles\": [",
                                 Json("foretrace fit-products " + by).dump(), speeds.dump());
  const char* separator = "\n";
  for (const Tile& tile : heuristic.tiles) {
    text += separator + row_of(tile);
    separator = ",\n";
  }
  return text + "],\n\"network\": " + text_of(heuristic.network) + "}\n";
}

std::string text_of(const Residual& residual, const std::string& by) {
  std::string text =
      fmt::format("{{\"written_by\": {},\n\"most\": {},\n\"longest_s\": {},\n\"networks\": [",
                  Json("foretrace fit-products " + by).dump(), residual.most, residual.longest);
  const char* separator = "\n";
  for (const Network& network : residual.networks) {
    text += separator + text_of(network);
    separator = ",\n";
  }
  return text + "]}\n";
}

std::string name_of(Family family) {
  static const std::map<Family, std::string> kNames{{Family::Half, "half"},
                                                    {Family::HalfPairs, "half_pairs"},
                                                    {Family::HalfOdd, "half_odd"},
                                                    {Family::Bf16Odd, "bf16_odd"},
                                                    {Family::Float32, "float32"}};
  return kNames.at(family);
}

}  // namespace foretrace::products
