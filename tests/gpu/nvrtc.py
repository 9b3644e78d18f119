"""nvrtc.py --find, or nvrtc.py SOURCE.cuh sm_NN ...: compiles kernels with NVIDIA's run-time compilers from PyPI (requirements.txt),
of CUDA 12 and 11, which know GPUs that newer toolkits have dropped. Prints what ptxas says of each kernel; any other word, a
warning, fails. --find: prints the names of the compilers that are there.
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
    return [path for root in nvidia.__path__ for path in sorted(pathlib.Path(root).glob(pattern))]


def log_of(nvrtc, program):
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.value.decode()


def architectures(nvrtc):
    count = ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    known = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(known)
    return {f"sm_{arch}" for arch in known}


def compile_kernels(nvrtc, name, source, arch):
    options = [f"--gpu-architecture={arch}", "--std=c++14", "--ptxas-options=-v"]
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), words)
    log = log_of(nvrtc, program)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    print(log, end="")
    said = [line for line in log.splitlines() if line.strip() and not any(word in line for word in NOT_OF_THE_CODE)]
    if status != 0 or said:
        sys.exit(f"{name}: {arch}: error: status {status}: " + " / ".join(said[:5]))


def main():
    libraries = [path for path in find("cuda_nvrtc/lib/libnvrtc.so.*") if path.is_file()]
    if sys.argv[1] == "--find":
        print(*(path.name for path in libraries))
        sys.exit(0 if libraries else 3)
    source = pathlib.Path(sys.argv[1]).read_bytes()
    missing = set(sys.argv[2:])
    for path in libraries:
        nvrtc = ctypes.CDLL(str(path))
        known = architectures(nvrtc)
        for arch in sys.argv[2:]:
            if arch in known:
                compile_kernels(nvrtc, path.name, source, arch)
        missing -= known
    if missing:
        sys.exit("no compiler knows " + " ".join(sorted(missing)))


main()
