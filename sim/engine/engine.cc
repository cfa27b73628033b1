#include "sim/engine/engine.h"

#include <xbt/log.h>

#include <cmath>
#include <exception>
#include <map>
#include <simgrid/kernel/resource/Model.hpp>
#include <unordered_map>

#include "scenarios/text/errors.h"
#include "sim/engine/simgrid_compat.h"

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

class Engine::Impl {
 public:
  explicit Impl(EventQueue& queue);

  LinkId add_link(const std::string& name, Bandwidth bandwidth, LinkSharing sharing);
  void set_bandwidth(LinkId link, Bandwidth bandwidth) {
    links_[link.value]->set_bandwidth(bandwidth.bytes_per_second());
  }
  void reserve_paths(std::size_t count);
  PathId path(const std::vector<LinkId>& links);
  void start_flow(const PendingFlow& flow);
  bool has_flows() const { return !pending_.empty() || !active_.empty(); }
  void run();

 private:
  struct ActiveFlow {
    Handler* who;
    std::uint64_t what;
  };
  /// The event queue as SimGrid sees it.
  class QueueModel;

  void add_endpoints(std::size_t count);
  static std::size_t paths_for(std::size_t endpoints) { return endpoints * (endpoints - 1); }
  void seal();
  void launch(const PendingFlow& flow);
  void on_completion(const s4u::Activity& activity);

  EventQueue& queue_;
  s4u::Engine* engine_ = nullptr;
  s4u::NetZone* zone_ = nullptr;
  bool sealed_ = false;
  std::vector<s4u::Host*> endpoints_;
  std::vector<s4u::Link*> links_;
  std::map<std::vector<LinkId>, PathId> paths_;
  std::vector<std::pair<s4u::Host*, s4u::Host*>> path_ends_;
  std::vector<PendingFlow> pending_;  ///< started at queue time, engine not there yet
  std::unordered_map<const s4u::Activity*, ActiveFlow> active_;
  std::exception_ptr failure_;
  std::vector<s4u::CommPtr> finished_;  ///< kept one kernel step longer: 4.x reads them once more
};

class Engine::Impl::QueueModel : public simgrid::kernel::resource::Model {
 public:
  explicit QueueModel(Impl& impl) : Model{"foretrace"}, impl_{impl} {}

  /// Seconds until something of ours happens; -1 for never.
  double next_occurring_event(double now) override {
    const TimePoint engine_now = to_time_point(now);
    if (!impl_.pending_.empty()) return seconds_until(impl_.queue_.now(), engine_now);
    if (impl_.queue_.empty()) return -1.0;
    return seconds_until(impl_.queue_.next(), engine_now);
  }

  /// While no flow is active nobody else needs the clock, so the queue runs ahead of the engine
  /// until one is started: five times faster than an engine step per event.
  void update_actions_state(double now, double) override {
    impl_.finished_.clear();
    const TimePoint engine_now = to_time_point(now);
    EventQueue& queue = impl_.queue_;
    if (!impl_.pending_.empty() && queue.now() <= engine_now) {
      for (const PendingFlow& flow : std::exchange(impl_.pending_, {})) impl_.launch(flow);
    }
    try {
      while (!queue.empty() && impl_.pending_.empty() &&
             (queue.next() <= engine_now || impl_.active_.empty())) {
        queue.pop_and_fire();
      }
    } catch (...) {  // SimGrid is not exception-safe: run() throws it again
      impl_.failure_ = std::current_exception();
      queue.clear();
    }
  }

 private:
  static double seconds_until(TimePoint when, TimePoint now) {
    return when <= now ? 0.0 : to_seconds(when - now);
  }
  Impl& impl_;
};

Engine::Impl::Impl(EventQueue& queue) : queue_{queue} {
  // SimGrid reads its options from a command line; log lines belong to its own users.
  static char name[] = "foretrace";
  static char quiet[] = "--log=root.thresh:critical";
  static char* argv[] = {name, quiet, nullptr};
  int argc = 2;
  engine_ = new s4u::Engine{&argc, argv};  // lives as long as the process, as SimGrid wants it
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config(std::string{time_precision_key()} + ":1e-12");
  s4u::Engine::set_config(std::string{work_precision_key()} + ":1e-9");
  zone_ = make_full_zone(*engine_, "machine");
  add_endpoints(kFewEndpoints);
  on_comm_completion([this](const s4u::Activity& activity) { on_completion(activity); });
}

