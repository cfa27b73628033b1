// How the keys of one operation become the fields of its struct in ops.h, and the table of all
// operations. Internal to scenarios/.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "scenarios/read/reader.h"

namespace foretrace {

/// Which memory an operation accepts, as a set.
enum Memories : unsigned {
  kDeviceMemory = 1U << static_cast<unsigned>(MemoryKind::Device),
  kPinnedMemory = 1U << static_cast<unsigned>(MemoryKind::Pinned),
  kPageableMemory = 1U << static_cast<unsigned>(MemoryKind::Pageable) |
                    1U << static_cast<unsigned>(MemoryKind::FreshPageable),
  kHostMemory = kPinnedMemory | kPageableMemory,
  kAnyMemory = kDeviceMemory | kHostMemory,
};

/// The keys of one operation. Absent optional keys give their default; whatever is wrong is
/// reported and gives something harmless.
class OpFields {
 public:
  OpFields(Reader& reader, MapReader& map)
      : reader_{reader}, map_{map}, errors_before_{map.errors_before()} {}

  Reader& reader() { return reader_; }
  MapReader& map() { return map_; }
  Program& program() { return reader_.program; }

  StreamRef stream();  ///< default: the legacy default stream of device 0
  EventRef event(std::string_view key = "event");
  SignalRef signal(std::string_view key = "signal");
  std::optional<SignalRef> signal_or_none(std::string_view key);
  GraphRef graph();
  CommRef comm();
  CommRef group();  ///< the handle of a process group's communicator
  EventRef work();  ///< made at its first mention, unless `events:` declares it
  BufferRef buffer(std::string_view key, unsigned memories);
  BufferRef buffer_at(const YamlNode& node, std::string_view key, unsigned memories);
  DurationExpr duration(std::string_view key);
  Expr number(std::string_view key, std::int64_t low, std::int64_t high = kNoLimit);
  Expr number_or(std::string_view key, std::int64_t otherwise, std::int64_t low, std::int64_t high);
  bool flag(std::string_view key);  ///< true or false; default: false
  DataType type();                  ///< default: float32
  DataType product_type();          ///< of gemm: what both executors multiply; default: float32
  /// Of gemm's `result`, where it is another one than such operands make.
  std::optional<DataType> result_type(DataType operands);
  DataType required_type();
  RedOp red_op();  ///< default: sum

  /// Of a reference into a family of unequal size whose index varies: the largest one.
  const Buffer& buffer_of(const BufferRef& ref) const;
  bool is_uneven(const BufferRef& ref) const;
  const Communicator& communicator_of(const CommRef& ref) const;
  ProcessGroup& group_of(const CommRef& ref);

  /// The key `size`: at most `largest`, which is also the default; elements of `type` whole.
  BytesExpr size_up_to(Bytes largest, std::string_view of_what);
  BytesExpr typed_size_up_to(Bytes largest, std::string_view of_what, DataType type);
  /// `offset` + `size` stays within the buffer.
  void require_within(const BufferRef& ref, const Expr& offset, const Expr& size,
                      std::string_view buffer_key);
  /// The buffer holds `needed` bytes in every iteration.
  void require_capacity(const BufferRef& ref, const std::optional<Expr>& needed,
                        std::string_view buffer_key);
  /// The two are never one buffer, as far as they are followed; `why` not.
  void require_apart(const BufferRef& ref, std::string_view key, const BufferRef& other,
                     std::string_view other_key, std::string_view why);

  /// What `key` says is a multiple of `of` whenever it is computed, as far as loops are followed;
  /// `why` it must be.
  void require_multiple(const Expr& value, std::string_view key, std::int64_t of,
                        std::string_view why);

  /// Points at the value of `key`, or at the operation where it is absent.
  const YamlNode& where(std::string_view key) const;

  /// Nothing was wrong with this operation so far: comparing its fields makes sense.
  bool is_sound() const {
    return !uses_broken_ && reader_.problems.error_count() == errors_before_;
  }

 private:
  template <class Tag>
  Ref<Tag> reference(std::string_view key, std::string_view what, const Families& families);
  template <class Tag>
  Ref<Tag> reference_at(const YamlNode& node, std::string_view what, const Families& families);

  void report_part_of_element(DataType type);
  /// `size`, said at `at`, stays within each buffer that it meets.
  void require_fits_uneven(const BufferRef& ref, const Expr& size, const YamlNode& at);

  Reader& reader_;
  MapReader& map_;
  std::size_t errors_before_;
  std::vector<BufferRef> uneven_;  ///< read so far
  bool takes_type_ = false;        ///< has a key 'type'
  bool uses_broken_ = false;       ///< names an object whose declaration has errors
  ProcessGroup no_group_;          ///< where the reference is broken
};

/// How one operation is written in a scenario.
struct OpSyntax {
  std::string_view name;
  std::string_view keys;     ///< optional ones in brackets
  std::string_view summary;  ///< one line for `foretrace list ops`
  OpKind (*read)(OpFields&);
};

/// The words of `type:`, of gemm's, and of `op:`, and which of them a value has.
std::string_view type_word(DataType type);
std::string_view operator_word(RedOp op);
std::vector<std::string> type_words();
std::vector<std::string> product_type_words();
std::vector<std::string> operator_words();

std::span<const OpSyntax> host_ops();
std::span<const OpSyntax> kernel_ops();
std::span<const OpSyntax> copy_ops();
std::span<const OpSyntax> order_ops();
std::span<const OpSyntax> memory_ops();
std::span<const OpSyntax> nccl_ops();
/// All of these, by name.
const std::map<std::string_view, const OpSyntax*>& simple_ops();

/// Blocks; read_threads.cc reads them.
struct BlockSyntax {
  std::string_view name;
  std::string_view keys;
  std::string_view summary;
};
std::span<const BlockSyntax> block_ops();

}  // namespace foretrace
