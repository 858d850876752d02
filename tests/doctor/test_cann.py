"""A CANN tree found and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from npufuse_tui.doctor.cann import find_cann, find_driver, wrong_home


def tree(root: Path, version: str = "8.3.RC1", place: str = "usr/local/Ascend/ascend-toolkit/latest") -> Path:
    home = root / place
    (home / "lib64").mkdir(parents=True)
    for name in ("libascendcl.so", "libge_runner.so", "libhccl.so"):
        (home / "lib64" / name).touch()
    (home / "aarch64-linux").mkdir()
    (home / "aarch64-linux/ascend_toolkit_install.info").write_text(
        f"package_name=Ascend-cann-toolkit\nversion={version}\n"
    )
    for part in ("runtime", "compiler", "opp"):
        (home / part).mkdir()
        (home / part / "version.info").write_text("Version=7.8.0.1.100\nversion_dir=x\n")
    (home / "opp/built-in/op_impl/ai_core/tbe/kernel/ascend910b").mkdir(parents=True)
    (home.parent / "set_env.sh").write_text("export ASCEND_HOME_PATH=...\n")
    return home


def test_in_its_usual_place_without_environment(tmp_path):
    home = tree(tmp_path)
    found = find_cann({}, tmp_path)
    assert found is not None
    assert (found.home, found.version, found.named, found.loadable) == (home, "8.3.RC1", None, False)
    assert found.set_env == home.parent / "set_env.sh"
    assert found.part("opp") == "7.8.0.1.100"
    assert found.kernels == ("ascend910b",)
    assert found.libraries == ("libascendcl.so", "libge_runner.so", "libhccl.so")


def test_the_environment_comes_first_and_the_library_path_is_judged(tmp_path):
    tree(tmp_path)
    other = tree(tmp_path, "9.0.0", "opt/cann-9.0.0")
    found = find_cann({"ASCEND_HOME_PATH": str(other), "LD_LIBRARY_PATH": f"/x:{other}/lib64"}, tmp_path)
    assert found is not None
    assert (found.home, found.version, found.named, found.loadable) == (other, "9.0.0", "ASCEND_HOME_PATH", True)


@pytest.mark.parametrize(
    "place", ["usr/local/Ascend/cann-9.0.0", "usr/local/Ascend/nnrt/latest", "usr/local/Ascend/ascend-toolkit/8.0.RC3"]
)
def test_other_usual_places(tmp_path, place):
    home = tree(tmp_path, place=place)
    found = find_cann({}, tmp_path)
    assert found is not None and found.home == home


def test_the_home_folder(tmp_path):
    home = tree(tmp_path, place="home/me/Ascend/ascend-toolkit/latest")
    found = find_cann({"HOME": str(tmp_path / "home/me")}, tmp_path)
    assert found is not None and found.home == home


def test_version_from_the_configuration_or_the_folder(tmp_path):
    home = tmp_path / "usr/local/Ascend/cann-8.5.0"
    (home / "lib64").mkdir(parents=True)
    assert find_cann({}, tmp_path).version == "8.5.0"
    (home / "version.cfg").write_text("# version: 1.0\ntoolkit_installed_version=[7.9.T5.0:8.5.0.alpha1]\n")
    assert find_cann({}, tmp_path).version == "8.5.0.alpha1"


def test_nothing(tmp_path):
    assert find_cann({"HOME": str(tmp_path)}, tmp_path) is None
    assert wrong_home({"ASCEND_HOME_PATH": "/not/there"}) == "ASCEND_HOME_PATH=/not/there"
    assert wrong_home({}) is None


def test_driver(tmp_path):
    base = tmp_path / "usr/local/Ascend"
    (base / "driver").mkdir(parents=True)
    (base / "driver/version.info").write_text("Version=25.2.0\nascendhal_version=7.35.23\n")
    (base / "firmware").mkdir()
    (base / "firmware/version.info").write_text("Version=7.7.0.6.236\n")
    (tmp_path / "dev").mkdir()
    for name in ("davinci0", "davinci1", "davinci_manager"):
        (tmp_path / "dev" / name).touch()
    found = find_driver(tmp_path)
    assert (found.version, found.firmware, found.nodes) == ("25.2.0", "7.7.0.6.236", ("davinci0", "davinci1"))


def test_driver_in_another_place(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ascend_install.info").write_text("UserName=x\nDriver_Install_Path_Param=/data/Ascend\n")
    (tmp_path / "data/Ascend/driver").mkdir(parents=True)
    (tmp_path / "data/Ascend/driver/version.info").write_text("Version=24.1.0\n")
    assert find_driver(tmp_path).version == "24.1.0"


def test_hostile_version_files_are_no_harm(tmp_path):
    home = tree(tmp_path)
    (home / "opp/version.info").write_bytes(b"\xff\xfe\x00Version=\xe9\n" * 3)
    (home / "runtime/version.info").unlink()
    (home / "runtime/version.info").mkdir()
    found = find_cann({}, tmp_path)
    assert found is not None and found.part("runtime") is None
