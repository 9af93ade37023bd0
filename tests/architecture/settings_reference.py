"""The tables of settings in the documents: facts from the code, meanings from the documents.

``make docs`` rewrites name, default and what is allowed in each language, and keeps the words that
people wrote beside them; a new variable appears with an empty meaning, which a test refuses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Final

from hami_web.environment import SETTINGS
from node_agent.config import AgentConfig

ROOT: Final = Path(__file__).parents[2]
EMPTY: Final = {"en": "empty", "zh": "空"}
PHRASES: Final = {
    "text": "文本",
    "a path": "路径",
    "an absolute path": "绝对路径",
    "words; several with commas": "词；多个以逗号分隔",
    "users; several with commas": "用户；多个以逗号分隔",
    "addresses and networks; several with commas": "地址或网段；多个以逗号分隔",
    "seconds in 0.05…3600": "0.05…3600 秒",
    "a port in 0…65535, 0 for none": "端口 0…65535，0 表示关闭",
    "the Kubernetes name of this node": "本节点在 Kubernetes 中的名称",
    "a Kubernetes namespace": "Kubernetes 命名空间",
    "a name such as nvidia.com/gpu": "形如 nvidia.com/gpu 的名称",
    "GPU UUIDs or indexes, separated by commas": "GPU UUID 或序号，以逗号分隔",
    "http://HOST:PORT, https://HOST:PORT; empty: no spans": (
        "http://HOST:PORT、https://HOST:PORT；空表示没有 span"
    ),
    "oidc, proxy; several with commas": "oidc, proxy；多个以逗号分隔",
    "empty, or /NAME/… of letters, digits, - . _ ~": "空，或由字母、数字和 - . _ ~ 组成的 /NAME/…",
}
"""What is allowed, in Chinese; numbers and lists of words are the same in every language."""
_ROW: Final = re.compile(r"^\| `([A-Z_]+)` \|.*\| ([^|]*) \|$", re.MULTILINE)
_TABLE: Final = re.compile(r"((?:^\|.*\n)+)", re.MULTILINE)
_HEADS: Final = {
    "en": "| variable | default | allowed | meaning |",
    "zh": "| 变量 | 默认值 | 允许的值 | 含义 |",
}

Facts = tuple[str, str, str]


def control_plane() -> list[Facts]:
    """Name, default and allowed of what extender, web and worker read."""
    import_module("hami_web.settings")
    return [(setting.name, setting.default, setting.allowed) for setting in SETTINGS.values()]


def agent() -> list[Facts]:
    """The same of the node agent."""
    return [(setting.name, setting.default, setting.allowed) for setting in AgentConfig.settings()]


def table(facts: Iterable[Facts], meanings: dict[str, str], language: str) -> str:
    """A Markdown table; rows that have a meaning keep its order, new ones follow."""
    known = {name: (default, allowed) for name, default, allowed in facts}
    names = [name for name in meanings if name in known]
    names += [name for name in known if name not in meanings]
    rows = [_HEADS[language], "|---|---|---|---|"]
    for name in names:
        default, allowed = known[name]
        shown = f"`{default.replace(f'{ROOT}/', '')}`" if default else EMPTY[language]
        words = PHRASES.get(allowed, allowed) if language == "zh" else allowed
        rows.append(f"| `{name}` | {shown} | {words} | {meanings.get(name, '')} |")
    return "\n".join(rows) + "\n"


def rewritten(text: str, language: str) -> str:
    """The document with both tables made anew."""
    sections = re.split(r"(?m)^(?=## )", text)
    for index, facts in ((1, control_plane()), (2, agent())):
        found = _ROW.findall(sections[index])
        # A row's number of columns does not matter: the meaning is the last one.
        before, _, after = _TABLE.split(sections[index], maxsplit=1)
        sections[index] = before + table(facts, dict(found), language) + after
    return "".join(sections)


DOCUMENTS: Final = {
    "en": ROOT / "docs" / "configuration.md",
    "zh": ROOT / "docs" / "zh" / "configuration.md",
}


def stale() -> list[str]:
    """Documents that the code has left behind."""
    return [
        str(path.relative_to(ROOT))
        for language, path in DOCUMENTS.items()
        if path.exists()
        and rewritten(path.read_text(encoding="utf-8"), language) != path.read_text("utf-8")
    ]


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"make docs would change: {', '.join(stale())}" if stale() else 0)
    for code, document in DOCUMENTS.items():
        if document.exists():
            before = document.read_text(encoding="utf-8")
            document.write_text(rewritten(before, code), encoding="utf-8")
