"""What programs use: processor and memory, each with its descendants."""

import os
import subprocess
import sys

from scout.adapters.process import process_load
from scout.adapters.process.process_load import LoadMeter
from tests.daemon.daemons import eventually

_BUSY = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'while True: pass']).wait()"


def test_the_load_of_a_program_includes_its_children() -> None:
    meter = LoadMeter()
    with subprocess.Popen([sys.executable, "-c", _BUSY], start_new_session=True) as program:
        try:

            def look() -> bool:
                load = meter.measure([program.pid])[program.pid]
                return load.processes == 2 and load.cpu_percent > 0 and load.memory_bytes > 1_000_000

            assert eventually(look)
        finally:
            os.killpg(program.pid, 9)


def test_a_program_that_ended_has_no_load() -> None:
    with subprocess.Popen(["true"]) as program:
        program.wait()
    assert LoadMeter().measure([program.pid]) == {}
    assert LoadMeter().measure([]) == {}


def test_without_proc_the_load_comes_from_ps() -> None:
    samples, shares = process_load.list_with_ps()
    assert samples[os.getpid()].parent == os.getppid()
    assert samples[os.getpid()].memory > 1_000_000
    assert shares[os.getpid()] >= 0
