// task_graph: operations without streams. What each must wait for follows from the buffers it reads
// and writes, and from `after`; streams, events and the order of issue are chosen here.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/lower/place_tasks.h"
#include "scenarios/lower/syntax.h"
#include "scenarios/program/op_facts.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostTasks = 1000;  // each is compared with each

struct Task {
  Op origin;  ///< its label and where it stands in the file
  OpKind kind;
  TaskNode node;
};

constexpr std::array<std::string_view, 10> kTaskNames{
    "host_compute", "host_fill",   "host_parallel", "read_file",    "spin",
    "gemm",         "elementwise", "reduction",     "memcpy_async", "memset_async"};

const OpSyntax* find_task(std::string_view name) {
  if (std::ranges::find(kTaskNames, name) == kTaskNames.end()) return nullptr;
  for (const auto ops : {host_ops(), kernel_ops(), copy_ops()}) {
    const auto found = std::ranges::find(ops, name, &OpSyntax::name);
    if (found != ops.end()) return &*found;
  }
  return nullptr;
}

class TaskGraphReader {
 public:
  explicit TaskGraphReader(Reader& reader) : reader_{reader} {}

  std::vector<Task> read(const YamlNode& list) {
    if (list.kind != YamlNode::Kind::Sequence) {
      reader_.problems.error(list, "tasks are a list: '- name: {...}' in each line");
      return {};
    }
    if (list.items.size() > kMostTasks) {
      reader_.problems.error(list, fmt::format("more than {} tasks", kMostTasks));
      return {};
    }
    for (const YamlNode& item : list.items) {
      if (item.kind == YamlNode::Kind::Map && item.entries.size() == 1) {
        read_task(item.entries.front());
      } else {
        reader_.problems.error(item, "a task is one operation with its keys: 'name: {...}'");
      }
    }
    return std::move(tasks_);
  }

 private:
  void read_task(const YamlEntry& entry) {
    const std::string& name = entry.key.text;
    const OpSyntax* syntax = find_task(name);
    if (syntax == nullptr) {
      reader_.problems.error(entry.key, fmt::format("'{}' cannot be a task", name),
                             suggest(name, {kTaskNames.begin(), kTaskNames.end()}));
      return;
    }
    MapReader map{entry.value, name + " of a task_graph", reader_.problems};
    OpFields fields{reader_, map};
    if (map.has("stream")) {
      reader_.problems.error(fields.where("stream"), "a task has no stream: it is placed on one",
                             "'device' says on which GPU it runs");
    }
    const YamlNode* id = map.optional("id");
    Task task{{{},
               id == nullptr ? "" : read_word(reader_, *id, "an id"),
               entry.key.place().first,
               entry.key.place().second,
               {}},
              syntax->read(fields),
              {}};
    const bool is_on_host = op_facts(task.kind).acts == HostActs::Itself;
    if (!is_on_host) task.node.device = read_device(fields, task.kind);
    read_after(map, task.node);
    if (fields.is_sound()) add_dependences(task);
    map.finish();
    tasks_.push_back(std::move(task));
  }

  /// Without `device`: that of the first buffer in device memory, which for a copy is the source.
  std::uint32_t read_device(OpFields& fields, const OpKind& kind) {
    if (const YamlNode* node = fields.map().optional("device")) {
      return static_cast<std::uint32_t>(
          read_constant(reader_, *node, kNumber, 0, std::int64_t{fields.program().devices} - 1));
    }
    if (!fields.is_sound()) return 0;  // a buffer may be none
    std::optional<std::uint32_t> home;
    const OpFacts facts = op_facts(kind);
    for (const BufferAccess& access : facts.accesses) {
      if (home || fields.buffer_of(*access.buffer).memory != MemoryKind::Device) continue;
      for_each_pair(*access.buffer, *access.buffer, [&](std::uint32_t id, std::uint32_t) {
        const std::uint32_t device = fields.program().buffers[id].device;
        if (home.value_or(device) != device) {
          reader_.problems.error(fields.map().node(),
                                 "the task's buffers do not always lie on one device",
                                 "write one task for each");
          return false;
        }
        home = device;
        return true;
      });
    }
    return home.value_or(0);
  }

