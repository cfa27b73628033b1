#include "tests/properties/program_generator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

#include "tests/properties/program_text.h"

namespace foretrace::test {
namespace {

constexpr std::array kSizes{4, 32, 64, 128, 256};  // KiB; buffers have 256

class Generator {
 public:
  Generator(Choices choices, const ProgramShape& shape)
      : choices_{std::move(choices)}, shape_{shape} {
    devices_ = shape.processes > 1 ? 1
               : shape.all_devices ? shape.most_devices
                                   : 1 + choices_.below(shape.most_devices);
    threads_.resize(shape.one_stream ? 1 : 1 + choices_.below(3));
    make_streams();
    if (devices_ == 2 && choices_.one_in(3)) {
      add(0, "enable_peer_access: {device: 0, peer: 1}");
      add(0, "enable_peer_access: {device: 1, peer: 0}");
    }
    if (!shape.one_stream) capture_graphs();
  }

  std::string text(const std::string& name) {
    while (!choices_.used_up()) step();
    if (shape_.forgets_signal && !has_forgotten_) signal_between_threads();
    for (std::uint32_t d = 0; d < devices_; ++d) {
      add(0, fmt::format("device_synchronize: {{device: {}}}", d));
    }
    return scenario_text({shape_.processes, devices_, kEvents, signals_, number_, streams_,
                          graph_devices_, threads_},
                         name);
  }

 private:
  // ---- what there is
  void make_streams() {
    if (shape_.one_stream) {
      add_stream(choices_.below(2));
      if (choices_.one_in(4)) streams_ = {{"default(0)", 0, 0, {}, ""}};
      return;
    }
    const std::uint32_t declared = 1 + choices_.below(4);
    for (std::uint32_t s = 0; s < declared; ++s) add_stream(choices_.below(2));
    for (std::uint32_t d = 0; d < devices_; ++d) {
      legacy_.push_back(streams_.size());
      streams_.push_back({fmt::format("default({})", d), d, number_++, {}, ""});
      for (std::uint32_t t = 0; t < threads_.size(); ++t) {
        streams_.push_back({fmt::format("per_thread({})", d), d, number_++, t, ""});
      }
    }
  }

  void add_stream(std::uint32_t is_blocking) {
    const std::uint32_t device = choices_.below(devices_);
    const std::string name = fmt::format("s{}", number_);
    const std::string declared =
        fmt::format("{}: {{device: {}, flags: {}, priority: {}}}", name, device,
                    is_blocking == 1 ? "blocking" : "non_blocking", choices_.one_in(3) ? -1 : 0);
    streams_.push_back({name, device, number_++, {}, declared});
  }

  /// Before all threads start: while a stream is captured, nobody else may use it.
  void capture_graphs() {
    const std::uint32_t graphs = choices_.below(3);
    for (std::uint32_t g = 0; g < graphs; ++g) {
      const RandomStream& stream = streams_[choices_.below(legacy_.front())];
      graph_devices_.push_back(stream.device);
      std::vector<std::string> ops;
      const RandomStream inside{stream.name, stream.device, number_++, {}, "-"};
      const std::uint32_t count = 1 + choices_.below(4);
      for (std::uint32_t i = 0; i < count; ++i) ops.push_back(captured(inside));
      for (std::size_t s = 0; s < legacy_.front(); ++s) {
        if (streams_[s].device != stream.device || streams_[s].name == stream.name) continue;
        if (!choices_.one_in(2)) continue;
        fork_and_join(ops, g, stream.name, streams_[s].name);
        break;
      }
      std::string text =
          fmt::format("graph_capture: {{graph: g{}, stream: {}, ops: [", g, stream.name);
      for (std::size_t i = 0; i < ops.size(); ++i) {
        text += fmt::format("{}{{{}}}", i == 0 ? "" : ", ", ops[i]);
      }
      add(0, text + "]}");
    }
    if (graphs > 0) meet();
  }

