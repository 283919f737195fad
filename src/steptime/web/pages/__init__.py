"""Pages of the guide, one file each: PATH, TITLE, ORDER and add(server, context)."""
