// The calls that SimGrid renamed between 3.32 (Debian 12) and 4.x, behind one name each. Nothing
// else of the simulator tests SIMGRID_VERSION. Tested with 3.32.
#pragma once

// version.h does not compile on its own: it needs s4u.hpp before it.
// clang-format off
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>
// clang-format on

#include <string>
#include <vector>

#ifndef SIMGRID_VERSION
#error "simgrid/version.h does not say SIMGRID_VERSION"
#endif

namespace foretrace::sim {

namespace s4u = simgrid::s4u;

inline s4u::NetZone* make_full_zone(s4u::Engine& engine, const std::string& name) {
#if SIMGRID_VERSION >= 40000
  return engine.get_netzone_root()->add_netzone_full(name);
#else
  static_cast<void>(engine);
  return s4u::create_full_zone(name);
#endif
}

inline s4u::Host* make_host(s4u::NetZone& zone, const std::string& name) {
#if SIMGRID_VERSION >= 40000
  return zone.add_host(name, 1.0);
#else
  return zone.create_host(name, 1.0);
#endif
}

inline s4u::Link* make_link(s4u::NetZone& zone, const std::string& name, double bytes_per_second) {
#if SIMGRID_VERSION >= 40000
  return zone.add_link(name, bytes_per_second);
#else
  return zone.create_link(name, bytes_per_second);
#endif
}

inline void connect(s4u::NetZone& zone, s4u::Host& from, s4u::Host& to,
                    const std::vector<const s4u::Link*>& links) {
#if SIMGRID_VERSION >= 33600
  zone.add_route(&from, &to, links);
#else
  std::vector<s4u::LinkInRoute> route;
  for (const s4u::Link* link : links) route.emplace_back(link);
  zone.add_route(from.get_netpoint(), to.get_netpoint(), nullptr, nullptr, route, false);
#endif
}

/// `callback(const s4u::Activity&)` or the class's own type: take it as `const auto&`.
template <class Callback>
void on_comm_completion(Callback callback) {
#if SIMGRID_VERSION >= 33300
  s4u::Comm::on_completion_cb([callback](const s4u::Comm& comm) { callback(comm); });
#else
  s4u::Activity::on_completion_cb([callback](const s4u::Activity& activity) {
    if (const auto* comm = dynamic_cast<const s4u::Comm*>(&activity)) callback(*comm);
  });
#endif
}

inline const char* time_precision_key() {
#if SIMGRID_VERSION >= 33600
  return "precision/timing";
#else
  return "surf/precision";
#endif
}

inline const char* work_precision_key() {
#if SIMGRID_VERSION >= 33600
  return "precision/work-amount";
#else
  return "maxmin/precision";
#endif
}

}  // namespace foretrace::sim
