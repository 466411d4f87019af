"""The pocket engine: equal to transformers, and the same bits however a trajectory was read."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ramify.decode import Chain, Temperature
from ramify.describe import parse
from ramify.errors import InvalidValue
from ramify.models import decode_with
from ramify.models.pocket import Pocket
from ramify.models.pocket.cache import BLOCK
from ramify.models.pocket.checkpoint import read_tensors
from ramify.models.pocket.model import engine_of
from ramify.models.pocket.product import linear, panels, pieces, product, rows_per_call
from ramify.types import Key, Request
from tests.models.tiny import SYMBOLS, TOKENS, save

torch = pytest.importorskip("torch")

SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "grouped": {"num_key_value_heads": 2},
    "untied": {"tie_word_embeddings": False, "head_dim": 32, "vocab_size": 61, "rms_norm_eps": 1e-5},
    "single": {"heads": 1, "num_key_value_heads": 1, "layers": 3},
    "wide": {"width": 144, "heads": 3, "head_dim": 48, "intermediate_size": 400, "num_key_value_heads": 1},
}


@cache
def checkpoint(shape: str = "plain", dtype: str = "float32") -> Path:
    folder = Path(mkdtemp(prefix="pocket-"))
    save(folder, dtype=dtype, **SHAPES[shape])
    return folder


def prompts(*lengths: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(2, len(TOKENS), size=length).tolist() for length in lengths]


RAGGED = (1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 100)


# -------------------------------------------------------------------------------------- equal to transformers


def reference(folder: Path, dtype: str, rows: list[list[int]]) -> np.ndarray:
    """The next-token logits of each row from LlamaForCausalLM, one row at a time."""
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    if dtype == "float64":
        exact(model)
    with torch.inference_mode():
        return np.stack([model(torch.tensor([row])).logits[0, -1].numpy() for row in rows])


def exact(model: Any) -> None:
    """transformers works out rotary angles and norms in single precision even in a double model: not here."""
    config = model.config
    half = torch.arange(0, config.head_dim, 2).double() / config.head_dim
    frequency = config.rope_parameters["rope_theta"] ** -half

    def rotary(x: Any, position_ids: Any) -> tuple[Any, Any]:
        angle = (position_ids[..., None].double() * frequency).repeat(1, 1, 2)
        return angle.cos(), angle.sin()

    def norm(x: Any, weight: Any) -> Any:
        return weight * x / (x.square().mean(-1, keepdim=True) + config.rms_norm_eps).sqrt()

    model.model.rotary_emb.forward = rotary
    for module in model.modules():
        if type(module).__name__ == "LlamaRMSNorm":
            module.forward = partial(norm, weight=module.weight)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-4), ("float64", 1e-9)])
def test_logits_are_those_of_transformers(shape: str, precision: str, tolerance: float) -> None:
    folder, rows = checkpoint(shape), prompts(*RAGGED, 200)
    model = Pocket(str(folder), precision)
    state = model.start(rows)
    np.testing.assert_allclose(model.logits(state), reference(folder, precision, rows), rtol=0, atol=tolerance)
    for token in prompts(*[len(rows)] * 40, seed=1):
        state, rows = (
            model.advance(state, token),
            [[*row, each] for row, each in zip(rows, token, strict=True)],
        )
    assert model.logits(state).dtype == precision
    np.testing.assert_allclose(model.logits(state), reference(folder, precision, rows), rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_weights_are_read_exactly(dtype: str) -> None:
    folder, rows = checkpoint("grouped", dtype), prompts(5, 40)
    logits = Pocket(str(folder)).start(rows).scores
    np.testing.assert_allclose(logits, reference(folder, "float32", rows), rtol=0, atol=1e-4)


def test_the_safetensors_reader_agrees_with_the_library() -> None:
    from safetensors.numpy import load_file

    file = checkpoint() / "model.safetensors"
    ours, theirs = read_tensors(file), load_file(file)
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


# -------------------------------------------------------------------------------- the same bits, however read


@cache
def bits(shape: str, precision: str, kernel: str) -> dict[tuple[int, ...], bytes]:
    """The logits of every trajectory met so far, in all examples: met again, it must have the same bits."""
    return {}


MOVES = ["start", "resume", "advance", "select"]


class Walk:
    """A random life of states: started, advanced, forked, merged, pruned, resumed, old ones taken up."""

    def __init__(self, shape: str, precision: str, seed: int, kernel: str = "numpy") -> None:
        self.model, self.known = Pocket(str(checkpoint(shape)), precision, kernel), bits(shape, precision, kernel)
        self.rng = np.random.default_rng(seed)
        self.roots = [tuple(row) for row in prompts(240, 240)]
        self.states: list[tuple[Any, list[tuple[int, ...]]]] = []
        self.start()

    def keep(self, state: Any, rows: list[tuple[int, ...]]) -> None:
        logits = self.model.logits(state)
        assert logits.shape[0] == len(rows)
        for row, logit in zip(rows, logits, strict=True):
            same = self.known.setdefault(row, logit.tobytes()) == logit.tobytes()
            assert same, f"{len(row)} tokens, batch {len(rows)}"
        self.states = [*self.states[-5:], (state, rows)]

    def pick(self) -> tuple[Any, list[tuple[int, ...]]]:
        return self.states[self.rng.integers(len(self.states))]

    def start(self) -> None:
        lengths = self.rng.choice([*RAGGED, 7, 50, 130], size=self.rng.choice([1, 2, 5, 17]))
        rows = [self.roots[self.rng.integers(2)][:length] for length in lengths]
        rows += [(*row, int(self.rng.integers(2, 50))) for row in rows[:2]]
        self.keep(self.model.start(rows), rows)

    def resume(self) -> None:
        _, rows = self.pick()
        some = [rows[i] for i in self.rng.permutation(len(rows))[: self.rng.integers(1, 9)]]
        self.keep(self.model.start(some), some)

    def advance(self) -> None:
        state, rows = self.pick()
        for _ in range(self.rng.integers(1, 12)):
            root = self.roots[self.rng.integers(2)]  # a token of a root, so that trajectories meet again
            token = [root[len(row)] if self.rng.random() < 0.8 else int(self.rng.integers(2, 50)) for row in rows]
            state = self.model.advance(state, np.array(token))
            rows = [(*row, each) for row, each in zip(rows, token, strict=True)]
            self.keep(state, rows)
            if max(map(len, rows)) >= 238:
                return

    def select(self) -> None:
        parts = [self.pick() for _ in range(self.rng.integers(1, 4))]
        rows = [row for _, part in parts for row in part]
        index = self.rng.integers(len(rows), size=self.rng.choice([1, 2, 9, 33, 64]))
        self.keep(self.model.select([state for state, _ in parts], index), [rows[i] for i in index])


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), moves=st.lists(st.sampled_from(MOVES), max_size=12))
def test_a_row_has_the_same_bits_however_it_was_read(shape: str, precision: str, seed: int, moves: list[str]) -> None:
    walk = Walk(shape, precision, seed)
    for move in moves:
        getattr(walk, move)()


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), moves=st.lists(st.sampled_from(MOVES), max_size=12))
def test_compiled_attention_keeps_the_promise_too(shape: str, seed: int, moves: list[str]) -> None:
    pytest.importorskip("numba")
    walk = Walk(shape, "float32", seed, kernel="numba")
    for move in moves:
        getattr(walk, move)()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-4), ("float64", 1e-11)])
def test_compiled_attention_is_the_same_function(shape: str, precision: str, tolerance: float) -> None:
    pytest.importorskip("numba")
    folder, rows = str(checkpoint(shape)), prompts(*RAGGED, 200)
    plain, fast = Pocket(folder, precision), Pocket(folder, precision, kernel="numba")
    states = plain.start(rows), fast.start(rows)
    for token in prompts(*[len(rows)] * 40, seed=1):
        np.testing.assert_allclose(states[1].scores, states[0].scores, rtol=0, atol=tolerance)
        states = plain.advance(states[0], token), fast.advance(states[1], token)
    assert fast.logits(states[1]).dtype == precision


def test_alone_batched_shuffled_forked_resumed() -> None:
    """The law spelled out on one example."""
    model, rows = Pocket(str(checkpoint())), prompts(*RAGGED)
    tokens = np.array(prompts(*[len(rows)] * 30, seed=2))  # [step, row]
    state = model.start(rows)
    for token in tokens:
        state = model.advance(state, token)
    batched = model.logits(state)
    for i, row in enumerate(rows):
        alone = model.start([row])
        for token in tokens[:, i]:
            alone = model.advance(alone, [token])
        assert np.array_equal(model.logits(alone)[0], batched[i])
    resumed = model.start([[*row, *tokens[:, i].tolist()] for i, row in enumerate(rows)])
    assert np.array_equal(model.logits(resumed), batched)
    order = np.random.default_rng(0).permutation(len(rows)).repeat(9)
    forked = model.advance(model.select([state], order), np.full(order.size, 5))
    whole = model.advance(state, np.full(len(rows), 5))
    assert np.array_equal(model.logits(forked), model.logits(whole)[order])


KERNELS = {"Prescott": "sse3", "Sandybridge": "avx", "Haswell": "avx2", "SkylakeX": "avx512f"}


@pytest.mark.parametrize(
    "kernel",
    ["Prescott", "Haswell", *(pytest.param(name, marks=pytest.mark.soak) for name in ("Sandybridge", "SkylakeX"))],
)
def test_the_law_holds_on_other_kernels(kernel: str) -> None:
    """OpenBLAS is made to use another machine's kernels; the engine finds out what a call may take."""
    cpu = Path("/proc/cpuinfo")
    if not cpu.exists() or KERNELS[kernel].replace("sse3", "pni") not in cpu.read_text().split():
        pytest.skip(f"this processor cannot run {kernel} kernels")
    program = (
        "from tests.models.test_pocket import *; test_alone_batched_shuffled_forked_resumed();"
        "Walk('grouped', 'float32', 1); walk = Walk('plain', 'float64', 2);"
        "[getattr(walk, move)() for move in ('start', 'advance', 'select', 'advance', 'resume', 'advance')]"
    )
    env = {
        "OPENBLAS_CORETYPE": kernel,
        "OPENBLAS_NUM_THREADS": "2",
        "PYTHONPATH": ":".join(["src", *sys.path]),
    }
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@given(
    rows=st.integers(1, 300),
    inner=st.sampled_from([16, 32, 100, 192, 256, 400, 688, 1024]),
    outer=st.sampled_from([1, 53, 64, 200]),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_a_product_does_not_see_its_other_rows(rows: int, inner: int, outer: int, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((rows, inner)).astype(dtype), rng.standard_normal((inner, outer)).astype(dtype)
    tile = rows_per_call(dtype, tuple((high - low, 64) for low, high in pieces(inner, x.itemsize)))
    y, i = linear(x, panels(w), tile), int(rng.integers(rows))
    np.testing.assert_allclose(y[:, :outer], x @ w, rtol=0, atol=1e-3 if dtype == "float32" else 1e-11)
    assert np.array_equal(linear(x[i : i + 1], panels(w), tile)[0], y[i])
    other = rng.permutation(rows)
    assert np.array_equal(linear(x[other], panels(w), tile), y[other])


@given(rows=st.integers(1, 40), live=st.integers(1, 32), seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_masked_positions_add_exactly_nothing(rows: int, live: int, seed: int) -> None:
    rng, tile = np.random.default_rng(seed), rows_per_call("float32", ((32, 32),))
    p, v = rng.random((rows, 32), dtype=np.float32), rng.standard_normal((32, 32), dtype=np.float32)
    p[:, live:] = 0.0
    other = v.copy()
    other[live:] = rng.standard_normal((32 - live, 32))
    assert np.array_equal(product(p, v, tile), product(p, other, tile))


# ------------------------------------------------------------------------------------------ states are values


def test_an_old_state_goes_on_as_if_nothing_had_happened() -> None:
    model = Pocket(str(checkpoint("grouped")))
    old = model.start(prompts(10, BLOCK, 40))
    first = [model.logits(model.advance(old, [token] * 3)).copy() for token in (3, 4, 5)]
    later = model.advance(model.advance(old, [6, 6, 6]), [7, 7, 7])
    before = model.logits(later).copy()
    again = [model.logits(model.advance(old, [token] * 3)) for token in (3, 4, 5)]
    assert all(map(np.array_equal, first, again))
    assert np.array_equal(model.logits(later), before)
    assert len({each.tobytes() for each in first}) == 3


def test_blocks_are_free_again_when_nobody_holds_them() -> None:
    model = Pocket(str(checkpoint("untied")))
    pool = engine_of(model).pool
    state = model.start(prompts(100) * 50)
    held = int((pool.uses > 0).sum())
    assert held == -(-100 // BLOCK)  # fifty samples of a prompt hold one copy of it
    state = model.advance(state, [3] * 50)
    assert int((pool.uses > 0).sum()) <= held + 50
    del state
    gc.collect()
    pool.take(0)
    assert not pool.uses.any()


def test_the_pool_grows_without_changing_anything() -> None:
    model = Pocket(str(checkpoint("wide")))
    pool, rows = engine_of(model).pool, prompts(*[33] * 40)
    few = model.logits(model.start(rows[:1]))
    many = [model.start([[*row, extra] for row in rows]) for extra in range(2, 2 + pool.uses.size // 80 + 2)]
    assert np.array_equal(model.logits(model.start(rows[:1])), few)
    assert len(many) * 80 <= pool.uses.size


def test_the_pool_gives_memory_back_when_a_large_batch_is_over() -> None:
    model = Pocket(str(checkpoint("single")))
    pool, old = engine_of(model).pool, model.start(prompts(40, 70))
    before = model.logits(model.advance(old, [3, 4])).copy()
    many = [model.start([[extra, *row] for row in prompts(*[33] * 40)]) for extra in range(2, 22)]
    assert int((pool.written > 0).sum()) > 1500
    del many
    gc.collect()
    assert np.array_equal(model.logits(model.advance(old, [3, 4])), before)
    assert pool.uses.size == pool.keys[0].shape[0] == 1024
    assert int((pool.written > 0).sum()) < 20, "the rest are zeros nobody touched, which take no memory"


# --------------------------------------------------------------------------------------------- leaves, values


def test_a_leaf_depends_on_its_key_alone() -> None:
    model = Pocket(str(checkpoint()))
    requests = [Request(Key("run", f"q{i % 3}", i), tuple(prompts(20 + i % 3)[0]), cap=5 + 7 * i) for i in range(12)]
    together = {leaf.key: leaf for leaf in decode_with(model, Chain(Temperature(1.0)))(requests)}
    few = {leaf.key: leaf for leaf in decode_with(model, Chain(Temperature(1.0)), batch=3)(requests[::-1])}
    assert len(together) == len(requests)
    for key, leaf in together.items():
        assert leaf.tokens.tolist() == few[key].tokens.tolist()
        assert leaf.logprob.tobytes() == few[key].logprob.tobytes()


def test_a_pocket_is_a_value() -> None:
    model = Pocket("some/folder", precision="float64")
    assert repr(model) == "Pocket(name='some/folder', precision='float64', kernel='numpy')"
    assert parse(repr(model)) == model
    assert hash(model) == hash(Pocket("some/folder", "float64"))


def test_text_round_trip() -> None:
    from transformers import AutoTokenizer

    model, text = Pocket(str(checkpoint())), "12 + 3 = 15\nwait: (ok)?"
    tokens = model.encode(text)
    assert model.text(tokens) == text
    assert model.text([*tokens, model.eos]) == text
    assert list(tokens) == AutoTokenizer.from_pretrained(checkpoint()).encode(text, add_special_tokens=False)
    with pytest.raises(InvalidValue, match="cannot spell"):
        model.encode("Ω")


@given(st.text(alphabet=SYMBOLS, max_size=40))
def test_every_text_of_the_vocabulary_survives(text: str) -> None:
    assert Pocket(str(checkpoint())).text(Pocket(str(checkpoint())).encode(text)) == text


def test_a_plain_vocabulary_will_do(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((checkpoint() / name).read_bytes())
    (tmp_path / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(TOKENS)}))
    assert Pocket(str(tmp_path)).encode("a<eos>") == (TOKENS.index("a"), 1)


def test_what_cannot_work_is_refused(tmp_path: Path) -> None:
    model = Pocket(str(checkpoint()))
    full = model.start(prompts(256))
    with pytest.raises(InvalidValue, match="context is full"):
        model.advance(full, [3])
    with pytest.raises(InvalidValue, match="use 1 to 256 tokens"):
        model.start([[]])
    with pytest.raises(InvalidValue, match="token"):
        model.advance(model.start([[3]]), [len(TOKENS)])
    with pytest.raises(InvalidValue, match="give 1 tokens"):
        model.advance(model.start([[3]]), [3, 4])
    with pytest.raises(InvalidValue, match=r"config\.json"):
        Pocket("nowhere").start([[3]])
    with pytest.raises(InvalidValue, match="float16"):
        Pocket("nowhere", "float16")
    with pytest.raises(InvalidValue, match="use 'numpy' or 'numba'"):
        Pocket("nowhere", kernel="cuda")
    config = json.loads((checkpoint() / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"attention_bias": True}))
    with pytest.raises(InvalidValue, match="without biases"):
        Pocket(str(tmp_path)).start([[3]])


def test_no_rows_are_rows_too() -> None:
    model = Pocket(str(checkpoint()))
    none = model.select([model.start(prompts(3, 40))], [])
    assert model.logits(none).shape == (0, len(TOKENS))
    assert model.logits(model.advance(none, np.zeros(0, np.int64))).shape == (0, len(TOKENS))
    merged = model.select([none, model.start(prompts(3))], [0])
    assert np.array_equal(model.logits(merged), model.logits(model.start(prompts(3))))


def test_importing_needs_neither_torch_nor_time(tmp_path: Path) -> None:
    program = (
        "import sys; from ramify.models.pocket import Pocket; import ramify.models.hf;"
        f"Pocket({str(checkpoint())!r}).start([[3]]); print('torch' in sys.modules)"
    )
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    print(f"import and load: {time.perf_counter() - begun:.2f} s")
    assert done.stdout.strip() == "False"
