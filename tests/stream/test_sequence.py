# SPDX-License-Identifier: GPL-3.0-or-later
"""Frame numbers that wrap, come twice, come late, and begin anew. Every truth is written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mocap_addon.stream.sequence import WRAP, Sequence


def feed(numbers, rate=60.0, delays=None):
    sequence, taken = Sequence(), []
    for i, number in enumerate(numbers):
        taken += [n for n, _ in sequence.feed(number, number, i / rate, None if delays is None else delays[i])]
    return sequence, taken


def test_every_frame_once():
    sequence, taken = feed([5, 6, 6, 7, 7, 7, 8])
    assert taken == [5, 6, 7, 8] and sequence.duplicates == 3 and sequence.lost == 0


def test_numbers_wrap_at_32_bits():
    sequence, taken = feed([WRAP - 2, WRAP - 1, 0, 1])
    assert taken == [WRAP - 2, WRAP - 1, 0, 1] and sequence.lost == 0 and sequence.restarts == 0


def test_gaps_are_counted_and_late_frames_are_not_lost():
    sequence, taken = feed([1, 2, 5, 3, 6, 4, 7])
    assert taken == [1, 2, 5, 3, 6, 4, 7]
    assert (sequence.lost, sequence.late, sequence.restarts) == (0, 2, 0)
    assert feed([1, 2, 5, 6])[0].lost == 2


def test_a_late_packet_does_not_look_like_a_restart():
    sequence, taken = feed([1000, 1001, 3, 1002, 1003])
    assert taken == [1000, 1001, 1002, 1003] and sequence.restarts == 0


def test_a_restart_is_believed_after_three_packets_and_loses_none():
    sequence, taken = feed([1000, 1001, 0, 1, 2, 3])
    assert taken == [1000, 1001, 0, 1, 2, 3] and sequence.restarts == 1


def test_a_short_loop_begins_anew():
    """A clip of 30 frames in a loop: its numbers were all seen a moment ago, yet it moves on."""
    loop = list(range(30))
    sequence, taken = feed(loop * 4, rate=30.0)
    assert sequence.restarts == 3 and len(taken) >= 4 * 30 - 3 * 12


def test_a_run_that_begins_anew_with_a_number_not_seen_before_takes_that_too():
    sequence, taken = feed([3, *[0] * 15, 1, 0, 1, 2])
    assert taken == [3, 0, 1, 0, 1, 2] and (sequence.restarts, sequence.duplicates) == (1, 14)


def test_a_loop_that_is_known_by_its_clock_loses_nothing():
    delays = [0.001 + (i // 100) * (100 / 60) for i in range(400)]
    for i in range(100, 400):  # after each restart the clock is measured anew, once three packets were seen
        delays[i] = 100 / 60 if i % 100 < 3 else 0.001
    sequence, taken = feed(list(range(100)) * 4, delays=delays)
    assert len(taken) == 400 and sequence.restarts == 3


def test_bursts_of_late_frames_in_order_are_no_restart():
    rng = np.random.default_rng(2)
    arrival = np.arange(2000) / 240 + rng.uniform(0, 0.02, 2000)
    order = np.argsort(arrival)
    sequence = Sequence()
    taken = [n for i in order for n, _ in sequence.feed(int(i), int(i), float(arrival[i]), float(arrival[i] - i / 240))]
    assert sorted(taken) == list(range(2000)) and sequence.restarts == 0 and sequence.lost == 0


def test_a_jump_of_the_senders_clock_is_a_restart_and_no_loss():
    sequence, taken = feed([1, 2, 3, 5000, 5001, 5002, 5003], delays=[0, 0, 0, -80.0, -80.0, -80.0, 0])
    assert taken == [1, 2, 3, 5000, 5001, 5002, 5003] and sequence.lost == 0 and sequence.restarts == 1


def test_old_and_new_packets_mixed_at_a_restart_are_neither_lost_nor_another_restart():
    numbers = [1000, 1001, 0, 1003, 2, 1002, 1, 1005, 3, 1004, 1006, 4, 1007, 5]
    delays = [0.0 if n > 900 else 16.0 for n in numbers]
    delays[7:] = [-16.0 if n > 900 else 0.0 for n in numbers[7:]]  # by the new run's clock
    sequence, taken = feed(numbers, delays=delays)
    assert taken == [1000, 1001, 1003, 1002, 0, 1, 2, 3, 4, 5] and sequence.restarts == 1


@given(st.lists(st.integers(0, 40), max_size=60))
def test_no_number_is_taken_twice_in_one_run(numbers):
    sequence, taken = feed(numbers)
    if not sequence.restarts:
        assert len(taken) == len(set(taken))
    assert len(taken) + sequence.duplicates <= len(numbers)


def test_memory_is_bounded():
    sequence = Sequence()
    for n in range(20000):
        sequence.feed(n, n, n / 100, None)
        if n > 5000 and n % 3 == 0:
            sequence.feed(n - 4000, n, n / 100, None)
    assert len(sequence._seen) <= 1025 and len(sequence._back) <= 1025


@pytest.mark.parametrize("start", [0, 7, WRAP - 50])
def test_a_hundred_frames_from_anywhere(start):
    numbers = [(start + i) % WRAP for i in range(100)]
    assert feed(numbers)[1] == numbers
