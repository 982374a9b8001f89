"""The official tools of Apache Pulsar's distribution, asked from Python.

A start of `pulsar-admin` costs a second and a half of a core, so pulsar-admin and pulsar-client run inside one Java
process that py4j drives (it comes with Spark): the same main classes get the same arguments, and their standard output
and error are taken out of the process after each command. pulsar-perf has a process of its own for each.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyspark
from py4j.java_gateway import (  # type: ignore[import-untyped]
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

from tools.official_tools.said import SECONDS_MAX, UNFINISHED, Said

OPENED = ("java.base/sun.net", "java.base/java.lang", "java.base/java.util.zip", "java.base/java.nio",
          "java.base/jdk.internal.misc")  # fmt: skip


class JavaTools:
    """pulsar-admin, pulsar-client and pulsar-perf of the distribution at ``home``, with the settings of ``conf``."""

    def __init__(self, home: Path, conf: Path) -> None:
        self._home, self._conf = home, conf
        self._gateway: Any = None

    def __enter__(self) -> JavaTools:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def run(self, tool: str, arguments: Sequence[str]) -> Said:
        """Run one command to its end or to its limit of time."""
        if tool == "perf":
            return self._perf(arguments)
        if self._gateway is None:
            self._start()
        try:
            return self._inside(tool, arguments)
        except Py4JJavaError as error:
            return Said(1, self._taken(self._out), self._taken(self._err) + str(error.java_exception.toString()))
        except (Py4JError, OSError) as error:
            self._end()
            return Said(UNFINISHED, "", f"no answer within {SECONDS_MAX:g} s, or the tool ended its process: {error}")

    def _start(self) -> None:
        jars = Path(str(pyspark.__file__)).parent / "jars"
        opened = [part for name in OPENED for part in ("--add-opens", f"{name}=ALL-UNNAMED")]
        # without a directory of its own, the log's file would be made where this program was started
        log = {"appender": "Console", "level": "info", "root.level": "info", "dir": self._conf.parent}
        logging = [f"-Dpulsar.log.{key}={value}" for key, value in log.items()]
        port, secret = launch_gateway(
            port=0,
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=f"{self._home / 'conf'}{os.pathsep}{self._home / 'lib'}/*",
            javaopts=[*opened, *logging, "-Dlog4j.configurationFile=log4j2.yaml", "-Djava.net.preferIPv4Stack=true",
                      "-Dio.netty.tryReflectionSetAccessible=true", "-Xmx512m"],
            die_on_exit=True,
            enable_auth=True,
        )  # fmt: skip
        parameters = GatewayParameters(port=port, auth_token=secret, read_timeout=SECONDS_MAX)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        jvm = self._gateway.jvm
        self._out, self._err = (jvm.java.io.ByteArrayOutputStream() for _ in range(2))
        self._listen()
        self._admin = jvm.org.apache.pulsar.admin.cli.PulsarAdminTool(self._properties())
        texts = self._array(jvm.java.lang.String, []).getClass()
        self._admin_run = (
            jvm.java.lang.Class.forName("org.apache.pulsar.admin.cli.PulsarAdminTool")
            .getDeclaredMethod("run", self._array(jvm.java.lang.Class, [texts]))
        )  # fmt: skip
        self._admin_run.setAccessible(True)

    def _listen(self) -> None:
        """Take what is printed from now on: some commands of broker-stats close the stream that they print to."""
        jvm = self._gateway.jvm
        jvm.java.lang.System.setOut(jvm.java.io.PrintStream(self._out, True, "UTF-8"))
        jvm.java.lang.System.setErr(jvm.java.io.PrintStream(self._err, True, "UTF-8"))

    def _properties(self) -> Any:
        properties = self._gateway.jvm.java.util.Properties()
        properties.load(self._gateway.jvm.java.io.FileReader(str(self._conf)))
        return properties

    def _array(self, kind: Any, values: Sequence[Any]) -> Any:
        made = self._gateway.new_array(kind, len(values))
        for index, value in enumerate(values):
            made[index] = value
        return made

    @staticmethod
    def _taken(stream: Any) -> str:
        text = str(stream.toString("UTF-8"))
        stream.reset()
        return text

    def _inside(self, tool: str, arguments: Sequence[str]) -> Said:
        self._listen()
        jvm = self._gateway.jvm
        given = self._array(jvm.java.lang.String, arguments)
        if tool == "admin":
            # its main does just this with a tool made for the one command
            code = 0 if self._admin_run.invoke(self._admin, self._array(jvm.java.lang.Object, [given])) else 1
        else:
            code = int(jvm.org.apache.pulsar.client.cli.PulsarClientTool(self._properties()).run(given))
        return Said(code & 255, self._taken(self._out), self._taken(self._err))

    def _perf(self, arguments: Sequence[str]) -> Said:
        environment = {**os.environ, "PULSAR_CLIENT_CONF": str(self._conf), "PULSAR_MEM": "-Xmx512m"}
        before = set(self._home.glob("*.hgrm"))
        try:
            done = subprocess.run(
                [self._home / "bin" / "pulsar-perf", *arguments],
                capture_output=True, text=True, timeout=SECONDS_MAX, env=environment, stdin=subprocess.DEVNULL,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Said(UNFINISHED, "", f"no end within {SECONDS_MAX:g} s")
        finally:
            for left in set(self._home.glob("*.hgrm")) - before:
                left.unlink()
        return Said(done.returncode, done.stdout, done.stderr)

    def _end(self) -> None:
        if self._gateway is None:
            return
        try:
            self._gateway.shutdown()
        finally:
            process = getattr(self._gateway, "java_process", None)
            if process is not None:
                process.kill()
            self._gateway = None
