// The residual stream by its definition: what a reader reads is the sum of what the writers before it wrote. In a
// reference it shows what no tensor can: a writer that the description lacks, or has in vain, a norm or a factor on the
// stream.
#pragma once

#include "io/lazy_state.h"
#include "streams/placement.h"

namespace isonorm::equivalence {

struct StreamSum {
  int64_t readers = 0, summed = 0;  // that the layout has; whose rows are such a sum
  int64_t writers = 0, seen = 0;  // that the layout has (a bias counts with its weight); that a sum has, and would miss
  double share = 0;               // the largest part of its bound that an entry takes
  std::string wrong = {};         // one sentence: the first reader whose rows are no such sum; empty where all are
  std::string open = {};          // one sentence: what the reference does not show; empty where it shows the stream

  bool closed() const { return wrong.empty() && open.empty(); }
};

// With x = <name>.input of a reader and y = <name>.output of the writers (reference.h), times their layer scales, x is
// the sum of some y, each taken once or not at all, but for (k + 1) eps (sum |y| + |x|) of the dtype of x in each entry,
// k of them: what adding them one by one may round. Which of them follows from x, by least squares over at most 64 rows.
// The y of a writer that nothing calls, such as a table of positions or a class token, are its own rows. Leading
// The rows with which a stream begins that is recentred once are <module>.enters. Leading
// dimensions of y broadcast to those of x; y may have fewer rows along the last of them (class tokens before patches).
//
// That nothing else reads the stream, the program shows: program.shifted, its output with a constant along the stream added
// to each writer, and program.rescaled, with larger gains and smaller readers, must be program.output, to the cube root of
// eps: rounding lies far below that, and what reads the stream otherwise far above. <module>.seen, rows of that width that a
// module beside the description saw, must be no sum of what writers wrote; <module>.reads are rows of a norm that one read. Throws what check_reference() throws for the names
// and shapes that it reads.
StreamSum check_stream_sum(const LazyState& file, const streams::Placement& layout, const TensorMap& reference);

}  // namespace isonorm::equivalence
