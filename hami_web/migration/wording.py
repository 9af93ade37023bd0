"""The words for what a conversion chose, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hami_web.core.geometries import Note, NoteCode

NOTES: Final[Mapping[NoteCode, Promise]] = {
    NoteCode.FROM_GEOMETRY: _("{profile} of {model}: some geometry has it"),
    NoteCode.FROM_ALLOWLIST: _("{profile} of {model}: the allowlist beside it permits it already"),
    NoteCode.RENAMED: _("{profile} of {model} is called {detail} by present drivers"),
    NoteCode.NOT_NAMED_BY_NVML: _("{profile} is left out: NVML names no such profile on {model}"),
    NoteCode.MODEL_NOT_KNOWN: _("{model} is not a model that is known here: compare its name and profiles with nvidia-smi"),  # noqa: E501, one message
    NoteCode.MEMORY_CONTRADICTS: _("{profile} of {model} has {detail} in different geometries: NVML on the node decides"),  # noqa: E501
    NoteCode.COUNT_IMPOSSIBLE: _("{profile} of {model}: {detail} fit on a GPU; the profile is kept, the number never was possible"),  # noqa: E501
    NoteCode.ANY_MODEL: _("{profile} names no device: permitted on every known model that has it ({model})"),  # noqa: E501
    NoteCode.FILTER_NOT_KNOWN: _("{profile}: device {detail} is not known here: add its model by hand"),  # noqa: E501
    NoteCode.WITHOUT_MIG: _("a layout without MIG needs no profile"),
}  # fmt: skip


def note_text(note: Note) -> str:
    """One choice in words."""
    words = str(NOTES[note.code])
    return words.format(model=note.model, profile=note.profile, detail=note.detail)
