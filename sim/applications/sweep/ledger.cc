#include "sim/applications/sweep/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "models/machine/machine.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/values/json_depth.h"
#include "sim/applications/sweep/written_row.h"
#include "sim/made_from.h"

namespace foretrace::sweep {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFiles = "files";
constexpr std::size_t kLargestLedger = std::size_t{1} << 31;

/// Of what machine files say, by their names: one that was edited is another machine.
Json machines_of(const Axis& axis) {
  Json digests = Json::array();
  for (const std::string& name : axis.values) {
    digests.push_back(digest_of_machine(load_machine(name)));
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
          {"schema_version", 3},
          {"producer", "foretrace " FORETRACE_VERSION},
          {"build", build_id()},
          {"file", sweep.file},
          {"text", digest_of(sweep.text)},
          {"machines", std::move(machines)},
          {"fidelity", sweep.fidelity == Fidelity::Chunk ? "chunk" : "flow"},
          {"axes", std::move(axes)},
          {"points", points}};
}

/// The number of the point that a row is of; none for what no sweep has written.
std::optional<std::size_t> point_of(const Json& row, std::size_t points, const Json& axes) {
  if (!is_written_row(row, axes) || !row.contains("point")) return {};
  const Json& point = row["point"];
  if (!point.is_number_unsigned() || point >= points) return {};
  return point.get<std::size_t>();
}

bool is_written_files(const Json& line) {
  return line.is_object() && line.size() == 1 && line.contains(kFiles) &&
         line[kFiles].is_object() &&
         std::ranges::all_of(line[kFiles], [](const Json& one) { return one.is_string(); });
}

/// "process 1 of 2, which has 3 points to predict": the first that lacks one.
std::string who_is_missing(const std::set<std::size_t>& missing, const Share& share) {
  const std::size_t rank = *missing.begin() % share.size;
  const auto points =
      std::ranges::count_if(missing, [&](std::size_t point) { return point % share.size == rank; });
  return fmt::format("process {} of {} has {} point{} to predict", rank, share.size, points,
                     points == 1 ? "" : "s");
}

}  // namespace

Ledger::Ledger(const std::filesystem::path& file, const Sweep& sweep, std::size_t points,
               Share share)
    : file_{file},
      own_{file},
      head_{head_of(sweep, points).dump()},
      points_{points},
      share_{std::move(share)} {
  if (file_.has_parent_path()) make_directory(file_.parent_path());
  if (share_.size > 1) own_ = part_of(share_.rank);
  out_.emplace(own_);  // from now on nobody else changes it
  Rows rows;
  for (const std::filesystem::path& part : parts()) {
    const std::size_t whole = read(part, rows);
    if (part == own_) whole_ = whole;
  }
  out_->keep(whole_);
  for (const auto& [point, row] : rows) {
    if (row.tries > 0) {
      tries_[point] = row.tries;
    } else {
      done_.insert(point);
    }
  }
}

/// Who has appended nothing leaves no part behind.
Ledger::~Ledger() {
  std::error_code none;
  if (whole_ == 0) std::filesystem::remove(own_, none);
}

