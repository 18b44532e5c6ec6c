"""The first calls of a CUDA runtime program: ``cudart_calls.py LIBRARY``. Prints their results."""

import ctypes
import json
import sys


def main() -> None:
    runtime = ctypes.CDLL(sys.argv[1])
    runtime.cudaGetErrorName.restype = ctypes.c_char_p
    count, pointer = ctypes.c_int(), ctypes.c_void_p()
    results = [
        runtime.cudaGetDeviceCount(ctypes.byref(count)),
        runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1024)),
    ]
    print(json.dumps([runtime.cudaGetErrorName(result).decode() for result in results]))


if __name__ == "__main__":
    main()
