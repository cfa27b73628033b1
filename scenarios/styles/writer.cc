#include "scenarios/styles/writer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenarios/captured/record.h"
#include "scenarios/styles/lists.h"

namespace foretrace::styles {
namespace {

using Json = nlohmann::json;

bool has_work(const std::string& kind) {
  return kind == "launch" || kind == "gemm" || kind == "lib" || kind == "copy" || kind == "memset";
}

/// A time that may grow: [at none, for each].
double time_of(const Json& json, std::int64_t grown) {
  if (!json.is_array()) return json.get<double>();
  return std::max(0.0,
                  json.at(0).get<double>() + json.at(1).get<double>() * static_cast<double>(grown));
}

std::int64_t elements_of(const Json& tensor) {
  std::int64_t all = 1;
  for (const Json& size : tensor.at("s")) all *= size.get<std::int64_t>();
  return all;
}

Json strides_of(const Shape& shape) {
  Json strides = Json::array();
  std::int64_t run = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides.insert(strides.begin(), run);
    run *= shape[i];
  }
  return strides;
}

/// {"each": ...}: a tensor for each parameter.
Json with_parameters(Json arguments, const std::vector<Shape>& parameters) {
  for (Json& one : arguments) {
    if (!one.is_object() || !one.contains("each")) continue;
    const Json each = one.at("each");
    one = Json::array();
    for (const Shape& shape : parameters) {
      Json tensor = each;
      if (!each.contains("s")) {
        tensor["s"] = shape;
        tensor["st"] = strides_of(shape);
      }
      one.push_back(std::move(tensor));
    }
  }
  return arguments;
}

const Json* first_list(const Json& arguments) {
  for (const Json& one : arguments) {
    if (one.is_array() && !one.empty() && one.front().is_object()) return &one;
  }
  return nullptr;
}

std::int64_t pieces(const Json& arguments) {
  std::int64_t most = 1;
  for (const Json& one : arguments) {
    if (one.is_object())
      most = std::max(most, pieces_of(elements_of(one),
                                      captured::bytes_of_type(one.at("d").get<std::string>())));
  }
  return most;
}

}  // namespace

Json repeated(const Json& items, std::int64_t more) {
  Json made = Json::array();
  for (const Json& one : items) {
    if (!one.is_object() || !one.contains("repeat")) {
      made.push_back(one);
      continue;
    }
    for (std::int64_t i = 0; i < more; ++i) {
      for (const Json& again : one.at("repeat")) made.push_back(again);
    }
  }
  return made;
}

std::int64_t RecordWriter::at() const { return std::llround(at_); }

std::int64_t RecordWriter::declared(const char* kind, const Json& what) {
  const auto [found, is_new] = ids_.try_emplace(kind + what.dump(), 0);
  if (is_new) {
    found->second = counts_[kind]++;
    Json json = what;
    json["k"] = kind;
    json["i"] = found->second;
    line(json);
  }
  return found->second;
}

/// The one that makes the call: a new one, or the latest of its signature that goes on.
std::int64_t RecordWriter::operation(const Json& call) {
  const Json& signature = call.at("q");
  std::int64_t& latest = latest_.try_emplace(signature.dump(), -1).first->second;
  if (latest >= 0 && call.value("same", false)) return latest;
  const std::int64_t id = declared("sig", signature);
  latest = operations_++;
  line({{"k", "op"}, {"i", latest}, {"q", id}, {"ph", call.value("ph", "forward")}});
  return latest;
}

/// Writes the call, as often as its list or its size asks for.
void RecordWriter::call(Json call, std::int64_t grown) {
  const double time = time_of(call.at("dt"), grown), more = call.value("more_dt", 0.0);
  const Json rule = call.value("list", Json{});
  const bool splits = call.value("split", false);
  const Json arguments = call.contains("q") ? call.at("q").at("in") : Json::array();
  if (call.contains("q")) {
    call["op"] = operation(call);
  }
  for (const char* key : {"q", "ph", "same", "dt", "more_dt", "list", "split", "if"})
    call.erase(key);
  std::vector<std::int64_t> blocks{0};
  std::size_t axis = 0;
  if (rule.is_object()) {
    std::vector<std::int64_t> elements;
    for (const Json& tensor : *first_list(arguments)) elements.push_back(elements_of(tensor));
    axis = rule.contains("chunk") ? 0 : 1;
    blocks = launches_over({rule.at("tensors"), rule.value("blocks", std::int64_t{0}),
                            rule.value("chunk", std::int64_t{1})},
                           elements);
  } else if (splits) {
    const auto all = call.at("g3").at(0).get<std::int64_t>();
    const std::int64_t parts = pieces(arguments);
    blocks.assign(static_cast<std::size_t>(parts), (all + parts - 1) / parts);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    pass(splits ? time / static_cast<double>(blocks.size()) : i == 0 ? time : more);
    if (blocks[i] > 0) call["g3"][axis] = blocks[i];
    call["t"] = at();
    asking_ += has_work(call.at("k").get<std::string>()) ? 1 : 0;
    line(call);
  }
}

void RecordWriter::part(const Json& calls, const Json& names, const Formulas& formulas,
                        std::int64_t grown, const std::vector<Shape>& parameters) {
  for (const Json& one : calls) {
    if (one.contains("if") && !formulas.filled(one.at("if")).get<bool>()) continue;
    Json made = formulas.filled(one);
    if (made.contains("q")) made["q"]["in"] = with_parameters(made["q"]["in"], parameters);
    if (made.at("k") == "launch")
      made["n"] = declared(
          "name",
          {{"n", made["n"].is_number() ? names.at(made["n"].get<std::size_t>()) : made["n"]}});
    for (const char* key : {"same", "split"}) {
      if (made.contains(key) && made.at(key).is_null()) made.erase(key);
    }
    call(std::move(made), grown);
  }
}

}  // namespace foretrace::styles
