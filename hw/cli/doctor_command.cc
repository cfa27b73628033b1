#include "hw/cli/doctor_command.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "hw/node/environment.h"
#include "hw/node/host_speed.h"
#include "hw/node/nvml.h"
#include "hw/run/processes.h"
#include "hw/trace/activity_tracer.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"

namespace foretrace::hw {
namespace {

using Json = nlohmann::json;

std::string version_or(const std::map<std::string, std::string>& versions, const char* key,
                       const char* otherwise) {
  const auto found = versions.find(key);
  return found == versions.end() ? otherwise : found->second;
}

Finding find_gpus(int& count) {
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    count = 0;
    return {"GPUs", false, true, cudaGetErrorString(error),
            "a machine with an NVIDIA GPU and a driver as new as the CUDA toolkit is needed"};
  }
  return {"GPUs", count > 0, true, fmt::format("{} ({})", count, gpu_names(0, count)), ""};
}

Finding find_driver() {
  const std::string version = Nvml{}.driver_version();
  if (!version.empty()) return {"driver", true, true, version, ""};
  int cuda = 0;
  if (cudaDriverGetVersion(&cuda) == cudaSuccess && cuda > 0) {
    return {"driver", true, true, fmt::format("supports CUDA {}.{}", cuda / 1000, cuda % 1000 / 10),
            ""};
  }
  return {"driver", false, true, "no NVIDIA driver is loaded", "install the driver, or load it"};
}

Finding find_tracing(int gpus) {
  if (gpus == 0) {
    return {"CUPTI tracing", false, false, "cannot be tried without a GPU", ""};
  }
  static_cast<void>(cudaFree(nullptr));  // creates the context
  const std::string problem = ActivityTracer::problem();
  if (problem.empty()) return {"CUPTI tracing", true, false, "permitted", ""};
  return {"CUPTI tracing", false, false, problem,
          "without it there are region times but no spans: --traced 0; as administrator set the "
          "driver option NVreg_RestrictProfilingToAdminUsers=0"};
}

/// What machine files call host.launch_kernel: hosts of one kind differ by half.
Finding find_host_speed(int gpus) {
  const auto ns = gpus > 0 ? launch_ns(0) : std::nullopt;
  if (!ns) return {"host speed", false, false, "cannot be tried without a GPU", ""};
  return {"host speed", true, false,
          fmt::format("a kernel's launch takes {:.2f} us to call", static_cast<double>(*ns) * 1e-3),
          ""};
}

/// "0-1 0-2 ...", pairs without direct access.
Finding find_peer_access(int gpus) {
  std::string without;
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      int access = 0;
      if (from == to) continue;
      if (cudaDeviceCanAccessPeer(&access, from, to) != cudaSuccess || access == 0) {
        without += fmt::format(" {}->{}", from, to);
      }
    }
  }
  if (gpus < 2) return {"peer access", true, false, "one GPU: not needed", ""};
  if (without.empty()) return {"peer access", true, false, "between all GPUs", ""};
  return {"peer access", false, false, "none between" + without,
          "copies between these GPUs go through host memory"};
}

Finding find_links(int gpus) {
  const Json environment = describe_environment();
  std::string text;
  for (const Json& gpu : environment.at("gpus")) {
    text += fmt::format("{}{}: {} NVLinks, {} copy engines", text.empty() ? "" : "; ",
                        gpu.value("ordinal", 0), gpu.value("nvlinks", 0U),
                        gpu.value("copy_engines", 0));
  }
  return {"links", gpus > 0, false, gpus > 0 ? text : "no GPU", ""};
}

Finding find_mpi() {
  int version = 0;
  int subversion = 0;
  MPI_Get_version(&version, &subversion);
  return {"MPI", true, true,
          fmt::format("standard {}.{}; this process was started {}", version, subversion,
                      Mpi::started_by_launcher() ? "by a launcher" : "without mpirun: one process"),
          ""};
}

void print_text(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    print_out("{:<8} {:<14} {}\n",
              finding.good     ? "ok"
              : finding.needed ? "MISSING"
                               : "warning",
              finding.what, finding.found);
    if (!finding.good && !finding.advice.empty()) print_out("{:<24}{}\n", "", finding.advice);
  }
  print_out("measure {} here\n", can_measure(findings) ? "can work" : "cannot work");
}

void print_json(const std::vector<Finding>& findings) {
  Json rows = Json::array();
  for (const Finding& finding : findings) {
    rows.push_back({{"what", finding.what},
                    {"good", finding.good},
                    {"needed", finding.needed},
                    {"found", finding.found},
                    {"advice", finding.advice}});
  }
  const Json document = {{"schema_version", 1},
                         {"can_measure", can_measure(findings)},
                         {"findings", rows},
                         {"machine", describe_environment()}};
  print_out("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::vector<Finding> examine() {
  int gpus = 0;
  std::vector<Finding> findings;
  findings.push_back(find_driver());
  findings.push_back(find_gpus(gpus));
  const auto versions = software_versions();
  findings.push_back({"CUDA runtime", versions.contains("cuda"), true,
                      version_or(versions, "cuda", "not found"), ""});
  findings.push_back(
      {"NCCL", versions.contains("nccl"), true, version_or(versions, "nccl", "not found"), ""});
  findings.push_back({"cuBLAS", versions.contains("cublas"), true,
                      version_or(versions, "cublas", "not found"), ""});
  findings.push_back(find_mpi());
  findings.push_back(find_tracing(gpus));
  findings.push_back(find_host_speed(gpus));
  findings.push_back(find_peer_access(gpus));
  findings.push_back(find_links(gpus));
  return findings;
}

bool can_measure(const std::vector<Finding>& findings) {
  return std::ranges::all_of(findings, [](const Finding& f) { return f.good || !f.needed; });
}

void add_doctor_command(CLI::App& app, int& exit_code) {
  auto format = std::make_shared<std::string>("text");
  CLI::App& sub = add_subcommand(app, "doctor", "Say what this machine has and lacks for measuring",
                                 "foretrace-hw doctor --format json");
  sub.add_option("--format", *format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  sub.callback([format, &exit_code] {
    const auto findings = examine();
    if (*format == "json") {
      print_json(findings);
    } else {
      print_text(findings);
    }
    exit_code = can_measure(findings) ? kDone : kCannotHere;
  });
}

}  // namespace foretrace::hw
