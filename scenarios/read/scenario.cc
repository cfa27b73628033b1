#include "scenarios/read/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <cstdio>
#include <numeric>
#include <stdexcept>

#include "scenarios/check/check.h"
#include "scenarios/fabric/read.h"
#include "scenarios/fabric/text.h"
#include "scenarios/read/op_fields.h"
#include "scenarios/read/reader.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/print.h"
#include "scenarios/text/text_file.h"
#include "scenarios/captured/read.h"
#include "scenarios/training_step/read.h"
#include "scenarios/values/quantity.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMostProcesses = 100'000;
constexpr std::int64_t kMostDevices = 1024;  // per process
constexpr std::uint64_t kMostRanks = 131'072;

/// "# Prefetch: batch i+1 crosses PCIe ...": what the file shows.
std::string first_comment(std::string_view text) {
  if (!text.starts_with('#')) return {};
  auto line = text.substr(1, text.find('\n') - 1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '#')) line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return std::string{line};
}

std::uint32_t read_count(Reader& reader, MapReader& map, std::string_view key, std::int64_t low,
                         std::int64_t high) {
  const YamlNode* node = map.optional(key);
  if (node == nullptr) return 1;
  return static_cast<std::uint32_t>(read_constant(reader, *node, kNumber, low, high));
}

/// The value of `key`, or the whole document where it is absent or empty.
const YamlNode& given(MapReader& map, std::string_view key) {
  const YamlNode* node = map.optional(key);
  return node != nullptr ? *node : map.node();
}

void read_who_runs(Reader& reader, MapReader& map) {
  constexpr std::int64_t kMostPasses = 1'000'000;
  Program& program = reader.program;
  program.nodes_follow = !map.has("nodes");
  program.nodes = read_count(reader, map, "nodes", 1, kMostProcesses);
  reader.constants["nodes"] = program.nodes;
  program.processes = read_count(reader, map, "processes", 1, kMostProcesses);
  reader.constants["processes"] = program.processes;
  if (map.has("processes")) {
    const auto [line, column] = given(map, "processes").place();
    program.processes_spot = {program.file, line, column};
  }
  program.devices = read_count(reader, map, "devices", 1, kMostDevices);
  reader.constants["devices"] = program.devices;
  program.warmup = read_count(reader, map, "warmup", 0, kMostPasses);
  if (std::uint64_t{program.processes} * program.devices > kMostRanks) {
    reader.problems.error(given(map, "devices"),
                          fmt::format("{} processes with {} devices each are more than {} GPUs",
                                      program.processes, program.devices, kMostRanks));
    program.processes = program.nodes;
    program.devices = 1;
  }
  if (program.processes % program.nodes != 0) {
    reader.problems.error(given(map, "processes"),
                          fmt::format("{} processes cannot be spread evenly over {} nodes",
                                      program.processes, program.nodes));
  }
}

/// Values of `fabric:` and `faults:` as anywhere in a scenario: with parameters.
void read_network(Reader& reader, MapReader& map) {
  const FabricValues values{
      [&reader](const YamlNode& node, Unit unit) -> std::optional<double> {
        const auto quantity = read_quantity(reader, node, describe(unit));
        if (!quantity) return {};
        return fabric_value(*quantity, unit, node, reader.problems);
      },
      [&reader](const YamlNode& node) { return read_word(reader, node, "this"); }};
  Program& program = reader.program;
  if (const YamlNode* node = map.optional("placement")) {
    program.placement = read_placement(*node, reader.problems, values);
  }
  if (const YamlNode* node = map.optional("fabric")) {
    program.fabric = read_fabric(*node, reader.problems, values);
  }
  if (const YamlNode* node = map.optional("faults")) {
    program.faults = read_faults(*node, reader.problems, values);
  }
  if (program.nodes_follow) return;
  for (const MachineFault& fault : program.faults) {
    if (fault.node.value_or(0) < program.nodes) continue;
    reader.problems.add(fault.line, fault.column, Severity::Error,
                        fmt::format("a fault of node {}: there are {}", *fault.node, program.nodes),
                        fmt::format("nodes are numbered 0 to {}", program.nodes - 1));
  }
}

/// `rule: documented` with its `source:`, or `rule: observed`; `tags: [A3, overlap]`.
void read_standing(Reader& reader, MapReader& map) {
  Program& program = reader.program;
  const YamlNode* rule = map.optional("rule");
  if (rule != nullptr) {
    program.rule =
        read_choice<std::string>(reader, *rule, "standing of a rule",
                                 {{"documented", "documented"}, {"observed", "observed"}});
  }
  if (const YamlNode* source = map.optional("source")) {
    program.source = source->text;
    if (rule == nullptr) {
      reader.problems.error(*source, "'source' says where a rule is documented: it needs 'rule'");
    }
  } else if (program.rule == "documented") {
    reader.problems.error(*rule, "a documented rule needs its 'source': document and section");
  }
  if (const YamlNode* gpu = map.optional("captured_on")) program.captured_on = gpu->text;
  const YamlNode* tags = map.optional("tags");
  if (tags == nullptr) return;
  if (tags->kind != YamlNode::Kind::Sequence) {
    reader.problems.error(*tags, "'tags' is a list of words: [overlap, copies]");
    return;
  }
  for (const YamlNode& tag : tags->items) {
    program.tags.push_back(read_word(reader, tag, "a tag"));
  }
}

