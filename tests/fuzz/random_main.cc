// Fuzzing with any compiler: mutates the corpus and keeps what reaches something new, where the
// libraries were compiled with -fsanitize-coverage=trace-pc; without it, mutates blindly.
//   fuzz_readers READER FILE...                          reads each file or directory once
//   fuzz_readers READER --runs N [--seconds S] [--seed K] [--longest BYTES] [--last FILE] FILE...
// FILE of --last holds what is being read: the culprit, when the process ends early.
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/readers.h"

namespace {

constexpr std::size_t kMapSize = 1 << 15;
alignas(8) unsigned char reached[kMapSize];  // since the last input began
std::uintptr_t previous_place = 0;

}  // namespace

/// Called by instrumented code at each edge.
#ifdef __clang__
extern "C" __attribute__((no_sanitize("address", "undefined", "coverage"))) void
#else
extern "C" __attribute__((no_sanitize("address", "undefined"), no_sanitize_coverage)) void
#endif
__sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  unsigned char& count = reached[((place >> 1) ^ previous_place) % kMapSize];
  if (count != 255) ++count;
  previous_place = place >> 2;
}

namespace foretrace::fuzz {
namespace {

namespace fs = std::filesystem;
using Bytes = std::string;
using Clock = std::chrono::steady_clock;

constexpr time_t kLongestSeconds = 20;  // of the processor, for one input

/// Ends the process by SIGPROF when it has worked for `seconds` longer; zero: never. Time in which
/// the process or the machine was stopped does not count.
void ends_after(time_t seconds) {
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

struct FuzzOptions {
  const FuzzedReader* reader = nullptr;
  std::uint64_t runs = 0;
  double seconds = 1e9;
  std::uint64_t seed = 1;
  std::size_t longest = 4096;
  std::string last;
  std::vector<Bytes> corpus;
};

[[noreturn]] void end_with(const std::string& message) {
  std::fprintf(stdout, "%s\n", message.c_str());
  std::exit(2);
}

Bytes content(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void add_corpus(const fs::path& place, std::vector<Bytes>& corpus) {
  if (!fs::exists(place)) end_with("no such file: " + place.string());
  std::vector<fs::path> files;
  if (fs::is_directory(place)) {
    for (const auto& entry : fs::recursive_directory_iterator{place}) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  } else {
    files.push_back(place);
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) corpus.push_back(content(file));
}

FuzzOptions parse(int argc, char** argv) {
  FuzzOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word{argv[i]};
    const auto value = [&] { return i + 1 < argc ? std::string{argv[++i]} : std::string{"0"}; };
    if (i == 1) {
      options.reader = find_reader(word);
    } else if (word == "--runs") {
      options.runs = std::stoull(value());
    } else if (word == "--seconds") {
      options.seconds = std::stod(value());
    } else if (word == "--seed") {
      options.seed = std::stoull(value());
    } else if (word == "--longest") {
      options.longest = std::stoull(value());
    } else if (word == "--last") {
      options.last = value();
    } else {
      add_corpus(word, options.corpus);
    }
  }
  if (options.reader == nullptr) {
    std::string names = "which reader:";
    for (const FuzzedReader& reader : readers()) names += " " + std::string{reader.name};
    end_with(names);
  }
  return options;
}

/// Words and numbers of the corpus, and numbers that break things.
std::vector<Bytes> words_of(const std::vector<Bytes>& corpus) {
  std::vector<Bytes> words{"0",
                           "-1",
                           "1",
                           "2",
                           "4294967295",
                           "4294967296",
                           "-2147483649",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709551615",
                           "1e308",
                           "1e-308",
                           "nan",
                           "inf",
                           "-0",
                           "0.5",
                           "99999999999999999999999",
                           "null",
                           "true",
                           "\"\"",
                           "[]",
                           "{}",
                           "''",
                           "\n",
                           " ",
                           ",",
                           ":",
                           "\t",
                           std::string(1, '\0'),
                           "\xff",
                           "\xc3\xa4",
                           "\xe2\x80\xa8",
                           "**",
                           "%"};
  for (const Bytes& text : corpus) {
    Bytes word;
    for (const char c : text.substr(0, 20000)) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-') {
        word += c;
        continue;
      }
      if (word.size() > 1 && word.size() < 40) words.push_back(word);
      word.clear();
    }
  }
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

class Mutator {
 public:
  Mutator(const FuzzOptions& options, std::vector<Bytes>& corpus)
      : corpus_{corpus},
        words_{words_of(corpus)},
        longest_{options.longest},
        random_{options.seed} {}

  Bytes next() {
    // Half of the time one of the latest finds.
    const std::size_t recent = std::min<std::size_t>(corpus_.size(), 64);
    Bytes bytes =
        at(2) == 0 ? corpus_[corpus_.size() - 1 - at(recent)] : corpus_[at(corpus_.size())];
    if (bytes.size() > longest_) bytes = bytes.substr(at(bytes.size() - longest_ + 1), longest_);
    for (std::size_t rounds = 1 + at(4); rounds > 0; --rounds) mutate(bytes);
    if (bytes.size() > longest_) bytes.resize(longest_);
    return bytes;
  }

 private:
  std::size_t at(std::size_t below) { return below == 0 ? 0 : random_() % below; }
  std::size_t place(const Bytes& bytes) { return at(bytes.size() + 1); }

