// Times below which no step of a layout can be, without simulating it whole.
#pragma once

#include <cstdint>

#include "sim/applications/plan/ask.h"
#include "sim/applications/plan/predict.h"

namespace foretrace::plan {

/// Seconds: all arithmetic, with what is recomputed, at the peak of the GPUs' half precision, and
/// the idle ends of its pipeline.
double arithmetic_bound(const Question& question, const Layout& layout);

/// A few micro-batches of `layout` on GPUs that hold all layers: of the same kernels and the same
/// collectives within a layer, without stages. Layouts that differ in nothing else have the same
/// one.
struct Sample {
  Question question;
  Layout layout;
};
Sample sample_of(const Question& question, const Layout& layout);
/// Its times, and nothing that is told of them.
Wanted times_of(const Sample& sample);

/// Seconds: what a further micro-batch of its sample adds, shared by the stages, as often as the
/// step has micro-batches and idle ends of its pipeline.
double pass_bound(const Layout& layout, double pass_seconds);

}  // namespace foretrace::plan
