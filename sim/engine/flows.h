// What the engine asks of SimGrid, in plain values. The one implementation, simgrid_flows.cc, is a
// library of its own, which is loaded when the first flow starts: loading SimGrid takes ten times
// as long as most commands do, and they start none.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace foretrace::sim {

class Handler;

struct LinkId {
  std::uint32_t value{};
  friend auto operator<=>(LinkId, LinkId) = default;
};
struct PathId {
  std::uint32_t value{};
};

enum class LinkSharing : std::uint8_t {
  Shared,  ///< all flows together get the bandwidth, max-min fair
  PerFlow  ///< every flow gets up to the bandwidth: a cap (SimGrid's FATPIPE)
};

/// A link as it is when the first flow starts.
struct FlowLink {
  std::string name;
  double bytes_per_second{};
  LinkSharing sharing{};
  double most_bytes_per_second{};  ///< that it has had, or has
};

/// Whom the flows' clock drives. `now` is that clock: seconds since it began.
class FlowsOwner {
 public:
  /// Seconds until update() is wanted; -1 for never.
  virtual double seconds_to_update(double now) = 0;
  /// Throws nothing that an event threw: SimGrid is not exception-safe.
  virtual void update(double now) = 0;
  virtual void arrived(Handler& who, std::uint64_t what, double now) = 0;

 protected:
  ~FlowsOwner() = default;
};

/// Flows on their way, and the clock that they need.
class Flows {
 public:
  Flows() = default;
  virtual ~Flows() = default;
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  /// From now on, for flows under way too.
  virtual void set_bandwidth(LinkId link, double bytes_per_second) = 0;
  /// Calls arrived(who, what) when the last byte has arrived. A path's links are always the same.
  virtual void start(PathId path, const std::vector<LinkId>& links, std::uint64_t bytes,
                     Handler& who, std::uint64_t what) = 0;
  /// Until nobody wants anything any more.
  virtual void run() = 0;
};

/// What the library has for whoever loads it.
class FlowsLibrary {
 public:
  explicit constexpr FlowsLibrary(const char* of) : version{of} {}
  /// Once per process. There can be endpoints * (endpoints - 1) paths.
  virtual std::unique_ptr<Flows> make(FlowsOwner& owner, const std::vector<FlowLink>& links,
                                      std::size_t endpoints) const = 0;
  const char* const version;  ///< foretrace's: another one's library is of no use

 protected:
  ~FlowsLibrary() = default;
};

/// The library's file, and the `const FlowsLibrary*` that it exports.
inline constexpr const char* kFlowsFile = "libforetrace_flows.so";
inline constexpr const char* kFlowsSymbol = "foretrace_flows";

}  // namespace foretrace::sim
