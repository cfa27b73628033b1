// Runs the program foretrace as a user does: in a shell, in a scratch directory, with its output
// in pipes.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace foretrace::test {

/// Before a command that must end soon and small: 4 GiB and 100 s of its processors, which others
/// that load the machine do not use up; sanitized, 300 s, and any memory, since AddressSanitizer
/// reserves its shadow.
std::string hostile_limits();

struct Ran {
  int exit_code{};
  std::string out;
  std::string err;
};

/// A directory of this test's own, gone at its end. `scenarios`, `models` and `reports` in it are
/// the repository's, so that the README's commands run there as they stand.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// `command` as a user types it; `foretrace` is the program that was built, or, where the
  /// environment has FORETRACE_SANITIZED_PROGRAM, that one: ./test.sh has a build beside this one.
  Ran run(const std::string& command) const;
  Ran run_with(const std::filesystem::path& foretrace, const std::string& command) const;
  void write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

/// What `run` runs. Throws when it is not there.
std::filesystem::path tested_program();

std::string read_file(const std::filesystem::path& file);

/// A scenario file of the repository, as tests see it.
struct Shipped {
  std::string file;     ///< "scenarios/streams/small_kernels.yaml"
  std::string machine;  ///< the model it is tested on
  bool hangs = false;   ///< simulate ends with exit code 1 and says who waits
  bool fails = false;   ///< simulate ends with exit code 1 and says what failed
  bool warns = false;   ///< check has a warning, since it hangs or is tagged `warned`
  bool states = false;  ///< it has an expect: section
  int exit_code() const { return hangs || fails ? 1 : 0; }
  friend std::ostream& operator<<(std::ostream& out, const Shipped& s) { return out << s.file; }
};
/// All of them, sorted.
const std::vector<Shipped>& shipped_scenarios();
/// "streams_small_kernels", as a name that GoogleTest takes.
std::string test_name(const Shipped& scenario);

/// Of the step that `simulate` printed, "step: 4.321 ms, ...".
double step_ms(const Ran& ran);

}  // namespace foretrace::test
