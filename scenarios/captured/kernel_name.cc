#include "scenarios/captured/kernel_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

namespace foretrace::captured {
namespace {

constexpr std::array<std::string_view, 4> kSilent{
    "(anonymous namespace)::", "at::native::", "c10::", "void "};

std::string without_silent(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const auto* silent =
        std::ranges::find_if(kSilent, [&](std::string_view one) { return name.starts_with(one); });
    if (silent != kSilent.end()) {
      name.remove_prefix(silent->size());
      continue;
    }
    if (name.front() != ' ') out += name.front();
    name.remove_prefix(1);
  }
  return out;
}

/// Up to the parenthesis of its parameters.
std::string_view without_parameters(std::string_view name) {
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>' && (i == 0 || name[i - 1] != '-')) --depth;
    if (name[i] == '(' && depth == 0 && i > 0) return name.substr(0, i);
  }
  return name;
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::string kernel_word(std::string_view demangled) {
  const std::string plain = without_silent(demangled);
  const std::string_view whole = without_parameters(plain);
  std::string_view head = whole.substr(0, whole.find('<'));
  if (const auto colons = head.rfind("::"); colons != std::string_view::npos) {
    head.remove_prefix(colons + 2);
  }
  std::string family;
  for (const char c : head) {
    family += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (family.empty() || std::isdigit(static_cast<unsigned char>(family.front())) != 0) {
    family.insert(0, "k_");
  }
  return fmt::format("{}.{:016x}", family, fnv1a(whole));
}

std::string operation_word(std::string_view name) {
  if (const auto colons = name.rfind("::"); colons != std::string_view::npos)
    name.remove_prefix(colons + 2);
  std::string made;
  for (const char c : name) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (fits) made += c;
  }
  while (made.starts_with('_')) made.erase(0, 1);
  if (made.empty() || std::isdigit(static_cast<unsigned char>(made.front())) != 0)
    made.insert(0, "call_");
  return made;
}

std::string_view family_of(std::string_view word) { return word.substr(0, word.find('.')); }

}  // namespace foretrace::captured
