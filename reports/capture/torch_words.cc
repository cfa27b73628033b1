#include "reports/capture/torch_words.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace foretrace::capture {
namespace {

struct CollectiveWord {
  std::string_view captured, written;
};

}  // namespace

std::string_view word_of(std::string_view captured) {
  constexpr std::array<CollectiveWord, 8> kWords{
      {{"allreduce", "all_reduce"},
       {"allreduce_coalesced", "all_reduce"},
       {"_allgather_base", "all_gather"},
       {"all_gather", "all_gather"},
       {"_reduce_scatter_base", "reduce_scatter"},
       {"reduce_scatter", "reduce_scatter"},
       {"allgather_into_tensor_coalesced", "all_gather"},
       {"reduce_scatter_tensor_coalesced", "reduce_scatter"}}};
  const auto* const found = std::ranges::find(kWords, captured, &CollectiveWord::captured);
  return found == kWords.end() ? std::string_view{} : found->written;
}

TypeWord type_of(std::string_view captured) {
  constexpr std::array<TypeWord, 8> kTypes{{{"Float", "float32", 4},
                                            {"BFloat16", "bfloat16", 2},
                                            {"Half", "float16", 2},
                                            {"Double", "float64", 8},
                                            {"Int", "int32", 4},
                                            {"Long", "int64", 8},
                                            {"Char", "int8", 1},
                                            {"Byte", "int8", 1}}};
  const auto* const found = std::ranges::find(kTypes, captured, &TypeWord::captured);
  return found == kTypes.end() ? kTypes.front() : *found;
}

std::string group_name(const std::string& ranks) {
  std::string name = "group";
  for (const char c : ranks) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (is_digit) {
      name += c;
    } else if (name.back() != '_') {
      name += '_';
    }
  }
  while (name.back() == '_') name.pop_back();
  return name;
}

}  // namespace foretrace::capture