  void mutate(Bytes& bytes) {
    const std::size_t here = place(bytes);
    const std::size_t length = std::min(bytes.size() - here, 1 + at(at(4) == 0 ? 64 : 8));
    switch (at(10)) {
      case 0:
        if (here < bytes.size()) bytes[here] = static_cast<char>(bytes[here] ^ (1 << at(8)));
        return;
      case 1:
        if (here < bytes.size()) bytes[here] = static_cast<char>(at(256));
        return;
      case 2:
        bytes.erase(here, length);
        return;
      case 3:
        bytes.insert(place(bytes), bytes.substr(here, length));
        return;
      case 4:
        bytes.insert(here, words_[at(words_.size())]);
        return;
      case 5:
      case 6:
        replace_word(bytes, here);
        return;
      case 7: {
        const Bytes& other = corpus_[at(corpus_.size())];
        bytes = bytes.substr(0, here) + other.substr(at(other.size() + 1));
        return;
      }
      case 8: {  // a line, again or away
        const std::size_t begin = bytes.rfind('\n', here) + 1;
        const std::size_t end = std::min(bytes.find('\n', here), bytes.size());
        if (begin >= end) return;
        const Bytes line = bytes.substr(begin, end - begin + 1);
        if (at(2) == 0)
          bytes.erase(begin, line.size());
        else
          bytes.insert(begin, line);
        return;
      }
      default:
        bytes.insert(here, Bytes(1 + at(4), static_cast<char>(at(256))));
    }
  }

  /// A word or number of the text by another.
  void replace_word(Bytes& bytes, std::size_t here) {
    const auto is_word = [&](std::size_t i) {
      return i < bytes.size() && (std::isalnum(static_cast<unsigned char>(bytes[i])) != 0 ||
                                  bytes[i] == '.' || bytes[i] == '_' || bytes[i] == '-');
    };
    while (here < bytes.size() && !is_word(here)) ++here;
    std::size_t end = here;
    while (is_word(end)) ++end;
    while (here > 0 && is_word(here - 1)) --here;
    bytes.replace(here, end - here, words_[at(words_.size())]);
  }

  std::vector<Bytes>& corpus_;
  std::vector<Bytes> words_;
  std::size_t longest_;
  std::mt19937_64 random_;
};

/// Reads `bytes`; whether that reached something that nothing before did.
class Runner {
 public:
  explicit Runner(const FuzzOptions& options) : reader_{*options.reader} {
    if (options.last.empty()) return;
    last_ = ::open(options.last.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (last_ < 0) end_with("cannot write " + options.last);
  }

  bool run(const Bytes& bytes) {
    if (last_ >= 0) {
      const bool kept =
          ::ftruncate(last_, 0) == 0 && ::pwrite(last_, bytes.data(), bytes.size(), 0) >= 0;
      if (!kept) end_with("cannot keep the last input");
    }
    std::memset(reached, 0, kMapSize);
    previous_place = 0;
    ends_after(kLongestSeconds);
    // A copy without a spare byte behind it: reading beyond the end is seen.
    const std::vector<char> exact{bytes.begin(), bytes.end()};
    reader_.read({exact.data(), exact.size()});
    ends_after(0);
    bool is_new = false;
    for (std::size_t i = 0; i < kMapSize; i += 8) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, reached + i, 8);
      if (eight == 0) continue;  // nearly all
      for (std::size_t k = i; k < i + 8; ++k) is_new = note(k) || is_new;
    }
    return is_new;
  }
  std::size_t edges() const { return edges_; }

 private:
  /// Whether an edge was taken for the first time, or far more or less often than before.
  bool note(std::size_t edge) {
    const unsigned count = reached[edge];
    if (count == 0) return false;
    const auto bucket = static_cast<unsigned char>(count < 4     ? 1U << (count - 1)
                                                   : count < 16  ? 8U
                                                   : count < 128 ? 16U
                                                                 : 32U);
    const bool is_new = (seen_[edge] & bucket) == 0;
    edges_ += seen_[edge] == 0 ? 1 : 0;
    seen_[edge] = static_cast<unsigned char>(seen_[edge] | bucket);
    return is_new;
  }

  const FuzzedReader& reader_;
  int last_ = -1;
  std::size_t edges_ = 0;
  std::array<unsigned char, kMapSize> seen_{};
};

int fuzz(FuzzOptions options) {
  const auto begin = Clock::now();
  Runner runner{options};
  for (const Bytes& bytes : options.corpus) runner.run(bytes);
  const std::size_t given = options.corpus.size();
  if (given == 0) options.corpus.emplace_back();
  Mutator mutator{options, options.corpus};
  std::uint64_t runs = 0;
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  for (; runs < options.runs; ++runs) {
    if (runs % 8 == 0 && seconds() > options.seconds) break;
    Bytes bytes = mutator.next();
    if (runner.run(bytes)) options.corpus.push_back(std::move(bytes));
  }
  std::fprintf(stdout, "%s: %zu files, %llu mutations, %.0f s, %zu edges, %zu kept\n",
               std::string{options.reader->name}.c_str(), given,
               static_cast<unsigned long long>(runs), seconds(), runner.edges(),
               options.corpus.size() - given);
  return 0;
}

}  // namespace
}  // namespace foretrace::fuzz

int main(int argc, char** argv) {
  stderr = std::fopen("/dev/null", "w");  // readers print notes; sanitizers write to descriptor 2
  return foretrace::fuzz::fuzz(foretrace::fuzz::parse(argc, argv));
}
