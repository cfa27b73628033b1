#include "sim/fit_products/learned_text.h"

#include <fmt/format.h>

#include <map>

namespace foretrace::fit_products {
namespace {

using products::Family;

const std::map<Family, std::string>& names() {
  static const std::map<Family, std::string> kNames{{Family::Half, "half"},
                                                    {Family::HalfPairs, "half_pairs"},
                                                    {Family::HalfOdd, "half_odd"},
                                                    {Family::BrainOdd, "brain_odd"},
                                                    {Family::Float32, "float32"}};
  return kNames;
}

/// Words one behind the other, in lines of at most 100 characters.
std::string filled(const std::vector<std::string>& words) {
  constexpr std::size_t kWidth = 98;
  std::string text;
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty() && line.size() + word.size() + 2 > kWidth) {
      text += "    " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word + ",";
  }
  return text + "    " + line + "\n";
}

std::string numbers(const std::vector<float>& values) {
  std::vector<std::string> words;
  for (const float value : values) {
    std::string word = fmt::format("{:.3g}", value);
    if (word.find_first_of(".e") == std::string::npos) word += ".";
    words.push_back(word + "F");
  }
  return filled(words);
}

/// A braced Network.
std::string network_text(const products::Network& network) {
  const std::string held = network.least.empty()
                               ? ""
                               : fmt::format(".least = {{\n{}  }}, .most = {{\n{}  }}, ",
                                             numbers(network.least), numbers(network.most));
  return fmt::format(
      "{{.inputs = {}, .first = {}, .second = {}, .unit = Network::Unit::{}, {}.centre = {{\n{}  "
      "}}, "
      ".scale = {{\n{}  }}, .weights = {{\n{}  }}}}",
      network.inputs, network.first, network.second,
      network.unit == products::Network::Unit::Tanh ? "Tanh" : "Rectified", held,
      numbers(network.centre), numbers(network.scale), numbers(network.weights));
}

std::string file(const std::string& folder, const std::string& by, const std::string& function,
                 const std::string& body) {
  return fmt::format(
      "// Written by `foretrace fit-products {}`.\n"
      "// Weights, one after the other: nobody reads them, and a network stays in one file.\n"
      "// clang-format off\n"
      "#include \"models/cost/products/{}/recorded.h\"\n\n"
      "namespace foretrace::products::recorded {{\n\n"
      "{} {{\n{}}}\n\n"
      "}}  // namespace foretrace::products::recorded\n",
      by, folder, function, body);
}

}  // namespace

std::string name_of(Family family) { return names().at(family); }

std::string taste_file(const std::string& name, const products::Taste& taste,
                       const std::string& by) {
  std::vector<std::string> tiles;
  for (const products::Tile& tile : taste.tiles) {
    std::string word =
        fmt::format("{{{}, {}, {}, {:.3f}", tile.m, tile.n, tile.cooperative, tile.liked);
    if (tile.resident > 0) {
      word += fmt::format(", {}, {:.4g}, {}", tile.resident, tile.slow, tile.padded);
    }
    tiles.push_back(word + "}");
  }
  return file("taste", by, fmt::format("Taste {}()", name),
              fmt::format("  return {{.tiles = {{\n{}  }}, .network = {}}};\n", filled(tiles),
                          network_text(taste.network)));
}

std::string losses_file(const std::string& name, const std::vector<products::Network>& networks) {
  std::string body = "  std::vector<Network> networks;\n";
  for (const products::Network& network : networks) {
    body += fmt::format("  networks.push_back({});\n", network_text(network));
  }
  return file("losses", "--losses: what cuBLAS 13.1's kernels take beside the formula",
              fmt::format("std::vector<Network> {}_losses()", name), body + "  return networks;\n");
}

}  // namespace foretrace::fit_products
