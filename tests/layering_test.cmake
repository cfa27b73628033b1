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
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/scenarios/*.cc ${ROOT}/models/*.cc
     ${ROOT}/sim/*.cc ${ROOT}/reports/*.cc ${ROOT}/hw/*.cc)
list(FILTER sources EXCLUDE REGEX "^hw/laboratory/")  # experiments: tests/hw builds them
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

# A file that no target compiles is forgotten.
foreach(source IN LISTS sources)
  string(REGEX REPLACE "^([a-z]+)/.*" "\\1" dir ${source})
  string(REGEX REPLACE "^[a-z]+/" "" name ${source})
  if(EXISTS ${ROOT}/${dir}/CMakeLists.txt)
    if(NOT DEFINED list_of_${dir})
      file(READ ${ROOT}/${dir}/CMakeLists.txt list_of_${dir})
    endif()
    string(FIND "${list_of_${dir}}" "${name}" found)
    if(found EQUAL -1)
      string(APPEND violations "  ${source}: not in ${dir}/CMakeLists.txt\n")
    endif()
  endif()
endforeach()

# SimGrid is loaded when the first flow starts: only what is in that library includes it.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/sim/*.cc ${ROOT}/sim/*.h)
list(FILTER files EXCLUDE REGEX "^sim/engine/simgrid_")
foreach(file IN LISTS files)
  file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"](simgrid/|xbt/|sim/engine/simgrid_)")
  foreach(line IN LISTS lines)
    string(APPEND violations "  ${file}: ${line}\n")
  endforeach()
endforeach()

# Only command lines know the parser of command lines.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/scenarios/*.cc ${ROOT}/scenarios/*.h ${ROOT}/models/*.cc
     ${ROOT}/models/*.h ${ROOT}/sim/*.cc ${ROOT}/sim/*.h ${ROOT}/reports/*.cc ${ROOT}/reports/*.h
     ${ROOT}/hw/*.cc ${ROOT}/hw/*.h)
list(FILTER files EXCLUDE REGEX "^hw/laboratory/")
foreach(file IN LISTS files)
  if(NOT file MATCHES "^(scenarios/base/command_line|sim/cli|hw/cli)/")
    file(STRINGS ${ROOT}/${file} lines REGEX
         "^[ \t]*#[ \t]*include[ \t]*[<\"](CLI/|scenarios/base/command_line/|sim/cli/|hw/cli/)")
    foreach(line IN LISTS lines)
      string(APPEND violations "  ${file}: ${line}\n")
    endforeach()
  endif()
endforeach()

# One way to the terminal (scenarios/base/text/print.h), one to read a file that a user names
# (text_file.h), one to write one (reports/timeline/write_file.h): each is safe once.
set(own_ways "fmt::print|std::cout|std::cerr|[^a-z_]f?printf *\\(|fputs *\\(|[io]fstream [a-z]|fopen *\\(|copy_file *\\(|::rename *\\(")
set(have_them "^(scenarios/base/text/(print|text_file)|reports/timeline/write_file|hw/node/environment|hw/products/product_table)\\.cc$")
foreach(file IN LISTS files)
  if(NOT file MATCHES "${have_them}")
    file(STRINGS ${ROOT}/${file} lines REGEX "${own_ways}")
    foreach(line IN LISTS lines)
      string(APPEND violations "  ${file}: ${line}\n")
    endforeach()
  endif()
endforeach()

# A room that is too full is hard to read, and one that does not say what it is hard to find.
set(rooms "")
foreach(file IN LISTS files)
  get_filename_component(room ${file} DIRECTORY)
  list(APPEND rooms ${room})
endforeach()
set(most_files_in_a_room 30)
set(unique_rooms ${rooms})
list(REMOVE_DUPLICATES unique_rooms)
foreach(room IN LISTS unique_rooms)
  set(here ${rooms})
  list(FILTER here INCLUDE REGEX "^${room}$")
  list(LENGTH here count)
  if(count GREATER most_files_in_a_room)
    string(APPEND violations "  ${room}: ${count} source files; split it\n")
  endif()
  if(NOT EXISTS ${ROOT}/${room}/README.md)
    string(APPEND violations "  ${room}: no README.md\n")
  endif()
endforeach()

# What each of our targets may link of ours, and of the engine and the GPU libraries. A target
# that is not listed here is a violation: a new one needs a line.
set(may_link_yaml_cpp  nothing)             # yaml-cpp under one name in all its versions
set(may_link_scenario options yaml_cpp)
set(may_link_timeline options scenario)
set(may_link_models   options scenario timeline)
set(may_link_report   options scenario timeline)
set(may_link_interchange options scenario)   # workloads of other simulators
set(may_link_capture  options scenario timeline interchange)
set(may_link_sim      options scenario timeline models)
set(may_link_flows    options simgrid)       # what sim loads for its flows
set(may_link_fit      options scenario timeline models report sim)  # predicts, and reads measurements
set(may_link_fit_products options scenario timeline models report capture interchange sim fit)  # the same, for products
set(may_link_nccl_tests options scenario timeline models report sim)  # predicts and compares: both
set(may_link_accept   options scenario timeline models report sim nccl_tests)  # judges a machine by the same
set(may_link_plan     options scenario timeline models report sim)  # predicts, and writes a page
set(may_link_transfer options scenario timeline models)  # judges products by facts
set(may_link_local_page options scenario timeline report)  # runs commands that it is given
set(may_link_command_line options scenario)  # what both programs' command lines share
set(may_link_cli      options scenario timeline models report capture interchange sim accept local_page fit fit_products nccl_tests plan transfer command_line)
set(may_link_foretrace cli)                  # the program foretrace
set(may_link_hw_core  options scenario timeline)
set(may_link_cuda     options)               # a GPU for programs where there is none: knows nothing of ours
set(may_link_nvml     options)
set(may_link_nvrtc12  options)
set(may_link_nvrtc13  options)
set(may_link_timer    options)               # times a program's calls of the real libraries
set(may_link_kernels  gpu)                   # CUDA C++17, behind plain headers
set(may_link_hw       options scenario timeline hw_core kernels command_line gpu)
set(may_link_hw_cli   options scenario timeline hw_core hw command_line gpu)              # the program foretrace-hw
file(STRINGS ${LINKS} targets)
foreach(line IN LISTS targets)
  string(REGEX MATCH "^([^:]+): *(.*)$" line "${line}")
  set(target ${CMAKE_MATCH_1})
  separate_arguments(libraries UNIX_COMMAND "${CMAKE_MATCH_2}")
  string(REPLACE "foretrace_" "" part ${target})
  if(target STREQUAL "foretrace")
    set(part foretrace)
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
