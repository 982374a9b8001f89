"""Archives leave the workers' path if, and only if, the rest of it has the same pyspark."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from magnetar.spark.daemon import is_archive, without_archives


def archive(directory: Path, version: str) -> str:
    path = directory / "pyspark.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("pyspark/version.py", f"__version__ = {version!r}\n")
    return str(path)


def installed(directory: Path, version: str, *names: str) -> str:
    for name in names:
        (directory / name).mkdir(parents=True)
        (directory / name / "__init__.py").touch()
        (directory / name / "version.py").write_text(f"__version__ = {version!r}\n")
    return str(directory)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/s/python/lib/pyspark.zip", True),
        ("/s/python/lib/py4j-0.10.9.9-src.zip", True),
        ("/s/jars/spark-core_2.13-4.3.0.jar", True),
        ("/s/python", False),
        ("/home/me/mine.zip", False),
        ("/home/me/mine.jar", False),
    ],
)
def test_what_is_an_archive_of_spark_s(name: str, expected: bool) -> None:
    assert is_archive(name) is expected


def test_the_same_version(tmp_path: Path) -> None:
    zipped, place = archive(tmp_path, "4"), installed(tmp_path / "site", "4", "pyspark", "py4j")
    others = ["/nowhere/py4j-1-src.zip", "/nowhere/spark-core_2.13-4.jar"]
    assert without_archives(["", zipped, *others, "mine.zip", place]) == ["", "mine.zip", place]


def test_another_version_none_or_no_archive(tmp_path: Path) -> None:
    zipped = archive(tmp_path, "4")
    for name, version, parts in (("a", "5", ("pyspark", "py4j")), ("b", "4", ("py4j",)), ("c", "4", ("pyspark",))):
        path = [zipped, "/nowhere/py4j-1-src.zip", installed(tmp_path / name, version, *parts)]
        assert without_archives(path) == path
    same = installed(tmp_path / "d", "4", "pyspark", "py4j")
    (tmp_path / "torn").mkdir()
    torn = tmp_path / "torn" / "pyspark.zip"
    torn.write_bytes(b"PK")
    for path in ([str(torn), same], [str(tmp_path / "none" / "pyspark.zip"), same], ["spark-core_2.13-4.jar", same]):
        assert without_archives(path) == path
