# Pretty-printers of tensors and shapes for gdb: `source tensor_gdb.py` in gdb, or in ~/.gdbinit. They read the members
# of Tensor, TensorImpl, Storage and Dims (core/tensor.h) in the program's memory, so they work on a core file, too.
#
#   (gdb) print x
#   $1 = f32 [2, 3] [[1, 2, 3], [4, 5, 6]]
#
# If there are more elements than `set print elements` allows (200), the first and the last three of each dimension are
# shown.
import math
import struct

ELEMENTS = {"f32": "<f", "f64": "<d", "bf16": "<H", "i64": "<q", "u8": "<B"}  # struct formats by dtype
EDGE = 3


def number(dtype, data):
    """The text of one element: the fewest digits that tell it from its neighbours."""
    value = struct.unpack(ELEMENTS[dtype], data)[0]
    if dtype in ("i64", "u8"):
        return str(value)
    if dtype == "bf16":
        value = struct.unpack("<f", struct.pack("<I", value << 16))[0]
    if not math.isfinite(value):
        return str(value)
    for digits in range(1, 18):
        text = "%.*g" % (digits, value)
        if read_back(dtype, float(text)) == data:
            return text
    return repr(value)


def read_back(dtype, value):
    """The bytes of the element that is nearest to `value`."""
    if dtype != "bf16":
        try:
            return struct.pack(ELEMENTS[dtype], value)
        except OverflowError:
            return b""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF)


def describe(dtype, shape, strides, read, limit=200):
    """The text of a tensor. read(i, bytes) gives the bytes of the element that lies i elements after the first."""
    size = struct.calcsize(ELEMENTS[dtype])
    elided = limit is not None and math.prod(shape) > limit

    def nested(dim, at):
        if dim == len(shape):
            return number(dtype, bytes(read(at, size)))
        places = range(shape[dim])
        entries = [nested(dim + 1, at + i * strides[dim])
                   for i in places if not elided or shape[dim] <= 2 * EDGE or i < EDGE or i >= shape[dim] - EDGE]
        if len(entries) < shape[dim]:
            entries.insert(EDGE, "...")
        return "[" + ", ".join(entries) + "]"

    return "%s %s %s" % (dtype, list(shape), nested(0, 0) if 0 not in shape else "[]")


try:
    import gdb
    import gdb.printing
except ImportError:  # a test of the functions above
    gdb = None


def pointer(shared):
    """The address that a std::shared_ptr of libstdc++ or libc++ holds."""
    try:
        return shared["_M_ptr"]
    except gdb.error:
        return shared["__ptr_"]


def sizes(dims):
    return [int(dims["v"][i]) for i in range(int(dims["rank"]))]


class DimsPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return str(sizes(self.value))


class TensorPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        impl = pointer(self.value["impl_"])
        if not impl:
            return "(undefined tensor)"
        storage = pointer(impl["storage"])
        dtype, device = (str(v).split("::")[-1] for v in (impl["dtype"], storage["device_"]["kind"]))
        shape, strides = sizes(impl["shape"]), sizes(impl["strides"])
        if device != "cpu":
            return "%s %s on %s:%d" % (dtype, shape, device, int(storage["device_"]["index"]))
        first = int(storage["data_"]) + int(impl["offset"]) * struct.calcsize(ELEMENTS[dtype])
        memory = gdb.selected_inferior()
        try:
            return describe(dtype, shape, strides, lambda i, size: memory.read_memory(first + i * size, size),
                            gdb.parameter("print elements"))
        except gdb.MemoryError as e:
            return "%s %s (%s)" % (dtype, shape, e)


if gdb:
    printers = gdb.printing.RegexpCollectionPrettyPrinter("isonorm")
    printers.add_printer("Tensor", "^isonorm::(Tensor|Indexed|nn::Parameter)$", TensorPrinter)
    printers.add_printer("Dims", "^isonorm::Dims$", DimsPrinter)
    gdb.printing.register_pretty_printer(None, printers, replace=True)
