# Makes a C++ file of asset files: cmake -DOUTPUT=x.cc "-DFILES=a;b" [-DHEADER=their_declarations.h] -P embed_assets.cmake
# The program then needs no source tree.
if(NOT HEADER)
  set(HEADER reports/page/assets.h)
endif()
set(text "// Made by embed_assets.cmake; do not edit.\n#include \"${HEADER}\"\n\nnamespace foretrace::assets {\n\n")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  string(MAKE_C_IDENTIFIER ${name} name)
  file(READ ${file} content)
  string(APPEND text "const std::string_view ${name} = R\"asset(${content})asset\";\n\n")
endforeach()
string(APPEND text "}  // namespace foretrace::assets\n")
file(WRITE ${OUTPUT} "${text}")
