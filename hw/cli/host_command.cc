#include "hw/cli/host_command.h"

#include <cuda_runtime_api.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <memory>

#include "hw/host/host_file.h"
#include "hw/host/probes.h"
#include "hw/node/environment.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"

namespace foretrace::hw {
namespace {

constexpr double kSeconds = 16;  // with the first round, which is not counted, 20

struct HostCommandLine {
  std::filesystem::path output = "host.yaml";
  double seconds = kSeconds;
  bool without_gpu = false;
};

HostFile measured_host(double seconds, bool without_gpu) {
  HostFile file;
  file.system = read_system();
  std::vector<Probe> probes = call_probes(file.system);
  const auto add = [&](std::vector<Probe> more) {
    for (Probe& probe : more) probes.push_back(std::move(probe));
  };
  add(memory_probes(file.system));
  if (!without_gpu) {
    std::vector<Probe> of_driver = driver_probes();
    if (!of_driver.empty()) {
      file.gpu = gpu_names(0, 1);
      const auto versions = software_versions();
      const auto driver = versions.find("driver");
      file.driver = driver == versions.end() ? "not known" : driver->second;
    }
    add(std::move(of_driver));
  }
  file.measured = measure(probes, seconds);
  file.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  return file;
}

void write(const std::filesystem::path& output, double seconds, bool without_gpu) {
  check_can_write(output);
  const HostFile file = measured_host(seconds, without_gpu);
  write_file(output, host_file_text(file));
  std::size_t parameters = 0;
  for (const Measured& one : file.measured) {
    parameters += is_parameter(one.quantity) && one.value > 0 ? 1 : 0;
    if (one.value <= 0) print_error("not measured: {}\n", one.quantity.key);
  }
  print_error("{}: {} parameters of {} cores, {}\n", output.string(), parameters, file.system.cores,
              file.gpu.empty() ? "no GPU" : file.gpu);
}

}  // namespace

void write_host_file(const std::filesystem::path& file, double seconds) {
  write(file, seconds, false);
}

void add_host_command(CLI::App& app, int& exit_code) {
  auto line = std::make_shared<HostCommandLine>();
  CLI::App& sub = add_subcommand(app, "host",
                                 "Measure this host in 20 s: memory, locks, first touch, and with "
                                 "a GPU what its driver costs; "
                                 "foretrace simulate --host reads the file",
                                 "foretrace-hw host -o host.yaml\n"
                                 "  foretrace simulate FILE --machine 8xB200 --host host.yaml");
  sub.add_option("-o,--output", line->output, "The host's file")->capture_default_str();
  sub.add_option("--seconds", line->seconds, "Time for all; three rounds are measured anyhow")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  sub.add_flag("--without-gpu", line->without_gpu, "Leave the driver alone");
  sub.callback([line, &exit_code] {
    write(line->output, line->seconds, line->without_gpu);
    exit_code = kDone;
  });
}

}  // namespace foretrace::hw
