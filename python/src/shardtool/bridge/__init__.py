"""The child process that reads and decodes: how it is found, started and spoken to, and the memory that it shares."""
