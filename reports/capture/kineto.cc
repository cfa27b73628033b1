#include "reports/capture/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/capture/trace_events.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/unpack.h"
#include "scenarios/base/text/words.h"

namespace foretrace::capture {
namespace {

using TraceJson = nlohmann::json;

constexpr std::size_t kLongestWord = std::size_t{32} << 20;   // bytes of one text in a trace
constexpr std::size_t kLargestTrace = std::size_t{2} << 30;  // bytes, unpacked too
constexpr std::size_t kLongestText = 400;                    // of a name that is kept

/// One event as it is read.
struct Draft {
  std::string phase, category, name;
  std::string begin, duration;  ///< as written
  std::int64_t thread = 0;
  std::int64_t stream = -1, on_stream = -1;
  std::uint64_t record = 0;  ///< of a wait: correlation of the call that recorded its event
  std::uint64_t correlation = 0, external = 0, device = 0, blocks = 0;
  std::int64_t device_type = -1, allocated = -1, reserved = -1;  ///< of memory
  Collective collective;
};

/// The tokens of a trace, one after the other (nlohmann's SAX interface).
class Tokens {
 public:
  Tokens(std::string file, Names& names, Unpacked* source) : names_{names}, source_{source} {
    process_.file = std::move(file);
  }

  bool null() { return true; }
  bool boolean(bool /*value*/) { return true; }
  bool number_integer(std::int64_t value) {
    number(value, std::to_string(value));
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    number(static_cast<std::int64_t>(std::min(value, kMost)), std::to_string(value));
    return true;
  }
  bool number_float(double /*value*/, const std::string& text) {
    if (depth_ == event_depth_) take_time(text);
    return true;
  }
  bool string(std::string& value) {
    if (source_ != nullptr) source_->understood();
    take_text(value);
    return true;
  }
  bool binary(TraceJson::binary_t& /*value*/) { return true; }
  bool start_object(std::size_t /*size*/) {
    open(false);
    return true;
  }
  bool start_array(std::size_t /*size*/) {
    open(true);
    return true;
  }
  bool key(std::string& name) {
    if (depth_ == 1) top_ = name;
    if (depth_ == 2) second_ = name;
    if (depth_ == event_depth_) key_ = name;
    if (depth_ == event_depth_ + 1) inner_ = name;
    return true;
  }
  bool end_object() {
    if (depth_ == event_depth_ && in_events()) take_event();
    --depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const TraceJson::exception& error) {
    const std::string what = json_reason(error.what());
    const std::size_t from = what.find("syntax error");
    constexpr std::size_t kMost = 200;  // a token may be as long as the file
    std::string reason = from == std::string::npos ? what : what.substr(from);
    if (reason.size() > kMost) reason = reason.substr(0, kMost) + "...";
    throw UsageError{fmt::format("{}: byte {}: this is no whole JSON file: {}", process_.file,
                                 position, reason)};
  }

  Process take() {
    if (!has_events_) {
      throw UsageError{fmt::format("{}: no 'traceEvents': this is no trace of PyTorch's profiler",
                                   process_.file)};
    }
    for (const auto& [index, external] : unnamed_) {
      const auto found = by_external_.find(external);
      if (found != by_external_.end()) process_.events[index].collective = found->second;
    }
    finish(process_);
    return std::move(process_);
  }

 private:
  bool in_events() const { return has_events_ && top_ == "traceEvents"; }
  [[noreturn]] void fail(std::string_view why) const {
    throw UsageError{fmt::format("{}: event {}: {}", process_.file, events_, why)};
  }

  void open(bool is_array) {
    constexpr int kDeepest = 64;
    if (depth_ == 0 && is_array) {  // Chrome's short form: nothing but the events
      top_ = "traceEvents";
      event_depth_ = 2;
    }
    if (is_array && top_ == "traceEvents" && depth_ == event_depth_ - 2) has_events_ = true;
    if (++depth_ > kDeepest) {
      throw UsageError{fmt::format("{}: lists within lists, {} deep", process_.file, kDeepest)};
    }
    if (depth_ == event_depth_ && in_events()) draft_ = {};
  }

