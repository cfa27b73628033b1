// The words of a kernel's mangled past: what a person calls it.
#pragma once

#include <string>
#include <string_view>

namespace foretrace::capture {

/// "vectorized_elementwise_kernel" of "void at::native::(anonymous namespace)::
/// vectorized_elementwise_kernel<4, ...>(...)": the function's own name, letters, digits and
/// underscores, at most 60 of them, first a letter; what a library's templates all call "Kernel",
/// with its first argument.
std::string short_name(std::string_view kernel);

/// Its path, without template arguments and parameters; a mangled name as it is.
std::string_view function_of(std::string_view kernel);

bool is_nccl(std::string_view kernel);

}  // namespace foretrace::capture
