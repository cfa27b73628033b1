// nvbandwidth's copies as a scenario: a region for each link, of a few copies that follow each
// other.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/accept/accept.h"
#include "sim/applications/accept/nvbandwidth.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{512} << 20;  // nvbandwidth's own default
constexpr int kCopies = 4;  // their call's and their wait's time is then below a thousandth

enum class Route : std::uint8_t { ToDevice, ToHost, Peer, Unknown };

Route route_of(const std::string& test) {
  if (test == "host_to_device_memcpy_ce") return Route::ToDevice;
  if (test == "device_to_host_memcpy_ce") return Route::ToHost;
  if (test == "device_to_device_memcpy_read_ce" || test == "device_to_device_memcpy_write_ce")
    return Route::Peer;
  return Route::Unknown;
}

struct Copy {
  Route route;
  std::size_t row, column;
};

std::string name_of(const Copy& copy) {
  switch (copy.route) {
    case Route::ToDevice:
      return fmt::format("host -> GPU {}", copy.column);
    case Route::ToHost:
      return fmt::format("GPU {} -> host", copy.column);
    default:
      return fmt::format("GPU {} -> GPU {}", copy.row, copy.column);
  }
}

std::string scenario_of(const std::vector<Copy>& copies, std::size_t gpus) {
  std::string text = fmt::format(
      "schema_version: 1\nname: nvbandwidth\ndevices: {}\n"
      "streams: {{copy: {{each: device, flags: non_blocking}}}}\n"
      "buffers:\n  host: {{memory: pinned, size: {}B}}\n  at: {{each: device, memory: device, "
      "size: {}B}}\n"
      "  from: {{each: device, memory: device, size: {}B}}\nthreads:\n  main:\n",
      gpus, kBytes, kBytes, kBytes);
  for (const Copy& copy : copies) {
    if (copy.route == Route::Peer)
      text += fmt::format("    - enable_peer_access: {{device: {}, peer: {}}}\n", copy.row,
                          copy.column);
  }
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const Copy& copy = copies[i];
    const std::size_t device = copy.route == Route::Peer ? copy.row : copy.column;
    const std::string from =
        copy.route == Route::ToDevice ? "host" : fmt::format("from({})", device);
    const std::string to =
        copy.route == Route::ToHost ? "host" : fmt::format("at({})", copy.column);
    text += fmt::format("    - region:\n        name: link{}\n        ops:\n", i);
    for (int k = 0; k < kCopies; ++k)
      text += fmt::format("          - memcpy_async: {{stream: copy({}), src: {}, dst: {}}}\n",
                          device, from, to);
    text += fmt::format("          - stream_synchronize: {{stream: copy({})}}\n", device);
  }
  return text;
}

/// Nanoseconds of each copy's region, and of its band's slow and fast end.
std::vector<double> simulated(const std::string& scenario, std::size_t copies,
                              const Machine& machine) {
  const auto read = read_scenario(scenario, "nvbandwidth");
  if (!read) throw UsageError{render(read.error(), scenario)};
  const auto answers = run_in_children({[&] {
    std::vector<double> times;
    for (const RegionSamples& region : simulate(read->program, machine).regions) {
      const auto ns = static_cast<double>(region.samples_ns.front());
      times.insert(times.end(), {ns, ns * region.high_factor, ns * region.low_factor});
    }
    return times;
  }});
  if (answers.front().size() != 3 * copies)
    throw UsageError{"nvbandwidth's copies cannot be predicted on this machine"};
  return answers.front();
}

/// The links of `matrix` with a value.
std::vector<Copy> copies_in(const NvbandwidthMatrix& matrix) {
  std::vector<Copy> copies;
  const Route route = route_of(matrix.test);
  for (std::size_t row = 0; row < matrix.gbps.size(); ++row) {
    for (std::size_t column = 0; column < matrix.gbps[row].size(); ++column) {
      const bool to_itself = route == Route::Peer && row == column;
      if (matrix.gbps[row][column] && !to_itself) copies.push_back({route, row, column});
    }
  }
  return copies;
}

}  // namespace

void accept_nvbandwidth(const std::string& text, const std::string& file, const Machine& machine,
                        Acceptance& into) {
  const auto read = read_nvbandwidth(text, file);
  if (!read) throw UsageError{render(read.error(), text)};
  if (!read->gpu.empty() && nccl::gpu_kind(read->gpu) != nccl::gpu_kind(machine.gpu_name)) {
    into.notes.push_back(fmt::format("{}: measured on '{}', and machine '{}' has '{}'", file,
                                     read->gpu, machine.name, machine.gpu_name));
  }
  for (const std::string& test : read->not_run)
    into.notes.push_back(fmt::format("{}: {} did not run", file, test));
  for (const NvbandwidthMatrix& matrix : read->matrices) {
    const bool is_known = route_of(matrix.test) != Route::Unknown;
    const std::vector<Copy> copies = is_known ? copies_in(matrix) : std::vector<Copy>{};
    if (copies.empty()) {
      into.notes.push_back(
          fmt::format("{}: {} is not judged: {}", file, matrix.test,
                      is_known ? "it has no value"
                               : "only copies one at a time by copy engines are predicted"));
      continue;
    }
    std::size_t gpus = 1;
    for (const Copy& copy : copies)
      gpus = std::max({gpus, copy.column + 1, copy.route == Route::Peer ? copy.row + 1 : 1});
    if (gpus > machine.gpus_per_node) {
      throw UsageError{fmt::format("{}:{}: {} of {} GPUs, and a node of {} has {}", file,
                                   matrix.line, matrix.test, gpus, machine.name,
                                   machine.gpus_per_node)};
    }
    const auto times = simulated(scenario_of(copies, gpus), copies.size(), machine);
    // Files are named by their node; links of two nodes are two.
    const std::string node = std::filesystem::path{file}.stem().string();
    AcceptPart part{file, matrix.test, {}, 0, {}};
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const auto bytes = static_cast<double>(kBytes * kCopies);
      const std::string link = name_of(copies[i]);
      part.checks.push_back({link,
                             "GB/s",
                             *matrix.gbps[copies[i].row][copies[i].column],
                             bytes / times[3 * i],
                             bytes / times[3 * i + 1],
                             {fmt::format("{}: {}", node, link)},
                             bytes / times[3 * i + 2]});
    }
    into.parts.push_back(std::move(part));
  }
}

}  // namespace foretrace
