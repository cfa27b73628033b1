// The words that a scenario has for models, sharding and recomputation: the reader takes them, a
// plan writes them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/architecture/config.h"
#include "scenarios/training_step/description.h"

namespace foretrace::training {

/// The first word of each value is the one that is written.
template <class T>
using Words = std::vector<std::pair<std::string, T>>;

inline const Words<Sharding>& sharding_words() {
  static const Words<Sharding> kWords{{"none", Sharding::None},   {"ddp", Sharding::Ddp},
                                      {"zero1", Sharding::Zero1}, {"zero2", Sharding::Zero2},
                                      {"fsdp", Sharding::Fsdp},   {"zero3", Sharding::Fsdp}};
  return kWords;
}

inline const Words<ContextExchange>& exchange_words() {
  static const Words<ContextExchange> kWords{{"all_gather", ContextExchange::AllGather},
                                             {"send_recv", ContextExchange::SendRecv}};
  return kWords;
}

inline const Words<Recompute>& recompute_words() {
  static const Words<Recompute> kWords{{"none", Recompute::None},
                                       {"selective", Recompute::Selective},
                                       {"products", Recompute::Products},
                                       {"full", Recompute::Full}};
  return kWords;
}

template <class T>
const std::string& word_of(const Words<T>& words, T value) {
  return std::ranges::find(words, value, &std::pair<std::string, T>::second)->first;
}

}  // namespace foretrace::training
