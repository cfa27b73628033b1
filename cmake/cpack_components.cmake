# What cpack puts where, by generator (install.cmake says what the components are).
if(CPACK_GENERATOR STREQUAL "DEB")
  find_program(shlibdeps dpkg-shlibdeps)
  if(NOT shlibdeps)  # CPack would make a package that depends on nothing, and installs where nothing runs
    message(FATAL_ERROR "no dpkg-shlibdeps, which finds the packages that foretrace needs: install dpkg-dev, "
                        "or make the tarball alone with 'cpack -G TGZ'")
  endif()
  # Debian's packages depend on Debian's libraries.
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL bundled)
  # dpkg-shlibdeps asks which package a library is from; a CUDA that no package installed has none.
  if(CPACK_FORETRACE_NCCL)
    execute_process(COMMAND dpkg-query -S ${CPACK_FORETRACE_NCCL} RESULT_VARIABLE unknown
                    OUTPUT_QUIET ERROR_QUIET)
    if(unknown)
      message(STATUS "no package foretrace-hw: ${CPACK_FORETRACE_NCCL} is of no package; it is in the tarball")
      list(REMOVE_ITEM CPACK_COMPONENTS_ALL harness)
    endif()
  endif()
else()
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL library)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
