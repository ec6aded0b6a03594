"""Worker processes that call the user's function for each sample and share memory with this process.

```
reader ─slot─► batches.py ─jobs─► pool.py ─socket─► worker.py ─calls─► function.py
                    ▲                                   │
                    └────── output_memory.py ◄─results──┘
```

Pixels stay in shared memory: a worker maps the reader's slots, and writes the results of the function to memory that
this process has mapped. Sockets carry only small values: row numbers, seeds, labels, fields and boxes.
"""
