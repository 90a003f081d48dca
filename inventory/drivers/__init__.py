"""Everything that talks to hardware or to a cluster. No driver knows the database.

Each driver is a set of small capabilities (Protocols in `bmc/capabilities.py`, `cards/capabilities.py`).
A driver returns readings with their failures inside; it raises only for a programming error. Every
call takes a deadline in seconds and keeps it.
"""
