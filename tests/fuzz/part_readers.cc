// Machines by parts and by their names, a table of other GPUs' products, requests with their trace.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "models/machine/machine.h"
#include "models/machine/parts/composition.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/read/scenario.h"
#include "scenarios/serving/traffic.h"
#include "sim/applications/serving/serve.h"
#include "sim/applications/transfer/transfer.h"
#include "tests/fuzz/fuzz_directory.h"
#include "tests/fuzz/readers.h"

namespace foretrace::fuzz {
namespace {

void must(bool kept) {
  if (!kept) std::abort();
}

constexpr std::array kFolders{PartFolder::Gpus, PartFolder::Links, PartFolder::Hosts,
                              PartFolder::Networks};

/// The machine is one that its own text says again.
void must_be_written(const Machine& machine) {
  must(read_machine(machine_text(machine), "again.yaml").has_value());
}

/// Eight of the GPU, or two of an H200 with the part.
Composition composition_with(PartFolder folder, const std::string& file) {
  Composition made{
      .gpus = 2, .gpu = "H200-SXM", .host = {}, .link = {}, .network = {}, .nodes = {}};
  if (folder == PartFolder::Gpus) made.gpus = 8;
  if (folder == PartFolder::Gpus) made.gpu = file;
  if (folder == PartFolder::Links) made.link = file;
  if (folder == PartFolder::Hosts) made.host = file;
  if (folder == PartFolder::Networks) made.network = file;
  return made;
}

/// What follows the line "# trace.csv" is the file of that name, beside the scenario.
void read_traffic_of(std::string_view bytes) {
  constexpr std::string_view kTrace = "\n# trace.csv\n";
  const std::size_t end = std::min(bytes.find(kTrace), bytes.size());
  directory().file("trace.csv", bytes.substr(std::min(end + kTrace.size(), bytes.size())));
  const std::string file = (directory().path() / "serve.yaml").string();
  const auto read = read_serving_scenario(bytes.substr(0, end), file);
  if (!read) return;
  const serving::Serving& serving = read->serving;
  constexpr std::int64_t kFew = 200, kShort = 2000, kBlocks = 500;
  if (serving.traffic.requests > kFew) return;
  const auto arrivals = serving::arrivals_of(serving.traffic);
  must(static_cast<std::int64_t>(arrivals.size()) == serving.traffic.requests);
  for (const serving::Arrival& one : arrivals) must(one.prompt >= 1 && one.output >= 1);
  if (serving::longest(arrivals) > kShort) return;
  constexpr std::int64_t kFewGpus = 64;
  if (serving.gpus() > kFewGpus) return;
  const auto millisecond = [](const serving::Batch& /*batch*/) { return 1e-3; };
  serving::Fleet fleet{.engines = {serving, kBlocks, millisecond}};
  if (serving.apart) {
    fleet.prompts = serving::Engines{serving::prompts_of(serving), kBlocks, millisecond};
    fleet.transfer_seconds = [](std::int64_t tokens) { return 1e-6 * static_cast<double>(tokens); };
  }
  std::int64_t requests = 0;
  for (const serving::Served& engine : serving::serve(fleet, arrivals)) {
    requests += std::ssize(engine.requests);
    for (const serving::Request& request : engine.requests) {
      must(static_cast<std::int64_t>(request.token_ns.size()) == request.output);
    }
  }
  must(requests == serving.traffic.requests);
}

}  // namespace

void read_as_serving(std::string_view bytes) {
  try {
    read_traffic_of(bytes);
  } catch (const UsageError&) {
  }
}

/// The first line names its folder: gpus, links, hosts or networks.
void read_as_part(std::string_view bytes) {
  const std::string_view named = bytes.substr(0, bytes.find('\n'));
  const auto* const folder = std::ranges::find(kFolders, named, folder_name);
  if (folder == kFolders.end()) return;
  const std::string_view text = bytes.substr(std::min(named.size() + 1, bytes.size()));
  try {
    const auto part = read_part(text, "fuzz.yaml", *folder);
    if (!part) return must(!render(part.error(), text).empty());
    const std::string file = directory().file("part.yaml", text).string();
    const Composition composition = composition_with(*folder, file);
    must(compose(parts_of(composition, "fuzz"), "fuzz").name == "fuzz");
  } catch (const UsageError&) {
  }
}

/// A machine's name.
void read_as_composition(std::string_view bytes) {
  if (bytes.ends_with('\n')) bytes.remove_suffix(1);
  try {
    if (const auto machine = composed_machine(std::string{bytes})) must_be_written(*machine);
  } catch (const UsageError&) {
  }
}

void read_as_transfer(std::string_view bytes) {
  try {
    static_cast<void>(transfer::read_table(directory().file("kernels-by-gpu.csv", bytes)));
  } catch (const UsageError&) {
  }
}

/// What is made of such a table, with one turn of each search instead of sixty.
void read_as_transfer_judge(std::string_view bytes) {
  try {
    const auto table = transfer::read_table(directory().file("kernels-by-gpu.csv", bytes));
    const transfer::Report report = transfer::judge(table, 1);
    must(!transfer::markdown(report).empty() && !transfer::json(report).empty());
  } catch (const UsageError&) {
  }
}

}  // namespace foretrace::fuzz