  void number(std::int64_t value, const std::string& text) {
    if (source_ != nullptr) source_->understood();
    if (!in_events()) {
      if (top_ == "deviceProperties" && key_ == "numSms" && depth_ == event_depth_)
        process_.sms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, 1024));
      if (top_ == "distributedInfo" && depth_ == 2 && second_ == "rank") process_.rank = value;
      return;
    }
    if (depth_ == event_depth_) {
      if (key_ == "tid") draft_.thread = value;
      return take_time(text);
    }
    if (key_ != "args" || value < 0) return;
    const auto size = static_cast<std::uint64_t>(value);
    if (depth_ == event_depth_ + 2 && inner_ == "grid") {
      constexpr std::uint64_t kMostBlocks = 1 << 30;
      draft_.blocks = std::min(kMostBlocks, std::max<std::uint64_t>(1, draft_.blocks) * size);
    }
    if (depth_ != event_depth_ + 1) return;
    if (inner_ == "stream") draft_.stream = value;
    if (inner_ == "device" || inner_ == "Device Id") draft_.device = size;
    if (inner_ == "Device Type") draft_.device_type = value;
    if (inner_ == "Total Allocated") draft_.allocated = value;
    if (inner_ == "Total Reserved") draft_.reserved = value;
    if (inner_ == "correlation") draft_.correlation = size;
    if (inner_ == "External id" || inner_ == "external id") draft_.external = size;
    if (inner_ == "sycl queue" && draft_.stream < 0) draft_.stream = value;
    if (inner_ == "wait_on_stream") draft_.on_stream = value;
    if (inner_ == "wait_on_cuda_event_record_corr_id") draft_.record = size;
    if (inner_ == "In msg nelems") draft_.collective.input = size;
    if (inner_ == "Out msg nelems") draft_.collective.output = size;
    if (inner_ == "Group size") draft_.collective.group = size;
  }

  void take_time(const std::string& text) {
    if (key_ == "ts") draft_.begin = text;
    if (key_ == "dur") draft_.duration = text;
  }

  void take_text(std::string& value) {
    if (value.size() > kLongestText) value.resize(kLongestText);
    if (!in_events()) {
      if (top_ == "deviceProperties" && key_ == "name" && process_.gpu.empty())
        process_.gpu = value;
      return;
    }
    if (depth_ == event_depth_) {
      if (key_ == "ph") draft_.phase = value;
      if (key_ == "cat") draft_.category = value;
      if (key_ == "name") draft_.name = value;
      if (key_ == "tid") draft_.thread = lane_number(value);
      if (key_ == "ts" || key_ == "dur") take_time(value);
    } else if (depth_ == event_depth_ + 1 && key_ == "args") {
      if (inner_ == "Collective name") draft_.collective.name = value;
      if (inner_ == "dtype") draft_.collective.type = value;
      if (inner_ == "Process Group Ranks") draft_.collective.ranks = value;
    }
  }

  std::uint32_t collective_of(const Collective& collective) {
    const auto [found, is_new] = collectives_.try_emplace(
        collective, static_cast<std::uint32_t>(process_.collectives.size()));
    if (is_new) process_.collectives.push_back(collective);
    return found->second;
  }

  /// "[memory]", an instant at which a tensor came or went; those of GPUs only.
  void take_memory() {
    constexpr std::int64_t kCuda = 1;  // c10::DeviceType
    if (draft_.device_type != kCuda || draft_.allocated < 0 || draft_.reserved < 0) return;
    MemoryEvent event;
    if (!to_ns(draft_.begin, event.at)) fail(fmt::format("'ts' is '{}'", shortened(draft_.begin)));
    if (process_.memory.size() == kMostEvents) {
      fail(fmt::format("more than {} marks of memory", kMostEvents));
    }
    event.device = static_cast<std::uint32_t>(std::min<std::uint64_t>(draft_.device, 1024));
    event.allocated = draft_.allocated;
    event.reserved = draft_.reserved;
    process_.memory.push_back(event);
  }

  /// For the message about a trace that has nothing of a GPU.
  void leave_out() {
    constexpr std::size_t kMost = 100;
    const std::string category = shortened(draft_.category);
    if (process_.left_out.size() < kMost || process_.left_out.contains(category)) {
      ++process_.left_out[category];
    }
  }

