#include "reports/export/perfetto_packets.h"

#include <array>
#include <ostream>
#include <protozero/pbf_writer.hpp>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>

#ifdef FORETRACE_HAS_ZLIB
#include <zlib.h>

#include "scenarios/base/text/errors.h"
#endif

#include "reports/export/exported_name.h"

namespace foretrace::perfetto {
namespace {

// Field numbers of Perfetto's protos/perfetto/trace/*.proto; tests decode with the same numbers.
namespace trace {
constexpr protozero::pbf_tag_type kPacket = 1;
}
namespace packet {
constexpr protozero::pbf_tag_type kTimestamp = 8, kSequence = 10, kTrackEvent = 11,
                                  kCompressed = 50, kTrackDescriptor = 60;
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
constexpr std::size_t kAtOnce = std::size_t{1} << 18;  // bytes that are written

/// Short fields one behind the other: most packets are a few of them, and one writer for each field
/// took half of an export's time.
class ShortFields {
 public:
  void varint(protozero::pbf_tag_type field, std::uint64_t value) {
    tag(field, protozero::pbf_wire_type::varint);
    number(value);
  }
  /// So many bytes follow.
  void length(protozero::pbf_tag_type field, std::size_t bytes) {
    tag(field, protozero::pbf_wire_type::length_delimited);
    number(bytes);
  }
  std::string_view bytes() const { return {bytes_.data(), size_}; }

  static std::size_t size_of(protozero::pbf_tag_type field, std::uint64_t value) {
    return size_of(std::uint64_t{field} << 3) + size_of(value);
  }

 private:
  static constexpr std::size_t kMost = 96;  // eight fields

  static std::size_t size_of(std::uint64_t value) {
    return static_cast<std::size_t>(protozero::length_of_varint(value));
  }
  void tag(protozero::pbf_tag_type field, protozero::pbf_wire_type type) {
    number(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(type));
  }
  void number(std::uint64_t value) {
    size_ += static_cast<std::size_t>(protozero::write_varint(bytes_.data() + size_, value));
  }

  std::array<char, kMost> bytes_;
  std::size_t size_ = 0;
};

void add_packet(std::string& out, std::string_view packet) {
  protozero::pbf_writer{out}.add_message(trace::kPacket, packet.data(), packet.size());
}

}  // namespace

void Fields::annotate(std::string_view name, std::uint64_t value) {
  ShortFields before;
  before.length(event::kAnnotation, ShortFields::size_of(annotation::kName, name.size()) +
                                        name.size() +
                                        ShortFields::size_of(annotation::kUint, value));
  before.length(annotation::kName, name.size());
  ShortFields behind;
  behind.varint(annotation::kUint, value);
  bytes_.append(before.bytes()).append(name).append(behind.bytes());
}

void Fields::annotate(std::string_view name, std::string_view value) {
  if (value.empty()) return;
  const std::string shown = shortened(value, kLongestKernel);
  protozero::pbf_writer fields{bytes_};
  protozero::pbf_writer note{fields, event::kAnnotation};
  note.add_string(annotation::kName, name.data(), name.size());
  note.add_string(annotation::kString, shown);
}

void Fields::set_category(std::string_view category) {
  protozero::pbf_writer{bytes_}.add_string(event::kCategory, category.data(), category.size());
}

void Fields::set_name(std::string_view name) {
  protozero::pbf_writer{bytes_}.add_string(event::kName, exported_name(name));
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
    descriptor.add_string(track::kName, exported_name(name));
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
  ShortFields value;
  value.varint(event::kValue, static_cast<std::uint64_t>(bytes));
  add_event(track, at_ns, event::kCounter, value.bytes());
}

void Packets::add_event(std::uint64_t track, std::int64_t at_ns, std::int32_t type,
                        std::string_view fields) {
  const auto time = static_cast<std::uint64_t>(at_ns);
  const auto kind = static_cast<std::uint64_t>(type);
  const std::size_t event_size = ShortFields::size_of(event::kType, kind) +
                                 ShortFields::size_of(event::kTrack, track) + fields.size();
  const std::size_t size = ShortFields::size_of(packet::kTimestamp, time) +
                           ShortFields::size_of(packet::kSequence, kOurSequence) +
                           ShortFields::size_of(packet::kTrackEvent, event_size) + event_size;
  ShortFields head;
  head.length(trace::kPacket, size);
  head.varint(packet::kTimestamp, time);
  head.varint(packet::kSequence, kOurSequence);
  head.length(packet::kTrackEvent, event_size);
  head.varint(event::kType, kind);
  head.varint(event::kTrack, track);
  unwritten_.append(head.bytes()).append(fields);
  if (unwritten_.size() >= kAtOnce) flush_packed();
}

void Packets::flush_packed() {
#ifdef FORETRACE_HAS_ZLIB
  uLongf size = compressBound(unwritten_.size());
  packed_.resize(size);
  const int result =
      compress2(reinterpret_cast<Bytef*>(packed_.data()), &size,
                reinterpret_cast<const Bytef*>(unwritten_.data()), unwritten_.size(), Z_BEST_SPEED);
  FORETRACE_CHECK(result == Z_OK, "memory for a part of a trace");
  packet_.clear();
  protozero::pbf_writer{packet_}.add_bytes(packet::kCompressed, packed_.data(), size);
  unwritten_.clear();
  add_packet(unwritten_, packet_);
#endif
  flush();
}

void Packets::flush() {
  out_.write(unwritten_.data(), static_cast<std::streamsize>(unwritten_.size()));
  unwritten_.clear();
}

}  // namespace foretrace::perfetto
