"""Template tags of requests and of what is held."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from pools.models import Allocation
from pools.selectors.expectation import Expected
from sensaka.cockpit.templatetags.cockpit import when
from sensaka.live.cells import Cell

register = template.Library()


@register.simple_tag
def expected_words(plan: Expected) -> SafeString:
    """When a plan expects a start: at once, a time, or that it isn't known and why."""
    if plan.at_once:
        return format_html('<span class="state-mark" data-kind="good">{}</span>', _("at once"))
    if plan.start is not None:
        return when(plan.start)
    why = plan.unknown or _("the plan has no time for it: the form says what has to change first")
    return format_html('<span data-state="unknown" data-hint="{}" tabindex="0">{}</span>', why, _("not known"))


@register.simple_tag
def card_name(row: Allocation) -> str:
    """The node and card of a row of the ledger, with its slice or part."""
    card = row.card
    name = f"{row.node.name} {card.slot or card.pci_address or card.uuid[-8:]}"
    if row.slice is not None:
        return f"{name}, {row.slice.profile}"
    width = row.share.upper - row.share.lower
    return name if width == 1000 else f"{name}, {width / 10:g}\u202f%"


@register.simple_tag
def cell_mark(cell: Cell) -> SafeString:
    """A cell that does not move, as a mark and a word."""
    hint = format_html(' data-hint="{}" tabindex="0"', cell.hint) if cell.hint else ""
    return format_html('<span class="state-mark" data-kind="{}"{}>{}</span>', cell.state, hint, cell.text)


@register.simple_tag
def cell_plain(cell: Cell) -> SafeString:
    """A cell that does not move, as text."""
    hint = format_html(' data-hint="{}" tabindex="0"', cell.hint) if cell.hint else ""
    return format_html('<span data-state="{}"{}>{}</span>', cell.state, hint, cell.text)
