// What plan-serving answers with: rows, a page with throughput against time per token, JSON, CSV.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/applications/serving/choose.h"

namespace foretrace::serving {

/// A scenario and its choices.
struct Planned {
  Serving serving;
  std::vector<Choice> choices;
};

struct Asked {
  Limits limits;
  /// Of a GPU for an hour, in any currency, by machine; "" is of all others.
  std::map<std::string, double> cost;
};

/// Of 10^6 output tokens; empty where nobody said what a GPU costs.
std::optional<double> cost_of(const Asked& asked, const Choice& choice, double tokens_per_gpu_s);

/// "holds, at the slow end of the band too".
std::string verdict_of(const Choice& choice);

/// "5 GPUs of 8xB200, 12 of 8xH100-SXM".
std::string fewest_words(const Planned& planned);

std::string text_of(const Asked& asked, const std::vector<Planned>& planned);
/// What the fewest GPUs of each machine rest on, a line each; empty: nothing to say.
std::string rests_notes(const std::vector<Planned>& planned);
std::string csv_of(const Asked& asked, const std::vector<Planned>& planned);
std::string json_of(const Asked& asked, const std::vector<Planned>& planned);
std::string page_of(const Asked& asked, const std::vector<Planned>& planned);

/// A load of a choice that no other one of its machine outdoes: none gives each user as many
/// tokens a second and each GPU more.
struct Best {
  const Choice* choice = nullptr;
  const Load* load = nullptr;
  double user_tokens_per_s = 0, gpu_tokens_per_s = 0, low = 0, high = 0;
};

/// By machine, from many tokens a second of a user to few.
std::map<std::string, std::vector<Best>> best_of(const std::vector<Choice>& choices);

}  // namespace foretrace::serving
