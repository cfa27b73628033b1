// A captured kernel's name in a scenario and in the tables of models/kernels: short, a word of the
// language, and different for each different kernel.
#pragma once

#include <string>
#include <string_view>

namespace foretrace::captured {

/// Of a demangled name as CUPTI writes it:
/// "void at::native::reduce_kernel<512, 1, ...>(...)" is "reduce_kernel.0123456789abcdef". What
/// stands before the point is its family: the name without namespaces and template arguments.
/// Behind it stands FNV-1a (64 bits) of the name without return type, parameters, spaces and the
/// namespaces at::native, c10 and the anonymous one.
std::string kernel_word(std::string_view demangled);

/// Of an operation's name, as a label: "aten::_foreach_add_" is "foreach_add_".
std::string operation_word(std::string_view name);

/// "reduce_kernel"
std::string_view family_of(std::string_view word);

}  // namespace foretrace::captured