  std::string captured(const RandomStream& inside) {
    switch (choices_.below(4)) {
      case 0:
        return spin(inside);
      case 1:
        return copy(inside);
      case 2:
        return fmt::format("memset_async: {{stream: {}, dst: x{}}}", inside.name, inside.number);
      default:
        return fmt::format("host_func: {{stream: {}, duration: {}us}}", inside.name,
                           choices_.below(10));
    }
  }

  void fork_and_join(std::vector<std::string>& ops, std::uint32_t graph, const std::string& from,
                     const std::string& to) {
    ops.push_back(fmt::format("event_record: {{stream: {}, event: f{}}}", from, graph));
    ops.push_back(fmt::format("stream_wait_event: {{stream: {}, event: f{}}}", to, graph));
    ops.push_back(fmt::format("spin: {{stream: {}, duration: {}us}}", to, 1 + choices_.below(50)));
    ops.push_back(
        fmt::format("spin: {{stream: {}, duration: {}us}}", from, 1 + choices_.below(50)));
    ops.push_back(fmt::format("event_record: {{stream: {}, event: j{}}}", to, graph));
    ops.push_back(fmt::format("stream_wait_event: {{stream: {}, event: j{}}}", from, graph));
  }

  // ---- steps
  void step() {
    const std::uint32_t thread = choices_.below(threads_.size());
    const std::uint32_t kind = choices_.below(shape_.one_stream ? 8 : 13);
    if (kind < 8) {
      add(thread, on_stream(thread, kind));
    } else if (kind == 8) {
      loop(thread);
    } else if (kind == 9) {
      signal_between_threads();
    } else if (kind == 10) {
      host_function(thread);
    } else if (kind == 11) {
      special(thread);
    } else {
      wait_on_host(thread);
    }
  }

  /// One operation that touches nothing but its stream.
  std::string on_stream(std::uint32_t thread, std::uint32_t kind) {
    const RandomStream& stream = any_stream(thread);
    switch (kind) {
      case 0:
      case 1:
        return spin(stream);
      case 2:
        return copy(stream);
      case 3:
        return copy_in_any_way(thread, stream);
      case 4:
        return fmt::format("elementwise: {{stream: {}, src: x{}, dst: y{}, size: {}KiB}}",
                           stream.name, stream.number, stream.number, size());
      case 5:
        return fmt::format("memset_async: {{stream: {}, dst: x{}, size: {}KiB}}", stream.name,
                           stream.number, size());
      case 6:
        return fmt::format("event_record: {{stream: {}, event: e{}}}", stream.name,
                           event_of(stream.device));
      default:
        return fmt::format("stream_wait_event: {{stream: {}, event: e{}}}", stream.name,
                           any_event());
    }
  }

  std::string spin(const RandomStream& stream) {
    constexpr std::array kBlocks{1, 2, 8, 32, 132};
    return fmt::format("spin: {{stream: {}, duration: {}us, blocks: {}}}", stream.name,
                       1 + choices_.below(50), kBlocks[choices_.below(kBlocks.size())]);
  }

  /// Pinned memory and the device: asynchronous for certain.
  std::string copy(const RandomStream& stream) {
    const bool down = choices_.below(2) == 1;
    return memcpy_async(stream, down ? "y" : "p", down ? "q" : "x");
  }

  std::string memcpy_async(const RandomStream& stream, const char* from, const char* to) {
    return fmt::format("memcpy_async: {{stream: {}, src: {}{}, dst: {}{}, size: {}KiB}}",
                       stream.name, from, stream.number, to, stream.number, size());
  }

  std::string copy_in_any_way(std::uint32_t thread, const RandomStream& stream) {
    const bool has_pageable = stream.number % threads_.size() == thread;  // the host is part of it
    switch (choices_.below(6)) {
      case 0:
        return memcpy_async(stream, "x", "y");
      case 1:
        return memcpy_async(stream, "x", "r");  // to the other device, if there is one
      case 2:
        return memcpy_async(stream, has_pageable ? "h" : "p", "x");
      case 3:
        return memcpy_async(stream, "y", has_pageable ? "k" : "q");
      case 4:
        return host_copy(thread);
      default:
        return synchronous_copy(stream);
    }
  }

