"""The ledger, kept from what is seen to run: reading jobs, settling claims, writing entries.

`recording.record` is the door. Everything is derived anew from the jobs that changed and from what
stands in the ledger, so that a repeated pass changes nothing.
"""
