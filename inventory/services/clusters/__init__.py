"""Clusters: how a scheduler is connected, read and acted on.

`opening` makes a driver of a stored connection, `reading` is one visit without the database, `syncing`
claims what is due and stores a visit, by `nodes`, `cordons`, `places`, `jobs` and `holdings`. `connections`,
`cordoning` and `steering` are what people do.
"""