  std::string host_copy(std::uint32_t thread) {
    if (choices_.below(2) == 0) {
      return fmt::format("host_fill: {{dst: m{}, size: {}KiB}}", thread, size());
    }
    return fmt::format("memcpy: {{src: m{}, dst: n{}, size: {}KiB}}", thread, thread, size());
  }

  std::string synchronous_copy(const RandomStream& near) {
    if (shape_.one_stream && near.name != "default(0)") return spin(near);
    const std::uint32_t number =
        shape_.one_stream ? near.number : streams_[legacy_[near.device]].number;
    switch (choices_.below(4)) {
      case 0:
        return fmt::format("memcpy: {{src: p{}, dst: x{}, size: {}KiB}}", number, number, size());
      case 1:
        return fmt::format("memcpy: {{src: y{}, dst: q{}, size: {}KiB}}", number, number, size());
      case 2:
        return fmt::format("memcpy: {{src: x{}, dst: y{}, size: {}KiB}}", number, number, size());
      default:
        return fmt::format("memset: {{dst: x{}, size: {}KiB}}", number, size());
    }
  }

  void loop(std::uint32_t thread) {
    const std::uint32_t times = 1 + choices_.below(3);
    const std::uint32_t count = 1 + choices_.below(4);
    std::string text = fmt::format("repeat: {{times: {}, ops: [", times);
    for (std::uint32_t i = 0; i < count; ++i) {
      text += fmt::format("{}{{{}}}", i == 0 ? "" : ", ", on_stream(thread, choices_.below(8)));
    }
    add(thread, text + "]}");
  }

  void signal_between_threads() {
    const std::uint32_t from = choices_.below(threads_.size());
    const std::uint32_t to = choices_.below(threads_.size());
    const std::uint32_t signal = signals_++;
    give(from, signal);
    add(to, fmt::format("host_wait: {{signal: z{}}}", signal));
  }

  void give(std::uint32_t thread, std::uint32_t signal) {
    if (shape_.forgets_signal && !has_forgotten_) {
      has_forgotten_ = true;
      return;
    }
    add(thread, fmt::format("host_signal: {{signal: z{}}}", signal));
  }

  void host_function(std::uint32_t thread) {
    const RandomStream& stream = any_stream(thread);
    const std::uint32_t duration = choices_.below(20);
    switch (choices_.below(3)) {
      case 0:
        add(thread,
            fmt::format("host_func: {{stream: {}, duration: {}us}}", stream.name, duration));
        return;
      case 1: {
        const std::uint32_t signal = signals_++;
        add(thread, fmt::format("host_func: {{stream: {}, duration: {}us, signal: z{}}}",
                                stream.name, duration, signal));
        add(choices_.below(threads_.size()), fmt::format("host_wait: {{signal: z{}}}", signal));
        return;
      }
      default: {
        const std::uint32_t signal = signals_++;
        add(thread, fmt::format("host_func: {{stream: {}, duration: {}us, wait: z{}}}", stream.name,
                                duration, signal));
        if (choices_.one_in(2)) add(thread, spin(any_stream(thread)));
        give(thread, signal);
      }
    }
  }

  /// Graphs, NCCL and meetings of all threads.
  void special(std::uint32_t thread) {
    if (shape_.processes > 1 && choices_.below(3) != 0) {
      nccl();
    } else if (!graph_devices_.empty()) {
      const std::uint32_t graph = choices_.below(graph_devices_.size());
      const RandomStream& stream = any_stream(thread);
      if (stream.device != graph_devices_[graph]) return;
      add(thread, fmt::format("graph_launch: {{graph: g{}, stream: {}}}", graph, stream.name));
    } else {
      meet();
    }
  }

