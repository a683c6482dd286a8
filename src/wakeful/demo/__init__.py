"""The demo: a small fleet with a week behind it, its dashboard, and three ways to break it.

Two processes share a temporary folder. The supervisor holds the port and starts the server again when it is killed; the
server is an ordinary one, with scripted agents, a drawn phone, and a clock that can be moved. Nothing leaves the
machine.
"""