void read_header(Reader& reader, MapReader& map) {
  if (const YamlNode* version = map.required("schema_version")) {
    if (version->text != "1") {
      reader.problems.error(*version, "this foretrace reads schema_version 1");
    }
  }
  if (const YamlNode* name = map.required("name")) {
    reader.program.name = read_word(reader, *name, "a scenario's name");
    if (reader.program.name == "." || reader.program.name == "..") {
      reader.problems.error(*name, fmt::format("'{}' names a directory, and results are written "
                                               "into one of the scenario's name",
                                               reader.program.name));
    }
  }
}

void warn_of_unused_parameters(Reader& reader) {
  for (const auto& [name, parameter] : reader.parameters) {
    if (parameter.used) continue;
    reader.problems.warning(parameter.key, fmt::format("parameter '{}' is used nowhere", name));
  }
}

bool has_key(const YamlNode& root, std::string_view key) {
  return root.kind == YamlNode::Kind::Map &&
         std::ranges::any_of(root.entries,
                             [key](const YamlEntry& entry) { return entry.key.text == key; });
}

/// What an expansion begins with: the file's own head.
std::string head_text(const Program& program) {
  std::string text =
      fmt::format("# {}\nschema_version: 1\nname: {}\n",
                  program.summary.empty() ? program.name : program.summary, program.name);
  if (!program.tags.empty()) text += fmt::format("tags: [{}]\n", fmt::join(program.tags, ", "));
  return text;
}

/// The expansion of a file's `training_step`, with the file's own head; empty without one.
struct Expanded {
  training::TrainingStep step;
  std::string text;
  std::optional<training::Expansion> expansion;
  SourceSpot at{};  ///< of `training_step`: nobody wrote the text's lines
};

/// A line for each variable: their values may have commas.
std::string environment_text(const Program& program) {
  if (program.environment.empty()) return {};
  std::string text = "environment:\n";
  for (const auto& [name, value] : program.environment) {
    text += fmt::format("  {}: {}\n", name, value);
  }
  return text;
}

struct Described {
  training::TrainingStep step;
  const YamlNode* node = nullptr;  ///< of `training_step`; null where there are errors
};
Described describe_training_step(Reader& reader, const YamlNode& root,
                                 const ParameterValues& parameters) {
  MapReader map{root, "a scenario with a training step", reader.problems};
  reader.domain = {{0}, {}};
  read_header(reader, map);
  read_standing(reader, map);
  read_parameters(reader, map.optional("parameters"), parameters);
  read_who_runs(reader, map);
  read_network(reader, map);
  read_environment(reader, map.optional("environment"));
  training::TrainingStep step;
  const YamlNode* node = map.required("training_step");
  if (node != nullptr) step = training::read_training_step(reader, *node);
  map.finish();
  warn_of_unused_parameters(reader);
  return {step, reader.problems.error_count() > 0 ? nullptr : node};
}

/// A file with `training_step:` has no threads of its own: what it reads as is a scenario's text.
Expanded expand_training_step(Reader& reader, const YamlNode& root,
                              const ParameterValues& parameters, training::Ranks ranks) {
  const auto [step, node] = describe_training_step(reader, root, parameters);
  if (node == nullptr) return {};
  training::Expansion expansion = training::expand(step, ranks);
  const Program& program = reader.program;
  std::string text =
      head_text(program) + network_text(program) + environment_text(program) + expansion.text;
  // One rank of each kind has nothing twice: that large it is a deep pipeline, not a mistake.
  const bool all = ranks == training::Ranks::All;
  const std::size_t most = all ? kLargestText : 8 * kLargestText;
  if (text.size() > most) {
    reader.problems.error(
        *node,
        fmt::format("this step is a program of {} MiB: at most {} MiB can be read",
                    text.size() >> 20, most >> 20),
        fmt::format("is a size in another unit than it should be? else fewer layers, passes or "
                    "processes{}",
                    all ? ", or simulate --one-of-each, which has one process of each kind" : ""));
    return {};
  }
  return {step, std::move(text), std::move(expansion), {program.file, node->line, node->column}};
}

bool has_training_step(const YamlNode& root) { return has_key(root, "training_step"); }
bool has_captured_step(const YamlNode& root) { return has_key(root, "captured_step"); }

