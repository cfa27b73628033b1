#include "sim/sweep/ledger.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>

#include "models/machine/machine.h"
#include "reports/timeline/write_file.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"
#include "sim/sweep/written_row.h"

namespace foretrace::sweep {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::map<std::size_t, std::string>;

constexpr std::size_t kLargestLedger = std::size_t{1} << 31;

/// FNV-1a: the scenario's text, so that a file that was edited is another sweep.
std::string digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

/// Of what machine files say, by their names: one that was edited is another machine.
Json machines_of(const Axis& axis) {
  Json digests = Json::array();
  for (const std::string& name : axis.values) {
    const Machine machine = load_machine(name);
    std::string text = machine_text(machine);  // of one that is based on another only what differs
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      if (machine.has(param)) text += fmt::format("{} {}\n", i, machine.get(param).value);
    }
    digests.push_back(digest(text));
  }
  return digests;
}

Json head_of(const Sweep& sweep, std::size_t points) {
  Json axes = Json::array(), machines = Json::array();
  for (const Axis& axis : sweep.axes) {
    const char* const kind = axis.kind == Kind::Machine ? "machine"
                             : axis.kind == Kind::Set   ? "set"
                                                        : "with";
    axes.push_back({{"kind", kind}, {"name", axis.name}, {"values", axis.values}});
    if (axis.kind == Kind::Machine) machines = machines_of(axis);
  }
  return {{"kind", "foretrace sweep"},
          {"schema_version", 2},
          {"producer", "foretrace " FORETRACE_VERSION},
          {"file", sweep.file},
          {"text", digest(sweep.text)},
          {"machines", std::move(machines)},
          {"fidelity", sweep.fidelity == Fidelity::Chunk ? "chunk" : "flow"},
          {"axes", std::move(axes)},
          {"points", points}};
}

/// The number of the point that a line is the row of; none for what no sweep has written.
std::optional<std::size_t> point_of(std::string_view line, std::size_t points, const Json& axes) {
  const Json row = Json::parse(line, nullptr, false);
  if (!is_written_row(row, axes) || !row.contains("point")) return {};
  const Json& point = row["point"];
  if (!point.is_number_unsigned() || point >= points) return {};
  return point.get<std::size_t>();
}

/// Adds a file's whole rows to `rows`; the length of what is whole, 0 where the first line is not.
/// Throws UsageError for a file that is of something else.
std::size_t read_rows(const std::filesystem::path& file, const std::string& head,
                      std::size_t points, Rows& rows) {
  const std::string text = read_text_file(file, kLargestLedger);
  const Json axes = Json::parse(head)["axes"];
  std::size_t whole = 0;
  while (whole < text.size()) {
    const std::size_t end = text.find('\n', whole);
    if (end == std::string::npos) break;
    const std::string line = text.substr(whole, end - whole);
    if (whole == 0 && line != head) break;
    if (whole > 0) {
      const auto point = point_of(line, points, axes);
      if (!point) break;
      rows.emplace(*point, line);
    }
    whole = end + 1;
  }
  // What is cut off in its first line may be of this sweep.
  if (whole == 0 && !text.empty() && !head.starts_with(text)) {
    throw UsageError{
        fmt::format("{} is of another sweep, or of none\n  hint: the command, the scenario or a "
                    "machine file changed since: give another file, or remove it",
                    file.string())};
  }
  return whole;
}

}  // namespace

Ledger::Ledger(const std::filesystem::path& file, const Sweep& sweep, std::size_t points,
               Share share)
    : file_{file}, own_{file}, head_{head_of(sweep, points).dump()}, points_{points} {
  if (share.size > 1) own_ += fmt::format(".{}", share.rank);
  if (file_.has_parent_path()) make_directory(file_.parent_path());
  Rows rows;
  for (const std::filesystem::path& part : parts()) {
    const std::size_t whole = read_rows(part, head_, points_, rows);
    if (part == own_) whole_ = whole;
  }
  for (const auto& [point, line] : rows) done_.insert(point);
}

/// FILE and what others append to, as far as they are there.
std::vector<std::filesystem::path> Ledger::parts() const {
  std::vector<std::filesystem::path> all;
  if (std::filesystem::exists(file_)) all.push_back(file_);
  const std::string prefix = file_.filename().string() + ".";
  const auto directory = file_.has_parent_path() ? file_.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator{directory}) {
    const std::string name = entry.path().filename().string();
    const bool is_part = name.starts_with(prefix) && name.size() > prefix.size() &&
                         name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
    if (is_part) all.push_back(file_.parent_path() / name);
  }
  return all;
}

/// Who has nothing to append leaves no part behind.
void Ledger::append(const Json& row) {
  if (!out_) {
    out_.emplace(own_, whole_);
    if (whole_ == 0) out_->append(head_);
  }
  out_->append(row.dump());
  done_.insert(row.at("point").get<std::size_t>());
}

std::vector<Json> Ledger::finish(const Against& against) {
  constexpr std::chrono::milliseconds kLook{200};
  Rows rows;
  std::vector<std::filesystem::path> read;
  while (true) {
    rows.clear();
    read = parts();
    for (const std::filesystem::path& part : read) read_rows(part, head_, points_, rows);
    if (rows.size() >= points_) break;
    std::this_thread::sleep_for(kLook);
  }
  std::vector<Json> all;
  for (const auto& [point, line] : rows) all.push_back(Json::parse(line));
  compare(all, against);
  write_file(
      file_,
      [&](std::ostream& out) {
        out << head_ << '\n';
        for (const Json& row : all) out << row.dump() << '\n';
      },
      Over::Anything);
  for (const std::filesystem::path& part : read) {
    if (part != file_) std::filesystem::remove(part);
  }
  return all;
}

}  // namespace foretrace::sweep
