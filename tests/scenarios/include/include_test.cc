// Parts in the place of copied text: what they read as, and what is said of what is wrong in them.
#include "scenarios/include/include.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "scenarios/read/scenario.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Files by name, read as if they stood in "dir/".
IncludedTexts parts(std::initializer_list<std::pair<std::string, std::string>> files) {
  IncludedTexts texts;
  for (const auto& [name, text] : files) texts["dir/" + name] = text;
  return texts;
}

std::string scenario(const std::string& rest) {
  return "# Of parts.\nschema_version: 1\nname: a\n" + rest;
}

std::string hash_with(const std::string& text, IncludedTexts texts = {}) {
  const auto read = read_scenario(text, "dir/a.yaml", {}, &texts);
  EXPECT_TRUE(read.has_value()) << render(read.error(), text);
  return read ? read->program.hash : "";
}

std::string problems(const std::string& text, IncludedTexts texts) {
  const auto read = read_scenario(text, "dir/a.yaml", {}, &texts);
  return read ? "" : render(read.error(), text);
}

constexpr const char* kCopyPart = R"(# A copy into a buffer of its own.
parameters: {name: , size: 1MiB, times: 1}
buffers: {"x_$name": {memory: device, size: $size}}
ops:
  - repeat:
      times: 2 * $times
      ops: [{memcpy_async: {src: host, dst: x_$name, size: $size / 2}}]
)";

