#include "scenarios/program/renumber.h"

#include "scenarios/program/op_members.h"

namespace foretrace {
namespace {

/// Visits members as for_each_member() has them: all are the program's own, which is not const.
class Renumber {
 public:
  explicit Renumber(const NewNumbers& numbers) : numbers_{numbers} {}

  void value(const char*, const StreamRef& ref) const { move(ref, numbers_.streams); }
  void value(const char*, const EventRef& ref) const { move(ref, numbers_.events); }
  void value(const char*, const BufferRef& ref) const { move(ref, numbers_.buffers); }
  void value(const char*, const GraphRef& ref) const { move(ref, numbers_.graphs); }
  void value(const char* name, const std::vector<BufferRef>& refs) const {
    for (const BufferRef& ref : refs) value(name, ref);
  }
  template <class Other>
  void value(const char*, const Other&) const {}
  void flag(const char*, bool) const {}
  void number(const char*, const Expr&) const {}

 private:
  template <class Tag>
  static void move(const Ref<Tag>& ref, const std::vector<std::uint32_t>& to) {
    if (to.empty()) return;
    auto& first =
        const_cast<Ref<Tag>&>(ref).first;  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    first.value = to.at(first.value);
  }

  const NewNumbers& numbers_;
};

void renumber(const Block& block, const NewNumbers& numbers) {
  for (const Op& op : block) {
    for_each_member(op.kind, Renumber{numbers});
    if (const Block* inner = block_of(op.kind)) renumber(*inner, numbers);
  }
}

}  // namespace

void renumber(Program& program, const NewNumbers& numbers) {
  for (const HostThread& thread : program.threads) renumber(thread.ops, numbers);
}

}  // namespace foretrace
