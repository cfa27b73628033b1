// Whether layouts of one model on one machine are predicted in the order in which they were
// measured: what somebody who chooses by a prediction would have got.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace foretrace::sim {

struct LayoutTrial {
  std::string group;  ///< what stays the same: the model, the machine
  std::string id;
  double measured = 0, predicted = 0;  ///< seconds of a sequence
};

struct LayoutRanks {
  std::string group;
  std::size_t layouts = 0;
  double correlation = 0;  ///< Spearman's, of both orders; equal times share their rank
  std::string chosen;      ///< the id that is fastest by prediction
  std::string best;        ///< the id that is fastest as measured
  double excess = 0;       ///< measured time of the chosen one over the best one's, minus 1
};

/// Of each group that has `least` layouts or more, by name. Empty where there is none.
std::vector<LayoutRanks> layout_ranks(const std::vector<LayoutTrial>& trials,
                                      std::size_t least = 5);

}  // namespace foretrace::sim
