// What decides which operations of a thread are read, and how often: the conditions of `when`, and
// the lengths of loops that depend on the process or on the turns of loops around them.
//
// Executors know neither: processes that decide alike are one thread, which is read for one of
// them, and a loop whose turns decide differently is read as several loops, one for each run of
// turns that decide alike. Internal to scenarios/.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "scenarios/read/reader.h"

namespace foretrace {

/// The turns of the loops around an operation, the outermost first.
using Turns = std::vector<std::int64_t>;

/// A condition, and what it was in the threads that were looked at.
struct ConditionSeen {
  const YamlNode* condition;
  bool reached, ever;
  bool in_turns;  ///< of a loop
};
/// Of those that were asked for and held nowhere.
void warn_of_never(Problems& problems, const std::vector<ConditionSeen>& held);

class Decisions {
 public:
  /// Finds those in `ops`. Reports conditions that cannot be read; lengths that are constant, or
  /// cannot be read, are left to whoever reads the loop.
  Decisions(Reader& reader, const YamlNode& ops, std::vector<std::uint32_t> processes);
  ~Decisions();
  Decisions(const Decisions&) = delete;
  Decisions& operator=(const Decisions&) = delete;

  /// Processes that decide alike, each list ascending. Empty where something is wrong, which was
  /// reported.
  std::vector<std::vector<std::uint32_t>> groups();
  /// After groups(): of each condition, to what it was in other threads that are `ops`.
  void add_to(std::vector<ConditionSeen>& held) const;

  /// What a condition or a length is for a process in such turns; none where it is no decision.
  std::optional<std::int64_t> value(const YamlNode& node, std::uint32_t process,
                                    const Turns& turns) const;

  /// How long each run of a loop's turns is that decide alike; `loop` is its map. One run where its
  /// turns decide nothing.
  std::vector<std::int64_t> runs(const YamlNode& loop, std::uint32_t process, const Turns& turns,
                                 std::int64_t times);

 private:
  struct Decision;
  struct Step;
  using Steps = std::vector<Step>;
  /// Every decision on a way through operations, in order.
  using Decided = std::vector<std::int64_t>;

  Steps find(const YamlNode& ops);
  Step find_loop(const YamlNode& loop);
  Step find_when(const YamlNode& when);
  Decision* add_condition(const YamlNode& node);
  Decision* add_length(const YamlNode& node, std::int64_t& constant);
  Decision* add(const YamlNode& node, Expr expr);
  void walk(const Steps& steps, std::uint32_t process, Turns& turns, Decided& decided);
  bool decide(Decision& decision, std::uint32_t process, const Turns& turns, Decided& decided,
              std::int64_t high);

  Reader& reader_;
  std::vector<std::uint32_t> processes_;
  std::map<const YamlNode*, std::unique_ptr<Decision>> known_;
  std::vector<Decision*> conditions_;             ///< in the order of the file
  std::vector<bool*> around_;                     ///< while finding: of each loop, turns_decide
  std::map<const YamlNode*, const Step*> loops_;  ///< by a loop's map
  std::unique_ptr<Steps> steps_;
  bool process_decides_ = false;
  std::uint64_t evaluated_ = 0;
  bool is_broken_ = false;
};

/// The value of a key of a map, or null.
const YamlNode* value_of(const YamlNode& map, std::string_view key);

}  // namespace foretrace
