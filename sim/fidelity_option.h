// --fidelity, which every command that simulates has.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "sim/simulate.h"

namespace foretrace {

inline void add_fidelity_option(CLI::App& command, Fidelity& fidelity) {
  const std::map<std::string, Fidelity> names{{"flow", Fidelity::Flow}, {"chunk", Fidelity::Chunk}};
  command
      .add_option(
          "--fidelity", fidelity,
          "flow: a NCCL operation is a latency and one flow (default); chunk: it runs slice "
          "by slice, so late ranks and shared ports act within it")
      ->transform(CLI::CheckedTransformer(names).description(""))
      ->option_text("flow|chunk");
}

}  // namespace foretrace
