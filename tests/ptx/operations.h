// The instructions that the interpreter executes. A name and its modifiers select the function that executes it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/program.h"

namespace isonorm::ptx {

// The modifiers of an instruction's name. An operation takes the modifiers that it implements; if one is left, the
// instruction is refused.
class Modifiers {
 public:
  // "add.rn.f32" -> rn, f32. Types are taken at once: `type` and `source` of the instruction.
  Modifiers(std::string_view name, Instruction& in);
  bool take(std::string_view modifier);
  bool empty() const { return words_.empty(); }

 private:
  std::vector<std::string> words_;
};

// Completes an instruction from its modifiers. Null: the interpreter does not execute it.
using Select = Execute (*)(Instruction& in, Modifiers& modifiers);
using Operations = std::map<std::string_view, Select>;

const Operations& integer_operations();   // integer.cpp
const Operations& bit_operations();       // bits.cpp
const Operations& real_operations();      // real.cpp: f32 and f64
const Operations& choice_operations();    // choice.cpp: setp, selp
const Operations& move_operations();      // move.cpp: mov, cvt, cvta
const Operations& memory_operations();    // access.cpp: ld, st, atom, red
const Operations& copy_operations();      // async_copies.cpp: cp.async
const Operations& exchange_operations();  // exchange.cpp: shfl, bar, call, ...
const Operations& matrix_operations();    // matrix.cpp: ldmatrix, mma

// The function that executes "add.rn.f32". Null: there is none.
Execute select(std::string_view name, Instruction& in);

}  // namespace isonorm::ptx
