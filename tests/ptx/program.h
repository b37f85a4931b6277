// PTX that is ready to execute: modules, functions, instructions. Registers have numbers; labels are code positions.
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/ptx/types.h"

namespace isonorm::ptx {

// A kernel's mistake, or PTX that the interpreter cannot execute (Kind::refused).
class Fault : public std::runtime_error {
 public:
  enum class Kind { refused, address, misaligned, other };
  Fault(Kind k, const std::string& what) : std::runtime_error(what), kind(k) {}
  Kind kind;
};

struct Operand {
  enum class Kind : uint8_t { reg, address, vector, name };
  Kind kind = Kind::reg;
  Space space = Space::generic;  // address: the space of the variable that it names
  int reg = -1;                  // the register; address: its base
  int64_t offset = 0;
  std::vector<int> parts;  // registers of a vector
  std::string name;        // a label or a function
};

// The instruction that lanes execute after this one, and when they execute it.
enum class Flow : uint8_t {
  next,       // the next one
  branch,     // the target, for lanes whose predicate holds; else the next one
  exit,       // none: the lane ends
  barrier,    // the next one, when all lanes of the block wait here
  converged,  // the next one; lanes wait until all lanes of the mask are here
};

struct Function;
struct Instruction;
struct Warp;
using Execute = void (*)(Warp& warp, const Instruction& in, uint32_t lanes);

struct Instruction {
  Execute execute = nullptr;
  Flow flow = Flow::next;
  bool unless = false;  // @!p
  int predicate = -1;   // a register; -1: always
  int mask = -1;        // converged: the mask's register; -1: the whole warp
  int target = -1;
  Type type = Type::none, source = Type::none;  // the first and the second type in the name
  Space space = Space::generic;
  size_t width = 1;  // values of a vector or matrices that are loaded or stored
  std::vector<Operand> operands;
  Function* callee = nullptr;
  std::vector<int> arguments, results;  // call: offsets in the frame
  std::string text;                     // "line 12: add.s32 %r1, %r2, 1"
};

// Special registers (section 10).
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid
};

struct Parameter {
  std::string name;
  size_t at = 0, bytes = 0;
};

struct Module;
struct Function {
  std::string name;
  Module* module = nullptr;
  bool is_kernel = false;
  int line = 0;  // number of the body's first line in the module
  std::string body;
  std::vector<Parameter> parameters, results;
  size_t parameter_bytes = 0;
  uint32_t most_threads = 1024;  // the largest block: .maxntid (11.4.2)

  // decode() sets these.
  bool decoded = false;
  std::vector<Instruction> code;
  int registers = 0;
  std::vector<std::pair<int, uint64_t>> constants;  // (register, value)
  std::vector<std::pair<int, Special>> specials;    // (register, the special register that it holds)
  size_t frame_bytes = 0;                           // per lane: parameters and results of functions
  size_t shared_bytes = 0;                          // without dynamic shared memory
};

struct SharedVariable {
  size_t alignment = 1, bytes = 0;
  bool is_dynamic = false;
};

struct Module {
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
  std::map<std::string, SharedVariable, std::less<>> shared;
};

// Throws Fault (refused), which names the line, if it does not know a statement.
std::unique_ptr<Module> parse(std::string_view text);
// Makes the code of a function and of the functions that it calls. Throws Fault (refused), which names the line of PTX.
void decode(Function& f);

// Dynamic shared memory begins here, far from a kernel's static shared memory, so an access past either one is found.
inline constexpr uint64_t kDynamicShared = 1 << 18;
// Shared memory among generic addresses (5.1.7).
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 62;

}  // namespace isonorm::ptx
