# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils._cuda_packages import container_toolkit_packages, cuda_packages
from ansible_collections.heterogpu.inference.plugins.plugin_utils._driver_packages import PackageTableError, driver_packages


def test_the_default_toolkit_brings_its_nccl() -> None:
    found = cuda_packages("12.2", [], "", False)
    assert found["packages"] == ["cuda-toolkit-12-2=12.2.2-1", "libnccl-dev=2.18.5-1+cuda12.2", "libnccl2=2.18.5-1+cuda12.2"]
    assert set(found["packages"]) <= set(found["closure"])
    assert found["nccl"] == "2.18.5"


def test_toolkits_side_by_side_share_the_newest_configuration() -> None:
    found = cuda_packages("12.2", ["12.6", "12.2"], "", False)
    assert found["releases"] == {"12.2": "12.2.2", "12.6": "12.6.3"}
    assert {"cuda-toolkit-config-common=12.6.77-1", "cuda-toolkit-12-2-config-common=12.2.140-1"} <= set(found["closure"])


def test_no_package_brings_a_driver() -> None:
    found = cuda_packages("12.2", ["12.6"], "", True)
    names = {package.partition("=")[0] for package in found["closure"]}
    assert not names & set(found["conflicts"])
    assert {"cuda-compat-12-2", "cuda-compat-12-6"} <= names


@pytest.mark.parametrize("system", ["ubuntu-22.04", "ubuntu-24.04", "debian-12", "debian-13"])
@pytest.mark.parametrize("flavour", ["open", "proprietary"])
def test_what_cuda_excludes_is_no_driver_of_ours(system: str, flavour: str) -> None:
    for source in ("ubuntu", "nvidia"):
        driver = driver_packages(system, source, "580.95.05", flavour, True)
        names = {package.partition("=")[0] for package in driver["install"]}
        assert not names & set(cuda_packages("12.2", [], "", False)["conflicts"]), source


@pytest.mark.parametrize("wanted", ["2.18", "2.18.5", "2.18.5-1+cuda12.2", "2.18.5+cuda12.2"])
def test_nccl_by_any_of_its_names(wanted: str) -> None:
    assert "libnccl2=2.18.5-1+cuda12.2" in cuda_packages("12.2", [], wanted, False)["packages"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("13.0", [], "", False), r"The CUDA toolkit '13\.0' is not in the table"),
        (("12.2", ["12.9"], "", False), r"The CUDA toolkit '12\.9' is not in the table"),
        (("12.2", [], "2.99", False), r"NCCL '2\.99' is not in the table"),
        (("12.2", [], "2.30.1-1+cuda13.0", False), r"built for CUDA 13\.0, but the default toolkit is 12\.2"),
    ],
)
def test_what_is_refused(arguments: tuple[str, list[str], str, bool], sentence: str) -> None:
    with pytest.raises(PackageTableError, match=sentence):
        cuda_packages(*arguments)


@pytest.mark.parametrize("version", ["", "1.20.2", "1.20.2-1"])
def test_container_toolkit(version: str) -> None:
    found = container_toolkit_packages(version)
    assert found["packages"] == ["nvidia-container-toolkit=1.20.2-1"]
    assert "libnvidia-container1=1.20.2-1" in found["closure"]
