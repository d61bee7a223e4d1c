"""The scripted model: prepared replies from Python and from script files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from suture.core.settings.schema import ModelSettings, Settings
from suture.errors import ModelTimeout, UsageError
from suture.models import Message, Reply, Sampling, open_model
from suture.models.scripted_model import ScriptExhausted
from suture.testing import ScriptedModel

PROMPT = (Message(role="user", content="hi"),)


async def complete_texts(model: ScriptedModel, count: int) -> list[str]:
    """Return the texts of the next replies."""
    return [(await model.complete(PROMPT, Sampling(index=index))).text for index in range(count)]


async def test_replies_and_faults_come_in_order() -> None:
    model = ScriptedModel(["one", ModelTimeout("late"), Reply(text="two", finish="length")])
    assert (await model.complete(PROMPT, Sampling())).text == "one"
    with pytest.raises(ModelTimeout, match="late"):
        await model.complete(PROMPT, Sampling(index=1))

    reply = await model.complete(PROMPT, Sampling(index=2))
    assert (reply.text, reply.finish, reply.model) == ("two", "length", model.name)
    assert [call.sampling.index for call in model.calls] == [0, 1, 2]
    assert model.calls[0].messages == PROMPT


async def test_an_exhausted_script_is_an_error() -> None:
    model = ScriptedModel(["one"])
    await complete_texts(model, 1)
    with pytest.raises(ScriptExhausted, match="asked for reply 2, but the length of its script is 1"):
        await complete_texts(model, 1)


async def test_concurrent_calls_get_each_reply_once() -> None:
    model = ScriptedModel([str(number) for number in range(20)])
    replies = await asyncio.gather(*(model.complete(PROMPT, Sampling(index=i)) for i in range(20)))
    assert sorted(int(reply.text) for reply in replies) == list(range(20))


def open_script_file(path: Path) -> ScriptedModel:
    """Open the model of a script file."""
    model = open_model(Settings(model=ModelSettings(name=f"scripted:{path}")))
    assert isinstance(model, ScriptedModel)
    return model


async def test_a_yaml_script_is_read(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(
        "- plain\n"
        "- {raise: ModelTimeout, message: too late}\n"
        "- {text: short, finish: length}\n"
        "- {text: again, repeat: true}\n"
    )
    model = open_script_file(script)

    assert model.name == f"scripted:{script}"
    assert await complete_texts(model, 1) == ["plain"]
    with pytest.raises(ModelTimeout, match="too late"):
        await complete_texts(model, 1)
    assert await complete_texts(model, 4) == ["short", "again", "again", "again"]


async def test_a_json_script_is_read(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["one", {"text": "two"}]))
    assert await complete_texts(open_script_file(script), 2) == ["one", "two"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "not a list"),
        ("text: alone", "not a list"),
        ("- [nested]", "entry 1"),
        ("- one\n- {text: two, finsh: length}", "finsh"),
        ("- {raise: SystemExit}", "SystemExit"),
        ("- {text: one, finish: never}", "finish"),
        ("- {finish: stop}", "text"),
        ("- 'open", "not YAML"),
    ],
)
def test_a_bad_script_is_refused(tmp_path: Path, content: str, expected: str) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(content)
    with pytest.raises(UsageError, match=expected):
        open_script_file(script)


def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        open_script_file(tmp_path / "none.yaml")


async def test_the_packaged_script_is_wrong_first_and_then_right() -> None:
    model = open_script_file(Path("example"))
    results = []

    for text in await complete_texts(model, 3):
        namespace: dict[str, object] = {}
        exec(text.split("```python\n")[1].split("```")[0], namespace)  # our own file
        merge = namespace["merge_intervals"]
        assert callable(merge)
        assert merge([[1, 3], [2, 6], [8, 10]]) == [[1, 6], [8, 10]]
        results.append(merge([[1, 2], [2, 3]]) == [[1, 3]])

    assert results == [False, True, True]
