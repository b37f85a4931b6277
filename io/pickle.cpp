#include "io/torch_file.h"

#include <set>
#include <span>
#include <variant>

#include "core/system/name_pattern.h"
#include "io/packed.h"

namespace isonorm::io {
namespace {

constexpr size_t kMost = size_t{1} << 21;  // limit for each kind of value; 100,000 tensors need about half
constexpr int kProtocols = 5;

enum class Calls { dict, tensor, parameter, storage };
struct Global {
  std::string_view name;
  Calls calls;
  DType dtype = DType::u8;  // of a storage; u8 if Tensor lacks the dtype
  std::string_view foreign = {};
};
constexpr Global kGlobals[] = {{"collections.OrderedDict", Calls::dict},
                               {"torch._utils._rebuild_tensor_v2", Calls::tensor},
                               {"torch._utils._rebuild_parameter", Calls::parameter},
                               {"torch.FloatStorage", Calls::storage, DType::f32},
                               {"torch.DoubleStorage", Calls::storage, DType::f64},
                               {"torch.BFloat16Storage", Calls::storage, DType::bf16},
                               {"torch.LongStorage", Calls::storage, DType::i64},
                               {"torch.ByteStorage", Calls::storage, DType::u8},
                               {"torch.HalfStorage", Calls::storage, DType::u8, "F16"},
                               {"torch.IntStorage", Calls::storage, DType::u8, "I32"},
                               {"torch.ShortStorage", Calls::storage, DType::u8, "I16"},
                               {"torch.CharStorage", Calls::storage, DType::u8, "I8"},
                               {"torch.BoolStorage", Calls::storage, DType::u8, "BOOL"}};

// Values refer to the text or to the machine's vectors by position, so no value nests and nothing recurses.
struct None {};
using Text = std::string_view;
struct Tuple {
  size_t begin = 0, size = 0;  // range in items_
};
struct Dict {
  size_t number = 0;  // which entries belong to it: Entry::dict
};
struct Storage {
  Tuple said;  // a tuple: "storage", type, key, device, size
};
struct View {
  Tuple said;  // a tuple: storage, offset, shape, strides, requires_grad, hooks
};
using Value = std::variant<None, bool, int64_t, Text, Tuple, Dict, const Global*, Storage, View>;
constexpr const char* kKinds[] = {"None",   "a truth value", "a number",  "a string", "a tuple",
                                  "a dict", "a global",      "a storage", "a tensor"};

template <class T> constexpr size_t index_of = Value(T()).index();

class Machine {
 public:
  explicit Machine(Text pickle) : text_(pickle) {}

  std::vector<PickledTensor> run() {
    while (step()) continue;
    check(at_ == text_.size(), "pickle: ", text_.size() - at_, " bytes after its end");
    const Dict dict = pop<Dict>("the state");
    check(stack_.empty() && marks_.empty(), "pickle: it ends with ", stack_.size() + marks_.size(), " values too many");
    std::vector<PickledTensor> tensors;
    std::set<Text> names;
    for (const Entry& e : entries_) {
      if (e.dict != dict.number) continue;
      check_name(e.key, "pickle");
      const Scope scope(e.key);
      check(names.insert(e.key).second, "pickle: it is there twice");
      tensors.push_back(tensor(std::string(e.key), as<View>(e.value, "the entry").said));
    }
    return tensors;
  }

 private:
  struct Entry {
    size_t dict;
    Text key;
    Value value;
  };

  // --- the text

  Text bytes(uint64_t n) {
    check(n <= text_.size() - at_, "pickle: byte ", at_, ": it ends inside of a value of ", n, " bytes");
    return text_.substr(std::exchange(at_, at_ + n), n);
  }
  uint64_t number(int n) {
    return little_endian(reinterpret_cast<const uint8_t*>(bytes(static_cast<uint64_t>(n)).data()), n);
  }
  // A little-endian integer of n bytes in two's complement.
  int64_t integer(int n) {
    check(n <= 8, "pickle: byte ", at_, ": a number of ", n, " bytes, expected at most 8");
    const int unused = 64 - 8 * n;
    return n == 0 ? 0 : static_cast<int64_t>(number(n) << unused) >> unused;
  }
  Text line() {
    const size_t end = text_.find('\n', at_);
    check(end != Text::npos, "pickle: byte ", at_, ": it ends inside of a line");
    const Text line = bytes(end - at_);
    return ++at_, line;
  }

  // --- the values

