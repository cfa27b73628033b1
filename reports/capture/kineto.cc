#include "reports/capture/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <streambuf>
#include <utility>

#include "reports/capture/trace_events.h"
#include "reports/capture/trace_keys.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/unpack.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/values/json_lexer.h"

namespace foretrace::capture {
namespace {

using TraceJson = nlohmann::json;

constexpr std::size_t kLongestWord = std::size_t{32} << 20;  // bytes of one text in a trace
constexpr std::size_t kLargestFile = std::size_t{4} << 30;   // bytes
constexpr std::size_t kLargestTrace = std::size_t{2} << 30;  // unpacked
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

/// The tokens of a trace, one after the other.
class Tokens {
 public:
  Tokens(std::string file, Names& names, Unpacked* source) : names_{names}, source_{source} {
    process_.file = std::move(file);
  }

  void word() {}
  void integer(std::int64_t value, std::string_view as_written) {
    constexpr std::int64_t kMost = std::int64_t{1} << 62;
    number(std::min(value, kMost), as_written);
  }
  void fraction(std::string_view as_written) {
    if (depth_ == event_depth_) take_time(as_written);
  }
  void text(std::string_view value) {
    if (source_ != nullptr) source_->understood();
    take_text(value);
  }
  void begin_object() { open(false); }
  void begin_array() { open(true); }
  void key(std::string_view name) {
    if (depth_ == 1) {
      top_ = name;
      in_events_ = has_events_ && top_ == kEvents;
    }
    if (depth_ == event_depth_) key_ = key_of(name);
    if (depth_ == event_depth_ + 1) inner_ = key_of(name);
    if (depth_ == 2) second_ = name;
  }
  void end_object() {
    if (depth_ == event_depth_ && in_events_) take_event();
    --depth_;
  }
  void end_array() { --depth_; }
  [[noreturn]] void is_no_json(std::size_t position, std::string_view error) const {
    const std::string what = json_reason(error);
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
  static constexpr std::string_view kEvents = "traceEvents";
  [[noreturn]] void fail(std::string_view why) const {
    throw UsageError{fmt::format("{}: event {}: {}", process_.file, events_, why)};
  }

  void open(bool is_array) {
    constexpr int kDeepest = 64;
    if (depth_ == 0 && is_array) {  // Chrome's short form: nothing but the events
      top_ = kEvents;
      event_depth_ = 2;
    }
    if (is_array && depth_ == event_depth_ - 2 && top_ == kEvents) has_events_ = in_events_ = true;
    if (++depth_ > kDeepest) {
      throw UsageError{fmt::format("{}: lists within lists, {} deep", process_.file, kDeepest)};
    }
    if (depth_ == event_depth_ && in_events_) draft_ = {};
  }

  void number(std::int64_t value, std::string_view text) {
    if (source_ != nullptr) source_->understood();
    if (!in_events_) {
      if (key_ == Key::Sms && depth_ == event_depth_ && top_ == "deviceProperties")
        process_.sms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, 1024));
      if (top_ == "distributedInfo" && depth_ == 2 && second_ == "rank") process_.rank = value;
      return;
    }
    if (depth_ == event_depth_) {
      if (key_ == Key::Thread) draft_.thread = value;
      return take_time(text);
    }
    if (key_ != Key::Args || value < 0) return;
    const auto size = static_cast<std::uint64_t>(value);
    if (depth_ == event_depth_ + 2 && inner_ == Key::Grid) {
      constexpr std::uint64_t kMostBlocks = 1 << 30;
      draft_.blocks = std::min(kMostBlocks, std::max<std::uint64_t>(1, draft_.blocks) * size);
    }
    if (depth_ == event_depth_ + 1) take_argument(value, size);
  }

  void take_argument(std::int64_t value, std::uint64_t size) {
    if (inner_ == Key::Stream) draft_.stream = value;
    if (inner_ == Key::Device) draft_.device = size;
    if (inner_ == Key::DeviceType) draft_.device_type = value;
    if (inner_ == Key::TotalAllocated) draft_.allocated = value;
    if (inner_ == Key::TotalReserved) draft_.reserved = value;
    if (inner_ == Key::Correlation) draft_.correlation = size;
    if (inner_ == Key::External) draft_.external = size;
    if (inner_ == Key::SyclQueue && draft_.stream < 0) draft_.stream = value;
    if (inner_ == Key::WaitsOn) draft_.on_stream = value;
    if (inner_ == Key::Record) draft_.record = size;
    if (inner_ == Key::InputSize) draft_.collective.input = size;
    if (inner_ == Key::OutputSize) draft_.collective.output = size;
    if (inner_ == Key::GroupSize) draft_.collective.group = size;
  }

