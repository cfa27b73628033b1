# Who may include and who may link what, as the design has it:
#   scenario <- timeline <- {models <- sim, hw, report}; only the command line links them together.
# cmake -DROOT=<source tree> -DLINKS=<file of "target: library library ..." lines> -P layering_test.cmake
cmake_minimum_required(VERSION 3.25)
set(violations "")

set(gpu "cuda|cublas|cupti|nccl\\.h|mpi\\.h|nvml")
set(forbidden_includes
  "scenarios=${gpu}|simgrid|reports/|models/|sim/|hw/"
  "reports=${gpu}|simgrid|models/|sim/|hw/"
  "models=${gpu}|simgrid|sim/|hw/"
  "sim=${gpu}|hw/"
  "hw=simgrid|models/|sim/")
set(checked 0)
foreach(rule IN LISTS forbidden_includes)
  string(REGEX MATCH "^([a-z]+)=(.*)$" rule "${rule}")
  set(dir ${CMAKE_MATCH_1})
  set(forbidden "${CMAKE_MATCH_2}")
  file(GLOB_RECURSE files ${ROOT}/${dir}/*.h ${ROOT}/${dir}/*.cc ${ROOT}/${dir}/*.cu ${ROOT}/${dir}/*.cuh)
  foreach(file IN LISTS files)
    math(EXPR checked "${checked} + 1")
    file(STRINGS ${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"](${forbidden})")
    foreach(line IN LISTS lines)
      string(APPEND violations "  ${file}: ${line}\n")
    endforeach()
  endforeach()
endforeach()

# x.cc includes x.h first, which proves that x.h compiles alone.
file(GLOB sources RELATIVE ${ROOT} ${ROOT}/scenarios/*.cc ${ROOT}/models/*.cc ${ROOT}/sim/*.cc
     ${ROOT}/reports/*.cc ${ROOT}/hw/*.cc)
foreach(source IN LISTS sources)
  string(REGEX REPLACE "\\.cc$" ".h" header ${source})
  if(EXISTS ${ROOT}/${header})
    file(STRINGS ${ROOT}/${source} includes REGEX "^#include")
    list(GET includes 0 first)
    if(NOT first STREQUAL "#include \"${header}\"")
      string(APPEND violations "  ${source}: its own header is not its first include\n")
    endif()
  endif()
endforeach()

# What each of our targets may link of ours, and of the engine and the GPU libraries. A target
# that is not listed here is a violation: a new one needs a line.
set(may_link_yaml_cpp  nothing)             # yaml-cpp under one name in all its versions
set(may_link_scenario options yaml_cpp)
set(may_link_timeline options scenario)
set(may_link_models   options scenario timeline)
set(may_link_report   options scenario timeline)
set(may_link_sim      options scenario timeline models simgrid)
set(may_link_fit      options scenario timeline models report sim)  # predicts, and reads measurements
set(may_link_nccl_tests options scenario timeline models report sim)  # predicts and compares: both
set(may_link_cli      options scenario timeline models report sim fit nccl_tests simgrid)  # the program foretrace
set(may_link_hw_core  options scenario timeline)
set(may_link_kernels  gpu)                   # CUDA C++17, behind plain headers
set(may_link_hw       options scenario timeline hw_core kernels gpu)
set(may_link_hw_cli   options scenario timeline hw_core hw gpu)              # the program foretrace-hw
file(STRINGS ${LINKS} targets)
foreach(line IN LISTS targets)
  string(REGEX MATCH "^([^:]+): *(.*)$" line "${line}")
  set(target ${CMAKE_MATCH_1})
  separate_arguments(libraries UNIX_COMMAND "${CMAKE_MATCH_2}")
  string(REPLACE "foretrace_" "" part ${target})
  if(target STREQUAL "foretrace")
    set(part cli)
  elseif(target STREQUAL "foretrace-hw")
    set(part hw_cli)
  endif()
  if(NOT DEFINED may_link_${part})
    string(APPEND violations "  target ${target}: no rule for it in layering_test.cmake\n")
  endif()
  math(EXPR checked "${checked} + 1")
  foreach(library IN LISTS libraries)
    if(library MATCHES "^foretrace(::|_)(.+)$")
      set(kind ${CMAKE_MATCH_2})
    elseif(library MATCHES "[Ss][Ii][Mm][Gg][Rr][Ii][Dd]")
      set(kind simgrid)
    elseif(library MATCHES "^(CUDA|NCCL|MPI)::")
      set(kind gpu)
    else()
      continue()  # a library that knows neither layers nor GPUs
    endif()
    if(NOT kind IN_LIST may_link_${part})
      string(APPEND violations "  target ${target} links ${library}\n")
    endif()
  endforeach()
endforeach()

if(violations)
  message(FATAL_ERROR "layering violations:\n${violations}")
endif()
if(checked LESS 20)
  message(FATAL_ERROR "looked at ${checked} files and targets only: is ROOT the source tree?")
endif()
message(STATUS "${checked} files and targets keep to their layers")
