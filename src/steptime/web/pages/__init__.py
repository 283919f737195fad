"""One file per page of the guide. Each has `add(server, guide)`, which puts its addresses on the server."""
