#include "scenarios/read/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/values/quantity.h"
#include "scenarios/captured/read.h"
#include "scenarios/check/check.h"
#include "scenarios/read/head.h"
#include "scenarios/read/op_fields.h"
#include "scenarios/read/reader.h"
#include "scenarios/serving/grid.h"
#include "scenarios/serving/read.h"
#include "scenarios/styles/read.h"
#include "scenarios/training_step/read.h"

namespace foretrace {
namespace {

struct Described {
  training::TrainingStep step;
  const YamlNode* node = nullptr;  ///< of `training_step`; null where there are errors
};
Described describe_training_step(Reader& reader, const YamlNode& root,
                                 const ParameterValues& parameters) {
  MapReader map{root, "a scenario with a training step", reader.problems};
  read_head(reader, map, parameters);
  training::TrainingStep step;
  const YamlNode* node = map.required("training_step");
  if (node != nullptr) step = training::read_training_step(reader, *node);
  map.finish();
  warn_of_unused_parameters(reader);
  return {step, reader.problems.error_count() > 0 ? nullptr : node};
}

/// A file with `training_step:` has no threads of its own: they follow from the step. Empty after
/// an error.
std::optional<ExpandedScenario> expand_training_step(Reader& reader, const YamlNode& root,
                                                     const ParameterValues& parameters,
                                                     training::Ranks ranks) {
  const auto [step, node] = describe_training_step(reader, root, parameters);
  if (node == nullptr) return std::nullopt;
  const auto [line, column] = node->place();
  const SourceSpot at{reader.program.file, line, column};
  ExpandedScenario made{step, training::expand(step, ranks, reader.program, at), at, {}};
  if (!made.expansion.is_whole) {
    reader.problems.error(
        *node,
        fmt::format("this step is a program of more than {} operations: no more can be read",
                    training::most_operations(ranks)),
        fmt::format("is a size in another unit than it should be? else fewer layers, passes or "
                    "processes{}",
                    ranks == training::Ranks::All
                        ? ", or simulate --one-of-each, which has one process of each kind"
                        : ""));
    return std::nullopt;
  }
  return made;
}

/// Other people's code is read as a capture of it.
bool has_code(const YamlNode& root) {
  const auto step = std::ranges::find(root.entries, "training_step",
                                      [](const YamlEntry& e) { return e.key.text; });
  return step != root.entries.end() && has_key(step->value, "code");
}
bool has_training_step(const YamlNode& root) {
  return has_key(root, "training_step") && !has_code(root);
}
bool has_captured_step(const YamlNode& root) {
  return has_key(root, "captured_step") || has_code(root);
}

/// The expansion of a file's `captured_step`, with the file's own head. Empty after an error.
std::optional<ExpandedCapture> expand_captured_step(Reader& reader, const YamlNode& root,
                                                    const ParameterValues& parameters) {
  captured::CapturedStep step;
  const YamlNode* node = nullptr;
  if (has_code(root)) {
    const Described described = describe_training_step(reader, root, parameters);
    node = described.node;
    if (node != nullptr) step = styles::captured_step(reader, described.step, *node);
  } else {
    MapReader map{root, "a scenario with a captured step", reader.problems};
    read_head(reader, map, parameters);
    node = map.required("captured_step");
    if (node != nullptr) step = captured::read_captured_step(reader, *node);
    map.finish();
    warn_of_unused_parameters(reader);
  }
  if (reader.problems.error_count() > 0) return std::nullopt;
  const auto [line, column] = node->place();
  const SourceSpot at{reader.program.file, line, column};
  return ExpandedCapture{captured::expand(step, reader.program, at), at};
}

/// A file with `serving:`. Empty after an error.
std::optional<ServingScenario> describe_serving(Reader& reader, const YamlNode& root,
                                                const ParameterValues& parameters) {
  ServingScenario made;
  MapReader map{root, "a scenario with serving", reader.problems};
  read_head(reader, map, parameters);
  const YamlNode* node = map.required("serving");
  if (node != nullptr) made.serving = serving::read_serving(reader, *node);
  map.finish();
  warn_of_unused_parameters(reader);
  if (reader.problems.error_count() > 0) return std::nullopt;
  const auto [line, column] = node->place();
  made.at = {reader.program.file, line, column};
  made.program = serving::iterations(
      made.serving, serving::batches_of(serving::grid_of(made.serving)), reader.program, made.at);
  return made;
}

void read_document(Reader& reader, const YamlNode& root, const ParameterValues& parameters) {
  if (root.kind == YamlNode::Kind::Null) {
    reader.problems.add(1, 1, Severity::Error, "the file holds no scenario",
                        "foretrace list scenarios names some to begin with");
    return;
  }
  MapReader map{root, "a scenario", reader.problems};
  read_head(reader, map, parameters);
  read_streams(reader, map.optional("streams"));
  read_events(reader, map.optional("events"));
  read_buffers(reader, map.optional("buffers"));
  read_communicators(reader, map.optional("communicators"));
  read_signals(reader, map.optional("signals"));
  read_graphs(reader, map.optional("graphs"));
  read_process_groups(reader, map.optional("process_groups"));
  read_threads(reader, map.required("threads"));
  report_works_never_given(reader);
  read_expectations(reader, map.optional("expect"));
  for (const char* other : {"include", "training_step", "captured_step", "serving"}) {
    map.optional(other);  // none of them is there: for the hint about a key that is none
  }
  map.finish();
  warn_of_unused_parameters(reader);
}

}  // namespace

Checked<ReadProgram> read_scenario(std::string_view text, const std::string& file,
                                   const ParameterValues& parameters, IncludedTexts* parts) {
  Reader reader{file};
  reader.program.file = file;
  reader.program.summary = first_comment(text);
  YamlNode root = parse_yaml(text, reader.problems);
  if (reader.problems.error_count() == 0) put_in_parts(root, reader.problems, parts);
  if (reader.problems.error_count() == 0 && has_training_step(root)) {
    auto expanded = expand_training_step(reader, root, parameters, training::Ranks::All);
    if (!expanded) return tl::unexpected{reader.problems.take()};
    Problems doubts{file};
    check_program(expanded->expansion.program, doubts);
    const bool failed = doubts.error_count() > 0;
    Diagnostics diagnostics = doubts.take();
    for (Diagnostic& one : diagnostics) one.at = expanded->at;
    for (Diagnostic& one : reader.problems.take()) diagnostics.push_back(std::move(one));
    if (failed) return tl::unexpected{std::move(diagnostics)};
    return ReadProgram{std::move(expanded->expansion.program), std::move(diagnostics)};
  }
  if (reader.problems.error_count() == 0 && has_captured_step(root)) {
    const auto expanded = expand_captured_step(reader, root, parameters);
    if (!expanded) return tl::unexpected{reader.problems.take()};
    ReadProgram read{expanded->expansion.program, reader.problems.take()};
    for (Diagnostic& note : expanded->notes()) read.warnings.push_back(std::move(note));
    return read;
  }
  if (reader.problems.error_count() == 0 && has_key(root, "serving")) {
    auto made = describe_serving(reader, root, parameters);
    if (!made) return tl::unexpected{reader.problems.take()};
    return ReadProgram{std::move(made->program), reader.problems.take()};
  }
  if (reader.problems.error_count() == 0) read_document(reader, root, parameters);
  if (reader.problems.error_count() == 0) complete_program(reader.program, reader.problems);
  if (reader.problems.error_count() == 0) check_program(reader.program, reader.problems);
  const bool failed = reader.problems.error_count() > 0;
  Diagnostics diagnostics = reader.problems.take();
  if (failed) return tl::unexpected{std::move(diagnostics)};
  reader.program.hash = hash_of(reader.program);
  return ReadProgram{std::move(reader.program), std::move(diagnostics)};
}

std::optional<training::TrainingStep> read_training_step(std::string_view text,
                                                         const std::string& file) {
  Reader reader{file};
  const YamlNode root = parse_yaml(text, reader.problems);
  if (reader.problems.error_count() > 0 || !has_training_step(root)) return std::nullopt;
  const auto [step, node] = describe_training_step(reader, root, {});
  if (node == nullptr) throw UsageError{render(reader.problems.take(), text)};
  return step;
}

std::optional<ExpandedScenario> read_training(std::string_view text, const std::string& file,
                                              const ParameterValues& parameters,
                                              training::Ranks ranks) {
  Reader reader{file};
  reader.program.file = file;
  reader.program.summary = first_comment(text);
  const YamlNode root = parse_yaml(text, reader.problems);
  if (reader.problems.error_count() > 0 || !has_training_step(root)) return std::nullopt;
  auto expanded = expand_training_step(reader, root, parameters, ranks);
  if (!expanded) throw UsageError{render(reader.problems.take(), text)};
  expanded->warnings = reader.problems.take();
  return expanded;
}

std::optional<ServingScenario> read_serving_scenario(std::string_view text, const std::string& file,
                                                     const ParameterValues& parameters) {
  Reader reader{file};
  reader.program.file = file;
  reader.program.summary = first_comment(text);
  const YamlNode root = parse_yaml(text, reader.problems);
  if (reader.problems.error_count() > 0 || !has_key(root, "serving")) return std::nullopt;
  auto made = describe_serving(reader, root, parameters);
  if (!made) throw UsageError{render(reader.problems.take(), text)};
  made->warnings = reader.problems.take();
  return made;
}

Diagnostics ExpandedCapture::notes() const {
  Diagnostics made;
  for (const std::string& note : expansion.notes) {
    made.push_back({at, note, "", Severity::Warning});
  }
  return made;
}

std::optional<ExpandedCapture> read_captured(std::string_view text, const std::string& file,
                                             const ParameterValues& parameters) {
  Reader reader{file};
  reader.program.file = file;
  reader.program.summary = first_comment(text);
  const YamlNode root = parse_yaml(text, reader.problems);
  if (reader.problems.error_count() > 0 || !has_captured_step(root)) return std::nullopt;
  auto expanded = expand_captured_step(reader, root, parameters);
  if (!expanded) throw UsageError{render(reader.problems.take(), text)};
  return expanded;
}

std::string self_contained(std::string_view text, const std::string& file, IncludedTexts* parts) {
  Problems problems{file};
  YamlNode root = parse_yaml(text, problems);
  const bool includes = problems.error_count() == 0 && put_in_parts(root, problems, parts);
  if (problems.error_count() > 0) throw UsageError{render(problems.take(), text)};
  if (!includes) return std::string{text};
  const std::string summary = first_comment(text);
  return (summary.empty() ? "" : "# " + summary + "\n") + yaml_text(root);
}

namespace {

/// From disk, with what is printed of it: notes are check's.
ReadProgram read_file(const std::filesystem::path& file, const std::string& text,
                      const ParameterValues& parameters, IncludedTexts* parts) {
  auto read = read_scenario(text, file.string(), parameters, parts);
  if (!read) throw UsageError{render(read.error(), text)};
  std::erase_if(read->warnings, [](const Diagnostic& d) { return d.severity == Severity::Note; });
  read->warnings = grouped(std::move(read->warnings));
  return *std::move(read);
}

}  // namespace

Program load_scenario(const std::filesystem::path& file, const ParameterValues& parameters,
                      IncludedTexts* parts) {
  const std::string text = read_text_file(file);
  ReadProgram read = read_file(file, text, parameters, parts);
  if (!read.warnings.empty()) print_error("{}", render(read.warnings, text));
  return std::move(read.program);
}

LoadedToRun load_to_run(const std::filesystem::path& file, const ParameterValues& parameters) {
  const std::string text = read_text_file(file);
  ReadProgram read = read_file(file, text, parameters, nullptr);
  const bool ends = ends_for_all_we_know(read.warnings);
  if (!read.warnings.empty()) print_error("{}", render(read.warnings, text));
  return {std::move(read.program), ends};
}

bool ends_for_all_we_know(Diagnostics& warnings) {
  bool ends = true;
  for (Diagnostic& warning : warnings) {
    if (warning.severity != Severity::Hang) continue;
    warning.severity = Severity::Error;
    ends = false;
  }
  return ends;
}

}  // namespace foretrace
