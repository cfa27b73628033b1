// The local page's server: 127.0.0.1 alone, one thread, every size, time and number bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/applications/local_page/child.h"

namespace foretrace::local_page {

struct ServerOptions {
  std::uint16_t port = 0;  ///< 0: a free one
  std::string choices;     ///< JSON: routes.h
  std::function<void(const std::string& machine)> planned_on = {};  ///< of Routes
};

/// Serves until SIGINT or SIGTERM. `ready` is told the page's address once it can be asked. Throws
/// UsageError for a port that is taken.
void serve(const ServerOptions& options, const RunCommand& run,
           const std::function<void(const std::string& address)>& ready);

}  // namespace foretrace::local_page
