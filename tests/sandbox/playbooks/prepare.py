#!/usr/bin/env python3
"""Lays out the files of a sandbox from its mix: keys, known hosts, name table, hardware and inventory.

Usage: prepare.py MIX IMAGE. Prints what create.yml needs as JSON. Files that are right already are not touched.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
COMPILER = HERE.parent / "hardware" / "compile.py"
USER = "operator"


class MixError(Exception):
    """The mix cannot be laid out."""


def cache() -> Path:
    """Folder of everything the sandbox builds, shared by all checkouts."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heterogpu-sandbox"


class Layout:
    """One sandbox's folder; remembers whether anything in it was changed."""

    def __init__(self, name: str) -> None:
        self.folder = cache() / name
        self.changed = False

    def write(self, path: Path, text: str, mode: int = 0o644) -> None:
        """Write the text in place, because a bind mount of a file follows the file and not its name."""
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        self.changed = True

    def key(self, path: Path, comment: str) -> str:
        """Make a key pair unless there is one; returns the public half."""
        public = path.with_name(f"{path.name}.pub")
        if not (path.exists() and public.exists()):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], check=True)
            self.changed = True
        return public.read_text(encoding="utf-8").strip()


def read_mix(path: Path) -> dict[str, Any]:
    """Read and check what the layout needs; the hardware compiler checks the rest."""
    mix = yaml.safe_load(path.read_text(encoding="utf-8"))
    network = ipaddress.ip_network(mix["network"])
    hosts = [mix["control"], *mix["nodes"]]
    for key in ("name", "address"):
        values = [host[key] for host in hosts]
        doubled = sorted({value for value in values if values.count(value) > 1})
        if doubled:
            raise MixError(f"In {path} the {key} {doubled[0]} stands more than once; give each host its own.")
    for host in hosts:
        if ipaddress.ip_address(host["address"]) not in network:
            raise MixError(f"In {path} the address {host['address']} of {host['name']} is outside of {network}; choose one inside.")
    return dict(mix)


def mac(address: str) -> str:
    """A fixed hardware address, so that neighbours find a restarted node at once."""
    return ":".join(f"{byte:02x}" for byte in b"\x02\x00" + ipaddress.ip_address(address).packed)


def hosts_table(hosts: list[dict[str, Any]]) -> str:
    """Text of /etc/hosts of every node."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    for index, host in enumerate(hosts):
        # The packages and wheels are at "control" in every sandbox.
        alias = " control" if index == 0 and host["name"] != "control" else ""
        lines.append(f"{host['address']} {host['name']}{alias}")
    return "\n".join(lines) + "\n"


def inventory(layout: Layout, mix: dict[str, Any]) -> str:
    """An Ansible inventory of the sandbox: groups control_hosts, gpu_nodes and those that the mix names."""
    groups: dict[str, Any] = {
        "control_hosts": {"hosts": {mix["control"]["name"]: {"ansible_host": mix["control"]["address"]}}},
        "gpu_nodes": {"hosts": {node["name"]: {"ansible_host": node["address"]} for node in mix["nodes"]}},
    }
    for node in mix["nodes"]:
        for group in node.get("groups", []):
            groups.setdefault(group, {"hosts": {}})["hosts"][node["name"]] = {}
    variables = {
        "ansible_user": USER,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": str(layout.folder / "id_ed25519"),
        "ansible_ssh_common_args": f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={layout.folder / 'known_hosts'}",
    }
    return "---\n" + yaml.safe_dump({"all": {"vars": variables, "children": groups}}, sort_keys=False)


def compile_hardware(mix_path: Path, layout: Layout) -> None:
    """Let the hardware compiler write one description per node."""
    target = layout.folder / "hardware"
    target.mkdir(parents=True, exist_ok=True)
    if not COMPILER.exists():
        for node in read_mix(mix_path)["nodes"]:
            layout.write(target / f"{node['name']}.json", "{}\n")
        return
    subprocess.run([sys.executable, str(COMPILER), str(mix_path), str(target)], check=True, stdout=sys.stderr)


def container(mix: dict[str, Any], host: dict[str, Any], layout: Layout, image: str) -> dict[str, Any]:
    """What create.yml needs to start one host; the digest tells whether a running one was made of other inputs."""
    folder = layout.folder / "nodes" / host["name"]
    volumes = [f"{folder}:/etc/sandbox:ro"]
    digest = hashlib.sha256(image.encode())
    hardware = layout.folder / "hardware" / f"{host['name']}.json"
    if host is mix["control"]:
        volumes += [f"{cache()}/repository:/srv/control/apt:ro", f"{cache()}/wheels:/srv/control/wheels:ro"]
    else:
        volumes.append(f"{hardware}:/etc/gpu-sandbox/hardware.json:ro")
        digest.update(hardware.read_bytes())
    digest.update(json.dumps([host["address"], volumes]).encode())
    return {
        "name": host["name"],
        "address": host["address"],
        "mac": mac(host["address"]),
        "volumes": volumes,
        "digest": digest.hexdigest()[:16],
    }


def lay_out(mix_path: Path, image: str) -> dict[str, Any]:
    """Make the folder right and describe the containers."""
    mix = read_mix(mix_path)
    layout = Layout(mix["sandbox"])
    hosts = [mix["control"], *mix["nodes"]]
    for folder in ("repository", "wheels"):
        (cache() / folder).mkdir(parents=True, exist_ok=True)
    operator_key = layout.key(layout.folder / "id_ed25519", f"{USER}@{mix['sandbox']}")
    known = []
    for host in hosts:
        folder = layout.folder / "nodes" / host["name"]
        host_key = layout.key(folder / "ssh_host_ed25519_key", host["name"])
        known.append(f"{host['address']},{host['name']} {' '.join(host_key.split()[:2])}")
        layout.write(folder / "authorized_keys", f"{operator_key}\n")
        layout.write(folder / "hosts", hosts_table(hosts))
    layout.write(layout.folder / "known_hosts", "\n".join(known) + "\n")
    layout.write(layout.folder / "inventory" / "hosts.yml", inventory(layout, mix))
    compile_hardware(mix_path, layout)
    return {
        "changed": layout.changed,
        "sandbox": mix["sandbox"],
        "network": mix["network"],
        "folder": str(layout.folder),
        "hosts": [container(mix, host, layout, image) for host in hosts],
    }


def main() -> int:
    mix_path, image = Path(sys.argv[1]), sys.argv[2]
    try:
        print(json.dumps(lay_out(mix_path, image)))
    except MixError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename} cannot be used: {error.strerror}; name an existing mix by sandbox_mix=PATH.", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        # The compiler and ssh-keygen have said what is wrong.
        return int(error.returncode)
    except (KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        reason = f"{type(error).__name__}: {error}"
        print(f"The mix {mix_path} is malformed ({reason}); compare it with tests/sandbox/mixes/default.yml.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
