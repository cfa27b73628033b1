#include "models/what_if/known_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "models/machine/value_text.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/yaml_reader.h"

namespace foretrace {
namespace {

using enum Param;

constexpr double kShortest = 1e-4, kLongest = 10;  // seconds of a loop
constexpr std::array kOfCapturedHosts{EagerCaptured, EagerCapturedProduct, EagerCapturedLibrary,
                                      EagerCapturedQuery, EagerLaunch};
constexpr std::array kOfServingHosts{EagerForward, EagerLinear, EagerAttention, EagerCollective};

void take_longer(Machine& machine, std::span<const Param> params, double factor) {
  for (const Param param : params) {
    if (!machine.has(param)) continue;
    ParamValue value = machine.get(param);
    value.value *= factor;
    machine.set(param, std::move(value));
  }
}

std::optional<double> loop(const YamlNode* node, std::string_view name, Problems& problems) {
  if (node == nullptr) return {};
  const double seconds = parse_value(node->text, ParamUnit::Time).value_or(0);
  if (seconds >= kShortest && seconds <= kLongest) return seconds;
  problems.error(*node,
                 fmt::format("{}: '{}' is not a time between 0.1ms and 10s", name, node->text),
                 "python3 -m foretrace host writes such a file");
  return {};
}

double read_loop(const std::string& path) {
  const std::string text = read_text_file(path);
  Problems problems{path};
  const YamlNode root = parse_yaml(text, problems);
  MapReader map{root, "a host file", problems};
  if (const YamlNode* version = map.required("foretrace_host");
      version != nullptr && version->text != "1") {
    problems.error(*version, fmt::format("foretrace_host {} is not known", version->text),
                   "this foretrace reads version 1");
  }
  static_cast<void>(map.optional("name"));
  static_cast<void>(loop(map.optional("python_loop"), "python_loop", problems));
  const std::optional<double> found = loop(map.required("torch_loop"), "torch_loop", problems);
  map.finish();
  if (problems.error_count() > 0) throw UsageError{render(problems.take(), text)};
  return *found;
}

}  // namespace

bool has_loops(const std::string& path) {
  const std::string text = read_text_file(path);
  Problems unread{path};
  const YamlNode root = parse_yaml(text, unread);
  return std::ranges::any_of(root.entries, [](const YamlEntry& entry) {
    return entry.key.text == "foretrace_host" || entry.key.text == "torch_loop";
  });
}

KnownHost take_host(Machine& machine, const std::string& path) {
  KnownHost host{.file = path, .loop_seconds = read_loop(path)};
  if (!machine.has(HostLoop) || !machine.has(HostLoopPower)) {
    throw UsageError{
        fmt::format("--host: machine {} says nothing of PyTorch's host (host.loop)", machine.name)};
  }
  host.factor =
      std::pow(host.loop_seconds / machine.get(HostLoop).value, machine.get(HostLoopPower).value);
  take_longer(machine, kOfCapturedHosts, host.factor);
  take_longer(machine, kOfServingHosts, host.factor);
  if (machine.has(BlindCapturedHostKnown) && machine.has(BlindCapturedHost)) {
    host.band = machine.get(BlindCapturedHostKnown).value / machine.get(BlindCapturedHost).value;
    machine.set(BlindCapturedHost, machine.get(BlindCapturedHostKnown));
  }
  return host;
}

std::string describe(const KnownHost& host, const Machine& machine) {
  return fmt::format(
      "host: as its reference loop in {}, {:.1f} ms (this machine's file: {:.1f} ms): its work "
      "takes {:.2f} times as long\n",
      host.file, host.loop_seconds * 1e3, machine.get(HostLoop).value * 1e3, host.factor);
}

std::string describe_typical_host(const Machine& machine) {
  if (!machine.has(HostLoop)) return {};
  return fmt::format(
      "host: a typical one, whose reference loop takes {:.1f} ms; --host FILE (python3 -m "
      "foretrace host) says which\n",
      machine.get(HostLoop).value * 1e3);
}

}  // namespace foretrace
