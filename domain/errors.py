"""
Every error that the product raises on purpose.

    ProductError                  exit code 1
    |-- UsageError                2: the command line or a request is wrong
    |   `-- SettingsError         2: a settings file or variable is wrong
    |-- DataError                 3: what was read is wrong
    |   |-- FactError             3: one object of the cluster is wrong; it is set aside
    |   |-- QuantityError         3: a Kubernetes quantity cannot be read
    |   |-- RecordingError        3: a recording's file cannot be read
    |   |-- StoreError            3: the store cannot do what was asked
    |   |   |-- StoreBrokenError  3: its file cannot be read or written now; open it again
    |   |   `-- StoreHeldError    3: another process has its file open
    |   |-- PolicyError           3: a threshold makes no sense
    |   `-- RefusedError          3: what is known forbids it, for example a month that does not balance
    |-- ForbiddenError            4: the viewer may not see or do this
    `-- UnreachableError          5: another part or system does not answer
        `-- NotYetError           5: it does not know yet; ask it again

A message says what was given, where, what was expected and what to do.
"""


class ProductError(Exception):
    """Root of the tree. `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(ProductError):
    """The command line or a request asks for something that does not exist."""

    exit_code = 2


class SettingsError(UsageError):
    """A settings file or variable is wrong."""


class DataError(ProductError):
    """What was read from outside is wrong."""

    exit_code = 3


class FactError(DataError):
    """One object of the cluster cannot be translated; it is set aside and counted."""


class QuantityError(DataError):
    """A Kubernetes quantity cannot be read."""


class RecordingError(DataError):
    """A file of a recording is missing, cut off or not what its name says."""


class StoreError(DataError):
    """The store cannot do what was asked."""


class StoreBrokenError(StoreError):
    """
    The store's file cannot be read or written now, for example because the disk is full.

    What was acknowledged is in the file. Open it again, and try again.
    """


class StoreHeldError(StoreError):
    """Another process, or another place in this one, has the store's file open."""


class PolicyError(DataError):
    """A threshold makes no sense, for example a half-life that is not positive."""


class RefusedError(DataError):
    """What is known forbids what was asked, for example to close a month that does not balance."""


class ForbiddenError(ProductError):
    """The viewer may not see or do this."""

    exit_code = 4


class UnreachableError(ProductError):
    """Another part, or another system, does not answer."""

    exit_code = 5


class NotYetError(UnreachableError):
    """What was asked for is not known yet, and will be in `retry_after_seconds` or soon after."""

    def __init__(self, message: str, *, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
