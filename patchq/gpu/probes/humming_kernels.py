"""Compiles the kernels of Humming that a layer selects on a card that is not here: in an interpreter that has Humming.

Only in this process torch answers for the card: its capability, properties and name; nothing is run on a card and the
cubins are not loaded. The job is a JSON file: `layer`, `gemm`, `target`. One JSON line a kernel comes out:
`name`, `path` of its cubin; or one line with `error`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CARDS: dict[str, tuple[str, int, float, float]] = {
    "sm_80": ("NVIDIA A100-SXM4-80GB", 108, 2039.0, 311.9),
    "sm_86": ("NVIDIA GeForce RTX 3090", 82, 936.096, 128.1),
    "sm_89": ("NVIDIA GeForce RTX 4090", 128, 1008.1, 297.3),
    "sm_90": ("NVIDIA H100 80GB HBM3", 132, 3352.3, 963.8),
}
"""Per target a card of it: name, multiprocessors, GB/s of memory, and Humming's estimate of dense FP16 TFLOPS (its
`estimate_tensorcore_max_tops` at the card's highest clock)."""


def answer_for(target: str) -> None:
    """Let torch and Humming see that card, in this process."""
    import torch
    from humming.utils import device as humming_device
    from humming.utils.cuda import find_all_cuda_paths

    name, multiprocessors, bandwidth, tops = CARDS[target]
    digits = target.removeprefix("sm_")
    capability = (int(digits[:-1]), int(digits[-1]))
    properties = SimpleNamespace(
        major=capability[0], minor=capability[1], multi_processor_count=multiprocessors, name=name
    )
    fake: dict[str, Any] = {
        "get_device_capability": lambda *_, **__: capability,
        "get_device_properties": lambda *_, **__: properties,
        "get_device_name": lambda *_, **__: name,
        "current_device": lambda: 0,
        "set_device": lambda _: None,
    }
    for attribute, value in fake.items():
        setattr(torch.cuda, attribute, value)
    found = [env for env in find_all_cuda_paths() if "nvcc" in env["binaries"]]
    if not found:
        raise RuntimeError("Humming finds no nvcc")
    torch.version.cuda = f"{found[0]['major']}.0"
    humming_device.calculate_gpu_bandwidth = lambda *_: bandwidth
    humming_device.estimate_tensorcore_max_tops = lambda *_: tops


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

    KernelRuntime.load_cubin = keep
    HummingKernel.load_cubin = keep
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
        for path, kernel in made.items()
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
