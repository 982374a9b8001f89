"""Latencies of one kind of operation: of the present interval and of the whole test, as HdrHistograms.

Values are counted in a dictionary and put into the histograms when a report is made, since a histogram in Python takes
2 µs for each value. Three significant digits; what is longer than ten days counts as ten days.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]  # it carries no types

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.clock import SystemClock

_LONGEST: Final = 10 * 86_400 * 1_000_000
_DIGITS: Final = 3
_HEADER: Final = (
    "#[Histogram log format version 1.3]\n"
    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
)
PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9, 99.99)


class Latencies:
    """One recorder; ``unit`` is how many of its values are a millisecond (1,000: microseconds, 1: milliseconds)."""

    def __init__(self, unit: int) -> None:
        self.unit = unit
        self._counts: dict[int, int] = {}
        self._interval: Any = HdrHistogram(1, _LONGEST, _DIGITS)
        self._total: Any = HdrHistogram(1, _LONGEST, _DIGITS)

    def record(self, value: int) -> None:
        """Count one value."""
        counts = self._counts
        counts[value] = counts.get(value, 0) + 1

    def interval(self) -> Any:
        """Return the histogram of the interval that ends now; valid until the next call."""
        self._interval.reset()
        counts, self._counts = self._counts, {}
        for value, count in counts.items():
            self._interval.record_value(min(max(value, 0), _LONGEST), count)
        self._total.add(self._interval)
        return self._interval

    def total(self) -> Any:
        """Return the histogram of the whole test; the last interval stays valid if nothing came since."""
        if self._counts:
            self.interval()
        return self._total

    def in_ms(self, histogram: Any, percentile: float) -> float:
        """Return a percentile in milliseconds, 0 without values."""
        if not histogram.get_total_count():
            return 0.0
        return float(histogram.get_value_at_percentile(percentile)) / self.unit

    def mean_ms(self, histogram: Any) -> float:
        """Return the mean in milliseconds, 0 without values."""
        return float(histogram.get_mean_value()) / self.unit if histogram.get_total_count() else 0.0


class HistogramFile:
    """A log of interval histograms, as HdrHistogram's tools read it: a line for each report."""

    def __init__(self, path: str) -> None:
        """Changes nothing yet: a test that does not begin leaves the file of another as it is. Raises
        InvalidValueError."""
        self._path = Path(path)
        self._clock = SystemClock()
        self._begun = 0
        if self._path.is_dir():
            raise InvalidValueError(f"--histogram-file {path} is a directory")
        if not self._path.parent.is_dir():
            raise InvalidValueError(f"--histogram-file {path}: there is no directory {self._path.parent}")

    def begin(self) -> None:
        """Make the file, in place of what it was. Raises InvalidValueError."""
        self._write("w", _HEADER)
        self._begun = self._clock.now_ms()

    def add(self, histogram: Any) -> None:
        """Write one interval, which began when the last one ended. Raises InvalidValueError."""
        now = self._clock.now_ms()
        begun, self._begun = self._begun, now
        line = f"{begun / 1000:.3f},{(now - begun) / 1000:.3f},{histogram.get_max_value() / 1_000_000:.3f}"
        self._write("a", f"{line},{histogram.encode().decode()}\n")

    def _write(self, mode: str, text: str) -> None:
        try:
            with self._path.open(mode) as file:
                file.write(text)
        except OSError as error:
            raise InvalidValueError(f"--histogram-file {self._path} cannot be written: {error.strerror}") from None
