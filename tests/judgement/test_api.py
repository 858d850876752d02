"""Facts about operators: from a folder, a wheel, an installation, the recorded versions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from npufuse_tui import language
from npufuse_tui.errors import WrongInput
from npufuse_tui.judgement import api, api_text
from npufuse_tui.judgement.api_knowledge import deprecated, known, known_names, texts_of
from npufuse_tui.judgement.api_registry import Gradient, catalogue, known_versions
from npufuse_tui.judgement.api_source import installed_package


@pytest.mark.parametrize("kind", ["package", "wheel", "site", "environment"])
def test_facts_come_from_the_package_given(kind, request, tmp_path):
    if kind == "site":
        place = request.getfixturevalue("package").parent
    elif kind == "environment":
        package = request.getfixturevalue("package")
        place = tmp_path / "venv"
        (place / "lib/python3.11/site-packages").mkdir(parents=True)
        package.rename(place / "lib/python3.11/site-packages/torch_npu")
    else:
        place = request.getfixturevalue(kind)
    found = api.lookup("torch_npu.npu_rms_norm", place)
    assert found.version == "9.9.9"
    assert found.origin == "declared"
    assert found.signatures == ("npu_rms_norm(Tensor input, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)",)
    assert found.gradient is Gradient.LIKELY
    assert found.documentation is not None
    assert found.documentation.sections["description"] == "RmsNorm 归一化。"
    assert "older entry" not in found.documentation.text
    assert "torch_npu" not in sys.modules


def test_where_documentation_and_schema_disagree_is_said(package):
    told = [one.en for one in api.lookup("npu_rms_norm", package).disagreements]
    assert any("self" in one and "by position" in one for one in told)
    assert any("epsilon" in one and "1e-05" in one and "1e-06" in one for one in told)
    agreeing = [one.en for one in api.lookup("npu_swiglu", package).disagreements]
    assert all("self" in one for one in agreeing)


def test_products_come_from_the_documentation_then_from_knowledge(package):
    assert api.lookup("npu_swiglu", package).products[0] == "A2"
    assert api.lookup("npu_rms_norm", package).products_from == "knowledge"


def test_an_operator_without_documentation_is_answered_from_knowledge():
    found = api.lookup("npu_add_rms_norm", "2.13.0")
    assert found.documentation is None
    assert found.gradient is Gradient.RAISES
    assert "950" in found.products
    assert any("no backward" in one.en for one in found.limits)


def test_since_is_the_first_train_that_registers_it():
    assert api.lookup("npu_fusion_attention_v3", "2.13.0").since == "2.7.1.post11"
    assert api.lookup("npu_rms_norm", "2.13.0").since == known_versions()[0]


def test_an_operator_that_a_version_lacks_is_refused_with_the_versions_that_have_it():
    with pytest.raises(WrongInput, match=r"2\.4\.0\.post4 has no npu_fusion_attention_v3.*2\.7\.1\.post11"):
        api.lookup("npu_fusion_attention_v3", "2.4.0.post4")
    with pytest.raises(WrongInput, match="npu_rms_norm"):
        api.lookup("npu_rmsnorm", "2.13.0")


def test_a_version_that_is_not_recorded_says_what_stands_in():
    found = api.lookup("npu_rms_norm", "2.13.1")
    assert found.version == "2.13.0"
    assert found.note is not None and "2.13.1" in found.note.en


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 not really"])
def test_a_path_without_torch_npu_is_refused(tmp_path, content):
    path = tmp_path / "thing.whl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WrongInput, match="holds no torch_npu"):
        catalogue(path)


@pytest.mark.parametrize("text", ["def broken(:\n", "x = 1\x00\n", "(" * 5000], ids=["syntax", "null", "deep"])
def test_broken_documentation_leaves_the_schema(package, text):
    (package / "_op_plugin_docs.py").write_text(text)
    found = api.lookup("npu_rms_norm", package)
    assert found.documentation is None
    assert found.schemas


def test_folded_declarations_are_read_and_wrong_ones_left_out(package):
    operators = catalogue(package).operators
    folded = operators["npu_folded"].schemas[0]
    assert [one.name for one in folded.arguments] == ["input", "mode", "out", "size"]
    assert "dequantize" not in operators
    assert len(operators) == 5


def test_the_torch_npu_of_another_interpreter_is_found_without_importing_it(package, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "v")], check=True)
    (site,) = (tmp_path / "v").glob("lib/python3*/site-packages")
    package.rename(site / "torch_npu")
    python = str(tmp_path / "v/bin/python")
    files = installed_package(python)
    assert files is not None and files.root == site / "torch_npu"
    assert api.lookup("npu_swiglu", python=python).version == "9.9.9"


def test_an_interpreter_that_hangs_or_is_missing_finds_nothing(tmp_path):
    assert installed_package(str(tmp_path / "nothing")) is None


def test_search_finds_names_first_then_words(package):
    hits = api.search("norm", package)
    assert [one.name for one in hits if one.where == "name"] == ["npu_rms_norm", "npu_rms_norm_backward"]
    assert [one.name for one in api.search("激活函数", package)] == ["npu_swiglu"]
    assert api.search("RMS_NORM", package)[0].name == "npu_rms_norm"
    assert api.search("nothing like that", package) == ()
    with pytest.raises(WrongInput):
        api.search("  ", package)


def test_list_leaves_out_what_nobody_calls():
    names = [one.name for one in api.list_apis("2.13.0")]
    assert names == sorted(names)
    assert "npu_rms_norm" in names
    assert not any(one.startswith("_") or one.endswith("_backward") for one in names)


def test_deprecated_operators_name_what_replaced_them():
    assert api.lookup("npu_confusion_transpose", "2.13.0").replaced_by == "view + permute"
    assert api.replacement_of("torch_npu.npu_silu") == "torch.nn.functional.silu"


def test_what_knowledge_says_is_about_operators_that_exist_and_is_in_both_languages():
    everywhere = {name for version in known_versions() for name in catalogue(version).operators}
    # fast_gelu's older name and the contrib function are Python functions, the rest must be registered somewhere.
    assert set(known_names()) - everywhere == set()
    assert len(set(deprecated()) & everywhere) >= 12
    for name in known_names():
        for text in (*texts_of(known(name).get("limits")), *texts_of(known(name).get("disputes"))):
            assert text.en.isascii() and not text.zh.isascii()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["npu_rms_norm", "npu_add_rms_norm", "npu_confusion_transpose"])
def test_text_says_what_the_facts_hold(lang, name, package):
    language.set_language(lang)
    found = api.lookup(name, "2.13.0")
    text = api_text.show(found, columns=80)
    assert found.signatures[0].split("(")[0] in text
    plain = "".join(text.split())
    assert all("".join(str(one).split()) in plain for one in (*found.limits, *found.disagreements))
    if found.replaced_by:
        assert found.replaced_by in text
    assert api_text.show(api.lookup("npu_swiglu", package), full=True).count("torch_npu.npu_swiglu") >= 2


def test_json_forms_are_json(package):
    found = json.loads(json.dumps(api_text.facts_json(api.lookup("npu_rms_norm", package))))
    assert found["schema"] == 1 and found["backward"] == "likely"
    assert found["arguments"][0][2] == {"name": "epsilon", "type": "float", "default": "1e-06", "keyword_only": False}
    json.dumps(api_text.hits_json(api.search("norm", package)))
    assert json.loads(json.dumps(api_text.list_json(api.list_apis(package))))["version"] == "9.9.9"


@pytest.mark.slow
def test_the_real_wheel(tmp_path):
    """Against the real 2.13.0, when it can be had: from NPUFUSE_TORCH_NPU_WHEEL, else downloaded."""
    import os

    path = os.environ.get("NPUFUSE_TORCH_NPU_WHEEL")
    if path is None:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(tmp_path), "torch_npu==2.13.0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            pytest.skip(f"torch_npu 2.13.0 cannot be downloaded: {done.stderr.strip().splitlines()[-1:]}")
        path = str(next(Path(tmp_path).glob("torch_npu-2.13.0*.whl")))
    versions = catalogue(path)
    assert versions.version == "2.13.0"
    assert len(versions.operators) == 403
    assert len(versions.documentation) == 217
    prototypes = [one for one in versions.documentation.values() if one.prototype is not None]
    assert len(prototypes) >= 210
    told = [one.en for one in api.lookup("npu_rms_norm", path).disagreements]
    assert any("float32 gamma" in one for one in told)
    assert "x_dtype" in api.lookup("npu_grouped_matmul", path).disagreements[0].en
    # Its declarations, read as text, are what the library registered.
    from npufuse_tui.judgement.api_registry import DECLARATIONS, declarations

    assert versions.files is not None
    declared = {one.name for one in declarations(versions.files.read(DECLARATIONS) or "")}
    assert len(declared - set(versions.operators)) <= 8
