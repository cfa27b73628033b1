#include "reports/capture/kernel_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace foretrace::capture {

namespace {

constexpr std::size_t kMostLetters = 60;

/// The identifiers of a mangled name's path: "aiter", "add_rmsnorm" of
/// "_ZN5aiter11add_rmsnormI...". What follows the path (template arguments, parameters) is left
/// out.
std::string_view last_of_mangled(std::string_view name) {
  std::string_view last;
  name.remove_prefix(2);  // _Z
  if (name.starts_with('N')) name.remove_prefix(1);
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0) {
    std::size_t length = 0;
    while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0) {
      length = std::min<std::size_t>(name.size(),
                                     10 * length + static_cast<std::size_t>(name.front() - '0'));
      name.remove_prefix(1);
    }
    last = name.substr(0, length);
    name.remove_prefix(last.size());
  }
  return last;
}

/// "a::(anonymous namespace)::f<x>(y)" up to f's own parameters and template arguments: what stands
/// in a path's parentheses (anonymous namespaces, operators) and in front of its next :: is of it.
std::string_view path_of(std::string_view name) {
  int depth = 0;
  std::size_t first = std::string_view::npos;  // where the last part's own < or ( begins
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<' || c == '(' || c == '{' || c == '[') {
      if (depth++ == 0 && first == std::string_view::npos) first = i;
    } else if (c == '>' || c == ')' || c == '}' || c == ']') {
      if (depth > 0) --depth;
    } else if (depth == 0 && first != std::string_view::npos && name.substr(i).starts_with("::")) {
      first = std::string_view::npos;  // a namespace or a class
    }
  }
  return name.substr(0, first);
}

/// Behind the last :: that is in no brackets.
std::string_view last_part(std::string_view path) {
  int depth = 0;
  for (std::size_t i = path.size(); i-- > 0;) {
    const char c = path[i];
    if (c == '>' || c == ')' || c == '}' || c == ']') ++depth;
    if (c == '<' || c == '(' || c == '{' || c == '[') --depth;
    if (depth == 0 && i > 0 && c == ':' && path[i - 1] == ':') return path.substr(i + 1);
  }
  return path;
}

std::string letters_of(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kMostLetters)) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_plain) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

/// Libraries of templates call all their kernels so; which it is say their arguments.
bool says_nothing(std::string_view name) {
  constexpr std::array<std::string_view, 7> kOfTemplates{
      "Kernel", "Kernel2", "kernel", "device_kernel", "kentry", "global_kernel", "kernel_func"};
  return std::ranges::find(kOfTemplates, name) != kOfTemplates.end();
}

std::string own_name(std::string_view kernel) {
  if (kernel.starts_with("void ")) kernel.remove_prefix(5);
  if (kernel.starts_with("_Z")) {
    const std::string_view last = last_of_mangled(kernel);
    // What stands behind it names a template's first argument.
    if (!last.empty() && !says_nothing(last)) return letters_of(last);
    return letters_of(kernel.substr(2));
  }
  const std::string_view path = path_of(kernel);
  std::string name = letters_of(last_part(path));
  if (!says_nothing(name) || path.size() == kernel.size()) return name;
  std::string_view argument = kernel.substr(path.size() + 1);
  int depth = 0;
  std::size_t end = 0;
  while (end < argument.size() && !(depth == 0 && (argument[end] == ',' || argument[end] == '>'))) {
    if (argument[end] == '<') ++depth;
    if (argument[end] == '>') --depth;
    ++end;
  }
  argument = argument.substr(0, end);
  return letters_of(fmt::format("{} {}", name, letters_of(last_part(path_of(argument)))));
}

}  // namespace

std::string short_name(std::string_view kernel) {
  std::string name = own_name(kernel);
  constexpr std::array<std::string_view, 9> kYamlsOwn{"null", "true", "false", "yes", "no",
                                                      "on",   "off",  "y",     "n"};
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool is_yamls = std::ranges::find(kYamlsOwn, lower) != kYamlsOwn.end();
  if (name.empty()) return "kernel";
  if (is_yamls || std::isalpha(static_cast<unsigned char>(name.front())) == 0) {
    name = "kernel_" + name;
  }
  return name;
}

std::string_view function_of(std::string_view kernel) {
  return kernel.starts_with("_Z") ? kernel : path_of(kernel);
}

bool is_nccl(std::string_view kernel) {
  const bool is_library = kernel.starts_with("nccl") || kernel.starts_with("msccl");
  return is_library && kernel.find("Kernel") != std::string_view::npos;
}

}  // namespace foretrace::capture
