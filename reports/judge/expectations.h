// What a scenario states about its own timeline (`expect:`), judged on a predicted or a measured
// one by the same rules.
#pragma once

#include <string>

#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// Elsewhere: the scenario says it of other machines (`on`, `not_on`).
enum class Held { Yes, No, Undecided, Elsewhere };

struct Verdict {
  Held held = Held::No;
  std::string found;  ///< the number that was judged, or why there is none
};

/// `overlap [a, b]`: while device spans of label b run (in the same process, when b runs there),
///   device spans of label a run for at least this share of all of a's device time. With a = b:
///   while another span of that label runs.
/// `order first, then`: no span of `then` begins before the span of `first` with the same process
///   and instance ends (before the only one of its process, or of all, when loops differ). Device
///   spans where the operation has any, else its host calls. Between different devices or
///   processes a distance below the clocks' error bound is not judged; with nothing else to judge
///   the verdict is undecided.
/// `returns_before call, end_of`: no host call of `call` returns after the device span of `end_of`
///   with the same process and instance (matched as above) has ended; `returns_after`: none
///   before. A distance below the clocks' error bound is not judged.
/// `begins_within after, then`: every device span of `then` begins at most this long after the
///   matching one of `after` ended; it may begin earlier.
/// `host_free after`: every host call of the operation returns within the time.
/// `host_blocked in`: every host call of the operation takes at least the time.
/// `lasts span`: every device span of the operation takes a time within the bounds.
/// `total region`, `ratio [a, b]`: the regions' reported medians; loops are summed up.
/// `channels span`: NCCL runs every device span of the label on so many channels.
/// `fails at`: the run failed, and its explanation names the operation's line. `hangs at`: it was
///   predicted to wait for ever, or the harness ended it, and somebody waits at that line.
Verdict judge(const Expectation& expectation, const Timeline& timeline);

/// "overlap of h2d with mm at least 80.0 %"
std::string describe(const Expectation& expectation);

}  // namespace foretrace
