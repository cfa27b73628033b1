// All points of a sweep that are not done yet, each in a forked child.
#pragma once

#include <functional>

#include "sim/applications/sweep/ledger.h"

namespace foretrace::sweep {

/// After each row: how many are done of all.
using Progress = std::function<void(std::size_t done, std::size_t all)>;

/// At most `at_once` children; of several processes each does its share. A child that dies leaves a
/// row that says so. Call before any engine exists in this process.
void run(const Sweep& sweep, const std::vector<Point>& points, Share share, std::size_t at_once,
         Ledger& ledger, const Progress& progress);

}  // namespace foretrace::sweep
