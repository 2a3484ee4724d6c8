# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""package_set with the real apt and dpkg on a throwaway node: every transition, and what may come in between."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from ansible_collections.heterogpu.inference.plugins.plugin_utils._driver_packages import driver_packages
from throwaway_node import REPOSITORY, ROOT, Node

TABLE = yaml.safe_load((ROOT / "data/packages.yml").read_text(encoding="utf-8"))
OLD, NEW = TABLE["drivers"]["580"]["versions"]
STORE = "/var/lib/heterogpu/packages/nvidia-driver"

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(not (REPOSITORY / "dists").exists(), reason=f"{REPOSITORY} was not built yet"),
]


def arguments(version: str, source: str = "ubuntu", flavour: str = "proprietary", **others: Any) -> dict[str, Any]:
    packages = driver_packages("debian-12", source, version, flavour, nvswitch=False)
    content = f"Types: deb\nURIs: file:/srv/driver\nSuites: {source}\nComponents: main\nSigned-By: /etc/apt/keyrings/sandbox.asc\n"
    return {
        "name": "nvidia-driver",
        "packages": packages["install"],
        "closure": packages["closure"],
        "repositories": [{"name": "driver", "content": content}],
        **others,
    }


@pytest.fixture(name="there")
def fixture_there(node: Node) -> Node:
    """A node whose repository can be taken away."""
    node.sh("ln -s /srv/apt /srv/driver")
    return node


def apply(node: Node, version: str, **others: Any) -> dict[str, Any]:
    result = node.run_module("package_set", arguments(version, **others))
    assert not result.get("failed"), result["msg"]
    return result


def refuse(node: Node, version: str, **others: Any) -> str:
    before = state(node)
    result = node.run_module("package_set", arguments(version, **others))
    assert result.get("failed")
    assert state(node) == before
    return result["msg"]


def state(node: Node) -> str:
    """All that a set changes."""
    return node.sh(
        "dpkg-query -W -f '${Package} ${Version} ${Status}\\n'; cd /etc/apt; grep -r . preferences.d sources.list.d apt.conf.d || true; "
        f"ls {STORE} {STORE}/archives 2>/dev/null || true"
    )


def members(version: str, **others: str) -> dict[str, str]:
    return dict(package.split("=") for package in arguments(version, **others)["closure"])


def test_check_mode_tells_and_changes_nothing(there: Node) -> None:
    before = state(there)
    result = there.run_module("package_set", arguments(OLD), check=True)
    assert result["changed"]
    assert {item["name"] for item in result["install"]} >= members(OLD).keys()
    assert not result["disruptive"]
    assert state(there) == before


def test_installed_pinned_and_held_and_the_second_run_contacts_nobody(there: Node) -> None:
    apply(there, OLD)
    assert members(OLD).items() <= there.versions().items()
    assert there.held() == members(OLD).keys()
    there.apt("dist-upgrade")
    assert members(OLD).items() <= there.versions().items()
    there.sh("rm /srv/driver")
    assert not apply(there, OLD)["changed"]


def test_upgrade_and_way_back_without_a_repository(there: Node) -> None:
    apply(there, OLD)
    result = apply(there, NEW)
    assert result["disruptive"]
    assert result["remove"] == [f"nvidia-firmware-580-server-{OLD}"]
    there.sh("rm /srv/driver")
    assert apply(there, NEW, state="previous")["changed"]
    assert members(OLD).items() <= there.versions().items()
    assert there.held() == members(OLD).keys()
    assert there.module()["version"] == OLD
    assert not apply(there, NEW, state="previous")["changed"]


def test_downgrade_flavour_and_branch(there: Node) -> None:
    older = TABLE["drivers"]["535"]["versions"][0]
    for version, flavour in ((NEW, "proprietary"), (OLD, "open"), (older, "proprietary")):
        apply(there, version, flavour=flavour)
        assert not apply(there, version, flavour=flavour)["changed"]
        assert there.held() == members(version, flavour=flavour).keys()
        assert there.module() == {"name": "nvidia", "version": version, "flavour": flavour}
    assert not [name for name in there.versions() if "580" in name]


def test_a_version_that_no_repository_has_is_refused(there: Node) -> None:
    apply(there, OLD)
    assert "no repository has version 580.1.1" in refuse(there, "580.1.1")


def test_nothing_before_is_refused(there: Node) -> None:
    apply(there, OLD)
    assert "no previous state" in refuse(there, OLD, state="previous")


def test_former_files_that_are_gone_are_refused(there: Node) -> None:
    apply(there, OLD)
    apply(there, NEW)
    record = json.loads(there.sh(f"cat {STORE}/record.json"))
    del record["previous"]["archives"]["nvidia-utils-580-server"]
    there.sh(f"echo '{json.dumps(record)}' > {STORE}/record.json")
    assert "does not keep nvidia-utils-580-server in the former version" in refuse(there, NEW, state="previous")


def test_removal_whatever_the_version(there: Node) -> None:
    apply(there, OLD)
    result = apply(there, NEW, state="absent")
    assert set(result["remove"]) == members(OLD).keys()
    assert not [name for name in there.versions() if "nvidia" in name]
    assert there.held() == set()
    assert there.sh("find /etc/apt/preferences.d /etc/apt/sources.list.d /var/lib/heterogpu/packages -type f") == ""
    assert not apply(there, NEW, state="absent")["changed"]


