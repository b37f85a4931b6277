// Mistakes that can be planted in a training, to test that a comparison finds them.
#pragma once

namespace isonorm::equivalence {

enum class Forgery {
  none,
  weight,            // one entry is off by `size` times the largest entry of its tensor
  row,               // one row of a weight is multiplied by 1 + size
  batch,             // at one step it sees another batch
  frozen_gains,      // gains and biases of norms are not trained
  uncorrected_head,  // the head reads the stored table without the stream's map (gpt)
  centred_entry,     // it begins with centred embeddings, though the first branch reads bare ones
  // Mistakes of data-parallel ranks:
  summed,       // gradients are summed instead of averaged
  left_out,     // the gradient of the second rank is left out
  added_twice,  // the gradient of the last parameter is summed twice
  unweighted,   // all ranks have equal weights, though some have one row more
  same_draws,   // all ranks draw the dropout masks of the first one
};
constexpr bool of_ranks(Forgery f) { return f >= Forgery::summed; }

}  // namespace isonorm::equivalence
