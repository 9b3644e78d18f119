"""Runs an ONNX model for `llmpart verify --against=onnxruntime`, which passes this text to Python with -c.

Arguments: the model's path, a number of threads (0: all), and perhaps the path of the embedding that computes the model's
`inputs_embeds` from the `input_ids` of a request. Requests come through the socket that is descriptor 0, and
answers go back through it, both in native 8-byte integers ("words") and raw bytes:

  request  words: inputs, outputs; for each input words: type, rank, sizes, length of the name, bytes of data, then the
           name and the data; for each output a word, the length of its name, and the name
  answer   word 0, then for each output words: type, rank, sizes, bytes of data, then the data; or
           word 1 (it failed) or 2 (there is no onnxruntime), a length and a text
  first    an answer of no outputs: the model is loaded

A type is a number of ONNX's TensorProto.DataType. An array is row-major.
"""
import ctypes
import os
import signal
import struct
import sys

signal.signal(signal.SIGINT, signal.SIG_IGN)  # llmpart ends, and with it the socket
stream = os.fdopen(0, "r+b", buffering=0)


def read(size):
    data = bytearray()
    while len(data) < size:
        part = stream.read(size - len(data))
        if not part:
            sys.exit(0)
        data += part
    return bytes(data)


def words(count):
    return struct.unpack("=%dq" % count, read(8 * count))


def write(data):
    view = memoryview(data)
    while len(view):
        view = view[stream.write(view):]


def put(*numbers):
    write(struct.pack("=%dq" % len(numbers), *numbers))


def fail(status, error):
    text = " ".join(str(error).split()).encode("utf-8", "replace")
    put(status, len(text))
    write(text)


try:
    import numpy
    import onnxruntime
except ImportError as error:
    fail(2, error)
    sys.exit(0)

# bf16 has no type in numpy: its bits travel as u16.
TYPES = {1: numpy.float32, 2: numpy.uint8, 3: numpy.int8, 4: numpy.uint16, 5: numpy.int16, 6: numpy.int32, 7: numpy.int64,
         9: numpy.bool_, 10: numpy.float16, 11: numpy.float64, 12: numpy.uint32, 13: numpy.uint64, 16: numpy.uint16}
NAMES = {"float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
         "double": 11, "uint32": 12, "uint64": 13, "bfloat16": 16}


def load(path, threads, contents=None):
    """`contents`: what the file at `path` would hold."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    if contents:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.path.dirname(os.path.abspath(path)))
    return onnxruntime.InferenceSession(contents or path, options, providers=["CPUExecutionProvider"])


def without_lengths(path):
    """The model without the constant sizes of its inputs, outputs and values: ONNX Runtime insists on those that the graph
    does not need. llmpart has checked that the graph computes any length."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    del model.graph.value_info[:]
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    return model.SerializeToString()


class Session:
    """The model, after its embedding if it has one; after its first refusal of a size, the model without constant sizes."""

    def __init__(self, path, threads, embedding):
        self.path, self.threads, self.freed = path, threads, False
        self.session = load(path, threads)
        self.embedding = None
        if embedding and "input_ids" not in [i.name for i in self.session.get_inputs()]:
            self.embedding = load(embedding, threads)

    def run(self, wanted, given):
        if self.embedding:
            names = [o.name for o in self.embedding.get_outputs()]
            made = "inputs_embeds" if "inputs_embeds" in names else names[0]
            given["inputs_embeds"] = self.embedding.run_with_ort_values([made], {"input_ids": given.pop("input_ids")})[0]
        self.fill(given)
        try:
            return self.session.run_with_ort_values(wanted, given)
        except Exception as error:
            if self.freed or "invalid dimensions" not in str(error):
                raise
            self.free(error)
            return self.session.run_with_ort_values(wanted, given)

    def fill(self, given):
        """Gives an empty past to the inputs that llmpart does not have: those of a merged decoder's branch with a past."""
        batch = given["input_ids"].shape()[0] if "input_ids" in given else 1
        for i in self.session.get_inputs():
            if i.name not in given and i.name.startswith("past"):
                shape = [n if isinstance(n, int) else 0 if at else batch for at, n in enumerate(i.shape)]
                kind = TYPES[NAMES[i.type[len("tensor("):-1]]]
                given[i.name] = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(shape, kind))

    def free(self, error):
        self.freed = True
        try:
            self.session = load(self.path, self.threads, without_lengths(self.path))
        except ImportError:
            raise RuntimeError(f"{error} (with PyPI's package 'onnx' the file's constant sizes would be ignored)") from error


def read_input():
    kind, rank = words(2)
    *shape, name, size = words(rank + 2)
    name = read(name).decode()
    array = numpy.frombuffer(read(size), TYPES[kind]).reshape(shape)
    if kind == 16:
        return name, onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, kind)
    return name, onnxruntime.OrtValue.ortvalue_from_numpy(array)


def read_request():
    inputs, outputs = words(2)
    given = dict(read_input() for _ in range(inputs))
    return given, [read(words(1)[0]).decode() for _ in range(outputs)]


def write_output(value):
    kind = NAMES[value.data_type()[len("tensor("):-1]]
    shape = value.shape()
    size = numpy.dtype(TYPES[kind]).itemsize
    for extent in shape:
        size *= extent
    put(kind, len(shape), *shape, size)
    write(ctypes.string_at(value.data_ptr(), size) if size else b"")


def main():
    try:
        session = Session(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
    except Exception as error:  # whatever ONNX Runtime raises
        return fail(1, error)
    put(0)
    while True:
        given, wanted = read_request()
        try:
            found = session.run(wanted, given)
        except Exception as error:
            fail(1, error)
            continue
        put(0)
        for value in found:
            write_output(value)


main()
