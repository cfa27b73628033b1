// Where the tasks of a task_graph run and in which order a host thread issues them: list scheduling
// without knowledge of how long a task takes. Internal to scenarios/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace foretrace {

/// A task, numbered in the order written.
struct TaskNode {
  std::optional<std::uint32_t> device;  ///< none: the host thread itself does it
  std::vector<std::size_t> after;       ///< earlier tasks that must have ended
};

struct TaskPlacement {
  std::vector<std::size_t> order;      ///< in which the host thread issues the tasks
  std::vector<std::size_t> stream;     ///< of each task; means nothing for the host's
  std::vector<std::uint32_t> devices;  ///< of each stream
  /// For each task, the device tasks before it that its stream does not order: an event of each is
  /// waited for, by the stream or, for a task of the host's, by the host thread.
  std::vector<std::vector<std::size_t>> waits;
  std::vector<std::size_t> ends;  ///< device tasks that nothing comes after
};

/// A task continues the stream of a task before it if that is the stream's last; otherwise a stream
/// whose last task ended before anyhow, or a new one. The host issues all device tasks that can be
/// issued before it does a task itself, and begins with the one that most depends on.
TaskPlacement place_tasks(std::vector<TaskNode> tasks);

}  // namespace foretrace
