#include "scenarios/captured/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/packed_file.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/values/json_whole.h"
#include "scenarios/captured/record_limits.h"

namespace foretrace::captured {
namespace {

using Json = nlohmann::json;

class RecordReader {
 public:
  explicit RecordReader(const std::string& file) { record_.file = file; }

  Record read(std::string_view text) {
    most_ids_ = std::min(text.size(), std::size_t{1} << 24);  // each takes some bytes of the file
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      ++line_;
      if (line.empty()) continue;
      take(parsed(line));
    }
    if (line_ == 0 || record_.world == 0) refuse("the file is empty");
    if (record_.calls.empty()) refuse("no call was recorded");
    for (const std::string& type : unknown_types_) {
      record_.assumptions.push_back(
          fmt::format("elements of type '{}' count as 4 bytes each", shortened(type)));
    }
    return std::move(record_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw UsageError{fmt::format("{}:{}: error: {}", record_.file, std::max(1U, line_), what)};
  }

  Json parsed(std::string_view line) const {
    const auto shallow = [this](int depth, Json::parse_event_t, Json&) {
      if (depth > kDeepest) refuse("nested too deeply");
      return true;
    };
    try {
      Json json = Json::parse(line, shallow);
      if (!json.is_object()) refuse("each line is a JSON object");
      make_counts(json, false);
      return json;
    } catch (const Json::exception& error) {
      refuse(fmt::format("not JSON: {}", shortened(json_reason(error.what()), 120)));
    }
  }

  /// What is read as a count is one: JSON has fractions and powers of ten wherever it has numbers.
  /// A call's own arguments are numbers of any kind (a mask's -3.4e38): those are held within what
  /// a count may be.
  void make_counts(Json& json, bool are_arguments) const {
    for (auto& [key, value] : json.items()) {
      if (value.is_structured()) {
        make_counts(value, key == "in" || (are_arguments && value.is_array()));
      } else if (value.is_number_float()) {
        const auto number = value.get<double>();
        if (are_arguments) {
          value = std::clamp(number, -0x1p53, 0x1p53);
        } else {
          if (std::abs(number) > 0x1p53) refuse("a number beyond 2^53");
          if (number < 0) value = static_cast<std::int64_t>(std::floor(number));
        }
      }
    }
  }

  void take(const Json& json) {
    try {
      if (line_ == 1) return header(json);
      const std::string kind = json.at("k").get<std::string>();
      if (declared(kind, json)) return;
      if (kind == "op") return operation(json);
      call(kind, json);
    } catch (const Json::exception& error) {
      refuse(fmt::format("a record that is not as it should be: {}",
                         shortened(json_reason(error.what()), 120)));
    }
  }

  void header(const Json& json) {
    if (!json.contains("foretrace_calls"))
      refuse("no record of 'foretrace capture': its first line has 'foretrace_calls'");
    constexpr int kVersion = 1;
    const int version = json_whole<int>(json.at("foretrace_calls"));
    if (version != kVersion) {
      refuse(fmt::format("a record of version {}, and this reads version {}", version, kVersion));
    }
    record_.rank = json_whole_or(json, "rank", std::int64_t{0});
    record_.world = json_whole_or(json, "world_size", std::int64_t{1});
    record_.local_world = json_whole_or(json, "local_world_size", record_.world);
    if (record_.world < 1 || record_.rank < 0 || record_.rank >= record_.world) {
      refuse("rank and world_size do not fit");
    }
    record_.torch = json.value("torch", "");
    record_.depth = json.value("depth", "");
    record_.script_digest = json.value("script_digest", "");
    if (!is_script_digest(record_.script_digest)) {
      refuse("'script_digest' is 16 hexadecimal digits");
    }
    if (json.contains("device")) record_.device = json.at("device").value("name", "");
    if (json.contains("host")) {
      record_.python_loop_ns = loop(json.at("host"), "python_loop_ns");
      record_.torch_loop_ns = loop(json.at("host"), "torch_loop_ns");
    }
    for (const Json& one : json.value("assumptions", Json::array())) {
      const std::string text = one.is_string() ? one.get<std::string>() : one.dump();
      record_.assumptions.push_back(in_one_line(text));
    }
  }

