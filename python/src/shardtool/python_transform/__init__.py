"""The user's own Python function, per sample, behind the reader: worker processes that share memory with this one.

```
reader ─slot─► batches.py ─jobs─► pool.py ─socket─► worker.py ─calls─► function.py
                    ▲                                   │
                    └────── output_memory.py ◄─results──┘
```

Pixels stay in shared memory: a worker maps the reader's slots, and writes what the function returns into memory that
this process has mapped. Only what is small goes over sockets: which rows, their seeds, labels, fields and boxes.
"""
