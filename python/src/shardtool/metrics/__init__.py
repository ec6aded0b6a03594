"""How long loops wait for batches, and why."""
