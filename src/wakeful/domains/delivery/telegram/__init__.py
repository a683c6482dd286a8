"""The `telegram` connector: messages to people on Telegram, and what they write and press, over the Bot API.

The token is part of every address: no address, and no error that might hold one, leaves this folder as it is.
"""
