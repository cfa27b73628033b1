// The keys of a trace's events that say something to us: a trace has a hundred million others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace foretrace::capture {

/// Keys that are looked at, of events and of their `args`.
enum class Key : std::uint8_t {
  Other,
  Args,
  Category,
  CollectiveName,
  Correlation,
  DataType,
  Device,
  DeviceType,
  Duration,
  External,
  Grid,
  GroupSize,
  InputSize,
  Name,
  OutputSize,
  Phase,
  Ranks,
  Record,
  Sms,
  Stream,
  SyclQueue,
  Thread,
  Time,
  TotalAllocated,
  TotalReserved,
  WaitsOn
};

inline Key key_of(std::string_view name) {
  constexpr std::size_t kLongest = 33;
  struct Row {
    std::string_view name;
    Key key;
  };
  static constexpr std::array<Row, 27> kRows{{{"ph", Key::Phase},
                                              {"ts", Key::Time},
                                              {"cat", Key::Category},
                                              {"dur", Key::Duration},
                                              {"tid", Key::Thread},
                                              {"args", Key::Args},
                                              {"grid", Key::Grid},
                                              {"name", Key::Name},
                                              {"dtype", Key::DataType},
                                              {"device", Key::Device},
                                              {"numSms", Key::Sms},
                                              {"stream", Key::Stream},
                                              {"Device Id", Key::Device},
                                              {"Group size", Key::GroupSize},
                                              {"sycl queue", Key::SyclQueue},
                                              {"Device Type", Key::DeviceType},
                                              {"External id", Key::External},
                                              {"correlation", Key::Correlation},
                                              {"external id", Key::External},
                                              {"In msg nelems", Key::InputSize},
                                              {"Out msg nelems", Key::OutputSize},
                                              {"Total Reserved", Key::TotalReserved},
                                              {"wait_on_stream", Key::WaitsOn},
                                              {"Collective name", Key::CollectiveName},
                                              {"Total Allocated", Key::TotalAllocated},
                                              {"Process Group Ranks", Key::Ranks},
                                              {"wait_on_cuda_event_record_corr_id", Key::Record}}};
  // By the name's length: the first row that is as long or longer.
  static constexpr auto kFirst = [] {
    std::array<std::uint8_t, kLongest + 2> first{};
    for (std::size_t size = 0; size < first.size(); ++size) {
      std::size_t row = 0;
      while (row < kRows.size() && kRows[row].name.size() < size) ++row;
      first[size] = static_cast<std::uint8_t>(row);
    }
    return first;
  }();
  if (name.size() > kLongest) return Key::Other;
  for (std::size_t row = kFirst[name.size()]; row < kFirst[name.size() + 1]; ++row) {
    if (kRows[row].name == name) return kRows[row].key;
  }
  return Key::Other;
}

}  // namespace foretrace::capture
