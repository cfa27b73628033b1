#include "models/what_if/what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "models/machine/parts/host_part.h"
#include "models/machine/value_text.h"
#include "models/nccl/topology/machine.h"
#include "models/what_if/names.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<double> number(std::string_view text) {
  text = trimmed(text);
  double value{};
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || rest != text.data() + text.size()) return {};
  return value;
}

/// "0.5x", "x0.5", "*0.5", "/2", "50%"; none where the text is something else.
std::optional<double> factor_of(std::string_view text) {
  std::optional<double> factor;
  if (text.ends_with('x')) {
    factor = number(text.substr(0, text.size() - 1));
  } else if (text.starts_with('x') || text.starts_with('*')) {
    factor = number(text.substr(1));
  } else if (text.starts_with('/')) {
    factor = number(text.substr(1));
    if (factor) factor = 1 / *factor;
  } else if (text.ends_with('%')) {
    factor = number(text.substr(0, text.size() - 1));
    if (factor) *factor /= 100;
  }
  return factor;
}

[[noreturn]] void refuse(std::string_view what_if, std::string_view problem,
                         std::string_view hint = {}) {
  throw UsageError{
      fmt::format("--with {}: {}{}{}", what_if, problem, hint.empty() ? "" : "\n  hint: ", hint)};
}

const WhatIfName* word(std::string_view name) {
  for (const WhatIfName& known : what_if_names()) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

std::string unknown_hint(const std::string& name) {
  std::vector<std::string> words;
  for (const WhatIfName& known : what_if_names()) words.emplace_back(known.name);
  std::vector<std::string> keys = words;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    keys.emplace_back(info(static_cast<Param>(i)).key);
  }
  const std::string near = suggest(name, keys);
  const std::string all =
      fmt::format("{}, or a key of foretrace list parameters", fmt::join(words, ", "));
  return near.starts_with("did you mean") ? near : all;
}

/// Reads one NAME=VALUE and applies it.
class WhatIf {
 public:
  WhatIf(Machine& machine, const std::string& text, std::vector<Changed>& changed)
      : machine_{machine}, text_{text}, changed_{changed} {}

  void apply() {
    const auto equals = text_.find('=');
    if (equals == std::string::npos || equals == 0) {
      refuse(text_, "it is NAME=VALUE", "--with nvlink=0.5x");
    }
    const std::string name{trimmed(std::string_view{text_}.substr(0, equals))};
    value_ = trimmed(std::string_view{text_}.substr(equals + 1));
    factor_ = factor_of(value_);
    if (factor_ && !(*factor_ >= 1e-6 && *factor_ <= 1e6)) {
      refuse(text_, "a factor lies between 0.000001 and 1000000");
    }
    if (name == "nic") return change_nics();
    if (name == "host" && value_.ends_with(".yaml")) return change_host();
    if (const WhatIfName* known = word(name)) return change_word(*known);
    const auto param = param_named(name);
    if (!param)
      refuse(text_, fmt::format("'{}' is nothing that can be changed", name), unknown_hint(name));
    if (!machine_.has(*param)) {
      refuse(text_, fmt::format("machine {} has no {}", machine_.name, name));
    }
    set(*param, factor_ ? machine_.get(*param).value * *factor_ : absolute(info(*param).unit));
  }

 private:
  /// VALUE with its unit.
  double absolute(ParamUnit unit) const {
    const Parsed<double> value = parse_value(value_, unit);
    if (value) return *value;
    refuse(text_, value.error().message,
           value.error().hint.empty() ? "a factor is written 0.5x" : value.error().hint);
  }

  void change_nics() {
    const double now = nccl::nic_bytes_per_second(machine_);
    const double then = factor_ ? now * *factor_ : absolute(ParamUnit::Rate);
    if (const auto problem = out_of_range(Param::NvlinkBandwidth, then)) refuse(text_, *problem);
    machine_.node.nic_bandwidth = then;
    note("node.nic_bandwidth", now, then, ParamUnit::Rate);
  }

  /// Another host altogether: its own file.
  void change_host() {
    const std::string file{value_};
    const Part host = load_part(PartFolder::Hosts, file);
    const TakenHost taken =
        take_host_part(machine_, host, [&](Param param, std::optional<double> from, double to) {
          const ParamUnit unit = info(param).unit;
          note(std::string{info(param).key}, from.value_or(0), to, unit);
        });
    machine_.host = describe(taken, host, file);
  }

  void change_word(const WhatIfName& known) {
    const std::vector<Param> params = params_of(machine_, known.name);
    if (params.empty()) {
      refuse(text_, fmt::format("machine {} has no parameter of this", machine_.name));
    }
    double factor = factor_.value_or(1);
    if (!factor_) {
      const Param first = machine_.has(known.first) ? known.first : params.front();
      const double now = machine_.get(first).value;
      const double then = absolute(info(first).unit);
      factor = info(first).unit == ParamUnit::Time ? now / then : then / now;
    }
    scale_captured(known.name, factor);
    for (const Param param : params) {
      const double now = machine_.get(param).value;
      set(param, info(param).unit == ParamUnit::Time ? now / factor : now * factor);
    }
  }

  /// Kernels of captured time have no parameters.
  void scale_captured(std::string_view name, double factor) {
    if (name == "gemm") machine_.multiply_factor(ScalesWith::Gemm, factor);
    if (name == "hbm") machine_.multiply_factor(ScalesWith::Hbm, factor);
    if (name == "pcie") machine_.multiply_factor(ScalesWith::Pcie, factor);
  }

  void set(Param param, double then) {
    if (const auto problem = out_of_range(param, then)) refuse(text_, *problem);
    ParamValue value = machine_.get(param);
    note(std::string{info(param).key}, value.value, then, info(param).unit);
    value.value = then;
    machine_.set(param, std::move(value));
  }

  void note(std::string key, double from, double to, ParamUnit unit) {
    changed_.push_back({text_, std::move(key), value_text(from, unit), value_text(to, unit)});
  }

  Machine& machine_;
  const std::string& text_;
  std::string_view value_;
  std::optional<double> factor_;
  std::vector<Changed>& changed_;
};

}  // namespace

std::vector<Changed> apply_what_ifs(Machine& machine, const std::vector<std::string>& what_ifs) {
  std::vector<Changed> changed;
  for (const std::string& text : what_ifs) WhatIf{machine, text, changed}.apply();
  if (!what_ifs.empty()) machine.name += fmt::format(" with {}", fmt::join(what_ifs, ", "));
  return changed;
}

Machine load_machine_with(const std::string& name_or_path,
                          const std::vector<std::string>& what_ifs) {
  Machine machine = load_machine(name_or_path);
  apply_what_ifs(machine, what_ifs);
  return machine;
}

}  // namespace foretrace
