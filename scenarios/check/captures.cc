// What CUDA and NCCL refuse of a graph's capture: streams that joined it by an event and are not
// joined back, events from outside of it, waits outside for its events, groups of NCCL that are
// captured in part. Work inside on a stream that has not joined is a limit of our own: CUDA runs
// it at once. Each thread is walked as far as kMostWalked allows.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "scenarios/check/check.h"
#include "scenarios/check/event_records.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

bool captures(const Op& op) { return std::holds_alternative<GraphCapture>(op.kind); }

/// A block and the values of the loops around it: one execution of it.
using Execution = std::pair<const Op*, std::vector<std::int64_t>>;

template <class Kind>
std::optional<Execution> execution_of(Variables variables, Around around) {
  const auto block = std::ranges::find_if(
      around, [](const Op* op) { return std::holds_alternative<Kind>(op->kind); });
  if (block == around.end()) return std::nullopt;
  const auto outside = around.first(static_cast<std::size_t>(block - around.begin()));
  const Variables known = variables.first(1 + loops_of(outside).size());
  return Execution{*block, {known.begin(), known.end()}};
}

/// The nodes that what comes next depends on.
using Nodes = std::set<std::size_t>;

struct GroupedCall {
  const Op* op;
  std::uint32_t stream, comm;
  bool is_captured;
};

class CaptureCheck {
 public:
  CaptureCheck(const Program& program, Problems& problems)
      : program_{program}, problems_{problems}, records_{program} {
    for_each_op(program, [&](const HostThread&, const Op& op, Around around) {
      if (captures(op)) {
        enter(*block_of(op.kind));
      } else if (!records_.concern(op)) {
        return;
      }
      for (const Op* outer : around) entered_.insert(block_of(outer->kind));
    });
  }

  void run() {
    for (const HostThread& thread : program_.threads) {
      if (!any_op(thread.ops, captures)) continue;
      for (const std::uint32_t process : thread.processes) walk(thread, process);
    }
  }

 private:
  void enter(const Block& block) {
    entered_.insert(&block);
    for (const Op& op : block) {
      if (const Block* inner = block_of(op.kind)) enter(*inner);
    }
  }

  void walk(const HostThread& thread, std::uint32_t process) {
    std::uint64_t left = std::min(kMostWalked, left_of_all_);
    if (left == 0) return;
    left_of_all_ -= left;
    records_.follow(thread, process);
    ExecutionWalk{}.run(
        thread.ops, process, [&](const Block& block) { return entered_.contains(&block); },
        [&](const Op& op, Variables v, Around around) {
          visit(op, v, around);
          return --left > 0;
        });
    if (left > 0) end();
    capture_.reset();
    group_.reset();
    calls_.clear();
    left_of_all_ += left;
  }

  void visit(const Op& op, Variables v, Around around) {
    const auto capture = execution_of<GraphCapture>(v, around);
    const auto group = execution_of<NcclGroup>(v, around);
    if (group != group_ || capture != capture_) end_group();
    if (capture != capture_) end();
    group_ = group;
    const OpFacts facts = op_facts(op.kind);
    if (!capture) return meet_outside(op, facts, v);
    if (facts.stream == nullptr) return;
    if (!capture_) begin(*capture);
    queue(op, facts, v);
  }

  void meet_outside(const Op& op, const OpFacts& facts, Variables v) {
    if (facts.event_recorded != nullptr) {
      records_.add_outside(facts.event_recorded->resolve(v).value);
    }
    for (const EventRef* event : facts.events_waited_for) {
      const std::uint32_t waited_for = event->resolve(v).value;
      if (const Op* record = records_.captured(waited_for)) {
        refuse_captured(op, waited_for, *record, "record it anew behind the graph_launch");
      }
    }
  }

  void begin(const Execution& capture) {
    capture_ = capture;
    const auto& begun = std::get<GraphCapture>(capture.first->kind);
    origin_ = begun.stream.resolve(capture.second).value;
    streams_ = {{origin_, {}}};
    events_.clear();
    nodes_.clear();
  }

  void queue(const Op& op, const OpFacts& facts, Variables v) {
    const std::uint32_t stream = facts.stream->resolve(v).value;
    const auto captured = streams_.find(stream);
    const bool is_captured = captured != streams_.end();
    if (std::holds_alternative<StreamWaitEvent>(op.kind)) {
      const std::uint32_t event = facts.events_waited_for.front()->resolve(v).value;
      const auto known = events_.find(event);
      if (known != events_.end()) {
        streams_[stream].insert(known->second.begin(), known->second.end());
      } else if (const Op* record = records_.captured(event)) {
        refuse_captured(op, event, *record,
                        "record it in this graph_capture before, or take an event for each");
      } else if (!is_captured) {
        refuse_stream(op, stream);
      } else if (records_.is_outside(event)) {
        refuse_event(op, stream, event);
      }  // else nothing recorded it: CUDA waits for nothing, as in the first turn of a ring
    } else if (facts.comm != nullptr && group_) {
      calls_.push_back({&op, stream, facts.comm->resolve(v).value, is_captured});
    } else if (!is_captured) {
      refuse_stream(op, stream);
    } else if (facts.event_recorded != nullptr) {
      const std::uint32_t event = facts.event_recorded->resolve(v).value;
      events_[event] = captured->second;
      records_.add_captured(event, op);
    } else {
      captured->second = {add(op, stream, captured->second)};
    }
  }

