// One function for each kind of expectation: what it means stands at judge() in expectations.h.
// Internal to reports/.
#pragma once

#include <string>
#include <utility>

#include "reports/judge/expectations.h"

namespace foretrace {

inline Verdict broken(std::string why) { return {Held::No, std::move(why)}; }

Verdict judge_overlap(const Expectation& expectation, const Timeline& timeline);

Verdict judge_order(const Expectation& expectation, const Timeline& timeline);
Verdict judge_returns_before(const Expectation& expectation, const Timeline& timeline);
Verdict judge_returns_after(const Expectation& expectation, const Timeline& timeline);
Verdict judge_begins_within(const Expectation& expectation, const Timeline& timeline);

Verdict judge_host_call(const Expectation& expectation, const Timeline& timeline);
Verdict judge_lasts(const Expectation& expectation, const Timeline& timeline);
Verdict judge_total(const Expectation& expectation, const Timeline& timeline);
Verdict judge_ratio(const Expectation& expectation, const Timeline& timeline);

Verdict judge_channels(const Expectation& expectation, const Timeline& timeline);

Verdict judge_fails(const Expectation& expectation, const Timeline& timeline);
Verdict judge_hangs(const Expectation& expectation, const Timeline& timeline);

}  // namespace foretrace
