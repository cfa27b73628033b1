// How a network learns: Adam's steps (Kingma and Ba 2014) along a gradient that comes back through
// it from what should change at its end.
#pragma once

#include <Eigen/Dense>
#include <random>
#include <vector>

#include "models/cost/products/network.h"

namespace foretrace::fit_products {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// With random weights, its inputs centred and scaled by the columns of `sample`.
products::Network new_network(std::size_t first, std::size_t second, products::Network::Unit unit,
                              const Matrix& sample, std::mt19937& random);
/// Rows of inputs as the first layer sees them.
Matrix scaled(const products::Network& network, const Matrix& rows);

/// A network on some rows of scaled inputs at once.
class Pass {
 public:
  Pass(const products::Network& network, const Matrix& in);

  const Eigen::VectorXf& values() const { return values_; }
  /// Of a sum over the rows whose derivative by each row's value is `error`.
  std::vector<float> gradient(const Eigen::VectorXf& error) const;

 private:
  using Rows = Eigen::Map<const Matrix>;
  using Row = Eigen::Map<const Eigen::RowVectorXf>;
  Rows rows(std::size_t from, std::size_t count, std::size_t columns) const;
  Row row(std::size_t from, std::size_t size) const;
  void forward(const Matrix& in, Rows weights, Row offsets, Matrix& out) const;
  Matrix back(const Matrix& error, const Matrix& out) const;

  const products::Network& network_;
  const Matrix& in_;
  Matrix first_, second_;
  Eigen::VectorXf values_;
};

/// The rate rises to `rate` over a fifth of the steps and falls to nothing; each step takes `decay`
/// of itself off the weights.
class Adam {
 public:
  Adam(std::size_t size, std::size_t steps, double rate, double decay = 0)
      : mean_(size), square_(size), steps_{steps}, rate_{rate}, decay_{decay} {}
  void step(std::vector<float>& weights, const std::vector<float>& gradient);

 private:
  std::vector<double> mean_, square_;
  std::size_t steps_, done_ = 0;
  double rate_, decay_;
};

}  // namespace foretrace::fit_products
