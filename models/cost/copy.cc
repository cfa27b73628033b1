#include "models/cost/copy.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "models/constants/constants.h"

namespace foretrace::cost {
namespace {

using enum Param;

/// The links of a route that its copies share with others, beside the cap of a single copy.
double link_rate(Reading& read, Route route) {
  const auto least = [&](std::initializer_list<Param> links) {
    double rate = read.rate(*links.begin());
    for (const Param link : links) rate = std::min(rate, read.rate(link));
    return rate;
  };
  switch (route) {
    case Route::PinnedToDevice:
    case Route::PageableToDevice:
      return least({HostLinkBandwidth, H2dBandwidth, DuplexBandwidth});
    case Route::DeviceToPinned:
    case Route::DeviceToPageable:
      return least({HostLinkBandwidth, D2hBandwidth, DuplexBandwidth});
    case Route::PeerDirect:
      return read.rate(NvlinkBandwidth);
    case Route::PeerStaged:
      return least({D2hBandwidth, H2dBandwidth});
    case Route::HostToHost:
      break;
  }
  return read.rate(HostCopyBandwidth);
}

Param pageable_upload_rate(Reading& read, const Copy& copy) {
  if (copy.from_core && share_in_core(read, copy.size) == 1) return PageableH2dCore;
  return copy.from_cache ? PageableH2dCached : PageableH2dBandwidth;
}

}  // namespace

/// Of 50 MB that two threads stage for a loader in turn nothing is there when it is read again
/// (03_loader_with_staging of blind round written-7, on an H200 and an H100).
bool is_in_cache(Reading& read, const RecentReads& memory, Bytes size) {
  const Param least = memory.by_host_copies ? KeptCache : UploadCache;
  return memory.reads >= kReadsIntoCache && memory.read >= size &&
         memory.touched <= read.size(read.has(least) ? least : HostCache).count;
}

double share_in_core(Reading& read, Bytes size) {
  if (!read.has(PageableH2dCore) || !read.has(CoreCache)) return 0;
  constexpr double kBoth = 2;
  const double both = kBoth * static_cast<double>(size.count);
  const auto cache = static_cast<double>(read.size(CoreCache).count);
  return both <= cache ? 1 : cache / both;
}

Param copy_call(const Machine& machine, Route route) {
  switch (route) {
    case Route::PageableToDevice:
      return PageableH2dBase;
    case Route::DeviceToPageable:
      return PageableD2hBase;
    case Route::PeerDirect:
    case Route::PeerStaged:
      return HostMemcpyPeer;
    case Route::HostToHost:
      if (machine.has(HostMemcpyHost)) return HostMemcpyHost;
      break;
    case Route::PinnedToDevice:
    case Route::DeviceToPinned:
      break;
  }
  return HostMemcpyAsync;
}

bool travels_with_the_call(Reading& read, const Copy& copy) {
  return copy.route == Route::PageableToDevice && copy.size <= read.size(SmallPageableLimit);
}

bool is_fetched_in_pieces(Reading& read, const Copy& copy) {
  return copy.route == Route::DeviceToPageable && copy.size > read.size(SmallPageableLimit);
}

Duration stage_time(Reading& read, const Copy& copy, Bytes size) {
  const auto time = [&](Bytes of, Param rate) {
    return at_rate(of, std::min(read.rate(rate), read.rate(H2dBandwidth)));
  };
  const Param rate = pageable_upload_rate(read, copy);
  if (!copy.from_core || rate == PageableH2dCore) return time(size, rate);
  const double share = share_in_core(read, copy.size);
  const Bytes in_core{static_cast<std::uint64_t>(static_cast<double>(size.count) * share)};
  return time(in_core, PageableH2dCore) + time(size - in_core, rate);
}

/// Long uploads go through the host's buffers piece by piece.
Bytes last_piece(Bytes size) {
  static const std::uint64_t kPiece = constant_size("copy.staged_piece").count;
  return size.count == 0 ? Bytes{} : Bytes{(size.count - 1) % kPiece + 1};
}

Bytes staged_during_the_call(Reading& read, const Copy& copy) {
  const bool known = copy.route == Route::PageableToDevice && read.has(StagedUpload);
  if (!known || travels_with_the_call(read, copy)) return {};
  return std::min(copy.size, read.size(StagedUpload));
}

Duration copy_call_time(Reading& read, const Call& call, const Copy& copy) {
  const Duration time = call_time(read, call);
  if (copy.route == Route::HostToHost) {  // the driver's own memcpy
    const double memory = read.rate(HostCopyBandwidth);
    const bool cached = copy.from_cache && read.has(HostCopyCached);
    const double rate = cached ? std::max(memory, read.rate(HostCopyCached)) : memory;
    return time + at_rate(copy.size, rate) + touch_time(read, copy.fresh);
  }
  if (copy.staged.count > 0) {
    // Memory to stage in is one more thing to ask for: 110 to 270 KiB take 1 to 2 us more than
    // their bytes and a small copy's call (pageable_copies of blind rounds 29 to 32).
    return time + read.time(PageableH2dBase) + stage_time(read, copy, copy.staged);
  }
  if (!travels_with_the_call(read, copy)) return time;
  // The same 64 KiB again and again: 7 to 9 us a call (hw/laboratory/causes, upload_async_64KiB).
  const bool cached = copy.from_cache && read.has(PageableH2dCached);
  const double rate = read.rate(SmallPageableBandwidth);
  return time + at_rate(copy.size, cached ? std::max(rate, read.rate(PageableH2dCached)) : rate);
}

EngineCost engine_cost(Reading& read, const Copy& copy) {
  switch (copy.route) {
    case Route::PinnedToDevice:
      return {read.time(H2dLatency), copy.size, H2dBandwidth};
    case Route::DeviceToPinned:
      return {read.time(D2hLatency), copy.size, D2hBandwidth};
    case Route::PageableToDevice: {
      const Duration latency = read.time(H2dLatency);
      // Of the stream, not of the link: 3.4, 4.9 and 5.3 us for 32, 49 and 64 KiB (pageable_copies
      // of blind rounds 20 and 30 with spans on an H200).
      if (travels_with_the_call(read, copy)) {
        const Duration part = read.takes(Term::UploadInCall) ? latency * 2 / 3 : latency;
        return {part, copy.size, pageable_upload_rate(read, copy)};
      }
      if (copy.staged.count == 0) return {latency, copy.size, pageable_upload_rate(read, copy)};
      if (copy.staged == copy.size) return {latency, copy.size, H2dBandwidth};
      return {latency + at_rate(copy.staged, read.rate(H2dBandwidth)), copy.size - copy.staged,
              pageable_upload_rate(read, copy)};
    }
    case Route::PeerDirect:
      return {read.time(P2pLatency), copy.size, P2pShare};
    case Route::PeerStaged: {
      // The latency is a long copy's, whose first piece is on its way to the host while nothing
      // arrives yet.
      static const Bytes kFirst = constant_size("copy.p2p_staged_first_size");
      const Duration latency = read.time(P2pStagedLatency);
      const bool overlaps = !read.has(P2pStagedFirst) || !read.takes(Term::FirstStaged);
      if (copy.size >= kFirst || overlaps) {
        return {latency, copy.size, P2pStagedBandwidth};
      }
      const Duration first = std::min(latency, read.time(P2pStagedFirst));
      const double missing =
          1 - static_cast<double>(copy.size.count) / static_cast<double>(kFirst.count);
      const Duration sooner = seconds_to_duration(to_seconds(first) * missing);
      return {latency - sooner, copy.size, P2pStagedBandwidth};
    }
    case Route::DeviceToPageable:
      break;
    case Route::HostToHost:
      return {};  // no engine takes part
  }
  const Duration latency = read.time(D2hLatency);
  if (copy.fresh.count > copy.size.count - copy.fresh.count) {
    return {latency, copy.size, FreshD2hBandwidth};
  }
  // The first pieces do not overlap with anything.
  const Bytes first = std::min(copy.size, read.size(PageableD2hFirst));
  return {latency + at_rate(first, read.rate(PageableD2hFirstBandwidth)), copy.size - first,
          PageableD2hBandwidth};
}

Duration copy_time(Reading& read, const Copy& copy) {
  const EngineCost engine = engine_cost(read, copy);
  if (engine.bytes.count == 0) return engine.latency;
  const double rate = std::min(link_rate(read, copy.route), read.rate(engine.rate));
  return engine.latency + at_rate(engine.bytes, rate);
}

}  // namespace foretrace::cost