  double loop(const Json& host, const char* name) const {
    const double ns = host.value(name, 0.0);
    if (ns != 0 && (ns < kShortestLoop || ns > kLongestLoop)) {
      refuse(fmt::format("'{}' is not between 0.1 ms and 10 s", name));
    }
    return ns;
  }

  bool declared(const std::string& kind, const Json& json) {
    if (kind == "name") {
      place(json, record_.names) = json.at("n").get<std::string>();
    } else if (kind == "sig") {
      place(json, record_.signatures) = signature(json);
    } else if (kind == "stream") {
      record_.streams[json_whole<std::uint32_t>(json.at("i"))] = {
          json_whole_or(json, "priority", std::int64_t{0})};
    } else if (kind == "comm") {
      communicator(json);
    } else {
      return kind == "mod" || kind == "thread" || json.value("optional", false);
    }
    return true;
  }

  /// Ids are small, in no order.
  template <class T>
  T& place(const Json& json, std::vector<T>& all) const {
    const auto id = json.at("i").get<std::size_t>();
    if (id >= most_ids_) {
      refuse(fmt::format("an id of {}: they count what the file has, from 0", id));
    }
    if (id >= all.size()) all.resize(id + 1);
    return all[id];
  }

  void communicator(const Json& json) {
    Communicator comm;
    comm.size = json_whole<std::int64_t>(json.at("size"));
    comm.rank = json_whole_or(json, "rank", std::int64_t{0});
    comm.name = json.value("n", "");
    if (json.contains("ranks") && json.at("ranks").is_array()) {
      comm.ranks = json.at("ranks").get<std::vector<std::int64_t>>();
    }
    if (comm.ranks.size() > static_cast<std::size_t>(record_.world))
      refuse("more ranks than the world has");
    const bool fits =
        comm.size >= 1 && comm.size <= record_.world && comm.rank >= 0 && comm.rank < comm.size;
    if (!fits) refuse("a communicator's size and rank do not fit the world's");
    record_.comms[json_whole<std::uint32_t>(json.at("i"))] = std::move(comm);
  }

  Tensor tensor(const Json& json) {
    Tensor made{.type = json.at("d").get<std::string>(),
                .shape = json.at("s").get<std::vector<std::int64_t>>(),
                .strides = {},
                .on_host = json.value("dev", "") == "cpu"};
    if (json.contains("st")) made.strides = json.at("st").get<std::vector<std::int64_t>>();
    if (made.shape.size() > kMostDimensions) refuse("a tensor of too many dimensions");
    std::int64_t elements = 1;
    for (const std::int64_t size : made.shape) {
      if (size < 0 || size > (std::int64_t{1} << 40)) refuse("a tensor's size is out of range");
      if (size > 0 && elements > kMostElements / size) {
        refuse("a tensor of more elements than any memory holds");
      }
      elements *= std::max<std::int64_t>(1, size);
    }
    const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    if (!std::ranges::all_of(made.type, is_plain)) refuse("a tensor's type is a word");
    if (!is_known_type(made.type)) unknown_types_.insert(made.type);
    return made;
  }

  Signature signature(const Json& json) {
    Signature made;
    made.name = json.at("n").get<std::string>();
    for (const Json& one : json.value("in", Json::array())) {
      if (one.is_object()) {
        made.tensors.push_back(tensor(one));
        made.plain.emplace_back();
      } else if (one.is_array() && !one.empty() && one.front().is_object()) {
        made.has_list = true;
        for (const Json& member : one) {
          if (member.is_object()) made.tensors.push_back(tensor(member));
        }
        made.plain.emplace_back();
      } else {
        made.plain.push_back(one.dump());
      }
    }
    if (made.tensors.size() > kMostTensors) refuse("an operation of too many tensors");
    return made;
  }

