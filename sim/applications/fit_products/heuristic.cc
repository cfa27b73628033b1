#include "sim/applications/fit_products/heuristic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <random>
#include <span>
#include <tuple>

#include "models/cost/products/candidates.h"
#include "sim/applications/fit_products/kernel_plan.h"
#include "sim/applications/fit_products/network_fit.h"

namespace foretrace::fit_products {
namespace {

using products::kTraits;
using products::Network;

constexpr int kEpochs = 50;
constexpr std::size_t kBatch = 256;
constexpr double kRate = 5e-3;
constexpr std::size_t kJudges = 6;  // one of so many

/// One product: what it could get, and what it got.
struct Decision {
  Matrix known;  ///< a row for each plan: its traits, scaled
  std::vector<std::size_t> tile;
  Eigen::Index chosen = 0;
};

std::vector<products::Tile> tiles_of(products::Family family, const std::vector<Recorded>& choices,
                                     const products::Heuristic& known) {
  const std::size_t least = family == products::Family::Half ? 20 : 5;
  using Key = std::tuple<bool, std::int64_t, std::int64_t, std::int64_t, bool>;
  std::map<Key, std::size_t> counts;
  for (const Recorded& one : choices) {
    const products::Plan& plan = one.plan;
    ++counts[{plan.padded, plan.tile_m, plan.tile_n, plan.resident, plan.cooperative}];
  }
  std::vector<products::Tile> tiles;
  for (const auto& [key, count] : counts) {
    if (count < least) continue;
    const auto& [padded, m, n, resident, cooperative] = key;
    products::Tile tile{m, n, cooperative, 0, resident, 1, padded};
    const products::Plan plan{.tile_m = m,
                              .tile_n = n,
                              .cooperative = cooperative,
                              .resident = resident,
                              .padded = padded};
    if (const auto* before = tile_of(known, plan)) tile.slow = before->slow;
    tiles.push_back(tile);
  }
  return tiles;
}

bool same(const products::Plan& one, const products::Plan& other) {
  return one.split == products::known_split(other.split) && one.inside == other.inside;
}

/// None where the recorded plan is not among the candidates.
std::optional<Decision> decision_of(const Recorded& one, const products::Heuristic& heuristic,
                                    double sms) {
  const products::Tile* const tile = tile_of(heuristic, one.plan);
  if (tile == nullptr) return std::nullopt;
  const auto recorded = static_cast<std::size_t>(tile - heuristic.tiles.data());
  const auto candidates = products::candidates_of(one.shape, heuristic, sms);
  Decision decision;
  decision.chosen = -1;
  decision.known.resize(std::ssize(candidates), kTraits);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    decision.known.row(at) =
        Eigen::Map<const Eigen::RowVectorXf>(candidates[i].traits.data(), kTraits);
    decision.tile.push_back(candidates[i].tile);
    if (candidates[i].tile == recorded && same(candidates[i].plan, one.plan)) decision.chosen = at;
  }
  if (decision.chosen < 0) return std::nullopt;
  return decision;
}

/// The plans of some products, one behind the other.
Matrix joined(std::span<const Decision* const> decisions) {
  Eigen::Index rows = 0;
  for (const Decision* one : decisions) rows += one->known.rows();
  Matrix all{rows, static_cast<Eigen::Index>(kTraits)};
  rows = 0;
  for (const Decision* one : decisions) {
    all.middleRows(rows, one->known.rows()) = one->known;
    rows += one->known.rows();
  }
  return all;
}

/// What the network and the tiles are to learn from some products: the gradient of minus the
/// logarithm of the recorded plans' chances, in the mean.
struct Lesson {
  std::vector<float> network, tiles;
};
Lesson lesson(const Network& network, const std::vector<float>& bias,
              std::span<const Decision* const> batch) {
  const Matrix in = joined(batch);
  const Pass pass{network, in};
  Lesson result{{}, std::vector<float>(bias.size())};
  Eigen::VectorXf error = pass.values();
  Eigen::Index at = 0;
  for (const Decision* one : batch) {
    auto mine = error.segment(at, one->known.rows());
    for (std::size_t i = 0; i < one->tile.size(); ++i) {
      mine[static_cast<Eigen::Index>(i)] += bias[one->tile[i]];
    }
    mine = (mine.array() - mine.maxCoeff()).exp().matrix().eval();
    mine /= mine.sum();
    mine[one->chosen] -= 1;
    mine /= static_cast<float>(batch.size());
    for (std::size_t i = 0; i < one->tile.size(); ++i) {
      result.tiles[one->tile[i]] += mine[static_cast<Eigen::Index>(i)];
    }
    at += one->known.rows();
  }
  result.network = pass.gradient(error);
  return result;
}

/// Steps of kBatch products each, in a new order each time.
void train(std::vector<const Decision*> decisions, Network& network, std::vector<float>& bias,
           std::mt19937& random) {
  const std::size_t each = std::max<std::size_t>(1, decisions.size() / kBatch);
  Adam for_network{network.size(), each * kEpochs, kRate};
  Adam for_tiles{bias.size(), each * kEpochs, kRate};
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    std::ranges::shuffle(decisions, random);
    for (std::size_t i = 0; i < each; ++i) {
      const std::size_t from = i * kBatch;
      const std::size_t size = std::min(kBatch, decisions.size() - from);
      const Lesson learned = lesson(network, bias, std::span{decisions}.subspan(from, size));
      for_network.step(network.weights, learned.network);
      for_tiles.step(bias, learned.tiles);
    }
  }
}

