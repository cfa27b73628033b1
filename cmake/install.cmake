# `cmake --install` and `cpack`: the program with its files, and the library for find_package. Included
# once all targets are there. Components:
#   program   bin/foretrace, share/foretrace (machine files, scenarios, schemas, the measurements that
#             README shows, the executor in PyTorch), manual pages and completions; the reports' assets are in the program;
#             lib/foretrace/libforetrace_flows.so, which links SimGrid, and is loaded when a flow starts
#   harness   bin/foretrace-hw, where it is built
#   library   headers, static libraries and their CMake package; what is built with them loads the program's
#             libforetrace_flows.so
#   bundled   the shared libraries that a plain system lacks, in lib/foretrace; with FORETRACE_BUNDLE
include(GNUInstallDirs)
option(FORETRACE_BUNDLE
       "Install the shared libraries beyond libc and libstdc++, too: runs without root and apt" OFF)
set(data_dir ${CMAKE_INSTALL_DATADIR}/foretrace)

# No path of the build in what is installed: assertions name files from the root of the tree.
target_compile_options(foretrace_options INTERFACE
  $<$<AND:$<CONFIG:Release,RelWithDebInfo>,$<COMPILE_LANGUAGE:CXX>>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>)

install(DIRECTORY models/machines models/constants models/kernels models/products DESTINATION ${data_dir}/models COMPONENT program)
install(DIRECTORY scenarios/ DESTINATION ${data_dir}/scenarios COMPONENT program
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.json" PATTERN "*.md")
install(DIRECTORY scenarios/styles DESTINATION ${data_dir}/scenarios COMPONENT program FILES_MATCHING PATTERN "*.json.gz")
install(DIRECTORY reports/measured/prefetch_two_streams reports/measured/calibrate_copies
        reports/measured/pytorch_steps DESTINATION ${data_dir}/reports/measured COMPONENT program)
install(DIRECTORY hw/pytorch DESTINATION ${data_dir}/hw COMPONENT program
        FILES_MATCHING PATTERN "*.py" PATTERN "*.json" PATTERN "README.md" PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY hw/emulated/devices DESTINATION ${data_dir}/hw/emulated COMPONENT program)
install(DIRECTORY scenarios/pytorch DESTINATION ${data_dir}/scenarios COMPONENT program
        FILES_MATCHING PATTERN "*.py" PATTERN "*.ipynb" PATTERN "*.toml" PATTERN "*.json.gz" PATTERN "README.md" PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY reports/published DESTINATION ${data_dir}/reports COMPONENT program)
install(FILES reports/environment.schema.json reports/timeline.schema.json DESTINATION ${data_dir}/reports
        COMPONENT program)
install(PROGRAMS sim/applications/accept/accept.sbatch DESTINATION ${data_dir}/accept COMPONENT program)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT program)

