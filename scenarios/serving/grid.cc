#include "scenarios/serving/grid.h"

#include <algorithm>

#include "scenarios/serving/traffic.h"

namespace foretrace::serving {
namespace {

/// Powers of `step` from `first`, and `last`.
std::vector<std::int64_t> powers(std::int64_t first, std::int64_t last, std::int64_t step) {
  std::vector<std::int64_t> found;
  for (std::int64_t at = std::min(first, last); at < last; at *= step) found.push_back(at);
  found.push_back(last);
  return found;
}

/// Of a request that decodes: what attention reads grows with them, so four are enough.
std::vector<std::int64_t> contexts(std::int64_t most) {
  return powers(64, std::max<std::int64_t>(most, 65), 8);
}

GridRow decoding_row(const Engine& engine, std::int64_t requests, std::int64_t most,
                     bool is_graph) {
  GridRow row{requests * (1 + engine.guesses()), is_graph, {}};
  for (const std::int64_t keys : contexts(most)) {
    row.batches.push_back(decoding(requests, keys));
    row.batches.back().guesses = requests * engine.guesses();
  }
  return row;
}

GridRow prefilling_row(std::int64_t size, std::int64_t most) {
  GridRow row{size, false, {}};
  for (const std::int64_t cached : {std::int64_t{0}, most / 4, most}) {
    row.batches.push_back(prefilling(size, cached));
  }
  return row;
}

}  // namespace

Batch decoding(std::int64_t requests, std::int64_t keys) {
  return {.decodes = requests, .decode_keys = requests * keys, .longest = keys};
}

Batch prefilling(std::int64_t tokens, std::int64_t cached) {
  return {.chunks = 1,
          .chunk_tokens = tokens,
          .chunk_keys = cached + tokens,
          .chunk_pairs = tokens * cached + tokens * (tokens + 1) / 2};
}

std::vector<GridRow> grid_of(const Serving& serving) {
  const Engine& engine = serving.engine;
  const std::int64_t most = longest(arrivals_of(serving.traffic));
  const std::int64_t requests =
      std::min(engine.max_requests, std::max<std::int64_t>(1, serving.traffic.requests));
  const bool apart = engine.kind == EngineKind::Foretrace;
  std::vector<GridRow> rows;
  // Up to here tokens of an iteration are those that decode; beyond, prompts are among them.
  const std::int64_t decodes = std::min(
      requests, std::max<std::int64_t>(1, engine.max_batched_tokens / (1 + engine.guesses())));
  for (std::int64_t size = 1; size < 2 * decodes; size *= 2) {
    rows.push_back(decoding_row(engine, size, most, apart && engine.cuda_graphs));
  }
  const std::int64_t first = apart ? 2 : 2 * rows.back().size;
  for (const std::int64_t size : powers(first, std::max(first, engine.max_batched_tokens), 2)) {
    rows.push_back(prefilling_row(size, most));
  }
  if (apart && !engine.cuda_graphs) {  // rows of equal sizes: prompts' are as good for both
    std::erase_if(
        rows, [](const GridRow& row) { return row.batches.front().decodes > 0 && row.size > 1; });
  }
  return rows;
}

std::vector<Batch> batches_of(const std::vector<GridRow>& rows) {
  std::vector<Batch> all;
  for (const GridRow& row : rows) all.insert(all.end(), row.batches.begin(), row.batches.end());
  return all;
}

}  // namespace foretrace::serving
