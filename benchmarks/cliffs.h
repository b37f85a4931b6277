// A table over odd sizes. An op whose time per element jumps next to a multiple of 64 suits only some models.
#pragma once

namespace isonorm::bench {

// Prints, for every op, dtype and odd width, number of rows and sequence length, the time per element divided by that
// at the next multiple of 64, forward and backward together. Returns true if no ratio for a width exceeds 1.5.
bool print_cliffs();

}  // namespace isonorm::bench