/// Traits have the plans' times: the first is the logarithm of what a plan takes beside the
/// fastest.
void judge(const std::vector<const Decision*>& decisions, const Network& network,
           const std::vector<float>& bias, Learned& learned) {
  double right = 0;
  double off = 0;
  for (const Decision* one : decisions) {
    Eigen::VectorXf values = Pass{network, one->known}.values();
    for (std::size_t i = 0; i < one->tile.size(); ++i) {
      values[static_cast<Eigen::Index>(i)] += bias[one->tile[i]];
    }
    Eigen::Index best = 0;
    values.maxCoeff(&best);
    right += best == one->chosen ? 1 : 0;
    const auto apart = static_cast<double>(one->known(best, 0) - one->known(one->chosen, 0));
    off += std::abs(apart / static_cast<double>(network.scale[0])) * std::numbers::ln2;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, decisions.size()));
  learned.judged = decisions.size();
  learned.right = right / count;
  learned.off = off / count;
}

}  // namespace

Learned learn_heuristic(products::Family family, const std::vector<Recorded>& choices,
                        const products::Heuristic& known, double sms) {
  std::vector<Recorded> mine;
  std::ranges::copy_if(choices, std::back_inserter(mine),
                       [&](const Recorded& one) { return family_of(one.shape) == family; });
  Learned learned;
  learned.heuristic.speeds = known.speeds;
  learned.heuristic.tiles = tiles_of(family, mine, known);
  std::vector<Decision> decisions;
  for (const Recorded& one : mine) {
    if (auto decision = decision_of(one, learned.heuristic, sms)) {
      decisions.push_back(std::move(*decision));
    } else {
      ++learned.left_out;
    }
  }
  std::vector<const Decision*> teachers;
  std::vector<const Decision*> judges;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    (i % kJudges == 0 ? judges : teachers).push_back(&decisions[i]);
  }
  if (teachers.empty()) return learned;
  constexpr std::size_t kSample = 4000;
  constexpr std::size_t kFirst = 48, kSecond = 24;
  std::mt19937 random{1};
  Network& network = learned.heuristic.network;
  network =
      new_network(kFirst, kSecond, Network::Unit::Rectified,
                  joined(std::span{teachers}.first(std::min(kSample, teachers.size()))), random);
  for (Decision& one : decisions) one.known = scaled(network, one.known);
  std::vector<float> bias(learned.heuristic.tiles.size());
  train(teachers, network, bias, random);
  for (std::size_t i = 0; i < bias.size(); ++i) {
    learned.heuristic.tiles[i].bias = static_cast<double>(bias[i]);
  }
  learned.learned_from = teachers.size();
  judge(judges, network, bias, learned);
  return learned;
}

}  // namespace foretrace::fit_products
