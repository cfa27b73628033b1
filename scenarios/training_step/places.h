// Where each process of a training step stands: its pipeline stage, replica and shard, and the
// process groups that follow.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/training_step/description.h"

namespace foretrace::training {

/// Ranks in Megatron's order: tensor parallel neighbours first, then context, data, pipeline.
struct Place {
  std::int64_t stage = 0;
  std::int64_t replica = 0;  ///< of TrainingStep::replicas()
  std::int64_t shard = 0;
};
Place place_of(const TrainingStep& step, std::int64_t process);
std::int64_t process_at(const TrainingStep& step, const Place& place);

/// Processes of the group of each kind, ascending.
std::vector<std::int64_t> tensor_ranks(const TrainingStep& step, const Place& place);
std::vector<std::int64_t> data_ranks(const TrainingStep& step, const Place& place);
/// Neighbours that split a sequence: `replica` counts them before those with other sequences.
std::vector<std::int64_t> context_ranks(const TrainingStep& step, const Place& place);
struct ContextNeighbours {
  std::int64_t position = 0;            ///< in the ring
  std::int64_t previous = 0, next = 0;  ///< processes
};
ContextNeighbours context_neighbours(const TrainingStep& step, const Place& place);
/// TrainingStep::neighbours() that share a layer's experts or a copy of all parameters, and those
/// that hold the same part.
std::vector<std::int64_t> neighbour_ranks(const TrainingStep& step, const Place& place);
std::vector<std::int64_t> same_part_ranks(const TrainingStep& step, const Place& place);
/// The first and the last stage, which hold a tied embedding both.
std::vector<std::int64_t> embedding_ranks(const TrainingStep& step, const Place& place);
/// Whether this stage's gradients of a tied embedding are added to another stage's.
bool shares_embedding(const TrainingStep& step, std::int64_t stage);

/// Processes that are enough to simulate, ascending. Two are alike when they run the same calls
/// and everything around them is alike: the nodes that their groups lie on, whom they send to, and
/// so on for those in turn. Of each kind in each group of a chosen process one is chosen, and
/// everybody to whom it sends, so that nobody who is simulated misses a partner whose time could
/// differ. Alike processes do the same at the same time: on several nodes that lie evenly this is
/// one for each pipeline stage.
std::vector<std::int64_t> one_of_each(const TrainingStep& step);

}  // namespace foretrace::training
