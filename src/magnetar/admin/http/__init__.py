"""HTTP, and nothing of Pulsar's resources: the application's edges and the server that runs it.

Reading order: ``arguments`` (what a route's function is called with), ``router`` (routes, and which one takes a path),
``route_group`` (the routes of one subject), ``parameters`` (parts of paths and queries), ``bodies`` (request bodies and
answers), ``error_responses`` (from errors to answers), ``encoded_path`` (paths stay as they were sent), ``origins``
(who may ask), ``authentication`` (who asks), ``peer`` (the same, for later), ``authorization`` (may they),
``docs_page`` (the page at ``/docs``), ``connection`` (one connection with time limits) and ``websocket_connection``
(what it may become), ``server`` (uvicorn inside the broker's event loop).
"""