  void widen(const Event& event) {
    Window& extent = process_.extent;
    const bool is_first = extent.end <= extent.begin;
    extent.begin = is_first ? event.begin : std::min(extent.begin, event.begin);
    extent.end = is_first ? event.end : std::max(extent.end, event.end);
  }

  void take_sync() {
    if (draft_.correlation == 0) return;
    const bool is_streams = draft_.name.find("Wait") != std::string::npos;
    process_.tells_stream_waits = process_.tells_stream_waits || is_streams;
    process_.syncs[draft_.correlation] = {draft_.stream, draft_.on_stream, draft_.record};
    if (process_.syncs.size() > kMostEvents) {
      fail(fmt::format("more than {} synchronisations", kMostEvents));
    }
  }

  void take_event() {
    ++events_;
    if (draft_.name == "[memory]") return take_memory();
    if (draft_.phase != "X") return;
    if (draft_.name == "record_param_comms" && draft_.external > 0 && draft_.collective.group > 0) {
      by_external_[draft_.external] = collective_of(draft_.collective);
    }
    if (is_sync_detail(draft_.category)) return take_sync();
    const auto kind = kind_of_event(draft_.category, draft_.name);
    const bool is_hosts = is_of_host(draft_.category);
    if (!kind) leave_out();
    if (!kind && !is_hosts) return;
    Event event;
    std::int64_t duration = 0;
    if (!kind) {  // only how far it reaches counts
      if (to_ns(draft_.begin, event.begin) && to_ns(draft_.duration, duration) && duration >= 0) {
        event.end = event.begin + duration;
        widen(event);
      }
      return;
    }
    if (!to_ns(draft_.begin, event.begin)) {
      fail(fmt::format("'ts' is '{}'", shortened(draft_.begin)));
    }
    if (!to_ns(draft_.duration, duration) || duration < 0) {
      fail(fmt::format("'dur' is '{}'", shortened(draft_.duration)));
    }
    event.end = event.begin + duration;
    if (is_hosts) widen(event);
    event.kind = *kind;
    const bool on_device = event.kind != EventKind::Call && event.kind != EventKind::Iteration;
    if (on_device && draft_.stream < 0) draft_.stream = std::max<std::int64_t>(0, draft_.thread);
    event.lane = on_device ? draft_.stream : draft_.thread;
    event.name = names_.add(draft_.name);
    event.correlation = draft_.correlation;
    event.external = draft_.external;
    event.device = static_cast<std::uint32_t>(std::min<std::uint64_t>(draft_.device, 1024));
    event.blocks = static_cast<std::uint32_t>(draft_.blocks);
    if (draft_.collective.group > 0) {
      event.collective = collective_of(draft_.collective);
    } else if (event.kind == EventKind::Kernel && draft_.name.starts_with("nccl")) {
      unnamed_.emplace_back(process_.events.size(), draft_.external);
    }
    if (process_.events.size() == kMostEvents) {
      fail(fmt::format("more than {} calls, kernels and copies", kMostEvents));
    }
    process_.events.push_back(event);
  }

  Names& names_;
  Unpacked* source_;  ///< null: the bytes were there
  Process process_;
  Draft draft_;
  std::map<Collective, std::uint32_t> collectives_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_external_;
  std::vector<std::pair<std::size_t, std::uint64_t>> unnamed_;  ///< NCCL's kernels, to be resolved
  std::string top_, second_, key_, inner_;
  int depth_ = 0;
  int event_depth_ = 3;
  bool has_events_ = false;
  std::size_t events_ = 0;
};

}  // namespace

Process parse_kineto(std::string_view bytes, const std::string& name, Names& names) {
  if (is_gzip(bytes)) {
    Unpacked unpacked{bytes, name, kLargestTrace, kLongestWord};
    Tokens tokens{name, names, &unpacked};
    std::istream in{&unpacked};
    in.exceptions(std::ios::badbit);  // what the buffer throws comes through
    TraceJson::sax_parse(in, &tokens);
    return tokens.take();
  }
  Tokens tokens{name, names, nullptr};
  TraceJson::sax_parse(bytes, &tokens);
  return tokens.take();
}

Process read_kineto(const std::filesystem::path& file, Names& names) {
  return parse_kineto(read_text_file(file, kLargestTrace), file.string(), names);
}

}  // namespace foretrace::capture
