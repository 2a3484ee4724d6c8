# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils._driver_packages import PackageTableError, driver_packages

SYSTEMS = ["ubuntu-22.04", "ubuntu-24.04", "debian-12", "debian-13"]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("source", ["ubuntu", "nvidia"])
@pytest.mark.parametrize("version", ["535.309.01", "580.95.05"])
@pytest.mark.parametrize("flavour", ["open", "proprietary"])
def test_everything_installed_is_pinned_at_the_exact_version(system: str, source: str, version: str, flavour: str) -> None:
    packages = driver_packages(system, source, version, flavour, nvswitch=True)
    assert set(packages["install"]) <= set(packages["closure"])
    assert all(version in package.partition("=")[2] for package in packages["closure"])
    assert "{" not in packages["preferences"]
    for package in packages["closure"]:
        name, _, package_version = package.partition("=")
        stanza = next(text for text in packages["preferences"].split("\n\n") if name in text.split("\n")[0].split())
        assert f"Pin: version {package_version}\n" in stanza


@pytest.mark.parametrize("system", SYSTEMS)
def test_fabric_manager_only_with_nvswitch(system: str) -> None:
    def fabric(nvswitch: bool) -> bool:
        return any(
            "fabricmanager" in package for package in driver_packages(system, "nvidia", "580.95.05", "proprietary", nvswitch)["install"]
        )

    assert fabric(True)
    assert not fabric(False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("centos-7", "ubuntu", "580.95.05", "open"), "centos-7 is not supported"),
        (("debian-12", "suse", "580.95.05", "open"), "source 'suse' does not exist"),
        (("debian-12", "nvidia", "470.1", "open"), "branch '470' is not known"),
        (("debian-12", "nvidia", "580.95.05", "closed"), "flavour 'closed' does not exist"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(arguments: tuple[str, str, str, str], message: str) -> None:
    with pytest.raises(PackageTableError, match=message):
        driver_packages(*arguments, nvswitch=False)
