"""Profiles that NVML is known to name on each model, to check what people wrote.

Sources: NVIDIA's MIG user guide and published ``nvidia-smi mig -lgip`` listings. On a node NVML
alone decides; a model that is not here is no error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_BOARDS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (
        (
            "A100-SXM4-40GB",
            "A100-PCIE-40GB",
        ),
        "1g.5gb:7 1g.5gb+me:1 1g.10gb:4 2g.10gb:3 3g.20gb:2 4g.20gb:1 7g.40gb:1",
    ),
    (
        (
            "A100-SXM4-80GB",
            "A100 80GB PCIe",
            "H100 80GB HBM3",
            "H100 PCIe",
        ),
        "1g.10gb:7 1g.10gb+me:1 1g.20gb:4 2g.20gb:3 3g.40gb:2 4g.40gb:1 7g.80gb:1",
    ),
    (
        ("A30",),
        "1g.6gb:4 1g.6gb+me:1 2g.12gb:2 2g.12gb+me:1 4g.24gb:1",
    ),
    (
        ("H100 NVL",),
        "1g.12gb:7 1g.12gb+me:1 1g.24gb:4 2g.24gb:3 3g.47gb:2 4g.47gb:1 7g.94gb:1",
    ),
    (
        (
            "GH200 480GB",
            "H20",
        ),
        "1g.12gb:7 1g.12gb+me:1 1g.24gb:4 2g.24gb:3 3g.48gb:2 4g.48gb:1 7g.96gb:1",
    ),
    (
        ("GH200 144G HBM3e",),
        "1g.18gb:7 1g.18gb+me:1 1g.36gb:4 2g.36gb:3 3g.72gb:2 4g.72gb:1 7g.144gb:1",
    ),
    (
        (
            "H20-3e",
            "H200",
            "H200 NVL",
        ),
        "1g.18gb:7 1g.18gb+me:1 1g.35gb:4 2g.35gb:3 3g.71gb:2 4g.71gb:1 7g.141gb:1",
    ),
    (
        ("B200",),
        "1g.23gb:7 1g.23gb+me:1 1g.45gb:4 2g.45gb:3 3g.90gb:2 4g.90gb:1 7g.180gb:1",
    ),
    (
        ("GB200",),
        "1g.23gb:7 1g.23gb+me:1 1g.47gb:4 2g.47gb:3 3g.93gb:2 4g.93gb:1 7g.186gb:1",
    ),
    (
        ("B300 SXM6 AC",),
        "1g.34gb:7 1g.34gb+me:1 1g.67gb:4 2g.67gb:3 3g.135gb:2 4g.135gb:1 7g.269gb:1",
    ),
    (
        ("GB300",),
        "1g.35gb:7 1g.35gb+me:1 1g.70gb:4 2g.70gb:3 3g.139gb:2 4g.139gb:1 7g.278gb:1",
    ),
    (
        (
            "RTX PRO 6000 Blackwell Server Edition",
            "RTX PRO 6000 Blackwell Workstation Edition",
            "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        ),
        "1g.24gb:4 1g.24gb+me:1 1g.24gb+gfx:4 1g.24gb+me.all:1 1g.24gb-me:4 2g.48gb:2 "
        "2g.48gb+gfx:2 2g.48gb+me.all:1 2g.48gb-me:2 4g.96gb:1 4g.96gb+gfx:1",
    ),
    (
        ("RTX PRO 5000 Blackwell",),
        "1g.24gb:2 1g.24gb+me:1 1g.24gb+gfx:2 1g.24gb+me.all:1 1g.24gb-me:2 2g.48gb:1 "
        "2g.48gb+gfx:1",
    ),
    (
        ("RTX PRO 4500 Blackwell",),
        "1g.16gb:2 1g.16gb+gfx:2 1g.16gb+me.all:1 1g.16gb-me:2 2g.32gb:1 2g.32gb+gfx:1",
    ),
)
"""Models that are alike, and each profile with how many fit on an empty GPU."""


def _counts(text: str) -> dict[str, int]:
    pairs = (item.split(":") for item in text.split())
    return {name: int(count) for name, count in pairs}


KNOWN_PROFILES: Final[Mapping[str, Mapping[str, int]]] = {
    model: _counts(text) for models, text in _BOARDS for model in models
}
"""Model as NVML reports it (without the maker), profile, and how many fit on an empty GPU."""

PCI_MODELS: Final[Mapping[str, str]] = {
    "0x20B010DE": "A100-SXM4-40GB",
    "0x20F110DE": "A100-PCIE-40GB",
    "0x20B210DE": "A100-SXM4-80GB",
    "0x20B510DE": "A100 80GB PCIe",
    "0x20B710DE": "A30",
    "0x233010DE": "H100 80GB HBM3",
    "0x233110DE": "H100 PCIe",
    "0x232110DE": "H100 NVL",
    "0x234210DE": "GH200 480GB",
    "0x234810DE": "GH200 144G HBM3e",
    "0x232910DE": "H20",
    "0x232C10DE": "H20-3e",
    "0x233510DE": "H200",
    "0x233B10DE": "H200 NVL",
    "0x290110DE": "B200",
    "0x290910DE": "B200",
    "0x294110DE": "GB200",
    "0x318210DE": "B300 SXM6 AC",
    "0x31C210DE": "GB300",
    "0x31C310DE": "GB300",
    "0x2BB510DE": "RTX PRO 6000 Blackwell Server Edition",
    "0x2BB110DE": "RTX PRO 6000 Blackwell Workstation Edition",
    "0x2BB410DE": "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    "0x2BB310DE": "RTX PRO 5000 Blackwell",
    "0x2C3110DE": "RTX PRO 4500 Blackwell",
}
"""Model by the number that NVIDIA's mig-parted filters devices with: PCI device id, then vendor."""