  void operation(const Json& json) {
    Operation made;
    made.signature = json_whole<std::uint32_t>(json.at("q"));
    if (made.signature >= record_.signatures.size()) refuse("no such signature");
    if (json.contains("p") && !json.at("p").is_null())
      made.parent = json_whole<std::uint32_t>(json.at("p"));
    if (made.parent && *made.parent >= record_.operations.size()) refuse("no such operation");
    made.phase = json.value("ph", "");
    place(json, record_.operations) = std::move(made);
  }

  void call(const std::string& kind, const Json& json) {
    static const std::set<std::string, std::less<>> known{
        "launch",       "gemm",      "lib",  "copy",  "memset",    "host_read",
        "record",       "wait",      "sync", "query", "malloc",    "free",
        "host_alloc",   "host_free", "coll", "group", "comm_init", "graph",
        "graph_launch", "host_func", "call", "begin", "end"};
    if (!known.contains(kind)) refuse(fmt::format("a call of an unknown kind '{}'", kind));
    Call made;
    made.kind = kind;
    made.line = line_;
    made.at =
        json_whole_or(json, "t", record_.calls.empty() ? std::int64_t{0} : record_.calls.back().at);
    if (made.at > kLongest) refuse("a time of more than 10,000 s");
    if (json.contains("op") && kind != "lib")
      made.operation = json_whole<std::uint32_t>(json.at("op"));
    if (kind == "lib" && json.contains("op") && json.at("op").is_number())
      made.operation = json_whole<std::uint32_t>(json.at("op"));
    if (made.operation && *made.operation >= record_.operations.size()) refuse("no such operation");
    made.stream = json_whole_or(json, "s", 0U);
    made.event = json_whole_or(json, "e", 0U);
    if (json.contains("g") && json.at("g").is_number()) {
      made.in_graph = true;
      made.graph = json_whole<std::uint32_t>(json.at("g"));
    }
    if (const std::string why = why_backwards(made, latest_); !why.empty()) refuse(why);
    details(kind, json, made);
    record_.calls.push_back(std::move(made));
  }

  std::uint64_t product(const Json& sizes) const {
    constexpr std::size_t kDimensions = 3;
    constexpr std::uint64_t kMostOfOne = 0x7fffffff;
    if (!sizes.is_array() || sizes.size() > kDimensions) refuse("a launch has three sizes");
    std::uint64_t all = 1;
    for (const Json& one : sizes) {
      const auto size = json_whole<std::int64_t>(one);
      if (size < 0 || static_cast<std::uint64_t>(size) > kMostOfOne)
        refuse("a launch's size is out of range");
      all *= std::max<std::uint64_t>(1, static_cast<std::uint64_t>(size));
      if (all > kMostBlocks) refuse("a launch of more blocks than a GPU takes");
    }
    return all;
  }

  void details(const std::string& kind, const Json& json, Call& made) {
    for (const char* key : {"f", "w", "dir", "what", "region"}) {
      if (json.contains(key) && json.at(key).is_string())
        made.function = json.at(key).get<std::string>();
    }
    if (kind == "launch") {
      made.name = json_whole<std::uint32_t>(json.at("n"));
      if (made.name >= record_.names.size()) refuse("no such kernel name");
      made.grid = product(json.at("g3"));
      const std::uint64_t threads = product(json.at("b3"));
      if (threads > kMostThreads) refuse("a block of more than 1024 threads");
      made.block = static_cast<std::uint32_t>(threads);
    } else if (kind == "gemm") {
      made.m = json_whole<std::int64_t>(json.at("m"));
      made.n = json_whole<std::int64_t>(json.at("n"));
      made.k = json_whole<std::int64_t>(json.at("kk"));
      made.batch = json_whole_or(json, "batch", std::int64_t{1});
      made.transposes_a = is_set(json, "ta");
      made.transposes_b = is_set(json, "tb");
      made.adds = json.contains("beta") && json.at("beta").is_number() &&
                  json.at("beta").get<double>() != 0;
      made.type = json.value("a", "bf16");
      made.compute = json.value("compute", "");
      made.result = json.value("d", "");
      if (const std::string why = why_no_product(made); !why.empty()) refuse(why);
    } else if (kind == "lib") {
      made.operation_text = json.value("ops", Json::array()).dump();
    } else if (kind == "begin" || kind == "end") {
      made.instance = json_whole_or(json, "instance", std::int64_t{0});
      if (record_.region.empty()) {
        if (!is_region_name(made.function)) {
          refuse("a region's name is of letters, digits, '_', '-', '.', '/' and blanks");
        }
        record_.region = made.function;
      }
      if (kind == "end") at_end(json, made);
    } else {
      transfer(json, made);
    }
  }

