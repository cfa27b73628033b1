// The Program of a training step while it is made: the objects that its threads name, each once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/lower/process_group.h"
#include "scenarios/program/program.h"
#include "scenarios/base/text/diagnostic.h"

namespace foretrace::training {

/// Bytes of a buffer that operations name, the largest of all threads.
using BufferBytes = std::map<std::string, std::int64_t, std::less<>>;

class StepProgram {
 public:
  /// `head`: the program without objects and threads. All operations stand at `at`: nobody wrote
  /// them. Beyond `most` of them no further ones are written.
  StepProgram(Program head, const SourceSpot& at, std::uint32_t most);

  void add_stream(const std::string& name);
  void add_group(const std::string& name, const std::vector<std::int64_t>& ranks);
  bool has_group(std::string_view name) const { return groups_.contains(name); }

  /// An operation at the end of `block`, in the order of all.
  Op& add(Block& block, OpKind kind, std::string label = {});
  /// Where one goes that reads as several.
  Lowering lowering(Block& block, std::string_view thread, std::string label);

  StreamRef stream(std::string_view name) const;  ///< empty: the default stream
  BufferRef buffer(std::string_view name);
  EventRef work(std::string_view name);
  BarrierId barrier();
  GroupCall call(std::string_view group, std::string_view thread, std::string_view stream);
  /// As the group numbers this rank.
  std::int64_t rank_in(std::string_view group, std::int64_t rank) const;
  void read_scalar(Block& block, std::string_view thread, std::string_view buffer);

  Program& program() { return program_; }
  bool is_full() const { return program_.op_count >= most_; }

  /// With its buffers: `first`, those of `bytes` in their order, `last`, read_scalar's.
  Program finish(const std::vector<Buffer>& first, const BufferBytes& bytes, Buffer last);

 private:
  Program program_;
  int line_, column_;
  std::uint32_t most_;
  std::map<std::string, StreamId, std::less<>> streams_;
  std::map<std::string, AddedGroup, std::less<>> groups_;
  std::map<std::string, EventId, std::less<>> works_;
};

}  // namespace foretrace::training
