"""A bucket of a cloud is opened only if something says how to log in: the metadata address is not asked unasked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from magnetar.lakehouse.files.file_store import FileStore
from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.lake import open_lake
from magnetar.lakehouse.model.options import TableKind, lake_options
from magnetar.model.errors import InvalidValueError
from magnetar.offload.object_store import object_store_at, require_place
from magnetar.security.credentials.bucket_login import leave_machine_out, require_bucket_login, without_cloud

_S3 = ("s3://b/t", "s3a://b/t", "https://b.s3.eu-west-1.amazonaws.com/t", "https://x.r2.cloudflarestorage.com/b")
_GOOGLE = ("gs://b/t",)
_AZURE = ("az://b/t", "abfs://b/t", "https://x.blob.core.windows.net/b")


@pytest.fixture(autouse=True)
def without_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(("AWS_", "GOOGLE_", "GCE_", "AZURE_", "IDENTITY_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("url", [*_S3, *_GOOGLE, *_AZURE])
def test_an_address_without_a_login_is_refused_with_what_to_set(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError) as refused:
        require_bucket_login(url, {"aws_region": "x", "google_bucket": "b"}, {"PATH": "/bin"}, tmp_path)
    said = str(refused.value)
    assert said.startswith(f"{url}: nothing says how to log in there") and "of this machine" in said
    assert "SKIP_SIGNATURE=true" in said


@pytest.mark.parametrize(
    ("urls", "settings"),
    [
        (_S3, ("AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE", "AWS_METADATA_ENDPOINT", "AWS_WEB_IDENTITY_TOKEN_FILE")),
        (_GOOGLE, ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SKIP_SIGNATURE")),
        (_AZURE, ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CREDENTIAL_TYPE")),
    ],
)
def test_a_login_is_found_in_the_environment_and_in_options(
    urls: tuple[str, ...], settings: tuple[str, ...], tmp_path: Path
) -> None:
    for url in urls:
        for name in settings:
            require_bucket_login(url, {}, {name: "true"}, tmp_path)
            require_bucket_login(url, {name.lower(): "true"}, {}, tmp_path)
            for prefix in ("aws_", "google_", "azure_storage_", "azure_"):
                if name.lower().startswith(prefix):
                    require_bucket_login(url, {name.lower().removeprefix(prefix): "true"}, {}, tmp_path)
                    break
            with pytest.raises(InvalidValueError):
                require_bucket_login(url, {name.lower(): "false"}, {name: ""}, tmp_path)


def test_what_is_in_no_cloud_needs_no_login(tmp_path: Path) -> None:
    for place in ("/lake/t", "file:///lake/t", "memory:///t", "http://localhost/t", "https://example.org/t"):
        require_bucket_login(place, {}, {}, tmp_path)


def test_what_gcloud_has_stored_is_a_login(tmp_path: Path) -> None:
    stored = tmp_path / ".config" / "gcloud" / "application_default_credentials.json"
    stored.parent.mkdir(parents=True)
    stored.write_text("{}")
    require_bucket_login("gs://b/t", {}, {}, tmp_path)
    require_bucket_login("gs://b/t", {}, {"GCE_METADATA_HOST": "localhost:1"}, tmp_path / "other")


@pytest.mark.parametrize("kind", [None, "parquet", "delta"])
def test_tables_and_offloading_refuse_before_anything_is_sent(kind: str | None) -> None:
    """`magnetar lake history s3://b/t` asked 169.254.169.254 for credentials."""
    with pytest.raises(InvalidValueError, match="s3://b/t: nothing says how to log in there"):
        open_lake("s3://b/t", kind, {})
    with pytest.raises(InvalidValueError, match="nothing says how"):
        FileStore("s3://b/t", {})
    with pytest.raises(InvalidValueError, match="nothing says how"):
        open_table(lake_options(TableKind.DELTA, {"path": "s3://b/t"}))
    for open_place in (require_place, object_store_at):
        with pytest.raises(InvalidValueError, match="nothing says how"):
            open_place("s3://b/t")


def test_amazons_libraries_leave_the_machine_out_unless_it_was_asked_for() -> None:
    """delta-rs asked 169.254.169.254 for a region although there were a login and a region."""
    for options, before, after in (
        ({"aws_access_key_id": "a"}, {}, "true"),
        ({"aws_access_key_id": "a"}, {"AWS_EC2_METADATA_DISABLED": "false"}, "false"),
        ({"aws_metadata_endpoint": "http://localhost:1"}, {}, None),
        ({}, {"AWS_METADATA_ENDPOINT": "http://localhost:1"}, None),
    ):
        environment = dict(before)
        leave_machine_out("s3://b/t", options, environment)
        assert environment.get("AWS_EC2_METADATA_DISABLED") == after
    nothing: dict[str, str] = {}
    for url in ("/lake/t", "gs://b/t", "az://b/t"):
        leave_machine_out(url, {}, nothing)
    assert not nothing


def test_every_table_of_amazons_leaves_the_machine_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "")
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    options = {"path": "s3://b/t", "storage.aws_access_key_id": "a", "storage.aws_secret_access_key": "b"}
    open_table(lake_options(TableKind.DELTA, options))
    assert os.environ["AWS_EC2_METADATA_DISABLED"] == "true"


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("AWS_region", "region"),
        ("azure_storage_account_key", "account_key"),
        ("azure_client_id", "client_id"),
        ("google_service_account", "service_account"),
        ("allow_http", "allow_http"),
        ("my_aws_region", "my_aws_region"),
    ],
)
def test_names_of_options_without_their_cloud(name: str, bare: str) -> None:
    assert without_cloud(name) == bare
