"""A policy behind a socket, for our own clients and for other people's."""
