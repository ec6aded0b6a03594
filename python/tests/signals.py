"""Signals from another thread, as from somebody who presses Ctrl-C until it is heard."""

import contextlib
import os
import queue
import sys
import threading
import time


@contextlib.contextmanager
def pressed(number, seconds):
    """Sends this process the signal ``number`` after ``seconds``.

    Python prints and swallows what a signal's handler raises inside a weakref's callback or a ``__del__``, and goes on:
    then the signal is sent again.
    """
    swallowed = queue.SimpleQueue()

    def press():
        time.sleep(seconds)
        os.kill(os.getpid(), number)
        while swallowed.get():
            time.sleep(0.1)
            os.kill(os.getpid(), number)

    def hook(unraisable):
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            swallowed.put(True)
        else:
            previous(unraisable)

    thread = threading.Thread(target=press)
    previous, sys.unraisablehook = sys.unraisablehook, hook
    try:
        thread.start()
        yield
    finally:
        sys.unraisablehook = previous
        swallowed.put(False)
        thread.join()
