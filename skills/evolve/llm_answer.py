"""What a language model hands in, and the draft that is made of it.

Every text is bounded here, so that nothing endless or unprintable goes any further; what it says
is judged by the screen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from zetta.critics.parameters import Parameter
from zetta.critics.problems import MAX_BYTES
from zetta.runtime.loose_json import objects_in
from zetta.skills.evolve.authors import Draft
from zetta.skills.evolve.skill_texts import Page, package_files, parameters_text
from zetta.skills.package import SkillPackage
from zetta.skills.package_files import CRITIC, PARAMETERS, RECOVERY, REQUIRED, read_files

NAME_MOST: Final = 40
SENTENCE_MOST: Final = 600
NUMBERS_MOST: Final = 40
_FENCE: Final = re.compile(r"\A\s*```[a-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)


def _plain(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("this cannot be written as UTF-8 text") from None
    if not all(c.isprintable() or c in "\n\t" for c in text):
        raise ValueError("this holds characters that cannot be printed")
    return text


def _one_line(text: str) -> str:
    return " ".join(_plain(text.replace("\r", " ")).split())


def _program(text: str) -> str:
    text = text.replace("\r\n", "\n")
    fenced = _FENCE.match(text)
    return _plain(fenced[1] if fenced else text).strip("\n") + "\n"


Line = Annotated[str, Field(max_length=SENTENCE_MOST), AfterValidator(_one_line)]
Program = Annotated[str, Field(max_length=MAX_BYTES), AfterValidator(_program)]
Role = Literal["object", "receptacle", "part"]


class Number(BaseModel):
    """One number of the skill, with the bounds within which it may be tuned."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=NAME_MOST, description="small letters, digits and _")
    default: float
    low: float
    high: float
    unit: Line = Field("", description="SI: m, s, rad, m/s; empty for shares and counts")
    doc: Line = ""
    stricter: Literal["", "up", "down"] = Field(
        "", description="which way the critic fires less, where that has a meaning"
    )


class SkillAnswer(BaseModel):
    """One skill: its critic, its recovery and their numbers."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        max_length=NAME_MOST,
        description="lower-case words joined by hyphens; the name of a deployed skill gives that "
        "skill other numbers and leaves its programs as they are",
    )
    description: Line = Field(description="what goes wrong and what the skill does, one sentence")
    applies: Line = Field(description="when it applies, one sentence")
    roles: list[Role] = Field(max_length=3, description="what the instruction must name")
    max_ticks: int = Field(ge=1, le=300, description="ticks that the recovery may drive at most")
    critic_py: Program = Field(description="critic.py; empty when only numbers change")
    recovery_py: Program = Field(description="recovery.py; empty when only numbers change")
    params: list[Number] = Field(max_length=NUMBERS_MOST)
    hypothesis: Line = Field(description="why failures happen and why this helps, one sentence")


def draft_of(answer: SkillAnswer, parent: Mapping[str, SkillPackage], author: str) -> Draft:
    """Return the draft that an answer stands for; nobody has checked it yet.

    Args:
        answer: of the model.
        parent: deployed skills by name.
        author: who is named in its page.

    Raises:
        ScreenError: a deployed skill is damaged.
    """
    numbers = [Parameter(**number.model_dump()) for number in answer.params]
    if answer.name in parent:
        files = _renumbered(answer, parent[answer.name], numbers)
    else:
        page = Page(
            name=answer.name,
            description=answer.description,
            applies=answer.applies,
            roles=tuple(dict.fromkeys(answer.roles)),
            max_ticks=answer.max_ticks,
            text=answer.hypothesis,
            author=re.sub(r"[^\w.:/@-]+", "-", author),
            made_by="llm",
        )
        files = dict(package_files(page, answer.critic_py, answer.recovery_py, numbers))
    return Draft(answer.name, files, answer.hypothesis)


def read_answer(text: str) -> SkillAnswer:
    """Return the answer that stands somewhere in a plain text, as a JSON object.

    Raises:
        ValueError: there is none, or it is none; the message says what is wrong.
    """
    problem = "there is no JSON object in it"
    for found in objects_in(text):
        try:
            return SkillAnswer.model_validate(found)
        except ValidationError as error:
            problem = wrong_fields(error)
    raise ValueError(problem)


def wrong_fields(error: ValidationError) -> str:
    """Return what is wrong with an answer, a line for each field."""
    lines = (
        f"{'.'.join(map(str, e['loc'])) or 'the answer'}: {e['msg']}"
        for e in error.errors(include_url=False, include_input=False)
    )
    return "\n".join(lines)


def _renumbered(
    answer: SkillAnswer, package: SkillPackage, numbers: list[Parameter]
) -> dict[str, str]:
    """Return a deployed skill with other defaults; whatever else was changed is kept, and told."""
    read = read_files(package.folder)
    contents = {path: read.text(path) for path in REQUIRED}
    told = {number.name: number for number in numbers}
    kept = [
        replace(known, default=told.pop(name).default) if name in told else known
        for name, known in package.parameters.items()
    ]
    contents[PARAMETERS] = parameters_text([*kept, *told.values()])
    for path, text in ((CRITIC, answer.critic_py), (RECOVERY, answer.recovery_py)):
        if text.strip() and text.split() != contents[path].split():
            contents[path] = text
    return contents
