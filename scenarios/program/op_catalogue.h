// Every operation a scenario can hold, as `foretrace list ops` and the JSON schema's test see it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace foretrace {

struct OpDescription {
  std::string name;  ///< "memcpy_async"
  std::string keys;  ///< "[stream] src dst [size]": optional ones in brackets; `id` goes with all
  std::string summary;  ///< half a sentence
};

/// In the order of ops.h, then torch.distributed's, blocks last.
std::vector<OpDescription> describe_operations();

/// The words that a key takes wherever it stands, by the name of their definition in the schema:
/// "type", "product_type", "operator".
std::map<std::string, std::vector<std::string>> describe_words();

}  // namespace foretrace
