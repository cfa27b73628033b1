#include "models/machine/parts/host_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/machine/value_text.h"
#include "models/trust/blind.h"

namespace foretrace {
namespace {

using enum Param;

/// A class of parameters, its band where nobody knows the host, and where a file says it.
struct BandOfHosts {
  Param unknown, known;
};
constexpr std::array kBandsOfHosts{BandOfHosts{BlindCalls, BlindCallsKnown},
                                   BandOfHosts{BlindAllocations, BlindAllocationsKnown},
                                   BandOfHosts{BlindHostMemory, BlindHostMemoryKnown}};

bool gives(const Part& host, Param param) {
  return std::ranges::any_of(host.parameters,
                             [&](const ParameterEntry& entry) { return entry.first == param; });
}

/// Whether its file measured the class: one of its parameters is a fit.
bool gives_class(const Part& host, Param band) {
  return std::ranges::any_of(host.parameters, [&](const ParameterEntry& entry) {
    return blind_class(entry.first) == std::optional{band} &&
           entry.second.source == ParameterClass::Fit;
  });
}

class HostTaker {
 public:
  HostTaker(Machine& machine, const Part& host, const ParamChanged& changed)
      : machine_{machine}, host_{host}, changed_{changed} {}

  TakenHost take() {
    TakenHost taken{host_.parameters.size(), call_factor()};
    // How many hardware threads share a core is the host's own.
    if (gives(host_, HostCores) || host_.value("cores")) {
      for (const Param share : {HostHalfFlops, HostAllFlops, HostHalfMemory}) {
        machine_.leave_out(share);
      }
    }
    for (const auto& [param, value] : host_.parameters) set(param, value);
    state("cores", HostCores);
    state("memory", HostMemory);
    state("memory_bandwidth", HostMemoryBandwidth);
    if (taken.calls) scale_calls(*taken.calls);
    for (const auto& [unknown, known] : kBandsOfHosts) {
      if (gives_class(host_, unknown) && is_narrower(known, unknown)) {
        set(unknown, machine_.get(known));
      }
    }
    if (const auto sockets = host_.value("sockets")) {
      machine_.node.sockets = static_cast<std::uint32_t>(*sockets);
    }
    return taken;
  }

 private:
  std::optional<double> call_factor() const {
    for (const auto& [param, value] : host_.parameters) {
      if (param != HostLaunchKernel || !machine_.has(param)) continue;
      return value.value / machine_.get(param).value;
    }
    return {};
  }

  /// Both as well known: bands of another GPU's programs do not stand for this one's.
  bool is_narrower(Param known, Param unknown) const {
    if (!machine_.has(known) || !machine_.has(unknown)) return false;
    const ParamValue& of_known = machine_.get(known);
    const ParamValue& of_unknown = machine_.get(unknown);
    return of_known.value < of_unknown.value && of_known.trusted_as() <= of_unknown.trusted_as();
  }

  void set(Param param, ParamValue value) {
    std::optional<double> before;
    if (machine_.has(param)) before = machine_.get(param).value;
    changed_(param, before, value.value);
    machine_.set(param, std::move(value));
  }

  /// A fact that no parameter of the file says better.
  void state(const char* key, Param param) {
    const auto value = host_.value(key);
    if (!value || gives(host_, param)) return;
    const auto& source = host_.facts.find(key)->second.source;
    set(param, {.value = *value,
                .source = source->kind,
                .from = source->text,
                .range = {},
                .origin = source});
  }

  void scale_calls(double factor) {
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      const bool is_call =
          info(param).unit == ParamUnit::Time && blind_class(param) == std::optional{BlindCalls};
      if (!is_call || !machine_.has(param) || gives(host_, param)) continue;
      ParamValue value = machine_.get(param);
      value.value *= factor;
      set(param, std::move(value));
    }
  }

  Machine& machine_;
  const Part& host_;
  const ParamChanged& changed_;
};

}  // namespace

TakenHost take_host_part(Machine& machine, const Part& host, const ParamChanged& changed) {
  return HostTaker{machine, host, changed}.take();
}

std::string describe(const TakenHost& taken, const Part& host, const std::string& file) {
  std::string text = host.summary.empty() ? file : fmt::format("{} ({})", host.summary, file);
  text += fmt::format(": {} parameter{}", taken.parameters, taken.parameters == 1 ? "" : "s");
  if (taken.calls) text += fmt::format("; its calls take {:.2f} times as long", *taken.calls);
  return text;
}

}  // namespace foretrace
