// `include:`: operations, objects and host threads of another file, a part, in place of copied
// text. Parts are put in before anything is read: what follows knows one tree only, whose nodes
// still say which file they are from.
#pragma once

#include <map>
#include <string>

#include "scenarios/base/text/yaml_reader.h"

namespace foretrace {

/// Texts of parts by path.
using IncludedTexts = std::map<std::string, std::string>;

/// Puts parts in the places of `include`, at the top of `root` and in its threads' lists of
/// operations. Whether there was one. A part is found relative to the file that includes it, and in
/// `texts` instead of on the disk when that is not empty; else it is kept there.
bool put_in_parts(YamlNode& root, Problems& problems, IncludedTexts* texts);

/// The tree as text, without comments, for which parse_yaml gives the same tree.
std::string yaml_text(const YamlNode& root);

/// Fills the `$name`s below `node`, keys too, with the values in `with`. A value that is more than
/// a word or a number goes into parentheses where it does not stand alone. Each name that is not in
/// `with` is an error.
void fill(YamlNode& node, const std::map<std::string, std::string>& with, Problems& problems);

}  // namespace foretrace