std::filesystem::path Ledger::part_of(std::size_t rank) const {
  return file_.string() + fmt::format(".{}", rank);
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

/// Adds a file's whole rows to `rows`; the length of what is whole, 0 where the first line is not.
/// Throws UsageError for a file that is of something else.
std::size_t Ledger::read(const std::filesystem::path& part, Rows& rows) {
  const std::string text = read_text_file(part, kLargestLedger);
  const Json axes = Json::parse(head_)["axes"];
  std::size_t whole = 0;
  while (whole < text.size()) {
    const std::size_t end = text.find('\n', whole);
    if (end == std::string::npos) break;
    const std::string line = text.substr(whole, end - whole);
    if (whole == 0 ? line != head_ : !take(line, axes, rows)) break;
    whole = end + 1;
  }
  // What is cut off in its first line may be of this sweep.
  if (whole == 0 && !text.empty() && !head_.starts_with(text)) {
    throw UsageError{
        fmt::format("{} is of another sweep, or of none\n  hint: the command, the scenario, "
                    "foretrace itself or a machine file changed since: give another file, or "
                    "remove it",
                    part.string())};
  }
  return whole;
}

/// Whether a sweep has written the line. A row counts until a try that passed is behind it.
bool Ledger::take(const std::string& line, const Json& axes, Rows& rows) {
  if (json_depth(line) > kDeepestJson) return false;
  const Json json = Json::parse(line, nullptr, false);
  if (is_written_files(json)) {
    take_files(json[kFiles]);
    return true;
  }
  const auto point = point_of(json, points_, axes);
  if (!point) return false;
  const Row row{line, json.contains(kTries) ? json[kTries].get<std::uint64_t>() : 0};
  const auto [at, is_new] = rows.try_emplace(*point, row);
  const bool is_better = row.tries == 0 || row.tries > at->second.tries;
  if (!is_new && at->second.tries > 0 && is_better) at->second = row;
  return true;
}

void Ledger::take_files(const Json& files) {
  for (const auto& [name, was] : files.items()) {
    const auto [known, is_new] = files_.try_emplace(name);
    if (is_new) known->second = digest_now(name);
    if (known->second == was.get_ref<const std::string&>()) continue;
    throw UsageError{fmt::format(
        "{}: its rows were predicted from '{}', which changed since\n  hint: give another file, or "
        "remove it",
        file_.string(), shortened(name))};
  }
}

void Ledger::append(const Json& row, const FileDigests& files) {
  const auto write = [&](const std::string& line) {
    out_->append(line);
    whole_ += line.size() + 1;
  };
  if (whole_ == 0) write(head_);
  Json news = Json::object();
  std::set<std::string> own;  // they were read, too
  for (const auto& part : parts()) own.insert(name_in_digests(part));
  for (const auto& [name, is] : files) {
    if (own.contains(name)) continue;
    if (files_.try_emplace(name, is).second) news[name] = is;
  }
  if (!news.empty()) write(Json{{kFiles, std::move(news)}}.dump());
  const auto point = row.at("point").get<std::size_t>();
  Json counted = row;
  if (row.contains(kTries)) counted[kTries] = tries_[point] + 1;
  write(counted.dump());
  done_.insert(point);
}

Ledger::Rows Ledger::all_rows(std::chrono::seconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook{200};
  auto changed = Clock::now();
  bool has_said = false;
  for (std::size_t had = 0;; std::this_thread::sleep_for(kLook)) {
    Rows rows;
    for (const std::filesystem::path& part : parts()) read(part, rows);
    std::erase_if(rows, [&](const auto& row) {  // what an earlier call tried is tried again
      const auto earlier = tries_.find(row.first);
      return earlier != tries_.end() && row.second.tries == earlier->second;
    });
    if (rows.size() >= points_) return rows;
    if (rows.size() != std::exchange(had, rows.size())) changed = Clock::now();
    if (Clock::now() - changed < patience) continue;
    std::set<std::size_t> missing;
    for (std::size_t point = 0; point < points_; ++point) {
      if (!rows.contains(point)) missing.insert(point);
    }
    const std::string who = who_is_missing(missing, share_);
    const auto part = part_of(*missing.begin() % share_.size);
    if (is_appended_to(part) == Appending::No) {
      throw IoError{fmt::format(
          "{}, and does not run: {} has no rows of it, and nobody writes them\n  hint: the same "
          "command goes on where it stopped{}",
          who, part.string(),
          share_.variable.empty() ? ""
                                  : fmt::format("; without a launcher: unset {}, which is {} here",
                                                share_.variable, share_.rank))};
    }
    if (!std::exchange(has_said, true)) {
      print_error("note: {}, and has written nothing for {} s\n", who, patience.count());
    }
  }
}

std::vector<Json> Ledger::finish(const Against& against, std::chrono::seconds patience) {
  const Rows rows = all_rows(patience);
  std::vector<Json> all;
  for (const auto& [point, row] : rows) all.push_back(Json::parse(row.line));
  compare(all, against);
  const std::vector<std::filesystem::path> read = parts();
  write_file(
      file_,
      [&](std::ostream& out) {
        out << head_ << '\n';
        for (const Json& row : all) out << row.dump() << '\n';
        if (!files_.empty()) out << Json{{kFiles, files_}}.dump() << '\n';
      },
      Over::Anything);
  for (const std::filesystem::path& part : read) {
    if (part != file_) std::filesystem::remove(part);
  }
  return all;
}

}  // namespace foretrace::sweep
