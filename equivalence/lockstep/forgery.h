// What may be wrong with a training that is to be told from the right one.
#pragma once

namespace isonorm::equivalence {

enum class Forgery {
  none,
  weight,            // one entry is moved by a size of its tensor's largest
  row,               // one row of a weight is 1 + a size times what it should be
  batch,             // at one step it sees another batch
  frozen_gains,      // gains and biases of norms are not trained
  uncorrected_head,  // the head reads the stored table as it is (gpt)
  centred_entry,     // it begins with centred embeddings, though the first branch reads them as they are
  // Of ranks:
  summed,       // they sum what they should average
  left_out,     // what the second of them has learned is left out
  added_twice,  // the gradient of the last parameter is summed twice
  unweighted,   // each counts as much, though some have a row more
  same_draws,   // all draw what the first one draws
};
constexpr bool of_ranks(Forgery f) { return f >= Forgery::summed; }

}  // namespace isonorm::equivalence
