"""What commands are written with: options, the store they open, tables, sentences. `cli` has all commands."""
