// Tensors of Python and of isonorm share memory without a copy (DLPack and the buffer protocol).
#include "python/bindings.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "core/tensor.h"
#include "core/view.h"

namespace isonorm::python {
namespace {

namespace nb = nanobind;
namespace dl = nanobind::dlpack;
using Array = nb::ndarray<nb::ro>;

[[noreturn]] void refuse(const std::string& why) { throw nb::value_error(("tensor: " + why).c_str()); }

dl::dtype dlpack_of(DType d) {
  const auto of = [&](dl::dtype_code code) {
    return dl::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * size_of(d)), 1};
  };
  return of(d == DType::bf16  ? dl::dtype_code::Bfloat
            : is_floating(d)  ? dl::dtype_code::Float
            : d == DType::i64 ? dl::dtype_code::Int
                              : dl::dtype_code::UInt);
}

std::optional<DType> dtype_of_dlpack(dl::dtype d) {
  for (DType own : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8})
    if (d == dlpack_of(own)) return own;
  if (d == dl::dtype{static_cast<uint8_t>(dl::dtype_code::Bool), 8, 1}) return DType::u8;
  return std::nullopt;
}

// str() of an attribute; empty if there is none.
std::string said_by(nb::handle of, const char* attribute) {
  if (!nb::hasattr(of, attribute)) return "";
  const nb::object value = of.attr(attribute);
  return nb::cast<std::string>(nb::str(nb::handle(value)));
}

// Describes the argument in a message: "numpy.ndarray of dtype int32".
std::string spoken(nb::handle array) {
  const std::string type = said_by(array.type(), "__module__") + "." + said_by(array.type(), "__name__");
  const std::string dtype = said_by(array, "dtype");
  return type + (dtype.empty() ? "" : " of dtype " + dtype);
}

// NumPy has bf16 only through ml_dtypes and cannot export it, so its bits are passed as u16.
bool is_bf16_of_numpy(nb::handle array) {
  return nb::hasattr(array, "__array_interface__") && said_by(array, "dtype") == "bfloat16";
}

// A tensor over a read-only array could write to it, so such an array is not shared.
bool writable(nb::handle array) {
  nb::ndarray<> as;
  return nb::try_cast(array, as, false);
}

// A tensor over the array's own memory. Whichever thread drops the last handle releases the array with the GIL held.
Tensor over(const Array& array, DType dtype) {
  Dims shape, strides;
  int64_t reach = 1;  // elements from the first to the last, gaps included
  for (size_t i = 0; i < array.ndim(); ++i) {
    const auto size = static_cast<int64_t>(array.shape(i));
    shape.push_back(size), strides.push_back(array.stride(i));
    reach += (size - 1) * array.stride(i);
  }
  if (array.size() == 0) reach = 0;
  const auto release = [owner = new Array(array)](Storage* storage) {
    delete storage;
    if (!nb::is_alive()) return;  // the interpreter and its objects are gone
    const nb::gil_scoped_acquire gil;
    delete owner;
  };
  const int64_t bytes = reach * size_of(dtype);
  std::shared_ptr<Storage> storage(new Storage(const_cast<void*>(array.data()), bytes, kCpu), release);
  const Tensor base(std::make_shared<TensorImpl>(std::move(storage), Dims{reach}, Dims{1}, 0, reach, dtype, true));
  return as_strided(base, shape, strides, 0);
}

// A copy made by NumPy or torch, which handle every layout and byte order.
nb::object copied(nb::handle array) {
  if (nb::hasattr(array, "clone")) return array.attr("clone")();
  return nb::module_::import_("numpy").attr("array")(array, nb::arg("order") = "C");
}

// The array, ready for over(); empty if its memory cannot be shared.
std::optional<Array> shareable(nb::handle array) {
  Array seen;
  // In a negative view, values are the negated memory.
  if (nb::hasattr(array, "is_neg") && nb::cast<bool>(array.attr("is_neg")())) return std::nullopt;
  if (!writable(array) || !nb::try_cast(array, seen, false)) return std::nullopt;
  const auto bytes = static_cast<uintptr_t>(seen.itemsize());
  if (bytes == 0 || reinterpret_cast<uintptr_t>(seen.data()) % bytes != 0) return std::nullopt;
  for (size_t i = 0; i < seen.ndim(); ++i)
    if (seen.shape(i) > 1 && seen.stride(i) < 0) return std::nullopt;
  return seen;
}

Tensor shared(const Array& array, nb::handle given, bool is_bf16) {
  if (array.device_type() != nb::device::cpu::value) refuse(spoken(given) + " is not on the CPU: give its .cpu()");
  if (array.ndim() > static_cast<size_t>(kMaxRank)) refuse(text(array.ndim(), " dimensions, the limit is ", kMaxRank));
  const std::optional<DType> dtype = is_bf16 ? DType::bf16 : dtype_of_dlpack(array.dtype());
  if (!dtype) refuse(spoken(given) + ", expected f32, f64, bf16, i64, u8 or bool");
  return over(array, *dtype);
}

