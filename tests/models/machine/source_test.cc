// Sources of machine files: what is refused, and that the shipped machines leave nothing open.
#include "models/machine/source.h"

#include <fnmatch.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "models/machine/machine.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/read/scenario.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string with_sources(const std::string& sources) {
  return "schema_version: 2\nname: m\nnode: {gpus: 2, gpu: Test}\nsources:\n" + sources +
         "parameters:\n  gpu.sm_count: {value: 1, source: a}\n";
}

std::string errors_of_sources(const std::string& sources) {
  const std::string text = with_sources(sources);
  const auto machine = read_machine(text, "m.yaml");
  return machine ? "" : render(machine.error(), text);
}

TEST(Sources, SayWhatAValueWasLearnedFrom) {
  const auto machine = read_machine(
      with_sources("  a:\n    class: fit\n    text: t\n    command: c\n    learned_from:\n"
                   "      - {scenario: \"nccl_*\", ranks: [2, 3], sizes: 48B..2GiB, which: every "
                   "other, data: d}\n      - {other: a table}\n"),
      "m.yaml");
  ASSERT_TRUE(machine.has_value());
  const ParamValue& value = machine->get(Param::SmCount);
  EXPECT_EQ(value.source, ParameterClass::Fit);
  EXPECT_EQ(value.from, "t");
  ASSERT_EQ(value.origin->learned_from.size(), 2u);
  const LearnedFrom& first = value.origin->learned_from[0];
  EXPECT_EQ(first.scenario, "nccl_*");
  EXPECT_EQ(first.ranks, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(first.sizes, (ByteRange{48, std::uint64_t{2} << 30}));
  EXPECT_TRUE(first.every_other);
  EXPECT_EQ(first.data, "d");
  const auto again = read_machine(machine_text(*machine), "again.yaml");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(*again->get(Param::SmCount).origin, *value.origin) << "written as it was read";
}

TEST(Sources, OfAFitThatDoNotSayToWhatOrHowAreRefused) {
  EXPECT_THAT(errors_of_sources("  a: {class: fit, text: t}\n"),
              AllOf(HasSubstr("m.yaml:5:3: error: source 'a' is a fit and says not to what"),
                    HasSubstr("m.yaml:5:3: error: source 'a' is a fit without its command")));
}

TEST(Sources, ThatNoParameterNamesAreAWarning) {
  const std::string text =
      with_sources("  a: {class: assumed, text: t}\n  b: {class: assumed, text: t}\n");
  Diagnostics warnings;
  ASSERT_TRUE(read_machine(text, "m.yaml", &warnings).has_value());
  EXPECT_EQ(render(warnings, text),
            "m.yaml:6:3: warning: no parameter names the source 'b'\n"
            "    b: {class: assumed, text: t}\n    ^\n"
            "  hint: take it out, unless a parameter shall name it again\n");
}

TEST(Sources, AreRefusedWithAllTheirMistakesAtOnce) {
  const std::string text = errors_of_sources(
      "  a:\n    class: fitt\n    from: x\n    learned_from:\n"
      "      - {ranks: [2, two], sizes: 48..2, which: some}\n");
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("unknown class 'fitt'"), HasSubstr("did you mean 'fit'?"),
            HasSubstr("'two' is not a number of GPUs"), HasSubstr("'48..2' is no range of sizes"),
            HasSubstr("which: 'some' is not known"),
            HasSubstr("either 'scenario' or 'other' is needed"), HasSubstr("unknown key 'from'")));
}

// ---- the shipped machines ------------------------------------------------------------------

std::set<std::string> scenario_names() {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator{data_directory() / "scenarios"}) {
    if (entry.path().extension() != ".yaml") continue;
    const auto read = read_scenario(read_text_file(entry.path()), entry.path().string());
    if (read) names.insert(read->program.name);
  }
  return names;
}

std::vector<std::shared_ptr<const Source>> own_sources(const Machine& machine) {
  std::vector<std::shared_ptr<const Source>> sources;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (machine.has(param)) sources.push_back(machine.get(param).origin);
  }
  return sources;
}

TEST(ShippedMachines, NameEverySourceThatTheyList) {
  for (const std::string& name : machine_names()) {
    const fs::path file = machine_directory() / (name + ".yaml");
    const std::string text = read_text_file(file);
    Diagnostics warnings;
    EXPECT_TRUE(read_machine(text, file.string(), &warnings).has_value()) << name;
    EXPECT_EQ(render(warnings, text), "");
  }
}

TEST(ShippedMachines, SayWhereEveryParameterIsFrom) {
  for (const std::string& name : machine_names()) {
    for (const auto& source : own_sources(load_machine(name))) {
      ASSERT_NE(source, nullptr) << name;
      EXPECT_NE(source->text, "") << name << ": " << source->id;
    }
  }
}

TEST(ShippedMachines, LearnedFromScenariosAndMeasurementsThatAreHere) {
  const auto scenarios = scenario_names();
  ASSERT_GT(scenarios.size(), 100u);
  std::size_t checked = 0;
  for (const std::string& name : machine_names()) {
    for (const auto& source : own_sources(load_machine(name))) {
      for (const LearnedFrom& entry : source->learned_from) {
        ++checked;
        if (!entry.data.empty()) {
          const fs::path data = data_directory() / entry.data;
          // A recorded round of blind programs is one archive beside its pages.
          const fs::path round = data.parent_path().string() + ".tar.gz";
          const bool is_here = fs::exists(data) || fs::exists(round);
          EXPECT_TRUE(is_here) << name << ": " << entry.data;
        }
        // nccl-tests' loops are written by the command of that name.
        if (entry.scenario.empty() || entry.scenario == "nccl_tests_*") continue;
        const bool found = std::ranges::any_of(scenarios, [&](const std::string& scenario) {
          return fnmatch(entry.scenario.c_str(), scenario.c_str(), 0) == 0;
        });
        EXPECT_TRUE(found) << name << ": no scenario is named " << entry.scenario;
      }
    }
  }
  EXPECT_GT(checked, 100u);
}

TEST(ShippedMachines, NameTheMeasurementsThatTheirFitsAreFoundAgainFrom) {
  const Machine machine = load_machine("h200-nvswitch-8");
  std::size_t fits = 0;
  for (const auto& source : own_sources(machine)) {
    if (source->kind != ParameterClass::Fit) continue;
    ++fits;
    EXPECT_THAT(source->command, Not(HasSubstr("/work"))) << source->id;
    const bool measured = std::ranges::any_of(
        source->learned_from, [](const LearnedFrom& entry) { return !entry.data.empty(); });
    EXPECT_TRUE(measured || source->id == "pytorch_calls") << source->id;
  }
  EXPECT_GT(fits, 50u);
}

}  // namespace
}  // namespace foretrace
