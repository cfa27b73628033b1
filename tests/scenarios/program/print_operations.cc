// Writes the reader's operations with their keys, and its words, as JSON, for schema_test.py.
#include <fstream>
#include <nlohmann/json.hpp>

#include "scenarios/program/op_catalogue.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  nlohmann::ordered_json known;
  for (const auto& op : foretrace::describe_operations()) known["operations"][op.name] = op.keys;
  known["words"] = foretrace::describe_words();
  std::ofstream{argv[1]} << known.dump(2) << "\n";
  return 0;
}
