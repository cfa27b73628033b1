// How far a predicted time may be off: its band, from the parameters that it is made of, how much
// of it each one is (Share), and how well each one is known.
//
// A parameter is known to so much of its value, by where it came from:
// - fit, or learned from measurements in another way (ParamValue::trusted_as): its spread (one
//   sigma over machines and starts). Where the file gives none, 5 %: eight of
//   ten repeats of NCCL's graph launches on 2 to 4 H200s are that near.
// - published, also learned from published tables that tell no spread: 15 %. Of the points that
// were
//   left out of the fits to such tables, eight of ten are within -12 and +22 %
//   (models/machines/README.md).
// - datasheet: 25 %. Of an H200's memory, programs reach 4.1 of 4.8 TB/s.
// - assumed: 50 %; also a fit that is used outside of the sizes that it was made for.
// A larger spread in the file wins over the last three.
//
// A machine that has been through a blind round knows better how far programs are off that nobody
// tuned to: where it does (blind.h), that stands in for its parameters' own uncertainty, but for
// those that are used outside of the sizes that they were fitted to. One that has not, but is based
// on such a machine, adds the other's errors to what it has fitted itself.
//
// A parameter that is known to 10 % and is half of a time puts it off by 5 %. Over parameters,
// these add in quadrature: each was measured, or guessed, for itself, so their errors are
// independent, and it would be a coincidence if all were off in one direction.
//
// NVLink's bandwidth is no such parameter: it is the datasheet's number, exact by definition, and
// what programs get of it is the error of the shares that rates are given as.
#pragma once

#include <span>

#include "models/machine/machine.h"
#include "models/machine/reading.h"

namespace foretrace {

/// Factors of a time: it is between `low` and `high` times what was predicted.
struct Band {
  double low = 1;
  double high = 1;
  ParameterClass parameters = ParameterClass::Fit;  ///< the worst source that decides the time
};

/// How far `param` may be off, relative, when something of this size depends on it; 0 bytes: the
/// size is not known. The parameter must be there.
double uncertainty_of(const Machine& machine, Param param, Bytes size);

/// The same in a program that nobody tuned to: what blind rounds showed of its class, or of
/// networks.
double spread_of(const Machine& machine, Param param);

/// Where `param` counts as coming from: a fit that was not made for `size` is an assumption.
ParameterClass source_of(const Machine& machine, Param param, Bytes size);

/// The band of a time with these shares (shares_of), at most a factor of two. `parameters` is the
/// worst source of those that decide it (kDecidingShare). No shares, no band: the time is given.
Band band_of(const Machine& machine, std::span<const Share> shares, Bytes size);

/// The same of a time of which `guessed`, a share, is not made of the machine's parameters.
Band with_guessed(Band band, double guessed);

/// Of a time that is not made of the machine's parameters but of another model: as of a guess.
Band band_of_a_guess();

}  // namespace foretrace