  void take_time(std::string_view text) {
    if (key_ == Key::Time) draft_.begin = text;
    if (key_ == Key::Duration) draft_.duration = text;
  }

  void take_text(std::string_view value) {
    value = value.substr(0, kLongestText);
    if (!in_events_) {
      if (key_ == Key::Name && process_.gpu.empty() && top_ == "deviceProperties")
        process_.gpu = value;
      return;
    }
    if (depth_ == event_depth_) {
      if (key_ == Key::Phase) draft_.phase = value;
      if (key_ == Key::Category) draft_.category = value;
      if (key_ == Key::Name) draft_.name = value;
      if (key_ == Key::Thread) draft_.thread = lane_number(value);
      take_time(value);
    } else if (depth_ == event_depth_ + 1 && key_ == Key::Args) {
      if (inner_ == Key::CollectiveName) draft_.collective.name = value;
      if (inner_ == Key::DataType) draft_.collective.type = value;
      if (inner_ == Key::Ranks) draft_.collective.ranks = value;
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
  std::string top_, second_;
  Key key_ = Key::Other, inner_ = Key::Other;
  int depth_ = 0;
  int event_depth_ = 3;
  bool has_events_ = false;
  bool in_events_ = false;  ///< and `top_` names them
  std::size_t events_ = 0;
};

/// The same by nlohmann's parser, which says what is wrong.
class FullTokens {
 public:
  explicit FullTokens(Tokens& tokens) : tokens_{tokens} {}
  bool null() { return true; }
  bool boolean(bool /*value*/) { return true; }
  bool number_integer(std::int64_t value) {
    tokens_.integer(value, std::to_string(value));
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    tokens_.integer(static_cast<std::int64_t>(std::min(value, kMost)), std::to_string(value));
    return true;
  }
  bool number_float(double /*value*/, const std::string& text) {
    tokens_.fraction(text);
    return true;
  }
  bool string(const std::string& value) {
    tokens_.text(value);
    return true;
  }
  bool binary(TraceJson::binary_t& /*value*/) { return true; }
  bool start_object(std::size_t /*size*/) {
    tokens_.begin_object();
    return true;
  }
  bool start_array(std::size_t /*size*/) {
    tokens_.begin_array();
    return true;
  }
  bool key(const std::string& name) {
    tokens_.key(name);
    return true;
  }
  bool end_object() {
    tokens_.end_object();
    return true;
  }
  bool end_array() {
    tokens_.end_array();
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const TraceJson::exception& error) {
    tokens_.is_no_json(position, error.what());
  }

 private:
  Tokens& tokens_;
};

/// Of bytes that are there.
class InMemory final : public std::streambuf {
 public:
  explicit InMemory(std::string_view bytes) {
    char* const begin = const_cast<char*>(bytes.data());  // NOLINT: nothing is put back
    setg(begin, begin, begin + bytes.size());
  }
};

/// Empty where the full parser must say what is wrong.
std::optional<Process> read_tokens(std::streambuf& source, const std::string& name, Names& names,
                                   Unpacked* unpacked) {
  Tokens tokens{name, names, unpacked};
  if (!JsonLexer{source, kLongestWord, tokens}.read()) return std::nullopt;
  return tokens.take();
}

}  // namespace

Process parse_kineto(std::string_view bytes, const std::string& name, Names& names) {
  if (is_gzip(bytes)) {
    Unpacked once{bytes, name, kLargestTrace, kLongestWord};
    if (auto process = read_tokens(once, name, names, &once)) return *std::move(process);
    Unpacked unpacked{bytes, name, kLargestTrace, kLongestWord};
    Tokens tokens{name, names, &unpacked};
    FullTokens full{tokens};
    std::istream in{&unpacked};
    in.exceptions(std::ios::badbit);  // what the buffer throws comes through
    TraceJson::sax_parse(in, &full);
    return tokens.take();
  }
  InMemory once{bytes};
  if (auto process = read_tokens(once, name, names, nullptr)) return *std::move(process);
  Tokens tokens{name, names, nullptr};
  FullTokens full{tokens};
  TraceJson::sax_parse(bytes, &full);
  return tokens.take();
}

Process read_kineto(const std::filesystem::path& file, Names& names) {
  FileStream stream{file, kLargestFile};
  if (!is_gzip(stream.head())) {
    if (auto process = read_tokens(stream, file.string(), names, nullptr)) {
      return *std::move(process);
    }
  }
  return parse_kineto(read_text_file(file, kLargestFile), file.string(), names);
}

}  // namespace foretrace::capture
