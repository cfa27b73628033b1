// What counts.py runs, in one file by several names: sanitized programs are large, and another
// machine gets them packed.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "tests/hostile/mains.h"

int main(int argc, char** argv) {
  std::string_view name{argc > 0 ? argv[0] : ""};
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  if (name == "foretrace") return main_of_foretrace(argc, argv);
  if (name == "many_rows") return main_of_many_rows(argc, argv);
  if (name == "fuzz_readers") return main_of_fuzz_readers(argc, argv);
  if (name == "many_commands") return main_of_many_commands();
  if (name == "simulator_property_test") {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  }
  std::fputs(
      "its name says which it is: foretrace, many_rows, fuzz_readers, many_commands, "
      "simulator_property_test\n",
      stderr);
  return 2;
}
