// What the parts of the scenario reader share: the parameters and names in force, the Program
// under construction, and how a YAML value becomes a typed one. Internal to scenarios/.
//
// Every read_... reports what is wrong and returns something harmless, so reading always goes on;
// a Program with errors is never handed out.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/lower/process_group.h"
#include "scenarios/program/program.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/yaml_reader.h"
#include "scenarios/base/values/range_check.h"
#include "scenarios/base/values/unit.h"

namespace foretrace {

/// `parameters: {size: 1MiB, type: float32}`: a quantity or a word.
struct Parameter {
  std::string text;
  std::shared_ptr<const Quantity> quantity;  ///< null: a word
  YamlNode key;
  bool used = false;
  bool is_broken = false;  ///< its value has an error: no further ones about it
};

/// A named object or family of objects, `x`, `x(k)` or `x(d, k)`, with consecutive ids.
struct Family {
  std::uint32_t first{};
  std::vector<std::uint32_t> extents;  ///< of each index; none: a single object without index
  bool is_broken = false;              ///< its declaration has errors: no further ones about it
  bool bare_is_first = false;          ///< `default`, `world`: without an index, that of device 0
  /// Of communicators that `split` made: the process's own one, -1 for none. Each has a handle for
  /// each of the program's devices; indices count those of the own one.
  std::optional<Expr> own = {};
  std::uint32_t size() const;
};
using Families = std::map<std::string, Family, std::less<>>;

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

struct Reader {
  explicit Reader(std::string file) : problems{std::move(file)} {}

  Problems problems;
  Program program;
  std::map<std::string, Parameter, std::less<>> parameters;
  std::map<std::string, std::int64_t, std::less<>> constants;  ///< processes, devices, nodes

  Families streams, events, buffers, communicators, signals, graphs;
  std::map<std::string, BarrierId, std::less<>> barriers;

  std::map<std::uint32_t, std::uint32_t> uneven;  ///< first buffers of families of unequal size
  std::set<std::uint32_t> splits;  ///< first handles of communicators that `split` made

  Families group_names;                               ///< of process groups
  std::map<std::uint32_t, ProcessGroup> groups;       ///< by the first id in `group_names`
  std::map<std::string, EventId, std::less<>> works;  ///< those that `events` does not declare
  std::set<std::string> works_given;
  /// Those of task_graphs, by host thread and device.
  std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint32_t>> graph_streams;
  std::vector<YamlNode> works_waited_for;

  VariableDomain domain;                           ///< at the operation being read
  std::map<std::string, Expr, std::less<>> bound;  ///< names of one operation: `from`, `to`
  bool in_operations = false;                      ///< `process` and loop indices have a meaning
};

// ---- values -------------------------------------------------------------------------------------

/// What a name inside an expression means at this place.
Parsed<Quantity> look_up(Reader& reader, std::string_view name);

/// The node's text as a quantity; a list or map in its place is an error. `wanted`: "a size", said
/// where a word without a meaning stands in its place.
std::optional<Quantity> read_quantity(Reader& reader, const YamlNode& node,
                                      std::string_view wanted);

/// An Expr in `low` ... `high` for every iteration and process, which is what is `wanted` unless
/// that says otherwise.
Expr read_expr(Reader& reader, const YamlNode& node, Unit unit, std::int64_t low = 0,
               std::int64_t high = kNoLimit, std::string_view wanted = {});
/// A constant of the same.
std::int64_t read_constant(Reader& reader, const YamlNode& node, Unit unit, std::int64_t low,
                           std::int64_t high, std::string_view wanted = {});

/// A word: letters, digits, '_', '-', '.' and the characters `also`; `$name` stands for a parameter
/// that holds one.
std::string read_word(Reader& reader, const YamlNode& node, std::string_view what,
                      std::string_view also = {});

bool is_name(std::string_view text);  ///< a letter or '_', then letters, digits, '_'

/// One of a fixed set of words.
template <class T>
using Choices = std::vector<std::pair<std::string, T>>;
template <class T>
T read_choice(Reader& reader, const YamlNode& node, std::string_view what,
              const Choices<T>& choices);
/// true or false.
bool read_flag(Reader& reader, const YamlNode& node, std::string_view key);
void report_unknown_word(Reader& reader, const YamlNode& node, std::string_view what,
                         const std::string& word, const std::vector<std::string>& known);

/// `x(i % 2)` in `families`; `what` is "stream". Empty when it is wrong, which was reported.
struct FoundReference {
  std::uint32_t first{};
  Expr index;
  bool is_broken = false;
};
std::optional<FoundReference> read_reference(Reader& reader, const YamlNode& node,
                                             std::string_view what, const Families& families);

/// The name in `work: w(i % 2)`.
std::string work_name(const YamlNode& node);

/// `split: {color, key}`, as ncclCommSplit has it: the processes of each color, by their key (then
/// their number). Colors are 0, 1, ...; a process of color -1 is in none.
struct Split {
  Expr color;
  std::vector<std::vector<std::uint32_t>> parts;  ///< alike in size; at least one
};
Split read_split(Reader& reader, const YamlNode& node);
/// Of a handle on a communicator: the index of its device.
Expr device_index(const Reader& reader, const CommRef& comm);

// ---- parts of the file
// ----------------------------------------------------------------------------

/// Calls `read(key, value)` for each entry of a section with a proper new name.
void for_each_declaration(
    Reader& reader, const YamlNode* node, const std::string& section, Families& families,
    const std::function<void(const YamlNode& key, const YamlNode& value)>& read);

void read_parameters(Reader& reader, const YamlNode* node, const ParameterValues& given);
void read_streams(Reader& reader, const YamlNode* node);
void read_events(Reader& reader, const YamlNode* node);
void read_buffers(Reader& reader, const YamlNode* node);
void read_communicators(Reader& reader, const YamlNode* node);
void read_process_groups(Reader& reader, const YamlNode* node);
void report_works_never_given(Reader& reader);
void read_signals(Reader& reader, const YamlNode* node);
void read_graphs(Reader& reader, const YamlNode* node);
void read_environment(Reader& reader, const YamlNode* node);
void read_threads(Reader& reader, const YamlNode* node);
void read_expectations(Reader& reader, const YamlNode* node);

template <class T>
T read_choice(Reader& reader, const YamlNode& node, std::string_view what,
              const Choices<T>& choices) {
  const std::string word = read_word(reader, node, what);
  std::vector<std::string> known;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    known.push_back(name);
  }
  report_unknown_word(reader, node, what, word, known);
  return choices.front().second;
}

}  // namespace foretrace
