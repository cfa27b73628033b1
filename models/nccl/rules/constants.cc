#include "models/nccl/rules/constants.h"

namespace foretrace::nccl {
namespace {

// src/graph/search.cc: the speeds tried on Blackwell within a node and between nodes.
constexpr std::array kWithin27{90.F, 80.F, 70.F, 60.F, 50.F, 40.F, 30.F, 24.F, 20.F, 19.F, 18.F};
constexpr std::array kWithin29{90.F, 80.F, 70.F, 60.F, 50.F, 45.F,
                               40.F, 30.F, 24.F, 20.F, 19.F, 18.F};
constexpr std::array kBetween27{96.F,  48.F, 45.1F, 42.F, 40.F, 30.F, 24.F, 22.F,  20.F,
                                17.5F, 15.F, 12.F,  6.F,  3.F,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr std::array kBetween29{96.F,  80.F, 48.F, 45.1F, 42.F, 40.F, 30.F, 24.F,  22.F, 20.F,
                                17.5F, 15.F, 12.F, 6.F,   3.F,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr std::array kBetween30{96.F, 86.F,  80.F, 48.F, 45.1F, 42.F, 40.F, 30.F, 24.F,  22.F,
                                20.F, 17.5F, 15.F, 12.F, 6.F,   3.F,  2.4F, 1.2F, 0.24F, 0.12F};

// clang-format off: rows and columns as in NCCL's tables

constexpr Constants make_2_28_9() {
  return {
      .since = {2, 28, 8},
      // tuning.cc, baseLatencies: LL, LL128, Simple
      .base_latency = {{{6.8, 14.0, 8.4},
                        {6.6, 14.0, 8.4},  // Tree, Ring
                        {0, 0, 0},
                        {0, 0, 0},  // CollNetDirect, CollNetChain
                        {0, 0, 0},
                        {0, 0, 0},          // NVLS, NVLSTree
                        {8.0, 8.0, 8.0}}},  // PAT
      // tuning.cc, hwLatencies
      .hop_latency = {{{{{0.6, 1.25, 4.0},
                         {0.6, 1.9, 3.4},
                         {0, 0, 3.7},
                         {0, 0, 2.8},
                         {0, 0, 25},
                         {0, 0, 25},
                         {0, 0, 4.0}}},
                       {{{1.0, 1.9, 4.0},
                         {1.0, 2.5, 5.7},
                         {0, 0, 3.7},
                         {0, 0, 2.8},
                         {0, 0, 0},
                         {0, 0, 0},
                         {0, 0, 4.0}}},
                       {{{5.0, 8.5, 14},
                         {2.7, 4.0, 14.0},
                         {0, 0, 31},
                         {0, 0, 30},
                         {0, 0, 18},
                         {0, 0, 20.9},
                         {0, 0, 14}}}}},
      // tuning.cc: Volta, Ampere, Hopper, Blackwell; one node, two, more
      .ll_max =
          {{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}},
      .ring_ll128_per_channel =
          {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {2 * 36.7, 34.6, 2 * 36.7}}},
      .tree_ll128_per_channel =
          {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}},
      .tree_per_channel =
          {{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}},
      .nvls_tree_per_channel =
          {{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96.0, 43.8}}},
      .nvls_efficiency = {0, 0, 0.85F, 0.74F},
      .nvls_by_ring_ratio = true,
      .nvls_gathers_apart = true,
      .gathers_at_bus_rate = true,
      .has_nvls_gathers = true,
      .old_nvls_tree = false,
      .ring_ll_share = .5,
      .ring_ll_share_else = .5,
      .ring_ll128_alone = 0.92,
      .crosses_once_more = false,
      .alone_has_tree_latency = true,
      .pat_share = .75,
      // tuning.cc, treeCorrectionFactor: 64 B, 128 B, ...; the last column is 2.30's
      .tree_correction = {{{1,   1,   1,   1,   .9F, .8F, .7F, .7F, .7F, .7F, .6F, .5F,
                            .4F, .4F, .5F, .6F, .7F, .8F, .9F, 1,   1,   1,   1,   1},
                           {1,   1,   1,   1,   1,   .9F, .8F, .8F, .8F, .7F, .6F, .6F,
                            .6F, .6F, .6F, .6F, .8F, .9F, .9F, .9F, .9F, 1,   1,   1},
                           {.9F, .9F, .9F, .9F, .9F, .9F, .9F, .8F, .7F, .6F, .6F, .5F,
                            .5F, .5F, .5F, .6F, .7F, .8F, .7F, .7F, .8F, .9F, .9F, .9F}}},
      .corrects_nvls_tree = false,
      .speeds_within_blackwell = kWithin27,
      .speeds_between_blackwell = kBetween27,
      .min_traffic_per_channel = 16 << 10,  // enqueue.cc, scheduleCollTasksToPlan
      .p2p_ll_by_channels = false,          // enqueue.cc, addP2pToPlan
      .p2p_net_channels_by_bandwidth = false,
  };
}

// clang-format on

constexpr double& nvls_tree_net(Constants& rules) {
  return rules
      .hop_latency[index_of(Hop::Net)][index_of(Algorithm::NvlsTree)][index_of(Protocol::Simple)];
}

constexpr Constants make_2_28_7() {
  Constants rules = make_2_28_9();
  rules.since = {2, 28, 4};
  nvls_tree_net(rules) = 14;
  rules.nvls_tree_per_channel[3] = {0, 96.0, 43.1};
  return rules;
}

constexpr Constants make_2_28_3() {
  Constants rules = make_2_28_7();
  rules.since = {2, 28, 0};
  rules.ring_ll128_per_channel[3] = {2 * 36.7, 2 * 36.7, 2 * 36.7};
  return rules;
}

constexpr Constants make_2_27() {
  Constants rules = make_2_28_3();
  rules.since = {2, 27, 0};
  rules.tree_ll128_per_channel[3] = {2 * 36.7, 2 * 36.7, 2 * 29.0};
  rules.tree_per_channel[3] = {2 * 38.7, 2 * 41.4, 2 * 36.0};
  rules.nvls_by_ring_ratio = false;
  return rules;
}

// Before 2.25 NCCL had no Blackwell: its rows stay those of 2.27.
constexpr Constants make_2_24() {
  Constants rules = make_2_27();
  rules.since = {2, 24, 0};
  rules.nvls_gathers_apart = false;
  return rules;
}

constexpr Constants make_2_23() {
  Constants rules = make_2_24();
  rules.since = {2, 23, 0};
  rules.pat_share = .85;
  return rules;
}

constexpr double& tree_simple(Constants& rules, Hop hop) {
  return rules.hop_latency[index_of(hop)][index_of(Algorithm::Tree)][index_of(Protocol::Simple)];
}

constexpr Constants make_2_21() {
  Constants rules = make_2_23();
  rules.since = {2, 21, 0};
  rules.base_latency[index_of(Algorithm::Tree)][index_of(Protocol::Simple)] = 0;
  for (const Hop hop : {Hop::NvLink, Hop::Pci, Hop::Net}) tree_simple(rules, hop) = 28;
  rules.gathers_at_bus_rate = false;
  rules.ring_ll128_alone = 0.7;
  rules.crosses_once_more = true;
  rules.alone_has_tree_latency = false;
  rules.pat_share = 0;
  return rules;
}

constexpr double& nvls_hop(Constants& rules, Hop hop, Algorithm algorithm) {
  return rules.hop_latency[index_of(hop)][index_of(algorithm)][index_of(Protocol::Simple)];
}

constexpr Constants make_2_19() {
  Constants rules = make_2_21();
  rules.since = {2, 19, 0};
  nvls_hop(rules, Hop::NvLink, Algorithm::Nvls) = 23;
  nvls_hop(rules, Hop::NvLink, Algorithm::NvlsTree) = 23;
  rules.ll_max[2] = {87.7, 22.5, 19.0};
  rules.ring_ll_share = 1.0 / 4.0;
  rules.ring_ll_share_else = 1.0 / 3.0;
  return rules;
}

constexpr Constants make_2_18_3() {
  Constants rules = make_2_19();
  rules.since = {2, 18, 3};
  tree_simple(rules, Hop::NvLink) = 4;
  tree_simple(rules, Hop::Pci) = 6;
  tree_simple(rules, Hop::Net) = 14;
  nvls_hop(rules, Hop::Net, Algorithm::NvlsTree) = 19;
  rules.has_nvls_gathers = false;
  rules.old_nvls_tree = true;
  return rules;
}

constexpr Constants make_2_29() {
  Constants rules = make_2_28_9();
  rules.since = {2, 29, 0};
  rules.ring_ll128_per_channel[3] = {34.5, 34.6, 34.5};
  rules.corrects_nvls_tree = true;
  rules.speeds_within_blackwell = kWithin29;
  rules.min_traffic_per_channel = 32 << 10;
  rules.p2p_ll_by_channels = true;
  rules.p2p_net_channels_by_bandwidth = true;
  return rules;
}

constexpr Constants make_2_29_7() {
  Constants rules = make_2_29();
  rules.since = {2, 29, 4};
  rules.ring_ll128_per_channel[3] = {40.0, 40.0, 40.0};
  rules.speeds_between_blackwell = kBetween29;
  return rules;
}

constexpr Constants make_2_30() {
  Constants rules = make_2_29_7();
  rules.since = {2, 30, 0};
  rules.nvls_tree_per_channel[3] = {0, 96.0, 80.0};
  rules.speeds_between_blackwell = kBetween30;
  return rules;
}

// Newest first. Read at 2.18.3, 2.18.5, 2.19.3, 2.20.3, 2.21.5, 2.22.3, 2.23.4, 2.24.3, 2.25.1,
// 2.26.6 (src/graph/tuning.cc alone; the search and the kernels' plan
// are 2.27's), 2.27.7, 2.28.3, 2.28.7, 2.28.9, 2.29.2, 2.29.7, 2.30.7.
constexpr std::array kRules{make_2_30(),   make_2_29_7(), make_2_29(), make_2_28_9(),
                            make_2_28_7(), make_2_28_3(), make_2_27(), make_2_24(),
                            make_2_23(),   make_2_21(),   make_2_19(), make_2_18_3()};

}  // namespace

const Constants& constants_of(Version version) {
  for (const Constants& rules : kRules) {
    if (version >= rules.since) return rules;
  }
  return kRules.back();
}

}  // namespace foretrace::nccl
