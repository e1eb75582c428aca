"""Linear Road on xstream: traffic and history, the query network, the checker, the rating.

Built on public `xstream` names only, so that the application proves the API.
"""
