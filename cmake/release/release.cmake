# cmake --build build/release --target release_packages: what installs without a compiler, into build/release/packages
# (README.md of this folder). Included once the program is there.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT TARGET foretrace OR FORETRACE_SANITIZE OR NOT Python3_FOUND)
  return()
endif()
set(needed foretrace foretrace_flows)
foreach(target foretrace_cuda foretrace_nvml foretrace_nvrtc12 foretrace_nvrtc13 foretrace_timer)
  if(TARGET ${target})
    list(APPEND needed ${target})
  endif()
endforeach()
add_custom_target(release_packages
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/release/packages.py
          --build ${PROJECT_BINARY_DIR} --cmake ${CMAKE_COMMAND} --cpack ${CMAKE_CPACK_COMMAND}
          --compiler ${CMAKE_CXX_COMPILER} --version ${PROJECT_VERSION} -o ${PROJECT_BINARY_DIR}/packages
  DEPENDS ${needed}
  USES_TERMINAL VERBATIM)
