# Two targets that are built when somebody asks for them, and say what they lack where a tool is missing:
#   api_reference   the public C++ headers and the Python packages, by Doxygen, in build/.../api_reference/html
#   documentation   all pages with their pictures as a static site, by mkdocs-material, in build/.../documentation/site
# Debian: doxygen, mkdocs-material.
find_program(FORETRACE_DOXYGEN doxygen)
find_program(FORETRACE_MKDOCS mkdocs)
mark_as_advanced(FORETRACE_DOXYGEN FORETRACE_MKDOCS)
find_package(Python3 QUIET COMPONENTS Interpreter)

function(foretrace_lacking target tool package)
  add_custom_target(${target}
    COMMAND ${CMAKE_COMMAND} -E echo "${target}: needs ${tool} (Debian and Ubuntu: apt install ${package}), then configure again"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endfunction()

if(FORETRACE_DOXYGEN)
  set(out ${PROJECT_BINARY_DIR}/api_reference)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/Doxyfile.in ${out}/Doxyfile @ONLY)
  add_custom_target(api_reference
    COMMAND ${FORETRACE_DOXYGEN} ${out}/Doxyfile
    COMMAND ${CMAKE_COMMAND} -E echo "${out}/html/index.html"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
else()
  foretrace_lacking(api_reference doxygen doxygen)
endif()

if(FORETRACE_MKDOCS AND Python3_FOUND)
  set(out ${PROJECT_BINARY_DIR}/documentation)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/mkdocs.yml.in ${out}/mkdocs.yml @ONLY)
  add_custom_target(documentation
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/stage_pages.py ${PROJECT_SOURCE_DIR} ${out}/pages
    COMMAND ${FORETRACE_MKDOCS} build --quiet --clean --config-file ${out}/mkdocs.yml
    COMMAND ${CMAKE_COMMAND} -E echo "${out}/site/index.html"
    VERBATIM)
else()
  foretrace_lacking(documentation mkdocs mkdocs-material)
endif()