LinkId Engine::Impl::add_link(const std::string& name, Bandwidth bandwidth, LinkSharing sharing) {
  FORETRACE_CHECK(!sealed_, "links are added before the run");
  s4u::Link* link = make_link(*zone_, name, bandwidth.bytes_per_second());
  link->set_latency(0.0);
  if (sharing == LinkSharing::PerFlow) {
    link->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
  }
  links_.push_back(link);
  return {static_cast<std::uint32_t>(links_.size() - 1)};
}

void Engine::Impl::seal() {
  if (sealed_) return;
  for (s4u::Link* link : links_) {
    FORETRACE_CHECK(link->get_latency() == 0.0, "a link with latency breaks fair sharing");
    link->seal();
  }
  for (s4u::Host* host : endpoints_) host->seal();
  zone_->seal();
  engine_->add_model(std::make_shared<QueueModel>(*this));  // after SimGrid's own: ours is last
  sealed_ = true;
}

void Engine::Impl::add_endpoints(std::size_t count) {
  for (std::size_t i = endpoints_.size(); i < count; ++i) {
    endpoints_.push_back(make_host(*zone_, "endpoint" + std::to_string(i)));
  }
}

void Engine::Impl::reserve_paths(std::size_t count) {
  FORETRACE_CHECK(!sealed_, "paths are reserved before the first of them");
  std::size_t endpoints = endpoints_.size();
  while (endpoints < kMostEndpoints && paths_for(endpoints) < count) ++endpoints;
  add_endpoints(endpoints);
}

PathId Engine::Impl::path(const std::vector<LinkId>& links) {
  seal();
  const auto [at, is_new] =
      paths_.try_emplace(links, PathId{static_cast<std::uint32_t>(paths_.size())});
  if (is_new) {
    // The n-th path is the n-th ordered pair of different endpoints.
    const std::size_t n = path_ends_.size();
    const std::size_t others = endpoints_.size() - 1;
    if (n >= paths_for(endpoints_.size())) {
      paths_.erase(at);
      throw UsageError{"more than " + std::to_string(n) +
                       " pairs of ranks and copies with different ways: too many for one run"};
    }
    const std::size_t from = n / others;
    const std::size_t rest = n % others;
    s4u::Host* a = endpoints_[from];
    s4u::Host* b = endpoints_[rest < from ? rest : rest + 1];
    std::vector<const s4u::Link*> route;
    for (const LinkId link : links) route.push_back(links_[link.value]);
    connect(*zone_, *a, *b, route);
    path_ends_.emplace_back(a, b);
  }
  return at->second;
}

void Engine::Impl::start_flow(const PendingFlow& flow) { pending_.push_back(flow); }

void Engine::Impl::launch(const PendingFlow& flow) {
  const auto [from, to] = path_ends_[flow.path.value];
  s4u::CommPtr comm = s4u::Comm::sendto_init(from, to);
  comm->set_payload_size(flow.size.count);
  active_.emplace(comm.get(), ActiveFlow{flow.who, flow.what});
  comm->add_ref();  // given back in on_completion
  comm->start();
}

void Engine::Impl::on_completion(const s4u::Activity& activity) {
  const auto at = active_.find(&activity);
  if (at == active_.end()) return;
  const ActiveFlow flow = at->second;
  active_.erase(at);
  queue_.advance_to(to_time_point(s4u::Engine::get_clock()));
  queue_.at(queue_.now(), *flow.who, flow.what);
  auto* comm = static_cast<s4u::Comm*>(const_cast<s4u::Activity*>(&activity));
  finished_.emplace_back(comm, false);  // adopts the reference; dropped one step later
}

void Engine::Impl::run() {
  seal();
  engine_->run();
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
void Engine::start_flow(PathId path, Bytes size, Handler& who, std::uint64_t what) {
  impl_->start_flow({path, size, &who, what});
}
bool Engine::has_flows() const { return impl_->has_flows(); }
void Engine::run() { impl_->run(); }

}  // namespace foretrace::sim