  std::size_t add(const Op& op, std::uint32_t stream, const Nodes& behind) {
    for (const std::size_t node : behind) nodes_[node].is_last = false;
    nodes_.push_back({&op, stream, true});
    return nodes_.size() - 1;
  }

  /// NCCL makes one kernel of what a communicator has in a group, behind all streams that it was
  /// given, and lets all of them wait for it.
  void end_group() {
    std::map<std::uint32_t, std::vector<GroupedCall>> of_communicator, of_handle;
    for (const GroupedCall& call : std::exchange(calls_, {})) {
      of_communicator[program_.comms[call.comm].communicator].push_back(call);
      if (call.is_captured) of_handle[call.comm].push_back(call);
    }
    for (const auto& [communicator, calls] : of_communicator) check_group(communicator, calls);
    for (const auto& [handle, calls] : of_handle) {
      Nodes behind;
      for (const GroupedCall& call : calls) behind.merge(Nodes{streams_[call.stream]});
      const std::size_t node = add(*calls.front().op, calls.front().stream, behind);
      for (const GroupedCall& call : calls) streams_[call.stream] = {node};
    }
  }

  void check_group(std::uint32_t communicator, const std::vector<GroupedCall>& calls) {
    const auto out = std::ranges::find(calls, false, &GroupedCall::is_captured);
    if (out == calls.end()) return;
    const auto in = std::ranges::find(calls, true, &GroupedCall::is_captured);
    if (in == calls.end()) return refuse_stream(*out->op, out->stream);
    refuse(*out->op,
           fmt::format("stream '{}' is not captured here, and stream '{}' of the same group and "
                       "communicator '{}' is ({}): NCCL refuses a group that is captured in part",
                       name(out->stream), name(in->stream),
                       program_.communicators[communicator].name, place_of(*in->op, *out->op)),
           how_to_join());
  }

  /// cudaErrorStreamCaptureUnjoined: work that nothing in the captured stream waits for.
  void end() {
    end_group();
    if (!capture_) return;
    const Nodes& joined = streams_[origin_];
    for (std::size_t i = nodes_.size(); i-- > 0;) {  // each stream's last comes first
      const Node& node = nodes_[i];
      if (!node.is_last || joined.contains(i)) continue;
      refuse(*node.op,
             fmt::format("stream '{}' joined the capture on stream '{}' and is not joined back "
                         "behind this: cudaErrorStreamCaptureUnjoined",
                         name(node.stream), name(origin_)),
             fmt::format("record an event on it behind this, and let stream '{}' wait for that at "
                         "the end of the graph_capture",
                         name(origin_)));
    }
    capture_.reset();
  }

  void refuse_event(const Op& op, std::uint32_t stream, std::uint32_t event) {
    refuse(op,
           fmt::format("stream '{}' is captured here, and event '{}' was not recorded in this "
                       "graph_capture: cudaErrorStreamCaptureIsolation",
                       name(stream), program_.events[event].name),
           "wait for it before the graph_capture, or record it inside on a captured stream");
  }

  void refuse_captured(const Op& op, std::uint32_t event, const Op& record, std::string hint) {
    refuse(op,
           fmt::format("event '{}' was last recorded in a graph_capture that has ended ({}), which "
                       "nothing can wait for: cudaErrorInvalidValue",
                       program_.events[event].name, place_of(record, op)),
           std::move(hint));
  }

  void refuse_stream(const Op& op, std::uint32_t stream) {
    refuse(op,
           fmt::format("stream '{}' is not captured here: CUDA runs this at once, and not in the "
                       "graph",
                       name(stream)),
           how_to_join());
  }

  std::string how_to_join() const {
    return fmt::format(
        "let it wait for an event that is recorded on stream '{}' in this "
        "graph_capture, or move it out",
        name(origin_));
  }

  /// Loops and processes run the same line: it is said once.
  void refuse(const Op& op, std::string message, std::string hint) {
    if (!said_.insert(&op).second) return;
    problems_.add(op.line, op.column, Severity::Error, std::move(message), std::move(hint));
  }

  const std::string& name(std::uint32_t stream) const { return program_.streams[stream].name; }

  struct Node {
    const Op* op;
    std::uint32_t stream;
    bool is_last;  ///< nothing in the graph depends on it
  };

  const Program& program_;
  Problems& problems_;
  EventRecords records_;
  std::set<const Block*> entered_;  ///< inside of a capture, or with one or its events inside
  std::uint64_t left_of_all_ = kMostWalkedOfAll;
  std::set<const Op*> said_;

  std::optional<Execution> capture_, group_;
  std::uint32_t origin_ = 0;                ///< the stream that the capture began on
  std::map<std::uint32_t, Nodes> streams_;  ///< that are captured
  std::map<std::uint32_t, Nodes> events_;   ///< that were recorded in the capture
  std::vector<Node> nodes_;
  std::vector<GroupedCall> calls_;
};

}  // namespace

void check_captures(const Program& program, Problems& problems) {
  if (!any_op(program, captures)) return;
  CaptureCheck{program, problems}.run();
}

}  // namespace foretrace
