// What no GPU and no library does, whatever a record says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scenarios/captured/record.h"

namespace foretrace::captured {

/// Of a record: its bytes, how deep its lines nest.
inline constexpr std::size_t kLargestRecord = std::size_t{512} << 20;
inline constexpr int kDeepest = 32;

/// Of a tensor, and of an operation.
inline constexpr std::size_t kMostDimensions = 64;
inline constexpr std::size_t kMostTensors = std::size_t{1} << 17;

/// Nanoseconds: between the step and a call; a reference loop, as host files have it.
inline constexpr std::int64_t kLongest = 10'000'000'000'000;
inline constexpr double kShortestLoop = 1e5, kLongestLoop = 1e10;

/// Of a tensor: sums of some of them fit into 64 bits.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 44;

/// Of a block.
inline constexpr std::uint64_t kMostThreads = 1024;

/// What a scenario takes.
inline constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 48;

/// Elements or bytes of a call.
inline constexpr std::uint64_t kMostMoved = std::uint64_t{1} << 40;

/// Names of regions become part of a scenario.
bool is_region_name(std::string_view name);

/// Of the captured script, 16 hexadecimal digits; empty: an older capture does not say it.
bool is_script_digest(std::string_view text);

/// What is wrong with a product's sizes; empty where nothing is.
std::string why_no_product(const Call& call);

/// The same of a collective's kind, reduction and ranks.
std::string why_no_collective(const Call& call, const Record& record);

/// The same of its time; `latest` is that of the last call that the host made, not a graph.
std::string why_backwards(const Call& call, std::int64_t& latest);

}  // namespace foretrace::captured
