"""Calls that give a card work. Run as a module, a process that makes them; see ``cuda.py``."""

import ctypes
import time
from itertools import pairwise

from tests.native.simulated_driver.cuda import SUCCESS, Cuda, answer_calls

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Work(Cuda):
    """Streams and events are numbers: 0 is the default stream."""

    def __init__(self) -> None:
        super().__init__()
        self._function = ctypes.c_void_p()
        self._streams: list[ctypes.c_void_p] = [ctypes.c_void_p()]
        self._events: list[ctypes.c_void_p] = []
        self._called: list[float] = []
        self._callback = _CALLBACK(lambda _: self._called.append(time.monotonic()))

    def begin(self, kernel: str = "spin") -> int:
        """A module and its function, which ``launch`` launches."""
        module = ctypes.c_void_p()
        return int(
            self._driver.cuModuleLoadData(ctypes.byref(module), b"image")
            or self._driver.cuModuleGetFunction(
                ctypes.byref(self._function), module, kernel.encode()
            )
        )

    def launch(self, work_ns: int, count: int = 1, stream: int = 0) -> int:
        argument = ctypes.c_uint64(work_ns)
        params = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(argument), ctypes.c_void_p))
        for _ in range(count):
            result = self._driver.cuLaunchKernel(
                self._function, 1, 1, 1, 1, 1, 1, 0, self._streams[stream], params, None
            )
            if result != SUCCESS:
                return int(result)
        return SUCCESS

    def launch_s(self, work_ns: int, count: int) -> float:
        """Seconds that the launches took the program."""
        begin = time.monotonic()
        assert self.launch(work_ns, count) == SUCCESS
        return time.monotonic() - begin

    def stream(self, flags: int = 0) -> int:
        self._streams.append(ctypes.c_void_p())
        assert self._driver.cuStreamCreate(ctypes.byref(self._streams[-1]), flags) == SUCCESS
        return len(self._streams) - 1

    def event(self) -> int:
        self._events.append(ctypes.c_void_p())
        assert self._driver.cuEventCreate(ctypes.byref(self._events[-1]), 0) == SUCCESS
        return len(self._events) - 1

    def record(self, event: int, stream: int = 0) -> int:
        return int(self._driver.cuEventRecord(self._events[event], self._streams[stream]))

    def wait(self, stream: int, event: int) -> int:
        return int(self._driver.cuStreamWaitEvent(self._streams[stream], self._events[event], 0))

    def query_event(self, event: int) -> int:
        return int(self._driver.cuEventQuery(self._events[event]))

    def synchronize_event(self, event: int) -> int:
        return int(self._driver.cuEventSynchronize(self._events[event]))

    def query(self, stream: int = 0) -> int:
        return int(self._driver.cuStreamQuery(self._streams[stream]))

    def synchronize(self, stream: int = 0) -> tuple[int, float]:
        """The result, and when the wait was over (CLOCK_MONOTONIC, seconds)."""
        result = self._driver.cuStreamSynchronize(self._streams[stream])
        return result, time.monotonic()

    def synchronize_context(self) -> int:
        return int(self._driver.cuCtxSynchronize())

    def elapsed_ms(self, start: int, end: int) -> tuple[int, float]:
        milliseconds = ctypes.c_float()
        result = self._driver.cuEventElapsedTime(
            ctypes.byref(milliseconds), self._events[start], self._events[end]
        )
        return result, milliseconds.value

    def intervals_ms(self, work_ns: int, count: int) -> list[float]:
        """Times between the ends of so many launches, by an event behind each."""
        events = [self.event() for _ in range(count)]
        for event in events:
            assert self.launch(work_ns) == SUCCESS
            assert self.record(event) == SUCCESS
        assert self.synchronize()[0] == SUCCESS
        return [self.elapsed_ms(a, b)[1] for a, b in pairwise(events)]

    def call_behind(self, stream: int = 0) -> int:
        """Has a function of this process called when the stream gets there."""
        return int(self._driver.cuLaunchHostFunc(self._streams[stream], self._callback, None))

    def called_at(self) -> list[float]:
        return self._called


if __name__ == "__main__":
    answer_calls(Work())
