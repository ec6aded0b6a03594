"""The child process that reads and decodes: how it is found and started, the messages to it, and the memory that it
shares."""
