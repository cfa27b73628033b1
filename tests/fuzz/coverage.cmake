# For CMAKE_PROJECT_foretrace_INCLUDE: what random_main.cc is guided by. Not for all of CMake's own
# checks of the compiler, which do not have its function.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize-coverage=trace-pc>)