// The tensor's memory as elements of `type`. The result keeps the memory alive.
template <class Framework> nb::object exported(const Tensor& t, dl::dtype type) {
  size_t shape[kMaxRank];
  int64_t strides[kMaxRank];
  for (int i = 0; i < t.rank(); ++i) shape[i] = static_cast<size_t>(t.shape()[i]), strides[i] = t.strides()[i];
  const nb::capsule owner(new Tensor(detach(t)), [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  void* const data = static_cast<std::byte*>(t.impl().storage->data()) + t.impl().offset * size_of(t.dtype());
  return nb::cast(
      nb::ndarray<Framework>(data, static_cast<size_t>(t.rank()), shape, owner, strides, type, nb::device::cpu::value));
}

nb::object to_numpy(const Tensor& t) {
  if (t.dtype() != DType::bf16) return exported<nb::numpy>(t, dlpack_of(t.dtype()));
  nb::object known;
  try {
    known = nb::module_::import_("ml_dtypes").attr("bfloat16");
  } catch (nb::python_error&) {
    throw nb::type_error("numpy: it has no bf16 without the package ml_dtypes; torch() has");
  }
  return exported<nb::numpy>(t, nb::dtype<uint16_t>()).attr("view")(known);
}

nb::object to_array(const Tensor& t, nb::object dtype, nb::object copy) {
  return nb::module_::import_("numpy").attr("array")(to_numpy(t), nb::arg("dtype") = dtype, nb::arg("copy") = copy);
}

nb::tuple tuple_of(const Dims& dims) {
  nb::list sizes;
  for (int64_t s : dims) sizes.append(s);
  return nb::tuple(sizes);
}

// Makes torch refuse to reallocate the tensor's memory (resize_), as after its own numpy().
void hold_in_place(nb::handle array) {
  if (!nb::hasattr(array, "untyped_storage")) return;
  const nb::module_ torch = nb::module_::import_("torch");
  torch.attr("empty")(0, nb::arg("dtype") = torch.attr("uint8"))
      .attr("set_")(array.attr("untyped_storage")())
      .attr("numpy")();
}

// A tensor over the memory of `array` (NumPy's, torch's, or any object with __dlpack__ or a buffer), which lives as
// long as the tensor. f32, f64, bf16, i64, u8; bool becomes u8. Copies if `copy` is true or if the memory cannot be
// shared (read-only, negative strides, not aligned). Throws ValueError if `copy` is false and a copy is needed. Also
// throws on torch tensors that require a gradient, other dtypes, more than eight dimensions and memory on another
// device.
Tensor from_python(nb::handle array, std::optional<bool> copy) {
  if (said_by(array, "requires_grad") == "True")
    refuse("the torch tensor takes a gradient, which a shared memory has no place for: give its .detach()");
  const bool always = copy == true, never = copy == false;
  const bool is_bf16 = is_bf16_of_numpy(array);
  const auto bits = [&](nb::object o) { return is_bf16 ? o.attr("view")("uint16") : o; };
  if (!nb::ndarray_check(array)) refuse(spoken(array) + " is no array: it has neither __dlpack__ nor a buffer");
  if (!always)
    if (const std::optional<Array> own = shareable(bits(nb::borrow(array)))) {
      hold_in_place(array);
      return shared(*own, array, is_bf16);
    }
  if (never)
    refuse(spoken(array) +
           " cannot be shared (read-only, negative strides, another dtype or not aligned): allow a copy");
  const nb::object made = copied(array);
  const std::optional<Array> own = shareable(bits(made));
  if (!own) refuse(spoken(array) + ", expected f32, f64, bf16, i64, u8 or bool in this machine's byte order");
  return shared(*own, array, is_bf16);
}

}  // namespace

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor>(m, "Tensor", "An n-dimensional array of isonorm on the CPU. Made by tensor().")
      .def_prop_ro(
          "shape", [](const Tensor& t) { return tuple_of(t.shape()); }, nb::sig("def shape(self) -> tuple[int, ...]"),
          "Sizes, a tuple.")
      .def_prop_ro(
          "strides", [](const Tensor& t) { return tuple_of(t.strides()); },
          nb::sig("def strides(self) -> tuple[int, ...]"), "In elements, a tuple.")
      .def_prop_ro(
          "ndim", [](const Tensor& t) { return t.rank(); }, "The number of dimensions.")
      .def_prop_ro(
          "dtype", [](const Tensor& t) { return name_of(t.dtype()); }, "'f32', 'f64', 'bf16', 'i64' or 'u8'.")
      .def("numpy", &to_numpy,
           "The same memory as a NumPy array; bf16 as ml_dtypes.bfloat16. Raises TypeError if that is not installed.")
      .def(
          "torch", [](nb::handle self) { return nb::module_::import_("torch").attr("from_dlpack")(self); },
          "The same memory as a torch tensor. Raises ImportError without torch.")
      .def("__array__", &to_array, nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none(),
           "For numpy.asarray(): numpy() in this dtype.")
      .def(
          "__dlpack__",
          [](const Tensor& t, nb::kwargs asked) {
            return exported<nb::array_api>(t, dlpack_of(t.dtype())).attr("__dlpack__")(**asked);
          },
          "DLPack: a capsule that shares the memory and keeps it.")
      .def(
          "__dlpack_device__", [](const Tensor&) { return nb::make_tuple(nb::device::cpu::value, 0); },
          "DLPack: (1, 0), the CPU.")
      .def("__repr__", [](const Tensor& t) { return text("isonorm.Tensor(", t.dtype(), ' ', t.shape(), ')'); });
  m.def("tensor", &from_python, nb::arg("array"), nb::arg("copy") = nb::none(),
        "As isonorm.tensor() (python/isonorm/_tensor.py); copy is None, False or True.");
}

}  // namespace isonorm::python
