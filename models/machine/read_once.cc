#include "models/machine/read_once.h"

#include <map>
#include <mutex>
#include <utility>

namespace foretrace {

Machine read_once(const std::string& file, int depth, const std::string& text,
                  const std::function<Machine()>& read) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, std::pair<std::string, Machine>> known;
  const std::pair key{file, depth};
  {
    const std::lock_guard lock{mutex};
    const auto found = known.find(key);
    if (found != known.end() && found->second.first == text) return found->second.second;
  }
  Machine machine = read();
  const std::lock_guard lock{mutex};
  known.insert_or_assign(key, std::pair{text, machine});
  return machine;
}

}  // namespace foretrace
