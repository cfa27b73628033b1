// What nccl-tests writes with -J: its src/util.cu, format 3. One run a file; a device is named for
// each process, the first of its GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/values/json_depth.h"
#include "scenarios/base/values/json_whole.h"
#include "sim/applications/nccl_tests/log.h"
#include "sim/applications/nccl_tests/log_facts.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Throws UsageError.
int whole(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(begin);
  int value = 0;
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc{} && rest == text.data() + text.size()) return value;
  throw UsageError{fmt::format("'{}' is not a whole number", shortened(text))};
}

class JsonReader {
 public:
  JsonReader(const std::string& file, const NcclTestsAssumed& assumed)
      : file_{file}, assumed_{assumed}, plan_{assumed.plan}, facts_{file} {}

  Checked<std::vector<NcclTestsSample>> read(std::string_view text) {
    constexpr std::size_t kDeepest = 16;
    if (json_depth(text) > kDeepest) {
      error(fmt::format("more than {} brackets in one another", kDeepest));
      return tl::unexpected{std::move(problems_)};
    }
    try {
      const Json document = Json::parse(text);
      read_run(document);
    } catch (const Json::parse_error& wrong) {
      const std::size_t at = std::min(wrong.byte, text.size());
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n');
      error(fmt::format("not JSON: {}", shortened(json_reason(wrong.what()), 200)),
            "a run that was stopped leaves its file without an end");
      problems_.back().at.line = static_cast<int>(line);
    } catch (const Json::exception& wrong) {
      error(fmt::format("not what nccl-tests -J writes: {}",
                        shortened(json_reason(wrong.what()), 200)));
    } catch (const UsageError& wrong) {
      error(wrong.what());
    }
    if (samples_.empty() && problems_.empty()) error("no result in it");
    if (!problems_.empty()) return tl::unexpected{std::move(problems_)};
    return std::move(samples_);
  }

 private:
  void error(std::string message, std::string hint = {}) {
    Diagnostic& problem = problems_.emplace_back();
    problem.at = {file_, 0, 0};
    problem.message = std::move(message);
    problem.hint = std::move(hint);
  }

  void read_run(const Json& document) {
    read_arguments(document.at("args"));
    if (document.contains("nccl_version")) {
      facts_.take_release(release_of_code(json_whole<std::uint32_t>(document.at("nccl_version"))),
                          1);
    }
    read_config(document.at("config"));
    for (const Json& variable : document.value("env", Json::array())) {
      facts_.note_settings(variable.get<std::string>(), 1, assumed_.plan);
    }
    for (const Json& row : document.at("results")) read_row(row);
  }

  /// The program's name is the operation's; how a call blocks stands nowhere else.
  void read_arguments(const Json& arguments) {
    op_ = assumed_.op;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto word = arguments[i].get<std::string>();
      const auto value = [&]() -> std::string {
        const auto equals = word.find('=');
        if (word.starts_with("--") && equals != std::string::npos) return word.substr(equals + 1);
        return i + 1 < arguments.size() ? arguments[i + 1].get<std::string>() : std::string{};
      };
      if (i == 0) {
        const std::string name = word.substr(word.find_last_of('/') + 1);
        try {
          op_ = parse_nccl_tests_op(name.substr(0, name.find("_perf")));
        } catch (const UsageError&) {  // renamed
        }
      } else if (word == "-z" || word.starts_with("--blocking")) {
        plan_.blocking = static_cast<std::uint32_t>(std::max(0, whole(value())));
      } else if (word == "-R" || word.starts_with("--local_register")) {
        plan_.local_register = static_cast<std::uint32_t>(std::max(0, whole(value())));
      }
    }
    if (!op_) error("the file does not tell which operation this is", "--op-name all_reduce");
  }

  void read_config(const Json& config) {
    plan_.threads = json_whole<std::uint32_t>(config.at("nthreads"));
    plan_.gpus = json_whole<std::uint32_t>(config.at("ngpus"));
    plan_.warmup = json_whole_or(config, "warmup_iters", plan_.warmup);
    plan_.iterations = json_whole<std::uint32_t>(config.at("iterations"));
    plan_.graph_launches = json_whole_or(config, "graph", std::uint32_t{0});
    if (json_whole_or(config, "aggregated_iterations", 1) > 1) {
      error("operations aggregated with -m cannot be predicted");
    }
    std::set<std::string>& hosts = hosts_;
    std::set<int> groups;
    const Json devices = config.value("devices", Json::array());
    for (const Json& device : devices) {
      hosts.insert(device.value("hostname", std::string{}));
      groups.insert(json_whole_or(device, "group", 0));
      if (gpu_.empty()) gpu_ = device.value("device_info", std::string{});
    }
    if (groups.size() > 1) {
      error(
          fmt::format("{} groups of ranks run side by side (NCCL_TESTS_SPLIT), which cannot be "
                      "predicted",
                      groups.size()));
    }
    if (devices.empty()) return;
    plan_.processes = static_cast<std::uint32_t>(devices.size());
    plan_.nodes = static_cast<std::uint32_t>(hosts.size());
    if (plan_.processes % plan_.nodes != 0) plan_.nodes = 1;
  }

  void read_row(const Json& row) {
    const Json& result = row.at("out_of_place");
    if (!op_ || !result.is_object()) return;
    if (result.contains("cpu_time")) {
      throw UsageError{"with -C 1 the times are CPU times, which cannot be predicted"};
    }
    NcclTestsSample sample{plan_, json_whole<std::uint64_t>(row.at("size")),
                           0,     file_,
                           gpu_,  {hosts_.begin(), hosts_.end()}};
    sample.plan.op = *op_;
    sample.plan.type = parse_nccl_tests_type(row.at("type").get<std::string>()).name;
    const auto redop = row.value("redop", std::string{"none"});
    if (redop != "none") sample.plan.redop = redop;
    const int root = whole(row.value("root", std::string{"-1"}));
    if (root >= 0) sample.plan.root = static_cast<std::uint32_t>(root);
    sample.time_us = result.at("time").get<double>();
    const Json& wrong = result.contains("nwrong") ? result.at("nwrong") : Json{};
    if (wrong.is_number() && wrong.get<double>() >= 1) {
      throw UsageError{
          fmt::format("{} B: the data was wrong, so the time means nothing", sample.bytes)};
    }
    if (!(sample.time_us > 0)) throw UsageError{"a time must be positive"};
    if (!bandwidths_fit(sample.plan, result.at("alg_bw").get<double>(),
                        result.at("bus_bw").get<double>())) {
      throw UsageError{fmt::format("{} of {} ranks would have another bus bandwidth",
                                   info(*op_).name, plan_.ranks())};
    }
    facts_.apply(sample.plan);
    samples_.push_back(std::move(sample));
  }

  const std::string& file_;
  const NcclTestsAssumed& assumed_;
  NcclTestsPlan plan_;
  std::set<std::string> hosts_;
  std::optional<NcclTestsOp> op_;
  LogFacts facts_;
  std::string gpu_;
  std::vector<NcclTestsSample> samples_;
  Diagnostics problems_;
};

}  // namespace

Checked<std::vector<NcclTestsSample>> read_nccl_tests_json(std::string_view text,
                                                           const std::string& file,
                                                           const NcclTestsAssumed& assumed) {
  return JsonReader{file, assumed}.read(text);
}

}  // namespace foretrace
