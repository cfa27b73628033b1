// Order statistics, defined once for harness, fit and reports: quantiles as numpy's default
// (linear) method computes them. Boost.Math 1.74's median absolute deviation is wrong, hence ours.
#pragma once

#include <span>
#include <vector>

namespace foretrace {

/// The p-quantile (0 <= p <= 1) by linear interpolation at position p * (n - 1) of the sorted
/// values. `values` must not be empty and may be in any order.
double quantile(std::span<const double> values, double p);

/// Several at once, in ascending order of p: less work than one by one. Reorders the values.
std::vector<double> quantiles(std::vector<double>& values, std::span<const double> ascending);

double median(std::span<const double> values);

/// The median of |value - median(values)|, not scaled.
double median_absolute_deviation(std::span<const double> values);

/// (value - reference) / reference
double relative_difference(double value, double reference);

}  // namespace foretrace
