#include "hw/products/product_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::hw {
namespace {

constexpr const char* kRest =
    ",contents,operands,family,part,note,gpu,sms,cublas,rest_ms,timed_by,products_per_timing,"
    "burst_us,burst_timings,sustained_us,sustained_timings,sustained_from_ms,load_ms,burst_tflops,"
    "sustained_tflops,burst_sm_clock_mhz,burst_power_w,sustained_sm_clock_mhz,sustained_power_w,"
    "sustained_clock_limits_mask,kernels,kernel_names,kernel,grid_x,grid_y,grid_z,block_x,block_y,"
    "block_z,cluster_x,cluster_y,cluster_z,dynamic_shared_bytes,static_shared_bytes,"
    "registers_per_thread,blocks_per_sm,lt_status,lt_algorithm,lt_tile,lt_stages,lt_cluster_shape,"
    "lt_inner_shape,lt_split_k,lt_reduction_scheme,lt_swizzle,lt_custom_option,lt_waves,"
    "lt_workspace_bytes";
constexpr std::size_t kKeyCells = 11;  // the shape's nine, contents, operands
constexpr std::size_t kChoiceCells = 11;

std::string key_with(const std::string& shape, const char* contents, bool rotated) {
  return fmt::format("{},{},{}", shape, contents, rotated ? "rotated" : "same");
}

std::string optional_cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}", *value) : "";
}

std::string kernel_cells(const std::vector<KernelLaunch>& kernels) {
  if (kernels.empty()) return "0" + std::string(15, ',');
  std::string names;
  for (const KernelLaunch& kernel : kernels) names += (names.empty() ? "" : "+") + kernel.name;
  const KernelLaunch& main = main_kernel(kernels);
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", kernels.size(), cell(names),
                     cell(main.name), main.grid[0], main.grid[1], main.grid[2], main.block[0],
                     main.block[1], main.block[2], main.cluster[0], main.cluster[1],
                     main.cluster[2], main.dynamic_shared_bytes, main.static_shared_bytes,
                     main.registers, main.blocks_per_sm);
}

std::string choice_cells(const std::optional<LtChoice>& choice) {
  if (!choice) return std::string(kChoiceCells - 1, ',');
  const LtChoice& c = *choice;
  return fmt::format("{},{},{},{},{},{},{},{},{},{:.4f},{}", c.algorithm, c.tile, c.stages,
                     c.cluster_shape, c.inner_shape, c.split_k, c.reduction_scheme, c.swizzle,
                     c.custom_option, c.waves, c.workspace_bytes);
}

}  // namespace

std::string cell(std::string text) {
  for (char& c : text) {
    if (c == ',' || c == '\n' || c == '\r' || c == '"') c = ';';
  }
  return text;
}

std::string name_of(Contents contents) { return contents == Contents::Zeros ? "zeros" : "random"; }

const KernelLaunch& main_kernel(const std::vector<KernelLaunch>& kernels) {
  return *std::ranges::max_element(kernels, {}, [](const KernelLaunch& kernel) {
    return kernel.dynamic_shared_bytes + kernel.static_shared_bytes;
  });
}

std::string product_header() { return std::string{kShapeColumns} + kRest; }

std::string product_row(const ProductRun& run, const Shape& shape, const ProductMeasurement& row) {
  const LoadTimes& t = row.times;
  std::string line = key_with(key_of(shape), name_of(row.contents).c_str(), run.rotated);
  line += fmt::format(",{},{},{},{},{},{},{:g},{},{}", cell(shape.family), cell(shape.part),
                      cell(shape.note), cell(run.gpu), run.sm_count, cell(run.cublas), run.rest_ms,
                      row.by_graph ? "graph" : "stream", row.products_per_timing);
  line +=
      fmt::format(",{:.4f},{},{:.4f},{},{:.1f},{:.1f},{:.4g},{:.4g}", t.burst_us, t.burst_timings,
                  t.sustained_us, t.sustained_timings, t.sustained_from_ms, t.load_ms,
                  tflops(shape.flop(), t.burst_us), tflops(shape.flop(), t.sustained_us));
  line += fmt::format(",{},{},{},{},{}", optional_cell(row.burst.sm_clock_mhz),
                      optional_cell(row.burst.power_w), optional_cell(row.sustained.sm_clock_mhz),
                      optional_cell(row.sustained.power_w),
                      row.sustained.limits ? fmt::format("{:#x}", *row.sustained.limits) : "");
  line += fmt::format(",{},{},{}", kernel_cells(row.kernels), cell(row.choice_status),
                      choice_cells(row.choice));
  return line;
}

ProductTable::ProductTable(std::filesystem::path file) : file_{std::move(file)} {
  bool is_new = true;
  if (std::filesystem::exists(file_)) {
    std::string text = read_text_file(file_);
    const auto whole = text.rfind('\n');
    const std::size_t kept = whole == std::string::npos ? 0 : whole + 1;
    if (kept != text.size()) std::filesystem::resize_file(file_, kept);
    text.resize(kept);
    is_new = text.empty();
    bool is_header = true;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      if (std::exchange(is_header, false)) {
        if (line == product_header()) continue;
        throw UsageError{fmt::format(
            "{}: its columns are not those of this program; give another -o", file_.string())};
      }
      std::size_t cells = 0;
      std::size_t key_end = 0;
      while (cells < kKeyCells && key_end != std::string::npos) {
        key_end = line.find(',', cells == 0 ? 0 : key_end + 1);
        ++cells;
      }
      known_.insert(line.substr(0, key_end));
    }
  }
  out_ = std::fopen(file_.c_str(), "a");
  if (out_ == nullptr) throw IoError{fmt::format("{}: {}", file_.string(), std::strerror(errno))};
  if (is_new) write(product_header());
}

ProductTable::~ProductTable() {
  if (out_ != nullptr) std::fclose(out_);
}

bool ProductTable::has(const Shape& shape, Contents contents, bool rotated) const {
  return known_.contains(key_with(key_of(shape), name_of(contents).c_str(), rotated));
}

void ProductTable::append(const ProductRun& run, const Shape& shape,
                          const ProductMeasurement& row) {
  write(product_row(run, shape, row));
  known_.insert(key_with(key_of(shape), name_of(row.contents).c_str(), run.rotated));
}

void ProductTable::write(const std::string& line) {
  if (std::fputs((line + "\n").c_str(), out_) < 0 || std::fflush(out_) != 0) {
    throw IoError{fmt::format("{}: {}", file_.string(), std::strerror(errno))};
  }
}

}  // namespace foretrace::hw