  template <class T> T as(const Value& v, const char* what) const {
    const T* value = std::get_if<T>(&v);
    check(value != nullptr, "pickle: byte ", at_, ": ", what, " is ", kKinds[v.index()], ", expected ",
          kKinds[index_of<T>]);
    return *value;
  }
  template <class V, class T> void add(V& to, T&& value) {
    check(to.size() < kMost, "pickle: byte ", at_, ": more than ", kMost, " values");
    to.push_back(std::forward<T>(value));
  }
  void push(Value v) { add(stack_, v); }
  // Pops a value above the last mark.
  Value pop() {
    check(stack_.size() > (marks_.empty() ? 0 : marks_.back()), "pickle: byte ", at_, ": a value is missing");
    const Value v = stack_.back();
    return stack_.pop_back(), v;
  }
  template <class T> T pop(const char* what) { return as<T>(pop(), what); }
  size_t pop_mark() {
    check(!marks_.empty(), "pickle: byte ", at_, ": a mark is missing");
    const size_t begin = marks_.back();
    return marks_.pop_back(), begin;
  }

  void push_tuple(size_t begin) {
    const Tuple tuple{items_.size(), stack_.size() - begin};
    for (const Value& v : std::span(stack_).subspan(begin)) add(items_, v);
    stack_.resize(begin);
    push(tuple);
  }
  void push_tuple_of(size_t n) {
    check(stack_.size() - (marks_.empty() ? 0 : marks_.back()) >= n, "pickle: byte ", at_, ": a value is missing");
    push_tuple(stack_.size() - n);
  }
  const Value& item(const Tuple& t, size_t i) const { return items_[t.begin + i]; }
  void check_size(const Tuple& t, size_t n, const char* what) const {
    check(t.size == n, "pickle: byte ", at_, ": ", what, " has ", t.size, " parts, expected ", n);
  }

  void push_global(const std::string& name) {
    for (const Global& g : kGlobals)
      if (g.name == name) return push(&g);
    check(false, "pickle: byte ", at_, ": global ", Shown{name},
          " is refused, only plain tensors are read; nothing was run");
  }

  // Moves the key-value pairs from `begin` to the top of the stack into the dict below them.
  void set_items(size_t begin) {
    check((stack_.size() - begin) % 2 == 0, "pickle: byte ", at_, ": a key without a value");
    check(begin > (marks_.empty() ? 0 : marks_.back()), "pickle: byte ", at_, ": a dict is missing");
    const Dict dict = as<Dict>(stack_[begin - 1], "what gets entries");
    for (size_t i = begin; i < stack_.size(); i += 2)
      add(entries_, Entry{dict.number, as<Text>(stack_[i], "a key"), stack_[i + 1]});
    stack_.resize(begin);
  }

  void put(uint64_t place) {
    check(!stack_.empty() && place <= memo_.size(), "pickle: byte ", at_, ": place ", place, " of ", memo_.size(),
          " in the memo, expected the next or one before");
    if (place == memo_.size()) add(memo_, None());
    memo_[place] = stack_.back();
  }
  void get(uint64_t place) {
    check(place < memo_.size(), "pickle: byte ", at_, ": place ", place, " of ", memo_.size(), " in the memo");
    push(memo_[place]);
  }

  void load_storage() {
    const Tuple said = pop<Tuple>("what names a storage");
    check_size(said, 5, "what names a storage");
    check(as<Text>(item(said, 0), "what is stored") == "storage", "pickle: byte ", at_, ": it is not a storage");
    const Global& type = *as<const Global*>(item(said, 1), "the type of a storage");
    check(type.calls == Calls::storage, "pickle: byte ", at_, ": ", type.name, " is no type of a storage");
    as<Text>(item(said, 2), "the key of a storage"), as<int64_t>(item(said, 4), "the size of a storage");
    push(Storage{said});
  }

  void reduce() {
    const Tuple given = pop<Tuple>("what a call is given");
    const Global& called = *pop<const Global*>("what is called");
    switch (called.calls) {
      case Calls::dict:
        check_size(given, 0, "the arguments of an OrderedDict");
        return push(Dict{dicts_++});
      case Calls::tensor:
        check_size(given, 6, "a tensor");
        as<Storage>(item(given, 0), "the storage of a tensor"), as<int64_t>(item(given, 1), "the offset of a tensor");
        as<Tuple>(item(given, 2), "the shape of a tensor"), as<Tuple>(item(given, 3), "the strides of a tensor");
        return push(View{given});
      case Calls::parameter:
        check_size(given, 3, "a parameter");
        return push(as<View>(item(given, 0), "what a parameter holds"));
      case Calls::storage:
        check(false, "pickle: byte ", at_, ": it calls ", called.name, "; nothing was run");
    }
  }

