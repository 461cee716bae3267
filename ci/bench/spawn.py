"""Starts one command a line of its input and says what it took.

A process's peak memory counts that of whoever started it, so the benchmark, which is large, does not start what it
measures: this does, which imports next to nothing.
"""

import json
import os
import sys
import time

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for line in sys.stdin:
    command, cwd, env = json.loads(line)
    os.chdir(cwd)
    began = time.perf_counter()
    nothing = os.open(os.devnull, os.O_RDONLY)
    files = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    pid = os.posix_spawnp(command[0], command, env, file_actions=files)
    _, status, used = os.wait4(pid, 0)
    os.close(nothing)
    print(
        json.dumps([time.perf_counter() - began, used.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)]),
        flush=True,
    )
