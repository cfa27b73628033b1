// Times of PyTorch's and closed libraries' kernels as measured on one GPU (README.md), and from
// them the time of one that was not: what its nearest neighbours of the same kernel take.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "scenarios/program/captured_shape.h"
#include "scenarios/program/library_work.h"

namespace foretrace::kernels {

struct Asked {
  CapturedShape shape;
  double bytes = 0;  ///< read and written
  double flops = 0;
  friend auto operator<=>(const Asked&, const Asked&) = default;
};

/// On what a time rests, the best first.
enum class Basis : std::uint8_t {
  Measured,  ///< this kernel at this size, launched so
  Kernel,    ///< this kernel at other sizes
  Family,    ///< kernels of the same template
  Plain      ///< bytes and flops over what GPUs reach
};
inline constexpr std::size_t kBases = 4;

/// What a kernel's plain time is made of: multiples of the table's fixed part, of bytes over the
/// bandwidth, of flops over the peak, and of what its threads would move at `thread_bytes` each.
struct Terms {
  double base = 0, bytes = 0, flops = 0, threads = 0;
};

struct Estimate {
  double factor = 1;  ///< of the plain time
  Basis basis = Basis::Plain;
  Terms terms;
};

class KernelTable {
 public:
  /// Throws UsageError naming file and line.
  explicit KernelTable(const std::filesystem::path& file);

  Estimate estimate(const Asked& asked) const;
  /// With these rates (bytes/s, flop/s); those of the measured GPU give what was measured.
  double seconds(const Asked& asked, const Estimate& estimate, double memory_rate, double peak) const;
  double memory_rate() const { return number("hbm"); }  ///< of the measured GPU, bytes/s
  double reached() const { return number("memory"); }   ///< share of the bandwidth
  double peak() const { return number("peak"); }        ///< of the measured GPU, flop/s
  std::size_t size() const { return rows_.size(); }

 private:
  static constexpr std::size_t kFeatures = 7;
  using Features = std::array<double, kFeatures>;
  struct Row {
    Features at{};
    double log_factor = 0;          ///< of its kernel's plain time
    double log_of_every_kernel = 0;  ///< of the plain time that all kernels share
  };

  double number(const std::string& key) const { return numbers_.at(key); }
  Features features(const Asked& asked) const;
  Terms terms_of(const std::string& name) const;
  Terms shared_terms() const;
  double plain_seconds(const Asked& asked, const Terms& terms, double memory_rate, double peak) const;
  Estimate nearest(const std::vector<std::size_t>& rows, const Asked& asked, Basis basis) const;

  std::map<std::string, double, std::less<>> numbers_;
  Features weights_{};
  std::map<std::string, Terms, std::less<>> terms_;
  std::vector<Row> rows_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> kernels_, families_;
};

/// The shipped table, read once.
const KernelTable& shipped_kernels();

}  // namespace foretrace::kernels