  Dims sizes(const Tuple& t, const char* what) const {
    Dims d;
    for (size_t i = 0; i < t.size; ++i) {
      d.push_back(as<int64_t>(item(t, i), what));
      check(d[d.rank - 1] >= 0, "pickle: ", what, " is ", d[d.rank - 1]);
    }
    return d;
  }

  PickledTensor tensor(std::string name, const Tuple& said) const {
    const Tuple storage = std::get<Storage>(item(said, 0)).said;
    const Global& type = *std::get<const Global*>(item(storage, 1));
    PickledTensor t;
    t.entry.name = std::move(name), t.entry.dtype = type.dtype, t.entry.foreign = type.foreign;
    t.storage = std::get<Text>(item(storage, 2)), t.storage_numel = std::get<int64_t>(item(storage, 4));
    t.offset = std::get<int64_t>(item(said, 1));
    t.entry.shape = sizes(std::get<Tuple>(item(said, 2)), "a size");
    t.strides = sizes(std::get<Tuple>(item(said, 3)), "a stride");
    check(t.strides.rank == t.entry.shape.rank, "pickle: shape ", t.entry.shape, " with strides ", t.strides);
    check(t.offset >= 0 && t.storage_numel >= 0, "pickle: it begins at ", t.offset, " of a storage of ",
          t.storage_numel);
    return t;
  }

  // Executes one opcode; false after STOP. Opcode names are pickletools' names.
  bool step() {
    const size_t place = at_;
    const auto opcode = static_cast<uint8_t>(number(1));
    switch (opcode) {
      case 0x80:  // PROTO
        if (const auto n = number(1); n > kProtocols)
          check(false, "pickle: protocol ", n, ", expected at most ", kProtocols);
        return true;
      case 0x95:  // FRAME: its length is not needed
        return number(8), true;
      case '.':  // STOP
        return false;
      case '(':  // MARK
        return add(marks_, stack_.size()), true;
      case 'N':  // NONE
        return push(None()), true;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        return push(opcode == 0x88), true;
      case 'J':  // BININT
        return push(integer(4)), true;
      case 'K':  // BININT1
        return push(static_cast<int64_t>(number(1))), true;
      case 'M':  // BININT2
        return push(static_cast<int64_t>(number(2))), true;
      case 0x8a:  // LONG1
        return push(integer(static_cast<int>(number(1)))), true;
      case 'X':  // BINUNICODE
        return push(bytes(number(4))), true;
      case 0x8c:  // SHORT_BINUNICODE
        return push(bytes(number(1))), true;
      case ')':  // EMPTY_TUPLE
        return push(Tuple()), true;
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        return push_tuple_of(opcode - 0x84u), true;
      case 't':  // TUPLE
        return push_tuple(pop_mark()), true;
      case '}':  // EMPTY_DICT
        return push(Dict{dicts_++}), true;
      case 's':  // SETITEM
        check(stack_.size() >= 2, "pickle: byte ", at_, ": a value is missing");
        return set_items(stack_.size() - 2), true;
      case 'u':  // SETITEMS
        return set_items(pop_mark()), true;
      case 'q':  // BINPUT
        return put(number(1)), true;
      case 'r':  // LONG_BINPUT
        return put(number(4)), true;
      case 0x94:  // MEMOIZE
        return put(memo_.size()), true;
      case 'h':  // BINGET
        return get(number(1)), true;
      case 'j':  // LONG_BINGET
        return get(number(4)), true;
      case 'c': {  // GLOBAL
        const Text module = line();
        return push_global(text(module, '.', line())), true;
      }
      case 0x93: {  // STACK_GLOBAL
        const Text name = pop<Text>("the name of a global"), module = pop<Text>("its module");
        return push_global(text(module, '.', name)), true;
      }
      case 'Q':  // BINPERSID
        return load_storage(), true;
      case 'R':  // REDUCE
        return reduce(), true;
      case 'b':  // BUILD: attributes of a dict, which hold no tensors
        pop<Dict>("attributes");
        return push(pop<Dict>("what has attributes")), true;
    }
    check(false, "pickle: byte ", place, ": opcode ", static_cast<int>(opcode),
          " is none that torch.save writes for a dict of tensors; nothing was run");
    return false;
  }

  Text text_;
  size_t at_ = 0, dicts_ = 0;
  std::vector<Value> stack_, memo_, items_;  // items_: the values of all tuples
  std::vector<size_t> marks_;                // size of the stack at each mark
  std::vector<Entry> entries_;               // entries of all dicts
};

}  // namespace

std::vector<PickledTensor> read_pickle(std::string_view pickle) { return Machine(pickle).run(); }

}  // namespace isonorm::io
