#include "tests/hw/programs.h"

#include <stdexcept>

#include "scenarios/read/scenario.h"

namespace foretrace::hw {

Program program_of(const std::string& body, const std::string& name) {
  const std::string text = "schema_version: 1\nname: " + name + "\n" + body;
  auto read = read_scenario(text, name + ".yaml");
  if (!read) throw std::runtime_error{render(read.error(), text)};
  return std::move(read->program);
}

const Op& find_op(const Program& program, const std::string& kind) {
  for (const OpInfo& info : index_ops(program)) {
    if (kind_name(info.op->kind) == kind) return *info.op;
  }
  throw std::runtime_error{"no " + kind + " in the program"};
}

}  // namespace foretrace::hw
