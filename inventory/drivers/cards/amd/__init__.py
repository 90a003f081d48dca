"""AMD cards through AMD SMI."""

from inventory.drivers.cards.amd.source import AmdSmiCards

__all__ = ["AmdSmiCards"]
