"""Between the queue and the clusters: what was admitted is launched, what is to end is ended.

A request in `starting` is the outbox. What is due is leased, done outside of any transaction, and what
came of it is stored; a process that dies in between leaves a lease that ends, and the job is looked for
by its mark before it is submitted again.
"""
