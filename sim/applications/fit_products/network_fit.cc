#include "sim/applications/fit_products/network_fit.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace foretrace::fit_products {
namespace {

using products::Network;

void put(std::vector<float>& result, std::size_t from, const Matrix& values) {
  std::copy_n(values.data(), values.size(), result.begin() + static_cast<std::ptrdiff_t>(from));
}

Eigen::Index index(std::size_t value) { return static_cast<Eigen::Index>(value); }

}  // namespace

Network new_network(std::size_t first, std::size_t second, Network::Unit unit, const Matrix& sample,
                    std::mt19937& random) {
  constexpr double kLeast = 0.05;  // of a deviation
  Network network{.inputs = static_cast<std::size_t>(sample.cols()),
                  .first = first,
                  .second = second,
                  .unit = unit,
                  .least = {},
                  .most = {},
                  .centre = {},
                  .scale = {},
                  .weights = {}};
  for (Eigen::Index i = 0; i < sample.cols(); ++i) {
    const Eigen::VectorXd column = sample.col(i).cast<double>();
    const double mean = column.mean();
    const double deviation = std::sqrt((column.array() - mean).square().mean());
    network.centre.push_back(static_cast<float>(mean));
    network.scale.push_back(static_cast<float>(1 / std::max(kLeast, deviation)));
  }
  network.weights.resize(network.size());
  const auto spread = [&](std::size_t from, std::size_t to, std::size_t inputs) {
    const auto most = static_cast<float>(1 / std::sqrt(static_cast<double>(inputs)));
    std::uniform_real_distribution<float> draw{-most, most};
    for (std::size_t i = from; i < to; ++i) network.weights[i] = draw(random);
  };
  spread(0, network.second_weights(), network.inputs);
  spread(network.second_weights(), network.sum_weights(), first);
  spread(network.sum_weights(), network.direct_weights(), second);
  return network;
}

Matrix scaled(const Network& network, const Matrix& rows) {
  const Eigen::Map<const Eigen::RowVectorXf> centre{network.centre.data(), rows.cols()};
  const Eigen::Map<const Eigen::RowVectorXf> scale{network.scale.data(), rows.cols()};
  return ((rows.rowwise() - centre).array().rowwise() * scale.array()).matrix();
}

Pass::Rows Pass::rows(std::size_t from, std::size_t count, std::size_t columns) const {
  return {network_.weights.data() + from, index(count), index(columns)};
}
Pass::Row Pass::row(std::size_t from, std::size_t size) const {
  return {network_.weights.data() + from, index(size)};
}

void Pass::forward(const Matrix& in, Rows weights, Row offsets, Matrix& out) const {
  out.noalias() = in * weights.transpose();
  out.rowwise() += offsets;
  if (network_.unit == Network::Unit::Tanh) {
    out = out.array().tanh().matrix();
  } else {
    out = out.cwiseMax(0);
  }
}

/// Through the units of a layer whose values were `out`.
Matrix Pass::back(const Matrix& error, const Matrix& out) const {
  if (network_.unit == Network::Unit::Tanh) {
    return (error.array() * (1 - out.array().square())).matrix();
  }
  return (out.array() > 0).select(error, 0);
}

Pass::Pass(const Network& network, const Matrix& in) : network_{network}, in_{in} {
  const Network& n = network_;
  forward(in, rows(0, n.first, n.inputs), row(n.first_offsets(), n.first), first_);
  forward(first_, rows(n.second_weights(), n.second, n.first), row(n.second_offsets(), n.second),
          second_);
  values_ = second_ * row(n.sum_weights(), n.second).transpose() +
            in * row(n.direct_weights(), n.inputs).transpose();
  values_.array() += n.weights[n.offset()];
}

std::vector<float> Pass::gradient(const Eigen::VectorXf& error) const {
  const Network& n = network_;
  std::vector<float> result(n.size());
  result[n.offset()] = error.sum();
  put(result, n.direct_weights(), error.transpose() * in_);
  put(result, n.sum_weights(), error.transpose() * second_);
  const Matrix at_second = back(error * row(n.sum_weights(), n.second), second_);
  put(result, n.second_weights(), at_second.transpose() * first_);
  put(result, n.second_offsets(), at_second.colwise().sum());
  const Matrix at_first = back(at_second * rows(n.second_weights(), n.second, n.first), first_);
  put(result, 0, at_first.transpose() * in_);
  put(result, n.first_offsets(), at_first.colwise().sum());
  return result;
}

void Adam::step(std::vector<float>& weights, const std::vector<float>& gradient) {
  constexpr double kMean = 0.9, kSquare = 0.999, kSmall = 1e-8, kRise = 0.2;
  ++done_;
  const double share = static_cast<double>(done_) / static_cast<double>(steps_);
  const double fall = (share - kRise) / (1 - kRise);
  const double now =
      rate_ * (fall < 0 ? share / kRise : 0.5 * (1 + std::cos(std::numbers::pi * fall)));
  const double of_mean = 1 - std::pow(kMean, static_cast<double>(done_));
  const double of_square = 1 - std::pow(kSquare, static_cast<double>(done_));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto one = static_cast<double>(gradient[i]);
    mean_[i] = kMean * mean_[i] + (1 - kMean) * one;
    square_[i] = kSquare * square_[i] + (1 - kSquare) * one * one;
    const double by = mean_[i] / of_mean / (std::sqrt(square_[i] / of_square) + kSmall);
    weights[i] -= static_cast<float>(now * (by + decay_ * static_cast<double>(weights[i])));
  }
}

}  // namespace foretrace::fit_products
