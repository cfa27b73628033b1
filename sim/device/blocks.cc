// Which kernel gets which SMs: blocks in turn, blocks that stay, and kernels without blocks.
#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"
#include "sim/device/device.h"

namespace foretrace::sim {
namespace {

constexpr std::uint32_t kOwnTiles = 2;  // of a block that stays

}  // namespace

std::uint32_t Device::held_sms() const {
  std::uint32_t held = 0;
  for (const auto& kernel : kernels_) held += kernel->held_sms;
  return held;
}

/// Clusters of two blocks need both SMs of a pair; NCCL's blocks stand one in a pair. Larger ones
/// need SMs beside each other: what blocks leave here and there is none, unless they make way for a
/// kernel of higher priority.
std::uint32_t Device::usable(const Kernel& kernel, std::uint32_t free_sms) const {
  if (kernel.cost.room.pair_loss == 0) return free_sms;
  const auto lost =
      static_cast<std::uint32_t>(std::lround(held_sms() * kernel.cost.room.pair_loss));
  return free_sms - std::min(free_sms, lost);
}

/// How a product's blocks will stay on their SMs, of which it gets so many at first.
void Device::begin_to_stay(Kernel& kernel, std::uint32_t sms) const {
  const std::uint32_t tiles = kernel.cost.waves.blocks;
  const bool several = tiles > limits_.sms;
  kernel.stays = kernel.cost.waves.keeps_its_sms && (held_sms() == 0 || several);
  if (!kernel.stays) return;
  kernel.blocks_left = std::min(limits_.sms, tiles);
  if (!several || sms >= limits_.sms || held_sms() == 0) return;
  if (!limits_.takes(Term::OwnTiles)) return;
  kernel.own_tiles = true;
  // 256 tiles lost 7 % of the clock where they lose 12 % alone (18_pipeline_1f1b): a GPU that waits
  // for late blocks computes less.
  const std::uint32_t waves = (tiles + limits_.sms - 1) / limits_.sms;
  kernel.cost.clock.share *= static_cast<double>(waves) / (waves + kOwnTiles);
  kernel.tiles_of_nobody = tiles - std::min(tiles, kOwnTiles * limits_.sms);
}

/// Each of nvjet's blocks, one for each SM of the GPU, has two tiles of its own however late it
/// begins; who is done with those takes further ones, until there are none. Beside NCCL's kernels
/// some blocks wait until others end: 256 tiles on 132 SMs take four times as long as a tile, not
/// three times, and 512 take six times (spans of 18_pipeline_1f1b, 33_zero_optimizer and
/// 35_stragglers of written-7, two H200s).
std::uint32_t Device::give_own_tiles(Kernel& kernel, std::uint32_t free_sms) {
  const std::uint32_t blocks = limits_.sms;
  const std::uint32_t with_two = kernel.cost.waves.blocks - kernel.tiles_of_nobody - blocks;
  const std::uint32_t begun = blocks - kernel.blocks_left;
  const std::uint32_t given = std::min(free_sms, kernel.blocks_left);
  const std::uint32_t longer = std::min(given, with_two - std::min(with_two, begun));
  if (longer > 0) start_job(kernel, longer, kOwnTiles);
  if (given > longer) start_job(kernel, given - longer, 1);
  kernel.blocks_left -= given;
  return given;
}

/// Blocks that stay: one on each SM computes its share of the tiles and leaves. Nobody else gets
/// the SM before.
std::uint32_t Device::give_to_stay(Kernel& kernel, std::uint32_t free_sms) {
  if (kernel.own_tiles) return give_own_tiles(kernel, free_sms);
  const std::uint32_t blocks = std::min(limits_.sms, kernel.cost.waves.blocks);
  const std::uint32_t with_one_more = kernel.cost.waves.blocks % blocks;
  std::uint32_t given = std::min(free_sms, kernel.blocks_left);
  const std::uint32_t begun = blocks - kernel.blocks_left;
  const std::uint32_t longer = std::min(given, with_one_more - std::min(with_one_more, begun));
  if (longer > 0) start_job(kernel, longer, kernel.cost.waves.blocks / blocks + 1);
  if (given > longer) start_job(kernel, given - longer, kernel.cost.waves.blocks / blocks);
  kernel.blocks_left -= given;
  return given;
}

/// Blocks go to free SMs; alone on the whole GPU, all full waves at once.
std::uint32_t Device::give_blocks(Kernel& kernel, std::uint32_t free_sms) {
  const std::uint32_t sms = std::min(usable(kernel, free_sms), kernel.blocks_left);
  if (sms == 0) return 0;
  if (!kernel.began && kernel.running == 0) {
    begin_to_stay(kernel, sms);
    slow_down(kernel);
  }
  if (kernel.stays) return give_to_stay(kernel, sms);
  const bool last_is_apart = kernel.cost.waves.last_time > Duration{0};
  const std::uint32_t last = last_is_apart ? (kernel.cost.waves.blocks - 1) % limits_.sms + 1 : 0;
  std::uint32_t given = 0;
  if (kernel.blocks_left > last) {
    given = std::min(sms, kernel.blocks_left - last);
    const std::uint32_t waves = given == limits_.sms ? (kernel.blocks_left - last) / given : 1;
    start_job(kernel, given, waves);
    kernel.blocks_left -= given * waves;
  }
  if (sms > given) start_last(kernel, sms - given);
  return sms;
}

/// All blocks of a memory-bound kernel have begun: what it has runs on, and others may begin.
bool Device::in_last_blocks(const Job& job) const {
  const Duration last = job.kernel->cost.room.last_blocks;
  return last > Duration{0} && job.speed > 0 && left(job) <= last;
}

/// A kernel without blocks runs on whatever SMs are left over.
std::uint32_t Device::give_share(Kernel& kernel, std::uint32_t free_sms) {
  std::uint32_t room = free_sms;
  for (const Job& job : jobs_) {
    const bool beside = kernel.cost.room.takes_no_sm && job.kernel->cost.room.leaves_room;
    if (beside) room += job.sms;
  }
  const std::uint32_t sms = std::min(room, kernel.cost.sms);
  const auto job = std::ranges::find(jobs_, &kernel, &Job::kernel);
  if (job != jobs_.end()) {
    if (in_last_blocks(*job)) return 0;
    job->sms = sms;
  } else if (sms > 0) {
    slow_down(kernel);
    jobs_.push_back({.kernel = &kernel,
                     .sms = sms,
                     .waves = 1,
                     .alone = kernel.cost.alone,
                     .since = engine_.now()});
    ++kernel.running;
  }
  return sms;
}

/// A kernel of higher priority comes beside one that uses all of the memory's bandwidth: it waits
/// for a block of that one whose place it gets, and its own data wait as long in the same queues,
/// less where that one ends before. A memory-bound kernel right behind another waits less for its
/// data.
Duration Device::wait_for_places(Kernel& kernel) const {
  constexpr Duration kAtOnce = std::chrono::microseconds{2};
  static const double kInARow = constant("device.in_a_row");
  if (kernel.held || !limits_.takes(Term::WaitForPlaces)) return Duration{0};
  const bool follows = kernel.owner == waited_ && engine_.now() <= waited_until_ + kAtOnce;
  const bool in_a_row = follows && kernel.cost.waves.blocks == 0 && limits_.takes(Term::InARow);
  const double waits = kernel.cost.room.data_waits * (in_a_row ? kInARow : 1);
  Duration places{0};
  Duration data{0};
  for (const Job& job : jobs_) {
    if (job.kernel->priority <= kernel.priority || job.speed <= 0) continue;
    const cost::KernelCost& busy = job.kernel->cost;
    const Duration block = kernel.cost.room.fills_an_sm ? busy.room.drain_of_all : busy.room.drain;
    const Duration rest = left(job);
    const Duration place = std::min(block, rest);
    places = std::max(places, place);
    data = std::max(data, stretched(std::min(block, rest - place), std::min(waits, 1.0)) +
                              stretched(block, std::max(0.0, waits - 1)));
  }
  kernel.waited = places > Duration{0};
  kernel.cost.alone += data;
  if (kernel.cost.then > Duration{0}) kernel.cost.then += 2 * places;  // its place, and its data
  return places;
}

}  // namespace foretrace::sim
