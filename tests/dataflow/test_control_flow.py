"""Branches, loops, helpers: what is followed, and what becomes a value that equals nothing."""

from __future__ import annotations

from dataflow_graphs import function, of, returned


def test_both_arms_that_agree_are_one_value() -> None:
    code = "def f(x, c):\n    if c:\n        y = x ** 2\n    else:\n        y = x * x\n    return y\n"
    assert repr(returned(code)) == of("x ** 2")


def test_arms_that_differ_are_a_choice() -> None:
    node = returned("def f(x, c):\n    y = x\n    if c:\n        y = x * 2\n    return y\n")
    assert node.op == "phi"
    assert [arm.op for arm in node.args[1:]] == ["mul", "parameter"]


def test_an_arm_that_leaves_gives_nothing_to_what_follows() -> None:
    node = returned("def f(x, c):\n    if c:\n        x = x + 1\n        return x\n    return x * 2\n")
    assert repr(node) == of("x * 2")


def test_every_return_is_kept_with_its_conditions() -> None:
    graph = function("def f(x, c):\n    if c:\n        return x\n    return x * 2\n")
    assert [len(one.conditions) for one in graph.returns] == [1, 0]


def test_a_helper_of_the_file_is_seen_through() -> None:
    code = """
    def half(x):
        return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), dim=-1)

    def f(x):
        return half(x)
    """
    assert repr(returned(code)) == of("torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), dim=-1)")


def test_a_method_with_keywords_and_defaults_is_seen_through() -> None:
    code = """
    class Norm(nn.Module):
        def scale(self, x, *, power=2):
            return x.pow(power).mean(-1, keepdim=True)

        def forward(self, x):
            return self.scale(x)
    """
    assert repr(returned(code, "Norm.forward")) == of("x.pow(2).mean(-1, keepdim=True)")


def test_an_inherited_method_is_seen_through() -> None:
    code = """
    class Base(nn.Module):
        def scale(self, x):
            return x.pow(2).mean(-1)

    class Norm(Base):
        def forward(self, x):
            return self.scale(x)
    """
    assert repr(returned(code, "Norm.forward")) == of("x.pow(2).mean(-1)")


def test_a_helper_that_calls_itself_ends() -> None:
    node = returned("def f(x):\n    return torch.sqrt(f(x))\n")
    assert node.op == "sqrt" and node.args[0].op == "call"


def test_an_activation_that_the_constructor_holds() -> None:
    code = """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.SiLU()

        def forward(self, x):
            return self.act(x)
    """
    assert returned(code, "M.forward").op == "silu"


def test_a_name_that_a_loop_carries_equals_nothing() -> None:
    node = returned("def f(x, layers):\n    for layer in layers:\n        x = x + 1\n    return x * 2\n")
    assert repr(node) != of("x * 2") and repr(node) != of("(x + 1) * 2")


def test_a_name_that_a_loop_does_not_touch_stays() -> None:
    node = returned("def f(x, layers):\n    y = x * 2\n    for layer in layers:\n        print(layer)\n    return y\n")
    assert repr(node) == of("x * 2")


def test_two_calls_of_something_unknown_are_two_values() -> None:
    node = returned("def f(x, g):\n    return g(x) * g(x)\n")
    assert node.op == "mul"  # not a square: g may draw random numbers


def test_what_is_stored_into_is_another_value() -> None:
    node = returned("def f(x, y):\n    x[0] = y\n    return x\n")
    assert node.op == "stored"
