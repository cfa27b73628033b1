# The files in which unoptimised sanitized commands spend most of their time are optimised, and sanitized as all others:
# -O1 for everything takes clang nearly three times as long. Each is compiled by itself, since what is compiled as one
# and the headers that were parsed before are not optimised.
function(foretrace_hot_files target)
  foreach(file IN LISTS ARGN)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/${file} TARGET_DIRECTORY ${target} PROPERTIES
      SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS $<$<CONFIG:Debug>:-O1>)
  endforeach()
endfunction()

foretrace_hot_files(foretrace_scenario scenarios/base/text/yaml_reader.cc scenarios/base/text/yaml_tree.cc
                    scenarios/base/values/quantity_lexer.cc)
foretrace_hot_files(foretrace_timeline reports/uses/intervals.cc)
foretrace_hot_files(foretrace_models models/cost/products/network.cc models/nccl/topology/channel_search.cc
                    models/products/learned.cc)
if(TARGET foretrace_sim)
  foretrace_hot_files(foretrace_sim sim/applications/serving/scheduler.cc sim/applications/serving/serve.cc)
endif()
