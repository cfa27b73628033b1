// Writes the reader's operations and their keys as JSON, for schema_test.py.
#include <fstream>
#include <nlohmann/json.hpp>

#include "scenarios/program/op_catalogue.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  nlohmann::ordered_json operations;
  for (const auto& op : foretrace::describe_operations()) operations[op.name] = op.keys;
  std::ofstream{argv[1]} << operations.dump(2) << "\n";
  return 0;
}
