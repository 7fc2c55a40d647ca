"""Exceptions of the package."""


class LabError(RuntimeError):
    """A run failed, or a request is invalid."""


class ScenarioError(LabError, ValueError):
    """A scenario is wrong: `file`, `line` (from 1), `key`, and `message` with found and expected."""

    def __init__(self, text: str, file: str = "", line: int = 0, key: str = "", message: str = "") -> None:
        super().__init__(text)
        self.file, self.line, self.key, self.message = file, line, key, message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.file, self.line, self.key, self.message)
