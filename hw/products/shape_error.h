// Why one product of a list cannot be measured, while the others can.
#pragma once

#include <stdexcept>

namespace foretrace::hw {

class ShapeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace foretrace::hw
