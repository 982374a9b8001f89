"""Which zips are left out, and that a module run by the command is run as the interpreter would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from magnetar.spark.interpreter import COMMAND, of_session, without_archives

SITE = "/venv/lib/python3.11/site-packages"
ZIP = f"{SITE}/pyspark/python/lib/pyspark.zip"
JAR = f"{SITE}/pyspark/jars/spark-core_2.13-4.3.0.jar"
PY4J = f"{SITE}/pyspark/python/lib/py4j-0.10.9.9-src.zip"


def test_the_archives_of_an_installed_pyspark_are_left_out() -> None:
    assert without_archives([ZIP, JAR, PY4J, "/mine", SITE], [SITE]) == ["/mine", SITE]


@pytest.mark.parametrize(
    "entry",
    [
        "/opt/spark/python/lib/pyspark.zip",
        "/opt/spark/jars/spark-core.jar",
        f"{SITE}/mine.jar",
        f"{SITE}/mine.zip",
        "mine.zip",
        "",
        f"{SITE}/pyspark/python/lib",
    ],
)
def test_what_belongs_to_no_installed_pyspark_stays(entry: str) -> None:
    assert without_archives([entry, "/mine"], [SITE, "/opt"]) == [entry, "/mine"]


def test_the_zip_stays_where_the_package_around_it_is_not_on_the_path() -> None:
    assert without_archives([ZIP], ["/elsewhere"]) == [ZIP]


def test_a_link_leads_to_the_same_package(tmp_path: Path) -> None:
    site, link = tmp_path / "site-packages", tmp_path / "link"
    site.mkdir()
    link.symlink_to(site)
    for entry, installed in ((link, site), (site, link)):
        assert without_archives([f"{entry}/pyspark/python/lib/pyspark.zip", "/mine"], [str(installed)]) == ["/mine"]


def test_a_module_runs_as_the_interpreter_runs_it(tmp_path: Path) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(
        "import os, sys\nimport pyspark\n"
        "zipped = ['lib/pyspark.zip' in place for place in (pyspark.__file__, os.environ['PYTHONPATH'])]\n"
        "print(__name__, sys.argv[1:], sys.path[0], *zipped)"
    )
    zipped = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(zipped), os.environ.get("PYTHONPATH", "")])}
    line = ["-m", "probe", "a", "b"]
    said = [
        subprocess.run([command, *line], env=environment, cwd=tmp_path, check=True, capture_output=True, text=True)
        for command in (sys.executable, of_session())
    ]
    assert said[0].stdout == f"__main__ ['a', 'b'] {tmp_path} True True\n"
    assert said[1].stdout == f"__main__ ['a', 'b'] {tmp_path} False False\n"


def test_a_safe_path_stays_whole(tmp_path: Path) -> None:
    """Nothing comes before what PYTHONPATH names if PYTHONSAFEPATH is set."""
    tmp_path.joinpath("probe.py").write_text("import sys\nprint(sys.path[0])")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": path}
    for command in (sys.executable, of_session()):
        line = [command, "-m", "probe"]
        done = subprocess.run(line, env=environment, check=True, capture_output=True, text=True)
        assert done.stdout == f"{tmp_path}\n"


def test_anything_else_is_the_interpreter() -> None:
    done = subprocess.run([of_session(), "-c", "print(1 + 1)"], check=True, capture_output=True, text=True)
    assert done.stdout == "2\n"


def test_the_command_is_beside_the_interpreter() -> None:
    assert Path(of_session()) == Path(sys.executable).parent / COMMAND


def test_what_is_settled_is_not_searched_again() -> None:
    """The test runs in a process of its own, since frozen objects stay so."""
    program = (
        "import gc\nfrom magnetar.spark.interpreter import settle\n"
        "settle('a')\nfirst = gc.get_freeze_count()\nkept = [[] for _ in range(1000)]\n"
        "settle('a')\nsecond = gc.get_freeze_count()\nsettle('b')\n"
        "print(first > 1000, second - first, gc.get_freeze_count() > second + 900)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "True 0 True\n"
