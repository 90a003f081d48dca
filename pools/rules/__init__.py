"""Who may use what, decided over a frozen snapshot: no framework, no input or output.

Amounts of a card are thousandths (a whole card is 1000), times are whole UTC seconds since 1970,
lengths of time are seconds, memory is in bytes. Ids are whatever the caller uses; they only need to
be hashable and of one sortable kind.
"""
