// --fidelity, which every command that simulates has.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "sim/simulate.h"

namespace foretrace {

inline void add_fidelity_option(CLI::App& command, Fidelity& fidelity) {
  command
      .add_option_function<std::string>(
          "--fidelity",
          [&fidelity](const std::string& name) {
            fidelity = name == "chunk" ? Fidelity::Chunk : Fidelity::Flow;
          },
          "flow: a NCCL operation is a latency and one flow (default); chunk: it runs slice by "
          "slice, so late ranks and shared ports act within it")
      ->check(CLI::IsMember({"flow", "chunk"}).description(""))
      ->option_text("flow|chunk");
}

}  // namespace foretrace
