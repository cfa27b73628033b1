// A machine by what it is made of: "8xB200+ib-ndr:64" is count x GPU [@host] [/link]
// [+network[:nodes]]. Clouds and appliances are such lines with a name:
// models/machines/compositions/named.yaml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "models/machine/parts/part.h"

namespace foretrace {

struct Composition {
  std::uint32_t gpus = 1;           ///< of a node
  std::string gpu;                  ///< a part's name, or its file's
  std::string host, link, network;  ///< empty: as this GPU is sold
  std::optional<std::uint32_t> nodes;
};

/// The nodes of a machine where nobody says how many there are.
inline constexpr std::uint32_t kAnyNodes = 1024;

struct NamedComposition {
  std::string name, is, summary;
};

/// The names of clouds and appliances.
const std::vector<NamedComposition>& named_compositions();

/// What a name is made of; none where it does not begin with a count and an x. Throws UsageError
/// where it does and is wrong.
std::optional<Composition> parse_composition(const std::string& name);

/// The parts of a composition, as far as it has them.
struct Parts {
  Composition composition;
  Part gpu, link, host;
  Part network;
  bool network_is_named = false;
};
/// Throws UsageError where a part is not known, or does not go with another.
Parts parts_of(const Composition& composition, const std::string& name);

/// The machine: the GPU's facts, links, host and network, and all else from the machines that its
/// parts name, by the scaling rules. Nothing is missing.
Machine compose(const Parts& parts, const std::string& name);

/// The machine that `name` says, by the name of a cloud's or by its parts; none where it is
/// neither.
std::optional<Machine> composed_machine(const std::string& name);

}  // namespace foretrace
