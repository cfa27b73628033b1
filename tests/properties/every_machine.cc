#include "tests/properties/every_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>

#include "models/machine/parts/part.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/read/scenario.h"
#include "sim/engine/children.h"
#include "sim/environment_check.h"
#include "sim/machine_check.h"
#include "sim/simulate.h"

namespace foretrace::test {

const std::vector<Machine>& every_machine() {
  static const std::vector<Machine> kAll = [] {
    std::vector<std::string> names{"8xB200+ib-ndr:2",
                                   "4xL40S/pcie4-switch+tcp-100g:2",
                                   "72xGB200/nvl72",
                                   "8xMI300X",
                                   "8xH20+roce-400g",
                                   "2xH100-NVL/nvlink-bridge+efa2",
                                   "4xA100-SXM-40/nvlink-mesh+slingshot",
                                   "p5.48xlarge:2"};
    for (const std::string& gpu : part_names(PartFolder::Gpus)) names.push_back("2x" + gpu);
    const std::vector<std::string> files = machine_names();
    names.insert(names.end(), files.begin(), files.end());
    std::vector<Machine> all;
    for (const std::string& name : names) all.push_back(load_machine(name));
    return all;
  }();
  return kAll;
}

std::uint32_t few_ranks(const Machine& machine) { return std::min(2u, machine.gpus_per_node); }

std::string chains_of_gemms(const Machine& machine) {
  std::string text = R"(schema_version: 1
name: chains
streams: {s: {flags: non_blocking}}
buffers: {x: {memory: device, size: 32MiB}, y: {memory: device, size: 32MiB}, w: {memory: device, size: 32MiB}}
threads:
  main:
)";
  for (const char* const type : {"float16", "float32", "float64", "bfloat16"}) {
    if (type == std::string_view{"bfloat16"} && why_no_bfloat16(machine)) continue;
    text += fmt::format(R"(    - region:
        name: {0}
        ops:
          - repeat: {{times: 4, ops: [{{gemm: {{stream: s, m: 1024, n: 2048, k: 1024, type: {0}, a: w, b: x, c: y}}}}]}}
          - stream_synchronize: {{stream: s}}
)",
                        type);
  }
  return text;
}

std::string bounded_regions(std::uint32_t ranks) {
  std::string text = fmt::format(
      R"(schema_version: 1
name: bounded
processes: {}
streams: {{s: {{flags: non_blocking}}}}
buffers: {{x: {{memory: device, size: 512MiB}}, y: {{memory: device, size: 512MiB}}, w: {{memory: device, size: 512MiB}}}}
{}threads:
  main:
    - region:
        name: gemm
        ops:
          - gemm: {{stream: s, m: 8192, n: 8192, k: 8192, type: float16, a: w, b: x, c: y}}
          - stream_synchronize: {{stream: s}}
    - region:
        name: memory
        ops:
          - elementwise: {{stream: s, srcs: [x, w], dst: y, size: 512MiB}}
          - stream_synchronize: {{stream: s}}
)",
      ranks, ranks < 2 ? "" : "communicators: {world: {members: all_devices, init: rank}}\n");
  if (ranks < 2) return text;
  return text + R"(    - region:
        name: all_reduce
        ops:
          - nccl_all_reduce: {comm: world, stream: s, send_buffer: x, recv_buffer: y, size: 256MiB, type: float32, op: sum}
          - stream_synchronize: {stream: s}
)";
}

std::string small_training_step(std::uint32_t ranks, const std::string& precision) {
  return fmt::format(R"(schema_version: 1
name: small
processes: {}
training_step:
  model: {{style: gpt, layers: 1, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000}}
  batch: {{sequence: 256}}
  precision: {{{}}}
  steps: 1
)",
                     ranks, precision);
}

std::vector<std::string> answers_of(const Asked& one) {
  std::vector<Job> jobs;
  for (const Machine& machine : every_machine()) {
    jobs.emplace_back([&machine, &one] {
      std::string text;
      try {
        text = one(machine);
      } catch (const UsageError& error) {
        text = fmt::format("refused: {}", error.what());
      }
      return std::vector<double>(text.begin(), text.end());
    });
  }
  std::vector<std::string> answers;
  for (const std::vector<double>& letters : run_in_children(jobs)) {
    std::string& text = answers.emplace_back();
    for (const double letter : letters) text += static_cast<char>(letter);
  }
  return answers;
}

std::string times_on(const std::string& text, const Machine& machine) {
  auto read = read_scenario(text, "a.yaml");
  if (!read) throw UsageError{render(read.error(), text)};
  const Program& program = read->program;
  for (const Diagnostics& problems :
       {check_fits(program, machine), refused_collectives(program, machine),
        unsupported_types(program, machine)}) {
    if (!problems.empty()) throw UsageError{render(problems, text)};
  }
  const Timeline timeline = simulate(program, machine);
  if (timeline.outcome.kind != Outcome::Kind::Completed) throw std::runtime_error{"a hang"};
  std::map<std::string, std::int64_t> longest;
  for (const RegionSamples& region : timeline.regions) {
    std::int64_t& ns = longest[region.name];
    ns = std::max(ns, region.samples_ns.front());
  }
  std::string times;
  for (const auto& [name, ns] : longest)
    times += fmt::format("{} {}\n", name, 1e-9 * static_cast<double>(ns));
  return times;
}

double time_in(const std::string& times, const std::string& region) {
  const std::size_t at = times.find(region + " ");
  if (at == std::string::npos) return 0;
  double seconds = 0;
  const char* const begin = times.data() + at + region.size() + 1;
  std::from_chars(begin, times.data() + times.size(), seconds);
  return seconds;
}

}  // namespace foretrace::test
