#pragma once
// The library as a program finds it: by the names of its functions.
#include <string>
#include <vector>

namespace emulated_test {

// The address of a function; a test that asks for one that is not there fails.
void* symbol(const char* name);

// A call of it: call<int>("cudaMalloc", &p, n). Arguments must have the parameters' own types.
template <typename Result, typename... Arguments>
Result call(const char* name, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(symbol(name))(arguments...);
}

// Records since a number of records, as text of JSON; with the kernel's name as "name" and the
// stream as "stream" behind it.
std::vector<std::string> records_since(size_t first);
size_t record_count();

}  // namespace emulated_test
