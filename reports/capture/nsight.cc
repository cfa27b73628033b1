#include "reports/capture/nsight.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <memory>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::capture {
namespace {

constexpr std::size_t kLargestReport = std::size_t{4} << 30;  // bytes
constexpr std::int64_t kLatestNs = std::int64_t{1} << 61;

/// globalTid and globalPid: hardware id, virtual machine, process (24 bits), thread (24 bits).
constexpr std::int64_t kThreadBits = 24;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct CloseStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class Database {
 public:
  explicit Database(const std::filesystem::path& file) : file_{file.string()} {
    refuse_unfinished(file);
    sqlite3* opened = nullptr;
    const int result = sqlite3_open_v2(as_uri(file).c_str(), &opened,
                                       SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
    database_.reset(opened);
    if (result != SQLITE_OK) fail();
    limit();
    // A file from elsewhere: its views and functions are not trusted.
    sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  }

  /// Throws where a column of it is computed: its values are no captured ones.
  bool has(const std::string& table) {
    bool found = false;
    each(fmt::format("SELECT name FROM pragma_table_xinfo('{}') WHERE hidden > 1", table),
         [&](sqlite3_stmt*) { fail(fmt::format("{}: a column of it is computed", table)); });
    each(fmt::format("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{}'", table),
         [&](sqlite3_stmt*) { found = true; });
    return found;
  }

  /// Calls `row` for each row of the answer.
  void each(const std::string& query, const std::function<void(sqlite3_stmt*)>& row) {
    sqlite3_stmt* prepared = nullptr;
    const int result = sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &prepared, nullptr);
    const std::unique_ptr<sqlite3_stmt, CloseStatement> statement{prepared};
    if (result != SQLITE_OK) fail();
    int step = SQLITE_ROW;
    while ((step = sqlite3_step(statement.get())) == SQLITE_ROW) row(statement.get());
    if (step != SQLITE_DONE) fail();
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw UsageError{fmt::format("{}: {}", file_, why)};
  }

 private:
  /// Changes that are still in a journal beside the file would be missed.
  void refuse_unfinished(const std::filesystem::path& file) const {
    for (const char* const kind : {"-wal", "-journal"}) {
      std::filesystem::path journal = file;
      journal += kind;
      std::error_code error;
      const auto size = std::filesystem::file_size(journal, error);
      if (error || size == 0) continue;
      fail(
          fmt::format("a program writes to it, or died doing so: {} has changes that are not in "
                      "it\n  hint: sqlite3 {} 'PRAGMA wal_checkpoint(TRUNCATE)'",
                      journal.string(), file_));
    }
  }

  /// Immutable: SQLite makes no files beside it.
  static std::string as_uri(const std::filesystem::path& file) {
    std::string uri = "file:";
    constexpr std::string_view kPlain = "/-_.~";
    for (const char c : std::filesystem::absolute(file).string()) {
      const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                            kPlain.find(c) != std::string_view::npos;
      uri += is_plain ? std::string{c} : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return uri + "?immutable=1";
  }

  /// A file from elsewhere may hold columns that are computed: neither long values nor long work.
  void limit() {
    constexpr int kLongestValue = 1 << 20;  // bytes
    constexpr int kLongestQuery = 1 << 12;
    constexpr int kSteps = 1 << 16;  // of SQLite's machine between two questions
    sqlite3_limit(database_.get(), SQLITE_LIMIT_LENGTH, kLongestValue);
    sqlite3_limit(database_.get(), SQLITE_LIMIT_SQL_LENGTH, kLongestQuery);
    sqlite3_limit(database_.get(), SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_progress_handler(
        database_.get(), kSteps,
        [](void* self) {
          // 4 million rows of 10 columns take some 200 million steps.
          constexpr std::int64_t kMost = 4'000'000'000;
          auto& steps = static_cast<Database*>(self)->steps_;
          steps += kSteps;
          return steps > kMost ? 1 : 0;
        },
        this);
  }

  [[noreturn]] void fail() const {
    if (sqlite3_errcode(database_.get()) == SQLITE_INTERRUPT) {
      fail("more work than reading a report is: its tables compute what they hold");
    }
    fail(fmt::format("SQLite says: {}", sqlite3_errmsg(database_.get())));
  }

  std::string file_;
  std::int64_t steps_ = 0;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
};

class NsightReader {
 public:
  NsightReader(const std::filesystem::path& file, Names& names)
      : file_{file.string()}, database_{file}, names_{names} {}

  std::vector<Process> read() {
    if (!database_.has("StringIds") || !database_.has("CUPTI_ACTIVITY_KIND_KERNEL")) {
      database_.fail("no tables of CUDA's activity: export with nsys export --type sqlite");
    }
    read_strings();
    read_calls();
    read_device("CUPTI_ACTIVITY_KIND_KERNEL", EventKind::Kernel,
                "demangledName, gridX, gridY, gridZ");
    read_device("CUPTI_ACTIVITY_KIND_MEMCPY", EventKind::Copy, "NULL, 1, 1, 1");
    read_device("CUPTI_ACTIVITY_KIND_MEMSET", EventKind::Fill, "NULL, 1, 1, 1");
    read_gpu();
    std::vector<Process> result;
    for (auto& [id, process] : processes_) {
      process.rank = static_cast<std::int64_t>(result.size());
      process.file = file_;
      process.gpu = gpu_;
      process.sms = sms_;
      finish(process);
      result.push_back(std::move(process));
    }
    if (result.empty()) database_.fail("no calls and no kernels of CUDA");
    return result;
  }

 private:
  static std::int64_t whole(sqlite3_stmt* row, int column) {
    return sqlite3_column_int64(row, column);
  }

  void read_strings() {
    database_.each("SELECT id, value FROM StringIds", [&](sqlite3_stmt* row) {
      constexpr std::size_t kLongest = 400;
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, 1));
      if (text == nullptr) return;
      strings_[whole(row, 0)] = names_.add(std::string_view{text}.substr(0, kLongest));
      if (strings_.size() > kMostEvents) database_.fail("too many strings");
    });
  }

  void take_times(sqlite3_stmt* row, Event& event) {
    event.begin = whole(row, 0);
    event.end = whole(row, 1);
    if (event.begin < 0 || event.end < event.begin || event.end > kLatestNs) {
      database_.fail(fmt::format("an event lasts from {} ns to {} ns", event.begin, event.end));
    }
    event.correlation = static_cast<std::uint64_t>(whole(row, 2));
  }

  void keep(std::int64_t process, const Event& event) {
    if (++events_ > kMostEvents) {
      database_.fail(fmt::format("more than {} calls, kernels and copies", kMostEvents));
    }
    processes_[process].events.push_back(event);
    if (processes_.size() > kMostLanes) database_.fail("too many processes");
  }

  void read_calls() {
    if (!database_.has("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
    database_.each(
        "SELECT start, \"end\", correlationId, globalTid, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME",
        [&](sqlite3_stmt* row) {
          Event event;
          take_times(row, event);
          event.lane = whole(row, 3) & ((std::int64_t{1} << kThreadBits) - 1);
          event.name = name_of(whole(row, 4), "CUDA call");
          keep(whole(row, 3) >> kThreadBits, event);
        });
  }

  void read_device(const std::string& table, EventKind kind, const char* columns) {
    if (!database_.has(table)) return;
    database_.each(
        fmt::format(
            "SELECT start, \"end\", correlationId, globalPid, deviceId, streamId, {} FROM {}",
            columns, table),
        [&](sqlite3_stmt* row) {
          Event event;
          take_times(row, event);
          event.kind = kind;
          event.device =
              static_cast<std::uint32_t>(std::clamp<std::int64_t>(whole(row, 4), 0, 1024));
          event.lane = std::max<std::int64_t>(0, whole(row, 5));
          event.name = name_of(whole(row, 6), kind == EventKind::Copy ? "Memcpy" : "Memset");
          constexpr std::int64_t kMostBlocks = 1 << 30;
          std::int64_t blocks = 1;
          for (int column = 7; column <= 9; ++column) {
            blocks = std::min(
                kMostBlocks, blocks * std::clamp<std::int64_t>(whole(row, column), 1, kMostBlocks));
          }
          event.blocks = static_cast<std::uint32_t>(blocks);
          keep(whole(row, 3) >> kThreadBits, event);
        });
  }

  void read_gpu() {
    if (!database_.has("TARGET_INFO_GPU")) return;
    database_.each("SELECT name, smCount FROM TARGET_INFO_GPU LIMIT 1", [&](sqlite3_stmt* row) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, 0));
      if (text != nullptr) gpu_ = text;
      sms_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(whole(row, 1), 0, 1024));
    });
  }

  std::uint32_t name_of(std::int64_t id, std::string_view otherwise) {
    const auto found = strings_.find(id);
    return found == strings_.end() ? names_.add(otherwise) : found->second;
  }

  std::string file_;
  Database database_;
  Names& names_;
  std::unordered_map<std::int64_t, std::uint32_t> strings_;
  std::map<std::int64_t, Process> processes_;
  std::string gpu_;
  std::uint32_t sms_ = 0;
  std::size_t events_ = 0;
};

}  // namespace

bool is_sqlite(std::string_view bytes) {
  return bytes.starts_with(std::string_view{"SQLite format 3\0", 16});
}

std::vector<Process> read_nsight(const std::filesystem::path& file, Names& names) {
  // A plain file, and one that no command writes over.
  static_cast<void>(read_text_file(file, kLargestReport));
  return NsightReader{file, names}.read();
}

}  // namespace foretrace::capture
