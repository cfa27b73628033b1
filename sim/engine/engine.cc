#include "sim/engine/engine.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "sim/engine/load_flows.h"

namespace foretrace::sim {
namespace {

/// Distinct paths are pairs of endpoints: 128 hosts give 16,256 of them for 130 KiB of tables, 2048
/// give 4,192,256 for 34 MB.
constexpr std::size_t kFewEndpoints = 128;
constexpr std::size_t kMostEndpoints = 2048;

TimePoint to_time_point(double simgrid_seconds) {
  return TimePoint{seconds_to_duration(simgrid_seconds)};
}

}  // namespace

/// A transfer that waits until the engine is at the time of its start.
struct PendingFlow {
  PathId path;
  Bytes size;
  Handler* who;
  std::uint64_t what;
};

class Engine::Impl final : public FlowsOwner {
 public:
  explicit Impl(EventQueue& queue) : queue_{queue} {}

  LinkId add_link(const std::string& name, Bandwidth bandwidth, LinkSharing sharing);
  void set_bandwidth(LinkId link, Bandwidth bandwidth);
  void reserve_paths(std::size_t count);
  PathId path(const std::vector<LinkId>& links);
  std::size_t path_links() const {
    std::size_t count = 0;
    for (const auto& [links, path] : paths_) count += links.size();
    return count;
  }
  void start_flow(const PendingFlow& flow) { pending_.push_back(flow); }
  bool has_flows() const { return !pending_.empty() || active_ != 0; }
  void run();

  double seconds_to_update(double now) override;
  void update(double now) override;
  void arrived(Handler& who, std::uint64_t what, double now) override;

 private:
  static std::size_t paths_for(std::size_t endpoints) { return endpoints * (endpoints - 1); }
  void launch(const PendingFlow& flow);
  void fire_events(TimePoint engine_now);

  EventQueue& queue_;
  std::vector<FlowLink> links_;
  std::size_t endpoints_ = kFewEndpoints;
  bool sealed_ = false;
  std::map<std::vector<LinkId>, PathId> paths_;
  std::vector<const std::vector<LinkId>*> links_of_path_;  ///< paths_'s
  std::vector<PendingFlow> pending_;  ///< started at queue time, engine not there yet
  std::size_t active_ = 0;            ///< flows on their way
  std::exception_ptr failure_;
  /// The first event's time, until SimGrid's clock has been there: it adds up doubles, so that its
  /// later times depend on where it stopped before.
  std::optional<TimePoint> first_stop_;
  std::unique_ptr<Flows> flows_;  ///< since the first flow
};

LinkId Engine::Impl::add_link(const std::string& name, Bandwidth bandwidth, LinkSharing sharing) {
  FORETRACE_CHECK(!sealed_, "links are added before the run");
  const double rate = bandwidth.bytes_per_second();
  links_.push_back({name, rate, sharing, rate});
  return {static_cast<std::uint32_t>(links_.size() - 1)};
}

void Engine::Impl::set_bandwidth(LinkId link, Bandwidth bandwidth) {
  FlowLink& changed = links_[link.value];
  changed.bytes_per_second = bandwidth.bytes_per_second();
  changed.most_bytes_per_second = std::max(changed.most_bytes_per_second, changed.bytes_per_second);
  if (flows_) flows_->set_bandwidth(link, bandwidth.bytes_per_second());
}

void Engine::Impl::reserve_paths(std::size_t count) {
  FORETRACE_CHECK(!sealed_, "paths are reserved before the first of them");
  while (endpoints_ < kMostEndpoints && paths_for(endpoints_) < count) ++endpoints_;
}

PathId Engine::Impl::path(const std::vector<LinkId>& links) {
  sealed_ = true;
  const auto [at, is_new] =
      paths_.try_emplace(links, PathId{static_cast<std::uint32_t>(paths_.size())});
  if (is_new) {
    const std::size_t n = links_of_path_.size();
    if (n >= paths_for(endpoints_)) {
      paths_.erase(at);
      throw UsageError{"more than " + std::to_string(n) +
                       " pairs of ranks and copies with different ways: too many for one run"};
    }
    links_of_path_.push_back(&at->first);
  }
  return at->second;
}

void Engine::Impl::launch(const PendingFlow& flow) {
  ++active_;
  flows_->start(flow.path, *links_of_path_[flow.path.value], flow.size.count, *flow.who, flow.what);
}

void Engine::Impl::arrived(Handler& who, std::uint64_t what, double now) {
  --active_;
  if (failure_) return;  // whoever it was for may be gone
  queue_.advance_to(to_time_point(now));
  queue_.at(queue_.now(), who, what);
}

/// While no flow is active nobody else needs the clock, so the queue runs ahead of the engine until
/// one is started: five times faster than an engine step per event.
void Engine::Impl::fire_events(TimePoint engine_now) {
  try {
    while (!queue_.empty() && pending_.empty() && (active_ == 0 || queue_.next() <= engine_now)) {
      queue_.pop_and_fire();
    }
  } catch (...) {  // SimGrid is not exception-safe: run() throws it again
    failure_ = std::current_exception();
    queue_.clear();
    pending_.clear();
  }
}

double Engine::Impl::seconds_to_update(double now) {
  if (failure_) return -1.0;
  const TimePoint engine_now = to_time_point(now);
  TimePoint then{};
  if (first_stop_) {
    then = *first_stop_;
  } else if (!pending_.empty()) {
    then = queue_.now();
  } else if (!queue_.empty()) {
    then = queue_.next();
  } else {
    return -1.0;
  }
  return then <= engine_now ? 0.0 : to_seconds(then - engine_now);
}

void Engine::Impl::update(double now) {
  if (std::exchange(first_stop_, std::nullopt)) return;  // run() has fired what was due
  if (failure_) return;
  const TimePoint engine_now = to_time_point(now);
  if (!pending_.empty() && queue_.now() <= engine_now) {
    for (const PendingFlow& flow : std::exchange(pending_, {})) launch(flow);
  }
  fire_events(engine_now);
}

void Engine::Impl::run() {
  sealed_ = true;
  if (!flows_ && pending_.empty() && !queue_.empty()) {
    first_stop_ = queue_.next();
    fire_events({});
  }
  if (!flows_ && !pending_.empty()) flows_ = load_flows().make(*this, links_, endpoints_);
  if (flows_) flows_->run();
  if (failure_) std::rethrow_exception(failure_);
}

Engine::Engine() : impl_{std::make_unique<Impl>(queue_)} {}
Engine::~Engine() = default;

LinkId Engine::add_link(const std::string& name, Bandwidth bandwidth, LinkSharing sharing) {
  return impl_->add_link(name, bandwidth, sharing);
}
void Engine::set_bandwidth(LinkId link, Bandwidth bandwidth) {
  impl_->set_bandwidth(link, bandwidth);
}
void Engine::reserve_paths(std::size_t count) { impl_->reserve_paths(count); }
PathId Engine::path(const std::vector<LinkId>& links) { return impl_->path(links); }
std::size_t Engine::path_links() const { return impl_->path_links(); }
void Engine::start_flow(PathId path, Bytes size, Handler& who, std::uint64_t what) {
  impl_->start_flow({path, size, &who, what});
}
bool Engine::has_flows() const { return impl_->has_flows(); }
void Engine::run() { impl_->run(); }

}  // namespace foretrace::sim
