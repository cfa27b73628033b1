#include "models/nccl/explain/explain_time.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/nccl/time/collective_time.h"

namespace foretrace::nccl {
namespace {

struct Part {
  const char* key;
  const char* text;
  double seconds;
};

/// What adds up to the time.
std::vector<Part> time_parts(const CollectiveTime& time) {
  const Terms& t = time.terms;
  if (time.model != Model::Ring) {
    return {{"fixed_us", "before the first data", t.fixed_seconds},
            {"hops_us", "of hops", t.hop_seconds},
            {"bytes_us", "of bytes through channels, ports and network", t.channel_seconds}};
  }
  std::vector<Part> parts{{"fixed_us", "before the first data", t.fixed_seconds}};
  if (time.choice.protocol == Protocol::LL) {
    parts.push_back(
        {"steps_us", "of steps and rounds of the threads", t.seconds - t.fixed_seconds});
    return parts;
  }
  parts.push_back({"steps_us", "of steps", t.steps * t.step_seconds});
  parts.push_back({"wire_us", "on the wire", t.wire_seconds});
  parts.push_back({"channels_us", "of channels beyond it", t.channel_seconds});
  return parts;
}

std::pair<const char*, const char*> model_of(Model model) {
  switch (model) {
    case Model::Ring:
      return {"ring", "around the ring step by step"};
    case Model::Hops:
      return {"hops", "by hops and the slowest of what all bytes pass"};
    case Model::Pairs:
      return {"pairs", "by channels and ports of a transfer"};
    case Model::Price:
      break;
  }
  return {"price", "by NCCL's own numbers: the machine has no times for this"};
}

}  // namespace

TimeExplanation explain_time(const Machine& machine, const Question& question,
                             const Tuning& tuning) {
  const Bytes size{question.size.count / parts_of(question, tuning.ranks())};
  const auto time_of = [&](Reading& read) {
    const bool direct = goes_directly(question, tuning);
    if (!question.kind) return send_recv_time(read, tuning, size, true, Peer::SameNode, direct);
    return collective_time(read, tuning,
                           {*question.kind, size, question.type, question.red_op, direct});
  };
  Reading read{machine};
  TimeExplanation explanation{time_of(read), {}};
  if (explanation.time.model == Model::Price) return explanation;
  explanation.shares =
      shares_of(machine, [&](Reading& nudged) { return time_of(nudged).terms.seconds; });
  return explanation;
}

std::string time_text(const TimeExplanation& explanation) {
  const CollectiveTime& time = explanation.time;
  std::string text =
      fmt::format("time: {:.2f} us, {}:", time.terms.seconds * 1e6, model_of(time.model).second);
  const char* separator = " ";
  for (const Part& part : time_parts(time)) {
    if (part.seconds == 0) continue;
    text += fmt::format("{}{:.2f} {}", separator, part.seconds * 1e6, part.text);
    separator = ", ";
  }
  text += "\n";
  separator = "decided by ";
  for (const auto& [param, share] : explanation.shares) {
    if (std::abs(share) < kDecidingShare) break;
    text += fmt::format("{}{} ({:+.2f})", separator, info(param).key, share);
    separator = ", ";
  }
  return explanation.shares.empty() ? text : text + "\n";
}

nlohmann::ordered_json time_json(const TimeExplanation& explanation) {
  const CollectiveTime& time = explanation.time;
  nlohmann::ordered_json json{{"us", time.terms.seconds * 1e6},
                              {"model", model_of(time.model).first}};
  for (const Part& part : time_parts(time)) json[part.key] = part.seconds * 1e6;
  auto& shares = json["shares"] = nlohmann::ordered_json::object();
  for (const auto& [param, share] : explanation.shares)
    shares[std::string{info(param).key}] = share;
  return json;
}

}  // namespace foretrace::nccl
