// Lines of a record from the calls of a template.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenarios/styles/formula.h"

namespace foretrace::styles {

using Shape = std::vector<std::int64_t>;

/// `items` with what each layer has again as often as there are more layers.
nlohmann::json repeated(const nlohmann::json& items, std::int64_t more);

class RecordWriter {
 public:
  RecordWriter(std::string header, double loop_ns) : text_{std::move(header)}, loop_ns_{loop_ns} {}

  /// Calls of a part of the step. `grown`: what times grow with: layers, or tensors of the list.
  void part(const nlohmann::json& calls, const nlohmann::json& names, const Formulas& formulas,
            std::int64_t grown, const std::vector<Shape>& parameters);
  void pass(double loops) { at_ += loops * loop_ns_; }
  void line(const nlohmann::json& json) { text_ += json.dump() + "\n"; }
  std::int64_t at() const;
  std::int64_t asking() const { return asking_; }  ///< calls with work for the GPU
  std::string take() { return std::move(text_); }

 private:
  void call(nlohmann::json call, std::int64_t grown);
  std::int64_t operation(const nlohmann::json& call);
  std::int64_t declared(const char* kind, const nlohmann::json& what);

  std::string text_;
  double loop_ns_, at_ = 0;
  std::map<std::string, std::int64_t> ids_;  ///< of declarations, by kind and text
  std::map<std::string, std::int64_t> counts_;
  std::map<std::string, std::int64_t> latest_;  ///< operation of this part, by signature
  std::int64_t operations_ = 0, asking_ = 0;
};

}  // namespace foretrace::styles
