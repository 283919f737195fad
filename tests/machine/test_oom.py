from __future__ import annotations

from steptime.machine.oom import count_oom_kills


def test_count_oom_kills_reads_the_kernel_s_counter(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/vmstat").write_text("pswpin 3\noom_kill 5\n")
    assert count_oom_kills(tmp_path) == 5


def test_count_oom_kills_is_zero_without_the_counter(tmp_path):
    assert count_oom_kills(tmp_path) == 0
