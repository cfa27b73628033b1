// bin/foretrace of the packages that bring their own libraries: starts lib/foretrace/foretrace by
// the loader and libc that lie beside it, whatever the system has. Linked statically, so that it
// needs neither.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

/// This file, with links resolved; without /proc by the name that it was started by.
std::string own_file() {
  char resolved[PATH_MAX];
  if (::realpath("/proc/self/exe", resolved) != nullptr) return resolved;
  const auto* called = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  return called != nullptr && ::realpath(called, resolved) != nullptr ? resolved : "";
}

}  // namespace

int main(int count, char** arguments) {
  std::string folder = own_file();
  for (int up = 0; up < 2 && !folder.empty(); ++up)
    folder.resize(folder.rfind('/'));  // PREFIX/bin/foretrace
  folder += "/lib/foretrace";
  // The loader takes these for the end of a name, or for a variable: another folder's libraries.
  if (folder.find_first_of(":;$") != std::string::npos) {
    std::fprintf(stderr, "error: foretrace does not start from a folder with ':', ';' or '$': %s\n",
                 folder.c_str());
    return 4;
  }
  const std::string loader = folder + "/" FORETRACE_LOADER;
  const std::string program = folder + "/foretrace";
  // What is preloaded was made for the system's libc, and this is another one.
  ::unsetenv("LD_PRELOAD");
  std::vector<const char*> all{
      loader.c_str(),    "--argv0",        count > 0 ? arguments[0] : "foretrace",
      "--inhibit-cache", "--library-path", folder.c_str(),
      program.c_str()};
  for (int i = 1; i < count; ++i) all.push_back(arguments[i]);
  all.push_back(nullptr);
  ::execv(loader.c_str(), const_cast<char* const*>(all.data()));
  std::fprintf(stderr,
               "error: cannot start %s: %s\n  hint: foretrace is moved with its folders bin, lib "
               "and share, or not at all\n",
               loader.c_str(), ::strerror(errno));
  return 4;
}
