"""One chain: where it starts, what its warm-up learns, how it draws."""