  void read_after(MapReader& map, TaskNode& node) {
    const YamlNode* list = map.optional("after");
    if (list == nullptr) return;
    if (list->kind != YamlNode::Kind::Sequence) {
      reader_.problems.error(*list, "'after' is a list of ids: [a, b]");
      return;
    }
    for (const YamlNode& item : list->items) {
      const std::string name = read_word(reader_, item, "an id");
      bool is_known = false;
      std::vector<std::string> known;
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        const std::string& label = tasks_[i].origin.label;
        if (!label.empty()) known.push_back(label);
        if (label != name || name.empty()) continue;
        node.after.push_back(i);
        is_known = true;
      }
      if (is_known || name.empty()) continue;
      reader_.problems.error(item, fmt::format("no task before this one has the id '{}'", name),
                             suggest(name, known));
    }
  }

  /// Read after write, write after read, write after write; of whole buffers.
  void add_dependences(Task& task) {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (are_ordered(tasks_[i].kind, task.kind)) task.node.after.push_back(i);
    }
  }

  bool are_ordered(const OpKind& earlier, const OpKind& later) const {
    const OpFacts first = op_facts(earlier);
    const OpFacts second = op_facts(later);
    for (const BufferAccess& a : first.accesses) {
      for (const BufferAccess& b : second.accesses) {
        if ((a.writes || b.writes) && may_be_same(*a.buffer, *b.buffer)) return true;
      }
    }
    return false;
  }

  bool may_be_same(const BufferRef& a, const BufferRef& b) const {
    bool is_same = false;
    const bool is_complete = for_each_pair(a, b, [&](std::uint32_t x, std::uint32_t y) {
      is_same = x == y;
      return !is_same;
    });
    return is_same || !is_complete;
  }

  /// Calls `visit` with what both refer to in each iteration and process, until it returns false.
  template <class Visit>
  bool for_each_pair(const BufferRef& a, const BufferRef& b, const Visit& visit) const {
    constexpr std::uint64_t kMostAssignments = 1000;
    return for_each_assignment(
        reader_.domain, {&a.index, &b.index}, kMostAssignments,
        [&](Variables v) { return visit(a.resolve(v).value, b.resolve(v).value); });
  }

  Reader& reader_;
  std::vector<Task> tasks_;
};

/// Issues placed tasks on streams and with events that no file can name.
class TaskGraphLowering {
 public:
  TaskGraphLowering(OpFields& fields, Lowering& out, std::vector<Task> tasks, bool by_priority)
      : fields_{fields},
        out_{out},
        tasks_{std::move(tasks)},
        by_priority_{by_priority},
        events_(tasks_.size()) {
    std::vector<TaskNode> nodes;
    nodes.reserve(tasks_.size());
    for (const Task& task : tasks_) nodes.push_back(task.node);
    placed_ = place_tasks(std::move(nodes));
    add_streams();
    for (const auto& waits : placed_.waits) {
      for (const std::size_t before : waits) add_event(before);
    }
  }

  void issue() {
    for (const std::size_t task : placed_.order) issue(task);
    for (const std::size_t task : placed_.ends) {
      out_.add(StreamSynchronize{stream_of(task)}, out_.label());
    }
  }

 private:
  /// A thread's graphs share their streams: each graph ends before the next begins.
  void add_streams() {
    auto& pool = fields_.reader().graph_streams;
    auto& all = fields_.program().streams;
    std::map<std::uint32_t, std::size_t> used;  // of each device
    const std::string_view kind = by_priority_ ? "task_graph by priority" : "task_graph";
    for (const std::uint32_t device : placed_.devices) {
      auto& mine = pool[{fmt::format("{}({}", kind, out_.thread()), device}];
      const std::size_t number = used[device]++;
      if (number == mine.size()) {
        mine.push_back(static_cast<std::uint32_t>(all.size()));
        const int priority = by_priority_ ? std::min(kHighestPriority + static_cast<int>(number), 0) : 0;
        all.push_back({fmt::format("{}({}, {}, {})", kind, out_.thread(), device, number), device,
                       StreamKind::Blocking, priority});
      }
      streams_.push_back(mine[number]);
    }
  }

  void add_event(std::size_t task) {
    if (events_[task]) return;
    auto& all = fields_.program().events;
    events_[task] = EventRef{{static_cast<std::uint32_t>(all.size())}, {}};
    all.push_back({fmt::format("task_graph({}, {})", out_.thread(), all.size()), 0, false});
  }

  StreamRef stream_of(std::size_t task) const {
    return {StreamId{streams_[placed_.stream[task]]}, {}};
  }

  void issue(std::size_t index) {
    Task& task = tasks_[index];
    Lowering at = out_.at(task.origin);
    const bool is_on_host = !task.node.device;
    for (const std::size_t before : placed_.waits[index]) {
      if (is_on_host) {
        at.add(EventSynchronize{*events_[before]});
      } else {
        at.add(StreamWaitEvent{stream_of(index), *events_[before]});
      }
    }
    std::visit(
        [&](auto& op) {
          if constexpr (requires { op.stream; }) op.stream = stream_of(index);
        },
        task.kind);
    at.add(std::move(task.kind), task.origin.label);
    if (events_[index]) at.add(EventRecord{*events_[index], stream_of(index)});
  }

  OpFields& fields_;
  Lowering& out_;
  std::vector<Task> tasks_;
  bool by_priority_;
  TaskPlacement placed_;
  std::vector<std::uint32_t> streams_;           ///< ids, by TaskPlacement's numbers
  std::vector<std::optional<EventRef>> events_;  ///< of tasks that another stream or the host
                                                 ///< waits for
};

void read_task_graph(OpFields& fields, Lowering& out) {
  const YamlNode* list = fields.map().required("tasks");
  if (list == nullptr) return;
  const bool by_priority = fields.flag("priorities");
  TaskGraphLowering{fields, out, TaskGraphReader{fields.reader()}.read(*list), by_priority}.issue();
}

constexpr std::array kTaskGraphOps{
    LoweredSyntax{"task_graph", "tasks [priorities]",
                  "places operations on streams by the buffers they read and write",
                  read_task_graph},
};

}  // namespace

std::span<const LoweredSyntax> task_graph_ops() { return kTaskGraphOps; }

}  // namespace foretrace
