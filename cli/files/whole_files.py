"""Writes files that appear whole or not at all. Used by the scripts behind `elidex report`,
`elidex repro` and `elidex db`."""

import contextlib
import errno
import os
import stat
import tempfile


def is_device(path):
    return os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode)


def make_directories(directory):
    """Makes the directory and its missing parents. Returns those that were made, innermost first."""
    made = []
    missing = []
    while directory and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    try:
        for one in reversed(missing):
            os.mkdir(one)
            made.insert(0, one)
    except OSError:
        remove_directories(made)
        raise
    return made


def remove_directories(directories):
    for one in directories:
        try:
            os.rmdir(one)
        except OSError:
            return  # another program has put something there


@contextlib.contextmanager
def streamed(path):
    """Opens a file for writing. It appears under the path when the block ends without an exception.
    A device is written at once. A link is kept; its target is replaced. Raises OSError."""
    real = os.path.realpath(path)
    if is_device(real) and not os.path.isdir(real):
        with open(real, "wb") as file:
            yield file
        return
    mask = os.umask(0)
    os.umask(mask)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(real), suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, real)
    except BaseException:  # an interrupt too leaves nothing behind
        os.unlink(temporary)
        raise


def write_temporary(data, real, mask):
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(real), suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~mask)
    except BaseException:  # an interrupt too leaves nothing behind
        os.unlink(temporary)
        raise
    return temporary


def write_whole(files):
    """Path -> bytes. No file is replaced unless all could be written. A link is kept; its target is
    replaced. Missing directories are made, and removed again when the writing fails. Raises OSError,
    which names the path."""
    waiting, made = [], []
    mask = os.umask(0)
    os.umask(mask)
    try:
        for path, data in files.items():
            real = os.path.realpath(path)
            if os.path.isdir(real):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if is_device(real):
                with open(real, "wb") as file:
                    file.write(data)
                continue
            made = make_directories(os.path.dirname(real)) + made
            waiting.append((write_temporary(data, real, mask), real))
        while waiting:
            os.replace(*waiting[0])
            waiting.pop(0)
        made = []
    except OSError as error:
        raise OSError(error.errno, f"{path}: {error.strerror}") from None
    finally:
        for temporary, _ in waiting:
            os.unlink(temporary)
        remove_directories(made)
