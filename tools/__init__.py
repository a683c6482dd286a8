"""What the house itself needs; none of it is shipped."""
