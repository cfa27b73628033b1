// With a GPU: copies between it and pageable memory, and the driver's own within the host's.
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "hw/host/driver_device.h"
#include "hw/host/pages.h"

namespace foretrace::hw {
namespace {

using enum MeasuredUnit;
using CopyValues = std::vector<double>;
using SharedDevice = std::shared_ptr<DriverDevice>;

enum class Source { Rewritten, Again };

/// From its call to the stream's end.
double upload(const DriverDevice& on, const HostPages& from, std::size_t bytes, Source source) {
  const auto copy = [&] {
    cuda_check(cudaMemcpyAsync(on.memory, from.data(), bytes, cudaMemcpyHostToDevice, on.stream));
    cuda_check(cudaStreamSynchronize(on.stream));
  };
  if (source == Source::Rewritten) {
    std::memset(from.data(), 1, from.bytes());
  } else {
    for (int i = 0; i < 3; ++i) copy();
  }
  return seconds_of(copy);
}

/// The largest size whose bytes come nearer to as fast as from a cache than as from memory when an
/// upload reads them once more; none of them: the smallest.
double upload_cache(const DriverDevice& on, const HostPages& from, double memory, double cache) {
  constexpr std::size_t kFirst = 16 * kMi;
  const double between = std::sqrt(memory * cache);
  std::size_t found = kFirst;
  for (const std::size_t bytes : {24 * kMi, 32 * kMi, 40 * kMi, 48 * kMi, 64 * kMi}) {
    const double seconds = upload(on, from, bytes, Source::Again);
    if (static_cast<double>(bytes) / seconds < between) break;
    found = bytes;
  }
  return static_cast<double>(found);
}

double download(const DriverDevice& on, const HostPages& to, std::size_t bytes) {
  return seconds_of([&] {
    cuda_check(cudaMemcpyAsync(to.data(), on.memory, bytes, cudaMemcpyDeviceToHost, on.stream));
    cuda_check(cudaStreamSynchronize(on.stream));
  });
}

/// Of one of a storm of small ones, each from another place, until the last one has ended.
double small_upload(const DriverDevice& on, const HostPages& from, std::size_t bytes) {
  constexpr std::size_t kStorm = 512;
  const std::size_t step = from.bytes() / kStorm;
  const auto storm = [&] {
    for (std::size_t i = 0; i < kStorm; ++i) {
      cuda_check(cudaMemcpyAsync(on.memory, from.chars() + i * step, bytes, cudaMemcpyHostToDevice,
                                 on.stream));
    }
    cuda_check(cudaStreamSynchronize(on.stream));
  };
  storm();
  return seconds_of(storm) / kStorm;
}

Probe uploads(const SharedDevice& device) {
  auto large = std::make_shared<HostPages>(64 * kMi);
  return {{{"copy.pageable_h2d_bandwidth", Rate},
           {"copy.pageable_h2d_cached_bandwidth", Rate},
           {"copy.pageable_h2d_core_bandwidth", Rate},
           {"copy.pageable_h2d", Time},
           {"pageable upload, one of many", Time, "4KiB"},
           {"node.upload_cache", Size},
           {"pageable upload of the same memory again", Rate, "64MiB"},
           {"pageable upload", Time, "64KiB"},
           {"pageable upload, waited for", Time, "1MiB"}},
          [=] {
            const auto at = [&](std::size_t bytes, Source source) {
              return upload(*device, *large, bytes, source);
            };
            const double memory = slope(16 * kMi, at(16 * kMi, Source::Rewritten), 64 * kMi,
                                        at(64 * kMi, Source::Rewritten));
            const double cache =
                slope(4 * kMi, at(4 * kMi, Source::Again), 16 * kMi, at(16 * kMi, Source::Again));
            return CopyValues{
                memory,
                cache,
                slope(256 * kKi, at(256 * kKi, Source::Again), kMi, at(kMi, Source::Again)),
                base(2 * kKi, small_upload(*device, *large, 2 * kKi), memory),
                small_upload(*device, *large, 4 * kKi),
                upload_cache(*device, *large, memory, cache),
                static_cast<double>(64 * kMi) / at(64 * kMi, Source::Again),
                at(64 * kKi, Source::Rewritten),
                at(kMi, Source::Rewritten)};
          }};
}

Probe downloads(const SharedDevice& device) {
  auto touched = std::make_shared<HostPages>(64 * kMi);
  std::memset(touched->data(), 1, touched->bytes());
  return {{{"copy.pageable_d2h_bandwidth", Rate},
           {"copy.pageable_d2h_first_bandwidth", Rate},
           {"copy.fresh_d2h_bandwidth", Rate},
           {"pageable download to fresh pages of 4 KiB", Rate, "64MiB"},
           {"pageable download to fresh pages of 2 MiB", Rate, "64MiB"},
           {"pageable download", Time, "64KiB"},
           {"pageable download, waited for", Time, "1MiB"}},
          [=] {
            const DriverDevice& on = *device;
            const auto fresh = [&](std::size_t bytes, PageKind kind) {
              return download(on, HostPages{bytes, kind}, bytes);
            };
            const auto at = [&](std::size_t bytes) { return download(on, *touched, bytes); };
            const auto block = static_cast<double>(64 * kMi);
            return CopyValues{slope(16 * kMi, at(16 * kMi), 64 * kMi, at(64 * kMi)),
                              slope(256 * kKi, at(256 * kKi), kMi, at(kMi)),
                              slope(16 * kMi, fresh(16 * kMi, PageKind::Usual), 64 * kMi,
                                    fresh(64 * kMi, PageKind::Usual)),
                              block / fresh(64 * kMi, PageKind::Small),
                              block / fresh(64 * kMi, PageKind::Huge),
                              at(64 * kKi),
                              at(kMi)};
          }};
}

/// cudaMemcpy from host to host: the driver's own loop.
Probe host_copies() {
  auto from = std::make_shared<HostPages>(64 * kMi);
  auto to = std::make_shared<HostPages>(64 * kMi);
  std::memset(from->data(), 1, from->bytes());
  std::memset(to->data(), 1, to->bytes());
  return {{{"host.copy_bandwidth", Rate},
           {"host.copy_cached_bandwidth", Rate},
           {"host.memcpy_host", Time},
           {"cudaMemcpy between host buffers", Time, "4KiB"}},
          [=] {
            const auto copy = [&](std::size_t bytes, Source source) {
              const auto once = [&] {
                cuda_check(cudaMemcpy(to->data(), from->data(), bytes, cudaMemcpyHostToHost));
              };
              if (source == Source::Rewritten) std::memset(from->data(), 1, from->bytes());
              if (source == Source::Again) {
                for (int i = 0; i < 3; ++i) once();
              }
              return seconds_of(once);
            };
            // Small ones from one place after the other, as rows are gathered.
            const auto row = [&](std::size_t bytes) {
              constexpr std::size_t kRow = 64, kStep = kMi;
              return seconds_of([&] {
                       for (std::size_t i = 0; i < kRow; ++i) {
                         cuda_check(cudaMemcpy(to->chars() + i * bytes, from->chars() + i * kStep,
                                               bytes, cudaMemcpyHostToHost));
                       }
                     }) /
                     kRow;
            };
            const double small = row(4 * kKi), middle = row(64 * kKi);
            const double rate = slope(4 * kKi, small, 64 * kKi, middle);
            return CopyValues{
                slope(16 * kMi, copy(16 * kMi, Source::Rewritten), 64 * kMi,
                      copy(64 * kMi, Source::Rewritten)),
                slope(kMi, copy(kMi, Source::Again), 8 * kMi, copy(8 * kMi, Source::Again)),
                base(4 * kKi, small, rate), small};
          }};
}

}  // namespace

std::vector<Probe> copy_probes(const std::shared_ptr<DriverDevice>& device) {
  return {uploads(device), downloads(device), host_copies()};
}

}  // namespace foretrace::hw
