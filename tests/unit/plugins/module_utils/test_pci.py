# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI addresses in any spelling are one address."""

from __future__ import annotations

import pytest
from ansible_collections.heterogpu.inference.plugins.module_utils import _pci
from hypothesis import given
from hypothesis import strategies as st


@given(domain=st.integers(0, 0xFFFF), bus=st.integers(0, 255), device=st.integers(0, 31), function=st.integers(0, 7), upper=st.booleans())
def test_spellings_of_the_driver_and_the_kernel_are_the_same(domain: int, bus: int, device: int, function: int, upper: bool) -> None:
    kernel = f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
    driver = f"{domain:08x}:{bus:02x}:{device:02x}.{function}"
    assert _pci.normalise(driver.upper() if upper else driver) == kernel
    assert _pci.normalise(kernel) == kernel
    if domain == 0:
        assert _pci.normalise(kernel[5:]) == kernel


def test_a_domain_that_needs_more_digits_keeps_them() -> None:
    assert _pci.normalise("00010000:01:00.0") == "10000:01:00.0"


@pytest.mark.parametrize("text", ["", "0", "GPU-1234", "0000:07:00", "0000:07:00.8", "00:7:00.0", "0000:07:00.0x"])
def test_what_is_no_address_is_none(text: str) -> None:
    assert _pci.normalise(text) is None
