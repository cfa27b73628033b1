// What an engine's time goes on, and what the requests would see were that quicker.
#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/serving/served_facts.h"
#include "sim/applications/serving/predict.h"

namespace foretrace::serving {

/// Seconds, by what decides them.
struct Parts {
  double memory = 0, arithmetic = 0, links = 0, starts = 0, host = 0;
  double sum() const { return memory + arithmetic + links + starts + host; }
};

/// Of each region of the iterations' timeline. A kernel's time belongs to the parameters that
/// decide it; what no kernel runs in, to the host.
std::vector<Parts> parts_of(const Timeline& iterations);

/// Shares of the engines' time, of iterations like the nearest of those that were simulated: of the
/// engines that are as `serving` says, the last ones.
std::vector<ServingFacts::Share> limits_of(const Serving& serving, const Predicted& predicted,
                                           const Timeline& iterations);

/// The same requests where a part takes half the time, or with twice as many engines. Of engines of
/// two kinds (`kinds_of`) there are none. `iterations`: whose `times` these are.
std::vector<ServingFacts::WhatIf> what_ifs(const std::vector<Serving>& kinds,
                                           const Predicted& predicted, const Machine& machine,
                                           const std::vector<std::vector<RegionTime>>& times,
                                           const Timeline& iterations);

}  // namespace foretrace::serving
