# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.heterogpu.inference.plugins.plugin_utils._apt_sources import RepositoryError, deb822

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n-----END PGP PUBLIC KEY BLOCK-----\n"
REPOSITORY = {"name": "mirror", "uris": ["https://a", "https://b"], "suites": "jammy", "components": ["main", "extra"], "key": KEY}


def test_key_stands_inside_the_file() -> None:
    assert deb822(REPOSITORY) == {
        "name": "mirror",
        "content": (
            "Types: deb\nURIs: https://a https://b\nSuites: jammy\nComponents: main extra\nSigned-By:\n"
            " -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n -----END PGP PUBLIC KEY BLOCK-----\n"
        ),
    }


def test_key_may_be_a_keyring_of_the_node_and_a_flat_repository_has_no_components() -> None:
    content = deb822({"name": "flat", "uris": "https://a", "suites": "./", "key": "/usr/share/keyrings/a.gpg"})["content"]
    assert content == "Types: deb\nURIs: https://a\nSuites: ./\nSigned-By: /usr/share/keyrings/a.gpg\n"


def test_repository_without_key_is_refused() -> None:
    with pytest.raises(RepositoryError, match="'mirror' lacks key"):
        deb822({**REPOSITORY, "key": ""})
