"""The loss check and the speed check on series that are known."""

import json
import math
import random

import pytest

from npufuse_tui.model import Metric
from npufuse_tui.verify.compare_files import compare
from npufuse_tui.verify.loss_check import EarlyStop, judge
from npufuse_tui.verify.speed_check import measure, steady, warmup_steps


def series(losses, times=None, first=0):
    times = times or [None] * len(losses)
    return [Metric(first + i, loss, time) for i, (loss, time) in enumerate(zip(losses, times, strict=True))]


BASE = [3 - i / 50 for i in range(60)]


def test_same_losses_pass():
    result = judge(series(BASE), series(BASE), series(BASE), steps=50)
    assert result.passed is True and result.max_rel_diff == 0 and result.noise_max_rel_diff == 0


def test_first_step_beyond_the_limit_is_named():
    other = [loss * (1.02 if i >= 30 else 1.005) for i, loss in enumerate(BASE)]
    result = judge(series(BASE), series(BASE), series(other), steps=50)
    assert result.passed is False and result.first_fail_step == 30 and "step 30" in result.reason.en


def test_exactly_the_limit_passes():
    assert judge(series([1.0] * 50), None, series([1.0099] * 50), steps=50).passed is True
    assert judge(series([1.0] * 50), None, series([1.0101] * 50), steps=50).passed is False


def test_noisy_baseline_is_no_pass_and_no_failure():
    again = [loss * 1.03 for loss in BASE]
    result = judge(series(BASE), series(again), series(BASE), steps=50)
    assert result.passed is None and "3.00%" in result.reason.en and "seed" in result.reason.en


def test_nan_fails_even_beside_a_noisy_baseline():
    again = [loss * 1.03 for loss in BASE]
    result = judge(series(BASE), series(again), series([math.nan] * 60), steps=50)
    assert result.passed is False


def test_nan_in_the_baseline_cannot_be_judged():
    assert judge(series([math.nan] * 60), None, series([math.nan] * 60), steps=50).passed is None


def test_too_few_steps_cannot_be_judged():
    result = judge(series(BASE), series(BASE), series(BASE[:20]), steps=50)
    assert result.passed is None and "20" in result.reason.en


def test_steps_logged_every_tenth_count_by_their_numbers():
    every = [Metric(i, 2.0, None) for i in range(0, 60, 10)]
    assert judge(every, every, every, steps=50).passed is True


def test_early_stop_needs_three_in_a_row():
    stop = EarlyStop(series(BASE), 0.01)
    assert stop(Metric(0, BASE[0] * 1.2, None)) is None
    assert stop(Metric(1, BASE[1] * 1.2, None)) is None
    assert stop(Metric(2, BASE[2], None)) is None
    assert [stop(Metric(i, BASE[i] * 1.2, None)) is not None for i in (3, 4, 5)] == [False, False, True]


def test_early_stop_on_nan_and_not_after_twenty():
    assert EarlyStop(series(BASE))(Metric(0, math.nan, None)) is not None
    stop = EarlyStop(series(BASE))
    for i in range(20):
        assert stop(Metric(i, BASE[i], None)) is None
    assert all(stop(Metric(i, BASE[i] * 2, None)) is None for i in range(20, 30))


def times(centre, count=60, warm=0, seed=1):
    chance = random.Random(seed)
    return [centre * (5 if i < warm else 1) * chance.uniform(0.97, 1.03) for i in range(count)]


@pytest.mark.parametrize("warm", [1, 3, 10])
def test_change_point(warm):
    assert warmup_steps(times(0.1, warm=warm)) == warm


def test_no_change_point_drops_the_first_alone():
    assert warmup_steps(times(0.1)) == 1
    assert warmup_steps([]) == 0


def test_given_warmup_is_used():
    assert len(steady(series(BASE, times(0.1)), warmup=7)) == 53


def side(centre, seed, warm=3):
    return [series(BASE, times(centre, warm=warm, seed=seed))]


def test_faster_slower_and_no_difference():
    assert measure(side(0.1, 1), side(0.08, 2)).conclusion == "faster"
    assert measure(side(0.1, 1), side(0.12, 2)).conclusion == "slower"
    same = measure(side(0.1, 1), side(0.1, 2))
    assert same.conclusion == "no difference shown" and same.ci_low <= 1 <= same.ci_high


def test_gain_below_the_least_is_not_faster():
    assert measure(side(0.1, 1), side(0.08, 2), min_gain=0.5).conclusion == "no difference shown"


def test_interval_holds_the_ratio_and_repeats():
    first, second = measure(side(0.1, 1), side(0.08, 2)), measure(side(0.1, 1), side(0.08, 2))
    assert first == second and first.ci_low <= first.ratio <= first.ci_high


def test_too_few_times_or_mixed_sources_are_not_measured():
    assert measure([series(BASE[:5], times(0.1, 5))], side(0.1, 1)).conclusion == "not measured"
    assert measure([series(BASE)], [series(BASE)]).conclusion == "not measured"
    assert measure(side(0.1, 1), side(0.08, 2), sources=["log", "clock"]).conclusion == "not measured"


def saved(tmp_path, kind, base, other):
    import sys
    from pathlib import Path

    paths = [tmp_path / f"base{kind}", tmp_path / f"other{kind}"]
    for path, value in zip(paths, (base, other), strict=True):
        if kind == ".npy":
            import numpy as np

            np.save(path, np.asarray(value, dtype=np.float32))
        elif kind == ".json":
            path.write_text(json.dumps(value))
        elif kind == ".txt":
            path.write_text(str(value))
        else:
            torch = pytest.importorskip("torch")
            tensors = {"out": torch.tensor(value)}
            if kind == ".pt":
                torch.save(tensors, path)
            else:
                pytest.importorskip("safetensors.torch").save_file(tensors, path)
    return compare(*paths, Path(sys.executable), {}, f"out{kind}")


@pytest.mark.parametrize("kind", [".npy", ".json", ".txt", ".pt", ".safetensors"])
def test_saved_files(tmp_path, kind):
    assert saved(tmp_path, kind, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).passed
    assert not saved(tmp_path, kind, [1.0, 2.0, 3.0], [1.0, -2.0, 3.0]).passed


def test_bfloat16_safetensors(tmp_path):
    torch = pytest.importorskip("torch")
    assert saved(tmp_path, ".safetensors", torch.ones(3, dtype=torch.bfloat16).tolist(), [1.0, 1.0, 1.0]).passed


def test_pickled_code_is_not_run(tmp_path):
    import pickle
    import sys
    from pathlib import Path

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    for name in ("a.pt", "b.pt"):
        (tmp_path / name).write_bytes(pickle.dumps(Evil()))
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt", Path(sys.executable), {}, "a.pt")
    assert not result.passed and not (tmp_path / "ran").exists()


def test_missing_file(tmp_path):
    from pathlib import Path

    assert "did not write" in compare(tmp_path / "a.txt", tmp_path / "b.txt", Path("/"), {}, "a.txt").reason.en
