// The table over odd sizes: an op whose time per element jumps beside a multiple of 64 only suits some models.
#pragma once

namespace isonorm::bench {

// Prints, for every op, dtype and odd width, number of rows and sequence length, time per element / that of the next
// multiple of 64, forward and backward together. Returns whether no width exceeds 1.5.
bool print_cliffs();

}  // namespace isonorm::bench