  /// By the first thread alone, so that both ranks call in one order.
  void nccl() {
    const RandomStream& stream = any_stream(0);
    const auto call = [&](const char* name, const char* more) {
      return fmt::format(
          "{}: {{comm: world, stream: {}, buffer: w{}, size: {}KiB, type: float32{}}}", name,
          stream.name, stream.number, 4, more);
    };
    switch (choices_.below(4)) {
      case 0:
        return add(0, call("nccl_all_reduce", ""));
      case 1:
        return add(0, call("nccl_broadcast", choices_.below(2) == 0 ? ", root: 0" : ", root: 1"));
      case 2:
        return add(0, call("nccl_reduce", ", root: 1"));
      default:
        return add(0, fmt::format("nccl_group: {{ops: [{{{}}}, {{{}}}]}}",
                                  call("nccl_send", ", peer: 1 - process"),
                                  fmt::format("nccl_recv: {{comm: world, stream: {}, buffer: v{}, "
                                              "size: 4KiB, type: float32, peer: 1 - process}}",
                                              stream.name, stream.number)));
    }
  }

  void meet() {
    for (std::uint32_t t = 0; t < threads_.size(); ++t) add(t, "host_barrier: {}");
  }

  void wait_on_host(std::uint32_t thread) {
    const std::uint32_t kind = choices_.below(6);
    if (kind == 0) {
      add(thread, fmt::format("host_compute: {{duration: {}us}}", 1 + choices_.below(40)));
    } else if (kind == 1) {
      add(thread, fmt::format("stream_synchronize: {{stream: {}}}", any_stream(thread).name));
    } else if (kind == 2) {
      add(thread, fmt::format("event_synchronize: {{event: e{}}}", any_event()));
    } else if (kind == 3) {
      add(thread, fmt::format("device_synchronize: {{device: {}}}", choices_.below(devices_)));
    } else if (kind == 4 && !shape_.forgets_signal) {  // it would fail before anybody hangs
      add(thread,
          fmt::format("event_wait_for: {{event: e{}, timeout: 1s, poll: 5us}}", any_event()));
    } else {
      add(thread, fmt::format("event_query: {{event: e{}}}", any_event()));
    }
  }

  // ---- choosing
  const RandomStream& any_stream(std::uint32_t thread) {
    const RandomStream& stream = streams_[choices_.below(streams_.size())];
    return stream.owner.value_or(thread) == thread ? stream : streams_.front();
  }
  int size() { return kSizes[choices_.below(kSizes.size())]; }
  /// Of those recorded so far, if only by a thread that gets there later; with none, one never
  /// recorded.
  std::uint32_t any_event() {
    return recorded_.empty() ? 0 : recorded_[choices_.below(recorded_.size())];
  }
  /// An event is recorded on one device only: event n on device n % devices.
  std::uint32_t event_of(std::uint32_t device) {
    return recorded_.emplace_back(choices_.below(kEvents / devices_) * devices_ + device);
  }
  void add(std::uint32_t thread, const std::string& op) { threads_[thread].push_back(op); }

  static constexpr std::uint32_t kEvents = 4;
  Choices choices_;
  ProgramShape shape_;
  std::uint32_t devices_ = 1;
  std::uint32_t number_ = 0;  ///< of buffer sets: one for each stream, then one for each graph
  std::uint32_t signals_ = 0;
  bool has_forgotten_ = false;
  std::vector<RandomStream> streams_;  ///< the declared ones first
  std::vector<std::size_t> legacy_;    ///< by device: into streams_
  std::vector<std::uint32_t> graph_devices_;
  std::vector<std::uint32_t> recorded_;  ///< events
  std::vector<std::vector<std::string>> threads_;
};

}  // namespace

std::string random_program(Choices choices, const ProgramShape& shape, const std::string& name) {
  return Generator{std::move(choices), shape}.text(name);
}

}  // namespace foretrace::test
