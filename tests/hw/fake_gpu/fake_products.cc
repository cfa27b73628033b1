// A stand-in for the GPU that `foretrace-hw products` measures: a product takes 1 us for each
// 10^9 floating-point operations rested, a tenth more sustained. m = 13 is refused. Every product
// has one kernel, called tile.
#include <fmt/format.h>

#include "hw/products/choices.h"
#include "hw/products/product_meter.h"
#include "hw/products/shape_error.h"
#include "reports/timeline/write_file.h"

namespace foretrace::hw {

class ProductMeter::Impl {
 public:
  ProductRun run{"fake", 132, "0.0.0", false, 0};
};

ProductMeter::ProductMeter(const MeterOptions& options, const std::vector<Shape>&)
    : impl_{std::make_unique<Impl>()} {
  impl_->run.rotated = options.rotated;
  impl_->run.rest_ms = options.rest_ms;
}
ProductMeter::~ProductMeter() = default;

const ProductRun& ProductMeter::run() const { return impl_->run; }

std::vector<ProductMeasurement> ProductMeter::measure(const Shape& shape,
                                                      const std::vector<Contents>& contents) {
  if (shape.m == 13) throw ShapeError{"not supported"};
  std::vector<ProductMeasurement> rows;
  for (const Contents what : contents) {
    ProductMeasurement row;
    row.contents = what;
    row.products_per_timing = 1;
    row.times.burst_us = shape.flop() / 1e9;
    row.times.sustained_us = row.times.burst_us * 1.1;
    row.choice_status = "CUBLAS_STATUS_SUCCESS";
    rows.push_back(row);
  }
  return rows;
}

ListedChoices list_choices(const std::vector<Shape>& shapes, const ListOptions& options,
                           const std::filesystem::path& output) {
  ListedChoices listed;
  std::string text = "# fake\n" + std::string{kShapeColumns} + ",kernels,kernel" +
                     (options.timed ? ",operands,us" : "") + "\n";
  for (const Shape& shape : shapes) {
    if (shape.m == 13) {
      ++listed.refused;
    } else {
      ++listed.products;
      text += key_of(shape) + ",1,tile" +
              (options.timed ? fmt::format(",{},7", options.rotated ? "rotated" : "same") : "") +
              "\n";
    }
  }
  write_file(output, text, Over::Anything);
  return listed;
}

}  // namespace foretrace::hw
