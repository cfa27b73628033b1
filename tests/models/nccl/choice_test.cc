// NCCL's own answers against the model: kernel grids as CUPTI saw them on H200 (grids.csv), and
// prices with choices as NCCL gives and logs them (nccl_choice.csv, by
// hw/laboratory/oracle/nccl_oracle.sh).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "models/nccl/rules/p2p.h"
#include "models/nccl/rules/plan.h"
#include "models/nccl/rules/tuning.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

using Row = std::map<std::string, std::string>;

/// A comma inside quotes belongs to its cell.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> all(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      all.emplace_back();
    } else {
      all.back() += c;
    }
  }
  return all;
}

std::filesystem::path measured(const std::string& file) {
  return data_directory() / "reports" / "measured" / "nccl_choice" / file;
}

std::vector<Row> read_rows(const std::filesystem::path& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = cells(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> values = cells(line);
    Row row;
    for (std::size_t i = 0; i < names.size() && i < values.size(); ++i) row[names[i]] = values[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

CollectiveKind kind_of(const std::string& op) {
  static const std::map<std::string, CollectiveKind> kKinds{
      {"all_reduce", CollectiveKind::AllReduce},
      {"all_gather", CollectiveKind::AllGather},
      {"reduce_scatter", CollectiveKind::ReduceScatter},
      {"broadcast", CollectiveKind::Broadcast},
      {"reduce", CollectiveKind::Reduce},
      {"all_to_all", CollectiveKind::AllToAll},
      {"gather", CollectiveKind::Gather},
      {"scatter", CollectiveKind::Scatter}};
  return kKinds.at(op);
}

/// The tuning of `ranks` H200 on one NVSwitch node; made once for each setting.
class Tunings {
 public:
  const Tuning& of(const std::string& version, const std::string& env, std::uint32_t ranks) {
    const auto key = std::tuple{version, env, ranks};
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    Topology topology;
    topology.gpus_per_node = ranks;
    std::vector<std::string> settings;
    std::istringstream stream{env};
    for (std::string setting; stream >> setting;) settings.push_back(setting);
    return made_.emplace(key, tune(topology, parse_version(version), Settings{settings}))
        .first->second;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::uint32_t>, Tuning> made_;
};

std::uint32_t grid(const Tuning& tuning, const std::string& op, std::uint64_t bytes) {
  if (op == "sendrecv") return transfer_of(tuning, {bytes}).channels;
  const CollectiveKind kind = kind_of(op);
  if (is_send_recv(kind)) return exchange_channels(tuning, {bytes / tuning.ranks()});
  return plan_of(tuning, {function_of(kind), {bytes}}).channels;
}

TEST(NcclChoice, HasTheKernelGridsThatWereMeasured) {
  const std::vector<Row> rows = read_rows(measured("grids.csv"));
  ASSERT_FALSE(rows.empty());
  Tunings tunings;
  for (const Row& row : rows) {
    const Tuning& tuning = tunings.of(row.at("nccl_version"), "NCCL_NVLS_ENABLE=0",
                                      static_cast<std::uint32_t>(std::stoul(row.at("ranks"))));
    EXPECT_EQ(grid(tuning, row.at("op"), std::stoull(row.at("size_bytes"))),
              std::stoul(row.at("channels")))
        << row.at("op") << " of " << row.at("size_bytes") << " bytes on " << row.at("ranks");
  }
}

std::string logged(Algorithm algorithm) {
  static const std::map<Algorithm, std::string> kNames{{Algorithm::Tree, "TREE"},
                                                       {Algorithm::Ring, "RING"},
                                                       {Algorithm::CollNetDirect, "COLLNET_DIRECT"},
                                                       {Algorithm::CollNetChain, "COLLNET_CHAIN"},
                                                       {Algorithm::Nvls, "NVLS"},
                                                       {Algorithm::NvlsTree, "NVLS_TREE"},
                                                       {Algorithm::Pat, "PAT"}};
  return kNames.at(algorithm);
}

std::string logged(Protocol protocol) {
  return protocol == Protocol::Simple ? "SIMPLE" : std::string{name_of(protocol)};
}

TEST(NcclChoice, AndPricesAreNcclsOwn) {
  if (!std::filesystem::exists(measured("nccl_choice.csv"))) {
    GTEST_SKIP() << "reports/measured/nccl_choice/nccl_choice.csv is not there yet";
  }
  Tunings tunings;
  for (const Row& row : read_rows(measured("nccl_choice.csv"))) {
    const std::string what =
        fmt::format("{} of {} bytes on {}, {}, {}", row.at("op"), row.at("bytes"), row.at("ranks"),
                    row.at("env"), row.at("nccl_version"));
    const Tuning& tuning = tunings.of(row.at("nccl_version"), row.at("env"),
                                      static_cast<std::uint32_t>(std::stoul(row.at("ranks"))));
    const Request request{function_of(kind_of(row.at("op"))), {std::stoull(row.at("bytes"))}};
    if (row.at("estimated_us").empty()) {
      EXPECT_THROW(plan_of(tuning, request), UsageError) << what;
      continue;
    }
    const Plan plan = plan_of(tuning, request);
    EXPECT_EQ(fmt::format("{:.9g}", plan.price_us), row.at("estimated_us")) << what;
    EXPECT_EQ(logged(plan.algorithm), row.at("algorithm")) << what;
    EXPECT_EQ(logged(plan.protocol), row.at("protocol")) << what;
    EXPECT_EQ(fmt::format("{}", plan.channels), row.at("channels")) << what;
  }
}

}  // namespace
}  // namespace foretrace::nccl
