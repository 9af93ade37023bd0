"""``manage.py migrate_geometries`` on files as people have them."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.utils import translation

from hami_web.core.allowlist import parse_allowlist
from hami_web.core.geometries import NoteCode
from hami_web.migration.wording import NOTES

GEOMETRIES = """\
nvidia:
  knownMigGeometries:
  - models: [A30]
    allowedGeometries:
    - - {name: 1g.6gb, memory: 6144, count: 4}
    - - {name: 4g.24gb, memory: 24576, count: 1}
"""
SHIPPED = Path(__file__).parents[2] / "deploy" / "device-config.yaml"


def converted(text: str, tmp_path: Path, *options: str) -> str:
    file = tmp_path / "given"
    file.write_text(text)
    out = StringIO()
    call_command("migrate_geometries", str(file), *options, stdout=out)
    return out.getvalue()


def config_map(text: str, name: str = "hami-scheduler-device") -> dict:
    data = {"device-config.yaml": text, "other": "{not yaml"}
    return {"kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.mark.parametrize(
    "text",
    [
        GEOMETRIES,
        yaml.safe_dump(config_map(GEOMETRIES)),
        json.dumps({"kind": "List", "items": [config_map("a: 1", "x"), config_map(GEOMETRIES)]}),
    ],
    ids=["file", "ConfigMap", "list"],
)
def test_the_answer_is_a_device_configuration_that_explains_itself(
    text: str, tmp_path: Path
) -> None:
    out = converted(text, tmp_path, "--current", str(SHIPPED))
    section = yaml.safe_load(out)["nvidia"]
    (entry,) = parse_allowlist(section["migProfileAllowlist"]).entries
    assert (entry.models, entry.profiles) == (("A30",), ("1g.6gb", "4g.24gb"))
    assert "# FromGeometry: nvidia.knownMigGeometries[0]" in out
    assert "# A30: -2g.12gb" in out


def test_programs_get_json(tmp_path: Path) -> None:
    (answer,) = json.loads(converted(GEOMETRIES, tmp_path, "-o", "json"))
    assert answer["migProfileAllowlist"] == [{"models": ["A30"], "profiles": ["1g.6gb", "4g.24gb"]}]
    assert {note["code"] for note in answer["notes"]} == {"FromGeometry"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "knownMigGeometries"),
        ("nvidia: {resourceCountName: nvidia.com/gpu}", "knownMigGeometries"),
        ("a: [", "YAML"),
        ("nvidia: {knownMigGeometries: 7}", "nvidia.knownMigGeometries: 7"),
    ],
)
def test_what_cannot_be_converted_is_refused_in_words(
    text: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match=words):
        converted(text, tmp_path)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(CommandError, match="/absent"):
        call_command("migrate_geometries", "/absent")


@pytest.mark.parametrize("code", sorted(NoteCode))
def test_every_choice_has_words_in_both_languages(code: NoteCode) -> None:
    english = str(NOTES[code])
    with translation.override("zh-hans"):
        assert str(NOTES[code]) != english
