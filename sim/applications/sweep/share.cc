#include "sim/applications/sweep/share.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace foretrace::sweep {
namespace {

std::optional<std::size_t> count_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return {};
  const std::string_view view{text};
  std::size_t count{};
  const auto [rest, code] = std::from_chars(view.data(), view.data() + view.size(), count);
  if (code != std::errc{} || rest != view.data() + view.size()) return {};
  return count;
}

}  // namespace

Share share_of_environment() {
  struct Launcher {
    const char* rank;
    const char* size;
  };
  constexpr std::array kLaunchers{Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                  Launcher{"PMI_RANK", "PMI_SIZE"},
                                  Launcher{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = count_in(launcher.rank);
    const auto size = count_in(launcher.size);
    if (rank && size && *rank < *size) return {*rank, *size, launcher.rank};
  }
  return {};
}

}  // namespace foretrace::sweep
