// How far programs were off that nobody had tuned to: one number for each class of parameters, as a
// machine's blind rounds showed it. Such programs differ from what the parameters were fitted to by
// more than the fit's own spread says: other shapes, other neighbours, a host that runs slower.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "models/machine/machine.h"
#include "models/machine/reading.h"

namespace foretrace {

/// The parameter `blind.*` of the class that `param` belongs to; none for those of networks and for
/// counts and sizes that are no measurements.
std::optional<Param> blind_class(Param param);

/// How far programs were off by the class of `param`, or by networks; none where no round showed
/// it.
std::optional<double> blind_spread(const Machine& machine, Param param);

/// How far a time with these shares is off, relative: the class' spread for each share of the time
/// that a class decides, in quadrature, and `blind.rest`. None where the machine has not been
/// through a blind round, or a class that decides the time has not.
/// Shares that no blind round has shown, of networks and host operators, add what their own source
/// says; `guessed` is how much of the time no parameter decides, though the model had to.
std::optional<double> blind_spread(const Machine& machine, std::span<const Share> shares,
                                   double guessed = 0);

/// Whether a blind round's errors are those of `param`: else its own source tells how well it is
/// known. Exact counts are known anyhow.
bool is_shown_by_rounds(Param param);

/// The same of a machine that no round was run on: as far as programs were off on the machine that
/// it is based on, by the classes of what it has fitted itself. A fit's own spread is of the starts
/// that it saw, on one host; other programs are farther off. What it has not fitted is not counted:
/// that is less sure by itself. 0 where the other machine does not say it either.
double borrowed_spread(const Machine& machine, std::span<const Share> shares);

/// Parameters of NCCL's operations over several nodes.
bool is_of_network(Param param);

/// How far off the part of a time is that such parameters decide, where the machine file says it
/// (`blind.network`): what its tables were off that a fit to the others of them did not see.
std::optional<double> network_spread(const Machine& machine, std::span<const Share> shares);

}  // namespace foretrace
