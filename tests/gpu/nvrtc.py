"""nvrtc.py --find, or nvrtc.py SOURCE.cuh sm_NN ...: compiles kernels with NVIDIA's run-time compiler from PyPI (requirements.txt),
which knows GPUs that newer toolkits have dropped. Prints what ptxas says of each kernel; any other word, a warning, fails.
--find: tells whether it is installed.
"""
import ctypes
import pathlib
import sys

try:
    import nvidia
except ImportError:
    sys.exit(3)

# What headers say of old GPUs concerns their future, not the code.
NOT_OF_THE_CODE = ("ptxas info", "Compiling entry function", "Function properties", "bytes stack frame",
                   "are deprecated and may be removed")


def find(pattern):
    for root in nvidia.__path__:
        for path in sorted(pathlib.Path(root).glob(pattern)):
            return path
    sys.exit(3)


def log_of(nvrtc, program):
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.value.decode()


def compile_kernels(nvrtc, source, arch):
    options = [f"--gpu-architecture={arch}", "--std=c++17", "--ptxas-options=-v"]
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), words)
    log = log_of(nvrtc, program)
    print(log, end="")
    said = [line for line in log.splitlines() if line.strip() and not any(word in line for word in NOT_OF_THE_CODE)]
    if status != 0 or said:
        sys.exit(f"{arch}: error: status {status}: " + " / ".join(said[:5]))


def main():
    nvrtc = ctypes.CDLL(str(find("cuda_nvrtc/lib/libnvrtc.so.*")))
    if sys.argv[1] == "--find":
        return
    source = pathlib.Path(sys.argv[1]).read_bytes()
    for arch in sys.argv[2:]:
        compile_kernels(nvrtc, source, arch)


main()
