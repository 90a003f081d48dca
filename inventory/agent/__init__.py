"""sensaka-agent: reads the cards of the node it runs on and delivers what it read. Needs no Django.

A round (every 10 s) reads, appends to a spool on disk and returns; a second thread delivers the spool in
order. The two meet only in the spool, so a slow or absent server never delays a reading.
"""

VERSION = "0.1.0"
