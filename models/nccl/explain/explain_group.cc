// Grouped and aggregated operations: what they share.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "models/nccl/explain/explain.h"

namespace foretrace::nccl {
namespace {

using Json = nlohmann::ordered_json;
using words::size_text;

/// The rounds of NCCL's send/recv schedule that the busiest rank has work in.
std::vector<Round> rounds_of(const Tuning& tuning, const Question& question, Bytes each) {
  if (question.kind) return exchange_rounds(tuning, each);
  return {{tuning.ranks() > 1 ? 1u : 0u, each}};
}

std::string plan_text(const Plan& plan) {
  const std::uint32_t last = plan.first_channel + plan.channels - 1;
  return fmt::format("{} {}, channels {} to {}, price {:.2f} us", name_of(plan.algorithm),
                     name_of(plan.protocol), plan.first_channel, last, plan.price_us);
}

Json call_json(const GroupedCall& call) {
  Json json{{"op", call.question.op},
            {"size_bytes", call.question.size.count},
            {"type", call.question.type_name},
            {"channels", call.channels}};
  if (call.plan) {
    json["algorithm"] = name_of(call.plan->algorithm);
    json["protocol"] = name_of(call.plan->protocol);
    json["first_channel"] = call.plan->first_channel;
    json["price_us"] = call.plan->price_us;
  } else {
    json["protocol"] = name_of(call.transfer->protocol);
  }
  return json;
}

}  // namespace

GroupExplanation explain_group(const std::vector<Question>& questions, Tuning tuning,
                               const Given& given) {
  GroupExplanation e{std::move(tuning), given, {}, 1, 1};
  std::vector<Request> requests;
  std::vector<Round> rounds;
  for (const Question& question : questions) {
    const std::uint64_t parts = parts_of(question, e.tuning.ranks());
    GroupedCall& call = e.calls.emplace_back();
    call.question = question;
    if (question.kind && !is_send_recv(*question.kind)) {
      requests.push_back({function_of(*question.kind), question.size, question.type,
                          question.red_op, 1, goes_directly(question, e.tuning)});
      continue;
    }
    const Bytes each{question.size.count / parts};
    call.transfer = transfer_of(e.tuning, each);
    const std::vector<Round> mine = rounds_of(e.tuning, question, each);
    call.channels = p2p_channels(e.tuning, mine);
    rounds.insert(rounds.end(), mine.begin(), mine.end());
    e.kernel_threads = kP2pThreads;
  }
  const std::vector<Plan> plans = plan_group(e.tuning, requests);
  auto next = plans.begin();
  for (GroupedCall& call : e.calls) {
    if (call.transfer) continue;
    call.plan = *next++;
    call.channels = call.plan->channels;
    e.kernel_threads = std::max(e.kernel_threads, call.plan->threads);
  }
  // src/enqueue.cc, ncclLaunchPrepare: collectives first, sends and receives into the same kernel.
  const std::uint64_t mask = kernel_mask(plans) | p2p_mask(e.tuning, rounds);
  e.kernel_channels = static_cast<std::uint32_t>(std::popcount(mask));
  return e;
}

std::string explain_text(const GroupExplanation& e) {
  std::string text = fmt::format("a group of {} operations", e.calls.size()) +
                     words::machine_text(e.tuning, e.given);
  for (const GroupedCall& call : e.calls) {
    text += fmt::format("{} of {}: ", call.question.op, size_text(call.question.size.count));
    text += call.plan
                ? plan_text(*call.plan)
                : fmt::format("{}, {} channels", name_of(call.transfer->protocol), call.channels);
    text += '\n';
  }
  text += "operations alike are priced and chosen for as if they were one\n";
  return text + fmt::format("kernel: {} CTAs of {} threads\n", e.kernel_channels, e.kernel_threads);
}

std::string explain_json(const GroupExplanation& e) {
  Json json{{"ranks", e.tuning.ranks()},
            {"nodes", e.tuning.topology.nodes},
            {"nccl_version", text_of(e.tuning.version)},
            {"environment", e.given.environment},
            {"nvls_off", e.given.no_nvls},
            {"group", Json::array()},
            {"kernel", {{"channels", e.kernel_channels}, {"threads", e.kernel_threads}}}};
  for (const GroupedCall& call : e.calls) json["group"].push_back(call_json(call));
  return json.dump(2) + "\n";
}

std::string explain_csv(const GroupExplanation& e) {
  std::string text =
      "op,size_bytes,ranks,algorithm,protocol,price_us,first_channel,channels,kernel_channels,"
      "kernel_threads\n";
  for (const GroupedCall& call : e.calls) {
    const std::string choice = call.plan
                                   ? fmt::format("{},{},{:.9g},{}", name_of(call.plan->algorithm),
                                                 name_of(call.plan->protocol), call.plan->price_us,
                                                 call.plan->first_channel)
                                   : fmt::format(",{},,", name_of(call.transfer->protocol));
    text +=
        fmt::format("{},{},{},{},{},{},{}\n", call.question.op, call.question.size.count,
                    e.tuning.ranks(), choice, call.channels, e.kernel_channels, e.kernel_threads);
  }
  return text;
}

}  // namespace foretrace::nccl
