// The residual stream by its definition: the rows that a reader reads are the sum of the outputs of the writers before
// it. In a reference this shows mistakes that no tensor can show: a writer that the description lacks or has too many,
// and a norm or a factor on the stream.
#pragma once

#include "io/lazy_state.h"
#include "streams/plan.h"

namespace isonorm::equivalence {

struct StreamSum {
  int64_t readers = 0, summed = 0;  // in the plan; with rows that are such a sum
  int64_t writers = 0, seen = 0;    // in the plan (a bias counts with its weight); needed in a sum
  double share = 0;                 // the largest share of its bound that an entry uses
  std::string wrong = {};           // one sentence: the first reader whose rows are no such sum; empty if there is none
  std::string open = {};            // one sentence: the missing evidence; empty if the reference shows the stream

  bool closed() const { return wrong.empty() && open.empty(); }
};

// With x = <name>.input of a reader and y = <name>.output of the writers (reference.h), times their layer scales, x
// must be the sum of some y, each taken once or not at all. Each entry may be off by (k + 1) eps (sum |y| + |x|) with
// the number k of summands and eps of x's dtype, which adding them one by one may round. The summands are found from x
// by least squares over at most 64 rows.
//
// If nothing calls a writer, such as a table of positions or a class token, its y are its own rows. If a stream is
// recentred once, the rows with which it begins are <module>.enters. Leading dimensions of y broadcast to x's; y may
// have fewer rows along the last leading dimension (class tokens before patches).
//
// The program shows that nothing else reads the stream. program.shifted is its output with a constant along the stream
// added to each writer, and program.rescaled its output with larger gains and smaller readers. Both must equal
// program.output to the cube root of eps: rounding is far below that, and another reader far above. <module>.seen, rows
// of the stream's width that a module outside of the description saw, must be no sum of writers' outputs.
// <module>.reads are rows of a norm that a module outside of the description read. Throws like check_reference() for
// the names and shapes that it reads.
StreamSum check_stream_sum(const LazyState& file, const streams::Plan& plan, const TensorMap& reference);

}  // namespace isonorm::equivalence
