// Packets of Perfetto's trace format (protos/perfetto/trace/*.proto): tracks, slices, curves.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace foretrace::perfetto {

/// Fields of a slice, encoded, in any order. What many slices have in common is encoded once.
class Fields {
 public:
  void annotate(std::string_view name, std::uint64_t value);
  void annotate(std::string_view name, std::string_view value);  ///< not where it is empty
  void set_category(std::string_view category);
  void set_name(std::string_view name);
  void begin_arrow(std::uint64_t arrow);
  void end_arrow(std::uint64_t arrow);

  void append(const Fields& more) { bytes_ += more.bytes_; }
  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Packets in the order of the calls. Long traces are compressed, as Perfetto reads them: a packet
/// that holds others, packed by zlib.
class Packets {
 public:
  explicit Packets(std::ostream& out) : out_{out} {}

  /// Its number. `parent`: another track's, or 0. `rank`: its place among its parent's tracks.
  /// `counts_bytes`: a curve instead of slices.
  std::uint64_t add_track(std::string_view name, std::uint64_t parent, std::int32_t rank,
                          bool counts_bytes = false);
  /// Slices of a track nest: an end is that of the last one begun.
  void begin_slice(std::uint64_t track, std::int64_t at_ns, const Fields& fields);
  void end_slice(std::uint64_t track, std::int64_t at_ns);
  void set_curve(std::uint64_t track, std::int64_t at_ns, std::int64_t bytes);
  void flush();  ///< behind the last call: writes what is not in the stream yet

 private:
  void flush_packed();
  void add_event(std::uint64_t track, std::int64_t at_ns, std::int32_t type,
                 std::string_view fields);

  std::ostream& out_;
  std::string packet_, unwritten_, packed_;
  std::uint64_t next_track_ = 1;
};

}  // namespace foretrace::perfetto
