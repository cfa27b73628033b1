#include "sim/cli/captured.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace foretrace {
namespace {

constexpr std::array<std::string_view, 4> kWords{"", "gemm", "hbm", "pcie"};  // by ScalesWith

/// Of the spins of a program, in picoseconds; those whose length varies do not count.
std::array<double, kWords.size()> times_of(const Program& program) {
  std::array<double, kWords.size()> times{};
  for (const OpInfo& info : index_ops(program)) {
    const auto* spin = std::get_if<Spin>(&info.op->kind);
    if (spin == nullptr || !spin->duration.expr.is_constant()) continue;
    times.at(static_cast<std::size_t>(spin->scales_with)) +=
        static_cast<double>(spin->duration.expr.constant());
  }
  return times;
}

bool is_same(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::vector<std::string> captured_notes(const Program& program, const Machine& machine,
                                        bool has_what_ifs) {
  if (program.captured_on.empty()) return {};
  const auto times = times_of(program);
  double all = 0;
  double changed = 0;
  std::string shares;
  for (std::size_t i = 0; i < times.size(); ++i) {
    all += times[i];
    if (machine.what_if_factor(static_cast<ScalesWith>(i)) != 1) changed += times[i];
  }
  if (all == 0) return {};
  for (std::size_t i = 1; i < times.size(); ++i) {
    shares += fmt::format("{}{} {:.0f} %", i == 1 ? "" : ", ", kWords[i], 100 * times[i] / all);
  }
  std::vector<std::string> notes;
  if (!machine.gpu_name.empty() && !is_same(machine.gpu_name, program.captured_on)) {
    notes.push_back(
        fmt::format("the kernels keep the times that they took on {}, whatever a {} makes of them; "
                    "--with makes shorter what it is bound by: {}",
                    program.captured_on, machine.gpu_name, shares));
  }
  if (has_what_ifs) {
    notes.push_back(
        fmt::format("the what-if changes {:.0f} % of the captured kernels' time, the rest stays; "
                    "by what bounds "
                    "them: {}, {:.0f} % is not known",
                    100 * changed / all, shares, 100 * times[0] / all));
  }
  return notes;
}

}  // namespace foretrace