  static bool is_set(const Json& json, const char* key) {
    if (!json.contains(key)) return false;
    const Json& value = json.at(key);
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number()) return value.get<double>() != 0;
    return value.is_string() && value.get<std::string>() != "n" && value.get<std::string>() != "N";
  }

  void transfer(const Json& json, Call& made) const {
    if (json.contains("n") && json.at("n").is_number())
      made.count = json_whole<std::uint64_t>(json.at("n"));
    const bool moves = made.kind == "coll" || made.kind == "copy" || made.kind == "memset";
    if (moves && made.count > kMostMoved) refuse("more than 2^40 elements or bytes of a call");
    made.pinned = is_set(json, "pin");
    made.asynchronous = !json.contains("async") ? false : is_set(json, "async");
    made.type = json.value("d", "");
    made.reduction = json.value("op3", "sum");
    made.comm = json_whole_or(json, "c", 0U);
    if (json.contains("root") && json.at("root").is_number())
      made.root = json_whole<std::int64_t>(json.at("root"));
    if (json.contains("peer") && json.at("peer").is_number())
      made.peer = json_whole<std::int64_t>(json.at("peer"));
    if (json.contains("end")) made.ends = is_set(json, "end");
    if (made.kind == "coll") {
      if (const std::string why = why_no_collective(made, record_); !why.empty()) refuse(why);
    }
  }

  void at_end(const Json& json, const Call& made) {
    if (made.function != record_.region) return;
    if (json.contains("memory")) {
      const Json& memory = json.at("memory");
      const auto peak = [&](const char* key) {
        return memory.contains(key) ? json_whole<std::int64_t>(memory.at(key).at(1)) : 0;
      };
      record_.memory = Memory{peak("allocated"), peak("reserved"), 0};
      if (std::min(record_.memory->allocated_peak, record_.memory->reserved_peak) < 0) {
        refuse("a peak of memory below 0");
      }
      if (memory.contains("peak_before")) {
        const auto before = memory.at("peak_before").get<std::array<std::int64_t, 2>>();
        record_.memory->first_peak = before[0];
        record_.memory->reserved_peak = std::max(record_.memory->reserved_peak, before[1]);
      }
    }
    std::vector<std::int64_t> cpu;
    for (const Json& one : json.value("steps_cpu_ns", Json::array())) {
      cpu.push_back(json_whole<std::int64_t>(one));
    }
    if (!cpu.empty() && made.at > 0) {
      // Whatever else ran on the capturing machine only adds.
      const auto least = static_cast<double>(*std::ranges::min_element(cpu));
      record_.own_share = std::clamp(least / static_cast<double>(made.at), 0.0, 1.0);
    }
    const Json counts = json.value("counts", Json::object());
    for (const auto& [name, count] : counts.items()) {
      if (name.starts_with("cuda")) record_.queries += json_whole<std::uint64_t>(count);
    }
  }

  Record record_;
  std::uint32_t line_ = 0;
  std::size_t most_ids_ = 0;
  std::int64_t latest_ = 0;  ///< of a call that the host makes
  std::set<std::string> unknown_types_;
};

}  // namespace

Record parse_record(std::string_view text, const std::string& file) {
  return RecordReader{file}.read(text);
}

Record read_record(const std::filesystem::path& file) {
  return parse_record(read_packed_text_file(file, kLargestRecord), file.string());
}

}  // namespace foretrace::captured