def test_released_packages_stay_and_nothing_keeps_them(there: Node) -> None:
    apply(there, OLD)
    before = there.versions()
    result = apply(there, NEW, state="released")
    assert (result["install"], result["remove"]) == ([], [])
    assert there.versions() == before
    assert there.held() == set()
    assert there.sh("find /etc/apt/preferences.d /etc/apt/sources.list.d /var/lib/heterogpu/packages -type f") == ""
    assert not apply(there, NEW, state="released")["changed"]


def test_a_repository_of_two_sets_stays_for_the_other(there: Node) -> None:
    apply(there, OLD)
    there.run_module("package_set", {**arguments(OLD), "name": "other", "packages": ["dkms=3.0.10-8+deb12u1"], "closure": []})
    apply(there, OLD, state="absent")
    assert there.sh("ls /etc/apt/sources.list.d") == "driver.sources\n"


def test_the_other_source_is_refused(there: Node) -> None:
    apply(there, OLD)
    conflicts = ["nvidia-utils-*-server"]
    message = refuse(there, OLD, source="nvidia", conflicts=conflicts)
    assert "nvidia-utils-580-server is installed and must not be beside the set" in message


def test_foreign_packages_are_not_removed(there: Node) -> None:
    there.use("ubuntu")
    there.apt(f"install nvidia-dkms-580-server-open={NEW}-0ubuntu0.22.04.1")
    assert "apt would remove nvidia-dkms-580-server-open" in refuse(there, NEW)
    apply(there, NEW, replaces=["nvidia-*-open"])
    assert there.module()["flavour"] == "proprietary"


def test_holds_of_others_are_respected(there: Node) -> None:
    there.use("ubuntu")
    there.apt(f"install libnvidia-cfg1-580-server={NEW}-0ubuntu0.22.04.1")
    there.sh("apt-mark hold libnvidia-cfg1-580-server")
    assert "held in another version by somebody else" in refuse(there, OLD)


def test_kernel_packages_stay_and_are_let_go_with_the_set(there: Node) -> None:
    there.use("nvidia")
    there.apt("install libnccl2=2.18.5-1+cuda12.2")
    apply(there, OLD, keep=["libnccl*"])
    assert "libnccl2" in there.held()
    there.sh("apt-mark unhold libnccl2")
    there.apt("dist-upgrade")
    assert there.versions()["libnccl2"] == "2.18.5-1+cuda12.2"
    apply(there, NEW, keep=["libnccl*"])
    apply(there, NEW, keep=["libnccl*"], state="previous")
    assert "libnccl2" in there.held()
    apply(there, OLD, state="absent")
    assert there.versions()["libnccl2"] == "2.18.5-1+cuda12.2"
    assert there.held() == set()


def test_a_failing_script_brings_the_former_versions_back(there: Node) -> None:
    apply(there, OLD)
    before = state(there)
    there.sh(f'cp /usr/sbin/dkms /root/dkms && sed -i \'2i [ "$1" = install ] && [ "$5" = {NEW} ] && exit 7\' /usr/sbin/dkms')
    result = there.run_module("package_set", arguments(NEW))
    assert result["failed"]
    assert "The former versions are back" in result["msg"]
    assert state(there) == before
    assert there.module()["version"] == OLD
    there.sh("cp /root/dkms /usr/sbin/dkms")
    assert apply(there, NEW)["changed"]


@pytest.mark.parametrize("first", [OLD, None])
def test_a_run_that_was_killed_inside_dpkg_is_finished_by_the_next(there: Node, first: str | None) -> None:
    if first:
        apply(there, first)
    else:
        there.use("nvidia")
        there.apt("install dkms")
    # It takes the module and apt with it, in the middle of configuring.
    kill = "pkill -9 -f package_set; pkill -9 apt-get; pkill -9 dpkg"
    there.sh(f"cp /usr/sbin/dkms /root/dkms; printf '#!/bin/bash\\n%s\\n' '{kill}' > /root/trap")
    there.sh("install -m 755 /root/trap /usr/sbin/dkms")
    with pytest.raises(AssertionError):
        there.run_module("package_set", arguments(NEW))
    there.sh("cp /root/dkms /usr/sbin/dkms")
    shown = there.run_module("package_set", arguments(NEW), check=True)
    assert not shown.get("failed"), shown["msg"]
    assert shown["steps"][0]["action"] == "repair"
    apply(there, NEW)
    assert not apply(there, NEW)["changed"]
    assert there.module()["version"] == NEW
    assert there.held() == members(NEW).keys()
    if first:
        there.sh("rm /srv/driver")
        apply(there, NEW, state="previous")
        assert there.module()["version"] == OLD


HOLDER = """
import fcntl, sys, time
with open("/var/lib/dpkg/lock-frontend", "w") as stream:
    fcntl.lockf(stream, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(float(sys.argv[1]))
"""


def test_another_program_with_the_lock_is_awaited(there: Node) -> None:
    there.podman("exec", "-d", there.name, "bash", "-c", f"python3 -c '{HOLDER}' 4 > /root/held")
    there.sh("until grep -qs held /root/held; do :; done")
    assert "Another program holds /var/lib/dpkg/lock-frontend" in refuse(there, OLD, lock_timeout=0)
    apply(there, OLD)


def test_a_proxy_serves_the_hosts_of_its_repository_only(there: Node) -> None:
    request = arguments(OLD)
    request["repositories"][0]["content"] = request["repositories"][0]["content"].replace("file:/srv/driver", "http://mirror.invalid/apt")
    request["repositories"][0]["proxy"] = "http://127.0.0.1:9"
    result = there.run_module("package_set", request)
    assert "127.0.0.1" in result["msg"]
    assert there.sh("ls /etc/apt/apt.conf.d") == "01autoremove\n70debconf\n"
