# What a program of one's own may include: these, and what they include themselves. Everything else is internal, and not installed.
set(FORETRACE_PUBLIC_HEADERS
  scenarios/read/scenario.h              # load_scenario: a file becomes a Program
  models/machine/machine.h               # load_machine
  sim/simulate.h                         # simulate: a Program on a Machine becomes a Timeline
  sim/applications/explain/explain.h     # why it takes as long as it does
  sim/applications/plan/search.h         # layouts of a training step
  reports/timeline/timeline_json.h       # timelines from JSON and to it
  reports/compare/compare.h)             # predicted beside measured

# Sets `result` to `headers` and all that they include of ours, each once.
function(foretrace_headers_with_includes result headers)
  set(all "")
  while(headers)
    list(POP_FRONT headers header)
    if(header IN_LIST all)
      continue()
    endif()
    list(APPEND all ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^ *#include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^ *#include \"([^\"]*)\".*" "\\1" included "${line}")
      list(APPEND headers ${included})
    endforeach()
  endwhile()
  set(${result} ${all} PARENT_SCOPE)
endfunction()
