#include "hw/emulated/dnn/workspace.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "hw/emulated/device.h"
#include "hw/emulated/dnn/descriptor.h"

namespace foretrace::emulated {
namespace {

// Numbers of cudnnBackendAttributeName_t: of each direction its filter, its image and its output.
struct Direction {
  int operation;  // cudnnBackendDescriptorType_t
  const char* call;
  int filter, image, output;
};
constexpr Direction kDirections[] = {
    {10, "forward", 703, 704, 705}, {12, "data", 709, 710, 711}, {11, "weight", 715, 716, 717}};
constexpr int kTensorType = 901, kSizes = 902, kStrides = 903, kConvolution = 1, kSteps = 103;

struct Call {
  std::string kind;  // direction, type, layout, and all sizes but the batch
  double batch = 1;
  double bytes = 0;  // of image, filter and output
};

// Sizes: batch, channels in, rows, channels out, taps, stride, groups.
Call call_of(const std::string& direction, const std::string& type, bool last,
             const std::array<double, 7>& sizes) {
  const auto [n, c, size, o, k, stride, groups] = sizes;
  const double width = type == "bf16" || type == "f16" ? 2 : 4, rows = std::ceil(size / stride);
  Call call{direction + (width == 2 ? " half" : " single") + (last ? " last" : " first"),
            std::max(1.0, n), 0};
  for (size_t i = 1; i < sizes.size(); ++i)
    call.kind += " " + std::to_string(static_cast<int64_t>(sizes[i]));
  call.bytes = width * (n * c * size * size + o * c / groups * k * k + n * o * rows * rows);
  return call;
}

struct Measured {
  Call call;
  double workspace = 0;
};

std::vector<Measured> read_measured() {
  std::vector<Measured> rows;
  const char* const path = std::getenv("FORETRACE_CONVOLUTIONS");
  if (path == nullptr) return rows;
  std::istringstream file(contents(path));
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#' || line.starts_with("call,")) continue;
    std::istringstream fields(line);
    std::array<std::string, 11> of;
    size_t count = 0;
    while (count < of.size() && std::getline(fields, of[count], ',')) ++count;
    if (count < of.size()) refuse(std::string(path) + ": a row lacks columns: " + line);
    const auto number = [&](size_t i) { return std::strtod(of[i].c_str(), nullptr); };
    rows.push_back(
        {call_of(of[0], of[1], of[2] == "nhwc",
                 {number(3), number(4), number(5), number(6), number(7), number(8), number(9)}),
         number(10)});
  }
  return rows;
}

// Another layer's says little: cuDNN chooses its kernels by all of the sizes.
int64_t of_the_same_layer(const Call& asked) {
  static const auto* const measured = new std::vector<Measured>(read_measured());
  const Measured* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Measured& one : *measured) {
    if (one.call.kind != asked.kind) continue;
    const double away = std::abs(std::log2(one.call.batch / asked.batch));
    if (away >= least) continue;
    least = away;
    nearest = &one;
  }
  if (nearest == nullptr || nearest->call.bytes <= 0) return 0;
  return static_cast<int64_t>(nearest->workspace * asked.bytes / nearest->call.bytes);
}

}  // namespace

int64_t workspace_of(const Descriptor& plan) {
  const Descriptor* const graph = graph_of(plan);
  if (graph == nullptr) return 0;
  for (const Descriptor* const operation : operations_of(*graph)) {
    for (const Direction& direction : kDirections) {
      if (operation->type != direction.operation) continue;
      const auto filters = descriptors(*operation, direction.filter),
                 images = descriptors(*operation, direction.image);
      if (filters.empty() || images.empty()) return 0;
      const auto w = integers(*filters[0], kSizes), x = integers(*images[0], kSizes),
                 apart = integers(*images[0], kStrides);
      if (w.size() != 4 || x.size() != 4 || apart.size() != 4 || w[1] <= 0) return 0;
      int64_t stride = 1;
      for (const auto& [number, attribute] : operation->attributes) {
        for (const Descriptor* const part : descriptors(*operation, number)) {
          if (part->type != kConvolution) continue;
          if (const auto steps = integers(*part, kSteps); !steps.empty())
            stride = std::max<int64_t>(1, steps[0]);
        }
      }
      const auto real = [](int64_t value) { return static_cast<double>(value); };
      return of_the_same_layer(call_of(direction.call,
                                       dnn_type_word(word(*images[0], kTensorType, 0)),
                                       apart[1] == 1 && x[1] > 1,
                                       {real(x[0]), real(x[1]), real(x[2]), real(w[0]), real(w[2]),
                                        real(stride), real(x[1] / w[1])}));
    }
  }
  return 0;
}

}  // namespace foretrace::emulated