TEST(Include, ReadsAsTheTextInItsPlace) {
  const std::string with = hash_with(scenario(R"(
buffers: {host: {memory: pinned, size: 1MiB}}
include: {file: copy.yml, with: {name: left}}
threads:
  main:
    - include: {file: copy.yml, with: {name: left, times: 1 + devices}}
    - device_synchronize: {}
)"),
                                     parts({{"copy.yml", kCopyPart}}));
  const std::string without = hash_with(scenario(R"(
buffers: {host: {memory: pinned, size: 1MiB}, x_left: {memory: device, size: 1MiB}}
threads:
  main:
    - repeat:
        times: 2 * (1 + devices)
        ops: [{memcpy_async: {src: host, dst: x_left, size: 512KiB}}]
    - device_synchronize: {}
)"));
  EXPECT_EQ(with, without);
}

TEST(Include, GivesThreadsAndGoesThroughPartsOfParts) {
  const std::string with = hash_with(scenario("include: [{file: parts/worker.yml, with: {k: 1}}, "
                                              "{file: parts/worker.yml, with: {k: 2}}]\n"),
                                     parts({{"parts/worker.yml", R"(
parameters: {k: }
threads:
  worker_$k: [{include: {file: ../busy.yml, with: {time: $k * 1us}}}]
)"},
                                            {"busy.yml", R"(
parameters: {time: 1us}
ops: [{host_compute: {duration: 3 * $time}}]
)"}}));
  EXPECT_EQ(with, hash_with(scenario(R"(
threads:
  worker_1: [{host_compute: {duration: 3us}}]
  worker_2: [{host_compute: {duration: 6us}}]
)")));
}

TEST(Include, ErrorsNameTheFileOfThePlaceAndWhoIncludesIt) {
  const std::string said = problems(scenario("threads:\n  main:\n    - include: {file: a.yml}\n"),
                                    parts({{"a.yml", "ops:\n  - include: {file: b.yml}\n"},
                                           {"b.yml", "ops:\n  - host_compute: {time: 1us}\n"}}));
  EXPECT_THAT(said, AllOf(HasSubstr("dir/b.yml:2:20: error: unknown key 'time'"),
                          HasSubstr("  - host_compute: {time: 1us}\n"),
                          HasSubstr("included from dir/a.yml:2:14\n"),
                          HasSubstr("included from dir/a.yaml:6:16\n")));
}

TEST(Include, WhatRunsStandsAtTheInclude) {
  IncludedTexts texts = parts({{"a.yml", "\n\n\n\nops: [{host_compute: {duration: 1us}}]"}});
  const auto read = read_scenario(scenario("threads:\n  main:\n    - include: {file: a.yml}\n"),
                                  "dir/a.yaml", {}, &texts);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->program.threads[0].ops[0].line, 6);
}

struct Wrong {
  const char* what;
  const char* part;
  const char* include;
  const char* said;
};

TEST(Include, SaysWhatIsWrong) {
  for (const Wrong& wrong : {
           Wrong{"a missing value", "parameters: {size: }\nops: []", "{file: a.yml}",
                 "the part needs a value for 'size'"},
           Wrong{"a misspelt parameter", "parameters: {size: 1}\nops: []",
                 "{file: a.yml, with: {sise: 1}}", "did you mean 'size'?"},
           Wrong{"a name that is the scenario's", "ops: [{host_compute: {duration: $time}}]",
                 "{file: a.yml}", "the part has no parameter 'time'"},
           Wrong{"a map for a value", "parameters: {size: 1}\nops: []",
                 "{file: a.yml, with: {size: {}}}", "one word, number or expression"},
           Wrong{"a scenario", "schema_version: 1\nops: []", "{file: a.yml}",
                 "unknown key 'schema_version' in a part"},
           Wrong{"no operations", "streams: {s: {}}", "{file: a.yml}",
                 "this part has no list of operations 'ops'"},
           Wrong{"itself", "ops: [{include: {file: a.yml}}]", "{file: a.yml}",
                 "dir/a.yml includes itself"},
           Wrong{"a list", "[]", "{file: a.yml}", "dir/a.yml is no part"},
           Wrong{"bad YAML", "ops: [", "{file: a.yml}", "dir/a.yml:1:"},
           Wrong{"a missing file", "ops: []", "{file: b.yml}", "there is no such file"},
           Wrong{"no file", "ops: []", "{with: {a: 1}}", "an include needs 'file'"},
           Wrong{"a device", "ops: []", "{file: /dev/zero}", "a plain file is needed"},
       }) {
    EXPECT_THAT(
        problems(scenario(std::string{"threads:\n  main:\n    - include: "} + wrong.include + "\n"),
                 parts({{"a.yml", wrong.part}})),
        HasSubstr(wrong.said))
        << wrong.what;
  }
  EXPECT_THAT(problems(scenario("streams: {s: {}}\ninclude: {file: a.yml}\nthreads: {}\n"),
                       parts({{"a.yml", "streams: {s: {}}"}})),
              AllOf(HasSubstr("dir/a.yml:1:11: error: duplicate key 's'"),
                    HasSubstr("first given in dir/a.yaml:4")));
  EXPECT_THAT(
      problems(scenario("include: {file: a.yml}\nthreads: {}\n"), parts({{"a.yml", "ops: []"}})),
      HasSubstr("this part declares nothing"));
}

TEST(Include, AFewFilesCannotBecomeAllMemory) {
  IncludedTexts texts;
  for (int depth = 0; depth < 12; ++depth) {
    std::string text = "ops:\n";
    for (int i = 0; i < 10; ++i)
      text += "- include: {file: " + std::to_string(depth + 1) + ".yml}\n";
    texts["dir/" + std::to_string(depth) + ".yml"] = text;
  }
  texts["dir/12.yml"] = "ops: [{host_compute: {duration: 1us}}]";
  EXPECT_THAT(problems(scenario("threads: {main: [{include: {file: 0.yml}}]}"), texts),
              HasSubstr("the parts hold more than"));
  IncludedTexts deep;
  for (int depth = 0; depth < 40; ++depth) {
    deep["dir/" + std::to_string(depth) + ".yml"] =
        "ops: [{include: {file: " + std::to_string(depth + 1) + ".yml}}]";
  }
  EXPECT_THAT(problems(scenario("threads: {main: [{include: {file: 0.yml}}]}"), deep),
              HasSubstr("files within files more than 16 deep"));
}

TEST(SelfContained, IsTheSameProgramInOneFile) {
  const auto file = data_directory() / "scenarios/examples/batches_from_a_part.yaml";
  const std::string text = read_text_file(file);
  const std::string whole = self_contained(text, file.string());
  EXPECT_THAT(whole, AllOf(HasSubstr("# Two buffers"), HasSubstr("memcpy_async"),
                           testing::Not(HasSubstr("include:"))));
  const auto from_parts = read_scenario(text, file.string());
  const auto printed = read_scenario(whole, "elsewhere.yaml");
  ASSERT_TRUE(from_parts && printed) << whole;
  EXPECT_EQ(from_parts->program.hash, printed->program.hash);
  EXPECT_EQ(from_parts->program.summary, printed->program.summary);
  EXPECT_EQ(self_contained("# No part.\nname: x\n", "x.yaml"), "# No part.\nname: x\n");
}

TEST(YamlText, ReadsAsTheSameTreeWhateverIsInIt) {
  std::size_t number = 0;  // all of them take a while
  for (const std::filesystem::path& file : shipped_scenarios()) {
    if (number++ % 4 != 0) continue;
    const std::string text = read_text_file(file);
    Problems problems{file.string()};
    const std::string once = yaml_text(parse_yaml(text, problems));
    EXPECT_EQ(yaml_text(parse_yaml(once, problems)), once) << file;
    if (number % 8 != 1) continue;
    const auto before = read_scenario(text, file.string());
    const auto after = read_scenario(once, file.string());
    ASSERT_TRUE(before && after) << file << once;
    EXPECT_EQ(before->program.hash, after->program.hash) << file;
  }
}

TEST(SimilarFile, IsOneBesideItOrAShippedScenario) {
  EXPECT_EQ(similar_file("scenarios/streams/smal_kernels.yaml"),
            "did you mean 'scenarios/streams/small_kernels.yaml'?");
  EXPECT_EQ(similar_file("prefetch_two_streems.yaml"),
            "did you mean 'scenarios/examples/prefetch_two_streams.yaml'?");
  EXPECT_EQ(similar_file("nothing_at_all_like_it.yaml"), "");
}

}  // namespace
}  // namespace foretrace
