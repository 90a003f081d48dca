"""Template tags of every page: icons, live cells, times, state marks, sortable headings."""

from datetime import datetime
from typing import Any
from zoneinfo import available_timezones

from django import template
from django.forms import BoundField
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from sensaka.cockpit.lines import grouped
from sensaka.live import cells as writing
from sensaka.live import sensors
from sensaka.live.cells import Cell, Cells
from sensaka.live.words import NODE_TAGS, state_words

register = template.Library()


@register.simple_tag
def icon(name: str) -> SafeString:
    """A decorative icon of the sprite."""
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static("vendor/icons.svg"),
        name,
    )


def _attributes(cell: Cell, key: str, state: str = "state") -> SafeString:
    parts = [format_html(' data-live="{}" data-{}="{}"', key, state, cell.state)]
    if cell.hint:
        parts.append(format_html(' data-hint="{}"', cell.hint))
    if cell.fill is not None:
        parts.append(format_html(' style="--fill:{}%"', f"{cell.fill:.1f}"))
    if cell.at is not None:
        parts.append(format_html(' data-at="{}"', int(cell.at.timestamp())))
    return mark_safe("".join(parts))  # noqa: S308 - every part was escaped by format_html


@register.simple_tag
def live(cells: Cells, *key: object, href: str = "", kind: str = "cell") -> SafeString:
    """A cell of a snapshot. `kind`: cell, bar-cell, state-mark, or track (a bar without text). Key parts are joined."""
    name = "".join(str(part) for part in key)
    cell = cells.get(name)
    if cell is None:
        cell = writing.unknown()
    attributes = _attributes(cell, name, "kind" if kind == "state-mark" else "state")
    if kind.startswith("fill-"):
        fill = f"{cell.fill or 0:.1f}"
        return format_html('<span class="{}" data-live-fill="{}" style="--fill:{}%"></span>', kind, name, fill)
    focus = mark_safe(' tabindex="0"') if cell.hint and not href else ""
    if cell.at is not None and cell.text.endswith(" UTC"):
        return format_html(
            '<time datetime="{}"{}{}>{}</time>', cell.at.strftime("%Y-%m-%dT%H:%M:%SZ"), attributes, focus, cell.text
        )
    classes = kind if kind == "cell" else f"cell {kind}"
    if href:
        return format_html('<a class="{}" href="{}"{}>{}</a>', classes, href, attributes, cell.text)
    return format_html('<span class="{}"{}{}>{}</span>', classes, attributes, focus, cell.text)


@register.simple_tag
def cell_text(cells: Cells, *key: object) -> str:
    """The bare text of a cell."""
    cell = cells.get("".join(str(part) for part in key))
    return cell.text if cell else ""


@register.simple_tag
def when(at: datetime | None, exact: bool = False) -> SafeString:
    """A time: UTC here, relative (or exact) in the viewer's zone once the script has run."""
    if at is None:
        return mark_safe('<span data-state="unknown">never</span>')
    attribute = mark_safe(" data-exact") if exact else ""
    text = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return format_html('<time datetime="{}"{}>{}</time>', at.strftime("%Y-%m-%dT%H:%M:%SZ"), attribute, text)


@register.simple_tag
def node_tag(state: str) -> SafeString:
    """A node's state as a mark and a word."""
    return format_html(
        '<span class="state-mark" data-kind="{}">{}</span>', NODE_TAGS.get(state, "free"), state_words(state)
    )


@register.simple_tag(takes_context=True)
def heading(context: dict[str, Any], column: str, title: str, number: bool = False) -> SafeString:
    """A table heading that sorts: ascending, then descending; other filters stay."""
    query = context["request"].GET.copy()
    current = context.get("sort", "")
    descending = current == column
    query["sort"] = f"-{column}" if descending else column
    query.pop("page", None)
    state = "ascending" if current == column else "descending" if current == f"-{column}" else "none"
    mark = {"ascending": " ▲", "descending": " ▼", "none": ""}[state]
    return format_html(
        '<th scope="col" data-column="{}" aria-sort="{}"{}><a href="?{}">{}{}</a></th>',
        column,
        state,
        mark_safe(' class="number"') if number else "",
        query.urlencode(),
        title,
        mark,
    )


register.filter("grouped", grouped)
register.filter("watts", writing.watts)
register.filter("size", writing.size)
register.filter("percent", writing.percent)
register.filter("count", writing.count)
register.filter("duration", writing.duration)
register.filter("state_words", state_words)
register.filter("sensor_reading", sensors.reading)
register.filter("sensor_limit", sensors.limit)


@register.filter
def joined(start: object, end: object) -> str:
    """Both as text, one after the other; `add` would refuse an identifier."""
    return f"{start}{end}"


@register.simple_tag
def time_zones() -> list[str]:
    """Every IANA name, for the list behind a field."""
    return sorted(available_timezones())


@register.filter
def styled(field: BoundField) -> SafeString:
    """A form field with the frame's classes, marked invalid and tied to its error where it has one."""
    kind = field.widget_type
    classes = {"checkbox": "form-check-input", "select": "form-select"}.get(kind, "form-control")
    attributes: dict[str, str | bool] = {"class": classes}
    if field.errors:
        attributes["class"] = f"{classes} is-invalid"
        attributes["aria-invalid"] = "true"
        described = [f"{field.auto_id}_error"]
        if field.help_text:
            described.append(f"{field.auto_id}_helptext")
        attributes["aria-describedby"] = " ".join(described)
    return field.as_widget(attrs=attributes)


@register.filter
def item(mapping: dict[str, object], key: str) -> object:
    """What a dictionary holds under a key, or nothing."""
    return mapping.get(key, "")
