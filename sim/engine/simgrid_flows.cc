// Flows by SimGrid: its engine drives the clock, its max-min solver shares bandwidth between them,
// and their owner is plugged into it as one more resource model.
#include <xbt/log.h>

#include <simgrid/kernel/resource/Model.hpp>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "sim/engine/flows.h"
#include "sim/engine/simgrid_compat.h"

namespace foretrace::sim {
namespace {

class SimgridFlows final : public Flows {
 public:
  SimgridFlows(FlowsOwner& owner, const std::vector<FlowLink>& links, std::size_t endpoints);

  void set_bandwidth(LinkId link, double bytes_per_second) override {
    links_[link.value]->set_bandwidth(bytes_per_second);
    slowed_[link.value] = bytes_per_second < owned_[link.value].most_bytes_per_second;
  }
  void start(PathId path, const std::vector<LinkId>& links, std::uint64_t bytes, Handler& who,
             std::uint64_t what) override;
  void run() override { engine_->run(); }

 private:
  using Ends = std::pair<s4u::Host*, s4u::Host*>;
  struct ActiveFlow {
    Handler* who;
    std::uint64_t what;
  };
  /// The owner as SimGrid sees it.
  class OwnerModel;

  void add_link(const FlowLink& link);
  template <class Start>
  void with_most_bandwidth(const std::vector<LinkId>& links, const Start& start);
  Ends ends_of(PathId path, const std::vector<LinkId>& links);
  void on_completion(const s4u::Activity& activity);

  FlowsOwner& owner_;
  const std::vector<FlowLink>& owned_;  ///< the owner's
  s4u::Engine* engine_ = nullptr;
  s4u::NetZone* zone_ = nullptr;
  std::vector<s4u::Host*> endpoints_;
  std::vector<s4u::Link*> links_;
  std::vector<bool> slowed_;     ///< by link: it has had more bandwidth than now
  std::vector<Ends> path_ends_;  ///< null: no flow took it so far
  std::unordered_map<const s4u::Activity*, ActiveFlow> active_;
  std::vector<s4u::CommPtr> finished_;  ///< kept one kernel step longer: 4.x reads them once more
};

class SimgridFlows::OwnerModel : public simgrid::kernel::resource::Model {
 public:
  explicit OwnerModel(SimgridFlows& flows) : Model{"foretrace"}, flows_{flows} {}

  double next_occurring_event(double now) override { return flows_.owner_.seconds_to_update(now); }
  void update_actions_state(double now, double) override {
    flows_.finished_.clear();
    flows_.owner_.update(now);
  }

 private:
  SimgridFlows& flows_;
};

SimgridFlows::SimgridFlows(FlowsOwner& owner, const std::vector<FlowLink>& links,
                           std::size_t endpoints)
    : owner_{owner}, owned_{links} {
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
  for (std::size_t i = 0; i < endpoints; ++i) {
    endpoints_.push_back(make_host(*zone_, "endpoint" + std::to_string(i)));
  }
  on_comm_completion([this](const s4u::Activity& activity) { on_completion(activity); });
  for (const FlowLink& link : links) add_link(link);
  for (s4u::Host* host : endpoints_) host->seal();
  zone_->seal();
  engine_->add_model(std::make_shared<OwnerModel>(*this));  // after SimGrid's own: ours is last
}

void SimgridFlows::add_link(const FlowLink& description) {
  s4u::Link* link = make_link(*zone_, description.name, description.bytes_per_second);
  link->set_latency(0.0);
  if (link->get_latency() != 0.0) {
    throw std::logic_error{"a link with latency breaks fair sharing"};
  }
  if (description.sharing == LinkSharing::PerFlow) {
    link->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
  }
  link->seal();
  links_.push_back(link);
  slowed_.push_back(description.bytes_per_second < description.most_bytes_per_second);
}

/// SimGrid never lets a flow be faster than its links were when it started, whatever they become.
template <class Start>
void SimgridFlows::with_most_bandwidth(const std::vector<LinkId>& links, const Start& start) {
  const auto set = [&](double FlowLink::*bandwidth) {
    for (const LinkId link : links) {
      if (slowed_[link.value]) links_[link.value]->set_bandwidth(owned_[link.value].*bandwidth);
    }
  };
  set(&FlowLink::most_bytes_per_second);
  start();
  set(&FlowLink::bytes_per_second);
}

/// The n-th path is the n-th ordered pair of different endpoints.
SimgridFlows::Ends SimgridFlows::ends_of(PathId path, const std::vector<LinkId>& links) {
  if (path.value >= path_ends_.size()) path_ends_.resize(path.value + std::size_t{1});
  Ends& ends = path_ends_[path.value];
  if (ends.first == nullptr) {
    const std::size_t others = endpoints_.size() - 1;
    const std::size_t from = path.value / others;
    const std::size_t rest = path.value % others;
    ends = {endpoints_[from], endpoints_[rest < from ? rest : rest + 1]};
    std::vector<const s4u::Link*> route;
    for (const LinkId link : links) route.push_back(links_[link.value]);
    connect(*zone_, *ends.first, *ends.second, route);
  }
  return ends;
}

void SimgridFlows::start(PathId path, const std::vector<LinkId>& links, std::uint64_t bytes,
                         Handler& who, std::uint64_t what) {
  const auto [from, to] = ends_of(path, links);
  s4u::CommPtr comm = s4u::Comm::sendto_init(from, to);
  comm->set_payload_size(bytes);
  active_.emplace(comm.get(), ActiveFlow{&who, what});
  comm->add_ref();  // given back in on_completion
  with_most_bandwidth(links, [&] { comm->start(); });
}

void SimgridFlows::on_completion(const s4u::Activity& activity) {
  const auto at = active_.find(&activity);
  if (at == active_.end()) return;
  const ActiveFlow flow = at->second;
  active_.erase(at);
  owner_.arrived(*flow.who, flow.what, s4u::Engine::get_clock());
  auto* comm = static_cast<s4u::Comm*>(const_cast<s4u::Activity*>(&activity));
  finished_.emplace_back(comm, false);  // adopts the reference; dropped one step later
}

class SimgridLibrary final : public FlowsLibrary {
 public:
  using FlowsLibrary::FlowsLibrary;
  std::unique_ptr<Flows> make(FlowsOwner& owner, const std::vector<FlowLink>& links,
                              std::size_t endpoints) const override {
    return std::make_unique<SimgridFlows>(owner, links, endpoints);
  }
};
constexpr SimgridLibrary kLibrary{FORETRACE_VERSION};

}  // namespace
}  // namespace foretrace::sim

/// All that the library shows: kFlowsSymbol.
extern "C" {
[[gnu::visibility("default")]] extern const foretrace::sim::FlowsLibrary* const foretrace_flows;
const foretrace::sim::FlowsLibrary* const foretrace_flows = &foretrace::sim::kLibrary;
}
