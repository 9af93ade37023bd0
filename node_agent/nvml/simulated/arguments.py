"""What the verbs of the command have in common: which GPU is meant, and the form of an answer."""

from __future__ import annotations

import argparse

Result = dict[str, str | int | list[str] | None]


def add_gpu(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", type=gpu_name, required=True, help="index or UUID")


def gpu_name(text: str) -> int | str:
    return int(text) if text.isdigit() else text