/// The expansion of a file's `captured_step`, with the file's own head. Empty after an error.
std::optional<ExpandedCapture> expand_captured_step(Reader& reader, const YamlNode& root,
                                                    const ParameterValues& parameters) {
  MapReader map{root, "a scenario with a captured step", reader.problems};
  reader.domain = {{0}, {}};
  read_header(reader, map);
  read_standing(reader, map);
  read_parameters(reader, map.optional("parameters"), parameters);
  read_who_runs(reader, map);
  read_network(reader, map);
  read_environment(reader, map.optional("environment"));
  captured::CapturedStep step;
  const YamlNode* node = map.required("captured_step");
  if (node != nullptr) step = captured::read_captured_step(reader, *node);
  map.finish();
  warn_of_unused_parameters(reader);
  if (reader.problems.error_count() > 0) return std::nullopt;
  ExpandedCapture made;
  made.expansion = captured::expand(step);
  made.text = head_text(reader.program) + network_text(reader.program) +
              environment_text(reader.program) + made.expansion.text;
  made.nodes_follow = reader.program.nodes_follow;
  made.at = {reader.program.file, node->line, node->column};
  return made;
}

void read_document(Reader& reader, const YamlNode& root, const ParameterValues& parameters) {
  if (root.kind == YamlNode::Kind::Null) {
    reader.problems.add(1, 1, Severity::Error, "the file holds no scenario",
                        "foretrace list scenarios names some to begin with");
    return;
  }
  MapReader map{root, "a scenario", reader.problems};
  reader.domain = {{0}, {}};
  read_header(reader, map);
  read_standing(reader, map);
  read_parameters(reader, map.optional("parameters"), parameters);
  read_who_runs(reader, map);
  read_network(reader, map);
  read_environment(reader, map.optional("environment"));
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
  map.finish();
  warn_of_unused_parameters(reader);
}

std::string digest(const std::string& text) {
  const boost::uuids::name_generator_sha1 generate{boost::uuids::ns::oid()};
  return to_string(generate(text));
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
    const Expanded expanded = expand_training_step(reader, root, parameters, training::Ranks::All);
    if (reader.problems.error_count() > 0) return tl::unexpected{reader.problems.take()};
    auto read = read_scenario(expanded.text, file, {});
    if (read) {
      for (Diagnostic& one : read->warnings) one.at = expanded.at;
      for (Diagnostic& one : reader.problems.take()) read->warnings.push_back(std::move(one));
      read->program.nodes_follow = reader.program.nodes_follow;
      read->program.environment_spots = std::move(reader.program.environment_spots);
    }
    return read;
  }
  if (reader.problems.error_count() == 0 && has_captured_step(root)) {
    const auto expanded = expand_captured_step(reader, root, parameters);
    if (!expanded) return tl::unexpected{reader.problems.take()};
    ReadProgram read{read_expanded(expanded->text, file), reader.problems.take()};
    read.program.nodes_follow = expanded->nodes_follow;
    for (Diagnostic& note : expanded->notes()) read.warnings.push_back(std::move(note));
    return read;
  }
  if (reader.problems.error_count() == 0) read_document(reader, root, parameters);
  if (reader.problems.error_count() == 0) complete_program(reader.program, reader.problems);
  if (reader.problems.error_count() == 0) check_program(reader.program, reader.problems);
  const bool failed = reader.problems.error_count() > 0;
  Diagnostics diagnostics = reader.problems.take();
  if (failed) return tl::unexpected{std::move(diagnostics)};
  reader.program.hash = digest(canonical_text(reader.program));
  return ReadProgram{std::move(reader.program), std::move(diagnostics)};
}

Program read_expanded(std::string_view text, const std::string& file) {
  Reader reader{file};
  reader.program.file = file;
  reader.program.summary = first_comment(text);
  const YamlNode root = parse_alike(text, reader.problems, is_simple_op);
  read_document(reader, root, {});
  complete_program(reader.program, reader.problems);
  if (reader.problems.error_count() > 0) {
    throw std::logic_error{render(reader.problems.take(), text)};
  }
  reader.program.hash = digest(canonical_text(reader.program));
  return std::move(reader.program);
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
  reader.program.summary = first_comment(text);
  const YamlNode root = parse_yaml(text, reader.problems);
  if (reader.problems.error_count() > 0 || !has_training_step(root)) return std::nullopt;
  Expanded expanded = expand_training_step(reader, root, parameters, ranks);
  if (!expanded.expansion) throw UsageError{render(reader.problems.take(), text)};
  return ExpandedScenario{std::move(expanded.step),
                          std::move(expanded.text),
                          std::move(*expanded.expansion),
                          reader.program.nodes_follow,
                          std::move(reader.program.environment_spots),
                          reader.problems.take()};
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

std::string network_text(const Program& program) {
  std::string text;
  if (program.placement != Placement::Nodewise) {
    text += fmt::format("placement: {}\n", placement_text(program.placement));
  }
  if (program.fabric) text += fmt::format("fabric: {}\n", fabric_text(*program.fabric));
  if (!program.faults.empty()) text += fmt::format("faults: {}\n", faults_text(program.faults));
  return text;
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
