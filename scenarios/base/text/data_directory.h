// Where the files that come with foretrace are: machine files, scenarios, schemas.
#pragma once

#include <filesystem>
#include <vector>

namespace foretrace {

/// The directory that has models/machines and scenarios below it: what the environment variable
/// FORETRACE_DATA names; without it the nearest one above this program's own file (a checkout that
/// it was built in), or share/foretrace beside that (an installation). Nothing is compiled in, so
/// a program may be moved together with its files. Throws UsageError when there is none.
const std::filesystem::path& data_directory();
bool has_data_directory();  ///< whether there is one

/// Of a file or directory that a user names: `file` itself where it is, else the shipped one of
/// that name ("scenarios/examples/prefetch_two_streams.yaml" from anywhere), else `file`.
std::filesystem::path shipped_file(const std::filesystem::path& file);

/// The shipped scenarios, by their names in the repository; none without data_directory().
std::vector<std::filesystem::path> shipped_scenarios();

}  // namespace foretrace
