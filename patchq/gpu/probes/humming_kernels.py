"""Compiles the kernels of Humming that a layer selects on a card that is not here: in an interpreter that has Humming.

Only in this process torch and Humming are answered for the card: its capability, properties and name; nothing is run on a
card and the cubins are not loaded. Humming 0.1.10 asks torch and the driver's library, 0.1.19 an extension of its own. The
job is a JSON file: `layer`, `gemm`, `target`. One JSON line a kernel comes out: `name`, `path` of its cubin; or one line
with `error`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any


@dataclass(frozen=True)
class Card:
    """A card of a target.

    Attributes:
        name: as the driver has it.
        multiprocessors: how many.
        bandwidth: of its memory, in GB/s.
        tops: dense FP16 TFLOPS as Humming 0.1.10 estimates them (`estimate_tensorcore_max_tops` at the highest clock).
        clock: of the multiprocessors as the driver says it, in kHz.
        operations: FP16 ones of the tensor cores, per multiprocessor and clock, as Humming 0.1.19 counts them.
        l2: bytes of second-level cache.
    """

    name: str
    multiprocessors: int
    bandwidth: float
    tops: float
    clock: int
    operations: int
    l2: int


CARDS = {
    "sm_80": Card("NVIDIA A100-SXM4-80GB", 108, 2039.0, 311.9, 1_410_000, 2048, 40 << 20),
    "sm_86": Card("NVIDIA GeForce RTX 3090", 82, 936.096, 128.1, 1_695_000, 1024, 6 << 20),
    "sm_89": Card("NVIDIA GeForce RTX 4090", 128, 1008.1, 297.3, 2_520_000, 1024, 72 << 20),
    "sm_90": Card("NVIDIA H100 80GB HBM3", 132, 3352.3, 963.8, 1_980_000, 4096, 50 << 20),
}
_HALF_RATE = {"sm_86", "sm_89"}
"""Targets that sum FP16 products in FP32 at half the rate."""
_REGISTERS = 65_536
"""Of a multiprocessor, on each of these targets."""


def answer_for(target: str) -> None:
    """Let torch and Humming see that card, in this process."""
    import torch
    from humming.utils import device as humming_device
    from humming.utils.cuda import find_all_cuda_paths

    card = CARDS[target]
    digits = target.removeprefix("sm_")
    capability = (int(digits[:-1]), int(digits[-1]))
    properties = SimpleNamespace(
        major=capability[0],
        minor=capability[1],
        multi_processor_count=card.multiprocessors,
        name=card.name,
    )
    fake: dict[str, Any] = {
        "get_device_capability": lambda *_, **__: capability,
        "get_device_properties": lambda *_, **__: properties,
        "get_device_name": lambda *_, **__: card.name,
        "current_device": lambda: 0,
        "set_device": lambda _: None,
        "device": lambda _: contextlib.nullcontext(),
    }
    for attribute, value in fake.items():
        setattr(torch.cuda, attribute, value)
    found = [env for env in find_all_cuda_paths() if "nvcc" in env["binaries"]]
    if not found:
        raise RuntimeError("Humming finds no nvcc")
    torch.version.cuda = f"{found[0]['major']}.0"
    if hasattr(humming_device, "_get_device_info_extension"):
        _answer_extension(card, capability, half_rate=target in _HALF_RATE)
    else:
        humming_device.calculate_gpu_bandwidth = lambda *_: card.bandwidth
        humming_device.estimate_tensorcore_max_tops = lambda *_: card.tops


def _answer_extension(card: Card, capability: tuple[int, int], *, half_rate: bool) -> None:
    """Stand in for the extension that Humming 0.1.19 asks for all that it knows of a card; its csrc/device_info.cpp."""
    from humming import device

    tops = card.multiprocessors * card.operations * card.clock / 1e9
    floats = tops / 2 if half_rate else tops
    throughput = {"float16": floats, "bfloat16": floats, "int8": 2 * tops, "int4": 4 * tops}
    if capability >= (8, 9):
        throughput |= {"float8e4m3": 2 * floats, "float8e5m2": 2 * floats}
    info = SimpleNamespace(
        index=0,
        name=card.name,
        is_ppu=False,
        sm_count=card.multiprocessors,
        sm_major=capability[0],
        sm_minor=capability[1],
        sm_version=10 * capability[0] + capability[1],
        max_registers_per_sm=_REGISTERS,
        l2_cache_size=card.l2,
        memory_bandwidth_gbps=card.bandwidth,
        tensorcore_tops=throughput,
    )
    extension = SimpleNamespace(_DeviceInfo=lambda _: info)
    device._get_device_info_extension = lambda: extension  # noqa: SLF001


def compile_layer(job: dict[str, Any]) -> list[dict[str, str]]:
    """Every kernel of a layer's tuning table, compiled."""
    answer_for(job["target"])
    from humming.jit.runtime import KernelRuntime
    from humming.kernel.humming import HummingKernel
    from humming.layer import HummingLayerMeta
    from humming.tune import get_heuristics_config

    made: dict[str, Any] = {}

    def keep(self: Any) -> None:
        self.kernel_id = len(made)
        made[self.kernel_filename] = self

    for kind in (KernelRuntime, HummingKernel):
        kind.load_cubin = keep
    HummingKernel.register_kernel = keep
    layer = dict(job["layer"])
    table = get_heuristics_config(HummingLayerMeta(**layer), gemm_type=job["gemm"])
    HummingKernel.prepare_kernels(
        json.dumps(layer), json.dumps({"gemm_type": job["gemm"]}), json.dumps(table)
    )
    return [
        {
            "path": path,
            "name": "m{}n{}k{}".format(*kernel.block_shape) + "/{}x{}x{}".format(*kernel.warp_shape),
        }
        for path, kernel in sorted(made.items(), key=lambda m: (m[1].block_shape, m[1].warp_shape))
    ]


def main() -> None:
    """Compile what the job named by the first argument asks for."""
    job = json.loads(Path(sys.argv[1]).read_bytes())
    try:
        for answer in compile_layer(job):
            print(json.dumps(answer), flush=True)
    except Exception as error:  # noqa: BLE001
        said = str(error).strip().splitlines()
        print(json.dumps({"error": f"{type(error).__name__}: {said[-1] if said else ''}"[:300]}))


if __name__ == "__main__":
    main()
