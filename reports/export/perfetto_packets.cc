#include "reports/export/perfetto_packets.h"

#include <ostream>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

namespace foretrace::perfetto {
namespace {

// Field numbers of Perfetto's protos/perfetto/trace/*.proto; tests decode with the same numbers.
namespace trace {
constexpr protozero::pbf_tag_type kPacket = 1;
}
namespace packet {
constexpr protozero::pbf_tag_type kTimestamp = 8, kSequence = 10, kTrackEvent = 11,
                                  kTrackDescriptor = 60;
}
namespace track {
constexpr protozero::pbf_tag_type kUuid = 1, kName = 2, kParent = 5, kChildOrdering = 11,
                                  kCounter = 8, kRank = 12;
constexpr std::int32_t kExplicit = 3;
}  // namespace track
namespace counter {
constexpr protozero::pbf_tag_type kUnit = 3;
constexpr std::int32_t kBytes = 3;
}  // namespace counter
namespace event {
constexpr protozero::pbf_tag_type kAnnotation = 4, kType = 9, kTrack = 11, kCategory = 22,
                                  kName = 23, kValue = 30, kFlow = 47, kTerminatingFlow = 48;
constexpr std::int32_t kBegin = 1, kEnd = 2, kCounter = 4;
}  // namespace event
namespace annotation {
constexpr protozero::pbf_tag_type kUint = 3, kString = 6, kName = 10;
}

constexpr std::uint32_t kOurSequence = 1;
constexpr std::size_t kAtOnce = std::size_t{1} << 16;  // bytes that are written

void add_packet(std::string& out, std::string_view packet) {
  protozero::pbf_writer{out}.add_message(trace::kPacket, packet.data(), packet.size());
}

}  // namespace

void Fields::annotate(std::string_view name, std::uint64_t value) {
  // The size is given, so that nothing is moved: the tags are a byte each, and so is a name's size.
  const std::size_t size =
      2 + name.size() + 1 + static_cast<std::size_t>(protozero::length_of_varint(value));
  protozero::pbf_writer fields{bytes_};
  protozero::pbf_writer note{fields, event::kAnnotation, size};
  note.add_string(annotation::kName, name.data(), name.size());
  note.add_uint64(annotation::kUint, value);
}

void Fields::annotate(std::string_view name, std::string_view value) {
  if (value.empty()) return;
  protozero::pbf_writer fields{bytes_};
  protozero::pbf_writer note{fields, event::kAnnotation};
  note.add_string(annotation::kName, name.data(), name.size());
  note.add_string(annotation::kString, value.data(), value.size());
}

void Fields::set_category(std::string_view category) {
  protozero::pbf_writer{bytes_}.add_string(event::kCategory, category.data(), category.size());
}

void Fields::set_name(std::string_view name) {
  protozero::pbf_writer{bytes_}.add_string(event::kName, name.data(), name.size());
}

void Fields::begin_arrow(std::uint64_t arrow) {
  protozero::pbf_writer{bytes_}.add_fixed64(event::kFlow, arrow);
}

void Fields::end_arrow(std::uint64_t arrow) {
  protozero::pbf_writer{bytes_}.add_fixed64(event::kTerminatingFlow, arrow);
}

std::uint64_t Packets::add_track(std::string_view name, std::uint64_t parent, std::int32_t rank,
                                 bool counts_bytes) {
  const std::uint64_t uuid = next_track_++;
  packet_.clear();
  {
    protozero::pbf_writer packet{packet_};
    protozero::pbf_writer descriptor{packet, packet::kTrackDescriptor};
    descriptor.add_uint64(track::kUuid, uuid);
    descriptor.add_string(track::kName, name.data(), name.size());
    if (parent != 0) descriptor.add_uint64(track::kParent, parent);
    if (counts_bytes) {
      protozero::pbf_writer unit{descriptor, track::kCounter};
      unit.add_enum(counter::kUnit, counter::kBytes);
    }
    descriptor.add_enum(track::kChildOrdering, track::kExplicit);
    descriptor.add_int32(track::kRank, rank);
  }
  add_packet(unwritten_, packet_);
  return uuid;
}

void Packets::begin_slice(std::uint64_t track, std::int64_t at_ns, const Fields& fields) {
  add_event(track, at_ns, event::kBegin, fields.bytes());
}

void Packets::end_slice(std::uint64_t track, std::int64_t at_ns) {
  add_event(track, at_ns, event::kEnd, {});
}

void Packets::set_curve(std::uint64_t track, std::int64_t at_ns, std::int64_t bytes) {
  std::string value;
  protozero::pbf_writer{value}.add_int64(event::kValue, bytes);
  add_event(track, at_ns, event::kCounter, value);
}

void Packets::add_event(std::uint64_t track, std::int64_t at_ns, std::int32_t type,
                        std::string_view fields) {
  event_.clear();
  protozero::pbf_writer one{event_};
  one.add_enum(event::kType, type);
  one.add_uint64(event::kTrack, track);
  event_ += fields;
  packet_.clear();
  protozero::pbf_writer packet{packet_};
  packet.add_uint64(packet::kTimestamp, static_cast<std::uint64_t>(at_ns));
  packet.add_uint32(packet::kSequence, kOurSequence);
  packet.add_message(packet::kTrackEvent, event_);
  add_packet(unwritten_, packet_);
  if (unwritten_.size() >= kAtOnce) flush();
}

void Packets::flush() {
  out_.write(unwritten_.data(), static_cast<std::streamsize>(unwritten_.size()));
  unwritten_.clear();
}

}  // namespace foretrace::perfetto
