// What a result was made from, so that nothing made from something else is taken for it: the files
// that were read, and the program.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace foretrace {

/// SHA-1, written as a UUID like a program's hash.
std::string digest_of(std::string_view bytes);

/// The linker's id of this program: another build of the same version has another one. "none"
/// where the linker gave none.
const std::string& build_id();

/// By name, as it was opened; of a shipped file from the data directory on, behind "data:".
using FileDigests = std::map<std::string, std::string>;

/// Of all that text_file.h has read in this process, and in the one that it was forked from.
FileDigests digests_of_read_files();

/// What a file is called there.
std::string name_in_digests(const std::filesystem::path& file);

/// The same of a file as it is now, by that name; empty when it cannot be read.
std::string digest_now(const std::string& name);

/// Of a file as this process read it last; empty where it has not, or opened it by another name.
std::string digest_as_read(const std::string& file);

/// For text_file.h only.
void note_read_file(const std::filesystem::path& file, std::string digest);

}  // namespace foretrace
