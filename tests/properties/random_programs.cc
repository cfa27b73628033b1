// random_programs COUNT SEED DIR: writes DIR/random_0001.yaml ... for two devices of one process,
// to measure on real GPUs and to judge with `foretrace order`.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/properties/program_generator.h"

int main(int argc, char** argv) {
  using namespace foretrace::test;
  if (argc != 4) {
    fmt::print(stderr, "usage: random_programs COUNT SEED DIR\n");
    return 2;
  }
  const auto count = std::strtoull(argv[1], nullptr, 10);
  const auto seed = std::strtoull(argv[2], nullptr, 10);
  const std::filesystem::path directory = argv[3];
  std::filesystem::create_directories(directory);
  const ProgramShape shape{.most_devices = 2, .all_devices = true};
  for (std::uint64_t i = 1; i <= count; ++i) {
    const std::string name = fmt::format("random_{:04}", i);
    std::ofstream file{directory / (name + ".yaml")};
    file << random_program(Choices{seed * 1'000'003 + i, 60 + i * 37 % 200}, shape, name);
    if (!file) {
      fmt::print(stderr, "{}: cannot be written\n", (directory / name).string());
      return 4;
    }
  }
}