# ./run.sh builds the program and nothing else: what a component has beside it is built before it is installed.
function(foretrace_build_first component)
  string(JOIN " " targets ${ARGN})
  install(CODE "
    execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${PROJECT_BINARY_DIR}\" --target ${targets}
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
endfunction()

# What a program says of itself: pages and completions, written by the program that is built.
function(foretrace_install_program program component)
  install(TARGETS ${program} RUNTIME COMPONENT ${component})
  set(pages ${PROJECT_BINARY_DIR}/pages/${program})
  add_custom_command(
    OUTPUT ${pages}/done
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DNAME=${program} -DPAGES=${pages}
            -P ${PROJECT_SOURCE_DIR}/scenarios/base/command_line/write_pages.cmake
    DEPENDS ${program} ${PROJECT_SOURCE_DIR}/scenarios/base/command_line/write_pages.cmake
    VERBATIM)
  set(in_all ALL)
  if(FORETRACE_PROGRAM_TESTED_ELSEWHERE)
    set(in_all "")
  endif()
  add_custom_target(${program}_pages ${in_all} DEPENDS ${pages}/done)
  foretrace_build_first(${component} ${program}_pages)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT ${component})
  install(FILES ${pages}/${program}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME ${program} COMPONENT ${component})
  # Where Debian's zsh looks; elsewhere it is one directory to name in fpath.
  install(FILES ${pages}/_${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
          COMPONENT ${component})
endfunction()
if(TARGET foretrace)
  set_target_properties(foretrace PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/foretrace")
  set_target_properties(foretrace_flows PROPERTIES INSTALL_RPATH "$ORIGIN")
  if(FORETRACE_BUNDLE)  # a RUNPATH would not serve the libraries' own libraries
    target_link_options(foretrace PRIVATE -Wl,--disable-new-dtags)
    target_link_options(foretrace_flows PRIVATE -Wl,--disable-new-dtags)
  endif()
  install(TARGETS foretrace_flows LIBRARY DESTINATION lib/foretrace COMPONENT program)
  if(TARGET foretrace_cuda)  # what `python3 -m foretrace capture` runs programs on
    set(stand_ins foretrace_cuda foretrace_nvml foretrace_nvrtc12 foretrace_nvrtc13 foretrace_timer)
    foretrace_build_first(program ${stand_ins})
    install(TARGETS ${stand_ins} LIBRARY DESTINATION lib/foretrace COMPONENT program)
  endif()
  foretrace_install_program(foretrace program)
endif()
if(TARGET foretrace-hw)
  if(FORETRACE_BUNDLE)
    target_link_options(foretrace-hw PRIVATE -Wl,--disable-new-dtags)
  endif()
  foretrace_install_program(foretrace-hw harness)
endif()

# find_package(foretrace): the libraries that a program of one's own predicts with.
set(libraries foretrace_options foretrace_scenario foretrace_timeline foretrace_report foretrace_models)
if(TARGET foretrace_sim)
  list(APPEND libraries foretrace_sim)
  target_link_options(foretrace_sim INTERFACE "$<INSTALL_INTERFACE:-Wl,-rpath,$<INSTALL_PREFIX>/lib/foretrace>")
endif()
if(TARGET foretrace_yaml_cpp)
  list(APPEND libraries foretrace_yaml_cpp)
endif()
set(FORETRACE_NEEDS_ZLIB OFF)  # for pages of many runs, where it was there
if(TARGET ZLIB::ZLIB)
  set(FORETRACE_NEEDS_ZLIB ON)
endif()
foreach(library IN LISTS libraries)
  string(REPLACE "foretrace_" "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
# How we compile is ours; what a consumer needs is where the headers are, and C++20.
foreach(property INTERFACE_COMPILE_OPTIONS INTERFACE_LINK_OPTIONS INTERFACE_INCLUDE_DIRECTORIES
        INTERFACE_COMPILE_DEFINITIONS)
  get_target_property(ours foretrace_options ${property})
  set_property(TARGET foretrace_options PROPERTY ${property} "$<BUILD_INTERFACE:${ours}>")
endforeach()
target_include_directories(foretrace_options INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/foretrace>)
target_compile_features(foretrace_options INTERFACE cxx_std_20)
set(built ${libraries})
list(REMOVE_ITEM built foretrace_options foretrace_yaml_cpp)  # nothing to compile
foretrace_build_first(library ${built})
install(TARGETS ${libraries} EXPORT foretrace_targets ARCHIVE COMPONENT library)
install(EXPORT foretrace_targets NAMESPACE foretrace:: FILE foretraceTargets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/foretrace COMPONENT library)
include(cmake/public_headers.cmake)
foretrace_headers_with_includes(headers "${FORETRACE_PUBLIC_HEADERS}")
foreach(header IN LISTS headers)
  cmake_path(GET header PARENT_PATH room)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/foretrace/${room} COMPONENT library)
endforeach()
include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/foretraceConfig.cmake.in ${PROJECT_BINARY_DIR}/foretraceConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/foretrace)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/foretraceConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/foretraceConfig.cmake ${PROJECT_BINARY_DIR}/foretraceConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/foretrace COMPONENT library)

set(bundled_programs "")
foreach(program foretrace foretrace-hw)
  if(FORETRACE_BUNDLE AND TARGET ${program})
    list(APPEND bundled_programs $<TARGET_FILE:${program}>)
  endif()
endforeach()
if(bundled_programs)
  # Among them are SimGrid (LGPL-2.1) and, on Debian, what its package links: ns-3 and GSL (GPL). With the harness: cuBLAS,
  # CUPTI and NCCL; not the driver's libraries, nor MPI's, which belong to the host's mpirun.
  set(bundled_modules "")
  if(TARGET foretrace)
    set(bundled_modules MODULES $<TARGET_FILE:foretrace_flows>)
  endif()
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${bundled_programs} ${bundled_modules}
         RESOLVED_DEPENDENCIES_VAR found
         PRE_EXCLUDE_REGEXES [[^lib(cuda|nvidia[^.]*|mpi[^.]*|open-(rte|pal))[.]so]]
         POST_EXCLUDE_REGEXES [[/ld-linux|/lib(c|m|dl|rt|util|pthread|gcc_s|stdc\\+\\+)[.]so]])
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/foretrace\" TYPE SHARED_LIBRARY
         FOLLOW_SYMLINK_CHAIN FILES \${found})" COMPONENT bundled)
endif()

set(CPACK_PACKAGE_CONTACT "foretrace developers <foretrace@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_SYSTEM_NAME linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library)
if(TARGET foretrace-hw)
  list(APPEND CPACK_COMPONENTS_ALL harness)
  set(CPACK_FORETRACE_NCCL ${NCCL_LIBRARY})  # for cpack_components.cmake
endif()
if(FORETRACE_BUNDLE)
  list(APPEND CPACK_COMPONENTS_ALL bundled)
endif()
# One package for each component; the tarball has all that runs.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME foretrace)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libforetrace-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS OFF)  # static libraries: nothing to look into
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "foretrace (= ${PROJECT_VERSION}), libyaml-dev, libyaml-cpp-dev, nlohmann-json3-dev, libfmt-dev, \
libexpected-dev, libboost-dev")
set(CPACK_DEBIAN_HARNESS_PACKAGE_NAME foretrace-hw)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/cpack_components.cmake)
include(CPack)
include(cmake/release/release.cmake)
