// The operations of a scenario as they are written: what belongs behind an earlier line is put
// there.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretrace::capture {

class Script {
 public:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  void add_behind(std::size_t index, std::string line) { behind_.emplace(index, std::move(line)); }
  std::size_t size() const { return lines_.size(); }

  std::string text() const {
    constexpr std::string_view kMargin = "        - ";
    std::string text;
    const auto put = [&](const std::string& line) {
      text += kMargin;
      text += line;
      text += '\n';
    };
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      put(lines_[i]);
      const auto [first, last] = behind_.equal_range(i);
      for (auto one = first; one != last; ++one) put(one->second);
    }
    return text;
  }

 private:
  std::vector<std::string> lines_;
  std::multimap<std::size_t, std::string> behind_;
};

}  // namespace foretrace::capture
