// What all families of the transfer's table share: which rows count, how ratios are searched, and
// how what is left is judged.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "sim/applications/transfer/transfer.h"

namespace foretrace::transfer {

inline constexpr double kLeastUs = 10;      // below, the gaps of the host and of graphs decide
inline constexpr std::size_t kEnough = 50;  // rows of a GPU that one may learn from

/// The `share` quantile of values, which this sorts.
double quantile(std::vector<double>& values, double share);

/// Of errors log(predicted / measured): the mean size, large ones cut, and a third of the 90th
/// percentile.
double loss_of(std::vector<double>& errors);

/// The search of Hooke and Jeeves, from `begin` on: along one value after the other, then once more
/// the way that all of them have gone; by smaller steps where nothing helps. `loss` may bound what
/// it is given.
std::vector<double> search(std::vector<double> begin,
                           const std::function<double(std::vector<double>&)>& loss,
                           int most_turns = kMostTurns);

/// An H200 with the ratios of models/machines/kinds/search_begins.yaml.
Machine where_searches_begin();

/// What is left of the errors of one GPU: log(predicted / measured).
struct Errors {
  std::string gpu, precision;
  std::vector<double> errors;
};

/// So far off are 82 % of the rows of the GPUs with enough of them, but one.
double band_of(const std::vector<Errors>& all, const std::string& precision,
               const std::string& but = {});

/// Sorts nothing of `one`, which has errors.
Judged judged_of(const Errors& one, double band);

}  // namespace foretrace::transfer
