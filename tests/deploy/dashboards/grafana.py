"""Grafana's model of a dashboard, as far as ours need it: panels in rows, written as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SCHEMA_VERSION: Final = 39
COLUMNS: Final = 24
LANGUAGES: Final = ("en", "zh")
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
PALETTE: Final = {"mode": "palette-classic"}


@dataclass(frozen=True)
class Text:
    """One text in each language."""

    en: str
    zh: str

    def in_language(self, language: str) -> str:
        return str(getattr(self, language))


@dataclass(frozen=True)
class Query:
    """An expression and how its series are named: a text, or Grafana's ``{{label}}``."""

    expr: str
    legend: Text | str = ""


@dataclass(frozen=True)
class Panel:
    """One picture. ``limits`` are values from which it turns yellow, then red."""

    kind: str
    """stat, timeseries or table."""
    title: Text
    about: Text
    queries: tuple[Query, ...]
    unit: str = "short"
    width: int = 8
    height: int = 8
    limits: tuple[float, ...] = ()
    stacked: bool = False
    top: float | None = None
    """Upper end of the axis, 1 for ratios."""
    page: str = ""
    """Address in the product's own dashboard that a series leads to."""


@dataclass(frozen=True)
class Section:
    """Panels under one heading."""

    title: Text
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """Something to choose: values of a label."""

    name: str
    title: Text
    query: str


@dataclass(frozen=True)
class Dashboard:
    """A page of Grafana, the same in each language."""

    name: str
    title: Text
    about: Text
    sections: tuple[Section, ...]
    variables: tuple[Variable, ...] = field(default_factory=tuple)


def written(dashboard: Dashboard, language: str) -> str:
    """JSON, one panel a line, so that a change is read as one."""
    model = _model(dashboard, language)
    panels = ",\n".join(f"  {_line(panel)}" for panel in model.pop("panels"))
    head = ",\n".join(f" {json.dumps(key)}: {_line(value)}" for key, value in model.items())
    return f'{{\n{head},\n "panels": [\n{panels}\n ]\n}}\n'


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _model(dashboard: Dashboard, language: str) -> dict[str, Any]:
    suffix = "" if language == "en" else f"-{language}"
    return {
        "uid": f"hami-{dashboard.name}{suffix}",
        "title": dashboard.title.in_language(language),
        "description": dashboard.about.in_language(language),
        "tags": ["hami", "mig", "gpu"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [_link_to_the_others(language)],
        "templating": {"list": list(_variables(dashboard, language))},
        "annotations": {"list": []},
        "panels": list(_panels(dashboard.sections, language)),
    }


def _link_to_the_others(language: str) -> dict[str, Any]:
    title = Text("HAMi dashboards", "HAMi 仪表板").in_language(language)
    return {
        "type": "dashboards",
        "title": title,
        "tags": ["hami"],
        "asDropdown": True,
        "keepTime": True,
        "includeVars": True,
    }


def _variables(dashboard: Dashboard, language: str) -> Iterator[dict[str, Any]]:
    source = Text("Data source", "数据源").in_language(language)
    yield {"name": "datasource", "label": source, "type": "datasource", "query": "prometheus"}
    for variable in dashboard.variables:
        yield {
            "name": variable.name,
            "label": variable.title.in_language(language),
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": variable.query, "refId": variable.name},
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }
    address = Text("Address of hami-web", "hami-web 的地址").in_language(language)
    base = "http://127.0.0.1:8000"
    yield {
        "name": "web",
        "label": address,
        "type": "textbox",
        "query": base,
        "current": {"text": base, "value": base},
    }


def _panels(sections: Sequence[Section], language: str) -> Iterator[dict[str, Any]]:
    number = top = 0
    for section in sections:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": section.title.in_language(language),
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1},
        }
        top += 1
        left = tallest = 0
        for panel in section.panels:
            if left + panel.width > COLUMNS:
                top, left, tallest = top + tallest, 0, 0
            number += 1
            place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
            yield {"id": number, "gridPos": place, **_panel(panel, language)}
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest


def _panel(panel: Panel, language: str) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0, "color": _colour(panel)}
    if panel.top is not None:
        defaults["max"] = panel.top
    if panel.limits:
        defaults["thresholds"] = {"mode": "absolute", "steps": _steps(panel.limits)}
    if panel.page:
        title = Text("Open in hami-web", "在 hami-web 中打开").in_language(language)
        defaults["links"] = [{"title": title, "url": "${web}" + panel.page, "targetBlank": True}]
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.stacked else "none"}
        fill = 25 if panel.stacked else 8
        defaults["custom"] = {"fillOpacity": fill, "stacking": stacking, "showPoints": "never"}
    return {
        "type": panel.kind,
        "title": panel.title.in_language(language),
        "description": panel.about.in_language(language),
        "datasource": SOURCE,
        "targets": list(_targets(panel, language)),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        **_display(panel),
    }


def _colour(panel: Panel) -> dict[str, str]:
    if panel.kind == "stat":
        return {"mode": "thresholds" if panel.limits else "fixed", "fixedColor": "text"}
    return PALETTE


def _steps(limits: Sequence[float]) -> list[dict[str, Any]]:
    colours = ("yellow", "red")[-len(limits) :]
    steps = [{"color": c, "value": v} for c, v in zip(colours, limits, strict=True)]
    return [{"color": "green", "value": None}, *steps]


def _targets(panel: Panel, language: str) -> Iterator[dict[str, Any]]:
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        legend = query.legend
        target = {
            "refId": letter,
            "datasource": SOURCE,
            "expr": query.expr,
            "legendFormat": legend.in_language(language) if isinstance(legend, Text) else legend,
        }
        if panel.kind == "table":
            target |= {"format": "table", "instant": True}
        elif panel.kind == "stat":
            target |= {"instant": True}
        yield target


def _display(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        colour = "background" if panel.limits else "none"
        return {"options": {"colorMode": colour, "graphMode": "none", "textMode": "auto"}}
    if panel.kind == "table":
        hidden = {"Time": True, "__name__": True}
        return {
            "options": {"showHeader": True, "cellHeight": "sm"},
            "transformations": [
                {"id": "merge", "options": {}},
                {"id": "organize", "options": {"excludeByName": hidden}},
            ],
        }
    return {
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    }
