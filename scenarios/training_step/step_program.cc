#include "scenarios/training_step/step_program.h"

#include <algorithm>
#include <utility>

#include "scenarios/program/renumber.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::training {
namespace {

Buffer device_buffer(std::string name, std::int64_t bytes) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.size.count = static_cast<std::uint64_t>(bytes);
  return buffer;
}

}  // namespace

StepProgram::StepProgram(Program head, const SourceSpot& at, std::uint32_t most)
    : program_{std::move(head)}, line_{at.line}, column_{at.column}, most_{most} {
  add_default_streams(program_);
  program_.barriers.push_back({});
}

void StepProgram::add_stream(const std::string& name) {
  streams_[name] = {static_cast<std::uint32_t>(program_.streams.size())};
  program_.streams.push_back({name, 0, StreamKind::NonBlocking, 0});
}

void StepProgram::add_group(const std::string& name, const std::vector<std::int64_t>& ranks) {
  if (has_group(name)) return;
  const std::vector<std::uint32_t> members(ranks.begin(), ranks.end());
  groups_.emplace(name, add_process_group(program_, name, {members}, false, false));
}

Op& StepProgram::add(Block& block, OpKind kind, std::string label) {
  block.push_back({OpId{program_.op_count++}, std::move(label), line_, column_, std::move(kind)});
  return block.back();
}

Lowering StepProgram::lowering(Block& block, std::string_view thread, std::string label) {
  return {program_, thread, {{}, std::move(label), line_, column_, {}}, block};
}

StreamRef StepProgram::stream(std::string_view name) const {
  return name.empty() ? StreamRef{} : StreamRef{streams_.find(name)->second, {}};
}

BufferRef StepProgram::buffer(std::string_view name) {
  auto& all = program_.buffers;
  const auto found = std::ranges::find(all, name, &Buffer::name);
  const auto id = static_cast<std::uint32_t>(found - all.begin());
  if (found == all.end()) all.push_back(device_buffer(std::string{name}, 0));
  return {{id}, {}};
}

EventRef StepProgram::work(std::string_view name) {
  const auto next = static_cast<std::uint32_t>(program_.events.size());
  const auto found = works_.find(name);
  if (found != works_.end()) return {found->second, {}};
  program_.events.push_back({std::string{name}, 0, false});
  return {works_.emplace(name, EventId{next}).first->second, {}};
}

GroupCall StepProgram::call(std::string_view group, std::string_view thread,
                            std::string_view stream) {
  const auto found = groups_.find(group);
  FORETRACE_CHECK(found != groups_.end(), "a step's groups are there before its threads");
  auto& [handle, made] = found->second;
  return call_of_group(program_, made, group, thread, {handle, {}}, {}, this->stream(stream));
}

std::int64_t StepProgram::rank_in(std::string_view group, std::int64_t rank) const {
  const auto& ranks = groups_.find(group)->second.group.ranks;
  return std::ranges::find(ranks, static_cast<std::uint32_t>(rank)) - ranks.begin();
}

void StepProgram::read_scalar(Block& block, std::string_view thread, std::string_view buffer) {
  const BufferRef source = this->buffer(buffer);
  Lowering out = lowering(block, thread, {});
  add_read_scalar(program_, {}, source, out);
}

Program StepProgram::finish(const std::vector<Buffer>& first, const BufferBytes& bytes,
                            Buffer last) {
  std::vector<Buffer> named = first;
  for (const auto& [name, size] : bytes) named.push_back(device_buffer(name, size));
  named.push_back(std::move(last));
  std::vector<std::uint32_t> to;
  for (Buffer& buffer : program_.buffers) {
    const auto found = std::ranges::find(named, buffer.name, &Buffer::name);
    to.push_back(static_cast<std::uint32_t>(found - named.begin()));
    if (found == named.end()) named.push_back(std::move(buffer));  // read_scalar's
  }
  program_.buffers = std::move(named);
  renumber(program_, {.streams = {}, .events = {}, .buffers = to, .graphs = {}});
  return std::move(program_);
}

}  // namespace foretrace::training
